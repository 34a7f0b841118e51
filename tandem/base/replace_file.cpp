// tandem/base/replace_file.cpp: writes beside a file, then renames.
#include "tandem/base/replace_file.hpp"

#include "tandem/base/owned_file.hpp"

namespace tandem::base {

std::filesystem::path unfinished(const std::filesystem::path& file) {
  return file.parent_path() / draft_name(file.filename().string());
}

Result<void> replace_file(const std::filesystem::path& file, std::string_view content) {
  const std::string name = file.filename().string();
  if (name.empty() || name == "." || name == "..")
    return Error{ErrorCode::io, file.string() + ": is no name of a file"};
  const auto folder = OwnedFolder::open(file.parent_path(), Owners::anyone);
  if (!folder) return Error{ErrorCode::io, file.string() + ": cannot be written: " + folder.error().message};
  return folder.value().replace(name, content);
}

}  // namespace tandem::base
