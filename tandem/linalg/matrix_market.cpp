// tandem/linalg/matrix_market.cpp: a line-by-line reader of untrusted files, and a writer.
#include "tandem/linalg/matrix_market.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <new>
#include <optional>
#include <string_view>

namespace tandem::linalg {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

enum class Field { real, integer, complex, pattern };

struct Header {
  bool coordinate = false;
  Field field = Field::real;
  Symmetry symmetry = Symmetry::general;
};

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> words;
  const auto is_space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  std::size_t at = 0;
  while (at < line.size()) {
    while (at < line.size() && is_space(line[at])) ++at;
    const std::size_t first = at;
    while (at < line.size() && !is_space(line[at])) ++at;
    if (at > first) words.push_back(line.substr(first, at - first));
  }
  return words;
}

std::string lower_case(std::string_view word) {
  std::string lowered(word);
  std::transform(lowered.begin(), lowered.end(), lowered.begin(),
                 [](unsigned char c) { return char(std::tolower(c)); });
  return lowered;
}

template <class Integer>
std::optional<Integer> parse_integer(std::string_view word) {
  if (word.starts_with('+')) word.remove_prefix(1);
  Integer value{};
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (failure != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_real(std::string_view word) {
  if (word.starts_with('+')) word.remove_prefix(1);
  // Fortran writes 1.0D+00; a copy is made only for such numbers.
  std::string fortran;
  if (word.find_first_of("dD") != std::string_view::npos) {
    fortran = word;
    std::replace_if(fortran.begin(), fortran.end(), [](char c) { return c == 'd' || c == 'D'; }, 'e');
    word = fortran;
  }
  double value = 0;
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (failure != std::errc() || end != word.data() + word.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// Reads one file. `next_line` moves to a line with content; errors name the present line.
class Reader {
 public:
  Reader(std::istream& input, const std::string& name) : input_(input), name_(name) { file_.name = name; }

  Result<MatrixMarketFile> read() {
    for (auto step : {&Reader::read_banner, &Reader::read_sizes, &Reader::read_entries, &Reader::expect_end}) {
      if (Result<void> done = (this->*step)(); !done) return done.error();
    }
    return std::move(file_);
  }

 private:
  Error error(std::string_view what) const {
    return {ErrorCode::malformed, fmt::format("{}, line {}: {}", name_, line_number_, what)};
  }

  /// Moves to the next line that is neither empty nor a comment and splits it; false at the end of the file.
  bool next_line() {
    while (std::getline(input_, line_)) {
      ++line_number_;
      if (line_.starts_with('%')) continue;
      words_ = split(line_);
      if (!words_.empty()) return true;
    }
    ++line_number_;
    return false;
  }

  Result<void> read_banner() {
    line_number_ = 1;
    if (!std::getline(input_, line_))
      return error("the file is empty; a Matrix Market file begins with %%MatrixMarket");
    words_ = split(line_);
    if (words_.size() != 5 || lower_case(words_[0]) != "%%matrixmarket" || lower_case(words_[1]) != "matrix")
      return error("expected \"%%MatrixMarket matrix coordinate|array FIELD SYMMETRY\"");

    const std::string format = lower_case(words_[2]), field = lower_case(words_[3]), symmetry = lower_case(words_[4]);
    if (format != "coordinate" && format != "array")
      return error(fmt::format("unknown format \"{}\": expected coordinate or array", words_[2]));
    header_.coordinate = format == "coordinate";

    if (field == "real" || field == "double") header_.field = Field::real;
    else if (field == "integer") header_.field = Field::integer;
    else if (field == "complex") header_.field = Field::complex;
    else if (field == "pattern") header_.field = Field::pattern;
    else
      return error(fmt::format("unknown field \"{}\": expected real, double, integer, complex or pattern", words_[3]));

    if (symmetry == "general") header_.symmetry = Symmetry::general;
    else if (symmetry == "symmetric") header_.symmetry = Symmetry::symmetric;
    else if (symmetry == "skew-symmetric") header_.symmetry = Symmetry::skew_symmetric;
    else if (symmetry == "hermitian") header_.symmetry = Symmetry::hermitian;
    else
      return error(
          fmt::format("unknown symmetry \"{}\": expected general, symmetric, skew-symmetric or hermitian", words_[4]));

    if (header_.field == Field::pattern && !header_.coordinate) return error("an array cannot be a pattern");
    if (header_.field == Field::pattern && header_.symmetry == Symmetry::skew_symmetric)
      return error("a pattern cannot be skew-symmetric");
    if (header_.symmetry == Symmetry::hermitian && header_.field != Field::complex)
      return error("only a complex matrix can be hermitian; a real one is symmetric");
    file_.is_complex = header_.field == Field::complex;
    file_.symmetry = header_.symmetry;
    return {};
  }

  Result<void> read_sizes() {
    const char* const expected =
        header_.coordinate ? "expected the sizes: rows, columns, entries" : "expected the sizes: rows, columns";
    if (!next_line() || words_.size() != (header_.coordinate ? 3u : 2u)) return error(expected);
    std::size_t sizes[3] = {};
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const auto size = parse_integer<std::size_t>(words_[i]);
      if (!size) return error(fmt::format("{}; \"{}\" is not a count", expected, words_[i]));
      sizes[i] = *size;
    }
    file_.rows = sizes[0];
    file_.cols = sizes[1];
    constexpr std::size_t largest = std::size_t(1) << 31;
    if (file_.rows >= largest || file_.cols >= largest)
      return error("a matrix may have at most 2^31 - 1 rows and columns");
    if (header_.symmetry != Symmetry::general && file_.rows != file_.cols)
      return error(fmt::format("a matrix of {} rows and {} columns cannot have a symmetry", file_.rows, file_.cols));
    entry_count_ = header_.coordinate ? sizes[2] : array_entries();
    // The count is only a promise: it may not make us allocate more than the file could hold.
    file_.entries.reserve(std::min<std::size_t>(entry_count_, std::size_t(1) << 20));
    return {};
  }

  std::size_t array_entries() const {
    const std::size_t n = file_.cols;
    switch (header_.symmetry) {
      case Symmetry::general: return file_.rows * n;
      case Symmetry::skew_symmetric: return n == 0 ? 0 : n * (n - 1) / 2;
      default: return n * (n + 1) / 2;
    }
  }

  Result<void> read_entries() {
    // The position in an array runs down the columns, of the lower triangle when there is a symmetry.
    const std::size_t below = header_.symmetry == Symmetry::skew_symmetric ? 1 : 0;
    std::size_t row = header_.symmetry == Symmetry::general ? 0 : below, col = 0;
    for (std::size_t k = 0; k < entry_count_; ++k) {
      if (!next_line()) return error(fmt::format("the file ends after {} of {} entries", k, entry_count_));
      MatrixMarketFile::Entry entry{row, col, 1.0};
      if (Result<void> read = header_.coordinate ? read_coordinate_entry(entry) : read_value(entry, 0); !read)
        return read;
      file_.entries.push_back(entry);
      if (++row == file_.rows) {
        ++col;
        row = header_.symmetry == Symmetry::general ? 0 : col + below;
      }
    }
    return {};
  }

  Result<void> read_coordinate_entry(MatrixMarketFile::Entry& entry) {
    std::size_t position[2] = {};
    if (words_.size() < 2) return error("expected the row and the column of an entry");
    for (std::size_t i = 0; i < 2; ++i) {
      const auto index = parse_integer<std::size_t>(words_[i]);
      const std::size_t size = i == 0 ? file_.rows : file_.cols;
      if (!index || *index < 1 || *index > size)
        return error(fmt::format("\"{}\" is not a {} from 1 to {}", words_[i], i == 0 ? "row" : "column", size));
      position[i] = *index - 1;
    }
    entry.row = position[0];
    entry.col = position[1];
    if (Result<void> read = read_value(entry, 2); !read) return read;

    if (header_.symmetry != Symmetry::general && entry.row < entry.col)
      return error("an entry above the diagonal: a file with a symmetry holds the lower triangle only");
    if (header_.symmetry == Symmetry::skew_symmetric && entry.row == entry.col)
      return error("an entry on the diagonal: that of a skew-symmetric matrix is zero and is not written");
    return {};
  }

  /// The value of an entry, which begins at word `first` and ends the line.
  Result<void> read_value(MatrixMarketFile::Entry& entry, std::size_t first) {
    const std::size_t numbers = header_.field == Field::pattern ? 0 : header_.field == Field::complex ? 2 : 1;
    if (words_.size() != first + numbers)
      return error(fmt::format("expected {} numbers on this line, found {}", first + numbers, words_.size()));
    double parts[2] = {1.0, 0.0};
    for (std::size_t i = 0; i < numbers; ++i) {
      const std::string_view word = words_[first + i];
      if (header_.field == Field::integer) {
        const auto value = parse_integer<long long>(word);
        if (!value) return error(fmt::format("\"{}\" is not an integer", word));
        parts[i] = static_cast<double>(*value);
      } else {
        const auto value = parse_real(word);
        if (!value) return error(fmt::format("\"{}\" is not a finite number", word));
        parts[i] = *value;
      }
    }
    entry.value = {parts[0], parts[1]};
    if (header_.symmetry == Symmetry::hermitian && entry.row == entry.col && parts[1] != 0.0)
      return error("the diagonal of a hermitian matrix is real");
    return {};
  }

  Result<void> expect_end() {
    if (next_line()) return error(fmt::format("the file goes on after its {} entries", entry_count_));
    if (input_.bad()) return Error{ErrorCode::io, fmt::format("{}: reading failed", name_)};
    return {};
  }

  std::istream& input_;
  std::string name_;
  Header header_;
  MatrixMarketFile file_;
  std::size_t entry_count_ = 0;
  std::string line_;
  std::vector<std::string_view> words_;  ///< of line_
  std::size_t line_number_ = 0;
};

template <Scalar T>
T to_scalar(std::complex<double> value) {
  if constexpr (is_complex<T>) {
    return T(static_cast<Real<T>>(value.real()), static_cast<Real<T>>(value.imag()));
  } else {
    return static_cast<T>(value.real());
  }
}

template <Scalar T>
T mirrored(Symmetry symmetry, T value) {
  return symmetry == Symmetry::skew_symmetric ? -value : symmetry == Symmetry::hermitian ? conj(value) : value;
}

}  // namespace

Result<MatrixMarketFile> read_matrix_market(const std::string& path) {
  std::ifstream input(path);
  if (!input) return Error{ErrorCode::not_found, fmt::format("{}: cannot be opened for reading", path)};
  return read_matrix_market(input, path);
}

Result<MatrixMarketFile> read_matrix_market(std::istream& input, const std::string& name) {
  try {
    return Reader(input, name).read();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::exhausted, fmt::format("{}: its entries do not fit in memory", name)};
  }
}

template <Scalar T>
Result<DenseMatrix<T>> to_dense(const MatrixMarketFile& file) {
  if (file.is_complex && !is_complex<T>)
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("{}: the matrix is complex; precision {} is real, choose c or z", file.name, precision_letter<T>)};
  DenseMatrix<T> dense{file.rows, file.cols, {}};
  try {
    // Both factors are below 2^31, so the product cannot overflow.
    dense.values.assign(file.rows * file.cols, T(0));
  } catch (const std::exception&) {
    return Error{ErrorCode::exhausted, fmt::format("{}: {} x {} elements of {} bytes do not fit in memory", file.name,
                                                   file.rows, file.cols, sizeof(T))};
  }
  const MatrixView<T> a = dense.view();
  for (const auto& entry : file.entries) {
    const T value = to_scalar<T>(entry.value);
    a(entry.row, entry.col) += value;
    if (file.symmetry != Symmetry::general && entry.row != entry.col)
      a(entry.col, entry.row) += mirrored(file.symmetry, value);
  }
  return dense;
}

