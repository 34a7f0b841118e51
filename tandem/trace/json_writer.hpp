// tandem/trace/json_writer.hpp: writes the JSON of a trace's manifest, so that programs that record need no JSON
// library.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

namespace tandem::trace {

/// `text` in quotes, with JSON's escapes. Bytes that are not UTF-8 become U+FFFD.
std::string json_text(std::string_view text);

/// An object whose members are written in the order in which they are added.
class JsonObject {
 public:
  template <class Value>
  JsonObject& add(std::string_view name, const Value& value) {
    if (!members_.empty()) members_ += ", ";
    members_ += json_text(name);
    members_ += ": ";
    append(value);
    return *this;
  }
  /// The object as one line.
  std::string text() const { return "{" + members_ + "}"; }

 private:
  template <class Number>
    requires(std::integral<Number> || std::floating_point<Number>)
  void append(Number value) {
    members_ += fmt::format("{}", value);  // a bool becomes true or false
  }
  void append(std::string_view value) { members_ += json_text(value); }
  void append(const JsonObject& value) { members_ += value.text(); }
  template <class Element>
  void append(const std::vector<Element>& values) {
    members_ += '[';
    for (bool first = true; const Element& value : values) {
      if (!first) members_ += ", ";
      first = false;
      append(value);
    }
    members_ += ']';
  }

  std::string members_;
};

}  // namespace tandem::trace
