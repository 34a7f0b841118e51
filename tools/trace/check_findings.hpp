// tools/trace/check_findings.hpp: shared by the parts of `tandem trace check`: broken promises, and which events were
// recorded.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "tandem/trace/read/reader.hpp"
#include "tandem/trace/selection.hpp"
#include "tools/trace/check.hpp"

namespace tandem::tools {

/// Collects broken promises, each with its cases.
class Findings {
 public:
  void add(const std::string& promise, std::string example) {
    auto found = std::ranges::find(violations_, promise, &Violation::promise);
    if (found == violations_.end())
      found = violations_.insert(found, Violation{.promise = promise, .count = 0, .examples = {}});
    ++found->count;
    if (found->examples.size() < most_examples) found->examples.push_back(std::move(example));
  }
  std::vector<Violation> take() { return std::move(violations_); }

 private:
  static constexpr std::size_t most_examples = 5;
  std::vector<Violation> violations_;
};

/// The types of which a rank's trace has all events from the program's begin to its end, so that their counts can be
/// checked. Read-only once made.
class Recorded {
 public:
  /// `selection_changed`: the rank's streams hold a `tracer.selection`.
  Recorded(const trace::RankTrace& rank, bool selection_changed);

  /// The reason why a check that needs all events of these types is impossible; empty: it is possible.
  std::string gap(std::initializer_list<trace::Type> types) const;
  bool has(std::initializer_list<trace::Type> types) const { return gap(types).empty(); }
  /// Whether an actor whose stream is complete has all events of these types, whatever other actors have lost.
  bool selects(std::initializer_list<trace::Type> types) const {
    return selection_gap_.empty() && unselected(types).empty();
  }
  const std::string& selection_gap() const noexcept { return selection_gap_; }
  /// False: the program was killed, so that spans may have no end.
  bool ended() const noexcept { return ended_; }

 private:
  std::string unselected(std::initializer_list<trace::Type> types) const;

  trace::Selection selection_;
  std::string selection_gap_, stream_gap_;  ///< of all types
  bool ended_ = false;
};

/// Adds one rank's counts to the account called `name`. `counts`: name and number of each.
void add_to_account(TraceCheck& result, const std::string& name,
                    const std::vector<std::pair<std::string, std::uint64_t>>& counts);
/// Notes that one rank's share of an account could not be checked.
void skip_account(TraceCheck& result, const std::string& name, std::uint32_t rank, const std::string& why);

}  // namespace tandem::tools
