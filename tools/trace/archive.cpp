// tools/trace/archive.cpp: `tandem trace archive`: a run's folder as one file, a tar archive compressed with zstd.
#include <algorithm>
#include <fstream>
#include <system_error>

#include <archive.h>
#include <archive_entry.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include "tools/trace/command.hpp"

namespace tandem::tools {
namespace {

namespace fs = std::filesystem;

struct ArchiveFree {
  void operator()(::archive* archive) const noexcept { archive_write_free(archive); }
};
struct EntryFree {
  void operator()(archive_entry* entry) const noexcept { archive_entry_free(entry); }
};

/// Files and folders below a folder, in the order of their names; links are not followed and not packed.
base::Result<std::vector<fs::path>> content_of(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const auto type = entry->symlink_status(error).type();
    if (type == fs::file_type::regular || type == fs::file_type::directory) found.push_back(entry->path());
  }
  if (error)
    return base::Error{base::ErrorCode::io, fmt::format("{}: cannot be listed: {}", folder.string(), error.message())};
  std::ranges::sort(found);
  return found;
}

class Packer {
 public:
  explicit Packer(fs::path file) : file_(std::move(file)), archive_(archive_write_new()) {}

  base::Result<void> open() {
    if (archive_ == nullptr || archive_write_add_filter_zstd(archive_.get()) != ARCHIVE_OK ||
        archive_write_set_format_pax_restricted(archive_.get()) != ARCHIVE_OK ||
        archive_write_open_filename(archive_.get(), file_.c_str()) != ARCHIVE_OK)
      return error("cannot be made");
    return {};
  }

  base::Result<void> add(const fs::path& path, const std::string& name) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) return unreadable(path);
    const std::unique_ptr<archive_entry, EntryFree> entry(archive_entry_new());
    archive_entry_copy_stat(entry.get(), &status);
    archive_entry_copy_pathname(entry.get(), name.c_str());
    // The owners of the files on this machine mean nothing on another one.
    archive_entry_set_uid(entry.get(), 0);
    archive_entry_set_gid(entry.get(), 0);
    if (archive_write_header(archive_.get(), entry.get()) != ARCHIVE_OK) return error("cannot be written");
    if (!S_ISREG(status.st_mode)) return {};
    return add_content(path, static_cast<std::uint64_t>(status.st_size));
  }

  base::Result<void> close() {
    if (archive_write_close(archive_.get()) != ARCHIVE_OK) return error("cannot be finished");
    return {};
  }

 private:
  base::Result<void> add_content(const fs::path& path, std::uint64_t bytes) {
    std::ifstream stream(path, std::ios::binary);
    std::vector<char> part(std::size_t{1} << 18);
    while (bytes > 0) {
      stream.read(part.data(), static_cast<std::streamsize>(std::min<std::uint64_t>(part.size(), bytes)));
      const auto got = static_cast<std::uint64_t>(stream.gcount());
      if (got == 0) return unreadable(path);
      if (archive_write_data(archive_.get(), part.data(), got) != static_cast<la_ssize_t>(got))
        return error("cannot be written");
      bytes -= got;
    }
    return {};
  }
  static base::Error unreadable(const fs::path& path) {
    return {base::ErrorCode::io, fmt::format("{}: cannot be read to its end", path.string())};
  }
  base::Error error(const char* what) const {
    const char* reason = archive_ == nullptr ? nullptr : archive_error_string(archive_.get());
    return {base::ErrorCode::io,
            fmt::format("{}: {}: {}", file_.string(), what, reason == nullptr ? "no memory" : reason)};
  }

  fs::path file_;
  std::unique_ptr<::archive, ArchiveFree> archive_;
};

base::Result<void> pack(const fs::path& folder, const std::string& root, const fs::path& file) {
  const auto content = content_of(folder);
  if (!content) return content.error();
  Packer packer(file);
  if (auto opened = packer.open(); !opened) return opened;
  if (auto added = packer.add(folder, root); !added) return added;
  for (const fs::path& path : content.value())
    if (auto added = packer.add(path, root + "/" + path.lexically_relative(folder).string()); !added) return added;
  return packer.close();
}

base::Result<void> archive_run(const fs::path& given, std::string output) {
  std::error_code error;
  const fs::path folder = fs::canonical(given, error);
  if (error) return base::Error{base::ErrorCode::not_found, fmt::format("{}: {}", given.string(), error.message())};
  const std::string root = folder.filename();
  if (output.empty()) output = root + ".tar.zst";
  const std::string unfinished = output + ".new";
  auto packed = pack(folder, root, unfinished);
  if (packed) {
    fs::rename(unfinished, output, error);
    if (error) packed = base::Error{base::ErrorCode::io, fmt::format("{}: {}", output, error.message())};
  }
  if (!packed) {
    fs::remove(unfinished, error);
    return packed;
  }
  fmt::print("{}: {} bytes\n", output, fs::file_size(output, error));
  return {};
}

}  // namespace

void add_trace_archive(Subcommand trace, ToolContext& context) {
  Subcommand command =
      trace.add_subcommand("archive", "Pack a trace into one file, a tar archive compressed with zstd");
  const auto folder = trace_folder(command);
  auto output = std::make_shared<std::string>();
  command.add_option("-o,--output", *output,
                     "The archive (default: the folder's name and .tar.zst, in the current folder)");
  command.callback([folder, output, &context] {
    // A trace that cannot be read now could not be read later either, where it cannot be recovered any more.
    if (open_trace(*folder, context) == nullptr) return;
    if (const auto packed = archive_run(*folder, *output); !packed) fail(context, packed.error());
  });
}

}  // namespace tandem::tools
