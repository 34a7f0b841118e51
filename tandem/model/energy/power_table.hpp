// tandem/model/energy/power_table.hpp: powers that were measured on a machine, and their text for a file.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "tandem/base/result.hpp"
#include "tandem/model/energy/power_model.hpp"

namespace tandem::model {

/// Powers by kind of worker ("cpu", or the name of a device without its number). A value.
struct PowerTable {
  std::map<std::string, Watts> idle;  ///< of all that the counters of such workers cover, while no kernel runs
  std::map<std::pair<std::string, std::string>, Watts>
      kernels;  ///< by kind of worker and codelet: what a running kernel adds

  bool is_empty() const noexcept { return idle.empty() && kernels.empty(); }
  /// Combines with what `other` has measured since. The present values count with twice their errors, so that changes
  /// are learnt.
  void add(const PowerTable& other);
  /// The mean power of kernels of this kind of worker, weighted by their times; 0 W: nothing is known.
  Watts mean_of(std::string_view kind) const;
};

/// The text of a file, for people:
///
///   format = 1
///   machine = "AMD EPYC 7763"
///   rows = 2
///   [idle]
///   "cpu" = "85.2 W +- 1.1, 320 s"
///   [kernel]
///   "cpu/gemm" = "11.8 W +- 0.2, 1830 s"
std::string to_text(const PowerTable& powers, std::string_view machine);

/// Reads such a text, as `parse_models` does. Errors: malformed, unsupported.
base::Result<PowerTable> parse_powers(std::string_view text, std::string_view file, std::string_view machine);

}  // namespace tandem::model
