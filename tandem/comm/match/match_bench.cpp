// tandem/comm/match/match_bench.cpp: what matching one message costs, with n pending.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "tandem/comm/match/matcher.hpp"

namespace tandem::comm {
namespace {

/// A receive as large as an engine's, so that memory is as far away as in a program.
struct Receive : PostedReceive {
  std::uint64_t rest[24] = {};
};
struct Envelope : ArrivedEnvelope {
  std::uint64_t rest[8] = {};
};

enum class Tags { opposite, same_order, strided, random };

std::vector<std::uint64_t> tags_of(Tags kind, std::size_t count) {
  std::vector<std::uint64_t> tags(count);
  std::uint64_t state = 1;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    tags[i] = kind == Tags::opposite     ? count - 1 - i
              : kind == Tags::same_order ? i
              : kind == Tags::strided    ? i << 20
                                         : state;
  }
  return tags;
}

MatchPattern pattern_of(unsigned wild_class, std::uint64_t tag) {
  return {.source = Rank{1}, .tag = tag, .any_source = (wild_class & 1) != 0, .any_tag = (wild_class & 2) != 0};
}

/// n receives are posted, then n messages arrive (with tags ascending, unless strided or random).
void expected(benchmark::State& state, Tags kind, unsigned wild_class) {
  const auto count = static_cast<std::size_t>(state.range(0));
  const std::vector<std::uint64_t> posted = tags_of(kind, count);
  const std::vector<std::uint64_t> sent = kind == Tags::opposite ? tags_of(Tags::same_order, count) : posted;
  std::vector<Receive> receives(count);
  for (std::size_t i = 0; i < count; ++i) receives[i].pattern = pattern_of(wild_class, posted[i]);
  Matcher matcher;
  for (auto _ : state) {
    for (Receive& receive : receives) matcher.post(receive);
    for (const std::uint64_t tag : sent) benchmark::DoNotOptimize(matcher.arrive({Rank{1}, 0, tag}));
  }
  state.counters["ns_per_message"] = benchmark::Counter(1e-9 * static_cast<double>(count),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

/// n messages arrive, then n receives are posted.
void unexpected(benchmark::State& state, Tags kind, unsigned wild_class) {
  const auto count = static_cast<std::size_t>(state.range(0));
  const std::vector<std::uint64_t> posted = tags_of(kind, count);
  const std::vector<std::uint64_t> sent = kind == Tags::opposite ? tags_of(Tags::same_order, count) : posted;
  std::vector<Envelope> envelopes(count);
  for (std::size_t i = 0; i < count; ++i) envelopes[i].key = {Rank{1}, 0, sent[i]};
  std::vector<Receive> receives(count);
  for (std::size_t i = 0; i < count; ++i) receives[i].pattern = pattern_of(wild_class, posted[i]);
  Matcher matcher;
  for (auto _ : state) {
    for (Envelope& envelope : envelopes) {
      benchmark::DoNotOptimize(matcher.arrive(envelope.key));
      matcher.keep(envelope);
    }
    for (Receive& receive : receives) benchmark::DoNotOptimize(matcher.post(receive));
  }
  state.counters["ns_per_message"] = benchmark::Counter(1e-9 * static_cast<double>(count),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void counts(benchmark::internal::Benchmark* bench) {
  for (const int count : {1, 10, 100, 1000, 10'000, 100'000, 200'000}) bench->Arg(count);
  bench->MinTime(0.1);
}

BENCHMARK_CAPTURE(expected, exact_opposite, Tags::opposite, 0)->Apply(counts);
BENCHMARK_CAPTURE(expected, exact_same_order, Tags::same_order, 0)->Apply(counts);
BENCHMARK_CAPTURE(expected, exact_strided, Tags::strided, 0)->Apply(counts);
BENCHMARK_CAPTURE(expected, exact_random, Tags::random, 0)->Apply(counts);
BENCHMARK_CAPTURE(expected, any_source_opposite, Tags::opposite, 1)->Apply(counts);
BENCHMARK_CAPTURE(expected, any_tag, Tags::opposite, 2)->Apply(counts);
BENCHMARK_CAPTURE(unexpected, exact_opposite, Tags::opposite, 0)->Apply(counts);
BENCHMARK_CAPTURE(unexpected, exact_random, Tags::random, 0)->Apply(counts);
BENCHMARK_CAPTURE(unexpected, any_source_opposite, Tags::opposite, 1)->Apply(counts);
BENCHMARK_CAPTURE(unexpected, any_source_and_tag, Tags::opposite, 3)->Apply(counts);

}  // namespace
}  // namespace tandem::comm
