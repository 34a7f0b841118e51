// tandem/runtime/memory/numa_memory.cpp: memory that is bound to a NUMA node.
#include "tandem/runtime/memory/numa_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <mutex>
#include <vector>

#include "tandem/runtime/memory/small_blocks.hpp"

namespace tandem::runtime {
namespace {

constexpr std::size_t kMapping = SmallBlocks::kChunk;

class NumaMemory final : public MemoryNode {
 public:
  NumaMemory(const base::Topology& topology, std::size_t place) : topology_(topology), place_(place) {}
  ~NumaMemory() override {
    for (void* const mapping : mappings_) munmap(mapping, kMapping);
  }

  std::string name() const override { return fmt::format("NUMA node {}", topology_.numa_nodes()[place_].os_index); }

  void* allocate(std::size_t bytes) override {
    if (bytes >= SmallBlocks::kLarge) return map_or_null(bytes);
    const std::lock_guard guard(mutex_);
    return blocks_.take(bytes, [this] {
      void* const mapping = map_or_null(kMapping);
      if (mapping != nullptr) mappings_.push_back(mapping);
      return mapping;
    });
  }

  void release(void* memory, std::size_t bytes) noexcept override {
    if (bytes >= SmallBlocks::kLarge) {
      munmap(memory, bytes);
      return;
    }
    const std::lock_guard guard(mutex_);
    blocks_.give_back(memory, bytes);
  }

  /// Maps bound memory, or returns why it cannot.
  base::Result<void*> map(std::size_t bytes) {
    void* const mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED)
      return base::Error{base::ErrorCode::exhausted, fmt::format("the system has no {} bytes", bytes)};
    if (const auto bound = topology_.bind_memory(mapping, bytes, place_); !bound.ok()) {
      munmap(mapping, bytes);
      return bound.error();
    }
    return mapping;
  }

 private:
  void* map_or_null(std::size_t bytes) {
    const auto mapping = map(bytes);
    return mapping.ok() ? mapping.value() : nullptr;
  }

  const base::Topology& topology_;
  const std::size_t place_;
  std::mutex mutex_;
  SmallBlocks blocks_;            ///< under the mutex
  std::vector<void*> mappings_;   ///< mappings for small blocks; under the mutex
};

}  // namespace

base::Result<std::unique_ptr<MemoryNode>> make_numa_memory(const base::Topology& topology, std::size_t numa_place) {
  auto memory = std::make_unique<NumaMemory>(topology, numa_place);
  auto probe = memory->map(kMapping);
  if (!probe.ok()) return probe.error();
  munmap(probe.value(), kMapping);
  return std::unique_ptr<MemoryNode>(std::move(memory));
}

}  // namespace tandem::runtime
