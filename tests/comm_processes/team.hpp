// tests/comm_processes/team.hpp: ranks that are processes of their own, forked by a test that may stop and kill them.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/base/log.hpp"
#include "tandem/comm/endpoint.hpp"

namespace tandem::comm_processes {

using Bytes = std::vector<std::uint8_t>;

/// Bytes that differ by seed and by place.
Bytes pattern(std::size_t bytes, unsigned seed);

inline constexpr std::size_t most_ranks = 16;

/// Memory that the test and its ranks share: cards of the ranks, how far each has come, and what went wrong.
///
/// Protocol: `card_bytes` is released after the card was written and acquired before it is read; so is `failed` for
/// `failure`. Stages and notes are sequentially consistent. A rank writes its own place only; the test reads all.
struct Board {
  struct Place {
    std::atomic<std::uint32_t> card_bytes{0};
    std::array<char, 8192> card;
    std::atomic<int> stage{0};
    std::array<std::atomic<std::int64_t>, 8> notes{};  ///< numbers that a rank leaves for the test
    std::atomic<bool> failed{false};
    std::array<char, 8192> failure;
  };
  std::array<Place, most_ranks> places;
  std::atomic<int> orders{0};               ///< a stage that the test has come to
  std::atomic<std::int64_t> killed_ns{0};   ///< steady clock, when the last signal of death was sent
};

std::int64_t steady_now_ns();

/// One rank, inside its process. A failure here ends the process, and the test reports it.
class Member {
 public:
  Member(Board& board, comm::Rank rank, std::uint32_t size, const comm::EndpointOptions& options);

  comm::Endpoint& endpoint() { return *endpoint_; }
  std::uint32_t rank() const { return rank_.value(); }
  std::uint32_t size() const { return size_; }
  bool is(std::uint32_t rank) const { return rank_.value() == rank; }
  bool knows_death_of(std::uint32_t of) const { return (deaths_.load() >> of & 1) != 0; }  ///< by the endpoint

  void expect(bool good, std::string_view what);
  /// Waits, and expects that ending.
  comm::Status expect_ending(const comm::Request& request, comm::Ending ending, std::string_view what);
  /// Waits for `peer_dead` of that culprit, and expects it soon after the kill.
  void expect_death(const comm::Request& request, std::uint32_t culprit, std::string_view what);

  void reach(int stage) { board_.places[rank_.index()].stage.store(stage); }
  void note(std::size_t which, std::int64_t value) { board_.places[rank_.index()].notes[which].store(value); }
  /// Sleeps until another rank, or the test, has reached a stage; the endpoint's thread makes progress.
  void await(std::uint32_t rank, int stage);
  void await_order(int stage);
  /// Sleeps until a signal ends this process.
  [[noreturn]] void await_death();

  /// Each of `ranks` sends to each a message of that size, and checks what it gets: they still work.
  void talk(const std::vector<std::uint32_t>& ranks, std::size_t bytes, std::uint64_t tag);

 private:
  Board& board_;
  comm::Rank rank_;
  std::uint32_t size_;
  base::Log log_;
  std::atomic<std::uint32_t> deaths_{0};  ///< a bit per rank
  std::unique_ptr<comm::Endpoint> endpoint_;
};

/// The test's side. Its destructor kills the ranks that still run.
class Team {
 public:
  using Play = std::function<void(Member&)>;

  /// Forks `size` processes, each of which opens an endpoint, plays its part and closes. Only from a process without
  /// threads.
  Team(std::uint32_t size, const comm::EndpointOptions& options, const Play& play);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  Board& board() { return *board_; }
  pid_t process(std::uint32_t rank) const { return processes_[rank]; }
  std::int64_t note(std::uint32_t rank, std::size_t which) const { return board_->places[rank].notes[which].load(); }
  /// Sleeps until the rank has come to that stage. False: it ended before, or time is over.
  bool await(std::uint32_t rank, int stage);
  void order(int stage) { board_->orders.store(stage); }
  void signal(std::uint32_t rank, int number);
  void kill(std::uint32_t rank);

  /// Waits for all. What went wrong, a line per rank, or "". Ranks that were killed by the test are not asked.
  std::string finish();

 private:
  bool reap(std::uint32_t rank, bool wait);

  Board* board_;
  std::vector<pid_t> processes_;
  std::vector<bool> ended_, killed_;
  std::string wrong_;
};

/// Options of one transport by name, with what the tests have in common.
comm::EndpointOptions options_for(const std::string& transport);

}  // namespace tandem::comm_processes
