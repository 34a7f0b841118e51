// tandem/trace/read/live_buffers_test.cpp: records are copied whole, in order, and never of two packets.
#include "tandem/trace/read/live_buffers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tandem/base/log.hpp"
#include "tandem/clock/clock.hpp"
#include "tandem/trace/read/record.hpp"
#include "tandem/trace/read/test_support.hpp"
#include "tandem/trace/session.hpp"

namespace tandem::trace {
namespace {

using test::PacketWriter;

constexpr std::size_t buffer_bytes = 1024;

class Memory : public test::AlignedBytes {
 public:
  explicit Memory(const std::vector<std::string>& buffers) : AlignedBytes(test::live_file("/run", 1, buffer_bytes, buffers)) {}
  void put(std::size_t buffer, const std::string& bytes) {
    AlignedBytes::put(sizeof(LivePage) + buffer * buffer_bytes, bytes);
  }
};

PacketWriter tasks(std::uint32_t actor, std::uint64_t sequence, int count) {
  PacketWriter packet(actor, sequence, 2'000'000);
  for (int i = 0; i < count; ++i) packet.add(Type::task_started, 2'000'000 + 10 * static_cast<std::uint64_t>(i), {i});
  return packet;
}

TEST(LiveBuffers, OfAPacketThatIsBeingWrittenTheRecordsAreCopiedThatAreThere) {
  const Memory memory({tasks(1, 0, 3).live_unfinished(buffer_bytes)});
  const LiveBuffers buffers(memory.bytes());
  const auto held = buffers.held();
  ASSERT_EQ(held.size(), 1u);
  const auto copy = buffers.copy(held[0], sizeof(PacketHeader), held[0].header.begin_ticks, DeclaredTypes::none());
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->bytes.size(), 3u * 8);
  EXPECT_EQ(copy->ticks, 2'000'020u);
  EXPECT_FALSE(copy->is_complete);
  EXPECT_FALSE(copy->is_strange);
}

TEST(LiveBuffers, CopyingGoesOnWhereItStopped) {
  Memory memory({tasks(1, 0, 40).live_unfinished(buffer_bytes)});
  const LiveBuffers buffers(memory.bytes());
  const auto held = buffers.held();
  const auto first = buffers.copy(held[0], sizeof(PacketHeader), held[0].header.begin_ticks, DeclaredTypes::none());
  ASSERT_TRUE(first);
  EXPECT_EQ(first->bytes.size(), 40u * 8) << "more than is copied at a time";
  memory.put(0, tasks(1, 0, 100).live_complete(buffer_bytes));
  const auto second = buffers.copy(held[0], sizeof(PacketHeader) + first->bytes.size(), first->ticks, DeclaredTypes::none());
  ASSERT_TRUE(second);
  EXPECT_EQ(second->bytes.size(), 60u * 8);
  EXPECT_TRUE(second->is_complete);
  EXPECT_EQ(second->ticks, 2'000'990u);
}

TEST(LiveBuffers, ABufferThatIsReusedWhileItIsReadIsLeftOut) {
  const std::string before = tasks(1, 4, 5).live_complete(buffer_bytes);
  std::string cleared = before;
  std::fill_n(cleared.begin(), 4, '\0');
  const std::string after[] = {tasks(1, 5, 2).live_unfinished(buffer_bytes), tasks(2, 4, 5).live_complete(buffer_bytes), cleared};
  for (const std::string& next : after) {
    Memory memory({before});
    LiveBuffers buffers(memory.bytes());
    const auto held = buffers.held();
    buffers.before_check = [&] { memory.put(0, next); };
    EXPECT_FALSE(buffers.copy(held.at(0), sizeof(PacketHeader), held[0].header.begin_ticks, DeclaredTypes::none()));
  }
  Memory memory({before});
  LiveBuffers buffers(memory.bytes());
  const auto held = buffers.held();
  buffers.before_check = [&] { memory.put(0, before); };
  EXPECT_TRUE(buffers.copy(held.at(0), sizeof(PacketHeader), held[0].header.begin_ticks, DeclaredTypes::none()));
}

TEST(LiveBuffers, EmptyOnesAreNotHeldAndOthersInTheOrderOfActorsAndNumbers) {
  const Memory memory({tasks(2, 0, 1).live_complete(buffer_bytes), std::string(buffer_bytes, '\0'),
                       tasks(1, 8, 1).live_unfinished(buffer_bytes), tasks(1, 7, 1).live_complete(buffer_bytes)});
  std::vector<std::size_t> order;
  for (const auto& held : LiveBuffers(memory.bytes()).held()) order.push_back(held.buffer);
  EXPECT_EQ(order, (std::vector<std::size_t>{3, 2, 0}));
}

TEST(LiveBuffers, WhatIsNoLiveFileHoldsNothing) {
  alignas(8) const std::byte nothing[64] = {};
  EXPECT_TRUE(LiveBuffers(std::span<const std::byte>()).held().empty());
  EXPECT_TRUE(LiveBuffers(nothing).held().empty());
  Memory memory({tasks(1, 0, 1).live_complete(buffer_bytes)});
  EXPECT_TRUE(LiveBuffers(memory.bytes().first(sizeof(LivePage) + 100)).held().empty()) << "shorter than it says";
}

TEST(LiveBuffers, BytesThatAreNoRecordEndTheCopy) {
  std::string buffer = tasks(1, 0, 3).live_unfinished(buffer_bytes);
  std::fill_n(buffer.begin() + sizeof(PacketHeader) + 8, 4, '\x79');  // a type that does not exist
  const Memory memory({buffer});
  const LiveBuffers buffers(memory.bytes());
  const auto copy = buffers.copy(buffers.held().at(0), sizeof(PacketHeader), 2'000'000, DeclaredTypes::none());
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->bytes.size(), 8u);
  EXPECT_TRUE(copy->is_strange);
}

