// tandem/model/contention/limit_test.cpp: how many cores compute beside a message, on the machines of the thesis.
#include "tandem/model/contention/limit.hpp"

#include <gtest/gtest.h>

#include "tandem/model/contention/platforms.hpp"
#include "tandem/model/contention/threshold_model.hpp"

namespace tandem::model::contention::limit_test {
namespace {

const Placement kPlacements[] = {{0, 0}, {1, 1}, {1, 0}, {0, 1}};

TEST(CoresBesideMessage, LoseNoWorkAndMakeMessagesFaster) {
  unsigned limited = 0;
  for (const Platform& platform : platforms()) {
    const ThresholdModel model(platform.machine);
    for (const Placement& placement : kPlacements) {
      for (unsigned all = 0; all <= platform.cores_per_socket; ++all) {
        const Load load{.cores = all, .placement = placement};
        const unsigned most = cores_beside_message(model, load);
        EXPECT_LE(most, all);
        if (most == all) continue;
        EXPECT_GE(most, 1U);
        ++limited;
        const Bandwidths full = model.predict(load), beside = model.predict({.cores = most, .placement = placement});
        EXPECT_GT(beside.communication_mb_s, full.communication_mb_s) << platform.name << " " << all;
        const double alone = full.computation_alone_mb_s;
        EXPECT_LE((1 - beside.computation_mb_s / alone) / beside.communication_mb_s,
                  (1 - full.computation_mb_s / alone) / full.communication_mb_s);
      }
    }
  }
  EXPECT_GT(limited, 50U);
}

TEST(CoresThatFillBus, HaveWhatMoreWouldHave) {
  for (const Platform& platform : platforms()) {
    const ThresholdModel model(platform.machine);
    for (const Placement& placement : kPlacements) {
      for (unsigned all = 1; all <= platform.cores_per_socket; ++all) {
        const unsigned most = cores_that_fill_bus(model, {.cores = all, .placement = placement});
        ASSERT_GE(most, 1U);
        ASSERT_LE(most, all);
        const auto alone_mb_s = [&](unsigned cores) {
          return model.predict({.cores = cores, .placement = placement}).computation_alone_mb_s;
        };
        for (unsigned cores = 1; cores <= all; ++cores) EXPECT_GE(alone_mb_s(most), 0.99 * alone_mb_s(cores));
        if (most > 1) {
          EXPECT_GT(alone_mb_s(most), alone_mb_s(most - 1));
        }
      }
    }
  }
  EXPECT_EQ(cores_that_fill_bus(ThresholdModel(find_platform("henri")->machine), {.cores = 17, .placement = {1, 1}}),
            7U);
  EXPECT_EQ(cores_that_fill_bus(ThresholdModel(find_platform("henri")->machine), {.cores = 17}), 17U)
      << "local memory serves all";
  EXPECT_EQ(cores_that_fill_bus(ThresholdModel(find_platform("henri")->machine), {}), 0U);
}

TEST(CoresBesideMessage, AreAllWhereTheNetworkDoesNotSuffer) {
  const ThresholdModel occigen(find_platform("occigen")->machine);  // alpha is 1
  for (const Placement& placement : kPlacements)
    EXPECT_EQ(cores_beside_message(occigen, {.cores = 13, .placement = placement}), 13U);
}

TEST(CoresBesideMessage, OfAFullBusAreFew) {
  const ThresholdModel machine(find_platform("henrisubnuma")->machine);
  EXPECT_EQ(cores_beside_message(machine, {.cores = 17, .placement = {2, 2}}), 1U)
      << "the network has 3.1 GB/s beside 17 cores, and 11.4 beside one";
  EXPECT_EQ(cores_beside_message(machine, {.cores = 17, .placement = {0, 0}}), 7U) << "both are faster than with 17";
}

}  // namespace
}  // namespace tandem::model::contention::limit_test
