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

/// Copies in the time of an event loop: each takes the time of its link, behind those that go the same way. All copies
/// to a memory with a port of its own, such as a device's, go one after the other, and so do all from it to memories
/// without a port; others go one after the other between the same two memories.
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
  void add(const MachineLink& link) { links_[{link.from, link.to}] = link; }
  void add_port(NodeIndex memory) { ports_.emplace(memory, Port{}); }
  /// Calls `ended` when a copy has ended, unless `works` has become false.
  void start(const CopyRequest& request, CopyEnded ended, std::shared_ptr<const bool> works);

  /// A copier of one memory. `links` are those of all memories of a machine.
  static std::unique_ptr<Copier> make_copier(std::shared_ptr<ModelledLinks> links);

 private:
  using Way = std::pair<NodeIndex, NodeIndex>;  ///< from one memory to another
  struct Port {
    std::int64_t in_free_ns = 0, out_free_ns = 0;
  };

  base::EventLoop& loop_;
  const Options options_;
  std::map<Way, MachineLink> links_;
  std::map<NodeIndex, Port> ports_;
  std::map<Way, std::int64_t> free_ns_;  ///< of ways without a port
};

/// Makes a memory that stands for another one: main memory at addresses that nothing else knows.
std::unique_ptr<MemoryNode> make_modelled_node(std::string name, MessageMemory messages);

}  // namespace tandem::runtime
