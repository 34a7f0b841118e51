// tandem/comm/transport/ucx/ucx_transport.cpp: the worker's callbacks, which peers are admitted, and what happens to
// links that break.
#include "tandem/comm/transport/ucx/ucx_transport.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tandem/base/assert.hpp"
#include "tandem/comm/transport/ucx/hello.hpp"
#include "tandem/comm/transport/ucx/link.hpp"
#include "tandem/comm/transport/ucx/operations.hpp"
#include "tandem/comm/transport/ucx/worker.hpp"

namespace tandem::comm {
namespace internal::ucx {
namespace {

using base::Result;

constexpr std::size_t most_card_bytes = 4096;  // as `Transport::card` promises
constexpr int most_rounds = 16;               // of progress per poll
constexpr std::size_t most_hellos = 1024;     // of proved peers that wait for their links
constexpr auto leave_within = std::chrono::milliseconds(200);

/// One worker, and a link per peer. Everything under the caller's lock.
class UcxTransport final : public Transport {
 public:
  UcxTransport(const UcxOptions& options, std::unique_ptr<Worker> worker, PacketSink& sink, base::Log& log);
  ~UcxTransport() override;

  Result<void> listen();

  std::string_view name() const noexcept override { return "ucx"; }
  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  std::string card() const override { return encode(Card{.nonce = nonce_, .address = address()}); }
  bool reaches(Rank peer, std::string_view card) override;
  Link& connect(Rank peer, std::string_view card, unsigned rail) override;
  unsigned poll(std::int64_t now_ns) override;
  int wait_descriptor() const noexcept override { return worker_->wait_descriptor(); }
  bool arm() override;
  void disarm() override { shared_.armed = false; }
  void peer_left(Rank peer) override;
  void disconnect(Rank peer) override;

 private:
  static ucs_status_t hello_came(void* self, const void* header, std::size_t header_bytes, void* data,
                                 std::size_t bytes, const ucp_am_recv_param_t* parameters);
  static ucs_status_t packet_came(void* self, const void* header, std::size_t header_bytes, void* data,
                                  std::size_t bytes, const ucp_am_recv_param_t* parameters);
  std::vector<std::byte> address() const { return {worker_->address().begin(), worker_->address().end()}; }
  UcxLink* find(Rank peer);
  UcxLink& make_link(Rank peer, const Card& card);
  void stranger(std::string_view why);
  bool settle();
  void challenge_caller(const Hello& hello);
  void bury(UcxLink& link, const std::string& why);

