// tandem/dist/flow_sketch.cpp: writes, reads and compares sketches, and puts the difference into words.
#include "tandem/dist/flow_sketch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tandem/base/narrow.hpp"
#include "tandem/dist/flat_bytes.hpp"
#include "tandem/runtime/task/describe.hpp"

namespace tandem::dist {

// --- an operation

std::string FlowOperation::described(const std::function<std::string(std::uint32_t)>& name) const {
  const std::string datum = accesses.empty() ? "data" : name(accesses.front().second);
  const std::string at =
      file.empty() ? std::string() : fmt::format(" (at {}:{})", file.substr(file.rfind('/') + 1), line);
  switch (kind) {
    case OperationKind::other: return "an operation" + at;
    case OperationKind::task: break;
    case OperationKind::fetch:
      return executor == kEverywhere ? fmt::format("a fetch{} of {} to all ranks", at, datum)
                                     : fmt::format("a fetch{} of {} to rank {}", at, datum, executor);
    case OperationKind::migrate: return fmt::format("a migration{} of {} to rank {}", at, datum, executor);
    case OperationKind::flush: return fmt::format("a flush{} of {}", at, datum);
    case OperationKind::home: return fmt::format("the end of the flow, which brings {} to its owner", datum);
    case OperationKind::wait: return "the end of the flow";
  }
  std::string text = executor == kEverywhere ? fmt::format("a task{} for all ranks", at)
                                             : fmt::format("a task{} for rank {}", at, executor);
  for (std::size_t i = 0; i < accesses.size(); ++i)
    text += fmt::format("{} {} of {}", i == 0 ? " with" : ",", name_of(accesses[i].first), name(accesses[i].second));
  if (uses > accesses.size()) text += fmt::format(" and {} more", uses - accesses.size());
  return text;
}

void FlowOperation::write(FlatWriter& writer) const {
  writer.number(static_cast<std::uint64_t>(kind)).number(executor).text(file).number(line).number(uses).number(accesses.size());
  for (const auto& [mode, id] : accesses) writer.number(static_cast<std::uint64_t>(mode)).number(id);
}

FlowOperation FlowOperation::from(FlatReader& reader) {
  FlowOperation operation;
  operation.kind = static_cast<OperationKind>(reader.number());
  operation.executor = base::saturated<std::uint32_t>(reader.number());
  operation.file = reader.text();
  operation.line = base::saturated<std::uint32_t>(reader.number());
  operation.uses = static_cast<std::size_t>(reader.number());
  const std::uint64_t count = reader.number();
  for (std::uint64_t i = 0; i < count && reader.more(); ++i) {
    const auto mode = static_cast<AccessMode>(reader.number());
    operation.accesses.emplace_back(mode, base::saturated<std::uint32_t>(reader.number()));
  }
  return operation;
}

// --- a sketch

std::optional<std::uint64_t> FlowSketch::digest_at(std::uint64_t at) const {
  if (at == start) return 0;
  if (at > position || at < start) return {};
  if (const std::uint64_t back = position - at; back < digests.size()) return digests[digests.size() - 1 - back];
  const auto known =
      std::lower_bound(checkpoints.begin(), checkpoints.end(), std::pair<std::uint64_t, std::uint64_t>(at, 0));
  if (known == checkpoints.end() || known->first != at) return {};
  return known->second;
}

const FlowOperation* FlowSketch::operation_at(std::uint64_t at) const {
  if (at > position || position - at >= operations.size()) return nullptr;
  return &operations[operations.size() - 1 - (position - at)];
}

void FlowSketch::write(FlatWriter& writer) const {
  writer.number(rank).number(start).number(position).number(checkpoints.size());
  for (const auto& [at, digest] : checkpoints) writer.number(at).number(digest);
  // Most operations are in few files, so each name is sent once.
  std::map<std::string, std::uint64_t> files;
  for (const FlowOperation& operation : operations) files.emplace(operation.file, 0);
  writer.number(files.size());
  std::uint64_t next = 0;
  for (auto& [file, number] : files) {
    writer.text(file);
    number = next++;
  }
  writer.number(operations.size());
  for (std::size_t i = 0; i < operations.size(); ++i) {
    FlowOperation bare = operations[i];
    writer.number(digests[i]).number(files.at(bare.file));
    bare.file.clear();
    bare.write(writer);
  }
}

FlowSketch FlowSketch::from(FlatReader& reader) {
  FlowSketch sketch;
  sketch.rank = reader.number();
  sketch.start = reader.number();
  sketch.position = reader.number();
  std::uint64_t count = reader.number();
  for (std::uint64_t i = 0; i < count && reader.more(); ++i) {
    const std::uint64_t at = reader.number();
    sketch.checkpoints.emplace_back(at, reader.number());
  }
  std::vector<std::string> files;
  count = reader.number();
  for (std::uint64_t i = 0; i < count && reader.more(); ++i) files.push_back(reader.text());
  count = reader.number();
  for (std::uint64_t i = 0; i < count && reader.more(); ++i) {
    sketch.digests.push_back(reader.number());
    const std::uint64_t file = reader.number();
    sketch.operations.push_back(FlowOperation::from(reader));
    if (file < files.size()) sketch.operations.back().file = files[file];
  }
  return sketch;
}

// --- the difference

FlowDifference first_difference(const FlowSketch& a, const FlowSketch& b) {
  FlowDifference none;
  if (a.start != b.start) return none;
  const std::uint64_t end = std::min(a.position, b.position);
  // Both ranks know the digests at these positions: the checkpoints of either, and the operations that either has kept.
  std::uint64_t equal = a.start;
  const auto differs = [&](std::uint64_t at) {
    const auto of_a = a.digest_at(at), of_b = b.digest_at(at);
    if (!of_a || !of_b) return false;
    if (*of_a == *of_b) equal = std::max(equal, at);
    return *of_a != *of_b;
  };
  std::vector<std::uint64_t> known;
  for (const FlowSketch* sketch : {&a, &b}) {
    for (const auto& [at, digest] : sketch->checkpoints) known.push_back(at);
    for (std::uint64_t back = 0; back < sketch->digests.size(); ++back) known.push_back(sketch->position - back);
  }
  std::sort(known.begin(), known.end());
  const auto found = std::find_if(known.begin(), known.end(),
                                  [&](std::uint64_t at) { return at <= end && differs(at); });
  if (found == known.end()) return none;
  FlowDifference difference{.first = equal + 1, .last = *found, .ranks = {a.rank, b.rank}, .operations = {}};
  const FlowOperation *of_a = a.operation_at(*found), *of_b = b.operation_at(*found);
  if (difference.first == difference.last && of_a != nullptr && of_b != nullptr) {
    difference.operations[0] = *of_a;
    difference.operations[1] = *of_b;
  }
  return difference;
}

std::string FlowDifference::described(const std::function<std::string(std::uint32_t)>& name) const {
  if (first != last)
    return fmt::format("the first difference between ranks {} and {} is one of operations {} to {}", ranks[0], ranks[1],
                       first, last);
  return fmt::format("the first difference is operation {}: rank {} has submitted {}, rank {} has submitted {}", first,
                     ranks[0], operations[0].described(name), ranks[1], operations[1].described(name));
}

void FlowDifference::write(FlatWriter& writer) const {
  writer.number(first).number(last).number(ranks[0]).number(ranks[1]);
  for (const FlowOperation& operation : operations) operation.write(writer);
}

FlowDifference FlowDifference::from(FlatReader& reader) {
  FlowDifference difference;
  difference.first = reader.number();
  difference.last = reader.number();
  for (std::uint64_t& rank : difference.ranks) rank = reader.number();
  for (FlowOperation& operation : difference.operations) operation = FlowOperation::from(reader);
  return difference;
}

}  // namespace tandem::dist
