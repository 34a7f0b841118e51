// tandem/api/refusal_test.cpp: a call that throws leaves no trace: no task, no value, no reference.
#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"
#include "tandem/runtime/runtime_core.hpp"

namespace tandem::refusal_test {
namespace {

using test::loop_runtime;
using test::thrown_by;
using testing::HasSubstr;

const Codelet kSet("set", [](double& v) { v = 1; });
const Codelet kAdd("add", [](double& v) { v += 1; });

/// A value whose copy throws when it is told to.
struct Fragile {
  bool* throws;

  explicit Fragile(bool& told) : throws(&told) {}
  Fragile(const Fragile& other) : throws(other.throws) {
    if (*throws) throw std::runtime_error("no copy");
  }
};

struct Refusal : testing::Test {
  std::unique_ptr<Runtime> owner = loop_runtime();
  Runtime& rt = *owner;
  Data<double> x = rt.scalar<double>("x"), y = rt.scalar<double>("y");

  void expect_no_value(const Data<double>& data) {
    EXPECT_THAT(thrown_by<UsageError>([&] { rt.submit(kAdd, read_write(data)); }), HasSubstr("nobody has written it"));
  }
  ~Refusal() override {
    rt.wait();
    EXPECT_TRUE(rt.core().submission().check_invariants());
  }
};

TEST_F(Refusal, OfATaskAfterARecordedOneGivesItsDataNoValue) {
  TaskRef recorded;
  const Graph graph = rt.record([&] { recorded = rt.submit(kSet, write(x)); });
  const std::uint64_t submitted = rt.core().submission().submitted();
  EXPECT_THAT(thrown_by<UsageError>([&] { rt.submit({.after = {recorded}}, kSet, write(y)); }),
              HasSubstr("after a recorded task"));
  EXPECT_EQ(rt.core().submission().submitted(), submitted);
  expect_no_value(y);
}

TEST_F(Refusal, InARecordingGivesDataNoValue) {
  const TaskRef live = rt.submit(kSet, write(x));
  EXPECT_THAT(thrown_by<UsageError>([&] {
                const Graph graph = rt.record([&] {
                  EXPECT_THAT(thrown_by<UsageError>([&] { rt.submit({.after = {live}}, kSet, write(y)); }),
                              HasSubstr("not of the same recording"));
                  EXPECT_THAT(thrown_by<UsageError>([&] {
                                rt.submit([](const std::unique_ptr<int>&, double& v) { v = 1; },
                                          std::make_unique<int>(1), write(y));
                              }),
                              HasSubstr("cannot be copied"));
                  rt.submit(kAdd, read_write(y));
                });
              }),
              HasSubstr("nobody has written it"));
  expect_no_value(y);
}

TEST_F(Refusal, OfAScratchAccessLeavesNoReference) {
  TaskRef recorded;
  const Graph graph = rt.record([&] { recorded = rt.submit(kSet, write(x)); });
  const std::uint32_t references = y.handle()->references.load();
  EXPECT_THROW(rt.submit({.after = {recorded}}, kSet, scratch(y)), UsageError);
  EXPECT_EQ(y.handle()->references.load(), references);
}

TEST_F(Refusal, OfAValueWhoseCopyThrowsLeavesNoTask) {
  bool throws = false;
  const Fragile value(throws);
  const Codelet kernel("kernel", [](const Fragile&, double& v) { v = 1; });
  const auto submit = [&] { rt.submit(kernel, value, write(y)); };
  submit();
  rt.wait();
  const std::size_t bytes = rt.core().submission().pool().bytes();
  throws = true;
  for (int i = 0; i < 10'000; ++i) EXPECT_EQ(thrown_by<std::runtime_error>(submit), "no copy");
  EXPECT_EQ(rt.core().submission().pool().bytes(), bytes);
  throws = false;
  submit();
}

TEST_F(Refusal, OfACallbackWhoseCopyThrowsLeavesNoTask) {
  bool throws = false;
  TaskOptions options{.callback = [value = Fragile(throws)] {}};
  rt.submit(options, kSet, write(y));
  rt.wait();
  const std::size_t bytes = rt.core().submission().pool().bytes();
  throws = true;
  for (int i = 0; i < 10'000; ++i)
    EXPECT_EQ(thrown_by<std::runtime_error>([&] { rt.submit(options, kSet, write(y)); }), "no copy");
  EXPECT_EQ(rt.core().submission().pool().bytes(), bytes);
  throws = false;
}

}  // namespace
}  // namespace tandem::refusal_test
