// tandem/api/model_folder.cpp: reads, adds and replaces files of models, under a lock.
#include "tandem/api/model_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "tandem/base/host.hpp"
#include "tandem/base/owned_file.hpp"
#include "tandem/base/replace_file.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using base::Error;
using base::ErrorCode;

constexpr std::string_view kEnding = ".toml";
constexpr std::string_view kPowers = "powers.watts";
constexpr std::string_view kRefused = ".refused";
constexpr std::size_t kMostBytes = 4U << 20;
constexpr std::size_t kLongestName = 120;

Error io(const fs::path& path, std::string_view what, const std::error_code& error) {
  return {ErrorCode::io, fmt::format("{}: {}: {}", path.string(), what, error.message())};
}

/// Locks a folder until the descriptor is closed. The kernel releases the lock when a writer dies.
///
/// The folder must belong to this user, or to root, who may have made it for several users: another user's could
/// redirect what is written. The lock file may be anybody's.
base::Result<base::OwnedFile> lock(const fs::path& folder, std::chrono::milliseconds patience) {
  const auto opened = base::OwnedFolder::open(folder, base::Owners::self_or_root);
  if (!opened.ok()) return opened.error();
  auto locked = opened.value().file(".lock", O_RDONLY | O_CREAT, base::Owners::anyone);
  if (!locked.ok()) return Error{ErrorCode::io, locked.error().message};
  const fs::path& file = locked.value().path();
  const auto until = std::chrono::steady_clock::now() + patience;
  while (::flock(locked.value().descriptor(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return io(file, "cannot be locked", {errno, std::generic_category()});
    if (std::chrono::steady_clock::now() > until)
      return Error{ErrorCode::io,
                   fmt::format("{}: another program holds this lock for more than {} ms; is one stopped?",
                               file.string(), patience.count())};
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return locked;
}

/// Makes a folder if it does not exist, and locks it.
base::Result<base::OwnedFile> make_and_lock(const fs::path& folder, std::chrono::milliseconds patience) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return io(folder, "cannot be made", error);
  return lock(folder, patience);
}

bool is_model_file(const fs::path& file) {
  const std::string name = file.filename().string();
  return !name.starts_with('.') && name.ends_with(kEnding);
}

/// Text of a file; no value: there is no such file.
base::Result<std::optional<std::string>> text_of(const fs::path& file) {
  const auto opened = base::OwnedFile::open(file, base::Owners::anyone);
  if (!opened.ok() && opened.error().code == ErrorCode::not_found) return std::optional<std::string>();
  auto text = opened.ok() ? opened.value().text(kMostBytes) : base::Result<std::string>(opened.error());
  if (text.ok()) return std::optional(std::move(text).value());
  if (text.error().code != ErrorCode::malformed) return text.error();
  return Error{ErrorCode::malformed, fmt::format("{}: is no file of models", file.string())};
}

bool is_refused(const Error& error) {
  return error.code == ErrorCode::malformed || error.code == ErrorCode::unsupported;
}

}  // namespace

std::optional<fs::path> tandem_cache(const base::Environment& environment) {
  const auto value_of = [&](std::string_view name) {
    const auto at = std::find_if(environment.begin(), environment.end(),
                                 [&](const auto& variable) { return variable.first == name; });
    return at != environment.end() ? fs::path(at->second) : fs::path();
  };
  if (const fs::path cache = value_of("XDG_CACHE_HOME"); cache.is_absolute()) return cache / "tandem";
  if (const fs::path home = value_of("HOME"); home.is_absolute()) return home / ".cache" / "tandem";
  return {};
}

base::Result<fs::path> ModelFolder::place(const base::Config& config, const base::Environment& environment) {
  if (const std::string& chosen = config.get_string("model.folder"); !chosen.empty()) return fs::path(chosen);
  if (const auto cache = tandem_cache(environment))
    return *cache / "models" / model::percent_encoded(base::host_name(), "-_.");
  return Error{ErrorCode::not_found,
               "there is no place for performance models, since HOME is not set; set option model.folder to a folder"};
}

fs::path ModelFolder::file_of(std::string_view codelet) const {
  std::string name = model::percent_encoded(codelet, "-_+.");
  if (name.starts_with('.')) name.replace(0, 1, "%2E");
  if (name.size() > kLongestName)
    name = fmt::format("{}-{:016x}", name.substr(0, kLongestName), std::hash<std::string_view>{}(codelet));
  return folder_ / (name + std::string(kEnding));
}

base::Result<std::optional<model::CodeletModels>> ModelFolder::read(const fs::path& file) const {
  const auto text = text_of(file);
  if (!text.ok()) return text.error();
  if (!text.value()) return std::optional<model::CodeletModels>();
  auto models = model::parse_models(*text.value(), file.string(), machine_);
  if (!models.ok()) return models.error();
  return std::optional(std::move(models).value());
}

base::Result<std::vector<ModelFolder::File>> ModelFolder::read_all() const {
  std::vector<File> files;
  std::error_code error;
  fs::directory_iterator folder(folder_, error);
  if (error == std::errc::no_such_file_or_directory) return files;
  for (; !error && folder != fs::directory_iterator(); folder.increment(error)) {
    if (!is_model_file(folder->path())) continue;
    auto read_models = read(folder->path());
    if (read_models.ok() && !read_models.value()) continue;  // removed meanwhile
    std::error_code unknown;
    files.push_back({.path = folder->path(),
                     .changed = fs::last_write_time(folder->path(), unknown),
                     .bytes = fs::file_size(folder->path(), unknown),
                     .models = read_models.ok() ? base::Result(*std::move(read_models).value()) : read_models.error()});
  }
  if (error) return io(folder_, "cannot be read", error);
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.path < b.path; });
  return files;
}

