// tandem/api/model_folder.hpp: the files of a machine's performance models.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/base/config.hpp"
#include "tandem/base/result.hpp"
#include "tandem/model/energy/power_table.hpp"
#include "tandem/model/tasks/codelet_models.hpp"

namespace tandem {

/// One folder with a file for each codelet (`model::to_text`), and one for the powers of workers, for one machine.
/// Concurrent programs share it: a file is replaced as a whole, so readers see an old one or a new one; writers hold a
/// lock (`.lock`), read the file, and add what they have learnt. A value; several threads and processes may use one
/// folder.
class ModelFolder {
 public:
  /// Path by option `model.folder`, else tandem/models/HOST below $XDG_CACHE_HOME or ~/.cache. Errors: not_found
  /// (neither is set).
  static base::Result<std::filesystem::path> place(const base::Config& config, const base::Environment& environment);

  /// `machine` names the processor that runs the tasks (`machine_name`); empty: files of any machine are read. Writers
  /// wait for each other for at most `patience`.
  ModelFolder(std::filesystem::path folder, std::string machine,
              std::chrono::milliseconds patience = std::chrono::seconds(5))
      : folder_(std::move(folder)), machine_(std::move(machine)), patience_(patience) {}

  const std::filesystem::path& folder() const noexcept { return folder_; }
  const std::string& machine() const noexcept { return machine_; }
  /// Path CODELET.toml, with unsuitable characters percent-encoded, and long names cut and numbered.
  std::filesystem::path file_of(std::string_view codelet) const;

  /// Reads a file; no value: there is none. Errors: io; malformed or unsupported: its content is refused
  /// (`model::parse_models`).
  base::Result<std::optional<model::CodeletModels>> read(const std::filesystem::path& file) const;

  struct File {
    std::filesystem::path path;
    std::filesystem::file_time_type changed;
    std::uintmax_t bytes = 0;
    base::Result<model::CodeletModels> models;
  };
  /// Reads all files, by name; none if there is no folder. Errors: io.
  base::Result<std::vector<File>> read_all() const;

  /// Adds the news of each of `learnt` to its file. A refused file is renamed to FILE.refused, and the answer says so,
  /// in one line for each. Errors: io; then some files may have been written, each as a whole.
  base::Result<std::vector<std::string>> save(std::span<const model::CodeletModels> learnt) const;

  /// Powers that runs have measured, from powers.watts; none: there is no such file. Errors: io; malformed or
  /// unsupported.
  base::Result<model::PowerTable> read_powers() const;
  /// Adds powers that a run has measured. A refused file is renamed, as with `save`. Errors: io.
  base::Result<std::vector<std::string>> save_powers(const model::PowerTable& measured) const;

  /// Removes refused files, those that writers left unfinished, and with `unused_for` those unchanged for so long; only
  /// those of `codelet`, if it is set. The answer names the files. Errors: io.
  base::Result<std::vector<std::filesystem::path>> prune(std::optional<std::chrono::seconds> unused_for,
                                                         std::optional<std::string> codelet = {}) const;

 private:
  base::Result<std::string> put_aside(const std::filesystem::path& file, const std::string& why) const;

  std::filesystem::path folder_;
  std::string machine_;
  std::chrono::milliseconds patience_;
};

/// Folder for measurements of machines: tandem below $XDG_CACHE_HOME or ~/.cache. No value: neither is set.
std::optional<std::filesystem::path> tandem_cache(const base::Environment& environment);

/// Name of a kind of machines with equal durations: its processor.
std::string machine_name(std::string_view cpu_model);

}  // namespace tandem
