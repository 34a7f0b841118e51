// tandem/trace/read/live_rank_test.cpp: each event of a running rank is reported once, from buffers and files.
#include "tandem/trace/read/live_rank.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tandem/base/log.hpp"
#include "tandem/clock/clock.hpp"
#include "tandem/trace/read/live_test_support.hpp"
#include "tandem/trace/session.hpp"

namespace tandem::trace::live_rank_test {
namespace {

using test::LiveFolder;
using test::PacketWriter;
using test::Told;
using Lines = std::vector<std::string>;

PacketWriter started(std::uint32_t actor, std::uint64_t sequence, std::uint32_t first, std::uint32_t count) {
  PacketWriter packet(actor, sequence, 2'000'000 + 1'000 * sequence);
  for (std::uint32_t i = 0; i < count; ++i)
    packet.add(Type::task_started, 2'000'000 + 1'000 * sequence + i, {first + i});
  return packet;
}
Lines lines(std::uint32_t actor, std::uint32_t first, std::uint32_t count) {
  Lines all;
  for (std::uint32_t i = 0; i < count; ++i)
    all.push_back(std::to_string(actor) + " task.started task=" + std::to_string(first + i));
  return all;
}

std::unique_ptr<LiveRank> follow(const LiveFolder& folder, const LiveOptions& options = {}) {
  auto opened = LiveRank::open(folder.folder(), options);
  EXPECT_TRUE(opened.ok()) << opened.error().message;
  return std::move(opened).value();
}

// A writer of the live file cuts it and lets it grow while it is read: with a mapping, SIGBUS would end the reader.
TEST(LiveRank, ALiveFileThatIsCutWhileItIsReadHurtsNobody) {
  const LiveFolder folder;
  folder.put(0, started(1, 0, 10, 60));
  folder.put(3, started(2, 0, 10, 60));
  const auto file = std::filesystem::read_symlink(folder.folder() / live_link);
  const std::string whole = test::read_file(file);
  std::atomic<bool> done{false};
  std::thread cutter([&] {
    for (std::size_t i = 0; !done.load(std::memory_order_relaxed); ++i) {
      std::filesystem::resize_file(file, (i * 1'237) % whole.size());
      if (i % 3 == 0) test::write_file(file, whole);
      std::this_thread::yield();
    }
  });
  for (int i = 0; i < 300; ++i) {
    const auto rank = LiveRank::open(folder.folder());  // it may be no live file at the moment
    if (!rank.ok()) continue;
    Told told;
    for (int polls = 0; polls < 5; ++polls) rank.value()->poll(told);
  }
  done.store(true, std::memory_order_relaxed);
  cutter.join();
}

TEST(LiveRank, ALiveFileOfAnotherOwnerThanTheFoldersIsNotRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  const LiveFolder folder;
  folder.put(0, started(1, 0, 10, 1));
  const auto file = std::filesystem::read_symlink(folder.folder() / live_link);
  ASSERT_EQ(::chown(file.c_str(), 65534, 65534), 0);
  const auto rank = follow(folder);
  Told told;
  rank->poll(told);
  EXPECT_EQ(told.take(), Lines());
  EXPECT_EQ(rank->buffers(), nullptr);
}

TEST(LiveRank, FollowsAPacketFromItsBufferToItsFile) {
  const LiveFolder folder;
  const auto rank = follow(folder);
  Told told;
  folder.put(0, started(1, 0, 10, 1));
  rank->poll(told);
  EXPECT_EQ(told.take(), lines(1, 10, 1));
  rank->poll(told);
  EXPECT_EQ(told.take(), Lines()) << "each event once";
  folder.put(0, started(1, 0, 10, 2));
  rank->poll(told);
  EXPECT_EQ(told.take(), lines(1, 11, 1));
  // The event goes to the file with another one, and its buffer gets the next packet.
  folder.flush(1, started(1, 0, 10, 3).bytes());
  folder.put(0, started(1, 1, 20, 1));
  rank->poll(told);
  Lines expected = lines(1, 12, 1);
  expected.push_back(lines(1, 20, 1).front());
  EXPECT_EQ(told.take(), expected);
  EXPECT_EQ(rank->counts().missed_packets, 0u);
}

// While the buffers are checked, a free one gets a packet, and a later one its successor.
TEST(LiveRank, ReadsAPacketThatWasWrittenBehindTheBufferThatIsLookedAt) {
  for (const bool is_flushed : {false, true}) {
    const LiveFolder folder;
    const auto rank = follow(folder);
    Told told;
    rank->poll(told);
    int looks = 0;
    rank->buffers()->after_look = [&] {
      if (++looks > 1) return;
      if (is_flushed) folder.flush(1, started(1, 0, 10, 2).bytes());
      else folder.put(0, started(1, 0, 10, 2).bytes());
      folder.put(1, started(1, 1, 20, 1));
    };
    rank->poll(told);
    Lines expected = lines(1, 10, 2);
    expected.push_back(lines(1, 20, 1).front());
    EXPECT_EQ(told.take(), expected);
    EXPECT_EQ(rank->counts().missed_packets, 0u);
  }
}

PacketWriter ran(std::uint32_t length) {
  PacketWriter packet(1, 0, 2'000'000);
  packet.add(Type::task_ran_popped, 2'000'000, {1, length});
  return packet;
}

TEST(LiveRank, ATaskThatRunsIsToldAtItsStartAndItsEndOnce) {
  const LiveFolder folder;
  const auto rank = follow(folder);
  Told told;
  folder.put(0, ran(kNoLength));
  rank->poll(told);
  EXPECT_EQ(told.take(), (Lines{"1 sched.popped task=1", "1 task.started task=1"}));
  rank->poll(told);
  EXPECT_EQ(told.take(), Lines());
  folder.put(0, ran(6).add(Type::task_ran, 2'000'010, {2, kNoLength}));
  rank->poll(told);
  EXPECT_EQ(told.take(), (Lines{"1 task.ended task=1", "1 task.started task=2"}));
  // Another event follows, so that its end has a record.
  folder.put(0, ran(6).add(Type::task_ran, 2'000'010, {2, kNoLength}).add(Type::wait_began, 2'000'011));
  rank->poll(told);
  EXPECT_EQ(told.take(), (Lines{"1 flow.wait_began "}));
  folder.put(0, ran(6)
                    .add(Type::task_ran, 2'000'010, {2, kNoLength})
                    .add(Type::wait_began, 2'000'011)
                    .add(Type::task_ended, 2'000'012, {2}));
  rank->poll(told);
  EXPECT_EQ(told.take(), (Lines{"1 task.ended task=2"}));
}

TEST(LiveRank, ATaskThatRunsEndsInItsFile) {
  const LiveFolder folder;
  const auto rank = follow(folder);
  Told told;
  folder.put(0, ran(kNoLength));
  rank->poll(told);
  told.take();
  folder.flush(1, ran(6).until(2'000'005).bytes());
  PacketWriter next(1, 1, 2'000'005);
  next.add(Type::task_ran_kept, 2'000'005, {2, kNoLength});
  folder.put(0, next);
  rank->poll(told);
  EXPECT_EQ(told.take(), (Lines{"1 task.ended task=1", "1 task.ready task=2", "1 task.started task=2"}));
}

TEST(LiveRank, KnowsActorsThatAreDescribedWhileTheCatalogueIsRead) {
  const LiveFolder folder;
  PacketWriter catalogue(0, 0, 1'000'000);
  for (std::uint32_t i = 1; i <= 200; ++i)
    catalogue.add(Type::actor, 1'000'000, {i, 2, i - 1, -1, "worker"})
        .add(Type::site, 1'000'000, {i, 1, "kernel", "app.cpp"});
  folder.flush(0, catalogue.bytes());
  folder.put(0, PacketWriter(200, 0, 2'000'000).add(Type::task_released, 2'000'000, {7}));
  const auto rank = follow(folder);
  Told told;
  rank->poll(told);
  EXPECT_EQ(told.take(), (Lines{"200 task.ready task=7", "200 sched.pushed task=7 worker=199"}));
  EXPECT_EQ(rank->sites().size(), 201u);
}

TEST(LiveRank, ReadsWhatWasRecordedBeforeFromTheFile) {
  const LiveFolder folder;
  folder.flush(1, started(1, 0, 10, 3).bytes() + started(1, 1, 13, 3).bytes());
  folder.put(2, started(1, 2, 16, 2));
  Told told;
  follow(folder)->poll(told);
  EXPECT_EQ(told.take(), lines(1, 10, 8));
}

TEST(LiveRank, APacketWhoseBufferIsReusedWhileItIsReadComesFromTheFile) {
  const LiveFolder folder;
  const auto rank = follow(folder);
  folder.put(3, started(1, 0, 10, 4).live_complete(LiveFolder::buffer_bytes));
  rank->buffers()->before_check = [&] {
    folder.flush(1, started(1, 0, 10, 4).bytes());
    folder.put(3, started(1, 1, 14, 2));
    rank->buffers()->before_check = nullptr;
  };
  Told told;
  rank->poll(told);
  EXPECT_EQ(told.take(), lines(1, 10, 4));
  EXPECT_EQ(rank->counts().reused_buffers, 1u);
  rank->poll(told);
  EXPECT_EQ(told.take(), lines(1, 14, 2));
  EXPECT_EQ(rank->counts().missed_packets, 0u);
}

TEST(LiveRank, AnOverwrittenPacketIsMissedAndSaid) {
  const LiveFolder folder;
  const auto rank = follow(folder);
  Told told;
  folder.put(0, started(1, 0, 10, 1));
  rank->poll(told);
  told.take();
  folder.put(0, started(1, 3, 40, 1));  // trace.when_full=newest: there are no files
  rank->poll(told);
  EXPECT_EQ(told.take(), (Lines{"1 missed 3", lines(1, 40, 1).front()}));
  EXPECT_EQ(rank->counts().missed_packets, 3u);
}

TEST(LiveRank, LeavesOutTheOldestWhenThereIsTooMuchButNoDescriptions) {
  const LiveFolder folder;
  std::string packets;
  for (std::uint32_t i = 0; i < 100; ++i) packets += started(1, i, 10 * i, 10).bytes();
  folder.flush(1, packets);
  PacketWriter catalogue(0, 0, 1'000'000);
  for (std::uint32_t i = 0; i < 200; ++i) catalogue.add(Type::site, 1'000'000, {i, 1, "kernel", "app.cpp"});
  folder.flush(0, catalogue.bytes());
  folder.put(0, started(1, 100, 1000, 1));
  const auto rank = follow(folder, {.most_bytes = 1000, .most_bytes_at_first = 1440});
  Told told;
  rank->poll(told);
  const Lines all = told.take();
  EXPECT_LT(all.size(), 300u);
  EXPECT_EQ(all.back(), lines(1, 1000, 1).front()) << "the newest are read";
  EXPECT_EQ(all[all.size() - 2], lines(1, 999, 1).front());
  EXPECT_EQ(rank->counts().missed_packets, 90u);
  EXPECT_EQ(rank->sites().size(), 200u);
}

TEST(LiveRank, KnowsTypesThatTheProgramDeclaresLater) {
  const LiveFolder folder;
  test::write_file(folder.folder() / manifest_file, [&] {
    std::string text = test::manifest(folder.facts());
    const auto at = text.find(",\n  {\"type\": 128"), end = text.find("]}]", at);
    return text.erase(at, end + 2 - at);
  }());
  const auto rank = follow(folder);
  Told told;
  rank->poll(told);
  PacketWriter packet(1, 0, 2'000'000);
  packet.add(Type::task_started, 2'000'000, {1});
  packet.add_sample(2'000'001, 7, 0.5, "x");
  test::write_file(folder.folder() / manifest_file, test::manifest(folder.facts()));
  folder.put(0, packet);
  rank->poll(told);
  EXPECT_EQ(told.take(), (Lines{"1 task.started task=1", "1 sample.value index=7 norm=0.5 note=\"x\""}));
}

TEST(LiveRank, KnowsWhatIsRecordedNow) {
  const LiveFolder folder({.selection = "task,comm"});
  const auto rank = follow(folder);
  EXPECT_TRUE(rank->selection().has(Type::task_started));
  EXPECT_FALSE(rank->selection().has(Type::worker_state));
  const Selection all = Selection::all();
  PacketWriter packet(1, 0, 2'000'000);
  packet.add(Type::selection_changed, 2'000'000, {all.words[0], all.words[1]});
  folder.put(0, packet);
  Told told;
  rank->poll(told);
  EXPECT_TRUE(rank->selection().has(Type::worker_state));
}

TEST(LiveRank, RefusesWhatDoesNotRunAndNamesTheRemedy) {
  const auto says = [](const std::filesystem::path& folder) {
    const auto opened = LiveRank::open(folder);
    return opened.ok() ? std::string() : opened.error().message;
  };
  const test::TempFolder temporary;
  EXPECT_NE(says(temporary.path()).find("is no rank's trace"), std::string::npos);
  test::write_rank(temporary.path() / "ended", {});
  EXPECT_NE(says(temporary.path() / "ended").find("has ended: see tandem trace summary"), std::string::npos);
  test::write_rank(temporary.path() / "recovered", {.complete = false, .recovered = true});
  EXPECT_NE(says(temporary.path() / "recovered").find("was recovered"), std::string::npos);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  const LiveFolder killed({.process = static_cast<std::uint32_t>(child)});
  EXPECT_NE(says(killed.folder()).find("tandem trace recover"), std::string::npos);
}

TEST(LiveRank, OfAnotherHostReadsTheFiles) {
  const LiveFolder folder({.host = "another host"});
  folder.remove_live();
  folder.flush(1, started(1, 0, 10, 2).bytes());
  const auto rank = follow(folder);
  Told told;
  rank->poll(told);
  EXPECT_EQ(rank->state(), LiveState::elsewhere);
  EXPECT_EQ(told.take(), lines(1, 10, 2));
  folder.flush(1, started(1, 1, 20, 1).bytes());
  test::write_rank(folder.folder(), [&] {
    test::RankFacts facts = folder.facts();
    facts.complete = true;
    return facts;
  }());
  rank->poll(told);
  EXPECT_EQ(rank->state(), LiveState::ended);
  EXPECT_EQ(told.take(), lines(1, 20, 1));
}

TEST(LiveRank, NoticesThatTheProgramWasKilledAndReadsItsLastEvents) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const LiveFolder folder({.process = static_cast<std::uint32_t>(child)});
  const auto rank = follow(folder);
  Told told;
  rank->poll(told);
  EXPECT_EQ(rank->state(), LiveState::running);
  folder.put(0, started(1, 0, 10, 3));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  for (int looks = 0; looks < 3 && rank->state() == LiveState::running; ++looks) rank->poll(told);
  EXPECT_EQ(rank->state(), LiveState::killed);
  EXPECT_EQ(told.take(), lines(1, 10, 3));
}

/// Follows a program with few small buffers, whose one stream `write` fills as fast as it can, to its end.
void follow_at_full_speed(const std::function<void(Stream&)>& write, LiveListener& listener) {
  const test::TempFolder folder;
  const auto clock = clock::best_clock();
  base::Log log;
  auto session = Session::open({.folder = folder.path() / "run", .memory_bytes = 128 << 10, .buffer_bytes = 8 << 10,
                                .when_full = WhenFull::wait, .live_folder = folder.path()},
                               *clock, log);
  ASSERT_TRUE(session.ok()) << session.error().message;
  Stream stream;
  session.value()->attach(stream, {.kind = ActorKind::user, .name = "writer"});
  std::atomic<bool> done{false};
  std::thread writer([&] {
    write(stream);
    stream.detach();
    done.store(true, std::memory_order_release);
  });
  auto rank = LiveRank::open(session.value()->rank_folder());
  ASSERT_TRUE(rank.ok()) << rank.error().message;
  while (!done.load(std::memory_order_acquire)) {
    rank.value()->poll(listener);
    std::this_thread::yield();
  }
  writer.join();
  session.value()->close();
  while (rank.value()->state() == LiveState::running) rank.value()->poll(listener);
  EXPECT_EQ(rank.value()->state(), LiveState::ended);
}

// Buffers are full, flushed and used again while the reader reads; at the end it has got each event once, in order.
TEST(LiveRank, FollowsAProgramThatWritesAtFullSpeedWithoutMissingAnything) {
  constexpr std::uint32_t events = 200'000;
  const auto write = [&](Stream& stream) {
    for (std::uint32_t i = 0; i < events; ++i) stream.emit<Type::task_deps>(i, ~i);
  };
  struct Check final : LiveListener {
    void event(const Event& event) override {
      if (event.type != Type::task_deps) return;
      wrong += event.number(0) != next || event.number(1) != static_cast<std::uint32_t>(~next) ? 1 : 0;
      next = static_cast<std::uint32_t>(event.number(0)) + 1;
      ++count;
    }
    void missed(std::uint32_t, std::uint64_t packets) override { missed_packets += packets; }
    std::uint32_t next = 0, count = 0, wrong = 0;
    std::uint64_t missed_packets = 0;
  } check;
  ASSERT_NO_FATAL_FAILURE(follow_at_full_speed(write, check));
  EXPECT_EQ(check.count, events);
  EXPECT_EQ(check.wrong, 0u);
  EXPECT_EQ(check.missed_packets, 0u);
}

// Every task is one record, completed in place: its start and its end are reported once each, in order, with the right
// length.
TEST(LiveRank, FollowsRecordsThatAreCompletedAtFullSpeed) {
  constexpr std::uint32_t tasks = 100'000;
  const auto length = [](std::uint32_t task) { return task % 7; };
  const auto write = [&](Stream& stream) {
    for (std::uint32_t i = 0; i < tasks; ++i) {
      const Stream::Open record = stream.open(Type::task_ran, stream.read_clock(), 8);
      const std::uint32_t fields[] = {i, kNoLength};
      std::memcpy(record.fields, fields, sizeof fields);
      stream.publish(record);
      const std::uint64_t start = stream.last_event();
      stream.leave_open(i, record.fields + 4);
      if (i % 5 == 0) stream.emit_at<Type::wait_began>(start);  // then it cannot be completed
      if (std::uint32_t* const word = stream.open_word(i)) stream.complete_at(start + length(i), word, length(i) + 1);
      else stream.emit_at<Type::task_ended>(start + length(i), i);
    }
  };
  struct Check final : LiveListener {
    void event(const Event& event) override {
      if (event.type == Type::task_started) {
        wrong += running || event.number(0) != next ? 1 : 0;
        running = true;
        start = event.ticks;
      } else if (event.type == Type::task_ended) {
        wrong += !running || event.number(0) != next || event.ticks - start != next % 7 ? 1 : 0;
        running = false;
        ++next;
      }
    }
    void missed(std::uint32_t, std::uint64_t packets) override { missed_packets += packets; }
    bool running = false;
    std::uint64_t start = 0, missed_packets = 0;
    std::uint32_t next = 0, wrong = 0;
  } check;
  ASSERT_NO_FATAL_FAILURE(follow_at_full_speed(write, check));
  EXPECT_EQ(check.next, tasks);
  EXPECT_EQ(check.wrong, 0u);
  EXPECT_EQ(check.missed_packets, 0u);
}

}  // namespace
}  // namespace tandem::trace::live_rank_test