  UcxOptions options_;
  std::unique_ptr<Worker> worker_;
  Shared shared_;
  Nonce nonce_ = fresh_nonce();
  Capabilities capabilities_;
  std::unordered_map<Rank, std::unique_ptr<UcxLink>> links_;
  std::vector<Hello> hellos_;  ///< proved; their links are made outside UCX's callback
  std::uint64_t dropped_ = 0;
};

UcxTransport::UcxTransport(const UcxOptions& options, std::unique_ptr<Worker> worker, PacketSink& sink, base::Log& log)
    : options_(options), worker_(std::move(worker)), shared_(sink, log) {
  shared_.self = options.rank;
  shared_.worker = worker_->handle();
  shared_.rendezvous_only = options.rendezvous_only || worker_->knows_other_memory();
  shared_.max_header_bytes = worker_->max_header_bytes();
  if (options.max_header_bytes != 0)
    shared_.max_header_bytes = std::min(shared_.max_header_bytes, options.max_header_bytes);
  capabilities_ = {.max_control_bytes = max_control_bytes,
                   .max_payload_bytes = max_payload_bytes,
                   .segment_bytes = segment_bytes,
                   .eager_bytes = 16 << 10,
                   .cuda_memory = worker_->knows_cuda_memory(),
                   .latency_ns = 5'000,
                   .bytes_per_ns = 5.0};
}

Result<void> UcxTransport::listen() {
  const auto handle = [this](unsigned id, ucp_am_recv_callback_t callback) {
    ucp_am_handler_param_t parameters{};
    parameters.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                            UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    parameters.id = id;
    parameters.flags = UCP_AM_FLAG_WHOLE_MSG;
    parameters.cb = callback;
    parameters.arg = this;
    return ucp_worker_set_am_recv_handler(worker_->handle(), &parameters);
  };
  ucs_status_t status = handle(hello_id, &UcxTransport::hello_came);
  if (status == UCS_OK) status = handle(packet_id, &UcxTransport::packet_came);
  if (status != UCS_OK) return ucx_error("registering active messages", status, "use the transport tcp");
  if (const std::size_t bytes = card().size(); bytes > most_card_bytes) {
    return base::Error{
        base::ErrorCode::exhausted,
        fmt::format("UCX: our address takes {} bytes with its {} transports, and a card holds {}; name the devices "
                    "to use, for instance UCX_NET_DEVICES=mlx5_0:1",
                    bytes, options_.transports, most_card_bytes)};
  }
  return {};
}

UcxTransport::~UcxTransport() {
  // What was sent leaves first, for a bounded time; then everything is closed by force with the worker.
  std::vector<ucs_status_ptr_t> closing;
  for (auto& [peer, link] : links_) {
    if (const auto request = link->close_gently(); request != nullptr) closing.push_back(request);
  }
  const auto deadline = std::chrono::steady_clock::now() + leave_within;
  const auto busy = [](ucs_status_ptr_t request) { return ucp_request_check_status(request) == UCS_INPROGRESS; };
  while (std::any_of(closing.begin(), closing.end(), busy) && std::chrono::steady_clock::now() < deadline) {
    if (ucp_worker_progress(worker_->handle()) == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  for (const auto request : closing) ucp_request_free(request);
  worker_.reset();
}

UcxLink* UcxTransport::find(Rank peer) {
  const auto at = links_.find(peer);
  return at == links_.end() ? nullptr : at->second.get();
}

bool UcxTransport::reaches(Rank, std::string_view card) { return decode_card(card).has_value(); }

Link& UcxTransport::connect(Rank peer, std::string_view card, [[maybe_unused]] unsigned rail) {
  TANDEM_ASSERT(rail == 0);
  if (UcxLink* link = find(peer); link != nullptr) return *link;
  const auto decoded = decode_card(card);
  TANDEM_ASSERT(decoded.has_value());  // `reaches` said so
  return make_link(peer, *decoded);
}

UcxLink& UcxTransport::make_link(Rank peer, const Card& card) {
  const Direction out{.from = options_.rank, .to = peer, .from_nonce = nonce_, .to_nonce = card.nonce};
  const Direction in{.from = peer, .to = options_.rank, .from_nonce = card.nonce, .to_nonce = nonce_};
  const auto hello = encode(make_hello(options_.secret, out, worker_->address()));
  auto link = std::make_unique<UcxLink>(shared_, peer, card.address, hello, session_number(options_.secret, out),
                                        session_number(options_.secret, in));
  return *(links_[peer] = std::move(link));
}

void UcxTransport::stranger(std::string_view why) {
  // Logged at powers of two only: a flood of strangers must not become a flood of messages.
  if (std::has_single_bit(++dropped_))
    shared_.log->warn("ucx: a message from outside the job was dropped: {} ({} so far)", why, dropped_);
}

ucs_status_t UcxTransport::hello_came(void* self, const void* header, std::size_t header_bytes, void*, std::size_t,
                                      const ucp_am_recv_param_t*) {
  auto& transport = *static_cast<UcxTransport*>(self);
  auto hello = decode_hello({static_cast<const std::byte*>(header), header_bytes});
  if (!hello) {
    transport.stranger("it does not follow the format, or is of another version of Tandem");
  } else if (hello->to != transport.options_.rank || !proves(transport.options_.secret, *hello, transport.nonce_)) {
    transport.stranger("it does not prove the job's secret");
  } else if (transport.hellos_.size() < most_hellos) {
    transport.hellos_.push_back(*std::move(hello));
  }
  return UCS_OK;
}

ucs_status_t UcxTransport::packet_came(void* self, const void* header, std::size_t header_bytes, void* data,
                                       std::size_t bytes, const ucp_am_recv_param_t* parameters) {
  auto& transport = *static_cast<UcxTransport*>(self);
  PacketHeader packet;
  if (header_bytes < sizeof packet) {
    transport.stranger("it has no header");
    return UCS_OK;
  }
  std::memcpy(&packet, header, sizeof packet);
  UcxLink* link = transport.find(Rank(packet.from));
  if (link == nullptr || link->peer_session() != packet.session) {
    transport.stranger("its session is not ours");
    return UCS_OK;
  }
  const std::span<const std::byte> block(static_cast<const std::byte*>(header), header_bytes);
  return link->came(packet, block.subspan(sizeof packet), data, bytes, parameters->recv_attr);
}

void UcxTransport::challenge_caller(const Hello& hello) {
  UcxLink* link = find(hello.from);
  if (link == nullptr) link = &make_link(hello.from, hello.card);
  link->proved();
  shared_.sink->opened(*link);
}

void UcxTransport::bury(UcxLink& link, const std::string& why) {
  if (link.closed()) return;
  link.close();
  if (link.left()) return;
  ++shared_.events;
  shared_.sink->peer_failed(link.peer(), why);
}

/// Processes what the callbacks noted. True when there was something.
bool UcxTransport::settle() {
  bool any = false;
  const auto each = [&any](auto& list, auto handle) {
    // The loop goes by index, since handling an entry may add others.
    for (std::size_t i = 0; i < list.size(); ++i) {
      any = true;
      auto item = std::move(list[i]);
      handle(item);
    }
    list.clear();
  };
  each(hellos_, [this](const Hello& hello) { challenge_caller(hello); });
  each(shared_.finished_sends, [](SendOperation* operation) { operation->link->finish(*operation); });
  each(shared_.finished_receives, [](ReceiveOperation* operation) { operation->link->finish(*operation); });
  each(shared_.ready, [](UcxLink* link) { link->deliver(); });
  each(shared_.broken, [this](const auto& broken) { bury(*broken.first, broken.second); });
  return any;
}

unsigned UcxTransport::poll(std::int64_t) {
  shared_.events = 0;
  shared_.reporting = true;
  for (int round = 0; round < most_rounds; ++round) {
    const bool progressed = ucp_worker_progress(worker_->handle()) != 0;
    if (const bool settled = settle(); !progressed && !settled) break;
  }
  shared_.reporting = false;
  return shared_.events;
}

bool UcxTransport::arm() {
  const bool idle = hellos_.empty() && shared_.finished_sends.empty() && shared_.finished_receives.empty() &&
                    shared_.ready.empty() && shared_.broken.empty();
  shared_.armed = idle && ucp_worker_arm(worker_->handle()) == UCS_OK;
  return shared_.armed;
}

void UcxTransport::peer_left(Rank peer) {
  if (UcxLink* link = find(peer); link != nullptr) link->set_left();
}

void UcxTransport::disconnect(Rank peer) {
  if (UcxLink* link = find(peer); link != nullptr) link->close();
  shared_.wake_sleeper();  // closing lets UCX call back
}

}  // namespace
}  // namespace internal::ucx

base::Result<std::unique_ptr<Transport>> make_ucx_transport(const UcxOptions& options, PacketSink& sink,
                                                            base::Log& log) {
  auto worker = internal::ucx::Worker::open(options);
  if (!worker) return worker.error();
  auto transport = std::make_unique<internal::ucx::UcxTransport>(options, std::move(worker).value(), sink, log);
  if (auto listening = transport->listen(); !listening) return listening.error();
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace tandem::comm
