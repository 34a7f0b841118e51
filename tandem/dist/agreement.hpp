// tandem/dist/agreement.hpp: an asynchronous reduction of values of all ranks, whose result all ranks get.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "tandem/comm/endpoint.hpp"

namespace tandem::dist {

/// Rounds of reductions over all ranks of an endpoint. Values go up a binomial tree, whose nodes `merge` them, and the
/// outcome comes down again. Nothing blocks: once all ranks are in the round, the thread that makes progress calls
/// `done`.
///
/// Every rank begins the same rounds in the same order. A round may begin while the one before is under way. Threads:
/// any may call `begin`, one at a time; the endpoint's handle messages. `mutex_` guards the rounds.
class Agreement {
 public:
  using Bytes = std::vector<std::byte>;
  /// Merges `from` into `into`. Associative and commutative: the order depends on the tree.
  using Merge = std::function<void(Bytes& into, std::span<const std::byte> from)>;

  /// Priority of its messages: above all data, since a rank that waits for an agreement waits for nothing else.
  static constexpr int kPriority = 1 << 30;

  Agreement(comm::Endpoint& endpoint, std::string_view name);

  void begin(Bytes mine, Merge merge, std::function<void(std::span<const std::byte> outcome)> done);

  /// Ranks whose values this rank misses in the oldest round that it has begun. Empty: no round is under way here.
  struct Missing {
    std::uint32_t first = 0;
    std::uint32_t last = 0;    ///< one of the ranks from `first` to this one has not begun the round
    bool answered = false;     ///< all ranks below this one have begun: it waits for the outcome from `first`
  };
  std::vector<Missing> missing();

  /// The neighbours of this rank in the tree, which connects all ranks.
  std::vector<std::uint32_t> neighbours() const { return neighbours_of(endpoint_.rank().value(), endpoint_.size()); }
  /// Neighbours of any rank of a job of `size` ranks.
  static std::vector<std::uint32_t> neighbours_of(std::uint32_t rank, std::uint32_t size);

 private:
  struct Round {
    bool begun = false;
    Bytes merged;
    Merge merge;
    std::function<void(std::span<const std::byte>)> done;
    std::vector<std::pair<std::uint32_t, Bytes>> early;  ///< ranks and values that arrived before this rank began
    unsigned heard = 0;           ///< number of children whose values are merged
    std::vector<std::uint32_t> heard_from;  ///< the children whose values are merged
  };

  void arrived(bool up, std::uint32_t from, std::uint64_t number, std::span<const std::byte> bytes);
  void advance(std::uint64_t number);
  void finish(std::uint64_t number, std::span<const std::byte> outcome);
  void send(std::uint32_t to, bool up, std::uint64_t number, const Bytes& bytes);
  std::vector<std::uint32_t> children() const { return children_of(endpoint_.rank().value(), endpoint_.size()); }
  static std::vector<std::uint32_t> children_of(std::uint32_t rank, std::uint32_t size);

  comm::Endpoint& endpoint_;
  comm::Channel up_;
  comm::Channel down_;
  std::mutex mutex_;
  std::map<std::uint64_t, Round> rounds_;
  std::uint64_t begun_ = 0;
};

}  // namespace tandem::dist
