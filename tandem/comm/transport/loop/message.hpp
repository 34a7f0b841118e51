// tandem/comm/transport/loop/message.hpp: what a simulated network carries, and the memory of its messages.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/base/spin_lock.hpp"
#include "tandem/comm/transport/loop/loop.hpp"

namespace tandem::comm {

/// A payload that its receiver reads from the sender's memory, as a network card does; if the sender closes the link
/// first, it is copied: what has left a rank arrives, and so does what the rank sends behind it.
class LoopNetwork::Payload {
 public:
  explicit Payload(std::span<const iovec> pieces) : pieces_(pieces.begin(), pieces.end()) {}
  void read(std::span<const iovec> to);
  /// Copies what the sender will not keep.
  void leave_sender();

 private:
  std::mutex mutex_;
  std::vector<iovec> pieces_;    ///< in the sender's memory, or in `copy_`
  std::vector<std::byte> copy_;
};

struct LoopNetwork::Message {
  Kind kind = Kind::packet;
  Rank from{0};
  Rank to{0};
  unsigned rail = 0;
  std::vector<std::uint64_t> control = {};  ///< aligned to 8 bytes
  std::size_t control_bytes = 0;
  std::size_t payload_bytes = 0;
  // At most one of these; none with `payload_bytes`: the content does not travel.
  std::shared_ptr<Payload> payload = nullptr;
  std::vector<std::byte> content = {};
  std::uint64_t cookie = 0;
  bool posted = false;  ///< the payload stays in the sender's memory until it is taken
  void (*go_on)(LoopNetwork& network, Owned message) = nullptr;  ///< what `at` waits with
  Messages& all;                                                 ///< which it belongs to
  Message* next = nullptr;                                       ///< in a queue, or among unused messages

  explicit Message(Messages& own) : all(own) {}

  std::size_t bytes() const noexcept { return control_bytes + payload_bytes; }
  void copy_content(std::span<const iovec> pieces);
  /// Writes the payload, as far as it travels.
  void read_payload(std::span<const iovec> places);
  std::string to_bytes() const;
  base::Result<void> read(std::string_view bytes, const LoopOptions& options);
};

/// Messages in the order in which they came. Not thread-safe.
class LoopNetwork::Queue {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  void push(Owned message) noexcept {
    Message* const added = message.release();
    added->next = nullptr;
    (empty() ? first_ : last_->next) = added;
    last_ = added;
  }
  /// Null: it is empty.
  Owned pop() noexcept {
    Message* const taken = first_;
    if (taken != nullptr) first_ = taken->next;
    return Owned(taken);
  }
  void clear() noexcept {
    while (pop()) continue;
  }

 private:
  Message* first_ = nullptr;
  Message* last_ = nullptr;
};

/// All messages of the network, which are used again. Thread-safe.
class LoopNetwork::Messages {
 public:
  Owned make(Kind kind, Rank from, Rank to, unsigned rail = 0) {
    Message* made = nullptr;
    {
      const std::lock_guard guard(lock_);
      made = unused_ != nullptr ? std::exchange(unused_, unused_->next) : &all_.emplace_back(*this);
    }
    made->kind = kind;
    made->from = from;
    made->to = to;
    made->rail = rail;
    made->control_bytes = made->payload_bytes = 0;
    made->cookie = 0;
    made->posted = false;
    return Owned(made);
  }
  void take_back(Message& message) noexcept {
    message.payload.reset();
    message.content.clear();
    if (message.content.capacity() > most_kept_bytes) message.content.shrink_to_fit();
    const std::lock_guard guard(lock_);
    message.next = std::exchange(unused_, &message);
  }

 private:
  static constexpr std::size_t most_kept_bytes = 16 << 10;

  base::SpinLock lock_;
  std::deque<Message> all_;
  Message* unused_ = nullptr;
};

}  // namespace tandem::comm
