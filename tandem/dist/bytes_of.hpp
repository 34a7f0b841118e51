// tandem/dist/bytes_of.hpp: the bytes of a message in a memory.
#pragma once

#include "tandem/comm/buffer.hpp"
#include "tandem/runtime/data/handle.hpp"

namespace tandem::dist {

/// Bytes of `handle` on `node`, where it has memory.
template <class Buffer, class Strided>
Buffer buffer_of(runtime::Handle& handle, runtime::NodeIndex node) {
  const runtime::Shape& shape = handle.shape;
  const runtime::Replica& replica = handle.replica(node);
  if (shape.cols <= 1 || replica.ld == shape.rows) return {replica.pointer, shape.bytes()};
  return Strided{replica.pointer, shape.rows * shape.element_bytes, replica.ld * shape.element_bytes, shape.cols};
}

/// Buffer that a send reads.
inline comm::SendBuffer bytes_of(runtime::Handle& handle, runtime::NodeIndex node) {
  return buffer_of<comm::SendBuffer, comm::Strided>(handle, node);
}
/// Buffer that a receive writes.
inline comm::ReceiveBuffer room_of(runtime::Handle& handle, runtime::NodeIndex node) {
  return buffer_of<comm::ReceiveBuffer, comm::MutableStrided>(handle, node);
}

}  // namespace tandem::dist
