// tandem/model/contention/threshold_model_test.cpp: the thesis's model against algorithms 3 to 6, implemented
// literally, and against statements in its text.
#include "tandem/model/contention/threshold_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tandem/model/contention/platforms.hpp"

namespace tandem::model::contention::threshold_model_test {
namespace {

/// Arrays from 1, as in the thesis.
using Array = std::vector<double>;

/// Algorithm 3.
Array predict_total(const ThresholdParameters& m, int number_cores) {
  Array T(number_cores + 1);
  for (int i = 1; i <= number_cores; ++i) {
    if (i <= int(m.n_par_max)) {
      T[i] = m.t_par_max_mb_s;
    } else if (i <= int(m.n_seq_max)) {
      T[i] = m.t_par_max_mb_s - m.delta_l_mb_s * (i - int(m.n_par_max));
    } else {
      T[i] = m.t_par_max2_mb_s - m.delta_r_mb_s * (i - int(m.n_seq_max));
    }
  }
  return T;
}

struct Predicted {
  Array comp_par, comm_par, comp_seq;
};

/// Algorithm 4. Where it would use beta before it has one, alpha stays.
Predicted predict_bandwidths(const ThresholdParameters& m, double comm_seq, int number_cores) {
  const Array T = predict_total(m, number_cores);
  Predicted out{Array(number_cores + 1), Array(number_cores + 1), Array(number_cores + 1)};
  std::optional<double> beta_v;
  std::optional<int> beta_i;
  for (int i = 1; i <= number_cores; ++i) {
    out.comp_seq[i] = std::min(std::min(m.b_comp_seq_mb_s * i, T[i]), m.t_seq_max_mb_s);
    if (i * m.b_comp_seq_mb_s + m.alpha * comm_seq < T[i]) {
      out.comp_par[i] = i * m.b_comp_seq_mb_s;
      out.comm_par[i] = std::min(T[i] - out.comp_par[i], comm_seq);
      beta_v = out.comm_par[i] / comm_seq;
      beta_i = i;
    } else {
      double alpha_i = m.alpha;
      if (int(m.n_seq_max) - int(m.n_par_max) > 1 && i < int(m.n_seq_max) && beta_v) {
        const double delta_c = (*beta_v - m.alpha) / (int(m.n_seq_max) - *beta_i);
        alpha_i = *beta_v - delta_c * (i - *beta_i);
      }
      out.comm_par[i] = alpha_i * comm_seq;
      out.comp_par[i] = T[i] - out.comm_par[i];
    }
  }
  return out;
}

/// Algorithm 5.
Array get_comm_bandwidths(const ThresholdMachine& m, unsigned m_comp, unsigned m_comm, int cores) {
  if (m_comp == m_comm && m_comp >= m.nodes_per_socket)
    return predict_bandwidths(m.remote, m.remote.b_comm_seq_mb_s, cores).comm_par;
  if (m_comm >= m.nodes_per_socket) return predict_bandwidths(m.local, m.remote.b_comm_seq_mb_s, cores).comm_par;
  return predict_bandwidths(m.local, m.local.b_comm_seq_mb_s, cores).comm_par;
}

/// Algorithm 6.
Array get_comp_bandwidths(const ThresholdMachine& m, unsigned m_comp, unsigned m_comm, int cores) {
  const ThresholdParameters& chosen = m_comp < m.nodes_per_socket ? m.local : m.remote;
  const Predicted predicted = predict_bandwidths(chosen, chosen.b_comm_seq_mb_s, cores);
  return m_comp == m_comm ? predicted.comp_par : predicted.comp_seq;
}

class OfPlatform : public testing::TestWithParam<Platform> {};
INSTANTIATE_TEST_SUITE_P(Thesis, OfPlatform, testing::ValuesIn(platforms().begin(), platforms().end()),
                         [](const auto& platform) { return std::string(platform.param.name); });

TEST_P(OfPlatform, EveryPredictionEqualsTheAlgorithms) {
  const Platform& platform = GetParam();
  const ThresholdModel model(platform.machine);
  const int cores = int(platform.cores_per_socket);
  const unsigned nodes = platform.machine.nodes_per_socket * platform.sockets;
  for (unsigned comp = 0; comp < nodes; ++comp)
    for (unsigned comm = 0; comm < nodes; ++comm) {
      const Array of_comm = get_comm_bandwidths(platform.machine, comp, comm, cores);
      const Array of_comp = get_comp_bandwidths(platform.machine, comp, comm, cores);
      for (int n = 1; n <= cores; ++n) {
        const Bandwidths b =
            model.predict({.cores = unsigned(n), .placement = {.computation = comp, .communication = comm}});
        EXPECT_NEAR(b.communication_mb_s, of_comm[n], 1e-9 * of_comm[n]) << comp << ' ' << comm << ' ' << n;
        EXPECT_NEAR(b.computation_mb_s, of_comp[n], 1e-9 * of_comp[n]) << comp << ' ' << comm << ' ' << n;
      }
    }
}

TEST_P(OfPlatform, BelowTheThresholdCoresScalePerfectlyAndNothingIsLost) {
  for (const ThresholdParameters& m : {GetParam().machine.local, GetParam().machine.remote})
    for (unsigned n = 1; n <= GetParam().cores_per_socket; ++n) {
      const Bandwidths b = share(m, n);
      if (n * m.b_comp_seq_mb_s + m.b_comm_seq_mb_s < total_mb_s(m, n)) {
        EXPECT_DOUBLE_EQ(b.communication_mb_s, m.b_comm_seq_mb_s);
        EXPECT_DOUBLE_EQ(b.computation_mb_s, n * m.b_comp_seq_mb_s);
      } else if (required_mb_s(m, n) < total_mb_s(m, n)) {
        EXPECT_DOUBLE_EQ(b.computation_mb_s, n * m.b_comp_seq_mb_s);
        EXPECT_LE(b.communication_mb_s, m.b_comm_seq_mb_s);
      } else {
        EXPECT_NEAR(b.computation_mb_s + b.communication_mb_s, total_mb_s(m, n), 1e-6);
      }
    }
}

TEST_P(OfPlatform, TheNetworkHasAlphaAtNSeqMaxAndNeverLess) {
  for (const ThresholdParameters& m : {GetParam().machine.local, GetParam().machine.remote}) {
    const double least = m.alpha * m.b_comm_seq_mb_s;
    for (unsigned n = 1; n <= GetParam().cores_per_socket; ++n) {
      EXPECT_GE(share(m, n).communication_mb_s, least * (1 - 1e-12)) << n;
      EXPECT_LE(share(m, n).communication_mb_s, m.b_comm_seq_mb_s * (1 + 1e-12)) << n;
    }
    ASSERT_GE(required_mb_s(m, m.n_seq_max), total_mb_s(m, m.n_seq_max))
        << "every machine of appendix E is saturated there";
    EXPECT_NEAR(share(m, m.n_seq_max).communication_mb_s, least, 1e-9 * least);
  }
}

TEST_P(OfPlatform, ComputationAloneIsNeverAboveItsMaximum) {
  for (const ThresholdParameters& m : {GetParam().machine.local, GetParam().machine.remote})
    for (unsigned n = 1; n <= GetParam().cores_per_socket; ++n) {
      EXPECT_LE(share(m, n).computation_alone_mb_s, m.t_seq_max_mb_s);
      EXPECT_LE(share(m, n).computation_alone_mb_s, n * m.b_comp_seq_mb_s);
    }
}

/// Formula 6.7 on a machine of two sockets with two nodes each: all sixteen placements.
TEST(ThresholdModel, ThePlacementChoosesTheModelOfTheNetwork) {
  const Platform& platform = *find_platform("henrisubnuma");
  const ThresholdModel model(platform.machine);
  ThresholdParameters local_with_remote_network = platform.machine.local;
  local_with_remote_network.b_comm_seq_mb_s = platform.machine.remote.b_comm_seq_mb_s;
  const unsigned n = 10;
  for (unsigned comp = 0; comp < 4; ++comp)
    for (unsigned comm = 0; comm < 4; ++comm) {
      const double network = model.predict({.cores = n, .placement = {comp, comm}}).communication_mb_s;
      const ThresholdParameters& expected = comp == comm && comp >= 2 ? platform.machine.remote
                                            : comm >= 2               ? local_with_remote_network
                                                                      : platform.machine.local;
      EXPECT_DOUBLE_EQ(network, share(expected, n).communication_mb_s) << comp << ' ' << comm;
    }
  EXPECT_LT(model.predict({.cores = n, .placement = {2, 2}}).communication_mb_s,
            0.5 * model.predict({.cores = n, .placement = {2, 3}}).communication_mb_s);
}

TEST(ThresholdModel, TheExampleOfItsHeaderHolds) {
  const ThresholdParameters m{5, 10, 5, 10, 10, 0.5, 0, 0, 2, 4};
  EXPECT_DOUBLE_EQ(share(m, 3).communication_mb_s, 4);
  EXPECT_DOUBLE_EQ(share(m, 4).communication_mb_s, 2);
  EXPECT_DOUBLE_EQ(share(m, 4).computation_mb_s, 8);
  EXPECT_DOUBLE_EQ(share(m, 5).communication_mb_s, 2);
  EXPECT_DOUBLE_EQ(share(m, 5).computation_mb_s, 8);
}

TEST(ThresholdModel, AlphaCountsWhereOneCoreAlreadyFillsTheBus) {
  const ThresholdParameters m{1, 10, 6, 9, 8, 0.4, 0.4, 0, 8, 5};  // R(1) = 8 + 2 is not below T(1) = 10
  for (unsigned n = 1; n <= 8; ++n) EXPECT_DOUBLE_EQ(share(m, n).communication_mb_s, 2) << n;
}

TEST(ThresholdModel, TheNetworkFallsInAStraightLineToNSeqMax) {
  // fits up to 3 cores, with all of the network's 20
  const ThresholdParameters m{4, 100, 8, 90, 92, 0.25, 2, 1, 24, 20};
  EXPECT_DOUBLE_EQ(share(m, 3).communication_mb_s, 20);
  for (unsigned n = 4; n < 8; ++n)
    EXPECT_NEAR(share(m, n).communication_mb_s, 20 * (1 - 0.75 / 5 * (n - 3)), 1e-9) << n;
  EXPECT_DOUBLE_EQ(share(m, 8).communication_mb_s, 5);
  EXPECT_DOUBLE_EQ(share(m, 9).communication_mb_s, 5);
}

TEST(ThresholdModel, WithoutCoresTheNetworkIsAlone) {
  const ThresholdModel model(find_platform("diablo")->machine);
  EXPECT_DOUBLE_EQ(model.predict({.cores = 0, .placement = {0, 1}}).communication_mb_s, 22394.3);
  EXPECT_DOUBLE_EQ(model.predict({.cores = 0, .placement = {0, 0}}).communication_mb_s, 12139.7);
  EXPECT_DOUBLE_EQ(model.predict({.cores = 0, .placement = {0, 0}}).computation_mb_s, 0);
}

TEST(ThresholdModel, WrongParametersAreNamed) {
  ThresholdMachine machine = find_platform("henri")->machine;
  machine.remote.alpha = 1.5;
  const auto refused = ThresholdModel::create(machine);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message.rfind("remote: alpha of a model of memory contention must be between 0 and 1", 0),
            0u)
      << refused.error().message;
  machine = find_platform("henri")->machine;
  machine.local.b_comp_seq_mb_s = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(ThresholdModel::create(machine).ok());
  machine = find_platform("henri")->machine;
  machine.nodes_per_socket = 0;
  EXPECT_FALSE(ThresholdModel::create(machine).ok());
}

TEST(Platforms, AreTheNineOfAppendixE) {
  EXPECT_EQ(platforms().size(), 9u);
  for (const Platform& platform : platforms())
    EXPECT_TRUE(ThresholdModel::create(platform.machine).ok()) << platform.name;
  EXPECT_EQ(find_platform("peabody"), nullptr);  // of appendix C, without parameters
}

/// Where N_par_max <= N_seq_max the tables give the total at N_seq_max twice, which finds a wrong digit.
TEST_P(OfPlatform, TheTotalIsContinuousWhereItsSlopeChanges) {
  for (const ThresholdParameters& m : {GetParam().machine.local, GetParam().machine.remote})
    if (m.n_par_max <= m.n_seq_max) {
      EXPECT_NEAR(m.t_par_max_mb_s - m.delta_l_mb_s * (m.n_seq_max - m.n_par_max), m.t_par_max2_mb_s, 0.6);
    }
}

}  // namespace
}  // namespace tandem::model::contention::threshold_model_test
