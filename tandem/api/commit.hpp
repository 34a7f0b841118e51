// tandem/api/commit.hpp: the commit of the sources of this library.
#pragma once

namespace tandem {

/// The commit, with "-dirty" when files had changed; "unknown" outside of a git checkout. Traces and the command's
/// reports contain it.
const char* build_commit() noexcept;

}  // namespace tandem
