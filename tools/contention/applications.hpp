// tools/contention/applications.hpp: measurements of applications on the task runtime (thesis, section 5.5): plan,
// lines of applications.csv, summary. Pure.
//
// applications.csv has a header line and these columns; a cell is empty where it is not known:
//
//   application       cg or gemm
//   workers           of each of the two ranks
//   repetition        from 0
//   seconds           of the application on both ranks, without generating its matrices
//   gflop_s           of both ranks
//   iterations_per_s  of cg
//   messages          of data that both ranks sent
//   message_bytes     in them
//   send_mb_s         of the messages as their senders see them, in 10^6 bytes per second: the mean of both ranks; empty where all leave at once
//   delivered_mb_s    of the messages until they have arrived, likewise
//   stalled           share of the kernels' processor cycles that waited, for memory above all: the mean of both ranks
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "tandem/base/result.hpp"
#include "tools/contention/csv.hpp"
#include "tools/contention/summary.hpp"
#include "tools/json/json.hpp"

namespace tandem::tools::contention {

inline constexpr const char* applications_file = "applications.csv";

/// A line of applications.csv.
struct ApplicationRun {
  std::string application = {};
  unsigned workers = 1;
  unsigned repetition = 0;
  double seconds = 0, gflop_s = 0;
  std::optional<double> iterations_per_s = {};
  std::uint64_t messages = 0, message_bytes = 0;
  std::optional<double> send_mb_s = {}, delivered_mb_s = {}, stalled = {};

  auto key() const { return std::tuple(application, workers, repetition); }
};

/// Errors of reading: malformed, with the number of the line.
extern const RowFormat<ApplicationRun> application_format;
/// The runs of a campaign's folder; none where it has no applications.csv. Errors: malformed.
base::Result<std::vector<ApplicationRun>> read_applications(const std::string& folder);

/// The runs to make: one set of matrices with each number of workers (strong scaling), so that messages do not change.
struct ApplicationOptions {
  std::vector<std::string> applications = {};  ///< empty: none
  std::vector<unsigned> workers = {};          ///< of each rank; empty: 1, 2, 4, ..., and as many as cores
  std::size_t gemm_order = 4096, cg_order = 8192, tile = 256, cg_iterations = 40;

  std::size_t order(std::string_view application) const { return application == "gemm" ? gemm_order : cg_order; }
};

/// Whether the options make sense for a process that may use `cores` cores. Errors: invalid_argument, which names the
/// option.
base::Result<void> check(const ApplicationOptions& options, unsigned cores);

/// Numbers of workers for a rank of `cores` cores: those asked for, or else powers of two and all cores; ascending,
/// each once.
std::vector<unsigned> worker_counts(const ApplicationOptions& options, unsigned cores);

/// All runs, without values: one repetition after the other, so that changes over time affect all.
std::vector<ApplicationRun> plan_applications(const ApplicationOptions& options, const std::vector<unsigned>& workers,
                                              unsigned repetitions);

/// Sentences for people about what the results lack, by the machine, and the reason why counters cannot be read (or an
/// empty text).
std::vector<std::string> notes_of_applications(const std::vector<unsigned>& workers, unsigned cores, bool one_host,
                                               const std::string& no_counters);

/// An application with a number of workers, over repetitions.
struct ApplicationRow {
  std::string application;
  unsigned workers = 1;
  Cell seconds, gflop_s, iterations_per_s, send_mb_s, delivered_mb_s, stalled;
};
/// The rows by application and workers.
std::vector<ApplicationRow> summary_of(const std::vector<ApplicationRun>& runs);

inline constexpr std::size_t application_columns = 7;
std::string application_title(std::size_t repetitions);
std::array<std::string, application_columns> application_names();
/// The cells of a row, for people.
std::array<std::string, application_columns> cells_of(const ApplicationRow& row);

}  // namespace tandem::tools::contention
