// tandem/runtime/worker/modelled_links.hpp: the memories of a modelled machine, and the links between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "tandem/base/event_loop.hpp"
#include "tandem/runtime/device/modelled_memory.hpp"
#include "tandem/runtime/machine/machine.hpp"
#include "tandem/runtime/memory/memory_node.hpp"

namespace tandem::runtime {

/// Copies in the time of an event loop: each takes the time of its link, behind those that use the link in the same
/// direction.
///
/// Threads: the one of the loop.
class ModelledLinks {
 public:
  struct Options {
    ModelledMemory* memory = nullptr;  ///< that copies share with kernels, each at the rate that is free when it starts
    std::size_t carried_bytes = SIZE_MAX;  ///< larger copies take their time, and carry nothing
  };
  /// The loop, and the memory of the options, outlive it.
  ModelledLinks(base::EventLoop& loop, const Options& options) : loop_(loop), options_(options) {}
  ModelledLinks(const ModelledLinks&) = delete;
  ModelledLinks& operator=(const ModelledLinks&) = delete;

  /// Copies from its one memory to the other take its time. Those without a link take that of an assumed one.
  void add(const MachineLink& link) { links_[{link.from, link.to}].link = link; }
  /// Calls `ended` when a copy has ended, unless `works` has become false.
  void start(const CopyRequest& request, CopyEnded ended, std::shared_ptr<const bool> works);

  /// A copier of one memory. `links` are those of all memories of a machine.
  static std::unique_ptr<Copier> make_copier(std::shared_ptr<ModelledLinks> links);

 private:
  struct Way {
    MachineLink link;
    std::int64_t free_ns = 0;
  };

  base::EventLoop& loop_;
  const Options options_;
  std::map<std::pair<NodeIndex, NodeIndex>, Way> links_;
};

/// Makes a memory that stands for another one: main memory at addresses that nothing else knows.
std::unique_ptr<MemoryNode> make_modelled_node(std::string name, MessageMemory messages);

}  // namespace tandem::runtime
