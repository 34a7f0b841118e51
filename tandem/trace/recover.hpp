// tandem/trace/recover.hpp: what a program that was killed left of its trace in shared memory, and how that gets into its files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "tandem/base/result.hpp"
#include "tandem/trace/declared.hpp"
#include "tandem/trace/live.hpp"
#include "tandem/trace/packet.hpp"

namespace tandem::trace {

/// A packet of a live buffer, as it would stand in its stream's file. `content` points to the buffer, behind the header.
struct LivePacket {
  PacketHeader header;  ///< whole: sizes, last stamp and number of events are those of the records that are there
  const std::byte* content = nullptr;

  std::size_t content_bytes() const noexcept { return header.content_bits / 8 - sizeof(PacketHeader); }
  std::size_t padded_bytes() const noexcept { return header.packet_bits / 8 - sizeof(PacketHeader); }
};

/// The packets in a live file's buffers, by actor and then by sequence number; those that hold nothing are left out. A buffer
/// that is being written ends before the first record that is not there yet, as FORMAT.md says ("Live buffers"): header words are
/// read with acquire, which pairs with the probe's release of the word behind the fields. Whatever the bytes are, only
/// well-formed packets come out. `file` is aligned to 8 bytes, and, while its process lives, what was read may be old as soon as
/// it was. `declared`: what rank.json says that the program has declared.
std::vector<LivePacket> collect_live(std::span<const std::byte> file, const DeclaredTypes& declared = DeclaredTypes::none());

/// What a rank's `live` leads to.
struct LiveFile {
  std::filesystem::path file;
  LivePage page;

  /// Whether its process is there, though perhaps a zombie, or another that got its number.
  bool is_alive() const noexcept;
};
/// Nothing when there is no link. Errors: not_found (the link leads nowhere: another machine's memory, or this one was
/// restarted), malformed (what it leads to is no live file), io.
base::Result<std::optional<LiveFile>> find_live(const std::filesystem::path& folder);

/// The live files of a process: live_folder/live_prefix + PID + "." + anything, in the order of their names.
std::vector<std::filesystem::path> live_files_of(std::uint32_t process);

struct RecoverOptions {
  bool force = false;  ///< even though a process of this number lives, or the live file is gone
};

/// What was done; all zero when there was nothing to do.
struct RecoverReport {
  std::uint32_t ranks = 0;           ///< that were not ended by their program, or whose live file was still there
  std::uint64_t packets_added = 0;
  std::uint64_t events_added = 0;
  std::uint64_t bytes_cut = 0;       ///< of packets that were written in part
  std::uint32_t metadata_written = 0;
};

/// Completes the folder of a rank whose process is dead, as FORMAT.md says: appends the packets that its streams' files lack,
/// cuts off packets that were written in part, writes `metadata` where there is none, notes the recovery in rank.json, and
/// removes the live file and the link. A trace that was ended by its program stays as it is, and calling it again does no harm,
/// also when it was interrupted. Errors: unsupported (the process is alive), not_found, malformed, io; then the live file is
/// still there.
base::Result<RecoverReport> recover_rank(const std::filesystem::path& folder, const RecoverOptions& options = {});

/// All ranks of a run, or of a rank's folder itself. A rank that fails does not keep the others from being recovered; the error
/// is the first one's.
base::Result<RecoverReport> recover_run(const std::filesystem::path& folder, const RecoverOptions& options = {});

}  // namespace tandem::trace
