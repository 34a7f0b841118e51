// tandem/analysis/tables/spill_vector_test.cpp: vectors that move from the heap to main memory and to files.
#include "tandem/analysis/tables/spill_vector.hpp"

#include <numeric>

#include <gtest/gtest.h>

#include "tandem/analysis/tables/sort_times.hpp"
#include "tandem/analysis/tables/state_table.hpp"

namespace tandem::analysis::spill_vector_test {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

void fill(SpillVector<std::uint64_t>& vector, std::size_t count) {
  for (std::size_t i = vector.size(); i < count; ++i) vector.push_back(i * 7);
}
void expect_filled(const SpillVector<std::uint64_t>& vector, std::size_t count) {
  ASSERT_EQ(vector.size(), count);
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(vector[i], i * 7);
}

TEST(SpillVector, ElementsMoveFromTheHeapToMainMemoryAndToAFile) {
  const auto memory = SpillMemory::make({.main_bytes = 4 * mib, .window_bytes = mib});
  SpillVector<std::uint64_t> vector(memory);
  fill(vector, 1'000);
  EXPECT_EQ(memory->main_bytes() + memory->file_bytes(), 0u);
  fill(vector, 300'000);
  EXPECT_GT(memory->main_bytes(), 0u);
  EXPECT_EQ(memory->file_bytes(), 0u);
  fill(vector, 1'000'000);
  EXPECT_EQ(memory->main_bytes(), 0u);
  EXPECT_GE(memory->file_bytes(), 8'000'000u);
  expect_filled(vector, 1'000'000);
  memory->drop_pages();
  expect_filled(vector, 1'000'000);
  SpillVector<std::uint64_t> other(std::move(vector));
  fill(other, 2'000'000);
  expect_filled(other, 2'000'000);
  other.free();
  EXPECT_EQ(memory->file_bytes(), 0u);
}

TEST(SpillVector, TablesLeaveHalfOfMainMemoryToTheRest) {
  const auto memory = SpillMemory::make({.main_bytes = 8 * mib, .window_bytes = mib});
  SpillVector<std::uint64_t> table(memory, SpillUse::table), other(memory);
  fill(table, 700'000);
  EXPECT_GT(memory->file_bytes(), 0u);
  EXPECT_EQ(memory->main_bytes(), 0u);
  fill(other, 700'000);
  EXPECT_GT(memory->main_bytes(), 0u);
  expect_filled(table, 700'000);
}

TEST(SpillVector, WithoutRoomForAFileElementsStayInMainMemory) {
  const auto memory = SpillMemory::make({.main_bytes = 0, .window_bytes = 0, .folder = "/there/is/no/such/folder"});
  SpillVector<std::uint64_t> vector(memory);
  fill(vector, 500'000);
  EXPECT_EQ(memory->file_bytes(), 0u);
  expect_filled(vector, 500'000);
}

TEST(SpillVector, NewElementsAreZeroAlsoWhereOthersWere) {
  for (const std::size_t count : {std::size_t{1'000}, std::size_t{400'000}}) {
    SpillVector<std::uint64_t> vector(SpillMemory::make({.main_bytes = 0}));
    fill(vector, count);
    vector.resize(10);
    vector.resize(2 * count);
    for (std::size_t i = 10; i < vector.size(); ++i) ASSERT_EQ(vector[i], 0u) << i;
  }
}

TEST(SpillVector, AFileThatIsSortedHoldsTheSameTimes) {
  SpillVector<std::int64_t> times(SpillMemory::make({.main_bytes = 0, .window_bytes = mib}));
  constexpr std::int64_t count = 500'009;
  for (std::int64_t i = 0; i < count; ++i) times.push_back(i * 7'919 % count);
  sort_by_time(times);
  for (std::int64_t i = 0; i < count; ++i) ASSERT_EQ(times[static_cast<std::size_t>(i)], i);
}

TEST(StateTable, StatesOfActorsThatTakeTurnsFollowEachOther) {
  StateTable states(SpillMemory::make());
  constexpr std::int64_t each = 1'000;
  for (std::int64_t i = 0; i < each; ++i)
    for (std::uint32_t rank = 0; rank < 2; ++rank)
      for (const std::uint32_t actor : {5u, 3u})
        states.add(states.actor(rank, actor, static_cast<std::uint16_t>(actor)),
                   {.start_ns = 10 * i, .end_ns = 10 * i + 5, .state = ActorState::polling});
  states.finish();
  ASSERT_EQ(states.size(), 4u * each);
  std::size_t row = 0;
  for (const StateRow& state : states) {
    const auto place = static_cast<std::int64_t>(row) / each;
    ASSERT_EQ(state.rank, place / 2);
    ASSERT_EQ(state.actor, place % 2 == 0 ? 3u : 5u);
    ASSERT_EQ(state.start_ns, static_cast<std::int64_t>(row) % each * 10);
    ASSERT_EQ(states[row].start_ns, state.start_ns);
    ASSERT_EQ(states[row].actor, state.actor);
    ++row;
  }
  const auto [first, last] = states.of_rank(1);
  std::size_t of_rank = 0;
  for (auto at = first; at != last; ++at, ++of_rank) ASSERT_EQ((*at).rank, 1u);
  EXPECT_EQ(of_rank, 2u * each);
  const auto [none, end] = states.of_rank(7);
  EXPECT_EQ(none, end);
}

TEST(StateTable, StatesOfADamagedTraceAreSorted) {
  StateTable states(SpillMemory::make());
  StateTable::Actor& actor = states.actor(0, 1, 0);
  for (std::int64_t i = 0; i < 700; ++i)
    states.add(actor, {.start_ns = i * 331 % 700, .end_ns = 1'000, .task = static_cast<std::uint32_t>(i)});
  states.finish();
  states.sort();
  for (std::size_t i = 0; i < states.size(); ++i) {
    ASSERT_EQ(states[i].start_ns, static_cast<std::int64_t>(i));
    ASSERT_EQ(states[i].task * 331 % 700, i);
  }
}

}  // namespace
}  // namespace tandem::analysis::spill_vector_test
