// tandem/comm/transport/shm/shm_link.hpp: the link to one peer of the host.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "tandem/comm/transport/shm/attachment.hpp"
#include "tandem/comm/transport/shm/receiver.hpp"
#include "tandem/comm/transport/shm/sender.hpp"
#include "tandem/comm/transport/transport.hpp"

namespace tandem::comm::internal {

/// A sender and a receiver while attached; before and after that it answers `retry`. Owned by the transport, for its
/// whole life.
class ShmLink final : public Link {
 public:
  enum class State { connecting, attached, closed };

  ShmLink(Rank peer, const SendLimits& limits, BellRound& round) noexcept
      : Link(peer, 0), limits_(limits), round_(round) {}

  SendStatus try_send(const Packet& packet) override {
    const SendStatus status = sender.try_send(packet, receiver.position());
    line = sender.line();
    return status;
  }
  std::span<std::byte> reserve(std::span<std::byte> own) override {
    return sender.reserve(own.size(), receiver.position());
  }
  SendStatus send_reserved(std::span<const std::byte> block) override {
    sender.send_reserved(block.size());
    line = sender.line();
    return SendStatus::done;
  }
  bool has_room_again() override { return sender.has_room_again(); }
  bool read_remote(std::uint64_t address, std::span<std::byte> to) override;
  bool write_remote(std::uint64_t address, std::span<const std::byte> from) override;
  std::atomic<std::uint64_t>* shared_word(Direction direction) noexcept override;

  void attach(Attachment attachment);
  /// Releases the memory and the peer.
  void close();

  State state() const noexcept { return state_; }
  /// Whether there is nothing to receive, and nothing waits for room. `poll` asks this first.
  bool quiet() const noexcept { return !receiver.has_work() && !sender.waits(); }
  /// Whether `poll` would find something to do.
  bool has_work() noexcept { return receiver.has_work() || sender.can_advance(); }
  /// Makes progress in both directions; returns the number of events reported to the sink.
  unsigned serve(PacketSink& sink) {
    const unsigned events = receiver.receive(*this, sink);
    return sender.waits() ? events + advance(sink) : events;
  }
  /// Why the link cannot go on, or null.
  const char* malformed() const noexcept {
    return sender.broken() ? "its counts of what it read make no sense" : receiver.malformed();
  }

  const Attachment& attachment() const noexcept { return *attachment_; }
  Sender sender;
  Receiver receiver;

  // State of the transport.
  std::uint64_t socket_watch = 0;
  std::uint64_t process_watch = 0;
  unsigned idle_polls = 0;   ///< polls since the link was last busy
  bool left = false;         ///< the peer said goodbye
  bool met = false;          ///< was attached
  bool lost = false;         ///< the peer is gone; what it wrote is still delivered
  bool last_chance = false;  ///< one more poll, in which the engine may say that the peer had left
  std::string lost_why;
  bool unattachable = false;  ///< lost for want of memory or descriptors, before it was attached

 private:
  [[gnu::noinline]] unsigned advance(PacketSink& sink);
  bool lives();

  SendLimits limits_;
  BellRound& round_;
  State state_ = State::connecting;
  std::unique_ptr<Attachment> attachment_;
  std::chrono::steady_clock::time_point seen_alive_{};
};

}  // namespace tandem::comm::internal
