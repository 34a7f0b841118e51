// tandem/api/opencl_kernel.hpp: an implementation of a codelet in OpenCL C, with the arguments of its tasks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tandem/api/codelet.hpp"
#include "tandem/runtime/device/opencl/opencl_queue.hpp"

namespace tandem::internal {

template <class Kind>
inline constexpr unsigned dimensions = 0;
template <class T>
inline constexpr unsigned dimensions<Vector<T>> = 1;
template <class T>
inline constexpr unsigned dimensions<Matrix<T>> = 2;

/// What `Codelet::opencl` adds. `GlobalSize`: called with the arguments of the kernel, gives the work items.
template <class GlobalSize>
class OpenClKernel {
 public:
  OpenClKernel(OpenClSource source, GlobalSize size) : source_(std::move(source)), size_(std::move(size)) {}

  /// Posts the kernel of the run `call`, whose arguments `Code` finds.
  template <class Code, std::size_t... i>
  void post(runtime::KernelCall& call, std::index_sequence<i...>) const {
    List list;
    (list.template add<Code, i>(call), ...);
    static_assert(std::is_convertible_v<decltype(size_(Code::template argument<i>(call)...)), OpenClRange>,
                  "the global size gives a number of work items, or an OpenClRange");
    static_cast<OpenClQueue*>(call.queue)->launch(source_, {list.arguments.data(), list.count}, size_(Code::template argument<i>(call)...));
  }

 private:
  /// The arguments of the OpenCL kernel: one for a value or a scalar, two for a vector, four for a matrix.
  struct List {
    std::array<OpenClArgument, 64> arguments;
    std::array<std::uint64_t, 64> numbers;
    std::size_t count = 0;

    void add_number(std::uint64_t number) {
      numbers[count] = number;
      arguments[count] = {&numbers[count], sizeof(number)};
      ++count;
    }
    template <class Code, std::size_t i>
    void add(runtime::KernelCall& call) {
      if constexpr (Code::template is_access_at<i>) {
        constexpr unsigned access = Code::kPositions[i];
        using Kind = typename Code::template ArgumentAt<i>::Kind;
        static_assert(!is_object<Kind>, "objects stay in main memory");
        const runtime::Replica replica = call.memory(access);
        arguments[count++] = {replica.pointer, 0};
        if constexpr (dimensions<Kind> == 1) add_number(call.shape(access).rows);
        if constexpr (dimensions<Kind> == 2) {
          add_number(call.shape(access).rows);
          add_number(call.shape(access).cols);
          add_number(replica.ld);
        }
      } else {
        const auto& value = Code::template argument<i>(call);
        static_assert(std::is_trivially_copyable_v<std::remove_cvref_t<decltype(value)>>, "a value for an OpenCL kernel is copied as bytes");
        arguments[count++] = {&value, sizeof(value)};
      }
    }
  };

  OpenClSource source_;
  GlobalSize size_;
};

}  // namespace tandem::internal
