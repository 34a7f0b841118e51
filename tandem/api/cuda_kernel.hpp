// tandem/api/cuda_kernel.hpp: implementations of a codelet for CUDA devices: CUDA C++ with the arguments of its tasks,
// and functions that post.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include "tandem/api/kernel_arguments.hpp"
#include "tandem/runtime/device/cuda/cuda_queue.hpp"

namespace tandem::internal {

/// Implementation that `Codelet::cuda` adds for a source. `Range`: called with the arguments of the kernel, returns the
/// threads.
template <class Range>
class CudaKernel {
 public:
  CudaKernel(CudaSource source, Range range)
      : source_(std::make_shared<const CudaSource>(std::move(source))), range_(std::move(range)) {}

  /// Posts the kernel of the run `call`, whose arguments `Code` finds.
  template <class Code, std::size_t... i>
  void post(runtime::KernelCall& call, std::index_sequence<i...>) const {
    static_assert(
        Code::kLists == 0,
        "a kernel in CUDA C++ takes a fixed number of buffers: name the data one by one, or leave the list to an "
        "implementation in C++");
    const KernelArguments<CudaArgument, Code, i...> arguments(call);
    static_assert(std::is_convertible_v<decltype(range_(Code::template argument<i>(call)...)), CudaRange>,
                  "the range gives a number of threads, or a CudaRange");
    static_cast<CudaQueue*>(call.queue)
        ->launch_kept(source_, arguments.all(), range_(Code::template argument<i>(call)...));
  }

 private:
  std::shared_ptr<const CudaSource> source_;
  Range range_;
};

/// Implementation that `Codelet::cuda` adds for a function, which gets the queue before its arguments.
template <class Function>
class CudaFunction {
 public:
  explicit CudaFunction(Function function) : function_(std::move(function)) {}

  /// Calls the function for the run `call`, whose arguments `Code` finds.
  template <class Code, std::size_t... i>
  void post(runtime::KernelCall& call, std::index_sequence<i...>) const {
    static_assert(std::is_invocable_v<const Function&, CudaQueue&, decltype(Code::template argument<i>(call))...>,
                  "the function for CUDA devices takes a tandem::CudaQueue& and then the parameters of the other "
                  "kernels, and is not mutable");
    function_(*static_cast<CudaQueue*>(call.queue), Code::template argument<i>(call)...);
  }

 private:
  Function function_;
};

}  // namespace tandem::internal
