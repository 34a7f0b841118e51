// tandem/comm/transport/ucx/reorder_test.cpp: items in any order come out in the sender's; proofs convince only the
// right peers.
#include "tandem/comm/transport/ucx/reorder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "tandem/comm/transport/ucx/hello.hpp"

namespace tandem::comm::internal::ucx::reorder_test {
namespace {

TEST(UcxReorder, AnyArrivalOrderIsTakenInOrder) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::vector<std::uint64_t> numbers(64);
    std::iota(numbers.begin(), numbers.end(), 0);
    std::shuffle(numbers.begin(), numbers.end(), std::mt19937(seed));
    Reorder<std::unique_ptr<std::uint64_t>> order(64);
    std::uint64_t taken = 0;
    for (const std::uint64_t number : numbers) {
      ASSERT_TRUE(order.acceptable(number));
      order.add(number, std::make_unique<std::uint64_t>(number));
      EXPECT_FALSE(order.acceptable(number));
      while (order.ready()) ASSERT_EQ(*order.take(), taken++) << "seed " << seed;
    }
    EXPECT_EQ(taken, 64u);
    EXPECT_EQ(order.size(), 0u);
  }
}

TEST(UcxReorder, WhatIsOldOrTooFarAheadIsRefused) {
  Reorder<int> order(4);
  order.skip();
  EXPECT_FALSE(order.acceptable(0));
  EXPECT_TRUE(order.acceptable(4));
  EXPECT_FALSE(order.acceptable(5));
}

struct Pair {
  JobSecret secret{};
  Direction direction{.from = Rank(1), .to = Rank(2), .from_nonce = fresh_nonce(), .to_nonce = fresh_nonce()};
  std::vector<std::byte> address = std::vector<std::byte>(80, std::byte{5});
};

TEST(UcxHello, ProvesTheSecretToTheOneItIsFor) {
  Pair pair;
  const auto bytes = encode(make_hello(pair.secret, pair.direction, pair.address));
  const auto hello = decode_hello(bytes);
  ASSERT_TRUE(hello.has_value());
  EXPECT_TRUE(proves(pair.secret, *hello, pair.direction.to_nonce));
  EXPECT_FALSE(proves(pair.secret, *hello, fresh_nonce()));
  JobSecret other = pair.secret;
  other[31] ^= std::byte{1};
  EXPECT_FALSE(proves(other, *hello, pair.direction.to_nonce));
}

TEST(UcxHello, EveryChangedOrMissingByteIsNoticed) {
  Pair pair;
  const auto good = encode(make_hello(pair.secret, pair.direction, pair.address));
  for (std::size_t i = 0; i < good.size(); ++i) {
    auto bad = good;
    bad[i] ^= std::byte{0x40};
    const auto hello = decode_hello(bad);
    EXPECT_FALSE(hello.has_value() && proves(pair.secret, *hello, pair.direction.to_nonce)) << "byte " << i;
    EXPECT_FALSE(decode_hello(std::span(good).first(i)).has_value());
  }
}

TEST(UcxHello, SessionsOfTheTwoDirectionsDiffer) {
  Pair pair;
  const Direction back{.from = pair.direction.to,
                       .to = pair.direction.from,
                       .from_nonce = pair.direction.to_nonce,
                       .to_nonce = pair.direction.from_nonce};
  EXPECT_NE(session_number(pair.secret, pair.direction), session_number(pair.secret, back));
  EXPECT_EQ(session_number(pair.secret, back), session_number(pair.secret, back));
}

}  // namespace
}  // namespace tandem::comm::internal::ucx::reorder_test
