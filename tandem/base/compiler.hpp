// tandem/base/compiler.hpp: reports unsupported compilers before other errors do.
#pragma once

#if __cplusplus < 202002L
#error "Tandem needs C++20: compile with -std=c++20"
#endif
#if defined(__clang__) && __clang_major__ < 16 || !defined(__clang__) && defined(__GNUC__) && __GNUC__ < 12
#error "Tandem needs GCC 12 or Clang 16, or newer"
#endif
