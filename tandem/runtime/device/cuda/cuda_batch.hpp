// tandem/runtime/device/cuda/cuda_batch.hpp: kernels of tasks that follow each other in a stream, launched but not
// posted yet.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tandem/runtime/device/cuda/cuda_driver.hpp"
#include "tandem/runtime/device/cuda/cuda_queue.hpp"

namespace tandem::runtime::cuda {

/// A kernel with its blocks and the values of its arguments, which it copies.
struct KernelLaunch {
  Function function = nullptr;
  std::array<unsigned, 3> blocks{};
  std::array<unsigned, 3> threads{};  ///< of a block
  unsigned shared_bytes = 0;
  std::span<const CudaArgument> arguments;
};

/// Kernels of tasks that follow each other. The content holds all that the kernels depend on: equal content is equal
/// work, task by task, and the key of the graph that does this work. Used by one thread.
class Batch {
 public:
  using Content = std::vector<std::uint64_t>;

  /// Adds a kernel to the open task, the one behind the last ended one.
  void add(const KernelLaunch& launch);
  /// Ends the open task, at `place` of its device.
  void end_task(unsigned place);
  /// Removes and returns the kernels of the open task.
  Content take_open_task();
  void clear() noexcept;

  const Content& content() const noexcept { return content_; }
  /// Places of the ended tasks.
  const std::vector<unsigned>& places() const noexcept { return places_; }

  /// Calls `on_kernel(node)` for each kernel and `on_end()` behind the kernels of each task, in their order. The node's
  /// arguments point to `content`.
  template <class OnKernel, class OnEnd>
  static void visit(const Content& content, const OnKernel& on_kernel, const OnEnd& on_end) {
    std::vector<void*> arguments;
    for (std::size_t at = 0; at < content.size();) {
      KernelNode node;
      at = read(content, at, node, arguments);
      if (node.function == nullptr) on_end();
      else on_kernel(node);
    }
  }

 private:
  /// Reads the kernel at `at` into `node`; `node.function` is null at the end of a task. Returns where the next one is.
  static std::size_t read(const Content& content, std::size_t at, KernelNode& node, std::vector<void*>& arguments);

  Content content_;
  std::size_t open_ = 0;  ///< where the open task begins in `content_`
  std::vector<unsigned> places_;
};

}  // namespace tandem::runtime::cuda
