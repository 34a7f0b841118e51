// tandem/base/sanitizers.hpp: whether this is compiled for a sanitizer, whichever compiler it is.
#pragma once

namespace tandem::base {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool under_address_sanitizer = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool under_address_sanitizer = true;
#else
inline constexpr bool under_address_sanitizer = false;
#endif
#else
inline constexpr bool under_address_sanitizer = false;
#endif

#if defined(__SANITIZE_THREAD__)
inline constexpr bool under_thread_sanitizer = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool under_thread_sanitizer = true;
#else
inline constexpr bool under_thread_sanitizer = false;
#endif
#else
inline constexpr bool under_thread_sanitizer = false;
#endif

/// What keeps memory for its next use would hide from them that somebody uses it after its end.
inline constexpr bool under_sanitizer = under_address_sanitizer || under_thread_sanitizer;

}  // namespace tandem::base
