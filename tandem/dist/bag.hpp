// tandem/dist/bag.hpp: a bag of recipients: those of one version of data, gathered until the data is ready.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tandem/base/spin_lock.hpp"
#include "tandem/comm/broadcast_plan.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/dist/packed_value.hpp"
#include "tandem/runtime/event/external_events.hpp"

namespace tandem::dist {

class Transfers;

/// A send of one version to all ranks that need it, detected from the task graph (thesis 4.2.1, 4.3.1; 2019 report, 2.1.1).
///
/// Life. The submitting thread makes it with the first recipient and submits an event that reads the data. It adds recipients as
/// it submits tasks of other ranks that see this version. When the writer has ended, the event starts, on any thread, and the
/// recipients so far get one broadcast, or one plain message. A later recipient joins the broadcast while nothing of it was sent
/// (`Endpoint::append`), or gets a bag of its own. The event ends when the endpoint has read the data; then the next writer may
/// overwrite it.
///
/// `lock` guards `recipients`, `started`, `announced` and `posted` between the submitting thread, the writer's thread, and the
/// thread that starts the event. The flow shares the bag while the version is the current one; the event shares it until its end.
struct Bag {
  Transfers* transfers = nullptr;
  runtime::Handle* handle = nullptr;
  std::uint64_t tag = 0;
  comm::Channel channel{0};
  std::uint32_t version = 0;
  bool exact = true;                 ///< false: `version` is a lower bound
  std::uint32_t number = 0;          ///< of the bag in the trace
  std::uint32_t data_number = 0;     ///< of the data in the trace
  base::SpinLock lock;
  bool started = false;
  std::vector<comm::Recipient> recipients;
  std::shared_ptr<comm::BroadcastPlan> plan;  ///< of a recorded send, shared by its replays; null: none
  std::uint64_t announced = 0;       ///< number of the announcement for the first recipient; 0: none
  std::shared_ptr<PackedValue> packed;  ///< of an object; null: the value lies in the data's memory
  bool holds_bytes = false;          ///< of `packed`, until the event ends
  std::span<const std::byte> bytes;  ///< these
  comm::Request posted;              ///< the broadcast, once started
  std::optional<std::int32_t> urgent;  ///< priority by which `MemoryGate` knows of it; posting, then the endpoint's callbacks
  std::atomic<unsigned> under_way{0};  ///< messages posted and not released
  runtime::EventTasks event;
  std::shared_ptr<Bag> itself;       ///< until the event has ended
};

}  // namespace tandem::dist
