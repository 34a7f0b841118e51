// tandem/comm/bootstrap/proof.cpp: statements hashed under the secret, by libsodium.
#include "tandem/comm/bootstrap/proof.hpp"

#include <sodium.h>

#include <cstdint>
#include <tuple>

#include "tandem/base/assert.hpp"

namespace tandem::comm::internal {
namespace {

static_assert(std::tuple_size_v<JobSecret> == crypto_auth_hmacsha512256_KEYBYTES);
static_assert(std::tuple_size_v<Proof> == crypto_auth_hmacsha512256_BYTES);

const unsigned char* unsigned_of(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }

void add(crypto_auth_hmacsha512256_state& state, StatementPart part) {
  const auto length = static_cast<std::uint32_t>(part.bytes().size());
  TANDEM_ASSERT(length == part.bytes().size());
  const unsigned char prefix[4] = {static_cast<unsigned char>(length), static_cast<unsigned char>(length >> 8),
                                   static_cast<unsigned char>(length >> 16), static_cast<unsigned char>(length >> 24)};
  crypto_auth_hmacsha512256_update(&state, prefix, sizeof prefix);
  crypto_auth_hmacsha512256_update(&state, unsigned_of(part.bytes().data()), part.bytes().size());
}

}  // namespace

Nonce fresh_nonce() {
  TANDEM_ASSERT(sodium_init() >= 0);
  Nonce nonce;
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

Proof prove(const JobSecret& secret, std::string_view purpose, std::initializer_list<StatementPart> parts) {
  TANDEM_ASSERT(sodium_init() >= 0);
  crypto_auth_hmacsha512256_state state;
  crypto_auth_hmacsha512256_init(&state, unsigned_of(secret.data()), secret.size());
  add(state, purpose);
  for (const StatementPart part : parts) add(state, part);
  Proof proof;
  crypto_auth_hmacsha512256_final(&state, reinterpret_cast<unsigned char*>(proof.data()));
  sodium_memzero(&state, sizeof state);
  return proof;
}

bool proves(const JobSecret& secret, std::string_view purpose, std::initializer_list<StatementPart> parts,
            StatementPart proof) {
  if (proof.bytes().size() != std::tuple_size_v<Proof>) return false;
  const Proof expected = prove(secret, purpose, parts);
  return sodium_memcmp(expected.data(), proof.bytes().data(), expected.size()) == 0;
}

}  // namespace tandem::comm::internal
