// tools/contention/campaign_test.cpp: plans on imaginary machines, lines of samples, curves, steady rates, kernels.
#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "tools/contention/campaign_folder.hpp"
#include "tools/contention/campaign_plan.hpp"
#include "tools/contention/frequencies.hpp"
#include "tools/contention/kernels.hpp"
#include "tools/contention/summary.hpp"
#include "tools/contention/team.hpp"

namespace tandem::tools::contention::campaign_test {
namespace {

namespace fs = std::filesystem;

base::Topology machine(const std::string& description) { return base::Topology::synthetic(description).value(); }

TEST(Layout, OfTwoSocketsTheFirstComputesAndTheLastCoresCommunicate) {
  const base::Topology topology = machine("package:2 numa:2 core:4 pu:1");
  const auto two_hosts = lay_out(topology, false, -1);
  ASSERT_TRUE(two_hosts.ok());
  EXPECT_EQ(two_hosts.value().cores_per_socket, 8u);
  EXPECT_EQ(two_hosts.value().computing.size(), 15u);
  EXPECT_EQ(two_hosts.value().communicating.value(), 15u);
  EXPECT_EQ(two_hosts.value().nodes, 4u);
  EXPECT_EQ(two_hosts.value().nodes_per_socket, 2u);
  EXPECT_TRUE(two_hosts.value().notes.empty());
  const auto one_host = lay_out(topology, true, -1);
  EXPECT_EQ(one_host.value().sending.value(), 14u);
  EXPECT_EQ(one_host.value().computing.size(), 14u);
  const auto near = lay_out(topology, true, 0);
  EXPECT_EQ(near.value().communicating.value(), 0u);
  EXPECT_EQ(near.value().sending.value(), 15u);
  EXPECT_EQ(near.value().cores_per_socket, 7u);
  EXPECT_FALSE(lay_out(topology, true, 16).ok());
}

TEST(Layout, SaysWhatASmallHostCannotHave) {
  const auto two_cores = lay_out(machine("numa:1 core:2 pu:1"), true, -1);
  ASSERT_TRUE(two_cores.ok());
  EXPECT_EQ(two_cores.value().computing.size(), 1u);
  EXPECT_EQ(two_cores.value().sending.value(), 1u);
  std::string notes;
  for (const std::string& note : two_cores.value().notes) notes += note + "\n";
  EXPECT_NE(notes.find("both ranks run on one host"), std::string::npos);
  EXPECT_NE(notes.find("both ranks communicate on core 1"), std::string::npos);
  EXPECT_NE(notes.find("1 core of one socket can compute: a fit of the models needs 4"), std::string::npos);
  EXPECT_NE(notes.find("one NUMA node"), std::string::npos);
  const auto one_core = lay_out(machine("numa:1 core:1 pu:1"), true, -1);
  EXPECT_EQ(one_core.value().computing.size(), 1u);
  EXPECT_NE(one_core.value().notes[1].find("there is one core"), std::string::npos);
}

TEST(Layout, HasOnePlacementWhereMemoryCannotBeBound) {
  const Layout layout = lay_out(machine("package:2 numa:1 core:4 pu:1"), false, -1).value();
  Layout bound = layout, refused = layout;
  keep_if_bound(bound, [](unsigned) { return base::Result<void>(); });
  EXPECT_EQ(bound.nodes, 2u);
  keep_if_bound(refused, [](unsigned node) -> base::Result<void> {
    return node == 1 ? base::Result<void>(base::Error{base::ErrorCode::io, "not permitted"}) : base::Result<void>();
  });
  EXPECT_EQ(refused.nodes, 1u);
  EXPECT_EQ(refused.nodes_per_socket, 1u);
  ASSERT_EQ(refused.notes.size(), layout.notes.size() + 1);
  EXPECT_EQ(refused.notes.back().rfind("memory cannot be bound to NUMA nodes (not permitted): one placement", 0), 0u);
}

TEST(Plan, HasThreeStepsForEachPlacementAndNumberOfCores) {
  const Layout layout = lay_out(machine("package:2 numa:1 core:4 pu:1"), false, -1).value();
  const auto all = plan(layout, {.repetitions = 2});
  ASSERT_TRUE(all.ok());
  // For each repetition: 2 nodes alone; 4 numbers of cores on 2 nodes, alone and with messages on 2 nodes.
  EXPECT_EQ(all.value().size(), 2u * (2 + 2 * 4 * (1 + 2)));
  std::set<decltype(all.value()[0].key())> keys;
  for (const Measurement& m : all.value()) keys.insert(m.key());
  EXPECT_EQ(keys.size(), all.value().size());
  const auto samples = plan(layout, {.samples_only = true, .repetitions = 1});
  EXPECT_EQ(samples.value().size(), 2u + 2 * 4 * (1 + 1));
  EXPECT_FALSE(plan(layout, {.cores = {8}}).ok());  // one of eight communicates
  EXPECT_TRUE(plan(layout, {.cores = {7}}).ok());
  EXPECT_FALSE(plan(layout, {.kernels = {"gemm"}}).ok());
  EXPECT_EQ(plan(layout, {.cores = {3, 1, 3}, .repetitions = 1}).value().back().cores, 3u) << "in order, each once";
}

/// Computation alone is highest with 4 cores, the total with 3.
TEST(Plan, IsShortenedBeyondThePeaksButForTheLastNumberOfCores) {
  const Layout layout = lay_out(machine("package:1 numa:1 core:17 pu:1"), false, -1).value();
  const auto all = plan(layout, {.cores = {}, .repetitions = 2}).value();
  std::vector<Measurement> made;
  std::set<unsigned> left_out, measured_again;
  for (Measurement m : all) {
    if (is_past_peaks(made, m, 16)) {
      left_out.insert(m.cores);
      continue;
    }
    if (m.repetition == 1) measured_again.insert(m.cores);
    m.computation_mb_s = 10.0 * std::min(m.cores, m.step == "both" ? 3u : 4u) - m.cores * 0.1;
    m.communication_mb_s = m.step == "both" ? 5 : 0;
    made.push_back(m);
  }
  EXPECT_EQ(left_out, (std::set<unsigned>{8, 9, 10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(measured_again, (std::set<unsigned>{0, 1, 2, 3, 4, 5, 6, 7, 16}));
}

TEST(Samples, OtherProgramsOnTheirCoresAreTold) {
  std::vector<Measurement> all(3);
  all[1].cpu_share = 0.98;
  EXPECT_EQ(other_programs(all), std::nullopt);
  all[2].cpu_share = 0.25;
  EXPECT_EQ(other_programs(all),
            "other programs ran on the computing cores: in 1 of 3 measurements a core had less than 97 % of its time, "
            "25 % at least "
            "(column cpu_share): measure again on an idle host");
}

TEST(Samples, AreReadAsTheyWereWritten) {
  const Measurement both{.kernel = "triad",
                         .cursor = 4,
                         .message_bytes = 67108864,
                         .computation_node = 1,
                         .communication_node = 0,
                         .cores = 3,
                         .step = "both",
                         .repetition = 2,
                         .computation_mb_s = 1234.5,
                         .iterations_per_s = 10.25,
                         .communication_mb_s = 99.5,
                         .cpu_share = 0.75};
  const Measurement alone{
      .kernel = "primes", .computation_node = 0, .cores = 1, .step = "computation", .iterations_per_s = 3};
  const auto read = read_samples(header_line() + line_of(both) + line_of(alone) + "memset,1,0", "s");
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(read.value().size(), 2u) << "the last line has no end";
  EXPECT_EQ(read.value()[0].key(), both.key());
  EXPECT_EQ(read.value()[0].communication_mb_s, 99.5);
  EXPECT_EQ(read.value()[0].cpu_share, 0.75);
  EXPECT_EQ(read.value()[0].latency_us, std::nullopt);
  EXPECT_EQ(read.value()[1].key(), alone.key());
  EXPECT_EQ(read.value()[1].computation_mb_s, std::nullopt);
}

TEST(Samples, OfAnotherFormatAreRefusedWithTheirLine) {
  EXPECT_FALSE(read_samples("a,b\n1,2\n", "s").ok());
  EXPECT_EQ(read_samples(header_line() + "memset,1,0\n", "s").error().message, "s, line 2: 3 cells instead of 16");
  EXPECT_EQ(read_samples(header_line() + "memset,x,0,0,,1,computation,0,1,1,,,,,,\n", "s").error().message,
            "s, line 2: cursor is wrong");
  EXPECT_EQ(read_samples(header_line() + "memset,1,0,0,,1,sleep,0,1,1,,,,,,\n", "s").error().message,
            "s, line 2: step is wrong");
  EXPECT_EQ(read_samples(header_line() + "memset,1,0,,,1,computation,0,1,1,,,,,,\n", "s").error().message,
            "s, line 2: computation_node is wrong");
}

TEST(Samples, OfCampaignsWithoutFrequenciesAreRead) {
  const std::string text =
      "kernel,cursor,message_bytes,computation_node,communication_node,cores,step,repetition,computation_mb_s,"
      "iterations_per_s,communication_mb_s,latency_us,cpu_share\n"
      "memset,1,64,0,1,3,both,0,9000,10,700,,0.5\n";
  const auto read = read_samples(text, "s");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value().at(0).cpu_share, 0.5);
  EXPECT_FALSE(read.value()[0].computing_mhz);
}

/// A machine of two hardware threads and one uncore, whose files are in a folder.
struct Frequencies : testing::Test {
  Frequencies() {
    for (const char* const cpu : {"cpu0", "cpu1"})
      for (const auto& [file, khz] :
           {std::pair{"scaling_cur_freq", "2300000"}, {"scaling_min_freq", "1000000"}, {"scaling_max_freq", "3000000"}})
        write(cpus / cpu / "cpufreq" / file, khz);
    write(cpus / "intel_uncore_frequency/package_00_die_00/current_freq_khz", "2400000");
    write(cpus / "intel_uncore_frequency/package_00_die_00/min_freq_khz", "1200000");
    write(cpus / "intel_uncore_frequency/package_00_die_00/max_freq_khz", "2400000");
    write(cpus / "intel_pstate/no_turbo", "0");
  }
  ~Frequencies() override { fs::remove_all(root); }
  static void write(const fs::path& file, const std::string& text) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  std::string at(const fs::path& file) const {
    std::string line;
    std::ifstream stream(cpus / file);
    std::getline(stream, line);
    return line;
  }
  const fs::path root = fs::path(testing::TempDir()) / ("frequencies_" + std::to_string(getpid()));
  const fs::path cpus = root / "sys/devices/system/cpu";
};

TEST_F(Frequencies, AreReadOverTime) {
  const FrequencyReader reader({0, 1}, root);
  EXPECT_EQ(reader.source(), "cpufreq");
  EXPECT_EQ(reader.missing(), "");
  FrequencyLog log(reader, 1'000'000);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  write(cpus / "cpu1/cpufreq/scaling_cur_freq", "1300000");
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto readings = log.finish();
  ASSERT_GE(readings.size(), 3U);
  EXPECT_EQ(readings.front().mhz, (std::vector<double>{2300, 2300}));
  EXPECT_EQ(readings.back().mhz, (std::vector<double>{2300, 1300}));
  EXPECT_EQ(typical_mhz(readings, {0}), 2300);
  EXPECT_EQ(typical_mhz({readings.back()}, {0, 1}), 1800);
  EXPECT_EQ(typical_uncore_mhz(readings), 2400);
  EXPECT_EQ(typical_mhz({}, {0}), std::nullopt);
}

TEST_F(Frequencies, AreThoseOfCpuinfoWithoutCpufreq) {
  fs::remove_all(cpus);
  write(root / "proc/cpuinfo", "processor\t: 0\ncpu MHz\t\t: 2599.998\n\nprocessor\t: 1\ncpu MHz\t\t: 1200.5");
  const FrequencyReader reader({1, 0}, root);
  EXPECT_EQ(reader.read().mhz, (std::vector<double>{1200.5, 2599.998}));
  EXPECT_FALSE(reader.read().uncore_mhz);
  EXPECT_NE(reader.missing().find("no cpufreq here"), std::string::npos);
  fs::remove(root / "proc/cpuinfo");
  const FrequencyReader none({0}, root);
  EXPECT_NE(none.missing().find("not known here"), std::string::npos);
  EXPECT_EQ(none.read().mhz, std::vector<double>{0});
}

TEST_F(Frequencies, AreSetAndPutBack) {
  {
    const auto setting = FrequencySetting::apply({.core_mhz = 2000, .uncore_mhz = 1500, .turbo = false}, {0, 1}, root);
    ASSERT_TRUE(setting.ok()) << setting.error().message;
    for (const char* const file : {"cpu0/cpufreq/scaling_min_freq", "cpu1/cpufreq/scaling_max_freq"})
      EXPECT_EQ(at(file), "2000000");
    EXPECT_EQ(at("intel_uncore_frequency/package_00_die_00/max_freq_khz"), "1500000");
    EXPECT_EQ(at("intel_pstate/no_turbo"), "1");
  }
  EXPECT_EQ(at("cpu0/cpufreq/scaling_min_freq"), "1000000");
  EXPECT_EQ(at("cpu1/cpufreq/scaling_max_freq"), "3000000");
  EXPECT_EQ(at("intel_uncore_frequency/package_00_die_00/max_freq_khz"), "2400000");
  EXPECT_EQ(at("intel_pstate/no_turbo"), "0");
}

TEST_F(Frequencies, ThatCannotBeSetLeaveNothingChanged) {
  fs::remove_all(cpus / "intel_uncore_frequency");
  const auto refused = FrequencySetting::apply({.core_mhz = 2000, .uncore_mhz = 1500}, {0, 1}, root);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("intel_uncore_frequency"), std::string::npos);
  EXPECT_EQ(at("cpu0/cpufreq/scaling_min_freq"), "1000000");
  fs::remove_all(cpus);
  EXPECT_NE(FrequencySetting::apply({.turbo = true}, {0}, root).error().message.find("cannot be set on this machine"),
            std::string::npos);
}

TEST(Curves, JoinWhatWasMeasuredAloneAndTogether) {
  Campaign campaign;
  for (unsigned repetition = 0; repetition < 2; ++repetition) {
    campaign.measurements.push_back({.kernel = "none",
                                     .message_bytes = 64 << 20,
                                     .communication_node = 0,
                                     .step = "communication",
                                     .repetition = repetition,
                                     .communication_mb_s = 100 + repetition});
    for (unsigned n = 1; n <= 2; ++n) {
      campaign.measurements.push_back({.kernel = "memset",
                                       .computation_node = 1,
                                       .cores = n,
                                       .step = "computation",
                                       .repetition = repetition,
                                       .computation_mb_s = 10 * n + repetition});
      campaign.measurements.push_back({.kernel = "memset",
                                       .message_bytes = 64 << 20,
                                       .computation_node = 1,
                                       .communication_node = 0,
                                       .cores = n,
                                       .step = "both",
                                       .repetition = repetition,
                                       .computation_mb_s = 9 * n,
                                       .communication_mb_s = 80});
    }
  }
  const auto choice = choose(campaign, {});
  ASSERT_TRUE(choice.ok());
  const auto curves = curves_of(campaign, choice.value());
  ASSERT_EQ(curves.size(), 1u);
  EXPECT_EQ(curves[0].placement, (model::contention::Placement{.computation = 1, .communication = 0}));
  ASSERT_EQ(curves[0].samples.size(), 4u);
  unsigned network = 0;
  for (const auto& sample : curves[0].samples) {
    EXPECT_NEAR(sample.computation_alone_mb_s, 10 * sample.cores, 1);
    EXPECT_EQ(sample.computation_mb_s, 9 * sample.cores);
    network += !std::isnan(sample.communication_alone_mb_s);
  }
  EXPECT_EQ(network, 2u) << "once in each repetition, since it was measured once";
  EXPECT_FALSE(choose(campaign, {.kernel = "memset", .cursor = 7}).ok());
  EXPECT_FALSE(choose(campaign, {.kernel = "memset", .cursor = {}, .message_bytes = 5}).ok());
}

TEST(SteadyRate, LeavesOutTheFirstAndTheLast) {
  const std::int64_t ends[] = {10'000'000'000, 11'000'000'000, 12'000'000'000, 90'000'000'000};
  const auto rate = steady_rate(ends);
  ASSERT_TRUE(rate.has_value());
  EXPECT_DOUBLE_EQ(rate->per_second(), 1);
  EXPECT_FALSE(steady_rate(std::span(ends).first(3)).has_value());
}

TEST(Kernels, DoWhatTheyAreNamedAfter) {
  std::vector<double> memory(3 * 64 + 8);
  auto* const start = reinterpret_cast<double*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64);
  const Arrays x{start, start + 64, start + 128, 64};
  run_once(Kernel::memset, x, 1);
  for (std::size_t i = 1; i < 64; ++i) EXPECT_EQ(x.a[i], x.a[0]);
  EXPECT_NE(x.a[0], 0);
  for (std::size_t i = 0; i < 64; ++i) x.a[i] = static_cast<double>(i);
  run_once(Kernel::copy, x, 1);
  EXPECT_EQ(x.b[63], 63);
  run_once(Kernel::triad, x, 1);
  EXPECT_DOUBLE_EQ(x.c[63], 63 + 0.4 * 63);
  run_once(Kernel::triad, x, 2);
  EXPECT_DOUBLE_EQ(x.c[63], 63 + 0.4 * (63 + 0.4 * 63));
  EXPECT_EQ(run_once(Kernel::primes, {}, 1), 1438);  // primes below 12,000
  EXPECT_NEAR(run_once(Kernel::fma, {}, 1), 64'000, 1);  // 64 times x = 0.999 x + 1
  EXPECT_EQ(bytes_of(Kernel::primes, 64), 0u);
  EXPECT_EQ(bytes_of(Kernel::fma, 64), 0u);
  EXPECT_EQ(bytes_of(Kernel::memset, 64), 512u);
  EXPECT_EQ(bytes_of(Kernel::triad, 64), 1536u);
}

TEST(Team, ComputesUntilTheCallerIsDone) {
  const base::Topology topology = machine("numa:1 core:2 pu:1");
  auto team = Team::create(
      topology,
      {.cores = {base::CoreId{0}, base::CoreId{1}}, .numa_place = 0, .array_bytes = 1 << 16, .kernel = Kernel::memset});
  ASSERT_TRUE(team.ok());
  bool ran = false;
  const TeamRate rate = team.value().run(2, 0.01, [&] { ran = true; });
  EXPECT_TRUE(ran);
  EXPECT_GT(rate.per_second, 100);
  EXPECT_GT(rate.cpu_share, 0);
  EXPECT_LE(rate.cpu_share, 1);
  EXPECT_FALSE(Team::create(topology, {.cores = {base::CoreId{0}}, .numa_place = {}, .array_bytes = 10}).ok());
}

}  // namespace
}  // namespace tandem::tools::contention::campaign_test
