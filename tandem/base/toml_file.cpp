// tandem/base/toml_file.cpp: reading the subset of TOML for files of options, and writing its strings.
#include "tandem/base/toml_file.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <set>

#include <fmt/core.h>

#include "tandem/base/utf8.hpp"

namespace tandem::base {
namespace {

constexpr std::size_t kMostTomlBytes = std::size_t{64} << 20;

bool is_bare(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}
bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

void append_utf8(std::string& text, std::uint32_t point) {
  const auto add = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (point < 0x80) return add(point);
  if (point < 0x800) {
    add(0xC0 | point >> 6);
  } else {
    if (point < 0x10000) {
      add(0xE0 | point >> 12);
    } else {
      add(0xF0 | point >> 18);
      add(0x80 | (point >> 12 & 0x3F));
    }
    add(0x80 | (point >> 6 & 0x3F));
  }
  add(0x80 | (point & 0x3F));
}

/// The digits of a number without the underscores between them; empty where one is not between two digits.
std::optional<std::string> without_underscores(std::string_view number) {
  std::string digits;
  for (std::size_t i = 0; i < number.size(); ++i) {
    if (number[i] != '_') {
      digits += number[i];
      continue;
    }
    const auto is_hexadecimal = [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); };
    if (i == 0 || i + 1 == number.size() || !is_hexadecimal(number[i - 1]) || !is_hexadecimal(number[i + 1]))
      return std::nullopt;
  }
  return digits;
}

template <class Number, class... Base>
std::optional<Number> whole_number(std::string_view digits, Base... base) {
  Number number{};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number, base...);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

/// The value of a word that is a boolean, an integer or a floating-point number of TOML, in its plainest form.
std::optional<std::string> value_of(std::string_view word) {
  if (word == "true" || word == "false") return std::string(word);
  const bool has_sign = word.starts_with('+') || word.starts_with('-');
  const std::string sign = word.starts_with('-') ? "-" : "";
  const std::string_view unsigned_word = word.substr(has_sign ? 1 : 0);
  if (unsigned_word == "inf" || unsigned_word == "nan") return sign + std::string(unsigned_word);
  if (unsigned_word.empty() || !is_digit(unsigned_word.front())) return std::nullopt;
  if (unsigned_word.size() > 2 && unsigned_word[0] == '0' && !has_sign) {
    const char kind = unsigned_word[1];
    if (const int base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 0; base != 0) {
      const auto digits = without_underscores(unsigned_word.substr(2));
      const auto number = digits && is_bare(digits->front()) && digits->front() != '-'
                              ? whole_number<std::int64_t>(*digits, base)
                              : std::nullopt;
      return number ? std::optional(fmt::format("{}", *number)) : std::nullopt;
    }
  }
  const auto digits = without_underscores(unsigned_word);
  if (!digits) return std::nullopt;
  const std::size_t whole = std::min(digits->find_first_not_of("0123456789"), digits->size());
  if (whole > 1 && digits->front() == '0') return std::nullopt;
  if (whole == digits->size()) {
    const auto number = whole_number<std::int64_t>(sign + *digits);
    return number ? std::optional(fmt::format("{}", *number)) : std::nullopt;
  }
  // A point has digits on both sides; std::from_chars checks the rest.
  const std::size_t point = digits->find('.');
  if (point != digits->npos && (point + 1 == digits->size() || !is_digit((*digits)[point + 1]))) return std::nullopt;
  std::string real = sign + *digits;
  if (const std::size_t exponent = real.find_first_of("eE");
      exponent != real.npos && exponent + 2 < real.size() && real[exponent + 1] == '+' && is_digit(real[exponent + 2]))
    real.erase(exponent + 1, 1);  // std::from_chars takes no plus
  const auto number = whole_number<double>(real);
  return number ? std::optional(fmt::format("{}", *number)) : std::nullopt;
}

/// Reads one document, line by line. The first error ends it.
class Reader {
 public:
  Reader(std::string_view document, std::string_view file) : rest_(document), file_(file) {}

  Result<std::vector<TomlValue>> read() {
    while (!rest_.empty() && read_line()) {
      ++line_;
    }
    if (error_) return *std::move(error_);
    return std::move(values_);
  }

 private:
  bool fail(std::string what) {
    if (!error_) error_ = Error{ErrorCode::malformed, fmt::format("{}:{}: {}", file_, line_, what)};
    return false;
  }

