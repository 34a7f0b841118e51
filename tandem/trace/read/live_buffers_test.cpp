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

namespace tandem::trace::live_buffers_test {
namespace {

using test::PacketWriter;

constexpr std::size_t buffer_bytes = 1024;

class Memory : public test::AlignedBytes {
 public:
  explicit Memory(const std::vector<std::string>& buffers)
      : AlignedBytes(test::live_file("/run", 1, buffer_bytes, buffers)) {}
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
  const auto second =
      buffers.copy(held[0], sizeof(PacketHeader) + first->bytes.size(), first->ticks, DeclaredTypes::none());
  ASSERT_TRUE(second);
  EXPECT_EQ(second->bytes.size(), 60u * 8);
  EXPECT_TRUE(second->is_complete);
  EXPECT_EQ(second->ticks, 2'000'990u);
}

TEST(LiveBuffers, ABufferThatIsReusedWhileItIsReadIsLeftOut) {
  const std::string before = tasks(1, 4, 5).live_complete(buffer_bytes);
  std::string cleared = before;
  std::fill_n(cleared.begin(), 4, '\0');
  const std::string after[] = {tasks(1, 5, 2).live_unfinished(buffer_bytes), tasks(2, 4, 5).live_complete(buffer_bytes),
                               cleared};
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

/// The memory of a packet, into which an actor stores two records of tasks step by step, and completes them.
class WriterInSteps {
 public:
  static constexpr std::size_t from = sizeof(PacketHeader);
  static constexpr std::size_t record_bytes = 12, length_at = 8;
  static constexpr std::size_t steps = 6;

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

// All orders of an actor's stores and a reader's loads: before each load any number of stores. One read loads its words
// in no order: forwards, backwards, and in two others.
TEST(LiveBuffers, InEveryInterleavingOnlyTheLastRecordOfACopyLacksItsLength) {
  constexpr std::size_t words = 9, loads_of_all = 2 * words;
  constexpr std::size_t ways[][words] = {{0, 1, 2, 3, 4, 5, 6, 7, 8},
                                         {8, 7, 6, 5, 4, 3, 2, 1, 0},
                                         {3, 2, 5, 1, 6, 0, 4, 8, 7},
                                         {6, 0, 3, 5, 2, 8, 1, 4, 7}};
  std::size_t orders = 0, open_copies = 0, whole_copies = 0;
  const std::size_t end = WriterInSteps::from + words * 4;
  std::vector<std::size_t> before_load;  // stores that precede each load
  const auto run = [&](const std::size_t (&way)[words]) {
    WriterInSteps writer;
    std::size_t loads = 0, stores = 0;
    const auto read = [&](std::size_t at, std::byte* to, std::size_t bytes) {
      ASSERT_EQ(bytes, words * 4);
      for (const std::size_t word : way) {
        for (const std::size_t until = before_load.at(loads++); stores < until; ++stores) writer.step(stores);
        const std::uint32_t loaded = writer.load(at + word * 4);
        std::memcpy(to + word * 4, &loaded, sizeof loaded);
      }
    };
    const auto copy = internal::copy_records(read, WriterInSteps::from, end, false, 2'000'000, DeclaredTypes::none());
    ASSERT_EQ(copy.bytes.size() % WriterInSteps::record_bytes, 0u);
    ASSERT_FALSE(copy.is_strange);
    for (std::size_t at = 0; at < copy.bytes.size(); at += WriterInSteps::record_bytes) {
      const auto task = internal::load<std::uint32_t>(copy.bytes.data() + at + 4);
      ASSERT_EQ(task, at / WriterInSteps::record_bytes + 1) << "a record before its fields";
      const auto length = internal::load<std::uint32_t>(copy.bytes.data() + at + WriterInSteps::length_at);
      const bool is_last = at + WriterInSteps::record_bytes == copy.bytes.size();
      ASSERT_TRUE(length == 7 || (is_last && length == kNoLength))
          << "a record before another one has its final length";
      const std::size_t open_bytes = length == kNoLength ? WriterInSteps::record_bytes : 0;
      ASSERT_TRUE(!is_last || copy.open_bytes == open_bytes);
    }
    open_copies += copy.open_bytes > 0 ? 1 : 0;
    whole_copies += copy.open_bytes == 0 && copy.bytes.size() == 2 * WriterInSteps::record_bytes ? 1 : 0;
    ++orders;
  };
  const auto choose = [&](auto& self, std::size_t least) -> void {
    if (before_load.size() == loads_of_all) {
      for (const auto& way : ways) run(way);
      return;
    }
    for (std::size_t stores = least; stores <= WriterInSteps::steps && !testing::Test::HasFatalFailure(); ++stores) {
      before_load.push_back(stores);
      self(self, stores);
      before_load.pop_back();
    }
  };
  choose(choose, 0);
  EXPECT_EQ(orders, 4 * 134'596u);  // 18 loads among 6 stores, in four ways
  EXPECT_GT(open_copies, 0u);
  EXPECT_GT(whole_copies, 0u);
}

// A buffer is renewed while its header is read: all orders of stores and loads, with the loads of one read, and the
// stores between those of `magic`, in several orders.
TEST(LiveBuffers, InEveryInterleavingAHeaderNamesOnePacketAndALaterOneHasItsOwnWords) {
  constexpr std::size_t places[] = {offsetof(PacketHeader, magic), offsetof(PacketHeader, actor),
                                    offsetof(PacketHeader, begin_ticks), offsetof(PacketHeader, content_bits),
                                    offsetof(PacketHeader, sequence)};
  constexpr std::size_t ways[][5] = {{0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {3, 0, 4, 1, 2}, {2, 4, 0, 3, 1}};
  const PacketHeader before{.actor = 1, .begin_ticks = 5, .content_bits = 800, .sequence = 7};
  const PacketHeader after{.actor = 2, .begin_ticks = 6, .content_bits = 0, .sequence = 3};
  constexpr std::size_t steps = 6, loads_of_all = 5 + 1 + 5;
  std::size_t olds = 0, news = 0, orders = 0;
  std::vector<std::size_t> before_load, fields{1, 2, 3, 4};
  const auto run = [&](const std::size_t (&way)[5]) {
    PacketHeader memory = before;
    std::size_t loads = 0, stores = 0;
    const auto copy_word = [](void* to, const void* from, std::size_t place) {
      std::memcpy(static_cast<std::byte*>(to) + place, static_cast<const std::byte*>(from) + place,
                  sizeof(std::uint32_t));
    };
    const auto step = [&](std::size_t number) {
      if (number == 0) memory.magic = 0;
      else if (number == steps - 1) memory.magic = PacketHeader::ctf_magic;
      else copy_word(&memory, &after, places[fields[number - 1]]);
    };
    const auto advance = [&] {
      for (const std::size_t until = before_load.at(loads++); stores < until; ++stores) step(stores);
    };
    const auto read = [&](std::size_t, std::byte* to, std::size_t bytes) {
      if (bytes == sizeof(std::uint32_t)) {
        advance();
        std::memcpy(to, &memory.magic, bytes);
        return;
      }
      std::memcpy(to, &before, bytes);  // words that do not change
      for (const std::size_t word : way) {
        advance();
        copy_word(to, &memory, places[word]);
      }
    };
    ++orders;
    const auto header = internal::read_header(read);
    if (!header) return;
    const bool is_old = internal::is_same_packet(*header, before), is_new = internal::is_same_packet(*header, after);
    ASSERT_TRUE(is_old || is_new) << "a header of two packets";
    ASSERT_TRUE(!is_new || header->content_bits == after.content_bits) << "a packet with the size of the one before";
    olds += is_old;
    news += is_new;
  };
  const auto choose = [&](auto& self, std::size_t least) -> void {
    if (before_load.size() == loads_of_all) {
      for (const auto& way : ways) run(way);
      return;
    }
    for (std::size_t stores = least; stores <= steps && !testing::Test::HasFatalFailure(); ++stores) {
      before_load.push_back(stores);
      self(self, stores);
      before_load.pop_back();
    }
  };
  do choose(choose, 0);
  while (std::ranges::next_permutation(fields).found);
  EXPECT_EQ(orders, 24u * 4 * 12'376);  // 11 loads among 6 stores
  EXPECT_GT(olds, 0u);
  EXPECT_GT(news, 0u);
}

TEST(LiveBuffers, OfAFileThatIsCutWhileItIsReadTheRestIsZeros) {
  const test::TempFolder folder;
  const auto file = folder.path() / "live";
  test::write_file(file, test::live_file("/run", 1, buffer_bytes, {tasks(1, 0, 3).live_complete(buffer_bytes),
                                                                   tasks(1, 1, 9).live_unfinished(buffer_bytes)}));
  for (const std::size_t left : {sizeof(LivePage) + buffer_bytes + 70, sizeof(LivePage) + 100, std::size_t{0}}) {
    auto live = open_live(file, base::Owners::self);
    if (!live.ok()) break;  // not even the page is left
    LiveBuffers buffers(std::move(live).value());
    const auto held = buffers.held();
    std::filesystem::resize_file(file, left);
    for (const auto& one : held) {
      const auto copy = buffers.copy(one, sizeof(PacketHeader), one.header.begin_ticks, DeclaredTypes::none());
      EXPECT_TRUE(!copy || copy->bytes.size() <= (one.header.sequence == 0 ? 24u : 8u)) << left;
    }
    EXPECT_LE(buffers.held().size(), 1u + (left > sizeof(LivePage) + buffer_bytes));
  }
}

TEST(LiveBuffers, AFileThatClaimsToHaveMoreThanItHasOrThanIsPossibleIsRefusedOrCut) {
  const test::TempFolder folder;
  const auto file = folder.path() / "live";
  const auto with = [&](std::size_t at, std::uint32_t value) {
    std::string bytes = test::live_file("/run", 1, buffer_bytes, {tasks(1, 0, 3).live_complete(buffer_bytes)});
    std::memcpy(bytes.data() + at, &value, sizeof value);
    test::write_file(file, bytes);
    return open_live(file, base::Owners::self);
  };
  EXPECT_TRUE(with(16, 1).ok());
  EXPECT_EQ(LiveBuffers(with(16, LivePage::most_buffers).value()).count(), 1u) << "more buffers than the file has";
  EXPECT_FALSE(with(16, UINT32_MAX).ok());
  for (const std::uint32_t bytes : {0u, 4u, 63u, 65u, 1028u, UINT32_MAX, (1u << 30) + 64})
    EXPECT_FALSE(with(12, bytes).ok()) << bytes;
  EXPECT_FALSE(with(8, 1).ok()) << "another version";
  std::string endless = test::live_file("/run", 1, buffer_bytes, {});
  std::fill(endless.begin() + 24, endless.end(), 'x');
  test::write_file(file, endless);
  EXPECT_FALSE(open_live(file, base::Owners::self).ok()) << "a folder's name without an end";
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
  auto live = find_live(session.value()->rank_folder());
  ASSERT_TRUE(live.ok() && live.value());
  const LiveBuffers buffers(*std::move(live).value());
  Stream stream;
  session.value()->attach(stream, {.kind = ActorKind::user, .name = "writer"});
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (std::uint32_t i = 0; !done.load(std::memory_order_relaxed); ++i) stream.emit<Type::task_deps>(i, ~i);
  });
  std::uint64_t records = 0, reused = 0;
  for (int round = 0; round < 200'000 && (records < 20'000 || reused == 0);) {
    const auto all = buffers.held();
    if (std::ranges::none_of(all, [&](const auto& held) { return held.header.actor == stream.actor(); })) {
      std::this_thread::yield();  // the writer has not begun
      continue;
    }
    ++round;
    for (const auto& held : all) {
      if (held.header.actor != stream.actor()) continue;
      const auto copy = buffers.copy(held, sizeof(PacketHeader), held.header.begin_ticks, DeclaredTypes::none());
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
        ASSERT_EQ(
            internal::decode(copy->bytes.data(), at, copy->bytes.size(), word, ticks, DeclaredTypes::none(), &record),
            internal::RecordFault::none);
        ticks = record.ticks;
        if (record.type == Type::task_deps) {
          const auto number = internal::load<std::uint32_t>(copy->bytes.data() + record.fields);
          ASSERT_EQ(internal::load<std::uint32_t>(copy->bytes.data() + record.fields + 4), ~number)
              << "a record of two";
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
}  // namespace tandem::trace::live_buffers_test
