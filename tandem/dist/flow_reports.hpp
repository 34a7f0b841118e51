// tandem/dist/flow_reports.hpp: what ranks compare at the start of a flow and at its end. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tandem/dist/flow_sketch.hpp"

namespace tandem::dist {

// Each report becomes bytes, is made of bytes, and merges with another rank's, as `Agreement` needs.

/// At the start. Of several ranks the smallest budget, the most workers, and whether all are traced.
struct StartReport {
  std::uint64_t copy_bytes = 0;
  std::uint64_t traced = 0;  ///< all are
  std::uint64_t workers = 0;
  std::uint64_t budgets = 0;  ///< main memory of some rank has a budget

  std::vector<std::byte> bytes() const;
  static StartReport from(std::span<const std::byte> bytes);
  static void merge(std::vector<std::byte>& into, std::span<const std::byte> from);
};

/// At a wait: what a rank has submitted. Merging two that differ writes the difference in words. Operations are compared only
/// where neither rank has skipped tasks.
struct FlowReport {
  std::uint64_t rank = 0;
  std::uint64_t positions = 0;    ///< operations of the program
  std::uint64_t end = 0;          ///< the last position, data on their way home included; of several ranks the greatest
  std::uint64_t data = 0;
  std::uint64_t data_digest = 0;
  std::uint64_t digest = 0;
  std::uint64_t pruned = 0;       ///< some rank has skipped tasks
  std::string difference;

  std::vector<std::byte> bytes() const;
  static FlowReport from(std::span<const std::byte> bytes);
  static void merge(std::vector<std::byte>& into, std::span<const std::byte> from);
};

/// When flows differ: how often each datum that still exists was written on a rank, and the first on which two ranks differ.
struct VersionReport {
  static constexpr std::uint64_t kNone = UINT64_MAX;
  std::uint64_t rank = 0;
  std::uint64_t datum = kNone;      ///< the least id on which ranks differ
  std::uint64_t versions[2] = {};   ///< of it
  std::uint64_t ranks[2] = {};
  std::vector<std::pair<std::uint64_t, std::uint64_t>> counts;  ///< ids, in their order, and versions

  void write(FlatWriter& writer) const;
  static VersionReport from(FlatReader& reader);
  /// Takes in what another rank reports.
  void merge(VersionReport other);
};

/// When flows differ, in addition: the first operation on which they do. Of several ranks the sketch of the lowest one.
struct DifferenceReport {
  VersionReport versions;
  FlowSketch sketch;
  FlowDifference operation;

  std::vector<std::byte> bytes() const;
  static DifferenceReport from(std::span<const std::byte> bytes);
  static void merge(std::vector<std::byte>& into, std::span<const std::byte> from);
};

/// At the end of a wait: the failure that is earliest in the flow, whether the flow was cancelled, and the smallest numbers.
struct Outcome {
  std::uint64_t failure = UINT64_MAX;
  std::uint64_t cancelled = 0;
  std::uint64_t traced = 0;  ///< all ranks are, and have not compared their clocks
  std::uint64_t failed_on = 0;  ///< the rank where it happened
  std::string description;
  std::vector<std::uint64_t> least;  ///< that are not 0

  std::vector<std::byte> bytes() const;
  static Outcome from(std::span<const std::byte> bytes);
  static void merge(std::vector<std::byte>& into, std::span<const std::byte> from);
};

}  // namespace tandem::dist
