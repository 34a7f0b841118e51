// tandem/api/kernel_arguments.hpp: the arguments of a task for a kernel in another language.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tandem/api/codelet.hpp"
#include "tandem/base/assert.hpp"

namespace tandem::internal {

template <class Kind>
inline constexpr unsigned dimensions = 0;
template <class T>
inline constexpr unsigned dimensions<Vector<T>> = 1;
template <class T>
inline constexpr unsigned dimensions<Matrix<T>> = 2;

/// Number of kernel arguments for one argument of a task: its pointer, and the numbers that `KernelArguments::add` puts
/// behind it.
template <class Argument>
inline constexpr std::size_t kernel_arguments_of = 1;  // a value
template <AccessMode mode, class Kind>
inline constexpr std::size_t kernel_arguments_of<Access<mode, Kind>> = dimensions<Kind> == 0   ? 1
                                                                       : dimensions<Kind> == 1 ? 2
                                                                                               : 4;
template <AccessMode mode, class T, std::size_t n>
inline constexpr std::size_t kernel_arguments_of<Access<mode, Array<T, n>>> = 1 + n;

/// The arguments of a kernel for a task whose arguments `Code` finds, all `sizeof...(i)` of them: one for a value or a
/// scalar, two for a vector, four for a matrix. `Argument` has `value` and `bytes`, which is 0 for memory of the
/// device.
template <class Argument, class Code, std::size_t... i>
class KernelArguments {
 public:
  explicit KernelArguments(runtime::KernelCall& call) {
    (add<i>(call), ...);
    TANDEM_ASSERT(count_ == kCount);
  }
  KernelArguments(const KernelArguments&) = delete;
  KernelArguments& operator=(const KernelArguments&) = delete;

  /// The arguments; they point into this object and into the task.
  std::span<const Argument> all() const noexcept { return {arguments_.data(), kCount}; }

 private:
  static constexpr std::size_t kCount =
      (std::size_t{0} + ... + kernel_arguments_of<typename Code::template ArgumentAt<i>>);

  void add_argument(const Argument& argument) {
    TANDEM_ASSERT(count_ < kCount);
    arguments_[count_++] = argument;
  }
  void add_number(std::uint64_t number) {
    TANDEM_ASSERT(count_ < kCount);
    numbers_[count_] = number;
    add_argument({&numbers_[count_], sizeof(number)});
  }
  /// Argument `at` of the running task.
  template <std::size_t at>
  void add(runtime::KernelCall& call) {
    if constexpr (Code::template is_access_at<at>) {
      constexpr unsigned access = Code::kPositions[at];
      using Kind = typename Code::template ArgumentAt<at>::Kind;
      static_assert(!is_object<Kind>, "objects stay in main memory");
      const runtime::Replica replica = call.memory(access);
      add_argument({replica.pointer, 0});
      if constexpr (is_array<Kind>)
        for (const std::size_t extent : call.task.accesses()[access].handle()->layout->extents()) add_number(extent);
      if constexpr (dimensions<Kind> == 1) add_number(call.shape(access).rows);
      if constexpr (dimensions<Kind> == 2) {
        add_number(call.shape(access).rows);
        add_number(call.shape(access).cols);
        add_number(replica.ld);
      }
    } else {
      const auto& value = Code::template argument<at>(call);
      static_assert(std::is_trivially_copyable_v<std::remove_cvref_t<decltype(value)>>,
                    "a value for a kernel of a device is copied as bytes");
      add_argument({&value, sizeof(value)});
    }
  }

  std::array<Argument, kCount + 1> arguments_{};  // also for a kernel without arguments
  std::array<std::uint64_t, kCount + 1> numbers_{};
  std::size_t count_ = 0;
};

}  // namespace tandem::internal
