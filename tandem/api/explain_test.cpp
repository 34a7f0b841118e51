// tandem/api/explain_test.cpp: the explanations of option explain.
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"
#include "tandem/runtime/sched/placing/explainer.hpp"

namespace tandem::explain_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

/// Two cores and a device that runs kernels ten times faster, with explanations of the requested tasks.
struct Scene {
  explicit Scene(const std::string& sched, std::string explain, unsigned cards = 1) {
    auto resources = test::test_resources();
    runtime::World world = make_test_world({.workers = 2,
                                            .sched = sched,
                                            .devices = cards,
                                            .link = runtime::MachineLink{.bytes_per_ns = 1, .latency_ns = 1'000}},
                                           *resources);
    runtime::CoreOptions options;
    options.explain = std::move(explain);
    options.explain_to = [this](std::string_view text) { said.emplace_back(text); };
    options.emulation = [](const runtime::EmulatedTask& task) {
      return task.device == DeviceKind::cpu ? 100'000 : 10'000;
    };
    rt = std::make_unique<Runtime>(std::move(resources), std::move(world), options);
  }

  std::vector<std::string> said;
  std::unique_ptr<Runtime> rt;
};

auto on_both(const char* name) {
  const auto kernel = [](std::span<double>) {};
  return Codelet(name, kernel).also(DeviceKind::user, kernel);
}

void run(Runtime& rt, const char* name, unsigned count) {
  const auto codelet = on_both(name);
  std::vector<std::vector<double>> values(count, std::vector<double>(1'000));
  for (auto& value : values) rt.submit({.priority = 7}, codelet, read_write(rt.data("x", value)));
  rt.wait();
}

TEST(Explain, ShowsWhatWasKnownOfAllWorkers) {
  for (const char* sched : {"plan", "heteroprio", "dmda"}) {
    Scene scene(sched, "scale");
    run(*scene.rt, "warm", 20);
    run(*scene.rt, "scale", 20);  // a few tasks of each name are explained
    EXPECT_THAT(scene.said, SizeIs(runtime::Explainer::kMost)) << sched;
    EXPECT_THAT(scene.said.front(),
                AllOf(HasSubstr("'scale'"), HasSubstr("priority 7"),
                      HasSubstr(std::string(sched) + " gives it to worker"), HasSubstr(" core"),
                      HasSubstr("(1 device)"), HasSubstr("not known yet"), HasSubstr("<- chosen, to learn it")));
    EXPECT_THAT(scene.said.front(), HasSubstr("8000B in 9 us"));  // to the device, which has no copy
  }
}

TEST(Explain, ATaskIsFoundByItsNumber) {
  Scene scene("plan", " 25 , 3");
  run(*scene.rt, "scale", 40);
  ASSERT_THAT(scene.said, SizeIs(2));
  for (const std::string& text : scene.said) {
    EXPECT_THAT(text, AnyOf(HasSubstr("task 25 "), HasSubstr("task 3 ")));
    EXPECT_THAT(text, HasSubstr("ready and without a worker"));
  }
  // The durations are known by then.
  EXPECT_THAT(scene.said.back(),
              AllOf(HasSubstr("100 us +- "), HasSubstr("10 us +- "), Not(HasSubstr("not known yet"))));
}

TEST(Explain, EqualCoresTakeTasksFromQueues) {
  Scene scene("lws", "scale", 0);
  run(*scene.rt, "scale", 1);
  EXPECT_THAT(scene.said, ElementsAre(AllOf(HasSubstr("'scale'"), HasSubstr("takes it from"))));
}

TEST(Explain, NamesThatNoTaskHadAreSaidAtTheEnd) {
  Scene scene("plan", "scal,77");
  run(*scene.rt, "scale", 3);
  scene.rt.reset();
  EXPECT_THAT(scene.said, ElementsAre("no task 'scal' has run here", "no task 77 has run here"));
}

}  // namespace
}  // namespace tandem::explain_test
