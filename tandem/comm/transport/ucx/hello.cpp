// tandem/comm/transport/ucx/hello.cpp: published addresses, hellos and their proofs.
#include "tandem/comm/transport/ucx/hello.hpp"

#include <array>
#include <bit>
#include <cstring>

#include "tandem/base/narrow.hpp"

namespace tandem::comm::internal::ucx {
namespace {

// "TdX" and the version of these records. In the wrong byte order it is another number, as from a stranger.
constexpr std::uint32_t magic = 0x02586454;
constexpr std::size_t max_address_bytes = 4096;

void put(std::vector<std::byte>& to, const void* data, std::size_t bytes) {
  const std::size_t before = to.size();
  to.resize(before + bytes);
  if (bytes > 0) std::memcpy(to.data() + before, data, bytes);
}
void put(std::vector<std::byte>& to, std::uint32_t value) { put(to, &value, sizeof value); }
void put(std::vector<std::byte>& to, Rank rank) { put(to, rank.value()); }
void put(std::vector<std::byte>& to, std::span<const std::byte> bytes) { put(to, bytes.data(), bytes.size()); }

/// Reads fields one after the other; `ok` ends false when they were not all there.
struct Reader {
  std::span<const std::byte> rest;
  bool ok = true;

  void get(void* to, std::size_t bytes) {
    ok = ok && rest.size() >= bytes;
    if (!ok) return;
    std::memcpy(to, rest.data(), bytes);
    rest = rest.subspan(bytes);
  }
  std::uint32_t number() {
    std::uint32_t value = 0;
    get(&value, sizeof value);
    return value;
  }
};

constexpr std::string_view hello_purpose = "tandem ucx: hello";
constexpr std::string_view session_purpose = "tandem ucx: session";

/// The two ranks, as a part of a statement.
std::array<std::byte, 8> ranks_of(const Direction& direction) {
  const std::array ranks = {direction.from.value(), direction.to.value()};
  return std::bit_cast<std::array<std::byte, 8>>(ranks);
}

/// Reads the end of a published address: nonce and address. No bytes may follow them.
std::optional<Card> read_card(Reader& reader) {
  Card card;
  reader.get(card.nonce.data(), card.nonce.size());
  const std::uint32_t bytes = reader.number();
  if (!reader.ok || bytes == 0 || bytes > max_address_bytes || reader.rest.size() != bytes) return std::nullopt;
  card.address.assign(reader.rest.begin(), reader.rest.end());
  return card;
}

void put(std::vector<std::byte>& to, const Card& card) {
  put(to, card.nonce);
  put(to, base::narrow<std::uint32_t>(card.address.size()));
  put(to, card.address);
}

}  // namespace

std::string encode(const Card& card) {
  std::vector<std::byte> bytes;
  put(bytes, magic);
  put(bytes, card);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::optional<Card> decode_card(std::string_view bytes) {
  Reader reader{std::as_bytes(std::span(bytes))};
  if (reader.number() != magic) return std::nullopt;
  return read_card(reader);
}

std::vector<std::byte> encode(const Hello& hello) {
  std::vector<std::byte> bytes;
  put(bytes, magic);
  put(bytes, hello.from);
  put(bytes, hello.to);
  put(bytes, hello.proof.data(), hello.proof.size());
  put(bytes, hello.card);
  return bytes;
}

std::optional<Hello> decode_hello(std::span<const std::byte> bytes) {
  Reader reader{bytes};
  Hello hello;
  if (reader.number() != magic) return std::nullopt;
  hello.from = Rank(reader.number());
  hello.to = Rank(reader.number());
  reader.get(hello.proof.data(), hello.proof.size());
  auto card = read_card(reader);
  if (!card) return std::nullopt;
  hello.card = *std::move(card);
  return hello;
}

Hello make_hello(const JobSecret& secret, const Direction& direction, std::span<const std::byte> address) {
  return {
      .from = direction.from,
      .to = direction.to,
      .card = {.nonce = direction.from_nonce, .address = {address.begin(), address.end()}},
      .proof = prove(secret, hello_purpose, {ranks_of(direction), direction.from_nonce, direction.to_nonce, address})};
}

bool proves(const JobSecret& secret, const Hello& hello, const Nonce& our_nonce) {
  const Direction direction{.from = hello.from, .to = hello.to, .from_nonce = hello.card.nonce, .to_nonce = our_nonce};
  return internal::proves(secret, hello_purpose,
                          {ranks_of(direction), direction.from_nonce, direction.to_nonce, hello.card.address},
                          hello.proof);
}

std::uint64_t session_number(const JobSecret& secret, const Direction& direction) {
  const Proof hash = prove(secret, session_purpose, {ranks_of(direction), direction.from_nonce, direction.to_nonce});
  std::uint64_t number;
  std::memcpy(&number, hash.data(), sizeof number);
  return number;
}

}  // namespace tandem::comm::internal::ucx
