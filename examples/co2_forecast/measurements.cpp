// examples/co2_forecast/measurements.cpp: the CSV reader. One function decides about lines, the others each read one
// thing.
#include "measurements.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <istream>
#include <optional>
#include <system_error>
#include <variant>

namespace co2_forecast {

namespace {

using std::chrono::year_month_day;
using tandem::base::Error;
using tandem::base::ErrorCode;
using tandem::base::Result;

constexpr std::string_view header = "date,co2_ppm";

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// All of `text` as a number, or nothing.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// A day that exists in the calendar, written YYYY-MM-DD, or nothing.
std::optional<year_month_day> date_in(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return std::nullopt;
  const auto year = number_in<unsigned>(text.substr(0, 4));
  const auto month = number_in<unsigned>(text.substr(5, 2));
  const auto day = number_in<unsigned>(text.substr(8, 2));
  if (!year || !month || !day) return std::nullopt;
  const year_month_day date{std::chrono::year{static_cast<int>(*year)}, std::chrono::month{*month},
                            std::chrono::day{*day}};
  return date.ok() ? std::optional{date} : std::nullopt;
}

/// What is wrong with a line, before its place is known.
struct Complaint {
  std::string text;
};

/// The two fields of a row, understood.
struct Row {
  year_month_day date;
  std::optional<double> co2_ppm;  ///< nothing: no measurement that week
};

std::variant<Row, Complaint> row_in(std::string_view line) {
  const auto comma = line.find(',');
  if (comma == std::string_view::npos || line.find(',', comma + 1) != std::string_view::npos) {
    return Complaint{fmt::format("found \"{}\", expected two fields, YYYY-MM-DD,value", line)};
  }
  const auto date_text = trimmed(line.substr(0, comma));
  const auto date = date_in(date_text);
  if (!date) return Complaint{fmt::format("found \"{}\", expected a day of the calendar as YYYY-MM-DD", date_text)};

  const auto value_text = trimmed(line.substr(comma + 1));
  if (value_text.empty()) return Row{*date, std::nullopt};
  const auto value = number_in<double>(value_text);
  if (!value || !std::isfinite(*value) || *value <= 0) {
    return Complaint{fmt::format(
        "found \"{}\", expected a positive CO2 value in ppm, or nothing when none was measured", value_text)};
  }
  return Row{*date, *value};
}

}  // namespace

double years_of(year_month_day date) {
  using namespace std::chrono;
  const auto first_of_january = sys_days{date.year() / January / 1};
  const auto days_since = (sys_days{date} - first_of_january).count();
  return static_cast<int>(date.year()) + static_cast<double>(days_since) / 365.25;
}

std::string to_string(year_month_day date) {
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()));
}

Result<Measurements> parse_measurements(std::istream& stream, std::string_view name) {
  Measurements measurements;
  std::optional<year_month_day> previous;
  std::size_t line_number = 0;
  bool header_seen = false;
  const auto malformed = [&](const std::string& complaint) {
    return Error{ErrorCode::malformed, fmt::format("{}:{}: {}", name, line_number, complaint)};
  };

  for (std::string line; std::getline(stream, line);) {
    ++line_number;
    const auto text = trimmed(line);
    if (text.empty() || text.front() == '#') continue;
    if (!header_seen) {
      if (text != header) return malformed(fmt::format("found \"{}\", expected the header \"{}\"", text, header));
      header_seen = true;
      continue;
    }
    const auto understood = row_in(text);
    if (const auto* complaint = std::get_if<Complaint>(&understood)) return malformed(complaint->text);
    const auto& row = std::get<Row>(understood);
    if (previous && row.date <= *previous) {
      return malformed(
          fmt::format("found {} after {}, expected dates that increase", to_string(row.date), to_string(*previous)));
    }
    previous = row.date;
    if (row.co2_ppm) {
      measurements.rows.push_back({row.date, years_of(row.date), *row.co2_ppm});
    } else {
      ++measurements.missing_count;
    }
  }
  if (stream.bad()) return Error{ErrorCode::io, fmt::format("{}: reading failed after line {}", name, line_number)};
  if (!header_seen) return malformed(fmt::format("the file ends here, expected the header \"{}\"", header));
  return measurements;
}

Result<Measurements> read_measurements(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return Error{ErrorCode::io, fmt::format("{}: is a directory, expected a CSV file of measurements", path.string())};
  }
  errno = 0;
  std::ifstream file(path);
  if (!file) {
    return Error{ErrorCode::not_found, fmt::format("{}: cannot be read ({}); name the CSV file with --data",
                                                   path.string(), std::strerror(errno))};
  }
  return parse_measurements(file, path.string());
}

}  // namespace co2_forecast
