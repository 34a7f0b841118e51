// tests/comm_traffic/runner.hpp: plays a plan over endpoints of the test world, and notes what each receive got.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "oracle.hpp"
#include "plan.hpp"
#include "tandem/base/log.hpp"
#include "tandem/base/event_loop.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/comm/transport/loop/loop.hpp"

namespace tandem::comm_traffic {

/// Networks and endpoints of all kinds, from a seed.
struct WorldOptions {
  comm::LoopOptions network;
  comm::EndpointOptions endpoint;
  bool stops = false;    ///< ranks are stopped now and then, and go on later
  bool cancels = false;  ///< some sends and broadcasts are taken back, if it is not too late
};
WorldOptions draw_world(const Shape& shape, std::uint64_t seed);

/// One plan in one world. The world's event loop, the network's delays and the interleaving of the ranks' programs all
/// follow the seed, so that a failure replays exactly.
class Runner {
 public:
  Runner(Plan plan, const WorldOptions& options, std::uint64_t seed);
  ~Runner();

  /// Everything is posted, and nothing moves any more; receives that were left are cancelled, and what they left is
  /// received. Nobody is called dead. The first rule that was broken, or "".
  std::string run();

  /// As `run`, but `victims`, all different, die one posting after the other, after `steps_until_death` of them. Every
  /// request of the others has to end; those that end well have the right bytes; only requests that a dead rank had a
  /// part in may fail.
  std::string run_with_deaths(std::span<const std::uint32_t> victims, std::size_t steps_until_death);

 private:
  struct Receiving {
    comm::Request request;
    std::vector<std::uint8_t> memory;
  };

  bool play_some_step();
  void disturb();
  void take_back(std::size_t message_index);
  std::string describe() const;
  void post(std::size_t message_index);
  void post_receive(std::size_t receive_index);
  void settle();
  void cancel_what_is_left();
  bool sweep();
  Outcome outcome_of(std::size_t receive_index) const;
  std::string unfinished_sends() const;
  std::string invented_deaths() const;
  std::string unheard_deaths() const;
  std::string unended_receives() const;

  std::uint64_t below(std::uint64_t bound) { return loop_.random() % bound; }

  Plan plan_;
  WorldOptions options_;
  base::EventLoop loop_;
  base::Log log_{base::LogLevel::error};
  comm::LoopNetwork network_;
  std::vector<std::unique_ptr<comm::Endpoint>> endpoints_;
  std::vector<comm::Channel> channels_;
  std::vector<std::size_t> next_step_;               // by rank
  std::vector<std::vector<std::uint8_t>> contents_;  // by message
  std::vector<std::vector<std::uint8_t>> headers_;
  std::vector<comm::Request> sends_;                 // by message
  std::deque<Receiving> receives_;                   // by receive
  std::set<std::uint32_t> dead_;
  std::map<std::uint32_t, std::string> reported_dead_;  // why, as the endpoints say
  std::optional<std::uint32_t> stopped_;
};

}  // namespace tandem::comm_traffic
