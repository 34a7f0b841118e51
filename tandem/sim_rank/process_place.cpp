// tandem/sim_rank/process_place.cpp: the loop of one rank, whose time goes on as the simulation grants it.
#include "tandem/sim_rank/process_place.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tandem/base/event_loop.hpp"
#include "tandem/base/exceptions.hpp"
#include "tandem/base/fork.hpp"
#include "tandem/base/number_of.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/comm/transport/loop/loop.hpp"
#include "tandem/runtime/virtual_place.hpp"
#include "tandem/sim_rank/kernel_times.hpp"
#include "tandem/sim_rank/node_memories.hpp"
#include "tandem/sim_rank/program_time.hpp"
#include "tandem/sim_rank/rank_machine.hpp"
#include "tandem/sim_rank/turn_line.hpp"
#include "tandem/sim_rank/virtual_clock.hpp"

namespace tandem::sim {

namespace {

/// The simulation's process has ended, and with it all ranks. Nothing can be told to a program that waits.
[[noreturn]] void end_with_simulation() {
  std::fputs("tandem: the simulation of this rank has ended\n", stderr);
  std::_Exit(1);
}

/// The program of this process: what only it may step is stepped while it waits in its runtime.
class Caller final : public base::Steppable {
 public:
  void begin(base::Steppable& caller, base::Waker& waker) { caller_ = &caller, waker_ = &waker; }
  void set_waiting(bool is_waiting) {
    is_waiting_ = is_waiting;
    if (is_waiting && waker_ != nullptr) waker_->wake();
  }
  std::int64_t step(std::int64_t now_ns) override { return is_waiting_ ? caller_->step(now_ns) : base::kNever; }

 private:
  base::Steppable* caller_ = nullptr;
  base::Waker* waker_ = nullptr;
  bool is_waiting_ = false;
};

/// One rank's workers, messages and program on the process's loop. A program may have one runtime after another.
class ProcessDriver final : public base::Driver {
 public:
  ProcessDriver(base::EventLoop& loop, ProgramTime& time) : loop_(loop), time_(time) {}
  ~ProcessDriver() override { stop(); }

  base::Waker& add(base::Steppable& steppable, const Placement& placement) override {
    added_.push_back(&steppable);
    return loop_.add(steppable, placement);
  }
  base::Waker& add_caller(base::Steppable& steppable) override {
    base::Waker& waker = add(caller_, {});
    caller_.begin(steppable, waker);
    return waker;
  }
  void stop() override {
    for (base::Steppable* steppable : std::exchange(added_, {})) loop_.remove(*steppable);
  }
  base::RunEnd run_until(bool (*done)(void*), void* context, std::int64_t deadline_ns) override {
    // A wait that looks again soon is stepped then; watchdogs would step for ever where nothing goes on.
    constexpr std::int64_t soon_ns = 1'000'000;
    time_.spend_own();
    const Waiting waiting(caller_);
    return time_.run_until(done, context, deadline_ns - loop_.now_ns() <= soon_ns ? deadline_ns : base::kNever);
  }
  std::int64_t now_ns() override { return loop_.now_ns(); }

 private:
  struct Waiting {
    explicit Waiting(Caller& program) : caller(program) { caller.set_waiting(true); }
    ~Waiting() { caller.set_waiting(false); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    Caller& caller;
  };

  base::EventLoop& loop_;
  ProgramTime& time_;
  Caller caller_;
  std::vector<base::Steppable*> added_;
};

/// Removes the clock's module, which stands first, from what programs that this one starts load.
void leave_clock_out_of_children() {
  const char* const loaded = std::getenv("LD_PRELOAD");
  const std::string all = loaded == nullptr ? "" : loaded;
  const auto end = all.find(':');
  if (end == std::string::npos)
    ::unsetenv("LD_PRELOAD");
  else
    ::setenv("LD_PRELOAD", all.c_str() + end + 1, 1);
}

class ProcessPlace final : public runtime::VirtualPlace, base::SharedTime, comm::LoopWire, comm::LoopLabour {
 public:
  ProcessPlace(TurnLine line, const RankPlace& place)
      : line_(std::move(line)),
        place_(place),
        loop_(place.seed + place.rank),
        memories_(place.platform, loop_, place.rank, 1),
        network_(network_here(), &loop_),
        time_(loop_, place.host_speed),
        machine_(place.platform, place.rank),
        host_(host_here()),
        drawn_(place.platform, place.rank, place.seed) {
    loop_.share_time(*this);
    connect_clock();
  }
  ~ProcessPlace() override {
    if (connect_ != nullptr) connect_(nullptr);
    if (mark_.is_of_this_process()) line_.send(TurnKind::bye, encode(Turn{time_.own_end_ns(), std::move(parcels_)}));
  }