  /// The first character of the current line.
  char front() const noexcept { return text_.empty() ? '\0' : text_.front(); }
  bool skip(char c) noexcept {
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void skip_blanks() noexcept { text_.remove_prefix(std::min(text_.find_first_not_of(" \t"), text_.size())); }

  bool read_line() {
    const std::size_t end = rest_.find('\n');
    text_ = rest_.substr(0, end);
    rest_.remove_prefix(end == rest_.npos ? rest_.size() : end + 1);
    if (end != rest_.npos && text_.ends_with('\r')) text_.remove_suffix(1);
    if (!check_characters()) return false;
    skip_blanks();
    if (front() == '[') {
      if (!read_header()) return false;
    } else if (!text_.empty() && front() != '#') {
      if (!read_value()) return false;
    }
    skip_blanks();
    return text_.empty() || front() == '#' ||
           fail("the line goes on behind its value; a key and its value stand alone on a line");
  }

  bool check_characters() {
    for (std::string_view text = text_; !text.empty();) {
      const std::size_t length = utf8_length(text);
      if (length == 0) return fail("the text is not UTF-8");
      const auto c = static_cast<unsigned char>(text.front());
      if ((c < 0x20 && c != '\t') || c == 0x7F) return fail("a control character stands in the text");
      text.remove_prefix(length);
    }
    return true;
  }

  bool read_header() {
    skip('[');
    if (front() == '[') return fail("[[...]] is an array of tables; options take strings, numbers and booleans");
    std::string name;
    if (!read_key(name)) return false;
    if (!skip(']')) return fail("a table's name ends with ]");
    if (!tables_.insert(name).second) return fail(fmt::format("[{}] stands here a second time", name));
    prefix_ = name + ".";
    return true;
  }

  bool read_value() {
    std::string key;
    if (!read_key(key)) return false;
    const std::string name = prefix_ + key;
    if (!skip('=')) return fail(fmt::format("{} has no value; write {} = VALUE", key, key));
    skip_blanks();
    std::string value;
    if (front() == '"' || front() == '\'') {
      if (!read_string(value)) return false;
    } else {
      const std::size_t end = std::min(text_.find_first_of(" \t#"), text_.size());
      const std::string_view word = text_.substr(0, end);
      if (word.empty()) return fail(fmt::format("{} has no value; write {} = VALUE", key, key));
      auto plain = value_of(word);
      if (!plain && (is_date(word) || word.front() == '[' || word.front() == '{'))
        return fail(fmt::format("{} is an array, a table or a date; options take strings, numbers and booleans", name));
      if (!plain)
        return fail(fmt::format("{} is no number and no boolean; a string stands in quotes: {} = \"...\"", word, key));
      value = *std::move(plain);
      text_.remove_prefix(end);
    }
    if (!names_.insert(name).second) return fail(fmt::format("{} has two values", name));
    values_.push_back({name, std::move(value), line_});
    return true;
  }

  static bool is_date(std::string_view word) noexcept {
    return word.size() > 4 && std::ranges::all_of(word.substr(0, 2), is_digit) &&
           (word[2] == ':' || (std::ranges::all_of(word.substr(2, 2), is_digit) && word[4] == '-'));
  }

  /// Reads names that points join, and skips blanks around them.
  bool read_key(std::string& key) {
    do {
      skip_blanks();
      if (!key.empty()) key += '.';
      if (front() == '"' || front() == '\'') {
        if (!read_string(key)) return false;
      } else {
        const auto end = std::ranges::find_if_not(text_, is_bare);
        const auto length = static_cast<std::size_t>(end - text_.begin());
        if (length == 0) return fail("a name is missing; names have letters, digits, - and _, or stand in quotes");
        key += text_.substr(0, length);
        text_.remove_prefix(length);
      }
      skip_blanks();
    } while (skip('.'));
    return true;
  }

  /// Reads a string in either kind of quotes, and appends it to `value`.
  bool read_string(std::string& value) {
    const char quote = text_.front();
    if (text_.starts_with(std::string(3, quote)))
      return fail("a string of several lines; options take strings of one line");
    text_.remove_prefix(1);
    for (;;) {
      const std::size_t end = text_.find_first_of(quote == '"' ? "\"\\" : "'");
      if (end == text_.npos) return fail("a string has no end on its line");
      value += text_.substr(0, end);
      const bool ends = text_[end] == quote;
      text_.remove_prefix(end + 1);
      if (ends) return true;
      if (!read_escape(value)) return false;
    }
  }

  /// Reads the characters after a backslash.
  bool read_escape(std::string& value) {
    static constexpr std::string_view kNames = "btnfr\"\\", kMeanings = "\b\t\n\f\r\"\\";
    const char name = front();
    if (!text_.empty()) text_.remove_prefix(1);
    if (const std::size_t at = kNames.find(name); at != kNames.npos) {
      value += kMeanings[at];
      return true;
    }
    const std::size_t digits = name == 'u' ? 4 : name == 'U' ? 8 : 0;
    const auto point = digits > 0 && text_.size() >= digits && text_.front() != '-'
                           ? whole_number<std::uint32_t>(text_.substr(0, digits), 16)
                           : std::nullopt;
    if (!point || *point > 0x10FFFF || (*point >= 0xD800 && *point < 0xE000))
      return fail("an unknown escape; a backslash is written \\\\, or the string stands in '...'");
    append_utf8(value, *point);
    text_.remove_prefix(digits);
    return true;
  }

  std::string_view rest_;  ///< the lines after this one
  std::string_view file_;
  std::string_view text_;  ///< what is left of this line
  unsigned line_ = 1;
  std::string prefix_;
  std::set<std::string> tables_, names_;
  std::vector<TomlValue> values_;
  std::optional<Error> error_;
};

}  // namespace

Result<std::vector<TomlValue>> parse_toml(std::string_view document, std::string_view name) {
  if (document.starts_with("\xEF\xBB\xBF")) document.remove_prefix(3);  // some editors begin UTF-8 with it
  return Reader(document, name).read();
}

Result<std::vector<TomlValue>> read_toml(const std::filesystem::path& path) {
  const auto file = OwnedFile::open(path, Owners::anyone);
  const bool is_missing = !file && file.error().code == ErrorCode::not_found;
  if (!file)
    return Error{ErrorCode::io, fmt::format("cannot read {}", is_missing ? path.string() : file.error().message)};
  return read_toml(file.value());
}

Result<std::vector<TomlValue>> read_toml(const OwnedFile& file) {
  const auto document = file.text(kMostTomlBytes);
  if (!document) return document.error();
  return parse_toml(document.value(), file.path().string());
}

std::string toml_quoted(std::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    const auto byte = static_cast<unsigned char>(character.front());
    if (length == 0) append_utf8(quoted, 0xFFFD);
    else if (byte == '"' || byte == '\\') quoted.append("\\").append(character);
    else if (byte < 0x20 || byte == 0x7F) quoted += fmt::format("\\u{:04X}", byte);
    else quoted += character;
    text.remove_prefix(character.size());
  }
  return quoted + '"';
}

}  // namespace tandem::base
