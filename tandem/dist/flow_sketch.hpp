// tandem/dist/flow_sketch.hpp: a sketch of a rank's submitted operations for other ranks, and the difference between
// two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tandem/dist/flow_history.hpp"

namespace tandem::dist {

class FlatReader;
class FlatWriter;

/// One operation of one rank.
struct FlowOperation {
  OperationKind kind = OperationKind::other;
  std::uint32_t executor = 0;
  std::string file;  ///< empty: unknown
  std::uint32_t line = 0;
  std::size_t uses = 0;                                        ///< number of all uses
  std::vector<std::pair<AccessMode, std::uint32_t>> accesses;  ///< the first accesses: mode, id of the datum

  /// Text such as "a task on rank 1 (submitted at flow.cpp:12) with read of x, write of z". `name`: name of a datum by
  /// its id.
  std::string described(const std::function<std::string(std::uint32_t)>& name) const;
  void write(FlatWriter& writer) const;
  static FlowOperation from(FlatReader& reader);
};

/// The operations of one rank since the last wait of all ranks.
struct FlowSketch {
  std::uint64_t rank = 0;
  std::uint64_t start = 0;     ///< position of that wait
  std::uint64_t position = 0;  ///< position of the last operation
  std::vector<std::pair<std::uint64_t, std::uint64_t>> checkpoints;  ///< positions and digests of older operations
  std::vector<std::uint64_t> digests;  ///< digests of the last operations, the one at `position` included
  std::vector<FlowOperation> operations;  ///< the last operations, the one at `position` included

  /// Digest after the operation at a position; no value: not known.
  std::optional<std::uint64_t> digest_at(std::uint64_t at) const;
  const FlowOperation* operation_at(std::uint64_t at) const;

  void write(FlatWriter& writer) const;
  static FlowSketch from(FlatReader& reader);
};

/// The first operation on which two ranks differ.
struct FlowDifference {
  std::uint64_t first = 0;  ///< the least position at which the difference may be; 0: there is none
  std::uint64_t last = 0;   ///< the greatest such position
  std::uint64_t ranks[2] = {};
  FlowOperation operations[2];  ///< both operations, if they are known exactly

  bool exists() const noexcept { return first != 0; }
  std::string described(const std::function<std::string(std::uint32_t)>& name) const;
  void write(FlatWriter& writer) const;
  static FlowDifference from(FlatReader& reader);
};

/// Compares the submitted operations of two ranks. None: no difference up to the smaller position, or nothing to
/// compare.
FlowDifference first_difference(const FlowSketch& a, const FlowSketch& b);

}  // namespace tandem::dist
