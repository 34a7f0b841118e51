// tandem/comm/bootstrap/card_test.cpp: addresses as bytes, and what is checked before one is believed.
#include "tandem/comm/bootstrap/card.hpp"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/comm/bootstrap/card_directory.hpp"

namespace tandem::comm::card_test {
namespace {

using base::ErrorCode;
using testing::HasSubstr;

PeerCard example_card() {
  return {7, "0.7", "boot-id", "alpha", {{"shm", std::string("a\0b", 3)}, {"tcp", "10.0.0.1:1"}}, 1 << 20, 500, 20};
}

TEST(BootstrapCard, IsReadBackAsItWasWritten) {
  const auto bytes = internal::encode_card(example_card());
  ASSERT_TRUE(bytes);
  const auto card = internal::decode_card(bytes.value(), 7);
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_EQ(card.value().version, "0.7");
  EXPECT_EQ(card.value().host, "boot-id");
  EXPECT_EQ(card.value().host_name, "alpha");
  EXPECT_EQ(card.value().transports, example_card().transports);
  EXPECT_EQ(card.value().credit_bytes, 1u << 20);
  EXPECT_EQ(card.value().credit_messages, 500u);
  EXPECT_EQ(card.value().credit_announcements, 20u);
}

TEST(BootstrapCard, OfAnotherWireFormatShowsItsVersionsWhateverFollows) {
  std::string bytes = internal::encode_card(example_card()).value();
  bytes.resize(bytes.size() - 5);
  const auto card = internal::decode_card(bytes, 8);
  ASSERT_TRUE(card);
  EXPECT_EQ(card.value().wire_version, 7u);
  EXPECT_EQ(card.value().version, "0.7");
  EXPECT_FALSE(internal::decode_card(bytes, 7)) << "of our own format, it is damaged";
}

TEST(BootstrapCard, DamagedOnesAreRefusedAndNeverCrash) {
  const std::string whole = internal::encode_card(example_card()).value();
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_FALSE(internal::decode_card(whole.substr(0, bytes), 7)) << bytes;
  const auto seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = whole;
    for (int j = 0; j < 3; ++j) damaged[random() % damaged.size()] = static_cast<char>(random());
    (void)internal::decode_card(damaged, 7).ok();
  }
}

TEST(BootstrapCard, TooLargeOnesAreRefusedByTheirAuthor) {
  PeerCard card = example_card();
  card.transports.emplace_back("huge", std::string(internal::most_card_bytes, 'x'));
  EXPECT_EQ(internal::encode_card(card).error().code, ErrorCode::invalid_argument);
}

/// Answers every question with the same bytes, and counts.
class FixedStore final : public internal::CardStore {
 public:
  FixedStore(std::string bytes, int& asked) : bytes_(std::move(bytes)), asked_(asked) {}
  base::Result<void> put(internal::Entry, const std::string&) override { return {}; }
  base::Result<std::string> get(internal::Entry, Rank, std::int64_t) override { return ++asked_, bytes_; }
  std::int64_t patience_ns() const override { return 1; }
  std::vector<Rank> missing() override { return {}; }

 private:
  std::string bytes_;
  int& asked_;
};

class CardDirectoryTest : public testing::Test {
 protected:
  void answer(const std::string& bytes) {
    directory_ = std::make_unique<internal::CardDirectory>(std::make_unique<FixedStore>(bytes, asked_), Rank(0), 3);
  }
  int asked_ = 0;
  std::unique_ptr<internal::CardDirectory> directory_;
};

TEST_F(CardDirectoryTest, AsksForAPeerOnce) {
  answer(internal::encode_card(example_card()).value());
  ASSERT_TRUE(directory_->publish(example_card()));
  EXPECT_TRUE(directory_->lookup(Rank(1)));
  EXPECT_TRUE(directory_->lookup(Rank(1)));
  EXPECT_TRUE(directory_->lookup(Rank(0))) << "its own card";
  EXPECT_EQ(asked_, 1);
}

TEST_F(CardDirectoryTest, RefusesAnotherWireFormatWithBothVersionsNamed) {
  PeerCard theirs = example_card();
  theirs.wire_version = 8;
  theirs.version = "0.8";
  answer(internal::encode_card(theirs).value());
  ASSERT_TRUE(directory_->publish(example_card()));
  const auto card = directory_->lookup(Rank(2));
  ASSERT_FALSE(card);
  EXPECT_EQ(card.error().code, ErrorCode::unsupported);
  EXPECT_THAT(card.error().message, HasSubstr("rank 2 runs Tandem 0.8 with wire format 8"));
  EXPECT_THAT(card.error().message, HasSubstr("rank 0 runs Tandem 0.7 with wire format 7"));
}

TEST_F(CardDirectoryTest, RefusesWrongUses) {
  answer("garbage");
  EXPECT_THAT(directory_->lookup(Rank(1)).error().message, HasSubstr("before it published"));
  ASSERT_TRUE(directory_->publish(example_card()));
  EXPECT_THAT(directory_->publish(example_card()).error().message, HasSubstr("already"));
  EXPECT_THAT(directory_->lookup(Rank(3)).error().message, HasSubstr("there is no rank 3"));
  EXPECT_EQ(directory_->lookup(Rank(1)).error().code, ErrorCode::malformed);
}

}  // namespace
}  // namespace tandem::comm::card_test
