// tools/json/json.hpp: JSON values for reports. nlohmann-json reads and writes their text; only json.cpp includes it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tandem::tools {

class JsonWriter;

/// Greatest integer that is exact in the JSON of JavaScript, jq and others that have floating-point numbers only.
inline constexpr std::uint64_t greatest_exact = (std::uint64_t{1} << 53) - 1;

/// Null, a boolean, a number, a text, an array or an object, whose members keep their order. A value: copies are
/// independent.
///
/// A list in braces is an object if each of its elements is a pair of a text and a value, else an array: {{"n", 4},
/// {"nb", 2}}.
class Json {
 public:
  struct Member;
  using Array = std::vector<Json>;
  using Object = std::vector<Member>;

  Json() noexcept;  ///< null
  Json(std::nullptr_t) noexcept;
  Json(bool value) noexcept;
  Json(int value) noexcept;
  Json(unsigned value) noexcept;
  Json(long value) noexcept;
  Json(unsigned long value) noexcept;
  Json(long long value) noexcept;
  Json(unsigned long long value) noexcept;
  Json(double value) noexcept;
  Json(const char* text);
  Json(std::string text);
  Json(std::string_view text);
  Json(std::initializer_list<Json> elements);
  template <class T>
  Json(const std::vector<T>& values) : Json(array()) {
    for (const T& value : values) push_back(value);
  }
  template <class T>
  Json(const std::map<std::string, T>& values) : Json(object()) {
    for (const auto& [key, value] : values) (*this)[key] = value;
  }
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();

  /// The number, or beyond `greatest_exact` a text of its digits, so that no reader rounds it: for tags and ids.
  static Json exact(std::uint64_t number);
  static Json array();   ///< []
  static Json object();  ///< {}
  /// Parses a text; empty if it is no JSON.
  static std::optional<Json> parse(std::string_view text);

  bool is_null() const noexcept;
  bool is_object() const noexcept;
  bool is_array() const noexcept;
  bool is_text() const noexcept;
  bool is_number() const noexcept;
  bool is_unsigned() const noexcept;  ///< a whole number from 0

  // The value; its type must match.
  double number() const;
  std::uint64_t unsigned_number() const;
  const std::string& text() const;
  std::vector<double> numbers() const;  ///< of an array of numbers

  /// The elements of an array; none of any other value.
  const Json* begin() const noexcept;
  const Json* end() const noexcept;
  Json* begin() noexcept;
  Json* end() noexcept;
  bool empty() const noexcept;               ///< an array or object without elements, or null
  const Json& at(std::size_t index) const;   ///< of an array that has it
  void push_back(Json value);                ///< null becomes an array

  /// The members of an object; none of any other value. O(members) each.
  const Object& members() const noexcept;
  bool contains(std::string_view key) const noexcept;
  const Json* find(std::string_view key) const noexcept;  ///< null pointer if there is no such member
  Json& operator[](std::string_view key);                 ///< adds the member if there is none; null becomes an object
  const Json& operator[](std::string_view key) const;     ///< of an object that has it
  /// Sets all members of `other`, an object.
  void update(const Json& other);

  /// The text, in one line, or indented by `indent` spaces. Bytes that are not UTF-8 become U+FFFD.
  std::string dump(int indent = -1) const;

  friend bool operator==(const Json& a, const Json& b);

 private:
  friend class JsonWriter;
  std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string, Array, Object> value_;
};

struct Json::Member {
  std::string key;
  Json value;
};

}  // namespace tandem::tools
