// tandem/comm/schedule/port_pacer_test.cpp: which bulk waits, for what, and for how long.
#include "tandem/comm/schedule/port_pacer.hpp"

#include <gtest/gtest.h>

namespace tandem::comm::port_pacer_test {
namespace {

constexpr std::int64_t kGrace = 1000;

TEST(PortPacer, AloneOrAmongEqualsNobodyWaits) {
  PortPacer pacer;
  EXPECT_FALSE(pacer.holds(0, 0, 0));
  pacer.changed({}, 3, 0);
  pacer.changed({}, 3, 0);
  pacer.moved(3, 10, kGrace);
  EXPECT_FALSE(pacer.holds(3, 11, 0));
  EXPECT_EQ(pacer.due_ns(10 + kGrace), PortPacer::kNever);
}

TEST(PortPacer, TheLessUrgentWaitsWhileTheUrgentMoves) {
  PortPacer pacer;
  pacer.changed({}, 0, 0);
  pacer.moved(0, 0, kGrace);
  EXPECT_FALSE(pacer.changed({}, 5, 100)) << "nothing lower was released";
  EXPECT_TRUE(pacer.contended());
  EXPECT_TRUE(pacer.has_below(5));
  EXPECT_FALSE(pacer.has_below(0));
  EXPECT_TRUE(pacer.holds(0, 100, 0));
  EXPECT_TRUE(pacer.holds(4, 100, 0));
  EXPECT_FALSE(pacer.holds(5, 100, 0));
  EXPECT_EQ(pacer.due_ns(100), 100 + kGrace);
  EXPECT_EQ(pacer.due_ns(100 + kGrace), PortPacer::kNever)
      << "else bulk that waits for another reason would be asked for ever";
  EXPECT_FALSE(pacer.holds(0, 100 + kGrace, 0)) << "its receiver is slow";
  pacer.moved(0, 100 + kGrace, kGrace);
  EXPECT_FALSE(pacer.holds(0, 100 + kGrace, 0)) << "what is not urgent is no sign that the urgent moves";
  pacer.moved(5, 2000, kGrace);
  EXPECT_TRUE(pacer.holds(0, 2001, 0));
  EXPECT_TRUE(pacer.changed(5, 2, 2002)) << "those between may go";
  EXPECT_TRUE(pacer.holds(0, 2002, 0));
  EXPECT_FALSE(pacer.holds(2, 2002, 0));
  EXPECT_TRUE(pacer.changed(2, {}, 2003));
  EXPECT_FALSE(pacer.holds(0, 2003, 0));
}

TEST(PortPacer, TwoPeersOfOnePriorityAreBothWaitedFor) {
  PortPacer pacer;
  pacer.changed({}, 0, 0);
  pacer.changed({}, 5, 0);
  pacer.changed({}, 5, 0);
  pacer.moved(5, 0, kGrace);
  EXPECT_FALSE(pacer.changed(5, {}, 1));
  EXPECT_TRUE(pacer.holds(0, 2, 0));
  EXPECT_TRUE(pacer.changed(5, {}, 3));
  EXPECT_FALSE(pacer.holds(0, 3, 0));
}

TEST(PortPacer, WhatIsAnnouncedHoldsFromWhenThePortWouldNotBeDone) {
  PortPacer pacer;
  const std::int64_t ms = 1'000'000;
  const std::uint64_t number = pacer.announce(5, 80 * ms, 90 * ms);
  EXPECT_NE(number, 0u);
  EXPECT_TRUE(pacer.expects_above(4, 0));
  EXPECT_FALSE(pacer.expects_above(5, 0));
  EXPECT_FALSE(pacer.holds(0, 69 * ms, 10 * ms));
  EXPECT_TRUE(pacer.holds(0, 70 * ms, 10 * ms));
  EXPECT_FALSE(pacer.holds(5, 70 * ms, 10 * ms));
  EXPECT_EQ(pacer.due_ns(70 * ms), 90 * ms);
  EXPECT_TRUE(pacer.holds(0, 90 * ms - 1, 0));
  EXPECT_FALSE(pacer.holds(0, 90 * ms, 0));
  pacer.expire(90 * ms);
  EXPECT_FALSE(pacer.withdraw(number));
  EXPECT_EQ(pacer.due_ns(90 * ms), PortPacer::kNever);
}

TEST(PortPacer, WhatIsWithdrawnHoldsNobody) {
  PortPacer pacer;
  const std::uint64_t soon = pacer.announce(5, 100, 1000), later = pacer.announce(3, 200, 1000);
  EXPECT_TRUE(pacer.holds(4, 100, 0));
  EXPECT_TRUE(pacer.withdraw(soon));
  EXPECT_FALSE(pacer.holds(4, 100, 0));
  EXPECT_TRUE(pacer.holds(2, 200, 0));
  EXPECT_TRUE(pacer.withdraw(later));
  EXPECT_FALSE(pacer.holds(2, 200, 0));
  EXPECT_FALSE(pacer.withdraw(later));
}

}  // namespace
}  // namespace tandem::comm::port_pacer_test
