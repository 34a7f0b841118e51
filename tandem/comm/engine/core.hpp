// tandem/comm/engine/core.hpp: the engine's side of requests: sends, receives, broadcasts, and what tells their users.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "tandem/comm/buffer.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/comm/engine/recycled.hpp"
#include "tandem/comm/match/matcher.hpp"
#include "tandem/comm/request.hpp"
#include "tandem/comm/schedule/send_queue.hpp"

namespace tandem::comm::internal {

struct Peer;
struct OutgoingStream;
struct Broadcast;

/// Whom to tell, beyond those who wait. Made only for requests that asked for it.
struct Notify {
  Callbacks callbacks;
  CompletionQueue* queue = nullptr;
  std::uint64_t user = 0;
};

/// What every posted operation has. Reference-counted: one for the user's `Request`, one for the engine while the operation goes
/// on, one for each event to be told.
///
/// Protocol. Everything but `references` and `stage` belongs to the engine, under its lock, until `stage` is raised; who reads
/// `stage` with acquire sees the status that was written before (the store releases). Status fields do not change after
/// `arrived`.
class RequestCore {
 public:
  enum class Kind : std::uint8_t { send, sent, receive, broadcast };
  static constexpr std::uint8_t kArrived = 1;
  static constexpr std::uint8_t kReleased = 2;

  explicit RequestCore(Kind kind_of) noexcept : kind(kind_of) {}
  RequestCore(const RequestCore&) = delete;
  RequestCore& operator=(const RequestCore&) = delete;

  void retain() noexcept { references.fetch_add(1, std::memory_order_relaxed); }  // the caller holds one already
  /// The engine's reference, beside the caller's, of a core that nobody else has seen yet.
  void keep() noexcept { references.store(2, std::memory_order_relaxed); }
  void drop() noexcept {
    // Releases what this holder wrote; the last one acquires it before it destroys. Whoever finds himself the only holder stays
    // it, since only a holder makes others.
    if (references.load(std::memory_order_acquire) == 1 || references.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
  }
  Status status() const;  ///< thread-safe; `pending` before `arrived`
  std::uint8_t stage_now() const noexcept { return stage.load(std::memory_order_acquire); }

  std::atomic<std::uint32_t> references{1};
  std::atomic<std::uint8_t> stage{0};  ///< pairs: released by the engine, acquired by `stage_now`
  const Kind kind;
  Ending ending = Ending::pending;
  Rank other{0};  ///< destination of a send; source of a receive, when matched
  Rank culprit{0};
  Channel channel{0};
  Tag tag{0};
  Pieces pieces;
  std::vector<std::byte> header;
  std::unique_ptr<std::byte[]> owned;
  std::unique_ptr<Notify> notify;
  std::uint64_t bytes = 0;  ///< beside nothing that `status` reads: both would be loaded at once, and wait for all stores before

 protected:
  ~RequestCore() = default;

 private:
  void destroy() noexcept;
};

/// What a `SendItem` of the engine is.
enum class ItemKind : std::uint8_t {
  message,    ///< a `SendCore`: an eager message or an announcement
  control,    ///< a `ControlItem`
  stream,     ///< an `OutgoingStream`
  offer,      ///< an `OfferItem`: the first packet of a broadcast to a child
};

struct Item : SendItem {
  explicit Item(ItemKind kind_of) noexcept : what(kind_of) {}
  const ItemKind what;
};

/// A send that was handed to a rail while it was posted: what its user may ask for, and nothing that an engine needs.
struct SentCore final : RequestCore, Recycled<SentCore> {
  SentCore() noexcept : RequestCore(Kind::sent) {}
};

/// A send, from its posting until everything is handed to a rail. As a `SendItem` it stands for its envelope.
struct SendCore final : RequestCore, Item, Recycled<SendCore> {
  SendCore() noexcept : RequestCore(Kind::send), Item(ItemKind::message) {}
  Peer* peer = nullptr;
  std::uint32_t after = 0;           ///< the broadcast that it must be matched after; 0: none
  bool whole = false;                ///< an eager message, inline or with a payload; else announced
  OutgoingStream* stream = nullptr;  ///< when it is not inline
  Broadcast* broadcast = nullptr;    ///< when it carries a broadcast to one recipient; then nobody waits for this send
};

/// A receive, from its posting until it is complete. As a `PostedReceive` it stands in the matcher until it is matched.
struct ReceiveCore final : RequestCore, PostedReceive, Recycled<ReceiveCore> {
  ReceiveCore() noexcept : RequestCore(Kind::receive) {}
  bool posted = false;       ///< in the matcher
  bool owns_buffer = false;  ///< the library brings the memory
  bool for_rpc = false;      ///< made by the engine for an active message
};

/// The root's side of a broadcast, from its posting until nothing reads its buffer any more.
struct McastCore final : RequestCore {
  McastCore() noexcept : RequestCore(Kind::broadcast) {}
  Broadcast* broadcast = nullptr;  ///< null once it is released
};

}  // namespace tandem::comm::internal
