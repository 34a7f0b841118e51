// tandem/base/assert.hpp: assertions in three tiers. They state what only a bug of ours could break.
#pragma once

namespace tandem::base {

/// Prints where and what to standard error and aborts. Never returns.
[[noreturn]] void assertion_failed(const char* file, int line, const char* what) noexcept;

/// Whether the program was started with TANDEM_AUDIT=1 in its environment, as `make audit` does.
extern const bool audits;

}  // namespace tandem::base

/// Always checked: cheap, and going on would corrupt the user's results.
#define TANDEM_ASSERT(condition)                     \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? void(0)                                     \
       : ::tandem::base::assertion_failed(__FILE__, __LINE__, #condition))

/// Checked unless NDEBUG: on hot paths.
#ifdef NDEBUG
#define TANDEM_DEBUG_ASSERT(condition) void(sizeof(static_cast<bool>(condition)))
#else
#define TANDEM_DEBUG_ASSERT(condition) TANDEM_ASSERT(condition)
#endif

/// Checked if `audits`: invariants of whole structures, which take long. Not on hot paths.
#define TANDEM_AUDIT_ASSERT(condition) \
  (__builtin_expect(::tandem::base::audits, 0) ? TANDEM_ASSERT(condition) : void(0))