/// The memory of a packet, into which an actor stores three records of tasks step by step, and completes the first two.
class WriterInSteps {
 public:
  static constexpr std::size_t from = sizeof(PacketHeader);
  static constexpr std::size_t record_bytes = 12, length_at = 8;
  static constexpr std::size_t steps = 8;

  std::uint32_t load(std::size_t at) const { return words_.at(at / 4); }
  void step(std::size_t number) {
    // As `Stream`: the fields and the zero behind them, the header word; later the length.
    const std::size_t record = number / 3, at = (from + record * record_bytes) / 4;
    switch (number % 3) {
      case 0:
        words_[at + 1] = static_cast<std::uint32_t>(record) + 1;
        words_[at + 2] = kNoLength;
        words_[at + 3] = 0;
        break;
      case 1: words_[at] = RecordHeader::compact(Type::task_ran, 2'000'000 + 10 * record); break;
      default: words_[at + 2] = 7; break;
    }
  }

 private:
  std::vector<std::uint32_t> words_ = std::vector<std::uint32_t>(buffer_bytes / 4, 0);
};

// All orders of an actor's stores and a reader's loads, as far as they differ: before each load any number of stores.
TEST(LiveBuffers, InEveryInterleavingOnlyTheLastRecordOfACopyLacksItsLength) {
  std::size_t orders = 0, open_copies = 0, loaded_again = 0;
  const std::size_t end = WriterInSteps::from + 4 * WriterInSteps::record_bytes;
  std::vector<std::size_t> before_load;  // stores that precede each load; later loads have all
  const auto run = [&] {
    WriterInSteps writer;
    std::size_t loads = 0, stores = 0, highest = 0;
    const auto load = [&](std::size_t at) {
      for (const std::size_t until = loads < before_load.size() ? before_load[loads] : WriterInSteps::steps; stores < until; ++stores)
        writer.step(stores);
      ++loads;
      loaded_again += at < highest ? 1 : 0;
      highest = std::max(highest, at);
      return writer.load(at);
    };
    const auto copy = internal::copy_records(load, WriterInSteps::from, end, false, 2'000'000, DeclaredTypes::none());
    ASSERT_EQ(copy.bytes.size() % WriterInSteps::record_bytes, 0u);
    ASSERT_FALSE(copy.is_strange);
    for (std::size_t at = 0; at < copy.bytes.size(); at += WriterInSteps::record_bytes) {
      const auto length = internal::load<std::uint32_t>(copy.bytes.data() + at + WriterInSteps::length_at);
      const bool is_last = at + WriterInSteps::record_bytes == copy.bytes.size();
      ASSERT_TRUE(length == 7 || (is_last && length == kNoLength)) << "a record before another one has its final length";
      const std::size_t open_bytes = length == kNoLength ? WriterInSteps::record_bytes : 0;
      ASSERT_TRUE(!is_last || copy.open_bytes == open_bytes);
    }
    open_copies += copy.open_bytes > 0 ? 1 : 0;
    ++orders;
  };
  // The loads that matter are those of the first nine words.
  const auto choose = [&](auto& self, std::size_t least) -> void {
    if (before_load.size() == 9) return run();
    for (std::size_t stores = least; stores <= WriterInSteps::steps; ++stores) {
      before_load.push_back(stores);
      self(self, stores);
      before_load.pop_back();
    }
  };
  choose(choose, 0);
  EXPECT_EQ(orders, 24310u);  // 9 loads among 8 stores
  EXPECT_GT(open_copies, 0u);
  EXPECT_GT(loaded_again, 0u);
}

