// tandem/dist/receive.hpp: a receive, for the parts of `Transfers`.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "tandem/dist/copy_budget.hpp"
#include "tandem/dist/transfers.hpp"

namespace tandem::dist {

/// A receive under way: from its submission until both its nodes have ended.
struct Transfers::Receive {
  Transfers* transfers = nullptr;
  runtime::Handle* handle = nullptr;
  Address address;
  std::uint32_t source = 0;
  runtime::EventTasks event;
  comm::Request request;
  std::uint64_t expected = 0;               ///< to the scheduler, as a task that will be ready; 0: not
  runtime::WatchedMessage watched;
  runtime::FlowFailure* failure = nullptr;  ///< why there is no value
  bool readable = false;                    ///< its first node has ended
  std::atomic<unsigned> waits{1};           ///< in turns, before it is posted: for its predecessors, and for its part of `arriving_`
  bool asked = false;                       ///< in turns: for its memory
  runtime::NodeIndex wanted = 0;            ///< it awaits its message, which comes into the memory of this device if it is announced; 0: no longer, or never
  bool is_known = false;                    ///< it is in `waiting_`; under `mutex_`
  std::shared_ptr<CopyBudget> part_of = {}; ///< in turns, of an object or an array: gets `part` back at the end
  std::size_t part = 0;
  std::span<const std::byte> packed = {};   ///< of an object, once arrived: in the request's memory
  std::shared_ptr<Receive> itself = {};     ///< until both have ended

  Receive() = default;
  Receive(const Receive&) = delete;
  Receive& operator=(const Receive&) = delete;
  ~Receive() {
    if (part_of != nullptr) part_of->give_back(part);
  }
  /// Makes the object. Throws a SerializationError that names the data.
  void unpack() const;
};

}  // namespace tandem::dist
