// tandem/api/opencl_kernel.hpp: an implementation of a codelet in OpenCL C, with the arguments of its tasks.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include "tandem/api/kernel_arguments.hpp"
#include "tandem/runtime/device/opencl/opencl_queue.hpp"

namespace tandem::internal {

/// Implementation that `Codelet::opencl` adds. `GlobalSize`: called with the arguments of the kernel, returns the work
/// items.
template <class GlobalSize>
class OpenClKernel {
 public:
  OpenClKernel(OpenClSource source, GlobalSize size)
      : source_(std::make_shared<const OpenClSource>(std::move(source))), size_(std::move(size)) {}

  /// Posts the kernel of the run `call`, whose arguments `Code` finds.
  template <class Code, std::size_t... i>
  void post(runtime::KernelCall& call, std::index_sequence<i...>) const {
    static_assert(
        Code::kLists == 0,
        "a kernel in OpenCL C takes a fixed number of buffers: name the data one by one, or leave the list to an "
        "implementation in C++");
    const KernelArguments<OpenClArgument, Code, i...> arguments(call);
    static_assert(std::is_convertible_v<decltype(size_(Code::template argument<i>(call)...)), OpenClRange>,
                  "the global size gives a number of work items, or an OpenClRange");
    static_cast<OpenClQueue*>(call.queue)
        ->launch_kept(source_, arguments.all(), size_(Code::template argument<i>(call)...));
  }

 private:
  std::shared_ptr<const OpenClSource> source_;
  GlobalSize size_;
};

}  // namespace tandem::internal
