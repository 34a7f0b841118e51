// tandem/model/contention/machine_fit_test.cpp: both models of a machine against generated campaigns, and the gain by
// the second.
//
// There are two kinds of generated campaigns: the thesis's model with the parameters of appendix E, and a queueing
// model of memory controllers that shares nothing with either model. The figures of the thesis are not available as
// numbers.
#include "tandem/model/contention/machine_fit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>
#include <tuple>
#include <utility>

#include "tandem/base/splitmix64.hpp"
#include "tandem/model/contention/platforms.hpp"

namespace tandem::model::contention::machine_fit_test {
namespace {

double noise(std::uint64_t& state, double spread) {
  const auto uniform = [&] { return (static_cast<double>(base::splitmix64(state) >> 11) + 0.5) * 0x1p-53; };
  const double u = uniform(), v = uniform();
  return 1 + spread * std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

template <class Predict>
std::vector<Curve> campaign(unsigned cores, unsigned nodes, double spread, std::uint64_t seed, Predict predict) {
  std::vector<Curve> curves;
  for (unsigned comm = 0; comm < nodes; ++comm)
    for (unsigned comp = 0; comp < nodes; ++comp) {
      Curve curve{{comp, comm}};
      for (unsigned n = 1; n <= cores; ++n) {
        const Bandwidths b = predict(Load{.cores = n, .placement = curve.placement});
        curve.samples.push_back({.cores = n,
                                 .computation_alone_mb_s = b.computation_alone_mb_s * noise(seed, spread),
                                 .communication_alone_mb_s = b.communication_alone_mb_s * noise(seed, spread),
                                 .computation_mb_s = b.computation_mb_s * noise(seed, spread),
                                 .communication_mb_s = b.communication_mb_s * noise(seed, spread)});
      }
      curves.push_back(std::move(curve));
    }
  return curves;
}

/// Memory controllers as queues: an access takes longer the busier its controller is, a core has a fixed number of
/// accesses under way, and the network sends more of them the slower they are, up to a limit. Solved by bisection of
/// each controller's use.
class Queues {
 public:
  double core_mb_s = 5000, controller_mb_s = 45000, network_window = 1.6;
  unsigned nodes_per_socket = 2;
  std::vector<double> network_mb_s{11000, 10400, 8000, 8600};

  Bandwidths operator()(const Load& load) const {
    const auto [comp, comm] = load.placement;
    const double network = network_mb_s[comm];
    Bandwidths b;
    b.communication_alone_mb_s = served(0, network, comm).second;
    b.computation_alone_mb_s = served(load.cores, 0, comp).first;
    if (comp == comm) {
      std::tie(b.computation_mb_s, b.communication_mb_s) = served(load.cores, network, comp);
    } else {  // the controllers of a socket share a little
      const double near = comp / nodes_per_socket == comm / nodes_per_socket ? 0.1 : 0.04;
      const auto both = served(load.cores, network, comp);
      b.computation_mb_s = b.computation_alone_mb_s - near * (b.computation_alone_mb_s - both.first);
      b.communication_mb_s = b.communication_alone_mb_s - near * (network - served(load.cores, network, comm).second);
    }
    return b;
  }

 private:
  std::pair<double, double> served(double cores, double network, unsigned node) const {
    const double capacity = node < nodes_per_socket ? controller_mb_s : 0.45 * controller_mb_s;
    const auto demand = [&](double use) {
      const double slower = 1 + 0.12 * use * use / (1.0001 - use);  // of one access, by what is in the queue
      return std::pair{cores * core_mb_s / slower, std::min(network, network * network_window / slower)};
    };
    double low = 0, high = 1;
    for (int i = 0; i < 60; ++i) {
      const double use = (low + high) / 2;
      const auto [a, b] = demand(use);
      (a + b > use * capacity ? low : high) = use;
    }
    return demand(low);
  }
};

TEST(MachineFit, OfTheThesissCurvesBothModelsPredictAllPlacements) {
  for (const char* name : {"henri", "henrisubnuma", "occigen"}) {
    const Platform& platform = *find_platform(name);
    const ThresholdModel truth(platform.machine);
    const unsigned nodes = 2 * platform.machine.nodes_per_socket;
    const auto predict = [&](const Load& load) { return truth.predict(load); };
    const auto curves = campaign(platform.cores_per_socket, nodes, 0.03, 7, predict);
    const auto clean = campaign(platform.cores_per_socket, nodes, 0, 7, predict);
    const auto fit = fit_machine(curves, platform.machine.nodes_per_socket, Calibration::all);
    ASSERT_TRUE(fit.ok()) << fit.error().message;
    const auto samples = std::vector{fit.value().local_placement, *fit.value().remote_placement};
    const double thesis = errors_of(ThresholdModel(fit.value().threshold), clean, samples).average();
    const double ours = errors_of(SoftModel::create(fit.value().soft).value(), clean, samples).average();
    RecordProperty(std::string(name) + "_percent", std::to_string(thesis) + " " + std::to_string(ours));
    EXPECT_LT(thesis, 1.5) << name;
    EXPECT_LT(ours, thesis + 0.25) << name << ": its own model is what generated these curves";
  }
}

TEST(MachineFit, OfQueuesTheSoftModelErrsLessThanTheThesiss) {
  const Queues truth;
  const auto curves = campaign(18, 4, 0.02, 3, truth);
  for (const auto calibration : {Calibration::all, Calibration::two_placements}) {
    const auto fit = fit_machine(curves, 2, calibration);
    ASSERT_TRUE(fit.ok()) << fit.error().message;
    const ModelErrors &thesis = fit.value().threshold_errors, &ours = fit.value().soft_errors;
    RecordProperty(calibration == Calibration::all ? "all" : "two",
                   std::to_string(thesis.average()) + " " + std::to_string(ours.average()));
    EXPECT_LT(ours.average(), 0.8 * thesis.average());
    EXPECT_LE(ours.communication.on_samples, thesis.communication.on_samples + 0.1);
    EXPECT_LE(ours.computation.on_samples, thesis.computation.on_samples + 0.1);
    if (calibration == Calibration::all) {
      EXPECT_LT(ours.average(), 3);
    }
  }
}

TEST(MachineFit, IntervalsOfPredictionsCoverWhatWasNotMeasured) {
  const Platform& platform = *find_platform("henri");
  const ThresholdModel truth(platform.machine);
  unsigned covered = 0, all = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const auto curves = campaign(18, 2, 0.03, seed, [&](const Load& load) { return truth.predict(load); });
    const auto fit = fit_machine(std::span(curves), 1, Calibration::two_placements);
    ASSERT_TRUE(fit.ok());
    for (const unsigned cores : {3u, 12u, 18u}) {
      const Load load{.cores = cores, .placement = {1, 1}};
      ++all;
      covered +=
          fit.value().interval(load, &Bandwidths::computation_mb_s).contains(truth.predict(load).computation_mb_s);
    }
  }
  EXPECT_GE(covered, all - 4);
}

TEST(MachineFit, OneNumaNodeIsEnough) {
  const ThresholdModel truth(find_platform("henri")->machine);
  const auto curves = campaign(18, 1, 0.01, 1, [&](const Load& load) { return truth.predict(load); });
  const auto fit = fit_machine(curves, 1, Calibration::all);
  ASSERT_TRUE(fit.ok());
  EXPECT_FALSE(fit.value().remote_placement.has_value());
  EXPECT_LT(fit.value().threshold_errors.communication.all, 2);
  EXPECT_TRUE(std::isnan(fit.value().threshold_errors.communication.on_non_samples));
}

TEST(MachineFit, WithoutAPlacementOnOneLocalNodeThereIsNoFit) {
  const ThresholdModel truth(find_platform("henri")->machine);
  auto curves = campaign(18, 2, 0.01, 1, [&](const Load& load) { return truth.predict(load); });
  std::erase_if(curves, [](const Curve& curve) { return curve.placement == Placement{0, 0}; });
  const auto fit = fit_machine(curves, 1, Calibration::all);
  ASSERT_FALSE(fit.ok());
  EXPECT_NE(fit.error().message.find("on one NUMA node of the computing cores"), std::string::npos);
}

TEST(ModelErrors, AreMeanAbsolutePercentages) {
  const ThresholdMachine machine = find_platform("henri")->machine;
  const ThresholdModel model(machine);
  const Load load{.cores = 2, .placement = {0, 0}};
  const Bandwidths b = model.predict(load);
  Curve curve{
      {0, 0},
      {{.cores = 2, .computation_mb_s = b.computation_mb_s / 1.1, .communication_mb_s = b.communication_mb_s / 0.8}}};
  const std::array samples{Placement{0, 0}};
  const ModelErrors errors = errors_of(model, std::array{curve}, samples);
  EXPECT_NEAR(errors.computation.on_samples, 10, 1e-9);
  EXPECT_NEAR(errors.communication.all, 20, 1e-9);
  EXPECT_NEAR(errors.average(), 15, 1e-9);
}

TEST(SoftModel, OfTheThesissParametersPredictsWhatTheThesisPredicts) {
  for (const Platform& platform : platforms()) {
    const ThresholdModel thesis(platform.machine);
    const SoftModel soft = SoftModel::create(soften(platform.machine)).value();
    for (unsigned comp = 0; comp < 4; ++comp)
      for (unsigned comm = 0; comm < 4; ++comm)
        for (unsigned n = 0; n <= platform.cores_per_socket; ++n) {
          const Load load{.cores = n, .placement = {comp, comm}};
          EXPECT_NEAR(soft.predict(load).communication_mb_s, thesis.predict(load).communication_mb_s, 1e-6)
              << platform.name;
          EXPECT_NEAR(soft.predict(load).computation_mb_s, thesis.predict(load).computation_mb_s, 1e-6)
              << platform.name;
        }
  }
}

TEST(SoftModel, KernelsThatComputeAndCachesThatServeLeaveTheNetworkAlone) {
  SoftMachine machine = soften(find_platform("henri")->machine);
  machine.core_gflop_s = 40;
  const auto network = [&](double intensity, double cached) {
    return predict(machine, {.cores = 18, .placement = {0, 0}, .flop_per_byte = intensity, .cached_share = cached});
  };
  const double alone = machine.local.bus.b_comm_seq_mb_s;
  EXPECT_DOUBLE_EQ(network(0, 0).communication_mb_s, 0.915 * alone);
  // 40 GFlop/s / 8 flop/B is more than a core's 4.5 GB/s
  EXPECT_DOUBLE_EQ(network(8, 0).communication_mb_s, 0.915 * alone);
  EXPECT_DOUBLE_EQ(network(20, 0).communication_mb_s, alone);
  EXPECT_NEAR(network(20, 0).computation_mb_s, 18 * 40e3 / 20, 1e-6);
  EXPECT_DOUBLE_EQ(network(0, 0.5).communication_mb_s, alone);
  EXPECT_LT(network(0, 0.5).computation_mb_s, network(0, 0).computation_mb_s);
}

TEST(SoftModel, ShortMessagesAskForLessAndCopiesToDevicesForMore) {
  SoftMachine machine = soften(find_platform("henri")->machine);
  machine.half_message_bytes = 32768;
  const Load long_ones{.cores = 5, .placement = {1, 1}};
  Load short_ones = long_ones, with_device = long_ones;
  short_ones.message_bytes = 32768;
  with_device.device_mb_s = 11459.6;
  EXPECT_DOUBLE_EQ(predict(machine, short_ones).communication_alone_mb_s, 11459.6 / 2);
  EXPECT_GT(predict(machine, short_ones).computation_mb_s + 1, predict(machine, long_ones).computation_mb_s);
  const Bandwidths both = predict(machine, with_device);
  EXPECT_DOUBLE_EQ(both.device_mb_s, both.communication_mb_s);
  EXPECT_LT(both.communication_mb_s, predict(machine, long_ones).communication_mb_s);
  EXPECT_GT(both.communication_mb_s + both.device_mb_s, predict(machine, long_ones).communication_mb_s);
}

TEST(SoftModel, CouplingsAreForFourRelationsOfNodes) {
  const SoftMachine machine = soften(find_platform("henrisubnuma")->machine);
  EXPECT_EQ(machine.relation_of({0, 1}), Relation::local_other);
  EXPECT_EQ(machine.relation_of({1, 2}), Relation::local_remote);
  EXPECT_EQ(machine.relation_of({3, 0}), Relation::remote_local);
  EXPECT_EQ(machine.relation_of({3, 2}), Relation::remote_other);
}

TEST(SoftModel, WrongParametersAreNamed) {
  SoftMachine machine = soften(find_platform("henri")->machine);
  machine.between[1].computation = 2;
  EXPECT_FALSE(SoftModel::create(machine).ok());
  machine = soften(find_platform("henri")->machine);
  machine.remote.softness = -1;
  EXPECT_EQ(SoftModel::create(machine).error().message,
            "remote: softness of a model of memory contention must be between 0 and 0.5");
}

TEST(MessageRates, GiveTheSizeOfHalfTheBandwidth) {
  std::vector<MessageRate> rates;
  for (const double bytes : {1e3, 1e4, 1e5, 1e6, 6.4e7}) rates.push_back({bytes, 10000 * bytes / (bytes + 50000)});
  EXPECT_NEAR(fit_half_message_bytes(rates), 50000, 1);
  EXPECT_EQ(fit_half_message_bytes(std::span(rates).first(1)), 0);
}

TEST(IntensityRates, GiveThePeakOfACore) {
  const std::vector<IntensityRate> rates{{0.1, 5000}, {1, 5000}, {16, 2500}, {32, 1250}};
  EXPECT_NEAR(fit_core_gflop_s(rates, 5000), 40, 1e-9);
  EXPECT_EQ(fit_core_gflop_s(std::span(rates).first(2), 5000), 0);
}

}  // namespace
}  // namespace tandem::model::contention::machine_fit_test
