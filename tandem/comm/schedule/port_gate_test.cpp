// tandem/comm/schedule/port_gate_test.cpp: who waits, for whom, and for how long.
#include "tandem/comm/schedule/port_gate.hpp"

#include <gtest/gtest.h>

namespace tandem::comm {
namespace {

constexpr std::int64_t kGrace = 1000;

TEST(PortGate, AloneOrAmongEqualsNobodyWaits) {
  PortGate gate;
  EXPECT_FALSE(gate.holds(0, 0, 0));
  gate.changed({}, 3, 0);
  gate.changed({}, 3, 0);
  gate.moved(3, 10, kGrace);
  EXPECT_FALSE(gate.holds(3, 11, 0));
  EXPECT_EQ(gate.due_ns(10 + kGrace), PortGate::kNever);
}

TEST(PortGate, TheLessUrgentWaitsWhileTheUrgentMoves) {
  PortGate gate;
  gate.changed({}, 0, 0);
  gate.moved(0, 0, kGrace);
  EXPECT_FALSE(gate.changed({}, 5, 100)) << "nothing lower was released";
  EXPECT_TRUE(gate.contended());
  EXPECT_TRUE(gate.has_below(5));
  EXPECT_FALSE(gate.has_below(0));
  EXPECT_TRUE(gate.holds(0, 100, 0));
  EXPECT_TRUE(gate.holds(4, 100, 0));
  EXPECT_FALSE(gate.holds(5, 100, 0));
  EXPECT_EQ(gate.due_ns(100), 100 + kGrace);
  EXPECT_EQ(gate.due_ns(100 + kGrace), PortGate::kNever) << "else who waits for something else would be looked at for ever";
  EXPECT_FALSE(gate.holds(0, 100 + kGrace, 0)) << "its receiver is slow";
  gate.moved(0, 100 + kGrace, kGrace);
  EXPECT_FALSE(gate.holds(0, 100 + kGrace, 0)) << "what is not urgent is no sign that the urgent moves";
  gate.moved(5, 2000, kGrace);
  EXPECT_TRUE(gate.holds(0, 2001, 0));
  EXPECT_TRUE(gate.changed(5, 2, 2002)) << "those between may go";
  EXPECT_TRUE(gate.holds(0, 2002, 0));
  EXPECT_FALSE(gate.holds(2, 2002, 0));
  EXPECT_TRUE(gate.changed(2, {}, 2003));
  EXPECT_FALSE(gate.holds(0, 2003, 0));
}

TEST(PortGate, TwoPeersOfOnePriorityAreBothWaitedFor) {
  PortGate gate;
  gate.changed({}, 0, 0);
  gate.changed({}, 5, 0);
  gate.changed({}, 5, 0);
  gate.moved(5, 0, kGrace);
  EXPECT_FALSE(gate.changed(5, {}, 1));
  EXPECT_TRUE(gate.holds(0, 2, 0));
  EXPECT_TRUE(gate.changed(5, {}, 3));
  EXPECT_FALSE(gate.holds(0, 3, 0));
}

TEST(PortGate, WhatIsAnnouncedHoldsFromWhenThePortWouldNotBeDone) {
  PortGate gate;
  const std::int64_t ms = 1'000'000;
  const std::uint64_t number = gate.announce(5, 80 * ms, 90 * ms);
  EXPECT_NE(number, 0u);
  EXPECT_TRUE(gate.expects_above(4, 0));
  EXPECT_FALSE(gate.expects_above(5, 0));
  EXPECT_FALSE(gate.holds(0, 69 * ms, 10 * ms));
  EXPECT_TRUE(gate.holds(0, 70 * ms, 10 * ms));
  EXPECT_FALSE(gate.holds(5, 70 * ms, 10 * ms));
  EXPECT_EQ(gate.due_ns(70 * ms), 90 * ms);
  EXPECT_TRUE(gate.holds(0, 90 * ms - 1, 0));
  EXPECT_FALSE(gate.holds(0, 90 * ms, 0));
  gate.expire(90 * ms);
  EXPECT_FALSE(gate.withdraw(number));
  EXPECT_EQ(gate.due_ns(90 * ms), PortGate::kNever);
}

TEST(PortGate, WhatIsWithdrawnHoldsNobody) {
  PortGate gate;
  const std::uint64_t soon = gate.announce(5, 100, 1000), later = gate.announce(3, 200, 1000);
  EXPECT_TRUE(gate.holds(4, 100, 0));
  EXPECT_TRUE(gate.withdraw(soon));
  EXPECT_FALSE(gate.holds(4, 100, 0));
  EXPECT_TRUE(gate.holds(2, 200, 0));
  EXPECT_TRUE(gate.withdraw(later));
  EXPECT_FALSE(gate.holds(2, 200, 0));
  EXPECT_FALSE(gate.withdraw(later));
}

}  // namespace
}  // namespace tandem::comm
