// tandem/dist/agreement.hpp: all ranks put in a value and get the one that merges them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "tandem/comm/endpoint.hpp"

namespace tandem::dist {

/// Rounds of agreement among all ranks of an endpoint: opinions go up a binomial tree, where `merge` makes one of them, and the
/// outcome comes down again. Nobody waits inside: `done` is called by whoever makes progress, once all ranks are in the round.
///
/// Every rank begins the same rounds in the same order. A round may begin while the one before is under way. Of the submitting
/// thread, but for what the endpoint calls; `mutex_` guards the rounds.
class Agreement {
 public:
  using Bytes = std::vector<std::byte>;
  /// Makes `into` the merger of both. Associative and commutative: the tree decides about the order.
  using Merge = std::function<void(Bytes& into, std::span<const std::byte> from)>;

  /// Of its messages. Before all data: who waits for an agreement waits for nothing else.
  static constexpr int kPriority = 1 << 30;

  Agreement(comm::Endpoint& endpoint, std::string_view name);

  void begin(Bytes mine, Merge merge, std::function<void(std::span<const std::byte> outcome)> done);

  /// The ranks with which this one speaks directly: all of them are connected so.
  std::vector<std::uint32_t> neighbours() const;

 private:
  struct Round {
    bool begun = false;
    Bytes merged;
    Merge merge;
    std::function<void(std::span<const std::byte>)> done;
    std::vector<Bytes> early;     ///< opinions that came before this rank began
    unsigned heard = 0;           ///< children whose opinion is merged
  };

  void arrived(bool up, std::uint64_t number, std::span<const std::byte> bytes);
  void advance(std::uint64_t number);
  void finish(std::uint64_t number, std::span<const std::byte> outcome);
  void send(std::uint32_t to, bool up, std::uint64_t number, const Bytes& bytes);
  std::vector<std::uint32_t> children() const;

  comm::Endpoint& endpoint_;
  comm::Channel up_;
  comm::Channel down_;
  std::mutex mutex_;
  std::map<std::uint64_t, Round> rounds_;
  std::uint64_t begun_ = 0;
};

}  // namespace tandem::dist
