// tandem/dist/bytes_of.hpp: the bytes of a message, as they lie in a memory.
#pragma once

#include "tandem/comm/buffer.hpp"
#include "tandem/runtime/data/handle.hpp"

namespace tandem::dist {

/// The value of `handle` on `node`, where it has memory.
inline comm::SendBuffer bytes_of(runtime::Handle& handle, runtime::NodeIndex node) {
  const runtime::Shape& shape = handle.shape;
  const runtime::Replica& replica = handle.replica(node);
  if (shape.cols <= 1 || replica.ld == shape.rows) return {replica.pointer, shape.bytes()};
  return comm::Strided{replica.pointer, shape.rows * shape.element_bytes, replica.ld * shape.element_bytes, shape.cols};
}

/// Where the value of `handle` goes on `node`, where it has memory.
inline comm::ReceiveBuffer room_of(runtime::Handle& handle, runtime::NodeIndex node) {
  const runtime::Shape& shape = handle.shape;
  const runtime::Replica& replica = handle.replica(node);
  if (shape.cols <= 1 || replica.ld == shape.rows) return {replica.pointer, shape.bytes()};
  return comm::MutableStrided{replica.pointer, shape.rows * shape.element_bytes, replica.ld * shape.element_bytes, shape.cols};
}

}  // namespace tandem::dist