  std::uint32_t rank() const noexcept override { return place_.rank; }
  std::uint32_t size() const noexcept override { return place_.platform.ranks; }
  std::string job() const override { return fmt::format("simulated, seed {}", place_.seed); }
  base::EventLoop& loop() noexcept override { return loop_; }
  std::unique_ptr<base::Driver> make_driver() override { return std::make_unique<ProcessDriver>(loop_, time_); }
  void furnish(runtime::World& world, const runtime::Furnishing& wanted) override {
    machine_.furnish(world, wanted, loop_, carried_bytes());
  }
  std::unique_ptr<comm::Endpoint> open_endpoint(const comm::EndpointOptions& options, base::Log& log) override {
    if (size() == 1) return nullptr;
    if (std::exchange(has_endpoint_, true))
      throw UsageError("a simulated rank joins its job once: make one Runtime in each process");
    return comm::Endpoint::open_loop(network_, comm::Rank(rank()), options, log, &loop_);
  }
  runtime::Emulation emulation() override {
    return [this](const runtime::EmulatedTask& task) { return ask(task); };
  }
  std::unique_ptr<runtime::Estimates> estimates() override {
    return std::make_unique<KnownDurations>([this](const runtime::EmulatedTask& task) { return told(task); });
  }
  runtime::ModelledHost& host() override { return host_; }
  runtime::ModelledMemory* memory() noexcept override { return memories_.of(rank()); }
  bool computes() const noexcept override { return place_.execution == Execution::all; }
  std::size_t carried_bytes() const noexcept override { return network_.options().carried_bytes(); }

 private:
  comm::LoopOptions network_here() {
    comm::LoopOptions options = network_of(place_.platform, place_.execution);
    options.wire = this;
    options.labour = this;
    if (!memories_.empty()) options.rates = &memories_;
    return options;
  }

  /// What the program's own code takes counts often enough that tasks are not there long before they are submitted.
  runtime::ModelledHost::Options host_here() {
    Platform platform = place_.platform;
    constexpr std::int64_t often_ns = 200;
    if (time_.counts_own()) platform.submit_ns = std::max(platform.submit_ns, often_ns);
    return host_of(platform, rank(), [this](std::int64_t ns) { time_.submit(ns); });
  }

  /// Where the module is not loaded, as in a program without dynamic loader, clocks are real.
  void connect_clock() {
    connect_ = reinterpret_cast<ConnectVirtualClock*>(::dlsym(RTLD_DEFAULT, connect_virtual_clock));
    if (connect_ == nullptr) return;
    leave_clock_out_of_children();
    using Place = ProcessPlace;
    const VirtualClock clock = {
        .now_ns = [](void* place) { return static_cast<Place*>(place)->loop_.now_ns(); },
        .read_ns = [](void* place) { return static_cast<Place*>(place)->time_.read(); },
        .sleep_until = [](void* place,
                          std::int64_t when_ns) { static_cast<Place*>(place)->time_.sleep_until(when_ns); },
        .context = this};
    time_.sleep_until(connect_(&clock));
  }

  void carry(comm::Rank to, std::int64_t when_ns, std::string message) override {
    parcels_.push_back({to.value(), when_ns, std::move(message)});
  }

  void note_packet(comm::Rank /*rank*/, std::size_t bytes, bool is_near) override {
    host_.use_core(labour_ns(place_.platform, bytes, is_near));
  }

