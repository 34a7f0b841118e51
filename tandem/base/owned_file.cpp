// tandem/base/owned_file.cpp: openat with O_NOFOLLOW, then fstat of what was opened.
#include "tandem/base/owned_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "tandem/base/assert.hpp"

namespace tandem::base {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kMostAttempts = 8;          ///< to make a file while others make files of its name
constexpr std::size_t kLongestTarget = 4096;   ///< of a link

Error refused(const fs::path& path, std::string_view what) {
  const int reason = errno;
  const ErrorCode code = reason == ENOENT || reason == ENOTDIR ? ErrorCode::not_found : ErrorCode::io;
  const char* const why = reason == ELOOP ? "it is a symbolic link" : std::strerror(reason);
  return {code, fmt::format("{}: {}: {}", path.string(), what, why)};
}

Error foreign(const fs::path& path, uid_t owner) {
  constexpr std::string_view text =
      "{}: belongs to user {}, and this program runs for user {}: it is neither read nor changed";
  return {ErrorCode::io, fmt::format(text, path.string(), owner, ::geteuid())};
}

/// Flags of every open; O_NONBLOCK: opening a pipe must not wait for its other end.
constexpr int kAlways = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

void check_name(const std::string& name) {
  TANDEM_ASSERT(!name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos);
}

}  // namespace

bool accepts(Owners owners, uid_t owner) noexcept {
  return owners == Owners::anyone || owner == ::geteuid() || (owners == Owners::self_or_root && owner == 0);
}

std::string draft_name(std::string_view name) { return fmt::format(".{}.new", name); }

// --- a file

Result<OwnedFile> OwnedFile::checked(FileDescriptor descriptor, fs::path path, Owners owners, bool is_for_writing) {
  struct stat status {};
  if (!descriptor) return refused(path, is_for_writing ? "cannot be opened for writing" : "cannot be opened");
  if (::fstat(descriptor.get(), &status) != 0) return refused(path, "cannot be examined");
  if (!S_ISREG(status.st_mode)) return Error{ErrorCode::malformed, path.string() + ": is no ordinary file"};
  if (!accepts(owners, status.st_uid)) return foreign(path, status.st_uid);
  if (is_for_writing && status.st_nlink > 1)
    return Error{ErrorCode::io, path.string() + ": has a second name elsewhere (a hard link): it is not written"};
  OwnedFile file;
  file.descriptor_ = std::move(descriptor);
  file.path_ = std::move(path);
  file.owner_ = status.st_uid;
  return file;
}

Result<OwnedFile> OwnedFile::open(const fs::path& file, Owners owners) {
  struct stat link {};
  if (::lstat(file.c_str(), &link) != 0) return refused(file, "cannot be opened");
  if (S_ISLNK(link.st_mode) && !accepts(owners, link.st_uid)) return foreign(file, link.st_uid);
  const int follows = S_ISLNK(link.st_mode) ? kAlways & ~O_NOFOLLOW : kAlways;
  return checked(FileDescriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC | follows)), file, owners, false);
}

