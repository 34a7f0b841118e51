// tandem/api/memory_contention_test.cpp: the limits of a program, by the option, by files and by machines.
#include "tandem/api/memory_contention.hpp"

#include <unistd.h>

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/configure.hpp"
#include "tandem/api/test_support.hpp"
#include "tandem/base/host.hpp"
#include "tandem/model/contention/platforms.hpp"
#include "tandem/model/contention/threshold_model.hpp"

namespace tandem::memory_contention_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class ProgramsContention : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "contention-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    cache_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(cache_); }

  std::filesystem::path store(const std::string& processor, const std::string& text = {}) {
    const auto file = contention_file(environment()).value();
    std::filesystem::create_directories(file.parent_path());
    const model::contention::StoredMachine stored{
        .machine = model::contention::soften(model::contention::find_platform("henrisubnuma")->machine),
        .cores = 17,
        .processor = processor};
    std::ofstream(file) << (text.empty() ? to_text(stored) : text);
    return file;
  }
  runtime::MemoryGateRule rule(const std::string& option, unsigned workers = 17) { return find(option, workers).gate; }
  tandem::MemoryContention find(const std::string& option, unsigned workers = 17) {
    const auto log = lines_.make_log(base::LogLevel::info);
    return memory_contention_on(find_contention_machine(test::test_config({.more = {{"contention", option}}}),
                                                        environment(), "a processor", *log),
                                workers, *log);
  }
  base::Environment environment() const { return {{"XDG_CACHE_HOME", cache_.string()}}; }

  std::filesystem::path cache_;
  test::LogLines lines_;
};

TEST_F(ProgramsContention, WithoutAFileNothingIsLimited) {
  EXPECT_FALSE(rule("auto").limits(1000));
  EXPECT_FALSE(rule("off").limits(1000));
  EXPECT_THAT(lines_.all(), IsEmpty());
}

TEST_F(ProgramsContention, TheFileOfThisHostLimits) {
  store("a processor");
  const runtime::MemoryGateRule found = rule("auto");
  EXPECT_EQ(found.most, 10U);
  EXPECT_EQ(found.most_beside_messages, 7U);
  EXPECT_TRUE(found.limits(17));
  EXPECT_NEAR(found.network_bytes_per_ns, 11.45, 0.01);
  EXPECT_TRUE(found.is_long(2'000'000));
  EXPECT_FALSE(found.is_long(1'000'000));
  EXPECT_GT(found.least_bytes_per_ns, 0.5);
  EXPECT_THAT(lines_.all(),
              HasSubstr("at most 10 of 17 workers run memory-bound tasks, and 7 while an urgent message is under way"));
  EXPECT_FALSE(rule("off").limits(17));
  EXPECT_FALSE(rule("auto", 7).limits(7)) << "as many may run";
  EXPECT_EQ(rule("auto", 30).most, 10U + 13U) << "the others are on another socket";
}

TEST_F(ProgramsContention, AFileThatDoesNotFitIsLeftOutAndTheLogSaysWhy) {
  store("another one");
  EXPECT_FALSE(rule("auto").limits(17));
  EXPECT_THAT(lines_.all(), HasSubstr("was measured on 'another one', and this is 'a processor'"));
  const auto file = store("", "format = 1\nprocessor = \"a processor\"\n");
  EXPECT_FALSE(rule("auto").limits(17));
  EXPECT_THAT(lines_.all(), HasSubstr("cores is missing"));
  EXPECT_THAT(test::thrown_by<StartError>([&] { rule(file.string()); }),
              HasSubstr("cores is missing")) << "it was asked for";
}

TEST_F(ProgramsContention, AFileOrAMachineCanBeNamed) {
  const auto file = store("another one");
  EXPECT_EQ(rule(file.string()).most, 10U);
  EXPECT_EQ(rule("henrisubnuma").most, 10U);
  EXPECT_FALSE(rule("occigen").limits(13));
  EXPECT_THAT(test::thrown_by<StartError>([&] { rule("henry"); }),
              HasSubstr("'henry' is neither auto nor off, nor a file"));
}

TEST_F(ProgramsContention, SharesAreTheModels) {
  EXPECT_FALSE(find("off").shares.is_known());
  EXPECT_FALSE(find("auto").shares.is_known());
  const runtime::MemoryShares shares = find("henri").shares;
  ASSERT_TRUE(shares.is_known());
  const model::contention::ThresholdModel model(model::contention::find_platform("henri")->machine);
  ASSERT_EQ(shares.of_cores.size(), 18U);
  EXPECT_EQ(shares.share_of(1, false), 1);
  for (unsigned cores = 1; cores <= 17; ++cores) {
    const auto predicted = model.predict({.cores = cores});
    EXPECT_NEAR(shares.share_of(cores, false) * shares.core_bytes_per_ns * 1e3 * cores,
                predicted.computation_alone_mb_s, 1)
        << cores;
    EXPECT_NEAR(shares.share_of(cores, true) * shares.core_bytes_per_ns * 1e3 * cores, predicted.computation_mb_s, 1)
        << cores;
    EXPECT_NEAR(shares.copy_bytes_per_ns(shares.stream_bytes_per_ns, cores) * 1e3, predicted.communication_mb_s, 1)
        << cores;
  }
}

TEST_F(ProgramsContention, CopiesHaveSomethingWhereTheModelLeavesNothing) {
  model::contention::ThresholdMachine machine = model::contention::find_platform("henri")->machine;
  machine.local.alpha = 0;
  const model::contention::ThresholdModel model(machine);
  ASSERT_EQ(model.predict({.cores = 17}).communication_mb_s, 0);
  EXPECT_NEAR(memory_shares(model, {.cores = 17}).copy_bytes_per_ns(10, 17), 0.1, 0.02);
}

}  // namespace
}  // namespace tandem::memory_contention_test
