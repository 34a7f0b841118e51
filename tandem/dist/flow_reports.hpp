// tandem/dist/flow_reports.hpp: reports that ranks compare at the start of a flow and at its end. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tandem/dist/flow_sketch.hpp"

namespace tandem::dist {

// Each report can be written to bytes, read from bytes, and merged with another rank's, as `Agreement` needs.

/// Report at the start. Merged: the smallest budget, the most workers, and whether all ranks are traced.
struct StartReport {
  std::uint64_t copy_bytes = 0;
  std::uint64_t traced = 0;  ///< all ranks are traced
  std::uint64_t workers = 0;
  std::uint64_t budgets = 0;  ///< main memory of some rank has a budget

  std::vector<std::byte> bytes() const;
  static StartReport from(std::span<const std::byte> bytes);
  static void merge(std::vector<std::byte>& into, std::span<const std::byte> from);
};

/// Report at a wait on what a rank has submitted. Merging two that differ writes the difference in words. Operations
/// are compared only if neither rank has skipped tasks.
struct FlowReport {
  std::uint64_t rank = 0;
  std::uint64_t positions = 0;    ///< operations of the program
  std::uint64_t end = 0;          ///< the last position, data on their way home included; merged: the greatest
  std::uint64_t data = 0;
  std::uint64_t data_digest = 0;
  std::uint64_t digest = 0;
  std::uint64_t pruned = 0;       ///< some rank has skipped tasks
  std::string difference;

  std::vector<std::byte> bytes() const;
  static FlowReport from(std::span<const std::byte> bytes);
  static void merge(std::vector<std::byte>& into, std::span<const std::byte> from);
};

/// Report when flows differ: how often each datum that still exists was written on a rank, and the first on which two
/// ranks differ.
struct VersionReport {
  static constexpr std::uint64_t kNone = UINT64_MAX;
  std::uint64_t rank = 0;
  std::uint64_t datum = kNone;      ///< the least id on which ranks differ
  std::uint64_t versions[2] = {};   ///< versions of that datum
  std::uint64_t ranks[2] = {};
  std::vector<std::pair<std::uint64_t, std::uint64_t>> counts;  ///< ids, in their order, and versions

  void write(FlatWriter& writer) const;
  static VersionReport from(FlatReader& reader);
  /// Merges the report of another rank.
  void merge(VersionReport other);
};

/// Further report when flows differ: the first operation on which they do. Merged: the sketch of the lowest rank.
struct DifferenceReport {
  VersionReport versions;
  FlowSketch sketch;
  FlowDifference operation;

  std::vector<std::byte> bytes() const;
  static DifferenceReport from(std::span<const std::byte> bytes);
  static void merge(std::vector<std::byte>& into, std::span<const std::byte> from);
};

/// Report at the end of a wait: the failure that is earliest in the flow, whether the flow was cancelled, and the
/// smallest numbers.
struct Outcome {
  std::uint64_t failure = UINT64_MAX;
  std::uint64_t cancelled = 0;
  std::uint64_t traced = 0;  ///< all ranks are traced, and have not compared their clocks
  std::uint64_t failed_on = 0;  ///< the rank of the failure
  std::string description;
  std::vector<std::uint64_t> least;  ///< the numbers that are not 0

  std::vector<std::byte> bytes() const;
  static Outcome from(std::span<const std::byte> bytes);
  static void merge(std::vector<std::byte>& into, std::span<const std::byte> from);
};

}  // namespace tandem::dist
