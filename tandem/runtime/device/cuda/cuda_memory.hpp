// tandem/runtime/device/cuda/cuda_memory.hpp: the memory of a card as a memory node, and copies from and to it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "tandem/runtime/device/cuda/cuda_card.hpp"
#include "tandem/runtime/memory/memory_node.hpp"

namespace tandem::runtime::cuda {

/// A replica's pointer is its address on the device, which main memory has not.
class CudaMemory final : public MemoryNode {
 public:
  explicit CudaMemory(std::shared_ptr<Card> card) : card_(std::move(card)) {}
  std::string name() const override { return "the memory of " + card_->name(); }
  void* allocate(std::size_t bytes) override { return card_->allocate(bytes); }
  void release(void* memory, std::size_t bytes) noexcept override { card_->release(memory, bytes); }

 private:
  const std::shared_ptr<Card> card_;
};

/// Posts copies to the lanes of cards. One between two cards goes by the lane of the one that has the data.
class CudaCopier final : public Copier {
 public:
  explicit CudaCopier(std::shared_ptr<Card> card) : card_(std::move(card)) {}
  CopyState start(const CopyRequest& request, CopyEnded ended) override;
  void finish() noexcept override { card_->finish(); }

 private:
  const std::shared_ptr<Card> card_;
};

}  // namespace tandem::runtime::cuda
