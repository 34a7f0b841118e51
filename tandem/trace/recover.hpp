// tandem/trace/recover.hpp: completes the trace of a killed program from its buffers in shared memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "tandem/base/owned_file.hpp"
#include "tandem/base/result.hpp"
#include "tandem/trace/declared.hpp"
#include "tandem/trace/live.hpp"
#include "tandem/trace/packet.hpp"

namespace tandem::trace {

/// A packet of a live buffer, as its stream's file would have it. `content` points into the buffer, after the header.
struct LivePacket {
  PacketHeader header;  ///< complete: sizes, last stamp and event count match the existing records
  const std::byte* content = nullptr;

  std::size_t content_bytes() const noexcept { return header.content_bits / 8 - sizeof(PacketHeader); }
  std::size_t padded_bytes() const noexcept { return header.packet_bits / 8 - sizeof(PacketHeader); }
};

/// The packets in a live file's buffers, by actor and then by sequence number, without empty ones. A buffer that is
/// being written ends before the first incomplete record (FORMAT.md, "Live buffers"): header words are read with
/// acquire, which pairs with the probe's release store after the fields. Returns only well-formed packets, for any
/// bytes. `file` is aligned to 8 bytes; while its process lives, the result may be out of date at once. `declared`: the
/// event types that the program has declared, from rank.json.
std::vector<LivePacket> collect_live(std::span<const std::byte> file,
                                     const DeclaredTypes& declared = DeclaredTypes::none());

/// A live file that is open for reading, with its page, which is valid (`problem_of`).
struct LiveFile {
  base::OwnedFile file;
  LivePage page;

  /// The rank's folder, as stored in the page; empty: not stored.
  std::filesystem::path folder() const { return page.folder; }
  /// Whether a process with its number exists; it may be a zombie, or a new process with the same number.
  bool is_alive() const noexcept;
};
/// Opens a live file. Errors: not_found, malformed (it is no live file), io (also: a file of another owner).
base::Result<LiveFile> open_live(const std::filesystem::path& file, base::Owners owners);

/// The live file to which a rank's link `live` points, which must have the owner of the rank's folder. Empty: there is
/// no link. Errors: not_found (a dangling link: the memory of another machine, or this one was restarted), malformed
/// (it does not point to a live file), io (also: of another owner).
base::Result<std::optional<LiveFile>> find_live(const base::OwnedFolder& folder);
base::Result<std::optional<LiveFile>> find_live(const std::filesystem::path& folder);

/// The live files of a process that belong to this user: live_folder/live_prefix + PID + "." + anything, in the order
/// of their names. Other users can put files of such names into that folder.
std::vector<std::filesystem::path> live_files_of(std::uint32_t process);

/// Removes a live file that was opened, but no other file that has its name by now. No effect when it is gone. Errors:
/// io.
base::Result<void> remove_live_file(const base::OwnedFile& file);

struct RecoverOptions {
  bool force = false;  ///< recover although a process with this number exists, or the live file is gone
};

/// What a recovery did; all zero when there was nothing to do.
struct RecoverReport {
  std::uint32_t ranks = 0;           ///< ranks whose program did not end the trace, or whose live file still existed
  std::uint64_t packets_added = 0;
  std::uint64_t events_added = 0;
  std::uint64_t bytes_cut = 0;       ///< of incomplete packets
  std::uint32_t metadata_written = 0;
};

/// Completes the folder of a rank whose process is dead (FORMAT.md): appends the packets that the files lack, truncates
/// incomplete packets, writes `metadata` if it is missing, marks rank.json as recovered, and removes the live file and
/// the link. A trace that its program has ended is not changed. A second call is harmless, also after an interruption.
/// The folder, its files and the live file must belong to this user, and no link is followed from the folder on.
/// Errors: unsupported (the process is alive), not_found, malformed, io; then the live file still exists.
base::Result<RecoverReport> recover_rank(const std::filesystem::path& folder, const RecoverOptions& options = {});

/// Recovers all ranks of a run; `folder` may also be one rank's. It continues after a rank that fails, and returns the
/// first error.
base::Result<RecoverReport> recover_run(const std::filesystem::path& folder, const RecoverOptions& options = {});

}  // namespace tandem::trace
