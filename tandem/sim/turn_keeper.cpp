// tandem/sim/turn_keeper.cpp: rounds of turns.
#include "tandem/sim/turn_keeper.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace tandem::sim {

namespace {

/// So often ranks are told that nothing goes on: a program may catch the error, and wait again.
constexpr unsigned kMostStuckRounds = 100;

}  // namespace

base::Result<std::unique_ptr<TurnKeeper>> TurnKeeper::listen(Options options, std::string name) {
  auto listener = TurnLine::listen(name);
  if (!listener) return listener.error();
  base::FileDescriptor events(::epoll_create1(EPOLL_CLOEXEC));
  if (!events) return base::Error{base::ErrorCode::io, "epoll: " + base::system_error_text(errno)};
  return std::unique_ptr<TurnKeeper>(
      new TurnKeeper(std::move(options), std::move(listener).value(), std::move(events)));
}

TurnKeeper::TurnKeeper(Options options, base::FileDescriptor listener, base::FileDescriptor events)
    : options_(std::move(options)),
      listener_(std::move(listener)),
      events_(std::move(events)),
      ranks_(options_.platform.ranks) {
  watch(listener_.get());
}

void TurnKeeper::watch(int descriptor) const {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = descriptor;
  ::epoll_ctl(events_.get(), EPOLL_CTL_ADD, descriptor, &event);
}

bool TurnKeeper::has(State state) const {
  return std::ranges::any_of(ranks_, [state](const Rank& rank) { return rank.state == state; });
}

TurnKeeper::Outcome TurnKeeper::run(int hang_up) {
  watch(hang_up);
  bool goes_on = true;
  while (goes_on && (has(State::absent) || has(State::running) || has(State::parked))) {
    if (!has(State::absent) && !has(State::running)) {
      give_turns();
      continue;
    }
    std::array<epoll_event, 64> events;
    const int count = ::epoll_wait(events_.get(), events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < count; ++i) {
      const int descriptor = events[static_cast<std::size_t>(i)].data.fd;
      if (descriptor == hang_up)
        goes_on = false;
      else
        serve(descriptor);
    }
  }
  if (goes_on && !has_heard_)
    outcome_.error =
        "no rank has made a tandem::Runtime, so nothing was simulated: is the program linked with this version of "
        "Tandem?";
  std::ranges::sort(outcome_.kernels);
  std::ranges::sort(outcome_.without_model);
  return outcome_;
}

void TurnKeeper::serve(int descriptor) {
  if (descriptor == listener_.get()) return accept_all();
  if (const auto stranger = strangers_.find(descriptor); stranger != strangers_.end()) return greet(stranger);
  // The connection may have been closed by what was served before.
  if (const auto known = ranks_by_descriptor_.find(descriptor); known != ranks_by_descriptor_.end())
    hear(known->second);
}

void TurnKeeper::accept_all() {
  while (auto socket = TurnLine::accept_from(listener_)) {
    const int descriptor = socket.get();
    strangers_.emplace(descriptor, std::make_unique<TurnLine>(std::move(socket)));
    watch(descriptor);
  }
}

/// Reads a first frame. A connection that says something else is closed.
void TurnKeeper::greet(Lines::iterator stranger) {
  TurnLine& line = *stranger->second;
  const bool is_open = line.read(false);
  comm::internal::Frame frame;
  if (!line.next(frame)) {
    if (!is_open) strangers_.erase(stranger);
    return;
  }
  const auto greeting = decode_greeting(frame.body);
  const bool is_sound = frame.kind == static_cast<std::uint8_t>(TurnKind::hello) && greeting &&
                        greeting.value().rank < ranks_.size() && ranks_[greeting.value().rank].state == State::absent;
  if (!is_sound) {
    strangers_.erase(stranger);
    return;
  }
  const std::uint32_t number = greeting.value().rank;
  Rank& rank = ranks_[number];
  rank.state = State::running;
  rank.line = std::move(stranger->second);
  strangers_.erase(stranger);
  ranks_by_descriptor_.emplace(rank.line->descriptor(), number);
  const RankPlace place{options_.platform, number, options_.seed, options_.execution, options_.host_speed};
  if (!rank.line->send(TurnKind::welcome, encode(place))) end(number);
}

/// Takes what a rank has said. Its process has ended when its connection has.
void TurnKeeper::hear(std::uint32_t number) {
  Rank& rank = ranks_[number];
  const bool is_open = rank.line->read(false);
  comm::internal::Frame frame;
  bool is_sound = true;
  while (is_sound && rank.line->next(frame)) {
    const auto kind = static_cast<TurnKind>(frame.kind);
    has_heard_ = true;
    is_sound = rank.state == State::running;
    if (kind == TurnKind::ask) {
      answer(number, frame.body);
      continue;
    }
    auto turn = decode_turn(frame.body);
    is_sound = is_sound && turn && (kind == TurnKind::park || kind == TurnKind::bye);
    if (!is_sound) break;
    take_parcels(number, std::move(turn.value().parcels));
    if (kind == TurnKind::park) {
      rank.state = State::parked;
      rank.next_ns = turn.value().date_ns;
    } else {
      rank.has_said_bye = true;
      outcome_.end_ns = std::max(outcome_.end_ns, turn.value().date_ns);
    }
  }
  if (!is_open || !is_sound) end(number);
}

