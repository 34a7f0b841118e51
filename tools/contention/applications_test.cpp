// tools/contention/applications_test.cpp: plans of applications, their lines, resuming after an interruption, facts in
// a trace.
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tandem/analysis/history/small_run.hpp"
#include "tools/contention/application_job.hpp"
#include "tools/contention/applications.hpp"

namespace tandem::tools::contention::applications_test {
namespace {

namespace fs = std::filesystem;
using analysis::test::at;
using analysis::test::SmallRun;
using trace::Type;

const std::string header = application_format.header();

ApplicationRun some_run(unsigned workers = 2, unsigned repetition = 0) {
  return {.application = "cg",
          .workers = workers,
          .repetition = repetition,
          .seconds = 0.5,
          .gflop_s = 12.25,
          .iterations_per_s = 80,
          .messages = 640,
          .message_bytes = 1310720,
          .send_mb_s = {},
          .delivered_mb_s = 950.5,
          .stalled = 0.25};
}

TEST(Applications, RunWithPowersOfTwoAndAllCores) {
  EXPECT_EQ(worker_counts({}, 1), (std::vector<unsigned>{1}));
  EXPECT_EQ(worker_counts({}, 4), (std::vector<unsigned>{1, 2, 4}));
  EXPECT_EQ(worker_counts({}, 18), (std::vector<unsigned>{1, 2, 4, 8, 16, 18}));
  EXPECT_EQ(worker_counts({.workers = {6, 2, 6}}, 4), (std::vector<unsigned>{2, 6}));
}

TEST(Applications, ArePlannedARepetitionAfterTheOther) {
  const auto plan = plan_applications({.applications = {"cg", "gemm", "cg"}}, {1, 2}, 2);
  ASSERT_EQ(plan.size(), 8u) << "each once";
  EXPECT_EQ(plan[0].key(), std::tuple("cg", 1u, 0u));
  EXPECT_EQ(plan[1].key(), std::tuple("cg", 2u, 0u));
  EXPECT_EQ(plan[2].key(), std::tuple("gemm", 1u, 0u));
  EXPECT_EQ(plan[7].key(), std::tuple("gemm", 2u, 1u));
  EXPECT_TRUE(plan_applications({}, {1}, 5).empty());
}

TEST(Applications, ThatMakeNoSenseAreRefused) {
  EXPECT_TRUE(check({}, 2).ok());
  EXPECT_TRUE(check({.applications = {"cg", "gemm"}, .workers = {1, 2}}, 2).ok());
  EXPECT_EQ(check({.workers = {1}}, 2).error().message,
            "contention measure: --workers is for applications: name them, as in --applications cg,gemm");
  EXPECT_EQ(check({.applications = {"cg"}, .workers = {1, 3}}, 2).error().message,
            "contention measure: --workers 3: from 1 to 2, the cores that this process may use");
  const auto small = check({.applications = {"gemm"}, .gemm_order = 256, .tile = 256}, 2);
  ASSERT_FALSE(small.ok());
  EXPECT_NE(small.error().message.find("--gemm-order 256 with tiles of 256 (--nb) makes one tile"), std::string::npos);
  EXPECT_TRUE(check({.applications = {"cg"}, .gemm_order = 256, .tile = 256}, 2).ok()) << "no gemm is wanted";
}

TEST(Applications, SayWhatTheHostCannotShow) {
  EXPECT_TRUE(notes_of_applications({1, 2}, 4, false, "").empty());
  const auto notes = notes_of_applications({1, 2}, 1, true, "no such counters");
  ASSERT_EQ(notes.size(), 3u);
  EXPECT_NE(notes[0].find("both ranks share this host, 1 core for each"), std::string::npos);
  EXPECT_NE(notes[1].find("2 workers on 1 core of a rank share cores"), std::string::npos);
  EXPECT_NE(notes[2].find("no such counters"), std::string::npos);
  EXPECT_NE(notes_of_applications({4}, 4, false, "").at(0).find("no core left for the thread that serves messages"),
            std::string::npos);
}

TEST(Applications, AreReadAsTheyWereWritten) {
  const auto read = application_format.read(header + application_format.line(some_run()) + "gemm,1,0,1.5", "a");
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(read.value().size(), 1u) << "the last line has no end";
  const ApplicationRun& run = read.value()[0];
  EXPECT_EQ(run.key(), some_run().key());
  EXPECT_EQ(run.seconds, 0.5);
  EXPECT_EQ(run.gflop_s, 12.25);
  EXPECT_EQ(run.iterations_per_s, 80);
  EXPECT_EQ(run.messages, 640u);
  EXPECT_EQ(run.message_bytes, 1310720u);
  EXPECT_EQ(run.send_mb_s, std::nullopt);
  EXPECT_EQ(run.delivered_mb_s, 950.5);
  EXPECT_EQ(run.stalled, 0.25);
}

TEST(Applications, OfAnotherFormatAreRefusedWithTheirLine) {
  const auto message = [](const std::string& text) { return application_format.read(text, "a").error().message; };
  EXPECT_EQ(message("x,y\n"), "a: its first line is not that of applications: " + header.substr(0, header.size() - 1));
  EXPECT_EQ(message(header + "cg,1\n"), "a, line 2: 2 cells instead of 11");
  EXPECT_EQ(message(header + "lu,1,0,1,1,,0,0,,,\n"), "a, line 2: application is wrong");
  EXPECT_EQ(message(header + "cg,1,0,1,1,,0,0,,,\ncg,0,0,1,1,,0,0,,,\n"), "a, line 3: workers is wrong");
  EXPECT_EQ(message(header + "cg,1,0,0,1,,0,0,,,\n"), "a, line 2: seconds is wrong");
  EXPECT_EQ(message(header + "cg,1,0,1,1,,0,0,,fast,\n"), "a, line 2: delivered_mb_s is wrong");
}

TEST(Applications, GoOnWhereTheyWereInterrupted) {
  const trace::test::TempFolder folder;
  const fs::path path = folder.path() / applications_file;
  {
    auto file = RowFile<ApplicationRun>::open(path, application_format);
    ASSERT_TRUE(file.ok()) << file.error().message;
    ASSERT_TRUE(file.value().add(some_run(1)).ok());
    ASSERT_TRUE(file.value().add(some_run(2)).ok());
  }
  std::ofstream(path, std::ios::app) << "cg,4,0,0.";
  auto file = RowFile<ApplicationRun>::open(path, application_format);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file.value().rows().size(), 2u);
  EXPECT_TRUE(file.value().has(some_run(2)));
  EXPECT_FALSE(file.value().has(some_run(4)));
  EXPECT_FALSE(file.value().has(some_run(2, 1)));
  ASSERT_TRUE(file.value().add(some_run(4)).ok());
  EXPECT_EQ(read_applications(folder.path().string()).value().size(), 3u);
  std::ofstream(path) << "x,y\n1,2\n";
  EXPECT_FALSE(RowFile<ApplicationRun>::open(path, application_format).ok());
  EXPECT_TRUE(read_applications((folder.path() / "none").string()).value().empty());
}

TEST(Applications, AreSummarisedByNumberOfWorkers) {
  std::vector<ApplicationRun> runs{some_run(2, 0), some_run(1, 0), some_run(2, 1), some_run(2, 2)};
  runs[2].seconds = 1;
  runs[3].seconds = 2;
  const auto rows = summary_of(runs);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].workers, 1u);
  EXPECT_EQ(rows[1].workers, 2u);
  EXPECT_EQ(cells_of(rows[1]),
            (std::array<std::string, application_columns>{"cg", "2", "1.000 [0.500, 2.000]", "12.25 [12.25, 12.25]",
                                                          "-", "0.951 [0.951, 0.951]", "25 [25, 25] %"}));
}

