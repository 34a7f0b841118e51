// tandem/comm/transport/mpi/mpi_transport.cpp: receives for envelopes of any rank, and tests of what was posted.
#include "tandem/comm/transport/mpi/mpi_transport.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>
#include <unordered_map>
#include <utility>

#include "tandem/base/assert.hpp"
#include "tandem/comm/transport/mpi/link.hpp"

namespace tandem::comm {
namespace internal::mpi {
namespace {

constexpr std::size_t posted_envelopes = 8;  // 64 KiB of memory
constexpr unsigned most_envelopes_per_poll = 32;
constexpr auto leave_within = std::chrono::seconds(2);

/// The address of a rank: its number in a communicator that only its members know.
struct Card {
  std::uint64_t communicator = 0;
  std::int32_t number = 0;
  std::uint32_t version = 1;
};
static_assert(sizeof(Card) == 16, "published as bytes");

/// Links made on first use over one communicator. Receives for envelopes are posted in a ring and MPI fills them in the
/// order in which they were posted, so that only the oldest is ever tested: order is kept without numbers. Under the
/// caller's lock.
class MpiTransport final : public Transport {
 public:
  MpiTransport(const MpiOptions& options, std::unique_ptr<Communicator> communicator, PacketSink& sink, base::Log& log);
  ~MpiTransport() override;

  base::Result<void> post_receives();

  std::string_view name() const noexcept override { return "mpi"; }
  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  std::string card() const override;
  bool reaches(Rank peer, std::string_view card) override;
  Link& connect(Rank peer, std::string_view card, unsigned rail) override;
  unsigned poll(std::int64_t now_ns) override;
  int wait_descriptor() const noexcept override { return -1; }
  bool arm() override { return true; }  // no peer rings: the caller polls with back-off
  void disarm() override {}
  void peer_left(Rank peer) override;
  void disconnect(Rank peer) override;

 private:
  struct Posted {
    MPI_Request request = MPI_REQUEST_NULL;
    EnvelopeBuffer buffer;
  };

  MpiLink* find(Rank peer);
  MpiLink& link_to(Rank peer);
  int post(Posted& posted);
  bool take_envelope();
  void test_sends();
  void test_receives();
  void wake_starved();
  void bury_broken();

