// tandem/comm/request.hpp: a posted operation: its end, its callbacks, and how to wait for it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tandem/base/ids.hpp"

namespace tandem::comm {

using base::Rank;
/// Distinguishes messages between two ranks: a receive takes those of its tag.
using Tag = base::StrongId<struct MessageTag, std::uint64_t>;
/// Separates the traffic of parts of a program. Made by `Endpoint::channel(name)`; the default one is 0.
using Channel = base::StrongId<struct ChannelTag, std::uint32_t>;

/// The type of `any_source`.
struct AnySource {};
/// The type of `any_tag`.
struct AnyTag {};
/// A receive takes a message from any rank.
inline constexpr AnySource any_source;
/// A receive takes a message of any tag.
inline constexpr AnyTag any_tag;

/// The rank that a receive takes from: one, or any.
class Source {
 public:
  constexpr Source(Rank rank) noexcept : value_(rank.value()) {}  ///< this rank
  constexpr Source(AnySource) noexcept : value_(kAny) {}          ///< any rank
  constexpr bool any() const noexcept { return value_ == kAny; }  ///< whether any rank will do
  constexpr Rank rank() const noexcept { return Rank{value_}; }   ///< the rank, unless `any()`

 private:
  static constexpr std::uint32_t kAny = UINT32_MAX;
  std::uint32_t value_;
};

/// The tag that a receive takes: one, or any.
class TagPattern {
 public:
  constexpr TagPattern(Tag tag) noexcept : tag_(tag) {}      ///< this tag
  constexpr TagPattern(AnyTag) noexcept : any_(true) {}      ///< any tag
  constexpr bool any() const noexcept { return any_; }       ///< whether any tag will do
  constexpr Tag tag() const noexcept { return tag_; }        ///< the tag, unless `any()`

 private:
  Tag tag_{0};
  bool any_ = false;
};

/// How an operation ended.
enum class Ending : std::uint8_t {
  pending,    ///< it has not ended
  done,       ///< successfully
  truncated,  ///< the receive's buffer was shorter than the message; it holds the first bytes
  cancelled,  ///< by `cancel`, or because the endpoint closed
  peer_dead,  ///< the rank `Status::culprit` died
  peer_left,  ///< the peer had said goodbye
};
/// The name of an ending: "pending", "done", ..., for messages.
std::string_view name_of(Ending ending) noexcept;

/// The state of an operation and of its message. For a send, `source` is the destination.
struct Status {
  Ending ending = Ending::pending;         ///< how the operation ended
  Rank source{0};                          ///< the sender; of a send: the receiver
  Tag tag{0};                              ///< of the message
  std::uint64_t bytes = 0;                 ///< of the message, also when the buffer was shorter
  Rank culprit{0};                         ///< of `peer_dead`: the rank that died
  std::span<const std::byte> header = {};  ///< of a receive: the message's small header; valid while the request lives
  std::span<std::byte> owned = {};  ///< of a receive without buffer: the library's; valid while the request lives
};

/// Functions that are called when an operation ends, each at most once. They run on the thread that made progress, one
/// at a time per endpoint, with no lock held; they may post anything and must not block or wait. For a receive:
/// `arrived` when the data can be read, `released` when it may be written, because the library no longer reads it (it
/// forwards broadcasts from there). For a send: `released` alone. Instead of these: `failed`.
///
/// A callback that throws stops no other one. The exception is logged, and the next call that waits or makes progress
/// throws it (`Endpoint::wait`, `wait_arrived`, `wait_all`, `progress`); a call that waits already does so at once,
/// before its request has ended. While one exception is kept, others are only logged. A handler of active messages that
/// throws refuses its message.
struct Callbacks {
  std::function<void(const Status&)> arrived = {};   ///< of a receive: its data can be read
  std::function<void(const Status&)> released = {};  ///< the buffer is the program's again
  std::function<void(const Status&)> failed = {};    ///< instead of both: `Status::ending` says why
  /// For a large send to another host, except a broadcast: its receiver takes it, and its bytes begin to leave. Called
  /// before `released` or `failed`. For `isend_later`: its receiver takes it, and `Endpoint::supply` is due.
  std::function<void()> leaving = {};
};

/// The ends of operations in order, for programs that process them in a loop. Thread-safe. Outlives its requests.
class CompletionQueue {
 public:
  /// Events, as the callbacks of these names.
  enum class Event : std::uint8_t { arrived, released, failed };
  /// One event of one operation.
  struct Entry {
    std::uint64_t user = 0;         ///< as given with the operation
    Event event = Event::released;  ///< what happened
    Status status;  ///< its spans are empty
  };
  std::optional<Entry> pop();     ///< the oldest entry; nothing: there is none
  void push(const Entry& entry);  ///< for the library

 private:
  std::mutex mutex_;
  std::deque<Entry> entries_;
};

namespace internal {
class RequestCore;
class Arrivals;
}  // namespace internal

/// A reference to a posted operation. Dropping it does not cancel: the operation goes on, and its callbacks are still
/// called. A value; copies refer to the same operation. Reading its state is thread-safe.
class Request {
 public:
  Request() noexcept = default;           ///< of no operation
  Request(const Request& other) noexcept;  ///< of the same operation
  /// Leaves `other` without an operation.
  Request(Request&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
  /// Drops the reference held before.
  Request& operator=(Request other) noexcept {
    std::swap(core_, other.core_);
    return *this;
  }
  ~Request();

  bool valid() const noexcept { return core_ != nullptr; }  ///< refers to an operation
  bool arrived() const noexcept;   ///< a receive's data can be read; or it failed
  bool released() const noexcept;  ///< the buffer may be reused; or it failed
  /// Complete once `arrived()`; before, only `ending == pending` can be relied on.
  Status status() const;
  /// Its number in the trace; 0: it is not recorded.
  std::uint32_t trace_number() const noexcept;

 private:
  friend class Endpoint;
  friend class internal::Arrivals;
  explicit Request(internal::RequestCore* core) noexcept : core_(core) {}  // takes over one reference
  internal::RequestCore* core_ = nullptr;
};

}  // namespace tandem::comm
