// tandem/sim/turn_keeper.hpp: gives turns to processes that each run one rank of a simulation.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tandem/base/driver.hpp"
#include "tandem/base/file_descriptor.hpp"
#include "tandem/base/result.hpp"
#include "tandem/sim_rank/kernel_times.hpp"
#include "tandem/sim_rank/platform.hpp"
#include "tandem/sim_rank/turn_line.hpp"
#include "tandem/sim_rank/turn_wire.hpp"

namespace tandem::sim {

/// The common time of a simulation whose ranks are processes (`settle_in_simulation`), and the way of their messages.
///
/// All ranks run until each waits. Then time goes on: to the earliest date at which one of them would go on by itself,
/// or a message arrives. A message takes at least the latency, so all ranks with something to do before that date and a
/// latency go on at once, on all cores, and none can send another one anything that arrives before. Equal seeds and
/// programs give exactly equal orders.
///
/// Threads: one.
class TurnKeeper {
 public:
  struct Options {
    Platform platform = {};
    KernelTimes kernels = {};
    std::uint64_t seed = 1;
    Execution execution = Execution::none;                   ///< as `kernels` says
    double host_speed = 0;                                   ///< see `RankPlace`
    std::function<void(std::int64_t now_ns)> progress = {};  ///< called when time goes on
  };
  /// Listens for ranks at `name`. Errors: io.
  static base::Result<std::unique_ptr<TurnKeeper>> listen(Options options, std::string name);

  struct Outcome {
    std::int64_t end_ns = 0;  ///< virtual time at which the last program ended
    std::string error = {};   ///< empty, or why the simulation ended: ranks that wait for ever
    /// When the process of a rank ended before its program did, in virtual time: the first of them; kNever: none.
    std::int64_t broken_ns = base::kNever;
    std::vector<std::string> kernels = {};        ///< that have run
    std::vector<std::string> without_model = {};  ///< kernels without a duration, which took no time
  };
  /// Runs until all ranks have come and ended, or the other end of the socket or pipe `hang_up` is closed. Once.
  Outcome run(int hang_up);

 private:
  enum class State { absent, running, parked, ended };
  struct Rank {
    State state = State::absent;
    std::unique_ptr<TurnLine> line = nullptr;
    bool has_said_bye = false;
    std::int64_t next_ns = 0;          ///< of a parked rank: when it goes on by itself
    std::vector<Parcel> parcels = {};  ///< for it, in the order of arrival at this process
  };
  using Lines = std::map<int, std::unique_ptr<TurnLine>>;  ///< by descriptor

  TurnKeeper(Options options, base::FileDescriptor listener, base::FileDescriptor events);
  void watch(int descriptor) const;
  void serve(int descriptor);
  void accept_all();
  void greet(Lines::iterator stranger);
  void hear(std::uint32_t rank);
  void take_parcels(std::uint32_t from, std::vector<Parcel> parcels);
  void answer(std::uint32_t number, std::string_view question);
  void end(std::uint32_t rank);
  void give_turns();
  void say_stuck();
  bool has(State state) const;

  const Options options_;
  const base::FileDescriptor listener_, events_;
  Lines strangers_;  ///< connections that have not said which rank they are
  std::map<int, std::uint32_t> ranks_by_descriptor_;
  std::vector<Rank> ranks_;
  std::int64_t now_ns_ = 0;
  unsigned rounds_stuck_ = 0;
  bool has_heard_ = false;  ///< from a rank that has made a runtime
  Outcome outcome_;
};

}  // namespace tandem::sim
