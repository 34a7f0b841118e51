// tools/trace/export_test.cpp: exports agree with the history, in the terms of their formats; and events are counted
// exactly.
#include "tandem/analysis/history/small_run.hpp"
#include "tandem/analysis/tables.hpp"
#include "tools/trace/export.hpp"

#include <algorithm>
#include <bit>
#include <regex>

#include <gmock/gmock.h>

#include "tandem/base/utf8.hpp"
#include "tools/trace/protobuf_writer.hpp"
#include "tools/trace/stats.hpp"

namespace tandem::tools::trace_export_test {

using namespace analysis;
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using analysis::test::at;
using analysis::test::SmallRun;
using trace::access_word;
using trace::Type;

std::string content(const std::filesystem::path& file) { return trace::test::read_file(file); }

std::size_t lines_like(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  std::istringstream lines(text);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line);) count += std::regex_match(line, expression) ? 1 : 0;
  return count;
}

const ExportedTable* table(const Exported& exported, const std::string& name) {
  const auto found = std::ranges::find(exported.tables, name, &ExportedTable::name);
  return found == exported.tables.end() ? nullptr : &*found;
}

/// Two ranks: rank 0 runs two tasks, and sends what the second one wrote to rank 1.
void write_two_ranks(SmallRun& run) {
  run.usual(0).usual(1);
  run.catalogue()
      .add(Type::name, at(0), {0, 2, "phase \"one\""})
      .add(Type::name, at(0), {1, 1, "residual"})
      .add(Type::name, at(0), {2, 0, "here"});
  run.submit(0, 0, 1, 0, {access_word(0, 2)}).submit(0, 2, 2, 1, {access_word(0, 0), access_word(1, 1)}, {1}, 3);
  auto& submitter = run.stream(0, 1);
  submitter.add(Type::task_ready, at(10), {1})
      .add(Type::task_ready, at(400), {2})
      .add(Type::wait_began, at(500))
      .add(Type::wait_ended, at(900));
  run.stream(0, 2).add(Type::worker_state, at(4), {1});
  run.execute(0, 2, 1, 100, 400).execute(0, 2, 2, 400, 700);
  auto& worker = run.stream(0, 2);
  worker.add(Type::span_began, at(710), {0})
      .add(Type::counter, at(720), {1, 0.5})
      .add(Type::mark, at(730), {2, 1.0})
      .add(Type::span_ended, at(740), {0});
  worker.add(Type::data_allocated, at(750), {0, 1, 8192})
      .add(Type::transfer_started, at(760), {0, 0, 1, 8192})
      .add(Type::transfer_ended, at(770), {0, 0, 1});
  run.stream(0, 4).add(Type::send_posted, at(800), {1, 1, 7, 5, 99, 8192}).add(Type::data_sent, at(800), {1, 1, 2, 1});
  run.submit(1, 0, 1, 1, {access_word(1, 0)});
  run.stream(1, 4)
      .add(Type::receive_posted, at(20), {1, 0, 7, 99})
      .add(Type::message_arrived, at(1000), {1, 0, 7, 99, 8192});
  run.stream(1, 4).add(Type::data_received, at(1000), {1, 1, 1, 1});
  run.execute(1, 2, 1, 1010, 1110);
  submitter.add(Type::data_numa, at(1200), {1, 1});
  run.stream(1, 1).add(Type::data_numa, at(1200), {1, 0});
}

class ExportTest : public ::testing::Test {
 protected:
  ExportTest() : run_(2) {
    write_two_ranks(run_);
    history_ = run_.read();
  }
  std::filesystem::path out(const char* name) const { return run_.temporary() / name; }

  SmallRun run_;
  std::unique_ptr<History> history_;
};

