// tandem/base/replace_file.hpp: files that exist with all their content or not at all.
#pragma once

#include <filesystem>
#include <string_view>

#include "tandem/base/result.hpp"

namespace tandem::base {

/// The path under which `file` is written until it is complete: `draft_name` in its folder.
std::filesystem::path unfinished(const std::filesystem::path& file);

/// Writes `content` to `unfinished(file)`, then renames that to `file`, which replaces a file of that name. Readers see
/// the old content or the new one, never a part. A link of either name is replaced, never written through
/// (owned_file.hpp). Errors: io; then `file` is unchanged. One writer per file at a time.
Result<void> replace_file(const std::filesystem::path& file, std::string_view content);

}  // namespace tandem::base
