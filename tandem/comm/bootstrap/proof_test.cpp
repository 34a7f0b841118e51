// tandem/comm/bootstrap/proof_test.cpp: a proof holds for its secret, its purpose and its parts only.
#include "tandem/comm/bootstrap/proof.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "tandem/comm/bootstrap/secret.hpp"

namespace tandem::comm::internal::proof_test {
namespace {

const JobSecret& the_secret() {
  static const JobSecret secret = secret_of_text("0123456789abcdef", "x").value();
  return secret;
}

TEST(BootstrapProof, HoldsForItsSecretPurposeAndPartsOnly) {
  const JobSecret& secret = the_secret();
  const Proof proof = prove(secret, "purpose", {"first", "second"});
  EXPECT_TRUE(proves(secret, "purpose", {"first", "second"}, proof));
  EXPECT_FALSE(proves(secret, "purposes", {"first", "second"}, proof));
  EXPECT_FALSE(proves(secret, "purpose", {"second", "first"}, proof));
  EXPECT_FALSE(proves(secret, "purpose", {"first", "seconds"}, proof));
  EXPECT_FALSE(proves(derive_secret(secret, "other"), "purpose", {"first", "second"}, proof));
}

TEST(BootstrapProof, NoBytesMoveFromOnePartToTheNext) {
  const JobSecret& secret = the_secret();
  const std::set<Proof> different = {prove(secret, "a", {"bc", "d"}),  prove(secret, "a", {"b", "cd"}),
                                     prove(secret, "ab", {"c", "d"}),  prove(secret, "a", {"bcd"}),
                                     prove(secret, "a", {"bcd", ""}), prove(secret, "abcd", {})};
  EXPECT_EQ(different.size(), 6U);
}

TEST(BootstrapProof, AnyChangedOrMissingByteRefusesIt) {
  const JobSecret& secret = the_secret();
  const Proof proof = prove(secret, "purpose", {"statement"});
  for (std::size_t i = 0; i < proof.size(); ++i) {
    Proof wrong = proof;
    wrong[i] ^= std::byte{1};
    EXPECT_FALSE(proves(secret, "purpose", {"statement"}, wrong));
    EXPECT_FALSE(proves(secret, "purpose", {"statement"}, std::span(proof).first(i)));
  }
  std::array<std::byte, sizeof proof + 1> longer{};
  std::copy(proof.begin(), proof.end(), longer.begin());
  EXPECT_FALSE(proves(secret, "purpose", {"statement"}, longer));
}

// HMAC-SHA-512-256 of "\x01\0\0\0a\x02\0\0\0bc" under 32 zero bytes, from Python's hmac and hashlib.
TEST(BootstrapProof, IsTheTruncatedHmacThatItClaims) {
  const Proof proof = prove(JobSecret{}, "a", {"bc"});
  std::string digits;
  for (const std::byte byte : proof) digits += "0123456789abcdef"[static_cast<unsigned>(byte) >> 4],
                                     digits += "0123456789abcdef"[static_cast<unsigned>(byte) & 15];
  EXPECT_EQ(digits, "90241518136516c6fc73a026a226a602389d9d0336f73fc432df85f31101b64c");
}

TEST(BootstrapProof, NoncesDiffer) { EXPECT_NE(fresh_nonce(), fresh_nonce()); }

}  // namespace
}  // namespace tandem::comm::internal::proof_test
