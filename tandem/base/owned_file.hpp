// tandem/base/owned_file.hpp: opens files and folders that another user could have replaced.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/base/result.hpp"

namespace tandem::base {

/// Users whose files a caller accepts. "self" is the effective user of this process.
enum class Owners : std::uint8_t { self, self_or_root, anyone };

bool accepts(Owners owners, uid_t owner) noexcept;

/// An open ordinary file: never a link, a pipe or a device, and of an owner that the caller accepts. A move-only value;
/// reading and writing at positions is thread-safe.
///
/// The checks are made of the open descriptor, so that nobody can exchange the file between the check and its use. Only
/// its owner can shorten it meanwhile: nothing here maps a file, and reading behind its end fails, instead of a signal.
class OwnedFile {
 public:
  /// Opens for reading. Links are followed when the owner of the link is accepted, too. Errors: not_found, malformed
  /// (it is no ordinary file), io (the message says what is wrong, and names owners).
  static Result<OwnedFile> open(const std::filesystem::path& file, Owners owners);

  int descriptor() const noexcept { return descriptor_.get(); }
  const std::filesystem::path& path() const noexcept { return path_; }
  uid_t owner() const noexcept { return owner_; }
  /// Whether its mode lets every user of the system change it.
  bool is_writable_by_all() const noexcept;
  /// The present size; 0 when the system does not say.
  std::uint64_t bytes() const noexcept;
  /// Whether `file`, no link, is this one now: the same file of the same file system.
  bool is_at(const std::filesystem::path& file) const noexcept;

  /// Reads exactly `bytes` bytes. False: the file ends before, or the system refused (errno).
  bool read_at(std::uint64_t at, void* to, std::size_t bytes) const noexcept;
  bool write_at(std::uint64_t at, const void* from, std::size_t bytes) const noexcept;
  /// Cuts the file, or fills it with zeros, to this size. False: errno.
  bool resize(std::uint64_t bytes) const noexcept;
  /// The whole content. Errors: io, malformed (it has more than `most_bytes`).
  Result<std::string> text(std::size_t most_bytes) const;

 private:
  friend class OwnedFolder;
  static Result<OwnedFile> checked(FileDescriptor descriptor, std::filesystem::path path, Owners owners,
                                   bool is_for_writing);

  FileDescriptor descriptor_;
  std::filesystem::path path_;  ///< for messages
  uid_t owner_ = 0;
};

/// An open folder of an accepted owner. All names are looked up in the folder that was checked, even if its path
/// changes meanwhile; names have no slash, and links are never followed. A move-only value; thread-safe.
class OwnedFolder {
 public:
  /// Opens a folder. Links to it are followed: the owner of the folder counts. Errors: not_found, io.
  static Result<OwnedFolder> open(const std::filesystem::path& folder, Owners owners);
  /// A folder within this one, of the same owners or of these. Errors: not_found, io.
  Result<OwnedFolder> folder(const std::string& name) const { return folder(name, owners_); }
  Result<OwnedFolder> folder(const std::string& name, Owners owners) const;
  /// A folder within this one, made when it is missing.
  Result<OwnedFolder> make_folder(const std::string& name) const;

  const std::filesystem::path& path() const noexcept { return path_; }
  uid_t owner() const noexcept { return owner_; }

  /// Opens a file. `flags` are those of open(2): O_RDONLY, O_RDWR | O_CREAT, O_WRONLY | O_CREAT | O_APPEND ... A file
  /// that is written must have no second name (hard link), which could be a file elsewhere. Errors: not_found,
  /// malformed (it is no ordinary file), io.
  Result<OwnedFile> file(const std::string& name, int flags) const { return file(name, flags, owners_); }
  /// Opens a file of these owners.
  Result<OwnedFile> file(const std::string& name, int flags, Owners owners) const;
  /// A new file for reading and writing. An existing one of this name is removed, not written. Errors: io.
  Result<OwnedFile> new_file(const std::string& name) const;
  /// Replaces the content: the file has its old or all of the new one, which is written as `draft_name(name)`, then
  /// renamed. Errors: io.
  Result<void> replace(const std::string& name, std::string_view content) const;
  /// Renames `draft_name(name)` to `name`. Errors: io.
  Result<void> finish(const std::string& name) const;
  /// Removes a file, or a link itself. No effect when it is missing. Errors: io.
  Result<void> remove(const std::string& name) const;
  /// Makes a symbolic link. Errors: io.
  Result<void> make_link(const std::string& name, const std::filesystem::path& target) const;
  /// The target of a symbolic link. Errors: not_found (nothing has this name), malformed (it is no link), io.
  Result<std::filesystem::path> target_of(const std::string& name) const;
  /// Whether anything, also a dangling link, has this name.
  bool has(const std::string& name) const noexcept;
  /// The names in the folder, in no order. Errors: io.
  Result<std::vector<std::string>> names() const;

 private:
  static Result<OwnedFolder> checked(FileDescriptor descriptor, std::filesystem::path path, Owners owners);

  FileDescriptor descriptor_;
  std::filesystem::path path_;  ///< for messages
  Owners owners_ = Owners::self;
  uid_t owner_ = 0;
};

/// The name under which a file is written until it is complete: ".NAME.new". Hidden, since readers of folders (those of
/// CTF among them) leave out hidden files.
std::string draft_name(std::string_view name);

}  // namespace tandem::base
