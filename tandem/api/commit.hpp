// tandem/api/commit.hpp: which sources this library was made from.
#pragma once

namespace tandem {

/// The commit, with "-dirty" when files had changed; "unknown" outside of a git checkout. Traces and the command's reports bear
/// it.
const char* build_commit() noexcept;

}  // namespace tandem
