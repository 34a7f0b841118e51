// tandem/trace/session_test.cpp: emitted events are stored or reported lost, in all cases.
#include "tandem/trace/session.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "tandem/trace/layout.hpp"
#include "tandem/trace/read/reader.hpp"
#include "tandem/trace/recover.hpp"
#include "tandem/trace/stream_files.hpp"

namespace tandem::trace::session_test {
namespace {

namespace fs = std::filesystem;

class SessionTest : public testing::Test {
 protected:
  SessionTest() : folder_(fs::temp_directory_path() / ("tandem-session-test-" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    log_.set_level(base::LogLevel::error);
    options_.folder = folder_ / "run";
    options_.memory_bytes = 1 << 20;
    options_.buffer_bytes = 16 << 10;
  }
  ~SessionTest() override { fs::remove_all(folder_); }

  std::unique_ptr<Session> open() {
    auto session = Session::open(options_, *clock_, log_);
    EXPECT_TRUE(session.ok()) << (session.ok() ? "" : session.error().message);
    return session.ok() ? std::move(session).value() : nullptr;
  }

  /// Numbers of events of each type, by actor's name; checks that files agree with their descriptions.
  std::map<std::string, std::map<Type, std::uint64_t>> read() {
    std::map<std::string, std::map<Type, std::uint64_t>> counts;
    auto trace = TraceReader::open(options_.folder);
    EXPECT_TRUE(trace.ok()) << (trace.ok() ? "" : trace.error().message);
    if (!trace.ok()) return counts;
    lost_.clear();
    for (const auto& rank : trace.value()->ranks)
      for (const auto& stream : rank->streams) {
        lost_[stream->summary().name] += stream->summary().lost_events;
        std::uint64_t before = 0;
        for (;;) {
          auto event = stream->next();
          EXPECT_TRUE(event.ok()) << (event.ok() ? "" : event.error().message);
          if (!event.ok() || !event.value()) break;
          EXPECT_GE(event.value()->ticks, before);
          before = event.value()->ticks;
          ++counts[stream->summary().name][event.value()->type];
        }
      }
    return counts;
  }

  const fs::path folder_;
  std::unique_ptr<clock::Clock> clock_ = clock::best_clock();
  base::Log log_;
  SessionOptions options_;
  std::map<std::string, std::uint64_t> lost_;  ///< by actor's name, as the packets say
};

TEST_F(SessionTest, WhatIsEmittedIsRead) {
  auto session = open();
  Stream stream;
  session->attach(stream, {.kind = ActorKind::user, .name = "mine", .index = 3});
  for (std::uint32_t i = 0; i < 10'000; ++i) stream.emit<Type::task_deps>(i, i + 1);
  ASSERT_TRUE((stream.begin_instant<Type::task_started, Type::task_ended>()));
  stream.append<Type::task_started>(7);
  stream.append<Type::task_ended>(7);
  stream.detach();
  const SessionCounts counts = session->close();
  EXPECT_EQ(counts.lost_events, 0u);
  auto events = read();
  EXPECT_EQ(events["mine"][Type::task_deps], 10'000u);
  EXPECT_EQ(events["mine"][Type::task_ended], 1u);
  std::uint64_t all = 0;
  for (const auto& [actor, types] : events)
    for (const auto& [type, count] : types) all += count;
  EXPECT_EQ(all, counts.events);
}

TEST_F(SessionTest, ThreadsThatComeAndGoDeclareTypesAndRecordThem) {
  const auto clock = clock::best_clock();
  auto opened = Session::open(options_, *clock, log_);
  ASSERT_TRUE(opened.ok());
  Session& session = *opened.value();
  constexpr std::uint32_t rounds = 2'000, threads_count = 4;
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < threads_count; ++i)
    threads.emplace_back([&, i] {
      // Others hand over their buffers meanwhile, which reads the types.
      const DeclaredTypes::FieldName fields[] = {{"round", Field::u32}, {"note", Field::text}};
      const auto type = session.declare("type-" + std::to_string(i % 3), fields);
      ASSERT_TRUE(type.ok()) << type.error().message;
      Stream* const stream = session.stream_of_this_thread();
      ASSERT_EQ(stream, session.stream_of_this_thread()) << "it has one";
      for (std::uint32_t round = 0; round < rounds; ++round)
        stream->emit_declared(type.value(), round, std::string_view("so it is"));
      session.emit_declared_shared(type.value(), rounds, std::string_view("the last"));
    });
  for (std::thread& thread : threads) thread.join();
  Stream* const here = session.stream_of_this_thread("here");
  here->emit<Type::span_began>(0u);
  EXPECT_EQ(session.close().lost_events, 0u);
  EXPECT_FALSE(here->attached()) << "the session has let go of it";
  auto trace = TraceReader::open(options_.folder);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value()->declared.size(), 3u);
  std::map<std::string_view, std::uint32_t> counts;
  const auto read = trace.value()->in_order([](const Event& event) { return event.local_ns; },
                                            [&](const Event& event, std::int64_t) {
                                              ++counts[event.spec().name];
                                              if (event.type >= static_cast<Type>(kFirstDeclared)) {
                                                EXPECT_EQ(event.text(1),
                                                          event.number(0) == rounds ? "the last" : "so it is");
                                              }
                                              return true;
                                            });
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(counts["type-0"], 2 * (rounds + 1));
  EXPECT_EQ(counts["type-1"] + counts["type-2"], 2 * (rounds + 1));
  EXPECT_EQ(counts["user.event"], 3u);
}

TEST_F(SessionTest, ThreadsThatHaveEndedHoldNoFilesOpen) {
  options_.when_full = WhenFull::wait;
  const auto session = open();
  constexpr int threads_count = 300;
  for (int i = 0; i < threads_count; ++i)
    std::thread([&] { session->stream_of_this_thread("short")->emit<Type::span_began>(0u); }).join();
  EXPECT_EQ(session->close().lost_events, 0u);
  const auto open_files = std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  EXPECT_LT(open_files, threads_count);
  EXPECT_EQ(read()["short"][Type::span_began], std::uint64_t{threads_count});
}

TEST_F(SessionTest, ASnapshotKnowsWhatTheProgramHasDeclared) {
  options_.when_full = WhenFull::newest;
  const auto clock = clock::best_clock();
  auto session = std::move(Session::open(options_, *clock, log_)).value();
  const DeclaredTypes::FieldName fields[] = {{"x", Field::f64}};
  const Type type = session->declare("mine", fields).value();
  Stream stream;
  session->attach(stream, {.name = "mine"});
  for (int i = 0; i < 100; ++i) stream.emit_declared(type, 0.5 * i);
  const auto folder = session->snapshot();
  ASSERT_TRUE(folder.ok()) << folder.error().message;
  auto trace = TraceReader::open(folder.value());
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  StreamReader& reader = *trace.value()->ranks[0]->stream_of(stream.actor());
  for (int i = 0; i < 100; ++i) {
    const auto event = reader.next();
    ASSERT_TRUE(event.ok() && event.value()) << i;
    EXPECT_EQ(event.value()->real(0), 0.5 * i);
  }
}

TEST_F(SessionTest, FieldsAndStampsComeBackAsTheyWere) {
  clock::ManualClock clock(1'000);
  auto opened = Session::open(options_, clock, log_);
  ASSERT_TRUE(opened.ok());
  Session& session = *opened.value();
  Stream stream;
  session.attach(stream, {.name = "mine"});
  const std::uint32_t name = session.name(NameKind::counter, "residual");
  const std::int64_t pauses_ns[] = {0, 1, 33'554'431, 33'554'432, 33'554'433, 10'000'000'000};
  std::int64_t expected_ns = 1'000;
  for (const std::int64_t pause_ns : pauses_ns) {
    clock.advance_ns(pause_ns);
    stream.emit<Type::counter>(name, static_cast<double>(pause_ns) / 3);
  }
  stream.detach();
  session.close();
  auto trace = TraceReader::open(options_.folder);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  RankTrace& rank = *trace.value()->ranks[0];
  EXPECT_EQ(rank.names[name].second, "residual");
  StreamReader& reader = *rank.stream_of(stream.actor());
  for (const std::int64_t pause_ns : pauses_ns) {
    expected_ns += pause_ns;
    auto event = reader.next();
    ASSERT_TRUE(event.ok() && event.value());
    EXPECT_EQ(event.value()->local_ns, expected_ns);
    EXPECT_EQ(event.value()->number(0), name);
    EXPECT_EQ(event.value()->real(1), static_cast<double>(pause_ns) / 3);
  }
}

TEST_F(SessionTest, OnlyWhatIsSelectedIsRecordedAndThatMayChange) {
  options_.selection = Selection::parse("task,-task.deps").value();
  auto session = open();
  Stream stream;
  session->attach(stream, {.name = "mine"});
  const auto emit = [&] {
    stream.emit<Type::task_ready>(1);
    stream.emit<Type::task_deps>(1, 2);
    stream.emit<Type::task_pushed>(1, 0);
  };
  emit();
  session->select(Selection::none());
  emit();
  session->select(Selection::parse("sched").value());
  emit();
  stream.detach();
  session->close();
  auto events = read()["mine"];
  EXPECT_EQ(events[Type::task_ready], 1u);
  EXPECT_EQ(events[Type::task_deps], 0u);
  EXPECT_EQ(events[Type::task_pushed], 1u);
  EXPECT_EQ(read()["other threads"][Type::selection_changed], 2u) << "though it was not selected: readers must know";
}

TEST_F(SessionTest, WithoutMemoryEventsAreLostAndCounted) {
  options_.memory_bytes = 4 * options_.buffer_bytes;
  options_.write_early = false;
  auto session = open();
  Stream stream;
  session->attach(stream, {.name = "mine"});
  constexpr std::uint32_t emitted = 50'000;
  for (std::uint32_t i = 0; i < emitted; ++i) stream.emit<Type::task_deps>(i, i);
  stream.detach();
  const SessionCounts counts = session->close();
  EXPECT_GT(counts.lost_events, 0u);
  EXPECT_EQ(read()["mine"][Type::task_deps] + lost_["mine"], emitted);
  EXPECT_GT(counts.needed_bytes, std::uint64_t{emitted} * 12);
  // Each actor's last buffer is partly empty, and events differ in size.
  EXPECT_LT(counts.needed_bytes, std::uint64_t{emitted} * 14 + 6 * options_.buffer_bytes);
}

TEST_F(SessionTest, ASessionThatWaitsLosesNothing) {
  options_.memory_bytes = 4 * options_.buffer_bytes;
  options_.when_full = WhenFull::wait;
  auto session = open();
  constexpr std::uint32_t emitted = 100'000;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      Stream stream;
      session->attach(stream, {.name = "mine"});
      for (std::uint32_t i = 0; i < emitted; ++i) stream.emit<Type::task_deps>(i, i);
    });
  for (std::thread& thread : threads) thread.join();
  const SessionCounts counts = session->close();
  auto stored = read();
  EXPECT_EQ(stored["mine"][Type::task_deps], 3 * emitted);
  EXPECT_EQ(lost_["mine"], 0u);
  EXPECT_EQ(counts.lost_events, 0u) << "of the flusher, too, which cannot wait for itself";
  EXPECT_GT(counts.waits, 0u);
  // Each actor reported how long it waited; descriptions may have waited, too.
  EXPECT_GT(stored["mine"][Type::tracer_waited], 0u);
  EXPECT_LE(stored["mine"][Type::tracer_waited], counts.waits);
}

TEST_F(SessionTest, AtFullSpeedEachThreadKnowsWhatItLost) {
  options_.memory_bytes = 16 * options_.buffer_bytes;
  auto session = open();
  constexpr std::uint32_t emitted = 300'000;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      Stream stream;
      session->attach(stream, {.name = "thread " + std::to_string(t)});
      for (std::uint32_t i = 0; i < emitted; ++i) stream.emit<Type::task_deps>(i, i);
    });
  for (std::thread& thread : threads) thread.join();
  const SessionCounts counts = session->close();
  std::ifstream file(session->rank_folder() / manifest_file);
  std::uint64_t lost = 0;
  auto stored = read();
  const auto manifest = nlohmann::json::parse(file);
  for (const auto& actor : manifest["end"]["actors"]) {
    const std::string name = actor["name"];
    lost += actor["lost_events"].get<std::uint64_t>();
    if (name.starts_with("thread")) {
      EXPECT_EQ(stored[name][Type::task_deps] + actor["lost_events"].get<std::uint64_t>(), emitted) << name;
    }
  }
  EXPECT_EQ(lost, counts.lost_events);
  EXPECT_GT(lost, 0u);
}

TEST_F(SessionTest, AFlightRecorderKeepsTheNewest) {
  options_.memory_bytes = 6 * options_.buffer_bytes;
  options_.when_full = WhenFull::newest;
  auto session = open();
  Stream stream;
  session->attach(stream, {.name = "mine"});
  constexpr std::uint32_t emitted = 60'000;
  for (std::uint32_t i = 0; i < emitted; ++i) stream.emit<Type::task_deps>(i, i);
  const std::uint32_t actor = stream.actor();
  stream.detach();
  const SessionCounts counts = session->close();
  auto trace = TraceReader::open(options_.folder);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  StreamReader& reader = *trace.value()->ranks[0]->stream_of(actor);
  std::uint64_t stored = 0, last = 0;
  for (auto event = reader.next(); event.ok() && event.value(); event = reader.next()) {
    last = event.value()->number(0);
    ++stored;
  }
  EXPECT_EQ(last, emitted - 1);
  EXPECT_GT(stored, 2 * options_.buffer_bytes / 12);
  EXPECT_EQ(stored + counts.lost_events, emitted);
  EXPECT_EQ(reader.summary().lost_events, counts.lost_events);
}

TEST_F(SessionTest, ASnapshotHoldsWhatIsInMemory) {
  options_.when_full = WhenFull::newest;
  auto session = open();
  Stream stream;
  session->attach(stream, {.name = "mine"});
  for (std::uint32_t i = 0; i < 5'000; ++i) stream.emit<Type::task_deps>(i, i);
  auto folder = session->snapshot();
  ASSERT_TRUE(folder.ok()) << folder.error().message;
  auto trace = TraceReader::open(folder.value());
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  std::uint64_t stored = 0;
  StreamReader& reader = *trace.value()->ranks[0]->stream_of(stream.actor());
  for (auto event = reader.next(); event.ok() && event.value(); event = reader.next()) ++stored;
  EXPECT_EQ(stored, 5'000u);
  stream.detach();
  session->close();
  EXPECT_EQ(read()["mine"][Type::task_deps], 5'000u);
}

TEST_F(SessionTest, NothingIsWrittenInARegionOfInterest) {
  auto session = open();
  Stream stream;
  session->attach(stream, {.name = "mine"});
  session->begin_quiet();
  for (std::uint32_t i = 0; i < 10'000; ++i) stream.emit<Type::task_deps>(i, i);
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  const fs::path file = session->rank_folder() / stream_file_name(stream.actor());
  EXPECT_FALSE(fs::exists(file));
  session->end_quiet();
  for (int i = 0; i < 100 && !fs::exists(file); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(fs::exists(file));
}

TEST_F(SessionTest, AFolderThatHoldsATraceIsRefused) {
  open()->close();
  const auto again = Session::open(options_, *clock_, log_);
  ASSERT_FALSE(again.ok());
  EXPECT_NE(again.error().message.find("exists"), std::string::npos) << again.error().message;
  EXPECT_NE(again.error().message.find("--tandem.trace.folder"), std::string::npos) << again.error().message;
}

TEST_F(SessionTest, NoRoomInMemoryIsAnError) {
  options_.live_folder = folder_ / "nowhere";
  const auto session = Session::open(options_, *clock_, log_);
  ASSERT_FALSE(session.ok());
  EXPECT_NE(session.error().message.find("nowhere"), std::string::npos) << session.error().message;
  EXPECT_FALSE(fs::exists(options_.folder / rank_folder_name(0)));
}

TEST_F(SessionTest, AFileThatCannotBeWrittenLosesItsEventsAndNothingElse) {
  auto session = open();
  Stream stream;
  session->attach(stream, {.name = "mine"});
  const fs::path other = folder_ / "precious";
  std::ofstream(other) << "precious";
  fs::create_symlink(other, session->rank_folder() / stream_file_name(stream.actor()));
  for (std::uint32_t i = 0; i < 10'000; ++i) stream.emit<Type::task_deps>(i, i);
  stream.detach();
  const SessionCounts counts = session->close();
  EXPECT_GT(counts.write_errors, 0u);
  EXPECT_EQ(counts.lost_events, 10'000u);
  EXPECT_EQ(fs::file_size(other), 8u) << "nothing is written through a link";
}

/// Limits the size of this process's files while it lives, like a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    signal_ = ::signal(SIGXFSZ, SIG_IGN);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, signal_);
  }

 private:
  rlimit before_{};
  sighandler_t signal_ = SIG_DFL;
};

TEST_F(SessionTest, AFullDiskLeavesNoPartOfAPacket) {
  fs::create_directories(folder_ / "rank");
  const auto folder = base::OwnedFolder::open(folder_ / "rank", base::Owners::self);
  ASSERT_TRUE(folder.ok()) << folder.error().message;
  StreamFiles files(folder.value());
  const std::vector<std::byte> packet(1000);
  ASSERT_TRUE(files.add(7, packet).ok());
  {
    const FullDisk full(1500);
    const auto added = files.add(7, packet);
    ASSERT_FALSE(added.ok());
    EXPECT_NE(added.error().message.find("stream_0007"), std::string::npos) << added.error().message;
  }
  EXPECT_EQ(fs::file_size(folder_ / "rank" / stream_file_name(7)), 1000u);
  EXPECT_TRUE(files.add(7, packet).ok());
  EXPECT_EQ(fs::file_size(folder_ / "rank" / stream_file_name(7)), 2000u);
}

TEST_F(SessionTest, ATraceWhoseEndDoesNotFitTheDiskSaysSoAndNotThatItsProgramWasKilled) {
  auto session = open();
  Stream stream;
  session->attach(stream, {.name = "mine"});
  for (std::uint32_t i = 0; i < 100; ++i) stream.emit<Type::task_deps>(i, i);
  stream.detach();
  const fs::path rank = session->rank_folder();
  {
    const FullDisk full(fs::file_size(rank / manifest_file));
    session->close();
  }
  const auto unread = RankTrace::open(rank);
  ASSERT_FALSE(unread.ok());
  EXPECT_NE(unread.error().message.find("the end of its trace could not be written"), std::string::npos)
      << unread.error().message;
  ASSERT_TRUE(recover_rank(rank, {.force = true}).ok());  // this process, which wrote it, is alive
  const auto read = RankTrace::open(rank);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_TRUE(read.value()->unwritten);
}

TEST_F(SessionTest, TheRunsFolderMayBeAnothersTheRanksFolderIsOurs) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  fs::create_directories(options_.folder);
  ASSERT_EQ(::chown(options_.folder.c_str(), 65534, 65534), 0);
  auto session = open();
  // The owner replaces the rank's folder by a link to another one of ours.
  const fs::path rank = session->rank_folder(), trap = folder_ / "trap";
  fs::create_directory(trap);
  fs::rename(rank, folder_ / "moved");
  fs::create_symlink(trap, rank);
  Stream stream;
  session->attach(stream, {.name = "mine"});
  for (std::uint32_t i = 0; i < 1'000; ++i) stream.emit<Type::task_deps>(i, i);
  stream.detach();
  session->close();
  EXPECT_TRUE(fs::is_empty(trap));
  EXPECT_TRUE(fs::exists(folder_ / "moved" / stream_file_name(stream.actor())));
}

TEST_F(SessionTest, NamesThatOthersHaveTakenAreNoHindrance) {
  const fs::path live = folder_ / "live";
  fs::create_directories(live);
  for (int i = 0; i < 100; ++i)
    std::ofstream(live / (live_prefix + std::to_string(::getpid()) + "." + std::to_string(i))) << "taken";
  options_.live_folder = live;
  EXPECT_EQ(open()->close().lost_events, 0u);
  EXPECT_EQ(std::distance(fs::directory_iterator(live), fs::directory_iterator()), 100);
}

TEST_F(SessionTest, ThreadsWithoutAStreamShareOne) {
  auto session = open();
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 1'000; ++i) session->emit_shared<Type::mark>(session->name(NameKind::mark, "here"), i);
    });
  for (std::thread& thread : threads) thread.join();
  session->close();
  EXPECT_EQ(read()["other threads"][Type::mark], 4'000u);
}

TEST_F(SessionTest, ActorsComeAndGoWhileTypesChange) {
  options_.memory_bytes = 4 << 20;
  auto session = open();
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> emitted{0};
  std::thread changer([&] {
    while (!stop) {
      session->select(Selection::all());
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        Stream stream;
        session->attach(stream, {.name = "mine"});
        for (std::uint32_t i = 0; i < 500; ++i) stream.emit<Type::task_deps>(i, i);
        emitted += 500;
      }
    });
  for (std::thread& thread : threads) thread.join();
  stop = true;
  changer.join();
  session->close();
  EXPECT_EQ(read()["mine"][Type::task_deps], emitted.load());
}

/// Idle streams may keep all buffers for ever.
TEST_F(SessionTest, ASessionThatWaitsLosesNothingThoughOthersHoldAllBuffers) {
  options_.memory_bytes = 4 * options_.buffer_bytes;
  options_.when_full = WhenFull::wait;
  auto session = open();
  constexpr std::uint32_t emitted = 20'000;
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < 12; ++i) {
    session->attach(*streams.emplace_back(std::make_unique<Stream>()), {.name = "mine"});
    streams.back()->emit<Type::task_deps>(0u, 0u);
  }
  for (std::uint32_t i = 1; i < emitted; ++i) {
    for (const auto& stream : streams) stream->emit<Type::task_deps>(i, i);
  }
  for (const auto& stream : streams) stream->detach();
  EXPECT_EQ(session->close().lost_events, 0u);
  EXPECT_EQ(read()["mine"][Type::task_deps], 12 * emitted);
  EXPECT_EQ(lost_["mine"], 0u);
}

TEST_F(SessionTest, TheFlusherNeedNotWaitForItself) {
  options_.memory_bytes = 4 * options_.buffer_bytes;
  options_.when_full = WhenFull::wait;
  base::EventLoop loop(1);
  auto session = std::move(Session::open(options_, *clock_, log_, &loop)).value();
  while (loop.step_one()) {
  }
  std::vector<std::unique_ptr<Stream>> streams;  // which, with the names, have all buffers
  for (int i = 0; i < 3; ++i) {
    session->attach(*streams.emplace_back(std::make_unique<Stream>()), {.name = "mine"});
    streams.back()->emit<Type::task_deps>(0u, 0u);
  }
  EXPECT_EQ(session->counts().most_buffers, 4u);
  streams.front()->detach();
  while (loop.step_one()) {
  }
  EXPECT_EQ(session->close().lost_events, 0u);
  const auto stored = read();
  EXPECT_EQ(stored.at("flusher").at(Type::flush_began), 1u);
  EXPECT_EQ(stored.at("flusher").at(Type::flush_ended), 1u);
}

TEST_F(SessionTest, AnEventLoopStepsTheFlusher) {
  base::EventLoop loop(1);
  clock::ManualClock clock;
  auto session = Session::open(options_, clock, log_, &loop);
  ASSERT_TRUE(session.ok());
  Stream stream;
  session.value()->attach(stream, {.name = "mine"});
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    clock.advance_ns(5);
    stream.emit<Type::task_deps>(i, i);
  }
  while (loop.step_one()) {
  }
  EXPECT_TRUE(fs::exists(session.value()->rank_folder() / stream_file_name(stream.actor())));
  stream.detach();
  session.value()->close();
  EXPECT_EQ(read()["mine"][Type::task_deps], 10'000u);
}

/// Everything that a killed program emitted before its last message is in the trace.
TEST_F(SessionTest, AKilledProgramLeavesItsTrace) {
  int said[2];
  ASSERT_EQ(::pipe(said), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto session = Session::open(options_, *clock_, log_);
    if (!session.ok()) ::_exit(1);
    Stream stream;
    session.value()->attach(stream, {.name = "mine"});
    for (std::uint32_t i = 0;; ++i) {
      stream.emit<Type::task_deps>(i, i);
      if (i % 1'000 == 0 && ::write(said[1], &i, sizeof(i)) != sizeof(i)) ::_exit(1);
      if (i % 1'000 == 0) ::usleep(1'000);
    }
  }
  ::close(said[1]);
  std::uint32_t reported = 0;
  while (reported < 60'000 && ::read(said[0], &reported, sizeof(reported)) == sizeof(reported)) {
  }
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  ::close(said[0]);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_GE(reported, 60'000u);
  EXPECT_FALSE(TraceReader::open(options_.folder).ok());  // it says that it must be recovered
  const auto recovered = recover_run(options_.folder);
  ASSERT_TRUE(recovered.ok()) << recovered.error().message;
  EXPECT_GT(recovered.value().events_added, 0u);
  const std::uint64_t stored = read()["mine"][Type::task_deps];
  EXPECT_GT(stored, reported);
  EXPECT_EQ(lost_["mine"], 0u);
}

TEST(Selection, ReadsWordsFromLeftToRight) {
  const auto parsed = [](std::string_view text) { return Selection::parse(text).value(); };
  EXPECT_TRUE(parsed("all") == Selection::all());
  EXPECT_TRUE(parsed("").empty());
  EXPECT_TRUE(parsed("none").empty());
  EXPECT_TRUE(parsed("task").has(Type::task_started));
  EXPECT_FALSE(parsed("task").has(Type::task_pushed));
  EXPECT_FALSE(parsed("task,-task.deps").has(Type::task_deps));
  EXPECT_TRUE(parsed("-task.deps").has(Type::send_posted));
  EXPECT_TRUE(parsed("task,-task,task.deps").has(Type::task_deps));
  EXPECT_FALSE(parsed("task,-task,task.deps").has(Type::task_ready));
  EXPECT_TRUE(parsed(" task , comm ").has(Type::send_posted));
  for (const char* text : {"all", "none", "task", "task,comm,-task.deps", "user.mark", "-worker.state"})
    EXPECT_TRUE(parsed(parsed(text).described()) == parsed(text)) << text << " became " << parsed(text).described();
}

TEST(Selection, AnUnknownWordIsAnErrorWithTheNearestKnownOne) {
  const auto wrong = Selection::parse("task,task.dep");
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().message.find("'task.dep'"), std::string::npos);
  EXPECT_NE(wrong.error().message.find("task.deps"), std::string::npos) << wrong.error().message;
}

}  // namespace
}  // namespace tandem::trace::session_test
