// tandem/comm/bootstrap/variables.hpp: the environment variables in which launchers pass a rank its place in the job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/base/config.hpp"
#include "tandem/base/result.hpp"

namespace tandem::comm {

/// The TANDEM_ variables of the bootstrap: no options, so code that reads the configuration from the environment must
/// ignore them (`ConfigSources::reserved_variables`).
std::vector<std::string> job_variables();

namespace internal {

/// Reads variables; remembers nothing. Errors name the variable and its value.
class Variables {
 public:
  explicit Variables(const base::Environment& environment) : environment_(environment) {}

  /// The value of a variable; null when it is not set or is empty.
  const std::string* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  /// The value of a variable. Errors: not_found when it is missing.
  base::Result<std::string> text(std::string_view name) const;
  /// The value of a variable as a number. Errors: not_found, invalid_argument.
  base::Result<std::uint32_t> number(std::string_view name) const;

  struct Place {
    std::uint32_t rank;
    std::uint32_t size;
  };
  /// A rank and a size that fit each other.
  base::Result<Place> place(std::string_view rank_name, std::string_view size_name) const;

 private:
  const base::Environment& environment_;
};

}  // namespace internal
}  // namespace tandem::comm