TEST_F(ExportTest, PajeSetsAStateForEachExecutionAndDrawsMessages) {
  const auto exported = export_paje(*history_, out("paje"));
  ASSERT_TRUE(exported.ok()) << exported.error().message;
  const std::string paje = content(out("paje") / "paje.trace");
  EXPECT_EQ(lines_like(paje, "20\t.*"), 3u);
  EXPECT_EQ(lines_like(paje, "20\t0\\.000400\tWS\tr0a2\tWSk[0-9]\t0_2\t1\t3"), 1u);
  EXPECT_EQ(lines_like(paje, "18\t0\\.000800\tMSG\trun\tr0n\t8192\tm0"), 1u);
  EXPECT_EQ(lines_like(paje, "19\t0\\.001000\tMSG\trun\tr1n\t8192\tm0"), 1u);
  EXPECT_EQ(lines_like(paje, "1[89]\t.*\tCOPY\trun\tr0m[01]\t8192\tc0"), 2u);
  EXPECT_EQ(lines_like(paje, "9\t0\\.000730\tMARK\tr0\tMARKm0"), 1u);
  EXPECT_EQ(lines_like(paje, "13\t0\\.000720\tV0\tr0\t0.5"), 1u);
  EXPECT_EQ(lines_like(paje, "13\t0\\.000400\tREADY\tr0\t[01]"), 2u);
  EXPECT_EQ(lines_like(paje, "10\t0\\.000[59]00\tTS\tr0a1\tTS(w0|run)"), 2u) << "the submitter waits";
  EXPECT_THAT(paje, HasSubstr("\"phase 'one'\""));
  std::istringstream lines(paje);
  double last = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("%") || std::stoi(line) < 7) continue;
    const double time = std::stod(line.substr(line.find('\t')));
    ASSERT_GE(time, last) << "ViTE wants events in order: " << line;
    last = time;
  }
  ASSERT_NE(table(exported.value(), "executions"), nullptr);
  EXPECT_EQ(table(exported.value(), "executions")->rows, 3u);
  EXPECT_EQ(table(exported.value(), "executions")->total_ns, 700);
}

TEST_F(ExportTest, EventsOfTheProgramsOwnTypesStandBesideMarks) {
  DeclaredEvents& type = history_->declared.emplace_back();
  type.name = "solver.residual";
  type.fields = {"iteration", "shift", "norm", "what"};
  type.kinds = {trace::Field::u32, trace::Field::i64, trace::Field::f64, trace::Field::text};
  type.rows.push_back({.rank = 0, .actor = 2, .task = no_number, .time_ns = 735});
  type.rows.push_back({.rank = 1, .actor = 3, .task = no_number, .time_ns = 1100});
  for (const std::uint64_t iteration : {3, 4})
    for (const std::uint64_t value : {iteration, ~std::uint64_t{0}, std::bit_cast<std::uint64_t>(0.25),
                                      std::uint64_t{history_->texts.add("halved")}})
      type.values.push_back(value);
  auto exported = export_paje(*history_, out("paje"));
  ASSERT_TRUE(exported.ok()) << exported.error().message;
  const std::string paje = content(out("paje") / "paje.trace");
  const std::string alias = "OWNe" + std::to_string(history_->declared.size() - 1);  // the run may have declared others
  EXPECT_EQ(lines_like(paje, "6\t" + alias + "\tOWN\t\"solver.residual\"\t.*"), 1u);
  EXPECT_EQ(lines_like(paje, "9\t0\\.00(0735|1100)\tOWN\tr[01]\t" + alias), 2u);
  exported = export_perfetto(*history_, out("own.pftrace"));
  ASSERT_TRUE(exported.ok()) << exported.error().message;
  const std::string perfetto = content(out("own.pftrace"));
  for (const char* expected : {"solver.residual", "iteration", "shift", "norm", "what", "halved"})
    EXPECT_THAT(perfetto, HasSubstr(expected));
  ASSERT_NE(table(exported.value(), "events of the program's own types"), nullptr);
  EXPECT_EQ(table(exported.value(), "events of the program's own types")->rows, 2u);
}

TEST_F(ExportTest, RecordsHaveStarPUsColumns) {
  ASSERT_TRUE(export_paje(*history_, out("paje")).ok());
  const std::string tasks = content(out("paje") / "tasks.rec");
  EXPECT_EQ(lines_like(tasks, "JobId: [01]_[12]"), 3u);
  EXPECT_THAT(tasks,
              HasSubstr("Name: gemm\nModel: gemm\nFile: app.cpp\nLine: 43\nJobId: 0_2\nSubmitOrder: 2\nPriority: "
                        "3\nDependsOn: 0_1\nTag: 0\n"
                        "WorkerId: 0\nMemoryNode: 0\nSubmitTime: 0.000002\nReadyTime: 0.000400\nStartTime: 0.000400\n"
                        "EndTime: 0.000700\nFootprint: "));
  EXPECT_THAT(tasks, HasSubstr("Handles: 0 1\nModes: R W\nSizes: 8192 8192\nNumaNodes: -1 1\nMPIRank: 0\n\n"));
  EXPECT_THAT(
      content(out("paje") / "data.rec"),
      HasSubstr("Handle: 1\nHomeNode: 0\nMPIRank: 1\nName: A[1,0]\nSize: 8192\nMaxSize: 8192\nDescription: 32 x 32\n"
                "Coordinates: 1 0\nMPIOwner: 1\n\n"));
  EXPECT_EQ(content(out("paje") / "comms.rec"),
            "Src: 0\nDst: 1\nTag: 99\nSendTime: 0.000800\nRecvTime: 0.001000\nSendHandle: 1\nRecvHandle: 1\nSendJobId: "
            "0_2\nRecvJobId: 1_1\n"
            "Size: 8192\nPriority: 5\nType: PointToPoint\nSendNumaNodes: 1\nRecvNumaNodes: 0\n\n");
  EXPECT_THAT(content(out("paje") / "dag.dot"), HasSubstr("\"0_1\" -> \"0_2\";\n  \"0_2\" -> \"1_1\" [style=dashed];"));
}

