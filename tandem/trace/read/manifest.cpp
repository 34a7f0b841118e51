// tandem/trace/read/manifest.cpp: reads and changes rank.json, and names the wrong key.
#include "tandem/trace/read/manifest.hpp"

#include <fcntl.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tandem/trace/event.hpp"

namespace tandem::trace {

using base::Error;
using base::ErrorCode;
using base::Result;
using Json = nlohmann::ordered_json;

namespace {

constexpr std::size_t most_bytes = std::size_t{64} << 20;  ///< of rank.json, which describes up to 2^16 types of events

/// Looks up keys and remembers the first fault.
class Keys {
 public:
  Keys(const Json& root, std::filesystem::path file) : root_(root), file_(std::move(file)) {}

  /// An integer; dots in the path lead into objects: "clock.multiplier".
  std::int64_t integer(const std::string& path, std::int64_t least, std::int64_t most) {
    const Json* value = find(path);
    if (value == nullptr) return least;
    if (value->is_number_integer()) {
      const bool fits =
          !value->is_number_unsigned() || value->get<std::uint64_t>() <= std::numeric_limits<std::int64_t>::max();
      const std::int64_t number = fits ? value->get<std::int64_t>() : 0;
      if (fits && number >= least && number <= most) return number;
    }
    fail(path, "is no whole number from " + std::to_string(least) + " to " + std::to_string(most));
    return least;
  }
  std::uint64_t ticks(const std::string& path) {
    const Json* value = find(path);
    if (value == nullptr) return 0;
    if (value->is_number_unsigned()) return value->get<std::uint64_t>();
    fail(path, "is no number of ticks, a whole number that is not negative");
    return 0;
  }
  std::string text(const std::string& path) {
    const Json* value = find(path);
    if (value == nullptr) return {};
    if (value->is_string()) return value->get<std::string>();
    fail(path, "is no text");
    return {};
  }
  /// Calls `read`, for which a missing key is no error.
  template <class Read>
  auto without_error(Read read) {
    std::string before = error_;
    const auto found = read();
    error_ = std::move(before);
    return found;
  }
  /// A text; empty when there is no such key, or it is no text.
  std::string text_if_any(const std::string& path) {
    return without_error([&] { return text(path); });
  }
  /// A number; 0 when there is no such key, or it is no number.
  std::uint64_t count_if_any(const std::string& path) {
    return without_error([&] { return ticks(path); });
  }
  /// A list of texts; empty when there is no such key.
  std::vector<std::string> texts_if_any(const std::string& key) {
    std::vector<std::string> result;
    const auto found = root_.find(key);
    if (found == root_.end()) return result;
    if (!found->is_array()) fail(key, "is no list of texts");
    for (const Json& one : *found)
      if (one.is_string()) result.push_back(one.get<std::string>());
      else fail(key, "is no list of texts");
    return result;
  }
  /// A list of numbers in ascending order; empty when there is no such key.
  std::vector<unsigned> numbers_if_any(const std::string& path) {
    const Json* value = without_error([&] { return find(path); });
    std::vector<unsigned> result;
    if (value == nullptr) return result;
    if (!value->is_array()) fail(path, "is no list of numbers");
    for (const Json& one : *value)
      if (one.is_number_unsigned() && one.get<std::uint64_t>() <= UINT32_MAX) result.push_back(one.get<unsigned>());
      else fail(path, "is no list of numbers");
    std::ranges::sort(result);
    return result;
  }
  bool truth(const std::string& path) {
    const Json* value = find(path);
    if (value == nullptr) return false;
    if (value->is_boolean()) return value->get<bool>();
    fail(path, "is neither true nor false");
    return false;
  }
  void fail(const std::string& path, const std::string& what) {
    if (error_.empty()) error_ = file_.string() + ": the key '" + path + "' " + what;
  }
  const std::string& error() const noexcept { return error_; }

