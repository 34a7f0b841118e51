// tandem/dist/transfers_from_devices.cpp: sends of values that are only in a device's memory.
#include <fmt/format.h>

#include "tandem/dist/bytes_of.hpp"
#include "tandem/dist/transfers.hpp"

namespace tandem::dist {

using runtime::ExternalEvents;
using runtime::MessageMemory;
using runtime::NodeIndex;
using runtime::Task;

bool Transfers::is_cuda(NodeIndex node) const {
  return node != 0 && core_.memory().node(node).messages() == MessageMemory::cuda;
}

/// Memories of devices in which a message with the value may be read, whatever its link; bit n: memory n.
std::uint32_t Transfers::device_nodes(const runtime::Handle& handle) const {
  const runtime::Memory& memory = core_.memory();
  const std::uint32_t nodes = memory.message_nodes(MessageMemory::host) | memory.message_nodes(MessageMemory::cuda);
  if (nodes == 0) [[likely]] return 0;
  const bool is_large =
      !handle.travels_packed() && handle.shape.bytes() != 0 && handle.shape.bytes() >= options_.device_message_bytes;
  return is_large ? nodes : 0;
}

/// The bits of `device_nodes` that the link to `to` can read.
std::uint32_t Transfers::device_nodes_for(const runtime::Handle& handle, comm::Rank to) {
  const std::uint32_t nodes = device_nodes(handle), cuda = nodes & core_.memory().message_nodes(MessageMemory::cuda);
  return cuda == 0 || endpoint_.reads(to, comm::BufferMemory::cuda) ? nodes : nodes & ~cuda;
}

/// Whether the ready bag leaves from `node` as far as is known: it has one recipient by now.
bool Transfers::leaves_from(NodeIndex node, Bag& bag) {
  if (options_.broadcasts && options_.hold_ns > 0) return false;
  std::optional<comm::Rank> only;
  {
    const std::lock_guard guard(bag.lock);
    if (bag.recipients.size() == 1) only = bag.recipients.front().rank;
  }
  return only && (device_nodes_for(*bag.handle, *only) >> node & 1U) != 0;
}

/// Brings the value to main memory; `start` follows then.
void Transfers::bring_home(const Bag& bag, Task& task) {
  ExternalEvents::may_read_in(task, 0);
  core_.events().ask(bag.event.readable);
}

/// Called when the receiver has taken the message. In turns its memory is there; otherwise the event asks for it, and
/// it counts as under way until then.
void Transfers::due(Bag& bag) {
  bag.under_way.fetch_add(1, std::memory_order_relaxed);
  bag.is_due = true;
  if (in_turns_) supply(bag, *bag.event.readable.task);
  else core_.events().ask(bag.event.readable);
}

/// Supplies the bytes; the value stays where it is until the bag's end, or the turn's.
void Transfers::supply(Bag& bag, Task& task) {
  const std::shared_ptr<Bag> alive = bag.itself;
  bag.is_due = false;
  comm::Request late;
  {
    const std::lock_guard guard(bag.lock);
    late = std::exchange(bag.late, {});
  }
  const auto give_up = [&](std::string_view why) {
    abort(fmt::format("rank {} cannot read {} for the rank that waits for it: {}", endpoint_.rank().value(),
                      bag.handle->described(), why));
  };
  const NodeIndex node = ExternalEvents::node_of(task);
  if (const runtime::FlowFailure* const failure = core_.executor().why_cancelled(task)) {
    give_up(failure->description);
  } else if (endpoint_.supply(late, bytes_of(*bag.handle, node),
                              is_cuda(node) ? comm::BufferMemory::cuda : comm::BufferMemory::host)) {
    if (node != 0) sent_from_devices_.fetch_add(1, std::memory_order_relaxed);
  } else if (!late.released()) {
    give_up("its link does not read the memory of devices");
  }
  sent(bag);
}

}  // namespace tandem::dist
