// tools/simulate/sweep.hpp: simulations of a grid of options, as a table and a picture.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/base/result.hpp"
#include "tools/simulate/prediction.hpp"

namespace tandem::tools {

/// An option or a placeholder, and the values that it takes.
struct SweepAxis {
  std::string name;
  std::vector<std::string> values;
};

/// Parses "n=4800:40000:3200 sched=lws,prio": names with lists of values, or with a first, a last and a step, which are
/// whole numbers. Errors: invalid_argument; more than 100,000 points.
base::Result<std::vector<SweepAxis>> parse_sweep(std::string_view text);

/// A point of the grid: a value for each axis. The last axis changes first.
using SweepPoint = std::vector<std::string>;
std::vector<SweepPoint> points_of(const std::vector<SweepAxis>& axes);

/// Replaces {NAME} of each axis in the words of a program. `unused` gets the numbers of the axes that no word has.
std::vector<std::string> words_at(const SweepPoint& point, const std::vector<SweepAxis>& axes,
                                  const std::vector<std::string>& words, std::vector<std::size_t>& unused);

/// The results of a sweep in a CSV file, a line for each point, so that a sweep that was interrupted goes on.
class SweepTable {
 public:
  /// Reads what is there, or begins the file. `title` names what is swept. Errors: io; malformed, where the file has
  /// another sweep.
  static base::Result<SweepTable> open(const std::filesystem::path& file, const std::string& title,
                                       const std::vector<SweepAxis>& axes);
  /// Null: it is not there yet.
  const Prediction* find(const SweepPoint& point) const;
  /// Adds a line at the end of the file. Errors: io.
  base::Result<void> add(const SweepPoint& point, const Prediction& result);

  const std::map<SweepPoint, Prediction>& results() const noexcept { return results_; }

 private:
  std::filesystem::path file_;
  std::map<SweepPoint, Prediction> results_;
};

/// Seconds by the first axis whose values are numbers, with intervals; a curve for each combination of the others. SVG.
std::string sweep_picture(const std::vector<SweepAxis>& axes, const std::map<SweepPoint, Prediction>& results);

/// Calls `simulate` for all points that the table lacks, on so many threads at once, and adds what it returns. Errors:
/// the first one of `simulate`, which names its point; what came before it is in the table.
base::Result<void> sweep(const std::vector<SweepAxis>& axes, SweepTable& table, unsigned threads,
                         const std::function<base::Result<Prediction>(const SweepPoint&)>& simulate,
                         const std::function<void(std::size_t done, std::size_t all)>& progress);

}  // namespace tandem::tools
