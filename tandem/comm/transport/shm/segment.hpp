// tandem/comm/transport/shm/segment.hpp: the memory that two peers share, and the page with an endpoint's bell.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/base/result.hpp"
#include "tandem/comm/transport/shm/bell.hpp"
#include "tandem/comm/transport/shm/ring.hpp"
#include "tandem/comm/transport/shm/room_request.hpp"
#include "tandem/comm/transport/shm/unix_socket.hpp"

namespace tandem::comm::internal {

/// Pages mapped into this process; unmapped at the end. A move-only value.
class Mapping {
 public:
  Mapping() = default;
  Mapping(std::byte* base, std::size_t bytes) noexcept : base_(base), bytes_(bytes) {}
  Mapping(Mapping&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping();
  std::byte* base() const noexcept { return base_; }

 private:
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
};

/// One page per endpoint, mapped by every peer that it is attached to.
struct Hub {
  alignas(64) Bell bell;
};

/// Sizes of one direction. Powers of two, multiples of the page; see `valid`.
struct RingSizes {
  std::uint64_t record_bytes = 128 * 1024;
  std::uint64_t data_bytes = 2 * 1024 * 1024;

  bool valid() const noexcept;
  friend bool operator==(const RingSizes&, const RingSizes&) = default;
};

/// What both sides write about one direction, apart from its rings. The consumer writes the first line, the producer
/// the second, both engines the third.
struct DirectionControl {
  alignas(64) std::atomic<std::uint64_t> consumed_cells;
  std::atomic<std::uint64_t> consumed_data;  ///< bytes of the data ring, padding included; never wraps
  alignas(64) RoomRequest room_request;            ///< the producer waits for room: ring when it sleeps
  alignas(64) std::atomic<std::uint64_t> word;     ///< the engines' (`Link::shared_word`)
};

/// A segment as mapped by one side. Layout of the file: a page with two DirectionControls; record ring of direction 0,
/// of direction 1; data ring of direction 0, of direction 1. Direction 0 goes from the side that connected. In this
/// process each record ring is mapped twice in a row.
struct Segment {
  Mapping mapping;
  RingSizes sizes;
  std::array<DirectionControl*, 2> control{};
  std::array<std::byte*, 2> records{};
  std::array<std::byte*, 2> data{};

  CellMemory cells(unsigned direction) const noexcept {
    return {records[direction], sizes.record_bytes / kCellBytes, &control[direction]->consumed_cells};
  }
};

/// An anonymous file that cannot change its size any more, so that no peer can make an access to it fault. It vanishes
/// with the last process that has it open or mapped.
base::Result<base::FileDescriptor> make_shared_file(const char* name, std::size_t bytes);
/// Whether `file` is one that `make_shared_file` made with this size.
bool is_shared_file(int file, std::size_t bytes) noexcept;

std::size_t segment_file_bytes(const RingSizes& sizes) noexcept;
base::Result<Segment> map_segment(int file, const RingSizes& sizes);

inline constexpr std::size_t kHubBytes = 4096;
static_assert(sizeof(Hub) <= kHubBytes && 2 * sizeof(DirectionControl) <= kHubBytes);
base::Result<Mapping> map_hub(int file);
inline Hub& hub_of(const Mapping& mapping) noexcept { return *reinterpret_cast<Hub*>(mapping.base()); }

}  // namespace tandem::comm::internal
