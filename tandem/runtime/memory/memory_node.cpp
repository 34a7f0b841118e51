// tandem/runtime/memory/memory_node.cpp: main memory, and copies by the processor.
#include "tandem/runtime/memory/memory_node.hpp"

#include <cstdlib>
#include <cstring>

namespace tandem::runtime {
namespace {

class MainMemory final : public MemoryNode {
 public:
  std::string name() const override { return "main memory"; }
  void* allocate(std::size_t bytes) override {
    if (bytes > kMostDataBytes) return nullptr;
    return std::aligned_alloc(64, (bytes + 63) / 64 * 64 + (bytes == 0 ? 64 : 0));
  }
  MessageMemory messages() const noexcept override { return MessageMemory::host; }
  void release(void* memory, std::size_t) noexcept override { std::free(memory); }
};

class ProcessorCopier final : public Copier {
 public:
  CopyState start(const CopyRequest& request, CopyEnded) override {
    copy_matrix(request);
    return CopyState::done;
  }
};

}  // namespace

std::unique_ptr<MemoryNode> make_main_memory() { return std::make_unique<MainMemory>(); }
std::unique_ptr<Copier> make_processor_copier() { return std::make_unique<ProcessorCopier>(); }

void copy_matrix(const CopyRequest& request) noexcept {
  const Shape& shape = request.shape;
  if (shape.bytes() == 0) return;
  const std::size_t column_bytes = shape.rows * shape.element_bytes;
  if (shape.cols == 1 || (request.from_ld == shape.rows && request.to_ld == shape.rows)) {
    std::memcpy(request.to, request.from, column_bytes * shape.cols);
    return;
  }
  for (std::size_t column = 0; column < shape.cols; ++column) {
    std::memcpy(static_cast<char*>(request.to) + column * request.to_ld * shape.element_bytes,
                static_cast<const char*>(request.from) + column * request.from_ld * shape.element_bytes, column_bytes);
  }
}

}  // namespace tandem::runtime
