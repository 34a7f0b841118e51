// tandem/comm/engine/core.hpp: the engine's side of requests: sends, receives, broadcasts, and their callbacks.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tandem/comm/buffer.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/comm/engine/recycled.hpp"
#include "tandem/comm/engine/request_life.hpp"
#include "tandem/comm/match/matcher.hpp"
#include "tandem/comm/request.hpp"
#include "tandem/comm/schedule/send_queue.hpp"

namespace tandem::comm::internal {

struct Peer;
struct OutgoingStream;
struct DeferredSend;
struct Broadcast;

/// State that few requests need.
struct Extra {
  // What to call, beside waking those that wait.
  Callbacks callbacks;
  CompletionQueue* queue = nullptr;
  std::uint64_t user = 0;

  std::vector<std::byte> header;
  std::unique_ptr<std::byte[]> owned;  ///< of a receive: memory that the library brought
  Rank culprit{0};                     ///< of `peer_dead`
};

struct DeleteExtra {
  void operator()(Extra* extra) const noexcept;
};

/// What every posted operation has.
///
/// Protocol. Everything but its life belongs to the engine, under its lock, until the stage is raised; a thread that
/// reads the stage sees the status that was written before. Status fields do not change after `arrived`.
class RequestCore : public RequestLife<std::atomic> {
 public:
  enum class Kind : std::uint8_t { send, sent, receive, broadcast };

  explicit RequestCore(Kind kind_of, Tag tag_of = Tag{0}) noexcept : kind(kind_of), tag(tag_of) {}
  RequestCore(const RequestCore&) = delete;
  RequestCore& operator=(const RequestCore&) = delete;

  /// Gives up a reference.
  void drop() noexcept {
    switch (RequestLife::drop()) {
      case Left::others: return;
      [[likely]] case Left::nobody: return destroy();
      case Left::engine: return orphan(*this);
    }
  }
  /// Frees requests that ended after their last user had gone. Each request that is left behind frees a few, too.
  /// Thread-safe.
  static void free_orphans() noexcept;
  /// Requests left behind and not freed yet; outdated at once. Thread-safe.
  static std::size_t orphans() noexcept;

  /// The status; `pending` before `arrived`. Thread-safe.
  Status status() const { return stage_now() == 0 ? Status{} : known_status(); }
  /// The status, called only after the stage says that it has arrived.
  Status known_status() const {
    Status status{.ending = ending, .source = other, .tag = tag, .bytes = bytes};
    if (extra != nullptr) [[unlikely]] add_extra(status);
    return status;
  }
  std::span<const std::byte> header() const noexcept {
    return extra != nullptr ? std::span<const std::byte>(extra->header) : std::span<const std::byte>();
  }
  void keep_header(std::span<const std::byte> bytes_of) {
    if (!bytes_of.empty()) [[unlikely]] needed_extra().header.assign(bytes_of.begin(), bytes_of.end());
  }
  /// Takes over memory that `status` shows and the user reads.
  void keep_owned(std::unique_ptr<std::byte[]> memory) { needed_extra().owned = std::move(memory); }
  void end_by(Ending how, Rank culprit) {
    ending = how;
    if (how == Ending::peer_dead) needed_extra().culprit = culprit;
  }
  bool has_owned() const noexcept { return extra != nullptr && extra->owned != nullptr; }
  Extra& needed_extra() {
    if (extra == nullptr) extra.reset(new Extra);
    return *extra;
  }

  // These few bits do not change once others see the request.
  const Kind kind : 2;
  bool notifies : 1 = false;        ///< `extra` has callbacks or a queue
  bool owns_buffer : 1 = false;  ///< a receive, for which the library brings the memory
  bool beyond_host : 1 = false;  ///< a receive, into memory that the processor must not touch
  Ending ending = Ending::pending;
  Rank other{0};                 ///< destination of a send; source of a receive, when matched
  std::uint32_t request = 0;     ///< its number in the trace; 0: none
  Tag tag{0};
  std::unique_ptr<Extra, DeleteExtra> extra;  ///< null: none is needed
  /// Bytes of the message. Beside nothing that `status` copies: both would be loaded at once, and wait for all stores
  /// before.
  std::uint64_t bytes = 0;

 protected:
  ~RequestCore() = default;

 private:
  void destroy() noexcept;
  static void orphan(RequestCore& core) noexcept;
  void add_extra(Status& status) const;
};

/// What a `SendItem` of the engine stands for.
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

/// A send that was handed to a rail while it was posted. It holds what its user may ask for, and nothing that an engine
/// needs; it has ended from the beginning.
struct SentCore final : RequestCore, Recycled<SentCore> {
  SentCore(Rank to, Tag tag_of, std::uint64_t bytes_of) noexcept : RequestCore(Kind::sent, tag_of) {
    other = to;
    bytes = bytes_of;
    ending = Ending::done;
    end();
  }
};

/// A send, from its posting until everything is handed to a rail. As a `SendItem` it stands for its envelope.
struct SendCore final : RequestCore, Item, Recycled<SendCore> {
  SendCore() noexcept : RequestCore(Kind::send), Item(ItemKind::message) {}
  Pieces pieces;
  Peer* peer = nullptr;
  std::uint64_t after = 0;           ///< the broadcast that it must be matched after; 0: none
  bool whole = false;                ///< an eager message, inline or with a payload; else announced
  bool late = false;  ///< announced without `pieces`, which come once it is granted (`OutgoingTransfers::supply`)
  OutgoingStream* stream = nullptr;  ///< when it is announced
  DeferredSend* held = nullptr;              ///< while it is deferred
  Broadcast* broadcast = nullptr;    ///< when it carries a broadcast to one recipient; then no user waits for this send
};

/// Where the bytes of a receive go.
struct Destination {
  Pieces pieces;
};

/// A receive, from its posting until it is complete. As a `PostedReceive` it stands in the matcher until it is matched.
/// What is read later lies on its first cache line: in a burst larger than the caches, each line costs a wait.
struct ReceiveCore final : RequestCore, Destination, PostedReceive, Recycled<ReceiveCore> {
  ReceiveCore(const MatchPattern& wanted, Pieces&& to, bool owned) noexcept
      : RequestCore(Kind::receive, Tag{wanted.tag}), Destination{std::move(to)}, PostedReceive(wanted) {
    owns_buffer = owned;
  }
};
static_assert(sizeof(ReceiveCore) <= 128, "many may wait at once");
static_assert(sizeof(RequestCore) + sizeof(Destination) <= 64, "one line");

/// The root's side of a broadcast, from its posting until nothing reads its buffer any more.
struct McastCore final : RequestCore {
  McastCore() noexcept : RequestCore(Kind::broadcast) {}
  Broadcast* broadcast = nullptr;  ///< null once it is released
};

}  // namespace tandem::comm::internal
