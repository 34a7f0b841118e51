// tools/simulate/recorded_run.hpp: a run that was traced, as a program that a simulation runs again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/base/result.hpp"
#include "tools/simulate/scene.hpp"

namespace tandem::analysis {
class History;
}

namespace tandem::tools {

/// Counts the workers of each rank of a traced run. Errors: unsupported, since runs with devices cannot be replayed.
base::Result<std::vector<unsigned>> count_workers(const analysis::History& history);

/// The flow of a traced run: its data with owners and sizes, its tasks in the order of the program with their ranks,
/// accesses, priorities and durations, when the program submitted them, and where it waited.
///
/// Reading it takes one thread; `play` may be called by the fibers of a simulation.
class RecordedRun {
 public:
  /// Reads the trace of a run. Errors: those of the trace; unsupported: it has devices, or no accesses; not_found: no
  /// task of it has run.
  static base::Result<RecordedRun> read(const std::filesystem::path& folder);

  std::uint32_t ranks() const noexcept { return ranks_; }
  unsigned workers() const noexcept { return workers_; }  ///< of the rank that has most
  std::size_t tasks() const noexcept { return tasks_.size(); }
  double seconds() const noexcept { return static_cast<double>(last_ns_ - first_ns_) * 1e-9; }
  const std::string& program() const noexcept { return program_; }  ///< with its arguments
  std::vector<std::string> kernels() const;  ///< their names, ascending
  /// The parts that kernels had in the time of all tasks, greatest first.
  std::vector<std::pair<std::string, double>> shares() const;
  /// The value that an option of the run had; empty: it is not recorded.
  std::string option(std::string_view name) const;

  /// What is otherwise than it was.
  struct Change {
    Factors factors = {};                                        ///< of durations
    std::vector<std::pair<std::string, std::string>> options = {};  ///< of Tandem, instead of those of the run
    bool keeps_pace = true;          ///< false: the program submits each task at once
    bool has_usual_durations = false;  ///< tasks that took much longer than others of their kernel take the median
  };
  struct Play {
    Change change = {};
    std::function<void(std::int64_t ns)> sleep = {};  ///< lets virtual time pass for this rank
    std::function<std::int64_t()> now_ns = {};
  };
  /// Submits the flow as `rank` did, and waits for it: in virtual time, in a simulated place. Returns when it began and
  /// when it ended, in ns.
  std::pair<std::int64_t, std::int64_t> play(std::uint32_t rank, const Play& how) const;

 private:
  struct Datum {
    std::uint32_t owner = 0;
    std::uint64_t bytes = 0;
    bool is_everywhere = false;  ///< each rank has its own
  };
  struct Access {
    std::uint32_t datum = 0;  ///< index in `data_`
    std::uint8_t mode = 0;    ///< as in `analysis::AccessRow`
  };
  struct Task {
    std::int64_t submit_ns = 0, duration_ns = 0;
    std::int64_t usual_ns = 0;  ///< the median of tasks of its kernel, if it took much longer; else what it took
    std::uint32_t rank = 0;
    std::uint32_t kernel = 0;  ///< index in `kernels_`
    std::int32_t priority = 0;
    std::uint32_t first_access = 0, accesses = 0;
    bool is_local = false;  ///< other ranks do not submit it
  };
  class Player;

  void take_tasks(const analysis::History& history);
  void take_waits(const analysis::History& history);

  std::uint32_t ranks_ = 1;
  unsigned workers_ = 1;
  std::int64_t first_ns_ = 0, last_ns_ = 0;
  std::string program_;
  std::vector<std::pair<std::string, std::string>> options_;  ///< of the run, as far as they matter here
  std::vector<std::string> kernels_;
  std::vector<Datum> data_;
  std::vector<Access> accesses_;
  std::vector<Task> tasks_;                            ///< in the order of the flow
  std::vector<std::size_t> waits_;                     ///< numbers of tasks before which the program waited, ascending
  std::vector<std::vector<std::int64_t>> resumed_ns_;  ///< by rank: when its program went on after a wait, ascending
};

}  // namespace tandem::tools
