// tandem/trace/read/trace_reader_test.cpp: folders of ranks and runs: their content, the merged order, and what is
// refused.
#include <gtest/gtest.h>

#include "tandem/trace/read/reader.hpp"
#include "tandem/trace/read/sample_trace.hpp"

namespace tandem::trace::trace_reader_test {
namespace {

class TraceReaderTest : public ::testing::Test {
 protected:
  void expect_error(const std::filesystem::path& folder, base::ErrorCode code, const std::string& what) {
    const auto opened = TraceReader::open(folder);
    ASSERT_FALSE(opened.ok()) << what;
    EXPECT_EQ(opened.error().code, code) << opened.error().message;
    EXPECT_NE(opened.error().message.find(what), std::string::npos) << opened.error().message;
  }
  std::unique_ptr<TraceReader> open(const std::filesystem::path& folder) {
    auto opened = TraceReader::open(folder);
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    return opened.ok() ? std::move(opened).value() : nullptr;
  }

  test::TempFolder temp_;
  std::filesystem::path run_ = temp_.path() / "run";
};

std::int64_t local_time(const Event& event) { return event.local_ns; }

TEST_F(TraceReaderTest, KnowsRanksAndTheirCatalogues) {
  test::write_sample_run(run_);
  const auto trace = open(run_);
  ASSERT_EQ(trace->ranks.size(), 2u);
  RankTrace& rank = *trace->rank_of(1);
  EXPECT_EQ(trace->rank_of(2), nullptr);
  EXPECT_EQ(rank.size, 2u);
  EXPECT_TRUE(rank.complete);
  EXPECT_FALSE(rank.recovered);
  EXPECT_EQ(rank.host, "node1");
  EXPECT_EQ(rank.program, "./app");
  EXPECT_EQ(rank.arguments, (std::vector<std::string>{"-n", "3"}));
  EXPECT_EQ(rank.version, "0.1.0");
  EXPECT_EQ(rank.scale.multiplier, std::int64_t{1} << 33);
  EXPECT_EQ(rank.realtime_local_ns, 5'000);
  ASSERT_EQ(rank.streams.size(), 4u);
  EXPECT_EQ(rank.stream_of(1)->summary().name, "worker 0");
  EXPECT_EQ(rank.stream_of(1)->summary().kind, ActorKind::worker);
  EXPECT_EQ(rank.stream_of(1)->summary().core, 3);
  EXPECT_EQ(rank.stream_of(9), nullptr);
  ASSERT_EQ(rank.sites.size(), 1u);
  EXPECT_EQ(rank.sites[0].codelet, "potrf");
  ASSERT_EQ(rank.data.size(), 1u);
  EXPECT_EQ(rank.data[0].bytes, 8192u);
  EXPECT_EQ(rank.data[0].name, "A[0,0]");
  ASSERT_EQ(rank.names.size(), 2u);
  EXPECT_EQ(rank.names[1].second, "residual");
  ASSERT_EQ(rank.clock_points.size(), 2u);
  EXPECT_EQ(rank.line().to_reference(5'000), 5'100);
  EXPECT_EQ(rank.line().to_reference(1'000'005'000), 1'000'005'200);
  ASSERT_EQ(rank.options.size(), 1u);
  EXPECT_EQ(rank.options[0].second, "lws");
}

TEST_F(TraceReaderTest, OpensOneRanksFolderToo) {
  test::write_sample_run(run_);
  const auto trace = open(test::sample_rank_folder(run_, 1));
  ASSERT_EQ(trace->ranks.size(), 1u);
  EXPECT_EQ(trace->ranks[0]->rank, 1u);
}

TEST_F(TraceReaderTest, MergesAllActorsInTheOrderOfTime) {
  test::write_sample_run(run_);
  const auto trace = open(run_);
  std::uint64_t count = 0;
  std::tuple<std::int64_t, std::uint32_t, std::uint32_t> before{INT64_MIN, 0, 0};
  const auto each = [&](const Event& event, std::int64_t time_ns) {
    EXPECT_NE(event.spec().category, Category::about);
    const std::tuple now{time_ns, event.rank, event.actor};
    EXPECT_LE(before, now) << "event " << count;
    before = now;
    ++count;
    return true;
  };
  ASSERT_TRUE(trace->in_order(local_time, each).ok());
  EXPECT_EQ(count, 2 * test::sample_events);
  before = {INT64_MIN, 0, 0};
  ASSERT_TRUE(trace->in_order(local_time, each).ok());
  EXPECT_EQ(count, 4 * test::sample_events) << "it begins anew";
}

TEST_F(TraceReaderTest, StopsMergingOnRequest) {
  test::write_sample_run(run_);
  int count = 0;
  ASSERT_TRUE(open(run_)->in_order(local_time, [&](const Event&, std::int64_t) { return ++count < 10; }).ok());
  EXPECT_EQ(count, 10);
}

TEST_F(TraceReaderTest, CountsAStreamsGreatestTimeWhereTimeDecreases) {
  test::write_sample_run(run_);
  std::int64_t before = INT64_MIN;
  int falling = 0;
  const auto falls = [&](const Event&) -> std::int64_t { return 1000 - falling++; };
  ASSERT_TRUE(open(test::sample_rank_folder(run_, 0))->in_order(falls, [&](const Event&, std::int64_t time_ns) {
    EXPECT_GE(time_ns, before);
    before = time_ns;
    return true;
  }).ok());
}

TEST_F(TraceReaderTest, HandsOnWhatIsMalformed) {
  test::write_sample_run(run_);
  test::PacketWriter packet(1, 0, 2'000'000);
  test::write_file(test::stream_path(test::sample_rank_folder(run_, 0), 1),
                   packet.add(static_cast<Type>(126), 2'000'000).bytes());
  const auto done = open(run_)->in_order(local_time, [](const Event&, std::int64_t) { return true; });
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, base::ErrorCode::malformed);
}

TEST_F(TraceReaderTest, RefusesFoldersThatAreNoTrace) {
  expect_error(run_, base::ErrorCode::not_found, "no such folder");
  std::filesystem::create_directories(run_);
  expect_error(run_, base::ErrorCode::not_found, "is no trace");
  std::filesystem::create_directories(run_ / "rank-0000");
  expect_error(run_, base::ErrorCode::not_found, "rank.json");
}

TEST_F(TraceReaderTest, RefusesTwoRanksOfOneNumber) {
  test::write_sample_run(run_);
  test::write_sample_rank(run_ / "rank-0002", {.rank = 1, .size = 2});
  expect_error(run_, base::ErrorCode::malformed, "two folders are of rank 1");
}

TEST_F(TraceReaderTest, SaysWhichKeyOfTheManifestIsWrong) {
  const auto folder = test::sample_rank_folder(run_, 0);
  const auto with = [&](const std::string& old, const std::string& anew) {
    test::write_sample_run(run_);
    std::string text = test::read_file(folder / manifest_file);
    const auto place = text.find(old);
    ASSERT_NE(place, std::string::npos) << old;
    test::write_file(folder / manifest_file, text.replace(place, old.size(), anew));
  };
  with("\"multiplier\"", "\"multiplied\"");
  expect_error(run_, base::ErrorCode::malformed, "'clock.multiplier' is missing");
  with("8589934592", "0");
  expect_error(run_, base::ErrorCode::malformed, "'clock.multiplier' is no whole number from 1");
  with("8589934592", "2.5");
  expect_error(run_, base::ErrorCode::malformed, "'clock.multiplier' is no whole number");
  with("1700000000000000000", "9223372036854775807");
  expect_error(run_, base::ErrorCode::malformed, "'clock.realtime_ns'");
  with("1700000000000000000", "18446744073709551615");
  expect_error(run_, base::ErrorCode::malformed, "'clock.realtime_ns'");
  with("\"rank\": 0", "\"rank\": \"0\"");
  expect_error(run_, base::ErrorCode::malformed, "'rank' is no whole number");
  with("\"rank\": 0", "\"rank\": -1");
  expect_error(run_, base::ErrorCode::malformed, "'rank' is no whole number");
  for (const char* const wrong : {"3", "[0, -1]", "[\"0\"]"}) {
    with("\"numa_nodes\"", "\"pus\": " + std::string(wrong) + ", \"numa_nodes\"");
    expect_error(run_, base::ErrorCode::malformed, "'machine.pus' is no list of numbers");
  }
  with("\"format\": 2", "\"format\": 1");
  expect_error(run_, base::ErrorCode::malformed,
               "'format' is 1, and this version of Tandem reads 2: read the trace with the version that wrote it");
  with("\"host\": \"node1\"", "\"host\": 3");
  expect_error(run_, base::ErrorCode::malformed, "'host' is no text");
  with("\"complete\": true", "\"complete\": 1");
  expect_error(run_, base::ErrorCode::malformed, "'complete' is neither");
  with("\"clock\": {", "\"clock\": 3, \"x\": {");
  expect_error(run_, base::ErrorCode::malformed, "'clock.origin_ticks' is missing");
  with("task.started", "task.begun");
  expect_error(run_, base::ErrorCode::malformed, "'events'");
  with("\"kind\": \"u32\"", "\"kind\": \"u64\"");
  expect_error(run_, base::ErrorCode::malformed, "with the version that wrote it");
  with("{\"tandem\"", "[\"tandem\"");
  expect_error(run_, base::ErrorCode::malformed, "is no JSON object");
}

TEST_F(TraceReaderTest, RefusesATraceThatItsProgramDidNotEndAndSaysTheRemedy) {
  test::write_sample_rank(test::sample_rank_folder(run_, 0), {.complete = false});
  expect_error(run_, base::ErrorCode::unsupported, "tandem trace recover");
  test::write_sample_rank(test::sample_rank_folder(run_, 0), {.complete = false, .recovered = true});
  EXPECT_NE(open(run_), nullptr);
}

TEST_F(TraceReaderTest, RefusesATraceThatIsBeingWritten) {
  const auto folder = test::sample_rank_folder(run_, 0);
  test::write_sample_rank(folder, {});
  test::kill_sample_rank(folder, temp_.path() / "live", {.process = static_cast<std::uint32_t>(::getpid())});
  expect_error(run_, base::ErrorCode::unsupported, "is still writing");
}

TEST_F(TraceReaderTest, RefusesAStreamUnderAnotherActorsName) {
  test::write_sample_run(run_);
  const auto folder = test::sample_rank_folder(run_, 0);
  std::filesystem::rename(test::stream_path(folder, 3), test::stream_path(folder, 4));
  expect_error(run_, base::ErrorCode::malformed, "holds the stream of actor 3");
}

TEST_F(TraceReaderTest, RefusesNumbersFarBeyondTheCatalogue) {
  test::write_sample_run(run_);
  test::PacketWriter catalogue(0, 0, 1'000'000);
  catalogue.add(Type::name, 1'000'000, {4'000'000'000u, 0, "far"});
  test::write_file(test::stream_path(test::sample_rank_folder(run_, 0), 0), catalogue.bytes());
  expect_error(run_, base::ErrorCode::malformed, "the number 4000000000 in about.name");
}

TEST_F(TraceReaderTest, DoesWithoutACatalogue) {
  test::write_sample_run(run_);
  std::filesystem::remove(test::stream_path(test::sample_rank_folder(run_, 0), 0));
  EXPECT_EQ(open(run_)->rank_of(0)->stream_of(1)->summary().name, "actor 1");
}

}  // namespace
}  // namespace tandem::trace::trace_reader_test