  Grant wait(std::int64_t next_ns) override {
    if (!line_.send(TurnKind::park, encode(Turn{next_ns, std::exchange(parcels_, {})}))) end_with_simulation();
    const comm::internal::Frame answer = receive();
    if (answer.kind == static_cast<std::uint8_t>(TurnKind::stuck)) return {.may_go_on = false};
    auto turn = decode_turn(answer.body);
    if (answer.kind != static_cast<std::uint8_t>(TurnKind::go) || !turn) end_with_simulation();
    for (Parcel& parcel : turn.value().parcels)
      loop_.at(parcel.when_ns, [this, message = std::move(parcel.message)] {
        if (!network_.arrive(comm::Rank(rank()), message)) end_with_simulation();
      });
    return {.until_ns = turn.value().date_ns};
  }

  /// The simulation's answer.
  std::optional<KernelTime> told(const runtime::EmulatedTask& task) {
    if (!line_.send(TurnKind::ask, encode(task))) end_with_simulation();
    const comm::internal::Frame answer = receive();
    auto time = decode_time(answer.body);
    if (answer.kind != static_cast<std::uint8_t>(TurnKind::told) || !time) end_with_simulation();
    return std::move(time).value();
  }

  /// Asks the simulation for a duration, once for each kind of task.
  std::optional<runtime::EmulatedWork> ask(const runtime::EmulatedTask& task) {
    const std::uint64_t kind = number_of_kind(task);
    auto known = times_.find(kind);
    if (known == times_.end() && task.is_own)
      known = times_.emplace(kind, time_of_own(task, place_.platform, place_.execution)).first;
    // What has no duration takes no time; the simulation remembers it.
    if (known == times_.end())
      known = times_.emplace(kind, told(task).value_or(KernelTime{.computes = computes()})).first;
    return drawn_.draw(known->second, kind, machine_.slowness(task.worker));
  }

  comm::internal::Frame receive() {
    comm::internal::Frame frame;
    if (!line_.receive(frame)) end_with_simulation();
    return frame;
  }

  const base::ProcessMark mark_;  // a child by fork() says nothing
  TurnLine line_;
  const RankPlace place_;
  base::EventLoop loop_;
  NodeMemories memories_;
  comm::LoopNetwork network_;
  ProgramTime time_;
  RankMachine machine_;
  runtime::ModelledHost host_;
  bool has_endpoint_ = false;
  ConnectVirtualClock* connect_ = nullptr;               ///< null: the program reads real clocks
  std::vector<Parcel> parcels_;                          ///< sent in this turn
  std::unordered_map<std::uint64_t, KernelTime> times_;  ///< by the number of a kind of task
  DrawnTimes drawn_;
};

/// The descriptor that the variable names. Programs that this one starts get neither.
base::Result<base::FileDescriptor> take_descriptor(const char* text) {
  const std::string whole = text;
  ::unsetenv(turns_variable);
  const int number = base::number_of<int>(whole).value_or(-1);
  if (number <= 2)
    return base::Error{
        base::ErrorCode::invalid_argument,
        fmt::format("{}={} names no descriptor: `tandem simulate` sets this variable", turns_variable, whole)};
  ::fcntl(number, F_SETFD, FD_CLOEXEC);
  return base::kept_from_children(number);
}

base::Result<std::unique_ptr<ProcessPlace>> open_place(const char* descriptor_text) {
  auto descriptor = take_descriptor(descriptor_text);
  if (!descriptor) return descriptor.error();
  TurnLine line(std::move(descriptor).value());
  comm::internal::Frame welcome;
  if (!line.receive(welcome) || welcome.kind != static_cast<std::uint8_t>(TurnKind::welcome))
    return base::Error{base::ErrorCode::io, "this rank cannot reach its simulation: the connection is closed"};
  const auto place = decode_place(welcome.body);
  if (!place) return place.error();
  return std::make_unique<ProcessPlace>(std::move(line), place.value());
}

}  // namespace

base::Result<void> settle_in_simulation() {
  const char* const text = std::getenv(turns_variable);  // taken once
  if (text == nullptr) return {};
  static std::unique_ptr<ProcessPlace> place;  // until the process ends
  auto opened = open_place(text);
  if (!opened) return opened.error();
  place = std::move(opened).value();
  runtime::VirtualPlace::settle(*place);
  return {};
}

}  // namespace tandem::sim
