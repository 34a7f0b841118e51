// tandem/runtime/device/cuda/cuda_memory.hpp: the memory of a CUDA device as a memory node, and copies from and to it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "tandem/runtime/device/cuda/cuda_card.hpp"
#include "tandem/runtime/memory/memory_node.hpp"
#include "tandem/runtime/memory/page_locked_pool.hpp"

namespace tandem::runtime::cuda {

/// Memory of a device. A replica's pointer is its address on the device, which no main memory has.
class CudaMemory final : public MemoryNode {
 public:
  /// `messages`: links that can may read and write the memory.
  CudaMemory(std::shared_ptr<Card> card, bool messages)
      : card_(std::move(card)), messages_(messages ? MessageMemory::cuda : MessageMemory::none) {}
  std::string name() const override { return "the memory of " + card_->name(); }
  void* allocate(std::size_t bytes) override { return card_->allocate(bytes); }
  void release(void* memory, std::size_t bytes) noexcept override { card_->release(memory, bytes); }
  std::size_t footprint(std::size_t bytes) const noexcept override { return Card::footprint(bytes); }
  bool is_lost() noexcept override { return card_->is_lost(); }
  MessageMemory messages() const noexcept override { return messages_; }

 private:
  const std::shared_ptr<Card> card_;
  const MessageMemory messages_;
};

/// Posts copies to the lanes of devices. The lane of the device that has the data carries a copy between two devices.
///
/// The columns of a matrix with gaps, in memory that is not page-locked, go through page-locked memory: the lane's
/// thread packs them there before the copy, or unpacks them after it, and the device copies one piece. The driver alone
/// would copy them column by column, while the lane waits. Packed data that is not page-locked is left to the driver,
/// which passes it through such memory of its own.
class CudaCopier final : public Copier {
 public:
  /// `page_locked` may be null: there is no such memory.
  CudaCopier(std::shared_ptr<Card> card, std::shared_ptr<PageLockedPool> page_locked)
      : card_(std::move(card)), page_locked_(std::move(page_locked)) {}
  CopyState start(const CopyRequest& request, CopyEnded ended) override;
  void finish() noexcept override { card_->finish(); }

 private:
  std::shared_ptr<void> stage_for(const Card& card, const CopyRequest& request, bool to_device) const;

  const std::shared_ptr<Card> card_;
  const std::shared_ptr<PageLockedPool> page_locked_;
};

}  // namespace tandem::runtime::cuda