base::Result<std::vector<std::string>> ModelFolder::save(std::span<const model::CodeletModels> learnt) const {
  std::vector<std::string> notes;
  if (learnt.empty()) return notes;
  const auto held = make_and_lock(folder_, patience_);
  if (!held.ok()) return held.error();
  for (const model::CodeletModels& news : learnt) {
    const fs::path file = file_of(news.codelet);
    auto present = read(file);
    model::CodeletModels sum{.codelet = news.codelet, .kinds = {}};
    if (!present.ok()) {
      if (!is_refused(present.error())) return present.error();
      auto note = put_aside(file, present.error().message);
      if (!note.ok()) return note.error();
      notes.push_back(std::move(note).value());
    } else if (present.value()) {
      sum = *std::move(present).value();
    }
    sum.add_news_of(news);
    if (const auto written = base::replace_file(file, model::to_text(sum, machine_)); !written.ok())
      return written.error();
  }
  return notes;
}

/// Moves a refused file aside. The answer says so.
base::Result<std::string> ModelFolder::put_aside(const fs::path& file, const std::string& why) const {
  const fs::path aside = file.string() + std::string(kRefused);
  std::error_code error;
  fs::rename(file, aside, error);
  if (error) return io(file, "cannot be put aside", error);
  return fmt::format("{} (put aside as {})", why, aside.filename().string());
}

base::Result<model::PowerTable> ModelFolder::read_powers() const {
  const fs::path file = folder_ / kPowers;
  const auto text = text_of(file);
  if (!text.ok()) return text.error();
  if (!text.value()) return model::PowerTable();
  return model::parse_powers(*text.value(), file.string(), machine_);
}

base::Result<std::vector<std::string>> ModelFolder::save_powers(const model::PowerTable& measured) const {
  std::vector<std::string> notes;
  if (measured.is_empty()) return notes;
  const auto held = make_and_lock(folder_, patience_);
  if (!held.ok()) return held.error();
  const fs::path file = folder_ / kPowers;
  auto present = read_powers();
  model::PowerTable sum;
  if (present.ok()) {
    sum = std::move(present).value();
  } else {
    if (!is_refused(present.error())) return present.error();
    auto note = put_aside(file, present.error().message);
    if (!note.ok()) return note.error();
    notes.push_back(std::move(note).value());
  }
  sum.add(measured);
  if (const auto written = base::replace_file(file, model::to_text(sum, machine_)); !written.ok())
    return written.error();
  return notes;
}

base::Result<std::vector<fs::path>> ModelFolder::prune(std::optional<std::chrono::seconds> unused_for,
                                                       std::optional<std::string> codelet) const {
  std::vector<fs::path> removed;
  std::error_code error;
  if (!fs::exists(folder_, error)) return removed;
  const auto held = lock(folder_, patience_);
  if (!held.ok()) return held.error();
  const auto now = fs::file_time_type::clock::now();
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, error)) {
    const fs::path& file = entry.path();
    const std::string name = file.filename().string();
    const std::string ending(kEnding);
    bool goes = false;
    if (codelet) {
      goes = file == file_of(*codelet);
    } else if (name.ends_with(ending + std::string(kRefused)) || name == std::string(kPowers) + std::string(kRefused) ||
               (name.starts_with('.') && name.ends_with(ending + ".new"))) {
      goes = true;
    } else if (is_model_file(file)) {
      const auto models = read(file);
      goes = (!models.ok() && is_refused(models.error())) ||
             (unused_for && entry.last_write_time(error) + *unused_for < now);
    }
    if (!goes) continue;
    fs::remove(file, error);
    if (error) return io(file, "cannot be removed", error);
    removed.push_back(file);
  }
  if (error) return io(folder_, "cannot be read", error);
  std::sort(removed.begin(), removed.end());
  return removed;
}

std::string machine_name(std::string_view cpu_model) {
  return std::string(cpu_model.empty() ? std::string_view("unknown processor") : cpu_model);
}

}  // namespace tandem
