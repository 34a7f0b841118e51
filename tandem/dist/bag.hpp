// tandem/dist/bag.hpp: a bag: the recipients of one version of data, collected until the data is ready.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tandem/base/spin_lock.hpp"
#include "tandem/comm/broadcast_plan.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/dist/packed_value.hpp"
#include "tandem/runtime/event/external_events.hpp"
#include "tandem/runtime/exec/message_watch.hpp"

namespace tandem::dist {

class Transfers;

/// A send of one version to all ranks that need it, detected from the task graph (thesis 4.2.1, 4.3.1; 2019 report,
/// 2.1.1).
///
/// Life. The submitting thread makes it with the first recipient and submits an event that reads the data. It adds
/// recipients as it submits tasks of other ranks that see this version. When the writer has ended, the event starts, on
/// any thread, and the recipients so far get one broadcast, or one plain message. A later recipient joins the broadcast
/// while none of it was sent (`Endpoint::append`), or gets another bag. The event ends when the endpoint has read the
/// data; then the next writer may overwrite it.
///
/// In turns. If a rank has a budget of main memory (`Transfers`), the bag is served in turns: each turn asks for the
/// data's memory, sends to those recipients whose receives are posted, and releases the memory. A recipient may join
/// until the bag has ended: when the event has started, all recipients are served, and no turn is under way.
///
/// `lock` guards `recipients`, `posted_at`, `in_turn`, `ended`, `started`, `announced` and `posted` between the
/// submitting thread, the writer's thread, and the thread that starts the event. The flow shares the bag while the
/// version is the current one; the event shares it until its end.
struct Bag {
  Transfers* transfers = nullptr;
  runtime::Handle* handle = nullptr;
  std::uint64_t tag = 0;
  comm::Channel channel{0};
  std::uint32_t version = 0;
  bool exact = true;                 ///< false: `version` is a lower bound
  std::uint32_t number = 0;          ///< number of the bag in the trace
  std::uint32_t data_number = 0;     ///< number of the data in the trace
  base::SpinLock lock;
  bool started = false;
  std::vector<comm::Recipient> recipients;  ///< in turns: those whose receives are not posted
  std::vector<comm::Recipient> posted_at;   ///< in turns: those whose receives are posted, for the next turn
  bool in_turn = false;              ///< a turn is under way
  bool ended = false;                ///< in turns: no recipient can join any more
  std::uint32_t served = 0;          ///< recipients of all turns
  std::uint32_t last_request = 0;    ///< last request, as in the trace
  std::shared_ptr<comm::BroadcastPlan> plan;  ///< plan of a recorded send, shared by its replays; null: none
  std::uint64_t announced = 0;       ///< number of the announcement for the first recipient; 0: none
  std::shared_ptr<PackedValue> packed;  ///< bytes of an object; null: the value is in the data's memory
  bool holds_bytes = false;          ///< this bag has acquired `packed`, until the event ends
  std::span<const std::byte> bytes;  ///< bytes of `packed`
  comm::Request posted;              ///< the broadcast, once started
  comm::Request late;                ///< a message whose bytes are sent once its receiver has taken it
  bool is_due = false;               ///< the bytes of `late` are due: the event has asked for their memory
  runtime::WatchedMessage watched;   ///< used by the thread that posts it, then by the endpoint's callbacks
  std::atomic<unsigned> under_way{0};  ///< messages posted and not released
  runtime::EventTasks event;
  std::shared_ptr<Bag> itself;       ///< keeps the bag until the event has ended
};

}  // namespace tandem::dist