// Four buffers that are overwritten all the time. The writer sees the memory at other addresses than the reader.
TEST(LiveBuffers, WhileAProgramWritesAtFullSpeedNoCopyIsOfTwoPackets) {
  const test::TempFolder folder;
  const auto clock = clock::best_clock();
  base::Log log;
  auto session = Session::open({.folder = folder.path() / "run", .memory_bytes = 32 << 10, .buffer_bytes = 8 << 10,
                                .when_full = WhenFull::newest, .live_folder = folder.path()},
                               *clock, log);
  ASSERT_TRUE(session.ok()) << session.error().message;
  const auto live = find_live(session.value()->rank_folder());
  ASSERT_TRUE(live.ok() && live.value());
  const auto buffers = LiveBuffers::map(*live.value());
  ASSERT_TRUE(buffers.ok());
  Stream stream;
  session.value()->attach(stream, {.kind = ActorKind::user, .name = "writer"});
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (std::uint32_t i = 0; !done.load(std::memory_order_relaxed); ++i) stream.emit<Type::task_deps>(i, ~i);
  });
  std::uint64_t records = 0, reused = 0;
  for (int round = 0; round < 200'000 && (records < 20'000 || reused == 0);) {
    const auto all = buffers.value()->held();
    if (std::ranges::none_of(all, [&](const auto& held) { return held.header.actor == stream.actor(); })) {
      std::this_thread::yield();  // the writer has not begun
      continue;
    }
    ++round;
    for (const auto& held : all) {
      if (held.header.actor != stream.actor()) continue;
      const auto copy = buffers.value()->copy(held, sizeof(PacketHeader), held.header.begin_ticks, DeclaredTypes::none());
      if (!copy) {
        ++reused;
        continue;
      }
      ASSERT_FALSE(copy->is_strange);
      std::uint64_t ticks = held.header.begin_ticks;
      std::uint32_t before = 0;
      for (std::size_t at = 0; at < copy->bytes.size(); ++records) {
        internal::Record record;
        const auto word = internal::load<std::uint32_t>(copy->bytes.data() + at);
        ASSERT_EQ(internal::decode(copy->bytes.data(), at, copy->bytes.size(), word, ticks, DeclaredTypes::none(), &record),
                  internal::RecordFault::none);
        ticks = record.ticks;
        if (record.type == Type::task_deps) {
          const auto number = internal::load<std::uint32_t>(copy->bytes.data() + record.fields);
          ASSERT_EQ(internal::load<std::uint32_t>(copy->bytes.data() + record.fields + 4), ~number) << "a record of two";
          ASSERT_TRUE(before == 0 || number == before + 1) << "records of two packets";
          before = number;
        }
        at = record.next();
      }
    }
  }
  done.store(true, std::memory_order_relaxed);
  writer.join();
  stream.detach();
  EXPECT_GE(records, 20'000u);
}

}  // namespace
}  // namespace tandem::trace
