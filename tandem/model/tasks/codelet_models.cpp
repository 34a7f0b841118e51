// tandem/model/tasks/codelet_models.cpp: writing models as TOML, and reading untrusted files.
#include "tandem/model/tasks/codelet_models.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tandem/base/number_of.hpp"
#include "tandem/base/toml_file.hpp"

namespace tandem::model {
namespace {

using base::Error;
using base::ErrorCode;
using base::number_of;

constexpr std::string_view kRowPrefix = "durations.";
// not the quote, the backslash and the percent sign
constexpr std::string_view kReadable = " !#$&'()*+,-./:;<=>?@[]^_`{|}~";
constexpr double kGreatestUs = 1e15;  // thirty years

/// Cuts off the part of `path` behind its last slash and returns it; empty: there is no slash.
std::optional<std::string_view> cut_last(std::string_view& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == path.npos) return {};
  const std::string_view part = path.substr(slash + 1);
  path = path.substr(0, slash);
  return part;
}

struct Row {
  WorkKind kind;
  Footprint footprint;
  History::Summary summary;
};

/// Reads "cpu/0/0/6291456" or "cpu/0/0/6291456/5d1e0a4b".
bool read_key(std::string_view key, Row& row) {
  const auto slashes = std::count(key.begin(), key.end(), '/');
  std::optional<std::uint64_t> shape;
  if (slashes == 4) {
    shape = number_of<std::uint64_t>(*cut_last(key), 16);
    if (!shape) return false;
  } else if (slashes != 3) {
    return false;
  }
  const auto bytes = number_of<std::uint64_t>(*cut_last(key));
  const auto distance = number_of<std::uint32_t>(*cut_last(key));
  const auto implementation = number_of<std::uint32_t>(*cut_last(key));
  if (!bytes || !distance || !implementation || key.empty()) return false;
  row.kind = {percent_decoded(key), *implementation, *distance};
  row.footprint = shape ? Footprint(*shape, *bytes) : Footprint(*bytes);
  return true;
}

/// Takes the first word; empty: there is none.
std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

/// A time in us, from `least_us` on.
std::optional<double> read_us(std::string_view word, double least_us) {
  const auto us = number_of<double>(word);
  if (!us || !(*us >= least_us && *us <= kGreatestUs)) return {};
  return us;
}

/// Reads "120 durations: 10.13 10.33 10.4 10.5 14.2", where the quantiles are positive, finite and ascend, then
/// "overall: 3480 10.41 0.2" and "suspects: 100 101", either of which may be missing.
bool read_value(std::string_view value, Row& row) {
  const auto samples = number_of<std::uint64_t>(take_word(value));
  if (!samples || *samples == 0 || take_word(value) != "durations:") return false;
  row.summary.samples = *samples;
  constexpr double least_us = 1e-3;  // a nanosecond
  double before_us = least_us;
  for (double& quantile : row.summary.quantiles) {
    const auto us = read_us(take_word(value), before_us);
    if (!us) return false;
    before_us = *us;  // not computed back from ns, which would round: equal quantiles are usual
    quantile = *us * 1e3;
  }
  std::string_view word = take_word(value);
  if (word == "overall:") {
    const auto count = number_of<std::uint64_t>(take_word(value));
    const auto mean_us = read_us(take_word(value), least_us), deviation_us = read_us(take_word(value), 0);
    if (!count || *count == 0 || *count > *samples || !mean_us || !deviation_us) return false;
    row.summary.overall = {.count = *count, .mean_ns = *mean_us * 1e3, .deviation_ns = *deviation_us * 1e3};
    word = take_word(value);
  }
  if (word.empty()) return true;
  if (word != "suspects:") return false;
  for (word = take_word(value); !word.empty(); word = take_word(value)) {
    const auto us = read_us(word, least_us);
    if (!us || row.summary.suspect_count + 1 == History::kSuspects) return false;
    row.summary.suspects[row.summary.suspect_count++] = *us * 1e3;
  }
  return true;
}

}  // namespace

void CodeletModels::add_news_of(const CodeletModels& other) {
  for (const auto& [kind, sizes] : other.kinds)
    if (sizes.has_news()) kinds[kind].add_news_of(sizes);
}