std::uint64_t OwnedFile::bytes() const noexcept {
  struct stat status {};
  return ::fstat(descriptor_.get(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

bool OwnedFile::is_writable_by_all() const noexcept {
  struct stat status {};
  return ::fstat(descriptor_.get(), &status) == 0 && (status.st_mode & S_IWOTH) != 0;
}

bool OwnedFile::is_at(const fs::path& file) const noexcept {
  struct stat ours {}, there {};
  return ::fstat(descriptor_.get(), &ours) == 0 && ::lstat(file.c_str(), &there) == 0 && ours.st_dev == there.st_dev &&
         ours.st_ino == there.st_ino;
}

bool OwnedFile::read_at(std::uint64_t at, void* to, std::size_t bytes) const noexcept {
  auto* next = static_cast<std::byte*>(to);
  while (bytes > 0) {
    const ssize_t got = ::pread(descriptor_.get(), next, bytes, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) errno = ENODATA;
    if (got <= 0) return false;
    next += got, at += static_cast<std::uint64_t>(got), bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

bool OwnedFile::write_at(std::uint64_t at, const void* from, std::size_t bytes) const noexcept {
  const auto* next = static_cast<const std::byte*>(from);
  while (bytes > 0) {
    const ssize_t put = ::pwrite(descriptor_.get(), next, bytes, static_cast<off_t>(at));
    if (put < 0 && errno == EINTR) continue;
    if (put == 0) errno = EIO;
    if (put <= 0) return false;
    next += put, at += static_cast<std::uint64_t>(put), bytes -= static_cast<std::size_t>(put);
  }
  return true;
}

bool OwnedFile::resize(std::uint64_t bytes) const noexcept {
  return ::ftruncate(descriptor_.get(), static_cast<off_t>(bytes)) == 0;
}

Result<std::string> OwnedFile::text(std::size_t most_bytes) const {
  // The size may change while the file is read: reads continue to its end, but not beyond `most_bytes`.
  std::string text;
  std::size_t wanted = static_cast<std::size_t>(std::min<std::uint64_t>(bytes(), most_bytes)) + 1;
  for (;;) {
    const std::size_t had = text.size();
    text.resize(std::min(wanted, most_bytes + 1));
    const ssize_t got = ::pread(descriptor_.get(), text.data() + had, text.size() - had, static_cast<off_t>(had));
    if (got < 0 && errno != EINTR) return refused(path_, "cannot be read");
    text.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (text.size() > most_bytes)
      return Error{ErrorCode::malformed, fmt::format("{}: has more than {} bytes", path_.string(), most_bytes)};
    if (got == 0) return text;
    if (text.size() == wanted) wanted *= 2;
  }
}

// --- a folder

Result<OwnedFolder> OwnedFolder::checked(FileDescriptor descriptor, fs::path path, Owners owners) {
  struct stat status {};
  if (!descriptor) return refused(path, "cannot be opened as a folder");
  if (::fstat(descriptor.get(), &status) != 0) return refused(path, "cannot be examined");
  if (!accepts(owners, status.st_uid)) return foreign(path, status.st_uid);
  OwnedFolder folder;
  folder.descriptor_ = std::move(descriptor);
  folder.path_ = std::move(path);
  folder.owners_ = owners;
  folder.owner_ = status.st_uid;
  return folder;
}

Result<OwnedFolder> OwnedFolder::open(const fs::path& folder, Owners owners) {
  const char* const path = folder.empty() ? "." : folder.c_str();
  return checked(FileDescriptor(::open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)), folder, owners);
}

Result<OwnedFolder> OwnedFolder::folder(const std::string& name, Owners owners) const {
  check_name(name);
  constexpr int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  return checked(FileDescriptor(::openat(descriptor_.get(), name.c_str(), flags)), path_ / name, owners);
}

Result<OwnedFolder> OwnedFolder::make_folder(const std::string& name) const {
  check_name(name);
  if (::mkdirat(descriptor_.get(), name.c_str(), 0777) != 0 && errno != EEXIST)
    return refused(path_ / name, "cannot be made");
  return folder(name);
}

Result<OwnedFile> OwnedFolder::file(const std::string& name, int flags, Owners owners) const {
  check_name(name);
  // O_TRUNC would act before the check.
  TANDEM_ASSERT((flags & O_TRUNC) == 0);
  const bool is_for_writing = (flags & O_ACCMODE) != O_RDONLY;
  FileDescriptor opened(::openat(descriptor_.get(), name.c_str(), flags | kAlways, 0644));
  return OwnedFile::checked(std::move(opened), path_ / name, owners, is_for_writing);
}

Result<OwnedFile> OwnedFolder::new_file(const std::string& name) const {
  check_name(name);
  for (unsigned attempt = 0; attempt < kMostAttempts; ++attempt) {
    FileDescriptor made(
        ::openat(descriptor_.get(), name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | kAlways, 0666));
    // The owner is not checked: on some file systems (NFS with root_squash) a new file's owner differs from the
    // process's.
    if (made || errno != EEXIST) return OwnedFile::checked(std::move(made), path_ / name, Owners::anyone, true);
    if (::unlinkat(descriptor_.get(), name.c_str(), 0) != 0 && errno != ENOENT) break;
  }
  return refused(path_ / name, "is there, and cannot be removed");
}

Result<void> OwnedFolder::replace(const std::string& name, std::string_view content) const {
  const std::string draft = draft_name(name);
  const auto made = new_file(draft);
  if (!made) return Error{ErrorCode::io, made.error().message};
  if (!made.value().write_at(0, content.data(), content.size())) {
    const Error error = refused(path_ / draft, "cannot be written");
    ::unlinkat(descriptor_.get(), draft.c_str(), 0);
    return error;
  }
  return finish(name);
}

Result<void> OwnedFolder::finish(const std::string& name) const {
  check_name(name);
  if (::renameat(descriptor_.get(), draft_name(name).c_str(), descriptor_.get(), name.c_str()) == 0) return {};
  return Error{ErrorCode::io, fmt::format("{}: cannot be replaced: {}", (path_ / name).string(), std::strerror(errno))};
}

Result<void> OwnedFolder::remove(const std::string& name) const {
  check_name(name);
  if (::unlinkat(descriptor_.get(), name.c_str(), 0) == 0 || errno == ENOENT) return {};
  return refused(path_ / name, "cannot be removed");
}

Result<void> OwnedFolder::make_link(const std::string& name, const fs::path& target) const {
  check_name(name);
  if (::symlinkat(target.c_str(), descriptor_.get(), name.c_str()) == 0) return {};
  return refused(path_ / name, "cannot be made");
}

Result<fs::path> OwnedFolder::target_of(const std::string& name) const {
  check_name(name);
  std::string target(kLongestTarget, '\0');
  const ssize_t bytes = ::readlinkat(descriptor_.get(), name.c_str(), target.data(), target.size());
  if (bytes < 0 && errno == EINVAL)
    return Error{ErrorCode::malformed, (path_ / name).string() + ": is no symbolic link"};
  if (bytes < 0) return refused(path_ / name, "cannot be read");
  target.resize(static_cast<std::size_t>(bytes));
  return fs::path(target);
}

bool OwnedFolder::has(const std::string& name) const noexcept {
  struct stat status {};
  return ::fstatat(descriptor_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<std::vector<std::string>> OwnedFolder::names() const {
  const auto close = [](DIR* folder) { ::closedir(folder); };
  const int readable = ::openat(descriptor_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, decltype(close)> folder(readable >= 0 ? ::fdopendir(readable) : nullptr, close);
  if (folder == nullptr) {
    const Error error = refused(path_, "cannot be listed");
    if (readable >= 0) ::close(readable);
    return error;
  }
  std::vector<std::string> names;
  for (errno = 0; const dirent* entry = ::readdir(folder.get()); errno = 0)
    if (const std::string_view name = entry->d_name; name != "." && name != "..") names.emplace_back(name);
  if (errno != 0) return refused(path_, "cannot be listed");
  return names;
}

}  // namespace tandem::base
