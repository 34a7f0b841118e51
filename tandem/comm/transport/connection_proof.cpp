// tandem/comm/transport/connection_proof.cpp: the four messages of the proof, and what each end checks in them.
#include "tandem/comm/transport/connection_proof.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "tandem/base/assert.hpp"

namespace tandem::comm {

namespace {

static_assert(std::endian::native == std::endian::little,
              "the proof's numbers are sent in little-endian order as they lie");
static_assert(ConnectionProof::proof_bytes == std::tuple_size_v<internal::Proof>);

// The last byte counts versions of the proof itself. Software that takes the bytes for text damages a carriage return
// or a line feed.
constexpr std::array<char, ConnectionProof::magic_bytes> magic = {'T', 'A', 'N', 'D', '\r', '\n', '\x1a', '\x02'};
constexpr std::array<char, ConnectionProof::welcome_bytes> welcome = {'w', 'e', 'l', 'c', 'o', 'm', 'e', '.'};

// Offsets in a hello; an answer has the same beginning, and its nonce where the hello has the opener's rank.
constexpr std::size_t wire_at = 8;
constexpr std::size_t version_at = 12;
constexpr std::size_t version_bytes = 28;  // the last is always zero
constexpr std::size_t from_at = 40;
constexpr std::size_t to_at = 44;
constexpr std::size_t rail_at = 48;
constexpr std::size_t hello_nonce_at = 56;
constexpr std::size_t answer_nonce_at = 40;
constexpr std::size_t nonce_bytes = std::tuple_size_v<internal::Nonce>;

constexpr std::string_view opener_role = "tandem tcp: opener";
constexpr std::string_view accepter_role = "tandem tcp: accepter";
static_assert(hello_nonce_at + nonce_bytes == ConnectionProof::hello_bytes);
static_assert(answer_nonce_at + nonce_bytes + ConnectionProof::proof_bytes == ConnectionProof::answer_bytes);

void put(std::byte* at, std::uint32_t value) { std::memcpy(at, &value, sizeof value); }

std::uint32_t get(const std::byte* at) {
  std::uint32_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}

void put_beginning(std::byte* message, const ProofParty& party) {
  std::memcpy(message, magic.data(), magic.size());
  put(message + wire_at, party.wire_version);
  std::memcpy(message + version_at, party.version.data(), std::min(party.version.size(), version_bytes - 1));
}

void put_nonce(std::byte* at) { std::ranges::copy(internal::fresh_nonce(), at); }

bool starts_like_magic(std::span<const std::byte> bytes) {
  return std::memcmp(bytes.data(), magic.data(), std::min(bytes.size(), magic.size())) == 0;
}

}  // namespace

ConnectionProof ConnectionProof::opener(const ProofParty& party, base::Rank peer, std::uint32_t rail) {
  ConnectionProof proof(party, Step::answer);
  proof.peer_ = peer;
  proof.rail_ = rail;
  put_beginning(proof.hello_.data(), party);
  put(proof.hello_.data() + from_at, party.rank.value());
  put(proof.hello_.data() + to_at, peer.value());
  put(proof.hello_.data() + rail_at, rail);
  put_nonce(proof.hello_.data() + hello_nonce_at);
  proof.send(proof.hello_);
  return proof;
}

ConnectionProof ConnectionProof::accepter(const ProofParty& party) { return ConnectionProof(party, Step::hello); }

void ConnectionProof::sent(std::size_t bytes) noexcept {
  TANDEM_DEBUG_ASSERT(bytes <= output_end_ - output_begin_);
  output_begin_ += bytes;
}

std::size_t ConnectionProof::step_bytes() const noexcept {
  switch (step_) {
    case Step::hello: return hello_bytes;
    case Step::answer: return answer_bytes;
    case Step::proof: return proof_bytes;
    case Step::welcome: return welcome_bytes;
  }
  return 0;
}

std::span<std::byte> ConnectionProof::input() noexcept {
  if (state_ != State::working) return {};
  return std::span(input_).first(step_bytes()).subspan(received_);
}

ConnectionProof::State ConnectionProof::received(std::size_t bytes) {
  TANDEM_DEBUG_ASSERT(bytes <= input().size());
  received_ += bytes;
  // The first byte reveals a peer that speaks another protocol, so there is no need to wait for the rest.
  const bool has_magic = step_ == Step::hello || step_ == Step::answer;
  if (has_magic && !starts_like_magic(std::span(input_).first(received_))) {
    refuse("does not speak this protocol (or another version of its connection proof)");
  } else if (received_ == step_bytes()) {
    received_ = 0;
    advance();
  }
  return state_;
}

void ConnectionProof::advance() {
  switch (step_) {
    case Step::hello: return take_hello();
    case Step::answer: return take_answer();
    case Step::proof: return take_proof();
    case Step::welcome: return take_welcome();
  }
}

void ConnectionProof::take_hello() {
  std::copy_n(input_.begin(), hello_bytes, hello_.begin());
  peer_ = base::Rank(get(hello_.data() + from_at));
  rail_ = get(hello_.data() + rail_at);
  put_beginning(answer_head_.data(), *party_);
  put_nonce(answer_head_.data() + answer_nonce_at);
  std::array<std::byte, answer_bytes> answer;
  const internal::Proof own = prove(accepter_role);
  std::copy(own.begin(), own.end(), std::copy(answer_head_.begin(), answer_head_.end(), answer.begin()));
  send(answer);
  step_ = Step::proof;
}

void ConnectionProof::take_answer() {
  std::copy_n(input_.begin(), answer_head_.size(), answer_head_.begin());
  if (!proves(accepter_role, std::span(input_).subspan(answer_head_.size(), proof_bytes))) {
    return refuse("could not prove that it knows this job's secret");
  }
  authentic_ = true;
  send(prove(opener_role));  // also when versions differ: the other end believes our version only after our proof
  step_ = Step::welcome;
  check_versions(answer_head_.data());
}

void ConnectionProof::take_proof() {
  if (!proves(opener_role, std::span(input_).first(proof_bytes))) {
    return refuse("could not prove that it knows this job's secret");
  }
  const std::uint32_t wanted = get(hello_.data() + to_at);
  if (wanted != party_->rank.value()) {
    return refuse(fmt::format("is rank {} of this job and was looking for rank {}, not for rank {} that is here",
                              peer_.value(), wanted, party_->rank.value()));
  }
  if (peer_.value() >= party_->size || peer_ == party_->rank) {
    return refuse(fmt::format("calls itself rank {}, which cannot be in a job of {} seen from rank {}", peer_.value(),
                              party_->size, party_->rank.value()));
  }
  authentic_ = true;
  check_versions(hello_.data());
  if (state_ == State::refused) return;
  send(std::as_bytes(std::span(welcome)));
  state_ = State::proved;
}

void ConnectionProof::take_welcome() {
  if (std::memcmp(input_.data(), welcome.data(), welcome.size()) != 0)
    return refuse("did not follow the connection proof");
  state_ = State::proved;
}

void ConnectionProof::check_versions(const std::byte* message) {
  const std::uint32_t wire = get(message + wire_at);
  if (wire == party_->wire_version) return;
  const char* text = reinterpret_cast<const char*>(message + version_at);
  const std::string_view version(text, strnlen(text, version_bytes));
  refuse(
      fmt::format("runs Tandem {} with wire format {}, and rank {} runs Tandem {} with wire format {}: use one build",
                  version, wire, party_->rank.value(), party_->version, party_->wire_version));
}

void ConnectionProof::refuse(std::string reason) {
  state_ = State::refused;
  reason_ = std::move(reason);
}

void ConnectionProof::send(std::span<const std::byte> bytes) {
  TANDEM_ASSERT(output_begin_ == output_end_ && bytes.size() <= output_.size());
  std::copy(bytes.begin(), bytes.end(), output_.begin());
  output_begin_ = 0;
  output_end_ = bytes.size();
}

internal::Proof ConnectionProof::prove(std::string_view role) const {
  return internal::prove(party_->secret, role, {party_->job_id, hello_, answer_head_});
}

bool ConnectionProof::proves(std::string_view role, std::span<const std::byte> proof) const {
  return internal::proves(party_->secret, role, {party_->job_id, hello_, answer_head_}, proof);
}

}  // namespace tandem::comm
