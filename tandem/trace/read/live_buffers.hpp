// tandem/trace/read/live_buffers.hpp: reads the live buffers of a program that runs, without stopping it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tandem/base/result.hpp"
#include "tandem/trace/declared.hpp"
#include "tandem/trace/packet.hpp"
#include "tandem/trace/read/copy_records.hpp"
#include "tandem/trace/recover.hpp"

namespace tandem::trace {

/// The live buffers of one rank, mapped for reading only. The program writes meanwhile and knows nothing of the reader: no lock,
/// no signal, no write.
///
/// Protocol, as of a sequence lock. A packet is known by its actor and its sequence number, which never come again. Before a
/// buffer is used for another packet, its `magic` becomes 0, and a release fence follows (`Session::renew`). So a reader copies,
/// then passes an acquire fence, then looks whether the header still names the packet: if it does, no byte of the copy is of a
/// later packet. Words are copied one by one in ascending order with acquire, so that after a record's header word, which is
/// stored with release after its fields, the reader sees these fields. The last record may be completed meanwhile: copy_records.hpp.
///
/// Not thread-safe; any number of readers may map one file.
class LiveBuffers {
 public:
  /// Errors: io.
  static base::Result<std::unique_ptr<LiveBuffers>> map(const LiveFile& live);
  /// Of memory that outlives the object and is aligned to 8 bytes.
  explicit LiveBuffers(std::span<const std::byte> file) noexcept;
  ~LiveBuffers();
  LiveBuffers(const LiveBuffers&) = delete;
  LiveBuffers& operator=(const LiveBuffers&) = delete;

  std::size_t count() const noexcept { return count_; }
  std::size_t buffer_bytes() const noexcept { return buffer_bytes_; }

  /// A packet that a buffer held when it was looked at.
  struct Held {
    std::size_t buffer = 0;
    PacketHeader header;  ///< `content_bits` is 0 while the actor writes it
  };
  /// By actor and sequence number. 64 bytes of each buffer are read, one buffer after the other: a packet may be lacking which was
  /// written meanwhile to a buffer that had been looked at, though a later packet of its actor is there.
  std::vector<Held> held() const;

  /// The first record is that at byte `from` of the packet.
  struct Copy : internal::RecordsCopy {
    bool is_complete = false;  ///< the packet has no other records, and gets none
  };
  /// Copies the records from byte `from` (a multiple of 4) of the packet on; `before` is the stamp before them. Reads no further
  /// than 256 bytes behind the last record. Nothing: the buffer was reused meanwhile.
  std::optional<Copy> copy(const Held& held, std::size_t from, std::uint64_t before, const DeclaredTypes& declared) const;

  /// For tests: called between copying and looking at the header again; after each buffer that `held` looks at.
  std::function<void()> before_check, after_look;

 private:
  const std::byte* at(std::size_t buffer) const noexcept { return buffers_ + buffer * buffer_bytes_; }
  std::optional<PacketHeader> header_of(std::size_t buffer) const noexcept;

  std::span<const std::byte> file_;
  bool mapped_ = false;
  const std::byte* buffers_ = nullptr;
  std::size_t count_ = 0;
  std::size_t buffer_bytes_ = 0;
};

}  // namespace tandem::trace