  Shared shared_;
  Capabilities capabilities_;
  std::array<Posted, posted_envelopes> ring_;
  std::size_t oldest_ = 0;  ///< of the ring
  bool lost_ = false;       ///< receives of envelopes fail
  std::unordered_map<Rank, std::unique_ptr<MpiLink>> links_;
};

MpiTransport::MpiTransport(const MpiOptions& options, std::unique_ptr<Communicator> communicator, PacketSink& sink,
                           base::Log& log)
    : shared_(sink, log) {
  shared_.communicator = std::move(communicator);
  shared_.payload_limit = std::max(options.payload_sends, 1u);
  capabilities_ = {.max_control_bytes = max_control_bytes,
                   .max_payload_bytes = max_payload_bytes,
                   .segment_bytes = segment_bytes,
                   .eager_bytes = 4096,
                   .latency_ns = 5'000,
                   .bytes_per_ns = 5.0};
}

int MpiTransport::post(Posted& posted) {
  return MPI_Irecv(posted.buffer.data(), static_cast<int>(envelope_bytes), MPI_BYTE, MPI_ANY_SOURCE, envelope_tag,
                   shared_.communicator->handle(), &posted.request);
}

base::Result<void> MpiTransport::post_receives() {
  for (Posted& posted : ring_) {
    if (const int code = post(posted); code != MPI_SUCCESS)
      return base::Error{base::ErrorCode::io, mpi_failure("MPI_Irecv", code)};
  }
  return {};
}

MpiTransport::~MpiTransport() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized != 0) {
    shared_.log->error("mpi: MPI_Finalize was called before the endpoint was destroyed; destroy it first");
    return;
  }
  // What was sent leaves first, for a bounded time.
  bool orderly = !lost_;
  for (auto& [peer, link] : links_) {
    orderly = orderly && !link->closed();
    link->mute();
  }
  const auto deadline = std::chrono::steady_clock::now() + leave_within;
  const auto idle = [this] { return shared_.envelopes.empty() && shared_.payloads.empty(); };
  while (!idle() && std::chrono::steady_clock::now() < deadline) {
    test_sends();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  for (Posted& posted : ring_) {
    if (posted.request == MPI_REQUEST_NULL) continue;
    MPI_Cancel(&posted.request);
    MPI_Wait(&posted.request, MPI_STATUS_IGNORE);
  }
  if (!orderly || !idle()) shared_.communicator->abandon();
}

MpiLink* MpiTransport::find(Rank peer) {
  const auto at = links_.find(peer);
  return at == links_.end() ? nullptr : at->second.get();
}

MpiLink& MpiTransport::link_to(Rank peer) {
  if (MpiLink* link = find(peer); link != nullptr) return *link;
  return *(links_[peer] = std::make_unique<MpiLink>(shared_, peer, shared_.communicator->number_of(peer)));
}

std::string MpiTransport::card() const {
  const Card card{.communicator = shared_.communicator->id(), .number = shared_.communicator->own_number()};
  return {reinterpret_cast<const char*>(&card), sizeof card};
}

bool MpiTransport::reaches(Rank peer, std::string_view bytes) {
  Card card;
  if (bytes.size() != sizeof card) return false;
  std::memcpy(&card, bytes.data(), sizeof card);
  const int number = shared_.communicator->number_of(peer);
  return card.version == Card().version && card.communicator == shared_.communicator->id() && number >= 0 &&
         card.number == number;
}

Link& MpiTransport::connect(Rank peer, [[maybe_unused]] std::string_view card, [[maybe_unused]] unsigned rail) {
  TANDEM_ASSERT(rail == 0 && reaches(peer, card));
  return link_to(peer);
}

void MpiTransport::test_sends() {
  for (std::size_t i = 0; i < shared_.envelopes.size();) {
    int done = 0;
    EnvelopeSend& send = *shared_.envelopes[i];
    const int code = MPI_Test(&send.request, &done, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS && done == 0) {
      ++i;
      continue;
    }
    if (code != MPI_SUCCESS) send.link->break_off(mpi_failure("MPI_Isend", code));
    shared_.freed = true;
    std::swap(shared_.envelopes[i], shared_.envelopes.back());
    shared_.free_envelopes.push_back(std::move(shared_.envelopes.back()));
    shared_.envelopes.pop_back();
  }
  for (std::size_t i = 0; i < shared_.payloads.size();) {
    int done = 0;
    const int code = MPI_Test(&shared_.payloads[i].request, &done, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS && done == 0) {
      ++i;
      continue;
    }
    // The entry leaves the list before the report: the sink may post others.
    const PayloadSend ended = std::move(shared_.payloads[i]);
    shared_.payloads.erase(shared_.payloads.begin() + static_cast<std::ptrdiff_t>(i));
    shared_.freed = true;
    ended.link->payload_sent(ended, code);
  }
}

void MpiTransport::test_receives() {
  auto& receiving = shared_.receiving;
  for (std::size_t i = 0; i < receiving.size();) {
    MpiLink* const link = receiving[i];
    if (!link->receive_done()) {
      ++i;
      continue;
    }
    // The entry leaves the list before the link continues: it may begin the next one.
    receiving.erase(receiving.begin() + static_cast<std::ptrdiff_t>(i));
    link->finish_receive();
  }
}

/// The oldest posted envelope, if it is there.
bool MpiTransport::take_envelope() {
  if (lost_) return false;
  Posted& posted = ring_[oldest_];
  MPI_Status status;
  int done = 0, bytes = 0;
  int code = MPI_Test(&posted.request, &done, &status);
  if (code == MPI_SUCCESS && done == 0) return false;
  if (code == MPI_SUCCESS) {
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    MpiLink& link = link_to(shared_.communicator->rank_of(status.MPI_SOURCE));
    link.came({reinterpret_cast<const std::byte*>(posted.buffer.data()), static_cast<std::size_t>(bytes)});
    code = post(posted);
  }
  oldest_ = (oldest_ + 1) % ring_.size();
  if (code == MPI_SUCCESS) return true;
  lost_ = true;
  for (auto& [peer, link] : links_) link->break_off(mpi_failure("MPI_Irecv", code));
  return false;
}

void MpiTransport::wake_starved() {
  if (!std::exchange(shared_.freed, false)) return;
  const std::vector<MpiLink*> starved = std::exchange(shared_.starved, {});
  for (MpiLink* link : starved) {
    if (!link->may_send(0)) {
      if (!link->closed()) shared_.starved.push_back(link);
      continue;
    }
    link->set_starved(false);
    ++shared_.events;
    shared_.sink->writable(*link);
  }
}

void MpiTransport::bury_broken() {
  for (std::size_t i = 0; i < shared_.broken.size(); ++i) {
    const auto [link, why] = std::move(shared_.broken[i]);
    if (link->closed()) continue;
    link->close();
    if (link->left()) continue;
    ++shared_.events;
    shared_.sink->peer_failed(link->peer(), why);
  }
  shared_.broken.clear();
}

unsigned MpiTransport::poll(std::int64_t) {
  shared_.events = 0;
  test_sends();
  test_receives();
  for (unsigned taken = 0; taken < most_envelopes_per_poll && take_envelope(); ++taken) {
  }
  wake_starved();
  bury_broken();
  return shared_.events;
}

void MpiTransport::peer_left(Rank peer) {
  if (MpiLink* link = find(peer); link != nullptr) link->set_left();
}

void MpiTransport::disconnect(Rank peer) {
  if (MpiLink* link = find(peer); link != nullptr) link->close();
}

}  // namespace
}  // namespace internal::mpi

base::Result<std::unique_ptr<Transport>> make_mpi_transport(const MpiOptions& options, PacketSink& sink,
                                                            base::Log& log) {
  using namespace internal::mpi;
  if (auto ready = require_mpi(options.program_calls_mpi ? Company::program : Company::alone); !ready)
    return ready.error();
  auto communicator = Communicator::duplicate(options.communicator, options.rank);
  if (!communicator) return communicator.error();
  auto transport = std::make_unique<MpiTransport>(options, std::move(communicator).value(), sink, log);
  if (auto posted = transport->post_receives(); !posted) return posted.error();
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace tandem::comm
