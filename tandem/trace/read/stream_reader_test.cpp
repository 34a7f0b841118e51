// tandem/trace/read/stream_reader_test.cpp: one stream: what is read, and the error of each kind of damage.
#include <unistd.h>

#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "tandem/trace/read/reader.hpp"
#include "tandem/trace/read/sample_trace.hpp"

namespace tandem::trace::stream_reader_test {
namespace {

using test::PacketWriter;

class StreamReaderTest : public ::testing::Test {
 protected:
  base::Result<std::unique_ptr<StreamReader>> open(const std::string& bytes) {
    test::write_file(file_, bytes);
    return StreamReader::open(file_, 3, test::RankFacts{}.scale());
  }
  /// All events, or the first error.
  base::Result<std::vector<Event>> read(const std::string& bytes) {
    auto opened = open(bytes);
    if (!opened) return opened.error();
    reader_ = std::move(opened).value();
    std::vector<Event> events;
    for (;;) {
      auto event = reader_->next();
      if (!event) {
        const auto behind = reader_->next();
        EXPECT_TRUE(behind.ok() && !behind.value()) << "something follows an error";
        return event.error();
      }
      if (!event.value()) return events;
      events.push_back(*event.value());
    }
  }
  void expect_error(const std::string& bytes, const std::string& what, std::size_t at) {
    const auto events = read(bytes);
    ASSERT_FALSE(events.ok()) << what;
    EXPECT_EQ(events.error().code, base::ErrorCode::malformed);
    EXPECT_NE(events.error().message.find(what), std::string::npos) << events.error().message;
    EXPECT_NE(events.error().message.find("at byte " + std::to_string(at) + ":"), std::string::npos)
        << events.error().message;
    EXPECT_NE(events.error().message.find(file_.string()), std::string::npos) << events.error().message;
  }

