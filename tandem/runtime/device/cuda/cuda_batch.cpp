// tandem/runtime/device/cuda/cuda_batch.cpp: the encoding of kernels in a batch.
#include "tandem/runtime/device/cuda/cuda_batch.hpp"

#include <cstring>

namespace tandem::runtime::cuda {

// A kernel is its function, 3 + 3 + 1 numbers, the number of its arguments, and for each its bytes and its value, in
// whole words. The end of a task is 0.

void Batch::add(const KernelLaunch& launch) {
  content_.push_back(reinterpret_cast<std::uintptr_t>(launch.function));
  content_.insert(content_.end(), launch.blocks.begin(), launch.blocks.end());
  content_.insert(content_.end(), launch.threads.begin(), launch.threads.end());
  content_.push_back(launch.shared_bytes);
  content_.push_back(launch.arguments.size());
  for (const CudaArgument& argument : launch.arguments) {
    const bool is_address = argument.bytes == 0;
    const std::size_t bytes = is_address ? sizeof(Address) : argument.bytes;
    content_.push_back(bytes);
    const std::size_t at = content_.size();
    content_.resize(at + (bytes + 7) / 8);
    std::memcpy(&content_[at], is_address ? static_cast<const void*>(&argument.value) : argument.value, bytes);
  }
}

void Batch::end_task(unsigned place) {
  content_.push_back(0);
  places_.push_back(place);
  open_ = content_.size();
}

Batch::Content Batch::take_open_task() {
  Content kernels(content_.begin() + static_cast<std::ptrdiff_t>(open_), content_.end());
  content_.resize(open_);
  return kernels;
}

void Batch::clear() noexcept {
  content_.clear();
  places_.clear();
  open_ = 0;
}

std::size_t Batch::read(const Content& content, std::size_t at, KernelNode& node, std::vector<void*>& arguments) {
  node.function = reinterpret_cast<Function>(static_cast<std::uintptr_t>(content[at++]));
  if (node.function == nullptr) return at;
  for (unsigned& blocks : node.blocks) blocks = static_cast<unsigned>(content[at++]);
  for (unsigned& threads : node.threads) threads = static_cast<unsigned>(content[at++]);
  node.shared_bytes = static_cast<unsigned>(content[at++]);
  arguments.resize(content[at++]);
  for (void*& argument : arguments) {
    const std::size_t bytes = content[at++];
    argument = const_cast<std::uint64_t*>(&content[at]);  // the driver only reads it
    at += (bytes + 7) / 8;
  }
  node.arguments = arguments.data();
  return at;
}

}  // namespace tandem::runtime::cuda
