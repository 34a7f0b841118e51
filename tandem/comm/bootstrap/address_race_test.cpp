// tandem/comm/bootstrap/address_race_test.cpp: the order and the times of attempts, without network or clock.
#include "tandem/comm/bootstrap/address_race.hpp"

#include <random>

#include <gtest/gtest.h>

namespace tandem::comm::internal::address_race_test {
namespace {

using std::chrono::milliseconds;
using Time = AddressRace::Time;
using Failure = AddressRace::Failure;

class Race : public testing::Test {
 protected:
  Time at(int ms) const { return begin_ + milliseconds(ms); }
  const Time begin_ = Time(std::chrono::hours(1));
  AddressRace race_;
};

TEST_F(Race, TheFirstAddressBeginsAtOnceAndTheNextAfterAWhile) {
  race_.grow(3);
  EXPECT_EQ(race_.next(at(0)), 0u);
  EXPECT_EQ(race_.next(at(0)), std::nullopt);
  EXPECT_EQ(race_.wake(), at(0) + AddressRace::stagger);
  EXPECT_EQ(race_.next(at(249)), std::nullopt);
  EXPECT_EQ(race_.next(at(250)), 1u);
  EXPECT_EQ(race_.next(at(250)), std::nullopt);
  EXPECT_EQ(race_.next(at(500)), 2u);
  EXPECT_EQ(race_.wake(), Time::max()) << "all are under way";
}

TEST_F(Race, AFailureLetsTheNextBeginAtOnce) {
  race_.grow(2);
  ASSERT_EQ(race_.next(at(0)), 0u);
  race_.failed(0, Failure::may_pass, at(1));
  EXPECT_EQ(race_.next(at(1)), 1u);
}

TEST_F(Race, AnAddressThatSwallowsPacketsDelaysNoRetryOfAnother) {
  race_.grow(2);
  ASSERT_EQ(race_.next(at(0)), 0u);  // no answer ever
  ASSERT_EQ(race_.next(at(250)), 1u);
  int now = 250, tries = 1;
  while (now < 2000) {  // refused each time, since its server is not there yet
    race_.failed(1, Failure::may_pass, at(now));
    ASSERT_LE(race_.wake(), at(now) + AddressRace::longest_pause);
    now = static_cast<int>(std::chrono::ceil<milliseconds>(race_.wake() - begin_).count());
    ASSERT_EQ(race_.next(at(now)), 1u);
    ++tries;
  }
  EXPECT_GT(tries, 10);
  EXPECT_LT(tries, 20) << "the pauses grow";
}

TEST_F(Race, IsHopelessWhenNoRouteLeadsToAnyAddress) {
  race_.grow(2);
  EXPECT_FALSE(race_.is_hopeless());
  ASSERT_EQ(race_.next(at(0)), 0u);
  race_.failed(0, Failure::lasts, at(0));
  EXPECT_FALSE(race_.is_hopeless()) << "the other has not been tried";
  ASSERT_EQ(race_.next(at(0)), 1u);
  EXPECT_FALSE(race_.is_hopeless());
  race_.failed(1, Failure::lasts, at(0));
  EXPECT_TRUE(race_.is_hopeless());
  race_.grow(3);  // the name got another address
  EXPECT_FALSE(race_.is_hopeless());
  ASSERT_EQ(race_.next(at(0)), 2u);
  race_.failed(2, Failure::may_pass, at(0));
  EXPECT_FALSE(race_.is_hopeless()) << "somebody may listen there later";
}

TEST_F(Race, WithoutAddressesNothingBeginsAndNothingIsLost) {
  EXPECT_EQ(race_.next(at(0)), std::nullopt);
  EXPECT_EQ(race_.wake(), Time::max());
  EXPECT_FALSE(race_.is_hopeless());
}

/// In any order of failures, an address is never under way twice, each one gets its turn, and a waiting caller is woken
/// in time.
TEST_F(Race, EveryAddressGetsItsTurnWhateverFails) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const std::size_t count = 1 + random() % 6;
    AddressRace race;
    race.grow(count);
    std::vector<bool> under_way(count, false), tried(count, false);
    for (int now = 0; now < 4000; now += 1 + static_cast<int>(random() % 50)) {
      if (race.wake() <= at(now)) {
        ASSERT_NE(race.wake(), Time::max());
      }
      while (const auto address = race.next(at(now))) {
        ASSERT_FALSE(under_way[*address]);
        under_way[*address] = tried[*address] = true;
      }
      ASSERT_GT(race.wake(), at(now)) << "next() has left nothing that is due";
      for (std::size_t i = 0; i < count; ++i) {
        if (!under_way[i] || random() % 4 != 0) continue;
        race.failed(i, random() % 2 == 0 ? Failure::may_pass : Failure::lasts, at(now));
        under_way[i] = false;
      }
    }
    EXPECT_EQ(tried, std::vector<bool>(count, true));
  }
}

}  // namespace
}  // namespace tandem::comm::internal::address_race_test
