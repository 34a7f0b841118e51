// tools/contention/partner.cpp: one rank asks, the other sends.
#include "tools/contention/partner.hpp"

#include <algorithm>
#include <vector>

namespace tandem::tools::contention {
namespace {

constexpr comm::Tag ask_tag{1}, data_tag{2}, trip_tag{3};
constexpr comm::Rank measured{0}, sender{1};
constexpr unsigned trips_per_question = 500;
constexpr double longest_step_s = 120;  // of one step, when four messages take long

/// What rank 0 asks for: a message, or `trips` round trips; 0 bytes: nothing more, but applications if `trips` is 1.
struct Question {
  std::uint64_t bytes = 0, trips = 0;
};

base::Result<void> done(const comm::Status& status) {
  if (status.ending == comm::Ending::done) return {};
  return base::Error{base::ErrorCode::io, "contention measure: the other rank is gone"};
}

}  // namespace

base::Result<NetworkRate> Partner::receive(const NodeMemory& memory, std::uint64_t bytes, double seconds) {
  return bytes <= latency_bytes ? round_trips(memory, bytes, seconds) : receive_large(memory, bytes, seconds);
}

base::Result<NetworkRate> Partner::receive_large(const NodeMemory& memory, std::uint64_t bytes, double seconds) {
  std::vector<std::int64_t> ends;
  const std::int64_t start = steady_now_ns(), end = start + static_cast<std::int64_t>(seconds * 1e9);
  const std::int64_t latest = start + static_cast<std::int64_t>(longest_step_s * 1e9);
  while (ends.size() < least_repetitions || ends.back() < end) {
    const Question question{bytes, 0};
    const comm::Request data = endpoint_.irecv(sender, data_tag, {memory.data(), bytes});
    const comm::Request ask = endpoint_.isend(sender, ask_tag, {&question, sizeof question});
    if (const auto good = done(endpoint_.wait(data)); !good) return good.error();
    if (const auto good = done(endpoint_.wait(ask)); !good) return good.error();
    ends.push_back(steady_now_ns());
    if (ends.back() > latest) break;
  }
  const auto rate = steady_rate(ends);
  if (!rate)
    return base::Error{base::ErrorCode::io, "contention measure: four messages took more than two minutes: take smaller ones"};
  return NetworkRate{.mb_s = rate->per_second() * static_cast<double>(bytes) / 1e6, .latency_us = {}};
}

base::Result<NetworkRate> Partner::round_trips(const NodeMemory& memory, std::uint64_t bytes, double seconds) {
  std::vector<double> halves_us;
  const std::int64_t start = steady_now_ns(), end = start + static_cast<std::int64_t>(seconds * 1e9);
  do {
    const Question question{bytes, trips_per_question};
    if (const auto good = done(endpoint_.wait(endpoint_.isend(sender, ask_tag, {&question, sizeof question}))); !good)
      return good.error();
    for (unsigned i = 0; i < trips_per_question; ++i) {
      const std::int64_t before = steady_now_ns();
      const comm::Request back = endpoint_.irecv(sender, trip_tag, {memory.data(), bytes});
      const comm::Request out = endpoint_.isend(sender, trip_tag, {memory.data() + memory.bytes() / 2, bytes});
      if (const auto good = done(endpoint_.wait(back)); !good) return good.error();
      if (const auto good = done(endpoint_.wait(out)); !good) return good.error();
      if (i > 0) halves_us.push_back(static_cast<double>(steady_now_ns() - before) / 2e3);
    }
  } while (steady_now_ns() < end);
  std::ranges::nth_element(halves_us, halves_us.begin() + static_cast<std::ptrdiff_t>(halves_us.size() / 2));
  return NetworkRate{.mb_s = {}, .latency_us = halves_us[halves_us.size() / 2]};
}

void Partner::dismiss(bool applications_follow) {
  const Question nothing{0, applications_follow ? 1U : 0U};
  endpoint_.wait(endpoint_.isend(sender, ask_tag, {&nothing, sizeof nothing}));
}

base::Result<bool> serve(comm::Endpoint& endpoint, const base::Topology& topology) {
  std::optional<NodeMemory> memory;
  for (;;) {
    Question question;
    if (const auto good = done(endpoint.wait(endpoint.irecv(measured, ask_tag, {&question, sizeof question}))); !good)
      return good.error();
    if (question.bytes == 0) return question.trips == 1;
    if (!memory || memory->bytes() < 2 * question.bytes) {
      auto made = NodeMemory::create(topology, std::max<std::size_t>(2 * question.bytes, 4096), std::nullopt);
      if (!made) return made.error();
      memory.reset();
      memory.emplace(std::move(made).value());
    }
    if (question.trips == 0) {
      if (const auto good = done(endpoint.wait(endpoint.isend(measured, data_tag, {memory->data(), question.bytes}))); !good)
        return good.error();
      continue;
    }
    for (std::uint64_t i = 0; i < question.trips; ++i) {
      if (const auto good = done(endpoint.wait(endpoint.irecv(measured, trip_tag, {memory->data(), question.bytes}))); !good)
        return good.error();
      const auto sent = endpoint.wait(endpoint.isend(measured, trip_tag, {memory->data() + question.bytes, question.bytes}));
      if (const auto good = done(sent); !good) return good.error();
    }
  }
}

}  // namespace tandem::tools::contention
