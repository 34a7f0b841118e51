// tandem/analysis/history/history_messages.hpp: finds the receive of each send, over all ranks.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "tandem/analysis/history/history.hpp"

namespace tandem::analysis {

/// The nth message of one rank to another one, on a channel with a tag, belongs to the nth receive of that rank,
/// channel and tag there, in the order in which receives were posted. A receive from any rank or with any tag records
/// what it has met when that arrives. A broadcast's part for one recipient counts as a message of its root. Failed
/// sends and receives that never left or arrived do not count.
///
/// Where the recipients of broadcasts were not recorded, receives without a plain message belong to the broadcasts of
/// that rank, channel and tag, the nth to the nth.
class MessagePairing {
 public:
  explicit MessagePairing(History& history) : history_(history), receives_(history.memory_of_tables()) {}

  /// Takes an event of the categories comm and broadcast, in the order of each rank's time.
  void add(const trace::Event& event);
  /// Takes an event of the category dist; `task` is the unwrapped number of the task that it names.
  void add_flow(const trace::Event& event, std::int64_t task);
  /// Pairs all. `epochs`: by rank, the difference of unwrapped numbers of tasks and ids.
  void finish(const std::unordered_map<std::uint32_t, std::int64_t>& epochs);

 private:
  enum class Kind : std::uint8_t { send, receive, broadcast };
  struct Request {
    Kind kind = Kind::send;
    std::size_t row = 0;  ///< in communications, receives_ or broadcasts
  };
  struct Receive {
    std::uint32_t rank = 0, peer = no_number, channel = 0, request = no_number;
    std::uint64_t tag = 0, bytes = 0;
    bool any_tag = false;
    bool failed = false;
    std::int64_t posted_ns = no_time, arrived_ns = no_time, released_ns = no_time;
  };
  /// Which data a request carries, and which node of the graph sends or receives it.
  struct Cargo {
    std::uint32_t data = no_number, version = no_number;
    std::int64_t task = -1;
  };
  /// Source, destination, channel, tag.
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint64_t>;

  static std::uint64_t request_key(std::uint32_t rank, std::uint32_t request) {
    return std::uint64_t{rank} << 32 | request;
  }
  Request* find(const trace::Event& event);
  void open(const trace::Event& event, Kind kind, std::size_t row);
  void add_arrival(const trace::Event& event);
  void add_end(const trace::Event& event, bool failed);
  void add_broadcast(const trace::Event& event);
  BagRow& bag_of(const trace::Event& event);
  void pair();
  void join(CommunicationRow& row, const Receive& receive);
  void pair_with_broadcasts(SpillVector<std::size_t>& left);
  void load(const std::unordered_map<std::uint32_t, std::int64_t>& epochs);

  History& history_;
  SpillVector<Receive> receives_;
  std::unordered_map<std::uint64_t, Request> requests_;        ///< by rank and number, which may be reused
  std::unordered_map<std::uint64_t, std::size_t> broadcasts_;  ///< rows, of all broadcasts that were posted
  std::unordered_map<std::uint64_t, Cargo> sent_, received_;   ///< by rank and number of the request
  std::unordered_map<std::uint64_t, std::size_t> bags_;        ///< rows of open bags, by rank and number
};

}  // namespace tandem::analysis
