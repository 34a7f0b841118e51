// examples/co2_forecast/measurements.hpp: the measured weeks, read from a CSV file, every mistake in it named by its
// line.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/base/result.hpp"

namespace co2_forecast {

/// One week in which CO2 was measured.
struct Measurement {
  std::chrono::year_month_day date;
  double time_years = 0;  ///< of `date`, as years_of() has it
  double co2_ppm = 0;     ///< parts per million by volume; finite and positive
};

/// What a file holds. Invariant: dates strictly increase; the steps between them may be irregular.
struct Measurements {
  std::vector<Measurement> rows;
  std::size_t missing_count = 0;  ///< weeks that the file lists without a value; they are not in `rows`
};

/// A date as a real number of years: year + (day of the year - 1) / 365.25.
double years_of(std::chrono::year_month_day date);

/// A date as the file writes it: YYYY-MM-DD.
std::string to_string(std::chrono::year_month_day date);

/// Reads lines `YYYY-MM-DD,value` below the header `date,co2_ppm`. An empty value is a week without a measurement.
/// Lines that start with '#' and empty lines are skipped. Errors (`not_found`, `io`, `malformed`) say `path:line`, what
/// stands there and what should.
tandem::base::Result<Measurements> read_measurements(const std::filesystem::path& path);

/// The same from a stream; `name` stands for the path in messages.
tandem::base::Result<Measurements> parse_measurements(std::istream& stream, std::string_view name);

}  // namespace co2_forecast