void TurnKeeper::end(std::uint32_t number) {
  Rank& rank = ranks_[number];
  ranks_by_descriptor_.erase(rank.line->descriptor());
  rank.line.reset();
  rank.state = State::ended;
  if (!rank.has_said_bye) outcome_.broken_ns = std::min(outcome_.broken_ns, now_ns_);
  outcome_.end_ns = std::max(outcome_.end_ns, now_ns_);
  for (const Parcel& parcel : std::exchange(rank.parcels, {})) {
    auto refusal = comm::LoopNetwork::refusal(comm::Rank(number), parcel.message);
    if (refusal && ranks_[parcel.rank].state != State::ended)
      ranks_[parcel.rank].parcels.push_back(
          {number, parcel.when_ns + options_.platform.least_latency_ns(), std::move(*refusal)});
  }
}

/// Keeps messages for their receivers. One that has ended refuses them.
void TurnKeeper::take_parcels(std::uint32_t from, std::vector<Parcel> parcels) {
  for (Parcel& parcel : parcels) {
    if (parcel.rank >= ranks_.size() || parcel.rank == from) continue;
    Rank& to = ranks_[parcel.rank];
    if (to.state != State::ended) {
      to.parcels.push_back({from, parcel.when_ns, std::move(parcel.message)});
    } else if (auto refusal = comm::LoopNetwork::refusal(comm::Rank(parcel.rank), parcel.message)) {
      const std::int64_t when_ns = parcel.when_ns + options_.platform.least_latency_ns();
      ranks_[from].parcels.push_back({parcel.rank, when_ns, std::move(*refusal)});
    }
  }
}

void TurnKeeper::answer(std::uint32_t number, std::string_view question) {
  std::optional<KernelTime> time;
  if (const auto task = decode_task(question)) {
    const AskedTask& asked = task.value();
    time = options_.kernels({asked.codelet, asked.data, asked.device, asked.implementation},
                            options_.platform.kind_of(number));
    const auto note = [&asked](std::vector<std::string>& names) {
      if (!std::ranges::count(names, asked.codelet)) names.push_back(asked.codelet);
    };
    note(outcome_.kernels);
    if (!time) note(outcome_.without_model);
  }
  ranks_[number].line->send(TurnKind::told, encode(time));
}

/// All ranks wait: the next round begins at the earliest date of any.
void TurnKeeper::give_turns() {
  const auto date_of = [](const Rank& rank) {
    std::int64_t date = rank.next_ns;
    for (const Parcel& parcel : rank.parcels) date = std::min(date, parcel.when_ns);
    return date;
  };
  std::int64_t first_ns = base::kNever;
  for (const Rank& rank : ranks_)
    if (rank.state == State::parked) first_ns = std::min(first_ns, date_of(rank));
  if (first_ns == base::kNever) return say_stuck();
  rounds_stuck_ = 0;
  now_ns_ = std::max(now_ns_, first_ns);
  if (options_.progress) options_.progress(now_ns_);
  const std::int64_t until_ns = now_ns_ + std::max<std::int64_t>(1, options_.platform.least_latency_ns());
  for (std::uint32_t number = 0; number < ranks_.size(); ++number) {
    Rank& rank = ranks_[number];
    if (rank.state != State::parked || date_of(rank) >= until_ns) continue;
    // What two ranks sent in one round came here in any order.
    std::ranges::stable_sort(rank.parcels, {},
                             [](const Parcel& parcel) { return std::tuple(parcel.when_ns, parcel.rank); });
    rank.state = State::running;
    rank.line->send(TurnKind::go, encode(Turn{until_ns, std::exchange(rank.parcels, {})}));
  }
}

/// Nothing can go on. Each rank says what it waits for, as in a real run; one that waits on is ended.
void TurnKeeper::say_stuck() {
  if (outcome_.error.empty())
    outcome_.error =
        fmt::format("at {:.6f} s nothing can go on: some ranks wait for ever", static_cast<double>(now_ns_) * 1e-9);
  const bool is_hopeless = ++rounds_stuck_ > kMostStuckRounds;
  for (std::uint32_t number = 0; number < ranks_.size(); ++number) {
    Rank& rank = ranks_[number];
    if (rank.state != State::parked) continue;
    if (is_hopeless) {
      end(number);
      continue;
    }
    rank.state = State::running;
    rank.line->send(TurnKind::stuck, {});
  }
}

}  // namespace tandem::sim
