// tandem/runtime/device/opencl/opencl_memory.hpp: buffers of a device as a memory node, and copies from and to them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "tandem/runtime/device/opencl/opencl_card.hpp"
#include "tandem/runtime/memory/memory_node.hpp"

namespace tandem::runtime::opencl {

/// Memory of a device. A replica's pointer is the address of a `Buffer`.
class OpenClMemory final : public MemoryNode {
 public:
  explicit OpenClMemory(std::shared_ptr<Card> card) : card_(std::move(card)) {}
  std::string name() const override { return "the memory of " + card_->name(); }
  void* allocate(std::size_t bytes) override;
  void release(void* memory, std::size_t bytes) noexcept override;
  bool is_lost() noexcept override { return card_->is_lost(); }

 private:
  const std::shared_ptr<Card> card_;
};

/// Posts copies. A copy between two devices goes through a piece of main memory.
class OpenClCopier final : public Copier {
 public:
  explicit OpenClCopier(std::shared_ptr<Card> card) : card_(std::move(card)) {}
  CopyState start(const CopyRequest& request, CopyEnded ended) override;
  void finish() noexcept override { card_->finish(); }

 private:
  const std::shared_ptr<Card> card_;
};

}  // namespace tandem::runtime::opencl
