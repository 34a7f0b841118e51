// tandem/dist/flow_reports.cpp: converts reports to bytes, and merges them.
#include "tandem/dist/flow_reports.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tandem/dist/flat_bytes.hpp"

namespace tandem::dist {

using Bytes = std::vector<std::byte>;

Bytes StartReport::bytes() const {
  FlatWriter writer;
  return writer.number(copy_bytes).number(traced).number(workers).number(budgets).take();
}

StartReport StartReport::from(std::span<const std::byte> bytes) {
  FlatReader reader(bytes);
  StartReport report;
  for (std::uint64_t* number : {&report.copy_bytes, &report.traced, &report.workers, &report.budgets})
    *number = reader.number();
  return report;
}

void StartReport::merge(Bytes& into, std::span<const std::byte> from) {
  StartReport a = StartReport::from(into);
  const StartReport b = StartReport::from(from);
  a.copy_bytes = std::min(a.copy_bytes, b.copy_bytes);
  a.traced &= b.traced;
  a.workers = std::max(a.workers, b.workers);
  a.budgets |= b.budgets;
  into = a.bytes();
}

Bytes FlowReport::bytes() const {
  FlatWriter writer;
  for (const std::uint64_t number : {rank, positions, end, data, data_digest, digest, pruned}) writer.number(number);
  return writer.text(difference).take();
}

FlowReport FlowReport::from(std::span<const std::byte> bytes) {
  FlatReader reader(bytes);
  FlowReport report;
  for (std::uint64_t* number : {&report.rank, &report.positions, &report.end, &report.data, &report.data_digest,
                                &report.digest, &report.pruned})
    *number = reader.number();
  report.difference = reader.text();
  return report;
}

void FlowReport::merge(Bytes& into, std::span<const std::byte> from) {
  FlowReport a = FlowReport::from(into);
  FlowReport b = FlowReport::from(from);
  if (b.rank < a.rank) std::swap(a, b);
  if (a.difference.empty()) a.difference = b.difference;
  const bool comparable = a.pruned == 0 && b.pruned == 0;
  if (a.difference.empty()) {
    if (a.data != b.data)
      a.difference =
          fmt::format("rank {} has registered {} data, rank {} has registered {}", a.rank, a.data, b.rank, b.data);
    else if (a.positions != b.positions)
      a.difference = fmt::format("rank {} has submitted {} operations, rank {} has submitted {}{}", a.rank, a.positions,
                                 b.rank, b.positions, comparable ? "" : ", with those that were skipped");
    else if (a.data_digest != b.data_digest)
      a.difference = fmt::format("ranks {} and {} have registered as many data, but not the same", a.rank, b.rank);
    else if (comparable && a.digest != b.digest)
      a.difference = fmt::format("ranks {} and {} have submitted as many operations, but not the same", a.rank, b.rank);
  }
  a.pruned |= b.pruned;
  a.end = std::max(a.end, b.end);
  into = a.bytes();
}

void VersionReport::write(FlatWriter& writer) const {
  writer.number(rank).number(datum).number(versions[0]).number(versions[1]).number(ranks[0]).number(ranks[1]);
  writer.number(counts.size());
  for (const auto& [id, version] : counts) writer.number(id).number(version);
}

VersionReport VersionReport::from(FlatReader& reader) {
  VersionReport report;
  report.rank = reader.number();
  report.datum = reader.number();
  for (std::uint64_t& version : report.versions) version = reader.number();
  for (std::uint64_t& rank : report.ranks) rank = reader.number();
  const std::uint64_t count = reader.number();
  for (std::uint64_t i = 0; i < count && reader.more(); ++i) {
    const std::uint64_t id = reader.number();
    report.counts.emplace_back(id, reader.number());
  }
  return report;
}

void VersionReport::merge(VersionReport other) {
  VersionReport& a = *this;
  VersionReport& b = other;
  if (b.rank < a.rank) std::swap(a, b);
  if (b.datum < a.datum) {
    a.datum = b.datum;
    std::copy(b.versions, b.versions + 2, a.versions);
    std::copy(b.ranks, b.ranks + 2, a.ranks);
  }
  auto theirs = b.counts.begin();
  for (const auto& [id, version] : a.counts) {
    while (theirs != b.counts.end() && theirs->first < id) ++theirs;
    if (theirs == b.counts.end() || id >= a.datum) break;
    if (theirs->first != id || theirs->second == version) continue;
    a.datum = id;
    a.versions[0] = version;
    a.versions[1] = theirs->second;
    a.ranks[0] = a.rank;
    a.ranks[1] = b.rank;
    break;
  }
}

Bytes DifferenceReport::bytes() const {
  FlatWriter writer;
  versions.write(writer);
  sketch.write(writer);
  operation.write(writer);
  return writer.take();
}

DifferenceReport DifferenceReport::from(std::span<const std::byte> bytes) {
  FlatReader reader(bytes);
  DifferenceReport report;
  report.versions = VersionReport::from(reader);
  report.sketch = FlowSketch::from(reader);
  report.operation = FlowDifference::from(reader);
  return report;
}

void DifferenceReport::merge(Bytes& into, std::span<const std::byte> from) {
  DifferenceReport a = DifferenceReport::from(into);
  DifferenceReport b = DifferenceReport::from(from);
  if (b.sketch.rank < a.sketch.rank) std::swap(a, b);
  for (const FlowDifference& found : {b.operation, first_difference(a.sketch, b.sketch)})
    if (found.exists() && (!a.operation.exists() || found.first < a.operation.first)) a.operation = found;
  a.versions.merge(std::move(b.versions));
  into = a.bytes();
}

Bytes Outcome::bytes() const {
  FlatWriter writer;
  writer.number(failure).number(cancelled).number(traced).number(failed_on).text(description);
  for (const std::uint64_t value : least) writer.number(value);
  return writer.take();
}

Outcome Outcome::from(std::span<const std::byte> bytes) {
  FlatReader reader(bytes);
  Outcome outcome;
  for (std::uint64_t* number : {&outcome.failure, &outcome.cancelled, &outcome.traced, &outcome.failed_on})
    *number = reader.number();
  outcome.description = reader.text();
  while (reader.more()) outcome.least.push_back(reader.number());
  return outcome;
}

void Outcome::merge(Bytes& into, std::span<const std::byte> from) {
  Outcome a = Outcome::from(into);
  Outcome b = Outcome::from(from);
  if (b.failure < a.failure || (b.failure == a.failure && b.failed_on < a.failed_on)) {
    a.failure = b.failure;
    a.failed_on = b.failed_on;
    a.description = b.description;
  }
  a.cancelled |= b.cancelled;
  a.traced &= b.traced;
  a.least.resize(std::max(a.least.size(), b.least.size()), 0);
  for (std::size_t i = 0; i < b.least.size(); ++i)
    if (b.least[i] != 0 && (a.least[i] == 0 || b.least[i] < a.least[i])) a.least[i] = b.least[i];
  into = a.bytes();
}

}  // namespace tandem::dist
