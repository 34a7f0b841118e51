// tests/interleave/copy_meeting_interleave_test.cpp: two sides copy from both ends and meet, under every order of
// steps.
#include <gtest/gtest.h>

#include <array>

#include "tandem/comm/engine/copy_meeting.hpp"
#include "tests/interleave/expect.hpp"
#include "tests/interleave/model_atomic.hpp"

namespace tandem::interleave::copy_meeting_interleave_test {
namespace {

using Meeting = comm::internal::CopyMeeting<ModelAtomic<std::uint64_t>>;

/// Two messages, one after the other, of three parts and of two. The sender may hear of each when it is over, or when
/// the next one has begun.
struct TwoMessages : Program {
  static constexpr std::array<std::uint32_t, 2> kParts{3, 2};
  ModelAtomic<std::uint64_t> word{0};
  ModelAtomic<std::uint64_t> announced{0};  // messages that were announced to the sender
  ModelAtomic<std::uint64_t> finished{0};  // messages of which the sender has written parts, and said so
  std::array<std::array<ModelPlain<int>, 3>, 2> bytes;  // who copied each part: 1 the receiver, 2 the sender
  std::array<std::uint32_t, 2> read{}, written{};

  static bool any(std::uint64_t count) { return count > 0; }

  unsigned threads() const override { return 2; }
  void run(unsigned thread) override {
    if (thread == 0) {
      for (std::uint32_t message = 0; message < 2; ++message) receive(message);
    } else {
      for (std::uint32_t message = 0; message < 2; ++message) {
        if (announced.load(std::memory_order_acquire) > message) send(message);
      }
    }
  }
  void receive(std::uint32_t message) {
    Meeting meeting = Meeting::begin(word, message + 1, kParts[message]);
    announced.store(message + 1, std::memory_order_release);
    while (const auto part = meeting.take()) {
      require(*part == read[message], "a part is read out of order");
      bytes[message][*part] = 1;
      ++read[message];
    }
    if (read[message] == kParts[message]) return;
    finished.await<&any>();
    finished.exchange(0, std::memory_order_acquire);
    for (std::uint32_t part = read[message]; part < kParts[message]; ++part)
      require(bytes[message][part] == 2, "a part that the sender took is not there");
  }
  void send(std::uint32_t message) {
    Meeting meeting = Meeting::join(word, message + 1, kParts[message]);
    while (const auto part = meeting.take()) {
      require(*part == kParts[message] - 1 - written[message], "a part is written out of order");
      bytes[message][*part] = 2;
      ++written[message];
    }
    require(meeting.taken() == written[message], "what was taken is counted wrongly");
    if (written[message] > 0) finished.store(1, std::memory_order_release);
  }
  void check() override {
    for (std::uint32_t message = 0; message < 2; ++message)
      require(read[message] + written[message] == kParts[message], "a part is left, or was copied twice");
  }
};

TEST(CopyMeetingUnderEveryOrder, EachPartIsCopiedOnceAndNobodyTakesAnEarlierMessagesParts) {
  expect_holds<TwoMessages>({.most_preemptions = 4, .store_buffers = true});
}

/// The other side writes whatever it likes.
struct Liar : Program {
  ModelAtomic<std::uint64_t> word{0};
  std::uint32_t next = 0;

  unsigned threads() const override { return 2; }
  void run(unsigned thread) override {
    if (thread == 1) {
      for (const std::uint64_t lie :
           {std::uint64_t{1} << 32 | 0xffff, std::uint64_t{1} << 32 | 2 << 16 | 3, std::uint64_t{0}})
        word.store(lie, std::memory_order_relaxed);
      return;
    }
    Meeting meeting = Meeting::begin(word, 1, 3);
    while (const auto part = meeting.take())
      require(*part == next++ && *part < 3, "a part beyond the message, or twice");
  }
  void check() override {}
};

TEST(CopyMeetingUnderEveryOrder, ALyingSideGetsNobodyBeyondTheMessage) { expect_holds<Liar>(); }

}  // namespace
}  // namespace tandem::interleave::copy_meeting_interleave_test