 private:
  const Json* find(const std::string& path) {
    const Json* value = &root_;
    std::istringstream parts(path);
    for (std::string part; std::getline(parts, part, '.');) {
      const auto found = value->is_object() ? value->find(part) : value->end();
      if (!value->is_object() || found == value->end()) {
        fail(path, "is missing");
        return nullptr;
      }
      value = &*found;
    }
    return value;
  }

  const Json& root_;
  std::filesystem::path file_;
  std::string error_;
};

std::string_view kind_name(Field field) noexcept {
  switch (field) {
    case Field::u8: return "u8";
    case Field::u16: return "u16";
    case Field::u32: return "u32";
    case Field::u64: return "u64";
    case Field::i16: return "i16";
    case Field::i32: return "i32";
    case Field::i64: return "i64";
    case Field::f64: return "f64";
    case Field::text: return "text";
    case Field::list16: return "list16";
    case Field::list32: return "list32";
  }
  return "";
}

bool is_text(const Json& object, const char* key, std::string_view expected) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() && found->get_ref<const std::string&>() == expected;
}

/// Whether a type's description agrees with this version's table. (One that the table does not know matters only when
/// such a record comes.)
bool agrees(const Json& event) {
  if (!event.is_object() || !event.contains("type") || !event["type"].is_number_unsigned()) return false;
  const auto number = event["type"].get<std::uint64_t>();
  const EventSpec* spec = number < kTypes ? find_spec(static_cast<Type>(number)) : nullptr;
  if (spec == nullptr) return true;
  if (!event.contains("fields") || !event["fields"].is_array() || event["fields"].size() != field_count(*spec))
    return false;
  for (std::size_t i = 0; i < field_count(*spec); ++i) {
    const Json& field = event["fields"][i];
    if (!field.is_object() || !is_text(field, "name", spec->fields[i].name) ||
        !is_text(field, "kind", kind_name(spec->fields[i].field)))
      return false;
  }
  return is_text(event, "name", spec->name);
}

std::optional<Field> kind_of(const Json& object) {
  for (std::size_t i = 0; i <= static_cast<std::size_t>(Field::list32); ++i)
    if (is_text(object, "kind", kind_name(static_cast<Field>(i)))) return static_cast<Field>(i);
  return std::nullopt;
}

bool has_text(const Json& object, const char* key) { return object.contains(key) && object[key].is_string(); }

/// Learns a type that the program has declared; these are in the order of their numbers. Empty: it is none of those.
/// Else whether it is right.
std::optional<bool> learn_declared(const Json& event, DeclaredTypes& declared) {
  if (!event.is_object() || !event.contains("type") || !event["type"].is_number_unsigned()) return std::nullopt;
  const auto number = event["type"].get<std::uint64_t>();
  if (number < kFirstDeclared) return std::nullopt;
  if (!has_text(event, "name") || !event.contains("fields") || !event["fields"].is_array()) return false;
  std::vector<DeclaredTypes::FieldName> fields;
  for (const Json& field : event["fields"]) {
    const auto kind = field.is_object() ? kind_of(field) : std::nullopt;
    if (!kind || !has_text(field, "name")) return false;
    fields.emplace_back(field["name"].get_ref<const std::string&>(), *kind);
  }
  const std::size_t before = declared.size();
  const auto type = declared.add(event["name"].get_ref<const std::string&>(), fields);
  return type && declared.size() > before && static_cast<std::uint64_t>(type.value()) == number;
}

void check_events(const Json& root, DeclaredTypes& declared, Keys& keys) {
  const auto events = root.find("events");
  if (events == root.end()) return;
  if (!events->is_array()) return keys.fail("events", "is no list");
  for (const Json& event : *events) {
    if (const auto learnt = learn_declared(event, declared)) {
      if (!*learnt)
        return keys.fail(
            "events",
            "describes a type of the program's own that is none: its number, its name or its fields are wrong");
      continue;
    }
    if (!agrees(event))
      return keys.fail("events",
                       "describes a type of events otherwise than this version of Tandem: read the trace with "
                       "the version that wrote it");
  }
}

Result<std::string> text_of(const std::filesystem::path& file, const Result<base::OwnedFile>& opened) {
  if (!opened && opened.error().code == ErrorCode::not_found)
    return Error{ErrorCode::not_found,
                 file.string() + ": there is no such file, so that its folder is no rank's trace"};
  if (!opened) return opened.error();
  return opened.value().text(most_bytes);
}

Result<std::string> text_in(const base::OwnedFolder& folder) {
  const auto own = folder.folder(own_folder);
  return text_of(folder.path() / manifest_file, own ? own.value().file(manifest_name, O_RDONLY) : own.error());
}

Result<Json> parse(const std::string& text, const std::filesystem::path& file) {
  Json root = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) return Error{ErrorCode::malformed, file.string() + ": is no JSON object"};
  return root;
}