  test::TempFolder folder_;
  std::filesystem::path file_ = folder_.path() / "stream_0001";
  std::unique_ptr<StreamReader> reader_;
};

PacketWriter one_event(std::uint64_t sequence = 0, std::uint64_t ticks = 2'000'000) {
  PacketWriter packet(1, sequence, ticks);
  packet.add(Type::task_started, ticks + 5, {7});
  return packet;
}

TEST_F(StreamReaderTest, AFileOfAnotherUserIsCopiedSoThatHeCannotCutItWhileItIsRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  std::string bytes;
  for (std::uint64_t i = 0; i < 20'000; ++i) bytes += one_event(i, 2'000'000 + 10 * i).bytes();
  test::write_file(file_, bytes);
  ASSERT_EQ(::chown(file_.c_str(), 65534, 65534), 0);
  const auto reader = StreamReader::open(file_, 3, test::RankFacts{}.scale());
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  ASSERT_EQ(::truncate(file_.c_str(), 0), 0);
  std::size_t events = 0;
  for (auto event = reader.value()->next(); event.ok() && event.value(); event = reader.value()->next()) ++events;
  EXPECT_EQ(events, 20'000u);
}

TEST_F(StreamReaderTest, GivesStampsAndFieldsBack) {
  PacketWriter packet(1, 0, 2'000'000);
  packet.add(Type::task_started, 2'000'010, {7})
      .add(Type::message_failed, 2'000'010, {8, 2})
      .add(Type::clock_point, 2'000'020, {1, -5, 6, 7, -8})
      .add(Type::counter, 2'000'030, {4, 2.5})
      .add(Type::site, 2'000'030, {9, 10, "potrf", "a.cpp"})
      .add(Type::mcast_routed, 2'000'040, {1, 2, 3, 2, std::vector<std::uint32_t>{4, 5}});
  const auto events = read(packet.bytes());
  ASSERT_TRUE(events.ok()) << events.error().message;
  ASSERT_EQ(events.value().size(), 6u);
  const auto& all = events.value();
  EXPECT_EQ(all[0].type, Type::task_started);
  EXPECT_EQ(all[0].rank, 3u);
  EXPECT_EQ(all[0].actor, 1u);
  EXPECT_EQ(all[0].ticks, 2'000'010u);
  EXPECT_EQ(all[0].local_ns, 5'000 + 2 * 1'000'010);
  EXPECT_EQ(all[0].number(0), 7u);
  EXPECT_EQ(all[1].number(1), 2u);
  EXPECT_EQ(all[2].integer(1), -5);
  EXPECT_EQ(all[2].integer(4), -8);
  EXPECT_EQ(all[3].real(1), 2.5);
  EXPECT_EQ(all[4].text(2), "potrf");
  EXPECT_EQ(all[4].text(3), "a.cpp");
  ASSERT_EQ(all[5].list_size(4), 2u);
  EXPECT_EQ(all[5].list_entry(4, 1), 5u);
  EXPECT_EQ(all[3].described(), "name=4 value=2.5");
  EXPECT_EQ(all[5].described(), "request=1 tree=2 segment_bytes=3 children=[4 5]");
  EXPECT_EQ(all[2].described(), "kind=1 local_ns=-5 reference_ns=6 error_ns=7 late_ns=-8");
  EXPECT_EQ(all[4].described(), "site=9 line=10 codelet=\"potrf\" file=\"a.cpp\"");
}

TEST_F(StreamReaderTest, FindsFieldsBehindListsAndTexts) {
  PacketWriter packet(1, 0, 2'000'000);
  packet.add(Type::task_submitted, 2'000'000,
             {1, -3, 4, 3, 2, std::vector<std::uint32_t>{5, 6, 7}, std::vector<std::uint32_t>{8, 9}});
  packet.add(Type::task_submitted, 2'000'000,
             {1, -3, 4, 0, 0, std::vector<std::uint32_t>{}, std::vector<std::uint32_t>{}});
  packet.add(Type::option, 2'000'000, {"sched", "", "default"});
  const auto events = read(packet.bytes());
  ASSERT_TRUE(events.ok()) << events.error().message;
  EXPECT_EQ(events.value()[0].list_entry(6, 0), 8u);
  EXPECT_EQ(events.value()[0].list_entry(5, 2), 7u);
  EXPECT_EQ(events.value()[1].list_size(6), 0u);
  EXPECT_EQ(events.value()[2].text(1), "");
  EXPECT_EQ(events.value()[2].text(2), "default");
}

std::vector<std::string> described(const std::vector<Event>& events) {
  std::vector<std::string> lines;
  for (const Event& event : events)
    lines.push_back(std::to_string(event.ticks - 2'000'000) + " " + std::string(event.spec().name) + " " +
                    event.described());
  return lines;
}
using Lines = std::vector<std::string>;

TEST_F(StreamReaderTest, ARecordOfATaskThatRanIsItsEvents) {
  PacketWriter packet(1, 0, 2'000'000);
  packet.add(Type::task_ran_popped, 2'000'010, {1, 6})
      .add(Type::task_ran_kept, 2'000'020, {2, 1})  // ready when task 1 ended
      .add(Type::task_released, 2'000'020, {3})
      .add(Type::task_ran_stolen, 2'000'030, {3, 11, 4})
      .add(Type::task_ran, 2'000'040, {5, 0})  // another event comes before its end, which has a record
      .add(Type::wait_began, 2'000'050)
      .add(Type::task_ended, 2'000'060, {5})
      .add(Type::task_ran, 2'000'060, {6, 8})
      .until(2'000'067);
  const auto events = read(packet.bytes());
  ASSERT_TRUE(events.ok()) << events.error().message;
  EXPECT_EQ(described(events.value()),
            (Lines{"10 sched.popped task=1", "10 task.started task=1", "15 task.ended task=1", "15 task.ready task=2",
                   "20 task.started task=2", "20 task.ended task=2", "20 task.ready task=3",
                   "20 sched.pushed task=3 worker=0", "30 sched.stolen task=3 victim=4", "30 task.started task=3",
                   "40 task.ended task=3", "40 task.started task=5", "50 flow.wait_began ", "60 task.ended task=5",
                   "60 task.started task=6", "67 task.ended task=6"}));
  EXPECT_EQ(events.value()[0].record_bytes(), 12u);
  EXPECT_EQ(events.value()[1].record_bytes(), 0u) << "it is in the record of the event before";
  EXPECT_EQ(reader_->summary().last_ticks, 2'000'067u);
}

TEST_F(StreamReaderTest, ARecordOfASubmissionRefersToTheOneBefore) {
  using List = std::vector<std::uint32_t>;
  PacketWriter packet(1, 0, 2'000'000);
  packet.add(Type::task_submitted, 2'000'000, {10, -3, 4, 1, 0, List{5}, List{}})
      .add(Type::task_submitted_alike, 2'000'000, {-7, 1, 1, List{6}, List{1}})
      .add(Type::task_submitted_next, 2'000'001, {kNotPushed, 2, 8, 0, 0, List{}, List{}})
      .add(Type::task_submitted_next, 2'000'001, {3, 2, 9, 0, 0, List{}, List{}})
      .add(Type::task_submitted_alike, 2'000'002, {0, 0, 0, List{}, List{}})
      .add(Type::task_submitted_next_wide, 2'000'002, {2, -4, 7, 1, 1, List{70'000}, List{4}})
      .add(Type::task_submitted_alike_wide, 2'000'003, {1, 1, 1, List{5}, List{1U << 31}})
      .add(Type::task_submitted_alike, 2'000'003, {0, 0, 0, List{}, List{}});
  const auto events = read(packet.bytes());
  ASSERT_TRUE(events.ok()) << events.error().message;
  EXPECT_EQ(described(events.value()),
            (Lines{"0 task.submitted task=10 priority=-3 site=4 accesses=[5] deps=[]",
                   "0 task.submitted task=11 priority=-7 site=4 accesses=[6] deps=[1]",
                   "1 task.submitted task=12 priority=2 site=8 accesses=[] deps=[]",
                   "1 task.submitted task=13 priority=2 site=9 accesses=[] deps=[]", "1 sched.pushed task=13 worker=3",
                   "2 task.submitted task=14 priority=0 site=9 accesses=[] deps=[]",
                   "2 task.submitted_wide task=15 priority=-4 site=7 accesses=[70000] deps=[4]",
                   "2 sched.pushed task=15 worker=2",
                   "3 task.submitted_wide task=16 priority=1 site=7 accesses=[5] deps=[2147483648]",
                   "3 task.submitted task=17 priority=0 site=7 accesses=[] deps=[]"}));
}

TEST_F(StreamReaderTest, ARecordMustNotReferToASubmissionOfAnotherPacket) {
  using List = std::vector<std::uint32_t>;
  PacketWriter first(1, 0, 2'000'000), second(1, 1, 2'000'010);
  first.add(Type::task_submitted, 2'000'000, {10, 0, 4, 0, 0, List{}, List{}});
  second.add(Type::task_submitted_alike, 2'000'010, {0, 0, 0, List{}, List{}});
  expect_error(first.bytes() + second.bytes(), "refers to a submission before",
               first.bytes().size() + sizeof(PacketHeader));
}

TEST_F(StreamReaderTest, NoRecordIsBeforeTheEndOfATaskThatRan) {
  PacketWriter packet(1, 0, 2'000'000);
  packet.add(Type::task_ran, 2'000'010, {1, 21}).add(Type::wait_began, 2'000'029).until(2'000'030);
  expect_error(packet.bytes(), "before that of the record before", sizeof(PacketHeader) + 12);
}

TEST_F(StreamReaderTest, FollowsStampsOverEveryDistance) {
  constexpr std::uint64_t span = RecordHeader::stamp_span;
  PacketWriter packet(1, 0, span - 3);
  std::vector<std::uint64_t> stamps;
  std::uint64_t ticks = span - 3;
  for (const std::uint64_t step : {std::uint64_t{0}, std::uint64_t{2}, std::uint64_t{1}, span - 1, span, span + 1,
                                   std::uint64_t{0}, 1000 * span}) {
    ticks += step;
    stamps.push_back(ticks);
    packet.add(Type::wait_began, ticks);
  }
  const auto events = read(packet.bytes());
  ASSERT_TRUE(events.ok()) << events.error().message;
  ASSERT_EQ(events.value().size(), stamps.size());
  for (std::size_t i = 0; i < stamps.size(); ++i) EXPECT_EQ(events.value()[i].ticks, stamps[i]) << i;
}

TEST_F(StreamReaderTest, SummarisesPacketsAndCountsThoseThatAreMissing) {
  PacketWriter third(1, 3, 3'000'000, 17);
  third.add(Type::wait_began, 3'000'001);
  PacketWriter empty(1, 1, 2'500'000, 5);
  const std::string bytes = one_event().bytes() + empty.bytes() + third.bytes();
  const auto events = read(bytes);
  ASSERT_TRUE(events.ok()) << events.error().message;
  EXPECT_EQ(events.value().size(), 2u);
  const StreamSummary& summary = reader_->summary();
  EXPECT_EQ(summary.packets, 3u);
  EXPECT_EQ(summary.records, 2u);
  EXPECT_EQ(summary.missing_packets, 1u);
  EXPECT_EQ(summary.lost_events, 17u);
  EXPECT_EQ(summary.bytes, bytes.size());
  EXPECT_EQ(summary.first_ticks, 2'000'000u);
  EXPECT_EQ(summary.last_ticks, 3'000'001u);
  EXPECT_FALSE(summary.truncated);
  EXPECT_EQ(summary.name, "actor 1");
}

TEST_F(StreamReaderTest, CountsPacketsThatAreMissingAtTheBeginning) {
  ASSERT_TRUE(read(one_event(5).bytes()).ok());
  EXPECT_EQ(reader_->summary().missing_packets, 5u);
}

TEST_F(StreamReaderTest, StartsAnewAfterRewind) {
  ASSERT_TRUE(read(one_event().bytes()).ok());
  reader_->rewind();
  EXPECT_TRUE(reader_->next().value().has_value());
  EXPECT_FALSE(reader_->next().value().has_value());
}

TEST_F(StreamReaderTest, OfAnEmptyFileHasNothing) {
  const auto events = read("");
  ASSERT_TRUE(events.ok());
  EXPECT_TRUE(events.value().empty());
  EXPECT_FALSE(reader_->summary().truncated);
}

TEST_F(StreamReaderTest, ReadsUpToThePacketInWhichTheFileEnds) {
  const std::string first = one_event().bytes(), second = one_event(1, 3'000'000).bytes();
  for (std::size_t bytes = 1; bytes < second.size(); ++bytes) {
    const auto events = read(first + second.substr(0, bytes));
    ASSERT_TRUE(events.ok()) << events.error().message;
    EXPECT_EQ(events.value().size(), 1u);
    EXPECT_TRUE(reader_->summary().truncated);
  }
}

TEST_F(StreamReaderTest, ReadsTheRecordsBeforeTheFilesEnd) {
  PacketWriter packet(1, 0, 2'000'000);
  constexpr std::size_t count = 20;
  for (std::uint32_t i = 0; i < count; ++i) packet.add(Type::task_started, 2'000'001 + i, {i});
  const std::string whole = packet.bytes();
  std::size_t last = 0;
  for (std::size_t bytes = 1; bytes < whole.size(); ++bytes) {
    const auto events = read(whole.substr(0, bytes));
    ASSERT_TRUE(events.ok()) << events.error().message << " at " << bytes;
    const StreamSummary& summary = reader_->summary();
    EXPECT_TRUE(summary.truncated);
    EXPECT_EQ(summary.records, events.value().size());
    EXPECT_EQ(summary.packets, events.value().empty() ? 0u : 1u);
    EXPECT_EQ(summary.records + summary.cut_events, bytes < sizeof(PacketHeader) ? 0 : count);
    EXPECT_GE(events.value().size(), last);
    last = events.value().size();
  }
  EXPECT_GE(last, count - 1);
  EXPECT_EQ(reader_->summary().last_ticks, 2'000'000 + last);
}

TEST_F(StreamReaderTest, RefusesWhatPacketHeadersCannotSay) {
  const PacketWriter packet = one_event();
  const auto with = [&](const std::function<void(PacketHeader&)>& change) {
    PacketHeader header = packet.header();
    change(header);
    return packet.with(header);
  };
  expect_error(with([](PacketHeader& h) { h.magic = 0; }), "magic", 0);
  expect_error(with([](PacketHeader& h) { h.content_bits = 504; }), "content_size", 0);
  expect_error(with([](PacketHeader& h) { h.content_bits += 1; }), "content_size", 0);
  expect_error(with([](PacketHeader& h) { h.content_bits += 64; }), "packet_size", 0);
  expect_error(with([](PacketHeader& h) { h.packet_bits += 8; }), "packet_size", 0);
  expect_error(with([](PacketHeader& h) { h.packet_bits = ~31ULL; }), "packet_size", 0);
  expect_error(with([](PacketHeader& h) { h.begin_ticks = h.end_ticks + 1; }), "ends before it begins", 0);
  expect_error(with([](PacketHeader& h) { h.event_count = 2; }), "says that it has 2 events, and has 1", 0);
  expect_error(with([](PacketHeader& h) { h.event_count = 1'000'000; }), "more than fits", 0);
  expect_error(with([](PacketHeader& h) { h.end_ticks += 1; }), "timestamp_end", 0);
  expect_error(with([](PacketHeader& h) { h.end_ticks -= 1; }), "behind its packet's timestamp_end", 64);
  expect_error(with([](PacketHeader& h) { h.end_ticks = h.begin_ticks = std::uint64_t{1} << 61; }), "70 years", 0);
}

TEST_F(StreamReaderTest, RefusesPacketsThatDoNotFollowEachOther) {
  const std::string first = one_event().bytes();
  expect_error(first + first, "before the one before ends", first.size());
  expect_error(first + one_event(0, 3'000'000).bytes(), "number is not greater", first.size());
  PacketWriter other(2, 1, 3'000'000);
  expect_error(first + other.bytes(), "another actor", first.size());
}

TEST_F(StreamReaderTest, RefusesRecordsThatAreNone) {
  PacketWriter zero(1, 0, 2'000'000);
  expect_error(zero.put(std::uint32_t{0}).bytes(), "type that does not exist", 64);
  PacketWriter unknown(1, 0, 2'000'000);
  expect_error(unknown.add(static_cast<Type>(126), 2'000'000).bytes(), "type that does not exist", 64);
  PacketWriter far(1, 0, 2'000'000);
  expect_error(far.put(std::uint32_t{127 | 4000 << 7}).put(std::uint64_t{2'000'000}).bytes(),
               "type that does not exist", 64);
  PacketWriter nested(1, 0, 2'000'000);
  expect_error(nested.put(std::uint32_t{127 | 127 << 7}).put(std::uint64_t{2'000'000}).bytes(),
               "type that does not exist", 64);
  PacketWriter back(1, 0, 2'000'000);
  expect_error(back.put(RecordHeader::extended(Type::wait_began)).put(std::uint64_t{1'999'999}).bytes(),
               "before that of the record", 64);
}

TEST_F(StreamReaderTest, RefusesFieldsThatReachBeyondThePacket) {
  const auto cut = [](PacketWriter packet, std::size_t bytes) {
    PacketHeader header = packet.header();
    header.content_bits -= bytes * 8;
    header.packet_bits = (header.content_bits + 31) / 32 * 32;
    std::string text = packet.with(header);
    text.resize(header.packet_bits / 8);
    return text;
  };
  expect_error(cut(one_event(), 1), "within a record's fields", 64);
  expect_error(cut(one_event(), 5), "event_count", 0);
  PacketWriter list(1, 0, 2'000'000);
  list.add(Type::mcast_routed, 2'000'000, {1, 2, 3, 3, std::vector<std::uint32_t>{4, 5}});
  expect_error(list.bytes(), "within a record's fields", 64);
  PacketWriter text(1, 0, 2'000'000);
  text.add(Type::task_name, 2'000'000, {1, "a name that is not ended"});
  expect_error(cut(text, 1), "not ended", 64);
  PacketWriter none(1, 0, 2'000'000);
  none.add(Type::task_name, 2'000'000, {1, ""});
  expect_error(cut(none, 1), "not ended", 64);
  PacketWriter extended(1, 0, 2'000'000);
  extended.add(Type::wait_began, 2'000'000 + RecordHeader::stamp_span);
  expect_error(cut(extended, 1), "within a record's header", 64);
}

TEST_F(StreamReaderTest, SaysWhatCannotBeOpened) {
  const auto missing = StreamReader::open(folder_.path() / "nothing", 0, test::RankFacts{}.scale());
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, base::ErrorCode::io);
  EXPECT_FALSE(StreamReader::open(folder_.path(), 0, test::RankFacts{}.scale()).ok()) << "a folder";
}

}  // namespace
}  // namespace tandem::trace::stream_reader_test
