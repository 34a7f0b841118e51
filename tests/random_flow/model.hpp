// tests/random_flow/model.hpp: the sequential interpreter: what every schedule of a random flow must lead to.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "arithmetic.hpp"

namespace tandem::random_flow {

/// A kernel that threw.
struct Failure {
  std::string label;
  std::uint64_t position = 0;
  std::uint64_t last_cancelled = 0;
  std::uint64_t thrown_until = 0;
};

/// Runs tasks one after the other, as they are submitted, and keeps the rules for failures:
///
/// - A task whose input does not exist is cancelled; its outputs do not exist, because of the earliest failure among
///   its inputs.
/// - Tasks of one group of commuting or reducing accesses do not stop each other; what comes after the group sees their
///   failures.
/// - A version that is written without being looked at exists again.
/// - A wait throws the earliest failure that no wait has thrown, or that has since cancelled something.
class Model {
 public:
  struct Datum {
    std::vector<std::uint64_t> cells;
    std::size_t rows = 0;
    std::size_t cols = 0;
    bool has_value = false;
    bool reducing = false;     ///< a group of reductions is open
    Failure* poison = nullptr;
    bool in_group = false;     ///< the poison was made by the last group, and no task after it has seen it yet
    Cells view() { return {cells.data(), rows, cols, rows}; }
  };

  /// One more datum; its number.
  unsigned add(std::size_t rows, std::size_t cols, bool has_value);
  Datum& datum(unsigned number) { return data_[number]; }
  const Datum& datum(unsigned number) const { return data_[number]; }

  /// One task, at the next position. `after`: the failure among the tasks that it explicitly follows, or null. Returns
  /// why it failed or was cancelled, or null.
  Failure* run(TaskSpec& spec, const std::vector<Use>& uses, std::uint64_t factor, Fault fault, Failure* after);

  /// Ends an open group of reductions. Returns why the result does not exist, or null.
  Failure* close(unsigned number);
  void close_all();

  /// Where a part, a datum of its own, lies in the whole.
  struct PartPlace {
    unsigned number = 0;
    std::size_t row = 0;
    std::size_t col = 0;
  };
  /// The parts are as the whole is.
  void split(unsigned whole, const std::vector<PartPlace>& parts);
  /// The whole is as the parts are: it does not exist if one of them does not.
  void gather(unsigned whole, const std::vector<PartPlace>& parts);

  /// What `wait()` throws, or null.
  Failure* wait_all();
  /// The application sees the datum. What that throws, or null.
  Failure* see(unsigned number);
  /// The application writes the datum: it exists.
  void overwrite(unsigned number);
  /// A wait throws `failure` (or null).
  Failure* throws(Failure* failure);
  /// How a task or replay under `key` ended; asked for by those that come after it, until the next `wait_all`.
  void note_end(unsigned key, Failure* failure) {
    if (failure != nullptr) ends_[key] = failure;
  }
  Failure* end_of(unsigned key) const;

  static Failure* earliest(Failure* a, Failure* b) {
    return a == nullptr || (b != nullptr && b->position < a->position) ? b : a;
  }

 private:
  Failure* look(const Use& use);
  void spoil(const std::vector<Use>& uses, Failure* failure);
  template <class Move>
  void for_each_cell(unsigned whole, const PartPlace& part, const Move& move);

  std::uint64_t now_ = 0;
  std::deque<Datum> data_;
  std::deque<Failure> failures_;
  std::map<unsigned, Failure*> ends_;
};

}  // namespace tandem::random_flow
