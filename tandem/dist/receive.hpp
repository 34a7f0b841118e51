// tandem/dist/receive.hpp: a receive, for the files of `Transfers`.
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
  std::uint64_t expected = 0;               ///< number of the announcement to the scheduler; 0: none
  runtime::WatchedMessage watched;
  runtime::FlowFailure* failure = nullptr;  ///< failure that left no value
  bool readable = false;                    ///< its first node has ended
  /// In turns, before it is posted: counts its predecessors, and its part of `arriving_`.
  std::atomic<unsigned> waits{1};
  bool asked = false;                       ///< in turns: it has asked for its memory
  runtime::NodeIndex wanted = 0;  ///< memory of the device for the message, if that is announced; 0: none, or no longer
  bool is_known = false;                    ///< it is in `waiting_`; under `mutex_`
  std::shared_ptr<CopyBudget> part_of = {}; ///< in turns, of an object or an array: gets `part` back at the end
  std::size_t part = 0;
  std::span<const std::byte> packed = {};   ///< bytes of an arrived object, in the request's memory
  std::shared_ptr<Receive> itself = {};     ///< keeps the receive until both nodes have ended

  Receive() = default;
  Receive(const Receive&) = delete;
  Receive& operator=(const Receive&) = delete;
  ~Receive() {
    if (part_of != nullptr) part_of->give_back(part);
  }
  /// Makes the object from its bytes. Throws a SerializationError that names the data.
  void unpack() const;
};

}  // namespace tandem::dist
