// tandem/api/kernel_arguments.hpp: the arguments of a task as a kernel in another language gets them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tandem/api/codelet.hpp"

namespace tandem::internal {

template <class Kind>
inline constexpr unsigned dimensions = 0;
template <class T>
inline constexpr unsigned dimensions<Vector<T>> = 1;
template <class T>
inline constexpr unsigned dimensions<Matrix<T>> = 2;

/// One for a value or a scalar, two for a vector, four for a matrix. `Argument` has `value` and `bytes`, which is 0 for memory of the device.
template <class Argument>
struct KernelArguments {
  std::array<Argument, 64> arguments;
  std::array<std::uint64_t, 64> numbers;
  std::size_t count = 0;

  void add_number(std::uint64_t number) {
    numbers[count] = number;
    arguments[count] = {&numbers[count], sizeof(number)};
    ++count;
  }
  /// Argument i of the run `call`, which `Code` finds.
  template <class Code, std::size_t i>
  void add(runtime::KernelCall& call) {
    if constexpr (Code::template is_access_at<i>) {
      constexpr unsigned access = Code::kPositions[i];
      using Kind = typename Code::template ArgumentAt<i>::Kind;
      static_assert(!is_object<Kind>, "objects stay in main memory");
      const runtime::Replica replica = call.memory(access);
      arguments[count++] = {replica.pointer, 0};
      if constexpr (is_array<Kind>)
        for (const std::size_t extent : call.task.accesses()[access].handle()->layout->extents()) add_number(extent);
      if constexpr (dimensions<Kind> == 1) add_number(call.shape(access).rows);
      if constexpr (dimensions<Kind> == 2) {
        add_number(call.shape(access).rows);
        add_number(call.shape(access).cols);
        add_number(replica.ld);
      }
    } else {
      const auto& value = Code::template argument<i>(call);
      static_assert(std::is_trivially_copyable_v<std::remove_cvref_t<decltype(value)>>, "a value for a kernel of a device is copied as bytes");
      arguments[count++] = {&value, sizeof(value)};
    }
  }
};

}  // namespace tandem::internal