/// The numeric fields of a protobuf message, and the fields with bytes.
struct Fields {
  explicit Fields(std::string_view bytes) {
    std::size_t at = 0;
    const auto number = [&] {
      std::uint64_t value = 0;
      for (unsigned shift = 0;; shift += 7) {
        const auto byte = static_cast<unsigned char>(bytes.at(at++));
        value |= std::uint64_t{byte & 0x7FU} << shift;
        if (byte < 0x80) return value;
      }
    };
    while (at < bytes.size()) {
      const std::uint64_t key = number();
      switch (key & 7) {
        case 0: numbers[key >> 3] = number(); break;
        case 1: at += 8; break;
        case 2: {
          const std::uint64_t length = number();
          texts.emplace_back(key >> 3, bytes.substr(at, length));
          at += length;
          break;
        }
        default: throw std::runtime_error("no such kind of field is written");
      }
    }
  }
  std::string_view text(std::uint64_t field) const {
    const auto found = std::ranges::find(texts, field, [](const auto& one) { return one.first; });
    return found == texts.end() ? std::string_view() : found->second;
  }
  std::map<std::uint64_t, std::uint64_t> numbers;
  std::vector<std::pair<std::uint64_t, std::string_view>> texts;
};

TEST(Export, PerfettoShowsWhatAKernelNamesBelowItsTask) {
  SmallRun run;
  run.usual().submit(0, 0, 1, 0).submit(0, 0, 2, 1);
  run.catalogue().add(Type::name, at(0), {0, 5, "whole"}).add(Type::name, at(0), {1, 5, "half"});
  auto& worker = run.stream(0, 2);
  worker.add(Type::task_started, at(10), {1}).add(Type::span_began, at(10), {0});
  worker.add(Type::span_began, at(20), {1}).add(Type::span_ended, at(30), {1});
  worker.add(Type::span_began, at(30), {1}).add(Type::span_ended, at(40), {1});
  worker.add(Type::span_ended, at(40), {0}).add(Type::task_ended, at(40), {1});
  worker.add(Type::task_started, at(40), {2}).add(Type::task_ended, at(50), {2});
  worker.add(Type::span_began, at(60), {0}).add(Type::span_ended, at(70), {0});
  const auto history = run.read();
  const auto exported = export_perfetto(*history, run.temporary() / "run.pftrace");
  ASSERT_TRUE(exported.ok()) << exported.error().message;
  EXPECT_EQ(table(exported.value(), "spans and waits")->rows, 4u);
  const std::string bytes = content(run.temporary() / "run.pftrace");
  // TracePacket: 8 timestamp, 11 track event of 9 type (1 begins, 2 ends), 11 track, 22 categories.
  std::map<std::uint64_t, std::string> tracks;
  for (const auto& [field, packet] : Fields(bytes).texts) {
    const Fields one(packet);
    if (one.text(11).empty()) continue;
    const Fields event(one.text(11));
    const std::uint64_t type = event.numbers.at(9);
    if (type > 2) continue;
    tracks[event.numbers.at(11)] +=
        std::to_string(one.numbers.at(8)) + (type == 1 ? "(" + std::string(event.text(22)) + " " : ") ");
  }
  std::vector<std::string> lines;
  for (const auto& [track, line] : tracks) lines.push_back(line);
  EXPECT_THAT(lines, testing::UnorderedElementsAre("10(task 10(user 20(user 30) 30(user 40) 40) 40) 40(task 50) ",
                                                   "60(user 70) "));
}

