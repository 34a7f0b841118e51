// tests/dist_flow/random_operation.hpp: one operation of a random flow, and what its kernel computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tandem/runtime/data/access.hpp"

namespace tandem::dist_test {

using Word = std::uint64_t;
using Values = std::vector<Word>;

enum class Kind { task, fetch, fetch_everywhere, migrate, flush, message, wait, look, write_at_owner, replace };

struct Operation {
  Kind kind = Kind::task;
  std::vector<unsigned> data;  ///< of a task: what it sees first, then what it writes
  std::vector<AccessMode> modes;
  Word factor = 0;
  int priority = 0;
  std::optional<std::uint32_t> on;
  bool throws = false;
  bool cancels = false;                          ///< a task: its kernel ends the flow
  std::optional<std::uint32_t> cancelled_by;     ///< whose program ends the flow after it
};

constexpr unsigned kMostUses = 3;

/// What a task throws that fails at `position` of the plan.
std::string label(std::size_t position);

/// What a kernel does: the same for the runtime and for the oracle.
void compute(Word factor, std::span<const std::span<const Word>> seen, AccessMode mode, std::span<Word> written);
/// The part of an object's value that a task with `factor` computes. The size changes; commuting accesses give the same
/// size in any order.
std::span<Word> resized(Word factor, AccessMode mode, Values& values);

}  // namespace tandem::dist_test
