// tandem/api/misfit.hpp: finds at compile time which argument of a task does not fit its kernel.
#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <vector>

namespace tandem {
struct Context;
template <class Kind>
class Data;
}  // namespace tandem

namespace tandem::internal {

/// The types of a kernel's parameters, as a tuple; void: it is a template, or has several overloads.
template <class Kernel>
struct ParametersOf {
  using type = void;
};
template <class Kernel>
  requires requires { &Kernel::operator(); }
struct ParametersOf<Kernel> : ParametersOf<decltype(&Kernel::operator())> {};
template <class Result, class... Parameters>
struct ParametersOf<Result (*)(Parameters...)> {
  using type = std::tuple<Parameters...>;
};
template <class Result, class... Parameters>
struct ParametersOf<Result (*)(Parameters...) noexcept> : ParametersOf<Result (*)(Parameters...)> {};
template <class Result, class Class, class... Parameters>
struct ParametersOf<Result (Class::*)(Parameters...) const> : ParametersOf<Result (*)(Parameters...)> {};
template <class Result, class Class, class... Parameters>
struct ParametersOf<Result (Class::*)(Parameters...) const noexcept> : ParametersOf<Result (*)(Parameters...)> {};

/// Parameters without a leading `Context`.
template <class Parameters>
struct WithoutContext {
  using type = Parameters;
};
template <class First, class... Others>
  requires std::is_same_v<std::remove_cvref_t<First>, Context>
struct WithoutContext<std::tuple<First, Others...>> {
  using type = std::tuple<Others...>;
};

template <class Argument>
inline constexpr bool is_bare_data = false;
template <class Kind>
inline constexpr bool is_bare_data<Data<Kind>> = true;
template <class Kind, class Allocator>
inline constexpr bool is_bare_data<std::vector<Data<Kind>, Allocator>> = true;

enum class Mistake { unknown, bare_data, too_few, too_many, wrong_type };
/// Kind of the misfit, and the argument, from 1.
struct Misfit {
  Mistake mistake = Mistake::unknown;
  std::size_t argument = 0;
};

template <class Taken, class Given>
inline constexpr std::size_t first_that_does_not_fit = 0;
template <class... Taken, class... Given>
  requires(sizeof...(Taken) == sizeof...(Given))
inline constexpr std::size_t first_that_does_not_fit<std::tuple<Taken...>, std::tuple<Given...>> = [] {
  std::size_t at = 0;
  static_cast<void>((true && ... && (++at, std::is_convertible_v<Given, Taken>)));
  return at;
}();

/// Finds the misfit of arguments that a kernel cannot be called with.
template <class Kernel, class... Given>
constexpr Misfit misfit_of() {
  constexpr std::array<bool, sizeof...(Given) + 1> is_bare{is_bare_data<std::remove_cvref_t<Given>>..., false};
  for (std::size_t i = 0; i < sizeof...(Given); ++i)
    if (is_bare[i]) return {Mistake::bare_data, i + 1};
  using Parameters = typename ParametersOf<Kernel>::type;
  if constexpr (std::is_void_v<Parameters>) {
    return {};
  } else {
    using Taken = typename WithoutContext<Parameters>::type;
    constexpr std::size_t taken = std::tuple_size_v<Taken>;
    if (sizeof...(Given) < taken) return {Mistake::too_few, taken};
    if (sizeof...(Given) > taken) return {Mistake::too_many, taken};
    return {Mistake::wrong_type, first_that_does_not_fit<Taken, std::tuple<Given...>>};
  }
}

#define TANDEM_BARE_DATA(number)                                                                                 \
  static_assert(misfit.mistake != Mistake::bare_data || misfit.argument != number,                               \
                "argument " #number                                                                              \
                " of the task is data itself: say how the task uses it, with read(x), write(x), read_write(x), " \
                "commute(x), reduce(x) or scratch(x)")
#define TANDEM_WRONG_TYPE(number)                                                                                      \
  static_assert(misfit.mistake != Mistake::wrong_type || misfit.argument != number,                                    \
                "argument " #number                                                                                    \
                " of the task does not fit the kernel's parameter: a value passes as const T&, read(vector) as "       \
                "std::span<const T>, write/read_write/commute/reduce/scratch(vector) as std::span<T>, matrices as "    \
                "MatrixView<const T> "                                                                                 \
                "and MatrixView<T>, arrays as ArrayView<const T, n> and ArrayView<T, n>, scalars as const T& and T&; " \
                "a list of data "                                                                                      \
                "passes as Each of one of these, such as Each<std::span<const T>>")

/// Does not compile, and says why. Arguments count from 1, after the name or codelet and without options.
template <class Kernel, class... Given>
constexpr void refuse_arguments() {
  constexpr Misfit misfit = misfit_of<Kernel, Given...>();
  TANDEM_BARE_DATA(1);
  TANDEM_BARE_DATA(2);
  TANDEM_BARE_DATA(3);
  TANDEM_BARE_DATA(4);
  TANDEM_BARE_DATA(5);
  TANDEM_BARE_DATA(6);
  static_assert(misfit.mistake != Mistake::bare_data || misfit.argument <= 6,
                "an argument of the task behind the 6th is data itself: say how the task uses it, with read(x), "
                "write(x), read_write(x), "
                "commute(x), reduce(x) or scratch(x)");
  TANDEM_WRONG_TYPE(1);
  TANDEM_WRONG_TYPE(2);
  TANDEM_WRONG_TYPE(3);
  TANDEM_WRONG_TYPE(4);
  TANDEM_WRONG_TYPE(5);
  TANDEM_WRONG_TYPE(6);
  static_assert(misfit.mistake != Mistake::wrong_type || misfit.argument <= 6,
                "an argument of the task behind the 6th does not fit the kernel's parameter");
  static_assert(misfit.mistake != Mistake::too_few,
                "the task has fewer arguments than the kernel has parameters (a Context, which comes first, "
                "is not counted): each parameter takes one value, or one access such as read(x)");
  static_assert(misfit.mistake != Mistake::too_many,
                "the task has more arguments than the kernel has parameters (a Context, which comes first, "
                "is not counted): each parameter takes one value, or one access such as read(x)");
  static_assert(misfit.mistake != Mistake::unknown,
                "the arguments of the task do not fit the kernel's parameters: a value passes as const T&, "
                "read(vector) as std::span<const T>, "
                "write/read_write/commute/reduce/scratch(vector) as std::span<T>, matrices as MatrixView<const T> and "
                "MatrixView<T>, arrays as "
                "ArrayView<const T, n> and ArrayView<T, n>, scalars as const T& and T&; a list of data passes as Each "
                "of one of these");
}

#undef TANDEM_BARE_DATA
#undef TANDEM_WRONG_TYPE

}  // namespace tandem::internal
