// tandem/runtime/worker/modelled_links.cpp: copies that end at a later date of the loop.
#include "tandem/runtime/worker/modelled_links.hpp"

#include <algorithm>
#include <cstdlib>

namespace tandem::runtime {

namespace {

class ModelledNode final : public MemoryNode {
 public:
  ModelledNode(std::string name, MessageMemory messages) : name_(std::move(name)), messages_(messages) {}
  std::string name() const override { return name_; }
  void* allocate(std::size_t bytes) override { return std::malloc(bytes == 0 ? 1 : bytes); }
  void release(void* memory, std::size_t) noexcept override { std::free(memory); }
  MessageMemory messages() const noexcept override { return messages_; }

 private:
  const std::string name_;
  const MessageMemory messages_;
};

class LinkCopier final : public Copier {
 public:
  explicit LinkCopier(std::shared_ptr<ModelledLinks> links) : links_(std::move(links)) {}
  CopyState start(const CopyRequest& request, CopyEnded ended) override {
    links_->start(request, std::move(ended), works_);
    return CopyState::posted;
  }
  void finish() noexcept override { *works_ = false; }

 private:
  const std::shared_ptr<ModelledLinks> links_;
  const std::shared_ptr<bool> works_ = std::make_shared<bool>(true);  ///< the loop may outlive the memory
};

}  // namespace

void ModelledLinks::start(const CopyRequest& request, CopyEnded ended, std::shared_ptr<const bool> works) {
  const Way way{request.from_node, request.to_node};
  const auto from = ports_.find(way.first), to = ports_.find(way.second);
  std::int64_t& free_ns = to != ports_.end()     ? to->second.in_free_ns
                          : from != ports_.end() ? from->second.out_free_ns
                                                 : free_ns_[way];
  MachineLink link = links_[way];
  if (options_.memory != nullptr) link.bytes_per_ns *= options_.memory->network_share();
  const std::size_t bytes = request.shape.bytes();
  free_ns = std::max(free_ns, loop_.now_ns()) + static_cast<std::int64_t>(link.copy_ns(bytes));
  if (options_.memory != nullptr) options_.memory->use_network_until(free_ns);
  const bool carries = bytes <= options_.carried_bytes;
  loop_.at(free_ns, [request, carries, ended = std::move(ended), works = std::move(works)] {
    if (!*works) return;
    if (carries) copy_matrix(request);
    ended(nullptr);
  });
}

std::unique_ptr<Copier> ModelledLinks::make_copier(std::shared_ptr<ModelledLinks> links) {
  return std::make_unique<LinkCopier>(std::move(links));
}

std::unique_ptr<MemoryNode> make_modelled_node(std::string name, MessageMemory messages) {
  return std::make_unique<ModelledNode>(std::move(name), messages);
}

}  // namespace tandem::runtime
