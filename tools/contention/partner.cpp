// tools/contention/partner.cpp: one rank asks, the other sends.
#include "tools/contention/partner.hpp"

#include <algorithm>
#include <vector>

namespace tandem::tools::contention {

/// Rank 0's request: a message, or `trips` round trips; 0 bytes: nothing more, but applications if `trips` is 1.
struct Question {
  std::uint64_t bytes = 0, trips = 0;
  std::uint64_t step = 0;    ///< of round trips: from the place of a message to that of the next one
  std::uint64_t renews = 0;  ///< 1: only memory that no message was in; then `ready_tag`

  /// Bytes of messages in one direction.
  std::uint64_t bytes_one_way() const noexcept { return bytes + (trips > 0 ? (trips - 1) * step : 0); }
};

namespace {

constexpr comm::Tag ask_tag{1}, data_tag{2}, trip_tag{3}, ready_tag{4};
constexpr comm::Rank measured{0}, sender{1};
constexpr unsigned trips_per_question = 500;
constexpr std::uint64_t page_bytes = 4096;
constexpr double longest_step_s = 120;  // of one step, when four messages take long

base::Result<void> done(const comm::Status& status) {
  if (status.ending == comm::Ending::done) return {};
  return base::Error{base::ErrorCode::io, "contention measure: the other rank is gone"};
}

}  // namespace

/// Gives both ranks new memory for `question`; without `make` they keep the present one.
base::Result<void> Partner::renew(NodeMemory& memory, const MakeMemory& make, const Question& question) {
  if (!make) return {};
  Question first = question;
  first.renews = 1;
  if (const auto good = done(endpoint_.wait(endpoint_.isend(sender, ask_tag, {&first, sizeof first}))); !good)
    return good;
  auto made = make(2 * question.bytes_one_way());
  if (!made) return made.error();
  memory = std::move(made).value();
  return done(endpoint_.wait(endpoint_.irecv(sender, ready_tag, {})));
}

base::Result<NetworkRate> Partner::receive(NodeMemory& memory, const MakeMemory& make, std::uint64_t bytes,
                                           double seconds) {
  return bytes <= latency_bytes ? round_trips(memory, make, bytes, seconds)
                                : receive_large(memory, make, bytes, seconds);
}

base::Result<NetworkRate> Partner::receive_large(NodeMemory& memory, const MakeMemory& make, std::uint64_t bytes,
                                                 double seconds) {
  std::vector<std::int64_t> ends;  // without the time for new memory
  std::int64_t now = steady_now_ns(), renewing_ns = 0;
  const std::int64_t end = now + static_cast<std::int64_t>(seconds * 1e9),
                     latest = now + static_cast<std::int64_t>(longest_step_s * 1e9);
  while ((ends.size() < least_repetitions || now < end) && now <= latest) {
    const Question question{.bytes = bytes};
    if (const auto good = renew(memory, make, question); !good) return good.error();
    if (make) renewing_ns += steady_now_ns() - now;
    const comm::Request data = endpoint_.irecv(sender, data_tag, {memory.data(), bytes});
    const comm::Request ask = endpoint_.isend(sender, ask_tag, {&question, sizeof question});
    if (const auto good = done(endpoint_.wait(data)); !good) return good.error();
    if (const auto good = done(endpoint_.wait(ask)); !good) return good.error();
    now = steady_now_ns();
    ends.push_back(now - renewing_ns);
  }
  const auto rate = steady_rate(ends);
  if (!rate)
    return base::Error{base::ErrorCode::io,
                       "contention measure: four messages took more than two minutes: take smaller ones"};
  return NetworkRate{.mb_s = rate->per_second() * static_cast<double>(bytes) / 1e6, .latency_us = {}};
}

base::Result<NetworkRate> Partner::round_trips(NodeMemory& memory, const MakeMemory& make, std::uint64_t bytes,
                                               double seconds) {
  std::vector<double> halves_us;
  const std::int64_t start = steady_now_ns(), end = start + static_cast<std::int64_t>(seconds * 1e9);
  do {
    const Question question{.bytes = bytes, .trips = trips_per_question, .step = make ? page_bytes : 0};
    if (const auto good = renew(memory, make, question); !good) return good.error();
    if (const auto good = done(endpoint_.wait(endpoint_.isend(sender, ask_tag, {&question, sizeof question}))); !good)
      return good.error();
    for (unsigned i = 0; i < trips_per_question; ++i) {
      std::byte* const place = memory.data() + i * question.step;
      const std::int64_t before = steady_now_ns();
      const comm::Request back = endpoint_.irecv(sender, trip_tag, {place, bytes});
      const comm::Request out = endpoint_.isend(sender, trip_tag, {place + memory.bytes() / 2, bytes});
      if (const auto good = done(endpoint_.wait(back)); !good) return good.error();
      if (const auto good = done(endpoint_.wait(out)); !good) return good.error();
      if (i > 0) halves_us.push_back(static_cast<double>(steady_now_ns() - before) / 2e3);
    }
  } while (steady_now_ns() < end);
  std::ranges::nth_element(halves_us, halves_us.begin() + static_cast<std::ptrdiff_t>(halves_us.size() / 2));
  return NetworkRate{.mb_s = {}, .latency_us = halves_us[halves_us.size() / 2]};
}

void Partner::dismiss(bool applications_follow) {
  const Question nothing{.trips = applications_follow ? 1U : 0U};
  endpoint_.wait(endpoint_.isend(sender, ask_tag, {&nothing, sizeof nothing}));
}

base::Result<bool> serve(comm::Endpoint& endpoint, const base::Topology& topology) {
  std::optional<NodeMemory> memory;
  for (;;) {
    Question question;
    if (const auto good = done(endpoint.wait(endpoint.irecv(measured, ask_tag, {&question, sizeof question}))); !good)
      return good.error();
    if (question.bytes == 0) return question.trips == 1;
    const std::uint64_t one_way = question.bytes_one_way();
    if (question.renews != 0 || !memory || memory->bytes() < 2 * one_way) {
      auto made = NodeMemory::create(topology, std::max<std::size_t>(2 * one_way, page_bytes), std::nullopt);
      if (!made) return made.error();
      memory.reset();
      memory.emplace(std::move(made).value());
    }
    if (question.renews != 0) {
      if (const auto good = done(endpoint.wait(endpoint.isend(measured, ready_tag, {}))); !good) return good.error();
      continue;
    }
    if (question.trips == 0) {
      if (const auto good = done(endpoint.wait(endpoint.isend(measured, data_tag, {memory->data(), question.bytes})));
          !good)
        return good.error();
      continue;
    }
    for (std::uint64_t i = 0; i < question.trips; ++i) {
      std::byte* const place = memory->data() + i * question.step;
      if (const auto good = done(endpoint.wait(endpoint.irecv(measured, trip_tag, {place, question.bytes}))); !good)
        return good.error();
      const auto sent = endpoint.wait(endpoint.isend(measured, trip_tag, {place + one_way, question.bytes}));
      if (const auto good = done(sent); !good) return good.error();
    }
  }
}

}  // namespace tandem::tools::contention