std::string to_text(const CodeletModels& models, std::string_view machine) {
  std::string rows;
  std::size_t count = 0;
  for (const auto& [kind, sizes] : models.kinds) {
    std::vector<const SizeModel::Entry*> entries;
    for (const SizeModel::Entry& entry : sizes.entries()) entries.push_back(&entry);
    std::stable_sort(entries.begin(), entries.end(),
                     [](const auto* a, const auto* b) { return a->footprint.bytes < b->footprint.bytes; });
    for (const SizeModel::Entry* const entry : entries) {
      const auto& [shape, bytes] = entry->footprint;
      const History::Summary summary = entry->history.summary();
      if (summary.samples == 0) continue;
      const auto us = [&](std::size_t i) { return summary.quantiles[i] / 1e3; };
      std::string more;
      if (const auto& all = summary.overall)
        more = fmt::format(" overall: {} {:.6g} {:.4g}", all->count, all->mean_ns / 1e3, all->deviation_ns / 1e3);
      if (summary.suspect_count > 0) more += " suspects:";
      for (unsigned i = 0; i < summary.suspect_count; ++i) more += fmt::format(" {:.6g}", summary.suspects[i] / 1e3);
      rows += fmt::format("\"{}/{}/{}/{}{}\" = \"{} durations: {:.6g} {:.6g} {:.6g} {:.6g} {:.6g}{}\"\n",
                          percent_encoded(kind.worker, " ()-_."), kind.implementation, kind.distance, bytes,
                          shape != bytes ? fmt::format("/{:x}", shape) : "", summary.samples, us(0), us(1), us(2),
                          us(3), us(4), more);
      ++count;
    }
  }
  return fmt::format(
      "# How long tasks of one codelet take on this machine, as Tandem has learnt it. `tandem models show` prints it.\n"
      "# A row: WORKER/IMPLEMENTATION/DISTANCE/BYTES/SHAPE = durations: least, quartiles, greatest of the last ones, "
      "number, mean and standard deviation of all, and suspects, in us.\n"
      "format = 1\nmachine = \"{}\"\ncodelet = \"{}\"\nrows = {}\n\n[durations]\n{}",
      percent_encoded(machine, kReadable), percent_encoded(models.codelet, kReadable), count, rows);
}

base::Result<CodeletModels> parse_models(std::string_view text, std::string_view file, std::string_view machine) {
  const auto damaged = [&](const std::string& why) {
    return Error{ErrorCode::malformed, fmt::format("{}: {}; remove it, or let `tandem models prune` do so", file, why)};
  };
  const auto read = base::parse_toml(text, file);
  if (!read.ok()) return damaged("is damaged (" + read.error().message + ")");
  CodeletModels models;
  std::optional<std::uint64_t> rows;
  std::optional<std::string> of_machine, codelet, format;
  std::uint64_t found = 0;
  for (const base::TomlValue& value : read.value()) {
    if (value.name == "format") format = value.text;
    else if (value.name == "machine") of_machine = percent_decoded(value.text);
    else if (value.name == "codelet") codelet = percent_decoded(value.text);
    else if (value.name == "rows") rows = number_of<std::uint64_t>(value.text);
    if (!value.name.starts_with(kRowPrefix)) continue;
    Row row;
    if (!read_key(std::string_view(value.name).substr(kRowPrefix.size()), row) || !read_value(value.text, row))
      return damaged(fmt::format("line {} holds no durations", value.line));
    models.kinds[row.kind].set(row.footprint, History::restore(row.summary));
    ++found;
  }
  if (format && *format != "1")
    return Error{ErrorCode::unsupported, fmt::format("{}: has format {}, and this version of Tandem reads format 1",
                                                     file, percent_encoded(*format, kReadable))};
  if (!format || !of_machine || !codelet || codelet->empty() || !rows)
    return damaged("is no file of models, or is truncated");
  if (!machine.empty() && *of_machine != machine)
    return Error{ErrorCode::unsupported, fmt::format("{}: is of another machine ('{}', and this one is '{}')", file,
                                                     percent_encoded(*of_machine, kReadable), machine)};
  if (*rows != found) return damaged(fmt::format("is truncated: it has {} of {} rows", found, *rows));
  models.codelet = *std::move(codelet);
  return models;
}

std::string percent_encoded(std::string_view name, std::string_view also) {
  std::string text;
  for (const char c : name) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || also.find(c) != also.npos;
    if (plain) text += c;
    else text += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return text;
}

std::string percent_decoded(std::string_view text) {
  std::string name;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte =
        text[i] == '%' && i + 2 < text.size() ? number_of<std::uint8_t>(text.substr(i + 1, 2), 16) : std::nullopt;
    name += byte ? static_cast<char>(*byte) : text[i];
    if (byte) i += 2;
  }
  return name;
}

}  // namespace tandem::model
