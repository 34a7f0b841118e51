// tandem/api/copies_seen.hpp: for tests: a runtime on an event loop with devices, and the copies between its memories.
#pragma once

#include <exception>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tandem/api/test_support.hpp"
#include "tandem/base/event_loop.hpp"
#include "tandem/runtime/memory/memory_node.hpp"
#include "tandem/runtime/runtime_core.hpp"

namespace tandem::test {

/// A runtime in the test world, which records its copies.
class CopiesSeen {
 public:
  explicit CopiesSeen(const TestWorldOptions& options, const runtime::CoreOptions& core_options = {}) {
    auto resources = test_resources();
    runtime::World world = make_test_world(options, *resources);
    loop_ = resources->loop;
    for (auto& [node, copier] : world.nodes) copier = std::make_unique<Watched>(*this, std::move(copier));
    runtime_ = std::make_unique<Runtime>(std::move(resources), std::move(world), core_options);
  }

  Runtime& runtime() noexcept { return *runtime_; }
  base::EventLoop& loop() noexcept { return *loop_; }

  /// Source and target node of each copy, in the order of their begin.
  std::vector<std::pair<unsigned, unsigned>> copies;
  std::size_t bytes = 0;                              ///< bytes of all copies
  unsigned fail_next = 0;                             ///< number of copies that will fail

 private:
  class Watched final : public runtime::Copier {
   public:
    Watched(CopiesSeen& seen, std::unique_ptr<runtime::Copier> copier) : seen_(seen), copier_(std::move(copier)) {}
    runtime::CopyState start(const runtime::CopyRequest& request, runtime::CopyEnded ended) override {
      seen_.copies.emplace_back(request.from_node, request.to_node);
      seen_.bytes += request.shape.bytes();
      if (seen_.fail_next == 0) return copier_->start(request, std::move(ended));
      --seen_.fail_next;
      throw std::runtime_error("the copy has failed");
    }
    void finish() noexcept override { copier_->finish(); }

   private:
    CopiesSeen& seen_;
    std::unique_ptr<runtime::Copier> copier_;
  };

  base::EventLoop* loop_ = nullptr;
  std::unique_ptr<Runtime> runtime_;
};

}  // namespace tandem::test
