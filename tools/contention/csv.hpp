// tools/contention/csv.hpp: the lines of a campaign's files: a header, numbers with commas, empty cells where a value
// has no meaning.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tandem/base/number_of.hpp"
#include "tandem/base/replace_file.hpp"
#include "tandem/base/result.hpp"

namespace tandem::tools::contention {

/// A number with six digits; an empty text for none.
template <class Value>
std::string cell_text(const std::optional<Value>& value) {
  if (!value) return "";
  if constexpr (std::is_floating_point_v<Value>)
    return fmt::format("{:.6g}", *value);
  else
    return fmt::format("{}", *value);
}

/// Reads a number that is the whole cell. False: it is none.
template <class Value>
bool read_cell(std::string_view text, Value& value) {
  const std::optional<Value> number = base::number_of<Value>(text);
  if (number) value = *number;
  return number.has_value();
}
template <class Value>
bool read_cell(std::string_view text, std::optional<Value>& value) {
  if (text.empty()) return true;
  return read_cell(text, value.emplace());
}

/// Calls `parse` with the cells of each line after the first one; it returns the name of a wrong cell, or null. The
/// last line of an interrupted campaign, which has no end, is left out. `name` is for messages. Errors: malformed, with
/// the number of the line.
template <class Parse>
base::Result<void> read_lines(std::string_view text, const std::string& name, std::size_t columns, const Parse& parse) {
  std::size_t number = 1;
  for (std::size_t from = text.find('\n'); from != std::string_view::npos;) {
    const std::size_t end = text.find('\n', ++from);
    if (end == std::string_view::npos) break;
    ++number;
    std::string_view line = text.substr(from, end - from);
    if (line.ends_with('\r')) line.remove_suffix(1);
    from = end;
    if (line.empty()) continue;
    std::vector<std::string_view> cells;
    for (std::size_t begin = 0;;) {
      const std::size_t comma = line.find(',', begin);
      cells.push_back(line.substr(begin, comma - begin));
      if (comma == std::string_view::npos) break;
      begin = comma + 1;
    }
    if (cells.size() != columns)
      return base::Error{base::ErrorCode::malformed,
                         fmt::format("{}, line {}: {} cells instead of {}", name, number, cells.size(), columns)};
    if (const char* const wrong = parse(std::move(cells)))
      return base::Error{base::ErrorCode::malformed, fmt::format("{}, line {}: {} is wrong", name, number, wrong)};
  }
  return {};
}

/// How the rows of a file are written and read; a row has a `key()`, which is all but its values.
template <class Row>
struct RowFormat {
  std::string (*header)();
  std::string (*line)(const Row&);
  base::Result<std::vector<Row>> (*read)(std::string_view text, const std::string& name);
};

/// A file to which each row is added when it is made, so that an interrupted campaign can be resumed.
template <class Row>
class RowFile {
 public:
  /// Makes the file, or continues an existing one, without a line that was being written when the campaign was
  /// interrupted. Errors: io; malformed.
  static base::Result<RowFile> open(const std::filesystem::path& path, const RowFormat<Row>& format) {
    RowFile file(path, format);
    std::ifstream stream(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(stream), {}};
    text.erase(text.rfind('\n') + 1);
    if (!text.empty()) {
      auto rows = format.read(text, path.string());
      if (!rows) return rows.error();
      file.rows_ = std::move(rows).value();
      for (const Row& row : file.rows_) file.done_.insert(row.key());
    }
    text = format.header();
    for (const Row& row : file.rows_) text += format.line(row);
    if (const auto written = base::replace_file(path, text); !written) return written.error();
    file.file_ = std::fopen(path.c_str(), "abe");
    if (file.file_ == nullptr) return file.unwritable();
    return file;
  }
  RowFile(RowFile&& other) noexcept
      : path_(std::move(other.path_)), format_(other.format_), file_(std::exchange(other.file_, nullptr)), rows_(std::move(other.rows_)), done_(std::move(other.done_)) {}
  RowFile& operator=(RowFile&&) = delete;
  ~RowFile() {
    if (file_ != nullptr) std::fclose(file_);
  }

  bool has(const Row& row) const { return done_.contains(row.key()); }
  const std::vector<Row>& rows() const noexcept { return rows_; }
  /// Adds a row. Errors: io.
  base::Result<void> add(const Row& row) {
    const std::string line = format_.line(row);
    if (std::fwrite(line.data(), 1, line.size(), file_) != line.size() || std::fflush(file_) != 0) return unwritable();
    done_.insert(row.key());
    rows_.push_back(row);
    return {};
  }

 private:
  RowFile(std::filesystem::path path, const RowFormat<Row>& format) : path_(std::move(path)), format_(format) {}
  base::Error unwritable() const {
    return {base::ErrorCode::io, fmt::format("{}: cannot be written: {}", path_.string(), std::strerror(errno))};
  }

  std::filesystem::path path_;
  RowFormat<Row> format_;
  std::FILE* file_ = nullptr;
  std::vector<Row> rows_;
  std::set<decltype(std::declval<const Row&>().key())> done_;
};

}  // namespace tandem::tools::contention