TEST(Applications, TakeMessagesAndStallsFromTheTrace) {
  SmallRun written(2);
  written.usual(0).usual(1);
  written.submit(0, 0, 1, 1).execute(0, 2, 1, 10, 20).submit(1, 0, 1, 1).execute(1, 2, 1, 10, 20);
  written.stream(0, 2).add(Type::task_counters, at(20), {1, 300, 250, 30, 4});
  written.stream(1, 2).add(Type::task_counters, at(20), {1, 100, 250, 70, 4});
  // Rank 0 sends 6000 bytes in 100 ns, which take 200 ns to arrive; rank 1 sends 1000 bytes, which leave at once and
  // take 400 ns.
  written.stream(0, 4)
      .add(Type::receive_posted, at(20), {2, 1, 0, 8})
      .add(Type::send_posted, at(100), {1, 1, 0, 0, 7, 6000})
      .add(Type::message_sent, at(200), {1});
  written.stream(1, 4)
      .add(Type::receive_posted, at(20), {1, 0, 0, 7})
      .add(Type::message_arrived, at(300), {1, 0, 0, 7, 6000});
  written.stream(1, 4).add(Type::send_posted, at(400), {2, 0, 0, 0, 8, 1000}).add(Type::message_sent, at(400), {2});
  written.stream(0, 4).add(Type::message_arrived, at(800), {2, 1, 0, 8, 1000});
  // the last one carries no data
  written.stream(0, 4).add(Type::data_sent, at(800), {0, 1, 3, 1}).add(Type::send_posted, at(900), {3, 1, 0, 0, 9, 16});
  written.stream(1, 4).add(Type::data_sent, at(800), {1, 1, 4, 2});
  ApplicationRun run{.application = "cg"};
  const auto read = read_messages(written.write(), run);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(run.messages, 2u);
  EXPECT_EQ(run.message_bytes, 7000u);
  EXPECT_DOUBLE_EQ(run.send_mb_s.value(), 60'000) << "of rank 0 alone";
  EXPECT_DOUBLE_EQ(run.delivered_mb_s.value(), (30'000 + 2'500) / 2.0);
  EXPECT_DOUBLE_EQ(run.stalled.value(), 0.25);
  EXPECT_FALSE(read_messages(written.temporary() / "nowhere", run).ok());
}

}  // namespace
}  // namespace tandem::tools::contention::applications_test
