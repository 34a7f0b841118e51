// tandem/comm/bootstrap/address_race.hpp: which of a server's addresses to try, and when.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

namespace tandem::comm::internal {

/// Decides when a connection to each of several addresses begins, as in RFC 8305 ("happy eyeballs"). It knows addresses
/// by number alone; the caller passes times and outcomes in, and takes the first connection that succeeds.
///
/// - The first address begins at once. Each further one begins `stagger` after the one before it, or as soon as an
///   attempt fails. So an address that drops packets delays the others by `stagger` at most.
/// - An attempt that has no answer after `patience` has failed: nobody may have listened when its packets came.
/// - An address that failed is tried again after a pause, which doubles from `first_pause` to `longest_pause`: the
///   server may come later.
///
/// A value. Not thread-safe.
class AddressRace {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;
  static constexpr Duration stagger = std::chrono::milliseconds(250);
  static constexpr Duration patience = std::chrono::seconds(2);
  static constexpr Duration first_pause = std::chrono::milliseconds(5);
  static constexpr Duration longest_pause = std::chrono::milliseconds(200);

  /// What a failure says about the next attempt.
  enum class Failure {
    may_pass,  ///< nobody listens yet, or no answer came
    lasts      ///< no interface or route leads there
  };

  /// Addresses 0 to `count` - 1 take part: those that took part before, and new ones behind them.
  void grow(std::size_t count);
  /// The address whose attempt begins now and is under way from then on, if any. Callers call it until it returns none.
  std::optional<std::size_t> next(Time now);
  /// The time from which `next` may return an address though no further attempt has failed; `Time::max()`: never.
  Time wake() const;
  /// The attempt at the address has failed.
  void failed(std::size_t address, Failure failure, Time now);
  /// Every address has been tried, none is under way, and no failure will pass.
  bool is_hopeless() const;

 private:
  enum class State { fresh, under_way, pausing };
  struct Entry {
    State state = State::fresh;
    Failure failure = Failure::may_pass;
    Duration pause = first_pause;
    Time again{};  ///< while pausing
  };
  std::size_t first_fresh() const;

  std::vector<Entry> entries_;
  Time fresh_from_ = Time::min();  ///< the time from which the next untried address may begin
};

}  // namespace tandem::comm::internal
