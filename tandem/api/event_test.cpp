// tandem/api/event_test.cpp: events are completed once, not too early, and also when their start throws.
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"

namespace tandem::event_test {
namespace {

using test::loop_runtime;
using test::thread_runtime;
using test::thrown_by;
using testing::AllOf;
using testing::HasSubstr;

const Codelet kAdd("add", [](double& v) { v += 1; });

void completed_early(Runtime& rt) {
  double value = 0;
  auto x = rt.data("x", value);
  for (int i = 0; i < 50; ++i) rt.submit(kAdd, read_write(x));
  Event event = rt.event("early", Release::separate, {}, read_write(x));
  rt.submit("check", [](double& v) { v = v == 50 ? 1'000 : -1; }, read_write(x));
  event.released();
  event.readable();
  rt.wait();
  EXPECT_EQ(value, 1'000);
}
TEST(Event, WithoutAStartMayBeCompletedBeforeItsPredecessorsEndOnTheEventLoop) { completed_early(*loop_runtime()); }
TEST(Event, WithoutAStartMayBeCompletedBeforeItsPredecessorsEndOnThreads) {
  for (int round = 0; round < 20; ++round) completed_early(*thread_runtime());
}

TEST(Event, AnEarlyFailureIsKeptUntilItsPredecessorsEnd) {
  auto rt = loop_runtime();
  double value = 0;
  auto x = rt->data("x", value);
  rt->submit(kAdd, read_write(x));
  Event event = rt->event("early", Release::with_readable, {}, read_write(x));
  rt->submit(kAdd, read_write(x));
  event.readable(std::make_exception_ptr(std::runtime_error("no link")));
  EXPECT_EQ(thrown_by<std::runtime_error>([&] { rt->wait(); }), "no link");
  EXPECT_EQ(value, 1);
}

TEST(Event, IsCompletedOnce) {
  auto rt = loop_runtime();
  double value = 0;
  auto x = rt->data("x", value);
  Event event = rt->event("once", Release::separate, {}, write(x));
  Event joint = rt->event("joint", Release::with_readable, {}, read(x));
  event.readable();
  EXPECT_THAT(thrown_by<UsageError>([&] { event.readable(); }),
              AllOf(HasSubstr("'once'"), HasSubstr("was made readable before")));
  event.released();
  Event copy = event;
  EXPECT_THAT(thrown_by<UsageError>([&] { copy.released(); }), HasSubstr("was released before"));
  EXPECT_THAT(thrown_by<UsageError>([&] { joint.released(); }),
              AllOf(HasSubstr("'joint'"), HasSubstr("Release::separate")));
  joint.readable();
  rt->wait();
  for (int i = 0; i < 100; ++i) rt->submit(kAdd, read_write(x));
  EXPECT_THROW(event.readable(), UsageError);
  EXPECT_THROW(joint.readable(), UsageError);
  rt->wait();
  EXPECT_EQ(value, 100);
}

TEST(Event, WithAStartIsNotCompletedBeforeIt) {
  auto rt = loop_runtime();
  double value = 0;
  auto x = rt->data("x", value);
  auto held = rt->acquire(write(x));
  Event started;
  Event event = rt->event("later", Release::separate, [&](Event here) { started = here; }, read_write(x));
  EXPECT_THAT(thrown_by<UsageError>([&] { event.readable(); }),
              AllOf(HasSubstr("'later'"), HasSubstr("has not been started")));
  EXPECT_THAT(thrown_by<UsageError>([&] { event.released(); }), HasSubstr("has not been started"));
  rt->submit(kAdd, read_write(x));
  held.release();
  EXPECT_THROW(rt->wait(), StuckError);
  ASSERT_TRUE(started.is_here());
  event.readable();
  started.released();
  EXPECT_THROW(started.readable(), UsageError);
  rt->wait();
  EXPECT_EQ(value, 1);
}

void start_throws(Runtime& rt) {
  double value = 0;
  auto x = rt.data("x", value);
  rt.submit(kAdd, read_write(x));
  Event event = rt.event("throws", Release::separate, [](Event) { throw std::runtime_error("no device"); },
                         read_write(x));
  rt.submit(kAdd, read_write(x));
  EXPECT_EQ(thrown_by<std::runtime_error>([&] { rt.wait(); }), "no device");
  event.released();  // it has ended by itself, which the program may not know
  rt.submit("set", [](double& v) { v = 7; }, write(x));
  rt.wait();
  EXPECT_EQ(value, 7);
}
TEST(Event, AStartThatThrowsFailsItOnTheEventLoop) { start_throws(*loop_runtime()); }
TEST(Event, AStartThatThrowsFailsItOnThreads) { start_throws(*thread_runtime()); }

TEST(Event, AStartThatThrowsAfterItsCompletionChangesNothing) {
  auto rt = loop_runtime();
  double value = 0;
  auto x = rt->data("x", value);
  rt->event("late", Release::separate, [](Event event) {
    event.readable();
    throw std::runtime_error("too late");
  }, read_write(x));
  rt->submit(kAdd, read_write(x));
  rt->wait();
  EXPECT_EQ(value, 1);
}

TEST(Event, ThatIsCancelledMayStillBeCompletedByTheProgram) {
  auto rt = loop_runtime();
  double value = 0;
  auto x = rt->data("x", value);
  rt->submit("throws", [](double&) { throw std::runtime_error("first"); }, read_write(x));
  Event event = rt->event("no input", Release::separate, {}, read_write(x));
  EXPECT_EQ(thrown_by<std::runtime_error>([&] { rt->wait(); }), "first");
  event.readable();
  event.released();
  for (int i = 0; i < 20; ++i) rt->submit("set", [](double& v) { v = 3; }, write(x));
  rt->wait();
  EXPECT_EQ(value, 3);
}

}  // namespace
}  // namespace tandem::event_test