template <Scalar T>
Result<void> write_matrix_market(const std::string& path, MatrixView<const T> a) {
  std::ofstream output(path);
  if (!output) return Error{ErrorCode::io, fmt::format("{}: cannot be opened for writing", path)};
  output << fmt::format("%%MatrixMarket matrix array {} general\n{} {}\n", is_complex<T> ? "complex" : "real", a.rows,
                        a.cols);
  for (std::size_t j = 0; j < a.cols; ++j) {
    for (std::size_t i = 0; i < a.rows; ++i) {
      // fmt's default is the shortest text that reads back as the same number.
      if constexpr (is_complex<T>) {
        output << fmt::format("{} {}\n", a(i, j).real(), a(i, j).imag());
      } else {
        output << fmt::format("{}\n", a(i, j));
      }
    }
  }
  output.close();
  if (!output) return Error{ErrorCode::io, fmt::format("{}: writing failed", path)};
  return {};
}

#define INSTANTIATE(T)                                                    \
  template Result<DenseMatrix<T>> to_dense<T>(const MatrixMarketFile&);   \
  template Result<void> write_matrix_market<T>(const std::string&, MatrixView<const T>);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(std::complex<float>)
INSTANTIATE(std::complex<double>)
#undef INSTANTIATE

}  // namespace tandem::linalg
