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

/// One folder with a file for each codelet (`model::to_text`), and one for the powers of workers, for one machine. Programs that run at the same time share it: a file is replaced
/// as a whole, so readers see an old one or a new one; and writers hold a lock (`.lock`), read what is there, and add what they have learnt. A value;
/// several threads and processes may use one folder.
class ModelFolder {
 public:
  /// Option `model.folder`, else tandem/models/HOST below $XDG_CACHE_HOME or ~/.cache. Errors: not_found (neither is set).
  static base::Result<std::filesystem::path> place(const base::Config& config, const base::Environment& environment);

  /// `machine` says what runs the tasks (`machine_name`); empty: files of any machine are read. Writers wait for each other for at most `patience`.
  ModelFolder(std::filesystem::path folder, std::string machine, std::chrono::milliseconds patience = std::chrono::seconds(5))
      : folder_(std::move(folder)), machine_(std::move(machine)), patience_(patience) {}

  const std::filesystem::path& folder() const noexcept { return folder_; }
  const std::string& machine() const noexcept { return machine_; }
  /// CODELET.toml, with what a file system would not like percent-encoded, and long names cut and numbered.
  std::filesystem::path file_of(std::string_view codelet) const;

  /// Nothing: there is no such file. Errors: io; malformed or unsupported: what stands there is refused (`model::parse_models`).
  base::Result<std::optional<model::CodeletModels>> read(const std::filesystem::path& file) const;

  struct File {
    std::filesystem::path path;
    std::filesystem::file_time_type changed;
    std::uintmax_t bytes = 0;
    base::Result<model::CodeletModels> models;
  };
  /// All files, by name; none if there is no folder. Errors: io.
  base::Result<std::vector<File>> read_all() const;

  /// Adds what each of `learnt` has learnt (its news) to its file. A file that is refused goes aside as FILE.refused, and the answer says so, in one
  /// line for each. Errors: io; then some files may have been written, each as a whole.
  base::Result<std::vector<std::string>> save(std::span<const model::CodeletModels> learnt) const;

  /// The powers that runs have measured, in powers.watts; none: nobody has. Errors: io; malformed or unsupported.
  base::Result<model::PowerTable> read_powers() const;
  /// Adds what a run has measured. A file that is refused goes aside, as with `save`. Errors: io.
  base::Result<std::vector<std::string>> save_powers(const model::PowerTable& measured) const;

  /// Removes refused files, those that writers left unfinished, and with `unused_for` those that have not changed for so long; of `codelet` alone, if it is
  /// set. The answer names the files. Errors: io.
  base::Result<std::vector<std::filesystem::path>> prune(std::optional<std::chrono::seconds> unused_for, std::optional<std::string> codelet = {}) const;

 private:
  base::Result<std::string> put_aside(const std::filesystem::path& file, const std::string& why) const;

  std::filesystem::path folder_;
  std::string machine_;
  std::chrono::milliseconds patience_;
};

/// Where what is measured on machines is kept: tandem below $XDG_CACHE_HOME or ~/.cache. Nothing: neither is set.
std::optional<std::filesystem::path> tandem_cache(const base::Environment& environment);

/// What tells this machine from others for durations: its processor.
std::string machine_name(std::string_view cpu_model);

}  // namespace tandem
