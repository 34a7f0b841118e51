// tandem/comm/engine/broadcast_numbers_test.cpp: sizes and numbers of broadcasts beyond 32 bits.
#include <gtest/gtest.h>

#include <cstdint>

#include "tandem/comm/endpoint_test_support.hpp"
#include "tandem/comm/engine/broadcast.hpp"
#include "tandem/comm/engine/credit.hpp"

namespace tandem::comm::internal::broadcast_numbers_test {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

TEST(BroadcastNumbers, NoStrandHasEmptySegments) {
  for (std::uint64_t k = 1; k < 5; ++k) {
    EXPECT_EQ(strand_segment(0, k * 4 * kGiB), kGiB) << "the low 32 bits of the size are 0";
    EXPECT_EQ(strand_segment(k * 4 * kGiB, 100), kGiB);
  }
  EXPECT_EQ(strand_segment(0, 0), 1u);
  EXPECT_EQ(strand_segment(0, 4 * kGiB + 1), kGiB);
  EXPECT_EQ(strand_segment(0, 1000), 1000u);
  EXPECT_EQ(strand_segment(8192, 1000), 8192u);
}

/// A strand of 2^32 units, which are 256 GiB.
TEST(BroadcastNumbers, NoCreditCoversWhatHasMoreUnitsThan32Bits) {
  EXPECT_EQ(units_of(256 * kGiB, 0), UINT32_MAX);
  EXPECT_EQ(units_of(256 * kGiB + 64, 0), UINT32_MAX);
  EXPECT_EQ(units_of(UINT64_MAX - 1024, 1024), UINT32_MAX);
  EXPECT_EQ(units_of(256 * kGiB - 64, 0), UINT32_MAX);
  EXPECT_EQ(units_of(65, 0), 2u);
  Peer peer(Rank{1}, SendOrder::priority);
  peer.allowed = {.messages = 100, .units = INT32_MAX, .announcements = 1};
  EXPECT_FALSE(Credit(peer).covers(256 * kGiB, 0));
  EXPECT_FALSE(Credit(peer).covers_strand(256 * kGiB + 64));
  EXPECT_TRUE(Credit(peer).covers_strand(65));
}

/// Blocks contain the low 32 bits of the number up to which broadcasts have begun.
TEST(BroadcastNumbers, FencesGrowBeyond32BitsAndNeverRunAhead) {
  RootState root;
  EXPECT_EQ(root.passed(fences_on_wire(kFirstBroadcast - 1)), kFirstBroadcast - 1) << "nothing was heard yet";
  std::uint64_t said = kFirstBroadcast;
  for (const std::uint64_t step : {std::uint64_t{1}, std::uint64_t{100}, 3 * kGiB, 4 * kGiB - 1, std::uint64_t{0}}) {
    said += step;
    EXPECT_EQ(root.passed(fences_on_wire(said)), said);
  }
  said += 5 * kGiB;  // unheard for more than 2^32
  EXPECT_EQ(root.passed(fences_on_wire(said)), said - 4 * kGiB);
}

/// The numbers begin below 2^32 (`kFirstBroadcast`): some of these are below it, some above.
TEST(BroadcastNumbers, BroadcastsAndSendsOfOneKeyKeepTheirOrderBeyond32Bits) {
  endpoint_test::World world(4);
  constexpr std::uint64_t count = 40;
  static_assert(kFirstBroadcast < 4 * kGiB && kFirstBroadcast + count > 4 * kGiB);
  std::vector<std::uint64_t> sent(count), got(3 * count);
  std::vector<Request> requests;
  const std::vector<Recipient> recipients{{Rank{1}}, {Rank{2}}, {Rank{3}}};
  for (std::uint64_t i = 0; i < count; ++i) {
    sent[i] = i;
    if (i % 3 == 0) {
      for (const Recipient& to : recipients)
        requests.push_back(world.at[0]->isend(to.rank, Tag{7}, {&sent[i], sizeof sent[i]}));
    } else {
      requests.push_back(world.at[0]->mcast(recipients, Tag{7}, {&sent[i], sizeof sent[i]}));
    }
  }
  for (std::uint32_t rank = 1; rank <= 3; ++rank)
    for (std::uint64_t i = 0; i < count; ++i)
      requests.push_back(world.at[rank]->irecv(Rank{0}, Tag{7}, {&got[(rank - 1) * count + i], sizeof got[0]}));
  for (const Request& request : requests) EXPECT_EQ(world.at[0]->wait(request).ending, Ending::done);
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], i % count);
}

}  // namespace
}  // namespace tandem::comm::internal::broadcast_numbers_test
