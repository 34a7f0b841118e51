// tandem/dist/transfers_into_devices.cpp: receives of values into the memory of a device.
#include <utility>

#include "tandem/dist/receive.hpp"

namespace tandem::dist {

using runtime::ExternalEvents;
using runtime::NodeIndex;

/// Memory of a device into which a message with the value may come: that in which `reader` runs, if it is only one; 0:
/// main memory.
NodeIndex Transfers::device_for(const runtime::Handle& handle, const runtime::CodeletCore& reader) const {
  const std::uint32_t nodes = device_nodes(handle);
  if (nodes == 0) [[likely]] return 0;
  const NodeIndex node = core_.executor().only_memory_of(reader);
  runtime::Memory& memory = core_.memory();
  const bool fits = !memory.is_limited(node) || memory.room().bytes_on(handle, node) <= memory.room().budget(node);
  return (nodes >> node & 1U) != 0 && fits ? node : NodeIndex{0};
}

void Transfers::await(Receive& receive) {
  post(receive,
       {.callbacks = {.released = [&receive](const comm::Status&) { receive.transfers->choose_memory(receive); }}});
}

/// Called when the message is announced, or has come otherwise: the receive asks for memory, and is then posted.
void Transfers::choose_memory(Receive& receive) {
  const auto message =
      endpoint_.probe(comm::Rank(receive.source), comm::Tag(receive.address.tag), receive.address.channel);
  NodeIndex node = std::exchange(receive.wanted, NodeIndex{0});
  const bool is_lost = (device_nodes(*receive.handle) >> node & 1U) == 0;
  const bool may_come = message && message->announced && message->bytes == receive.handle->shape.bytes() && !is_lost;
  if (!may_come || (is_cuda(node) && !message->placed)) node = 0;
  ExternalEvents::write_in(*receive.event.readable.task, node);
  core_.events().ask(receive.event.readable);
}

}  // namespace tandem::dist