TEST_F(ExportTest, PerfettoHasASliceForEachStateAndAFlowForEachMessage) {
  const auto exported = export_perfetto(*history_, out("run.pftrace"));
  ASSERT_TRUE(exported.ok()) << exported.error().message;
  EXPECT_EQ(table(exported.value(), "executions")->rows, 3u);
  EXPECT_EQ(table(exported.value(), "executions")->total_ns, 700);
  EXPECT_EQ(table(exported.value(), "flows")->rows, 1u);
  EXPECT_EQ(table(exported.value(), "spans and waits")->rows, 2u);
  const std::string bytes = content(out("run.pftrace"));
  EXPECT_EQ(exported.value().files.at(0).bytes, bytes.size());
  EXPECT_THAT(bytes, HasSubstr("potrf"));
  // Packets follow each other to the end: field 1, a length, so many bytes.
  std::size_t where = 0;
  while (where < bytes.size()) {
    ASSERT_EQ(bytes[where++], '\x0a');
    std::size_t length = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.at(where++));
      length |= std::size_t{byte & 0x7FU} << shift;
      if (byte < 0x80) break;
    }
    where += length;
  }
  EXPECT_EQ(where, bytes.size());
}

TEST_F(ExportTest, CtfIsACopyOfTheTrace) {
  const auto exported = export_ctf(run_.folder(), out("ctf"));
  ASSERT_TRUE(exported.ok()) << exported.error().message;
  EXPECT_EQ(content(out("ctf") / "rank-0001/stream_0004"), content(run_.folder() / "rank-0001/stream_0004"));
  EXPECT_TRUE(trace::TraceReader::open(out("ctf")).ok());
  EXPECT_FALSE(export_ctf(run_.folder(), run_.folder()).ok()) << "onto itself";
}

TEST_F(ExportTest, WhereNothingCanBeWrittenItIsSaid) {
  trace::test::write_file(out("file"), "x");
  for (const auto& result :
       {export_paje(*history_, out("file") / "paje"), export_perfetto(*history_, out("file") / "run.pftrace"),
        export_ctf(run_.folder(), out("file") / "ctf")}) {
    ASSERT_FALSE(result.ok());
    EXPECT_THAT(result.error().message, HasSubstr("file"));
  }
}

TEST(Export, AnEmptyTraceIsExported) {
  SmallRun run;
  run.usual();
  auto history = run.read();
  EXPECT_EQ(history->duration_ns, 0);
  EXPECT_TRUE(export_paje(*history, run.temporary() / "paje").ok());
  EXPECT_TRUE(export_perfetto(*history, run.temporary() / "run.pftrace").ok());
}

/// Whether all of the text is UTF-8.
bool is_utf8(std::string_view text) {
  for (std::size_t length = 0; !text.empty(); text.remove_prefix(length))
    if (length = base::utf8_length(text); length == 0) return false;
  return true;
}

TEST(Export, NamesThatAreNoUtf8AreReplaced) {
  SmallRun run;
  run.usual(0);
  constexpr const char* bad = "na\xFFme \xC3";
  run.catalogue()
      .add(Type::name, at(0), {0, 2, bad})
      .add(Type::name, at(0), {1, 1, bad})
      .add(Type::name, at(0), {2, 0, bad});
  run.submit(0, 0, 1, 0, {access_word(0, 2)}).execute(0, 2, 1, 100, 400);
  run.stream(0, 2)
      .add(Type::span_began, at(710), {0})
      .add(Type::counter, at(720), {1, 0.5})
      .add(Type::mark, at(730), {2, 1.0})
      .add(Type::span_ended, at(740), {0});
  const auto history = run.read();
  const std::filesystem::path folder = run.temporary();
  ASSERT_TRUE(export_paje(*history, folder / "paje").ok());
  EXPECT_THAT(content(folder / "paje" / "paje.trace"), HasSubstr("\"na\xEF\xBF\xBDme \xEF\xBF\xBD"));
  for (const auto& file : std::filesystem::directory_iterator(folder / "paje"))
    EXPECT_TRUE(is_utf8(content(file.path()))) << file.path();
  ASSERT_TRUE(export_perfetto(*history, folder / "perfetto").ok());

  const std::string perfetto = content(folder / "perfetto");
  EXPECT_THAT(perfetto, HasSubstr("na\xEF\xBF\xBDme \xEF\xBF\xBD"));
  EXPECT_THAT(perfetto, Not(HasSubstr("na\xFFme")));
}

TEST(Export, MessagesThatOverlapGoToTracksOfTheirOwn) {
  SmallRun run(2);
  run.usual(0).usual(1);
  for (std::uint32_t i = 0; i < 3; ++i)
    run.stream(0, 4).add(Type::send_posted, at(100 + 10 * i), {i + 1, 1, 7, 0, i, 64});
  for (std::uint32_t i = 0; i < 3; ++i)
    run.stream(1, 4).add(Type::message_arrived, at(200 + 10 * i), {i + 1, 0, 7, i, 64});
  const auto history = run.read();
  const auto exported = export_perfetto(*history, run.temporary() / "run.pftrace");
  ASSERT_TRUE(exported.ok());
  const std::string bytes = content(run.temporary() / "run.pftrace");
  std::size_t tracks = 0;
  for (std::size_t found = bytes.find("messages that come"); found != std::string::npos;
       found = bytes.find("messages that come", found + 1))
    ++tracks;
  EXPECT_EQ(tracks, 3u);
}

