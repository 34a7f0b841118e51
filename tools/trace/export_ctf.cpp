// tools/trace/export_ctf.cpp: exports a trace as CTF, its own format.
#include <system_error>

#include "tandem/trace/layout.hpp"
#include "tools/trace/export.hpp"

namespace tandem::tools {

namespace fs = std::filesystem;

base::Result<void> make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return base::Error{base::ErrorCode::io, folder.string() + ": cannot be made: " + error.message()};
  return {};
}

base::Result<Exported> export_ctf(const fs::path& folder, const fs::path& out) {
  std::error_code error;
  if (fs::exists(out, error) && fs::equivalent(folder, out, error))
    return base::Error{base::ErrorCode::invalid_argument,
                       out.string() + ": is the trace itself, which is CTF as it is"};
  const auto folders = trace::rank_folders(folder);
  if (!folders) return folders.error();
  Exported exported;
  exported.notes.push_back(folder.string() + " itself is CTF 1.8: babeltrace2 and Trace Compass open it as it is");
  for (const fs::path& rank : folders.value()) {
    const fs::path name = rank == folder ? fs::path() : rank.filename();
    if (const auto made = make_folder(out / name); !made) return made.error();
    fs::copy_options how =
        fs::copy_options::recursive | fs::copy_options::overwrite_existing | fs::copy_options::skip_symlinks;
    fs::copy(rank, out / name, how, error);
    if (error) return base::Error{base::ErrorCode::io, out.string() + ": cannot be written: " + error.message()};
    std::uint64_t bytes = 0, streams = 0;
    for (const auto& entry : fs::recursive_directory_iterator(out / name, error)) {
      if (!entry.is_regular_file(error)) continue;
      bytes += entry.file_size(error);
      streams += trace::actor_of_stream(entry.path()).has_value() ? 1 : 0;
    }
    const std::string shown = name.empty() ? "." : name.string();
    exported.tables.push_back({.name = "streams", .file = shown, .rows = streams, .total_ns = 0});
    exported.files.push_back({.file = shown, .bytes = bytes});
  }
  return exported;
}

}  // namespace tandem::tools
