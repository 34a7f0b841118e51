// tools/json/json.cpp: JSON values; their text by nlohmann-json.
#include "tools/json/json.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "tandem/base/assert.hpp"

namespace tandem::tools {

using Library = nlohmann::ordered_json;

namespace {

Json from_library(const Library& value) {
  switch (value.type()) {
    case Library::value_t::object: {
      Json object = Json::object();
      for (auto member = value.begin(); member != value.end(); ++member) object[member.key()] = from_library(*member);
      return object;
    }
    case Library::value_t::array: {
      Json array = Json::array();
      for (const Library& element : value) array.push_back(from_library(element));
      return array;
    }
    case Library::value_t::string: return Json(*value.get_ptr<const std::string*>());
    case Library::value_t::boolean: return Json(*value.get_ptr<const bool*>());
    case Library::value_t::number_unsigned: return Json(*value.get_ptr<const std::uint64_t*>());
    case Library::value_t::number_integer: return Json(*value.get_ptr<const std::int64_t*>());
    case Library::value_t::number_float: return Json(*value.get_ptr<const double*>());
    default: return Json();
  }
}

}  // namespace

/// Copies a value to the library's.
class JsonWriter {
 public:
  static Library copy(const Json& json) { return std::visit(JsonWriter(), json.value_); }

  template <class T>
  Library operator()(const T& value) const { return Library(value); }
  Library operator()(const Json::Array& elements) const {
    Library::array_t array;
    for (const Json& element : elements) array.push_back(copy(element));
    return Library(std::move(array));
  }
  Library operator()(const Json::Object& members) const {
    Library::object_t object;
    for (const Json::Member& member : members) object.emplace(member.key, copy(member.value));
    return Library(std::move(object));
  }
};

Json::Json() noexcept = default;
Json::Json(std::nullptr_t) noexcept {}
Json::Json(bool value) noexcept : value_(value) {}
Json::Json(int value) noexcept : Json(static_cast<long long>(value)) {}
Json::Json(unsigned value) noexcept : value_(std::uint64_t{value}) {}
Json::Json(long value) noexcept : Json(static_cast<long long>(value)) {}
Json::Json(unsigned long value) noexcept : value_(std::uint64_t{value}) {}
Json::Json(long long value) noexcept {
  // There is one kind for each number, so that equal numbers are equal values.
  if (value < 0) value_ = std::int64_t{value};
  else value_ = static_cast<std::uint64_t>(value);
}
Json::Json(unsigned long long value) noexcept : value_(std::uint64_t{value}) {}
Json::Json(double value) noexcept : value_(value) {}
Json::Json(const char* text) : value_(std::string(text)) {}
Json::Json(std::string text) : value_(std::move(text)) {}
Json::Json(std::string_view text) : value_(std::string(text)) {}
Json::Json(std::initializer_list<Json> elements) {
  const bool is_object = std::all_of(elements.begin(), elements.end(), [](const Json& element) {
    const auto* pair = std::get_if<Array>(&element.value_);
    return pair != nullptr && pair->size() == 2 && pair->front().is_text();
  });
  if (!is_object) {
    value_ = Array(elements);
    return;
  }
  value_ = Object();
  for (const Json& element : elements) (*this)[element.at(0).text()] = element.at(1);
}
Json::Json(const Json&) = default;
Json::Json(Json&&) noexcept = default;
Json& Json::operator=(const Json&) = default;
Json& Json::operator=(Json&&) noexcept = default;
Json::~Json() = default;

Json Json::exact(std::uint64_t number) {
  return number <= greatest_exact ? Json(number) : Json(std::to_string(number));
}
Json Json::array() {
  Json json;
  json.value_ = Array();
  return json;
}

Json Json::object() {
  Json json;
  json.value_ = Object();
  return json;
}

std::optional<Json> Json::parse(std::string_view text) {
  const Library parsed = Library::parse(text, nullptr, false);
  if (parsed.is_discarded()) return std::nullopt;
  return from_library(parsed);
}

bool Json::is_null() const noexcept { return std::holds_alternative<std::nullptr_t>(value_); }
bool Json::is_object() const noexcept { return std::holds_alternative<Object>(value_); }
bool Json::is_array() const noexcept { return std::holds_alternative<Array>(value_); }
bool Json::is_text() const noexcept { return std::holds_alternative<std::string>(value_); }
bool Json::is_unsigned() const noexcept { return std::holds_alternative<std::uint64_t>(value_); }
bool Json::is_number() const noexcept {
  return is_unsigned() || std::holds_alternative<std::int64_t>(value_) || std::holds_alternative<double>(value_);
}

double Json::number() const {
  if (const auto* whole = std::get_if<std::uint64_t>(&value_)) return static_cast<double>(*whole);
  if (const auto* negative = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*negative);
  return std::get<double>(value_);
}
std::uint64_t Json::unsigned_number() const { return std::get<std::uint64_t>(value_); }
const std::string& Json::text() const { return std::get<std::string>(value_); }
std::vector<double> Json::numbers() const {
  std::vector<double> all;
  for (const Json& element : *this) all.push_back(element.number());
  return all;
}

const Json* Json::begin() const noexcept {
  const auto* elements = std::get_if<Array>(&value_);
  return elements == nullptr ? nullptr : elements->data();
}
const Json* Json::end() const noexcept {
  const auto* elements = std::get_if<Array>(&value_);
  return elements == nullptr ? nullptr : elements->data() + elements->size();
}
Json* Json::begin() noexcept { return const_cast<Json*>(std::as_const(*this).begin()); }
Json* Json::end() noexcept { return const_cast<Json*>(std::as_const(*this).end()); }
bool Json::empty() const noexcept { return begin() == end() && members().empty(); }
const Json& Json::at(std::size_t index) const { return std::get<Array>(value_).at(index); }
void Json::push_back(Json value) {
  if (is_null()) value_ = Array();
  std::get<Array>(value_).push_back(std::move(value));
}

const Json::Object& Json::members() const noexcept {
  static const Object none;
  const auto* members = std::get_if<Object>(&value_);
  return members == nullptr ? none : *members;
}
bool Json::contains(std::string_view key) const noexcept { return find(key) != nullptr; }
const Json* Json::find(std::string_view key) const noexcept {
  for (const Member& member : members())
    if (member.key == key) return &member.value;
  return nullptr;
}
Json& Json::operator[](std::string_view key) {
  if (const Json* found = find(key)) return const_cast<Json&>(*found);
  if (is_null()) value_ = Object();
  return std::get<Object>(value_).emplace_back(Member{std::string(key), Json()}).value;
}
const Json& Json::operator[](std::string_view key) const {
  const Json* const found = find(key);
  TANDEM_ASSERT(found != nullptr);
  return *found;
}
void Json::update(const Json& other) {
  for (const Member& member : other.members()) (*this)[member.key] = member.value;
}

std::string Json::dump(int indent) const {
  return JsonWriter::copy(*this).dump(indent, ' ', false, Library::error_handler_t::replace);
}

bool operator==(const Json::Member& a, const Json::Member& b) { return a.key == b.key && a.value == b.value; }
bool operator==(const Json& a, const Json& b) { return a.value_ == b.value_; }

}  // namespace tandem::tools
