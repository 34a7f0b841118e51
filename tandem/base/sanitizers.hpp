// tandem/base/sanitizers.hpp: whether this is compiled for a sanitizer, by any compiler.
#pragma once

#if defined(__has_feature)
#define TANDEM_HAS_FEATURE(feature) __has_feature(feature)
#else
#define TANDEM_HAS_FEATURE(feature) 0
#endif

namespace tandem::base {

#if defined(__SANITIZE_ADDRESS__) || TANDEM_HAS_FEATURE(address_sanitizer)
inline constexpr bool under_address_sanitizer = true;
#else
inline constexpr bool under_address_sanitizer = false;
#endif

#if defined(__SANITIZE_THREAD__) || TANDEM_HAS_FEATURE(thread_sanitizer)
inline constexpr bool under_thread_sanitizer = true;
#else
inline constexpr bool under_thread_sanitizer = false;
#endif

/// Caches of memory would hide uses after the end from sanitizers.
inline constexpr bool under_sanitizer = under_address_sanitizer || under_thread_sanitizer;

}  // namespace tandem::base

#undef TANDEM_HAS_FEATURE
