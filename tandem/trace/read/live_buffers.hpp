// tandem/trace/read/live_buffers.hpp: reads the live buffers of a running program, without stopping it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "tandem/base/owned_file.hpp"
#include "tandem/trace/declared.hpp"
#include "tandem/trace/packet.hpp"
#include "tandem/trace/read/copy_records.hpp"
#include "tandem/trace/recover.hpp"

namespace tandem::trace {

/// The live buffers of one rank, for reading only. The program writes meanwhile and knows nothing of the reader: no
/// lock, no signal, no write. The file is read by pread(2) into memory of the reader, and not mapped: if it is cut
/// meanwhile, its rest reads as zeros, and no SIGBUS kills the reader. Nothing in the file is trusted.
///
/// Protocol, as of a sequence lock. A packet is known by its actor and its sequence number, which are never reused.
/// Before a buffer is used for another packet, its `magic` becomes 0, and a release fence follows (`Session::renew`).
/// So a reader copies, then passes an acquire fence, then checks whether the header still names the packet: if it does,
/// no byte of the copy is of a later packet.
///
/// One `read` loads its bytes in no order; aligned words of 32 bits are loaded whole (so do the kernel's copies on
/// x86-64 and arm64). An acquire fence ends each `read`: the next one sees at least what it has seen. So where the
/// order of two stores matters, there are two reads: a record's header word, which is stored with release after its
/// fields, counts when the first read has it, and the fields are those of the second read (copy_records.hpp). A header
/// of a packet needs three: the first and the third must agree, and the one between must find `magic`; if the buffer is
/// renewed in between, one of them sees it.
///
/// Not thread-safe; any number of readers may open one file.
class LiveBuffers {
 public:
  explicit LiveBuffers(LiveFile live) noexcept;
  /// From memory that outlives the object and is aligned to 8 bytes.
  explicit LiveBuffers(std::span<const std::byte> memory) noexcept;

  std::size_t count() const noexcept { return count_; }
  std::size_t buffer_bytes() const noexcept { return buffer_bytes_; }

  /// A packet that was found in a buffer.
  struct Held {
    std::size_t buffer = 0;
    PacketHeader header;  ///< `content_bits` is 0 while the actor writes it
  };
  /// The packets in the buffers, by actor and sequence number. 64 bytes of each buffer are read, one buffer after the
  /// other: a packet may be missing which was written meanwhile to a buffer checked before, though a later packet of
  /// its actor is there.
  std::vector<Held> held() const;

  /// A copy whose first record is at byte `from` of the packet.
  struct Copy : internal::RecordsCopy {
    bool is_complete = false;  ///< the packet has no other records, and gets none
  };
  /// Copies the records from byte `from` (a multiple of 4) of the packet on; `before` is the stamp before them. Reads
  /// no further than 4096 bytes behind the last record (copy_records.hpp). Empty: the buffer was reused meanwhile.
  std::optional<Copy> copy(const Held& held, std::size_t from, std::uint64_t before,
                           const DeclaredTypes& declared) const;

  /// For tests: called between copying and checking the header again; after each buffer that `held` checks.
  std::function<void()> before_check, after_look;

 private:
  void take(const LivePage& page, std::uint64_t file_bytes) noexcept;
  /// Reads bytes of a buffer; zeros where the file has none. `at` and `bytes` are multiples of 4.
  void read(std::size_t buffer, std::size_t at, void* to, std::size_t bytes) const noexcept;
  std::optional<PacketHeader> header_of(std::size_t buffer) const noexcept;

  std::optional<base::OwnedFile> file_;
  std::span<const std::byte> memory_;  ///< without a file
  std::size_t count_ = 0;
  std::size_t buffer_bytes_ = 0;
};

}  // namespace tandem::trace