TEST(Export, CountsOfTasksRiseAndFall) {
  SmallRun run;
  run.usual().submit(0, 0, 1, 0).submit(0, 10, 2, 0);
  run.stream(0, 1).add(Type::task_ready, at(20), {1}).add(Type::task_ready, at(30), {2});
  run.execute(0, 2, 1, 40, 50);
  const auto history = run.read();
  std::vector<std::tuple<std::int64_t, int, int>> changes;
  for (const TaskCountChange& change : task_count_changes(*history))
    changes.emplace_back(change.time_ns, change.submitted, change.ready);
  using Change = std::tuple<std::int64_t, int, int>;
  EXPECT_THAT(changes,
              ElementsAre(Change{0, 1, 0}, Change{10, 1, 0}, Change{20, -1, 1}, Change{30, -1, 0}, Change{40, 0, -1}))
      << "what never starts is not ready";
}

TEST(Protobuf, FieldsAreWrittenAsTheFormatSays) {
  // Examples from protobuf.dev/programming-guides/encoding.
  EXPECT_EQ(ProtobufMessage().integer(1, 150).bytes(), "\x08\x96\x01");
  EXPECT_EQ(ProtobufMessage().text(2, "testing").bytes(), "\x12\x07testing");
  EXPECT_EQ(ProtobufMessage().message(3, ProtobufMessage().integer(1, 150)).bytes(), "\x1a\x03\x08\x96\x01");
  EXPECT_EQ(ProtobufMessage().integer(1, static_cast<std::uint64_t>(-2)).bytes(),
            "\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  EXPECT_EQ(ProtobufMessage().real(1, 1.0).bytes(), std::string("\x09\0\0\0\0\0\0\xf0\x3f", 9));
}

TEST(TraceStats, EveryByteOfASampleIsCounted) {
  trace::test::TempFolder folder;
  trace::test::write_sample_run(folder.path() / "run");
  auto run = trace::TraceReader::open(folder.path() / "run");
  ASSERT_TRUE(run.ok());
  const auto read = stats_of(*run.value(), {.bins = 7});
  ASSERT_TRUE(read.ok());
  const TraceStats& stats = read.value();
  std::uint64_t packets = 0, binned = 0;
  for (const auto& rank : run.value()->ranks)
    for (const auto& stream : rank->streams) packets += stream->summary().packets;
  EXPECT_EQ(stats.all.events, 2 * (trace::test::sample_events + trace::test::sample_descriptions));
  EXPECT_EQ(stats.types[static_cast<std::size_t>(Type::task_started)].events, 2u * trace::test::sample_tasks);
  EXPECT_EQ(stats.all.bytes + packets * sizeof(trace::PacketHeader), stats.stream_bytes);
  ASSERT_EQ(stats.bins.size(), 7u);
  for (const auto& bin : stats.bins)
    for (const std::uint64_t count : bin) binned += count;
  EXPECT_EQ(binned, 2 * trace::test::sample_events) << "descriptions have no time";
}

TEST(TraceStats, EventsWithTheStampBeforeThemCostLess) {
  SmallRun run;
  run.usual();
  run.stream(0, 2)
      .add(Type::task_started, at(100), {1})
      .add(Type::task_ended, at(200), {1})
      .add(Type::task_ready, at(200), {2});
  auto opened = trace::TraceReader::open(run.write());
  ASSERT_TRUE(opened.ok());
  const auto stats = stats_of(*opened.value(), {.event_ns = 10, .same_stamp_ns = 1});
  ASSERT_TRUE(stats.ok());
  EXPECT_EQ(stats.value().all.cost_ns, 21);
  EXPECT_EQ(stats.value().categories[static_cast<std::size_t>(trace::Category::task)].same_stamp, 1u);
}

TEST(Tables, TextsOfTheSampleRunAreKnown) {
  const auto read = analysis::test::read_sample_run();
  History& history = *read;
  for (const Table& table : tables_of(history)) {
    for (const Column& column : table.columns) {
      for (std::size_t row = 0; column.kind == ColumnKind::text && row < table.rows; ++row) {
        ASSERT_LT(column.integer(row), static_cast<std::int64_t>(history.texts.size())) << column.name;
      }
    }
  }
}

}  // namespace
}  // namespace tandem::tools::trace_export_test