Result<Manifest> parse_manifest(Result<std::string> text, const std::filesystem::path& file) {
  if (!text) return text.error();
  const auto root = parse(text.value(), file);
  if (!root) return root.error();

  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t most_ns = std::int64_t{1} << 61;  // 70 years: sums of two still fit
  Keys keys(root.value(), file);
  if (const auto format = keys.integer("format", 1, most); keys.error().empty() && format != manifest_format)
    keys.fail("format", "is " + std::to_string(format) + ", and this version of Tandem reads " +
                            std::to_string(manifest_format) + ": read the trace with the version that wrote it");
  Manifest manifest;
  manifest.text = std::move(text).value();
  manifest.rank = static_cast<std::uint32_t>(keys.integer("rank", 0, UINT32_MAX - 1));
  manifest.size = static_cast<std::uint32_t>(keys.integer("size", 1, UINT32_MAX));
  manifest.process = static_cast<std::uint32_t>(keys.integer("pid", 0, INT32_MAX));
  manifest.version = keys.text("tandem");
  manifest.commit = keys.text("commit");
  manifest.job = keys.text("job");
  manifest.program = keys.text("program");
  manifest.arguments = keys.texts_if_any("arguments");
  manifest.host = keys.text("host");
  manifest.pus = keys.numbers_if_any("machine.pus");
  manifest.scale.origin_ticks = keys.ticks("clock.origin_ticks");
  manifest.scale.origin_ns = keys.integer("clock.origin_ns", -most_ns, most_ns);
  manifest.scale.multiplier = keys.integer("clock.multiplier", 1, most);
  manifest.realtime_ns = keys.integer("clock.realtime_ns", -most_ns, most_ns);
  manifest.realtime_local_ns = keys.integer("clock.realtime_local_ns", -most_ns, most_ns);
  manifest.clock_kind = keys.text_if_any("clock.kind");
  manifest.selection = keys.text_if_any("selection");
  manifest.started = keys.text_if_any("started");
  manifest.when_full = keys.text_if_any("buffers.policy");
  manifest.events = keys.count_if_any("end.events");
  manifest.lost_events = keys.count_if_any("end.lost_events");
  manifest.complete = keys.truth("complete");
  manifest.recovered = keys.truth("recovered");
  manifest.unwritten = keys.without_error([&] { return keys.truth("unwritten"); });
  check_events(root.value(), *manifest.declared, keys);
  if (!keys.error().empty()) return Error{ErrorCode::malformed, keys.error()};
  return manifest;
}

}  // namespace

Result<Manifest> Manifest::read(const std::filesystem::path& folder) {
  const auto file = folder / manifest_file;
  return parse_manifest(text_of(file, base::OwnedFile::open(file, base::Owners::anyone)), file);
}

Result<Manifest> Manifest::read(const base::OwnedFolder& folder) {
  return parse_manifest(text_in(folder), folder.path() / manifest_file);
}

Result<void> mark_recovered(const base::OwnedFolder& folder) {
  const auto file = folder.path() / manifest_file;
  const auto text = text_in(folder);
  if (!text) return text.error();
  auto root = parse(text.value(), file);
  if (!root) return root.error();
  Json changed = std::move(root).value();
  changed["complete"] = false;
  changed["recovered"] = true;
  const auto own = folder.folder(own_folder);
  if (!own) return own.error();
  return own.value().replace(manifest_name, changed.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace tandem::trace
