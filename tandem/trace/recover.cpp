// tandem/trace/recover.cpp: completes the folder of a rank that was killed.
#include "tandem/trace/recover.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "tandem/base/host.hpp"
#include "tandem/base/owned_file.hpp"
#include "tandem/trace/metadata.hpp"
#include "tandem/trace/read/io_error.hpp"
#include "tandem/trace/read/manifest.hpp"
#include "tandem/trace/read/reader.hpp"
#include "tandem/trace/read/record.hpp"

namespace tandem::trace {

using base::Error;
using base::ErrorCode;
using base::Result;
using internal::io_error;

namespace {

/// A private copy of the used buffers of a live file, so that other processes cannot change or cut them meanwhile;
/// unused ones are zeros.
class LiveCopy {
 public:
  static Result<LiveCopy> of(const std::optional<LiveFile>& live) {
    LiveCopy copy;
    if (!live) return copy;
    const LivePage& page = live->page;
    const std::size_t bytes = std::min<std::size_t>(live->file.bytes(), live_file_bytes(page));
    void* const memory = ::mmap(nullptr, std::max<std::size_t>(bytes, 1), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      return Error{ErrorCode::exhausted, live->file.path().string() + ": no memory for its live buffers"};
    copy.memory_ = {static_cast<std::byte*>(memory), Unmap{std::max<std::size_t>(bytes, 1)}};
    copy.bytes_ = bytes;
    if (bytes < sizeof page) return copy;
    std::memcpy(memory, &page, sizeof page);
    for (std::size_t i = 0; i < page.buffers && live_buffer_offset(page, i) + page.buffer_bytes <= bytes; ++i)
      copy.take(live->file, live_buffer_offset(page, i), page.buffer_bytes);
    return copy;
  }

  std::span<const std::byte> bytes() const noexcept { return {memory_.get(), bytes_}; }

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(std::byte* memory) const noexcept { ::munmap(memory, bytes); }
  };

  /// Takes a buffer; one that was cut is left out.
  void take(const base::OwnedFile& file, std::size_t at, std::size_t bytes) {
    std::uint32_t magic = 0;
    if (!file.read_at(at, &magic, sizeof magic) || magic != PacketHeader::ctf_magic) return;
    if (!file.read_at(at, memory_.get() + at, bytes)) std::memset(memory_.get() + at, 0, bytes);
  }

  std::unique_ptr<std::byte, Unmap> memory_;
  std::size_t bytes_ = 0;
};

/// A packet of a stream, in its file or in a live buffer.
struct Piece {
  PacketHeader header;
  std::uint64_t at = 0;               ///< in the file
  const LivePacket* live = nullptr;   ///< null: in the file
};

/// Whether the rest of a file, too short for a header, can be the beginning of one of this actor.
bool begins_a_packet(std::span<const std::byte> rest, std::uint32_t actor) {
  const PacketHeader header{.actor = actor};
  return std::memcmp(rest.data(), &header, std::min(rest.size(), offsetof(PacketHeader, begin_ticks))) == 0;
}

/// The stream of one actor, before and after.
class StreamRepair {
 public:
  StreamRepair(const base::OwnedFolder& folder, std::uint32_t actor)
      : folder_(folder), name_(stream_file_name(actor)), path_(folder.path() / name_), actor_(actor) {}

  Result<void> read_file() {
    const auto opened = folder_.file(name_, O_RDONLY);
    if (!opened && opened.error().code == ErrorCode::not_found) return {};
    if (!opened) return opened.error();
    const base::OwnedFile& file = opened.value();
    bytes_ = file.bytes();
    while (bytes_ - whole_bytes_ >= sizeof(PacketHeader)) {
      Piece piece{.header = {}, .at = whole_bytes_};
      if (!file.read_at(whole_bytes_, &piece.header, sizeof piece.header)) return io_error(path_, "cannot be read");
      if (const auto problem = internal::problem_of(piece.header); !problem.empty()) return damaged(problem);
      if (piece.header.actor != actor_) return damaged("a packet of another actor");
      if (piece.header.packet_bits / 8 > bytes_ - whole_bytes_) return {};
      pieces_.push_back(piece);
      whole_bytes_ += piece.header.packet_bits / 8;
    }
    std::byte rest[sizeof(PacketHeader)];
    const std::size_t rest_bytes = bytes_ - whole_bytes_;
    if (!file.read_at(whole_bytes_, rest, rest_bytes)) return io_error(path_, "cannot be read");
    if (!begins_a_packet({rest, rest_bytes}, actor_)) return damaged("no packet begins here");
    return {};
  }

  /// Adds the actor's packets that the file lacks and that fit between their neighbours. `packets` is in the order of
  /// sequence numbers.
  void add(std::span<const LivePacket> packets, RecoverReport* report) {
    const std::size_t in_file = pieces_.size();
    for (const LivePacket& packet : packets) {
      const auto same = [&](const Piece& piece) { return piece.header.sequence == packet.header.sequence; };
      if (std::ranges::any_of(pieces_, same)) continue;
      const auto place =
          std::ranges::upper_bound(pieces_, packet.header.sequence, {},
                                   [](const Piece& p) { return p.header.sequence; });
      const bool follows = place == pieces_.begin() || (place - 1)->header.end_ticks <= packet.header.begin_ticks;
      const bool precedes = place == pieces_.end() || packet.header.end_ticks <= place->header.begin_ticks;
      if (!follows || !precedes) continue;
      const auto index = static_cast<std::size_t>(place - pieces_.begin());
      first_new_ = std::min(first_new_, index);
      pieces_.insert(place, Piece{.header = packet.header, .live = &packet});
      ++report->packets_added;
      report->events_added += packet.header.event_count;
    }
    in_order_ = first_new_ >= in_file;
    report->bytes_cut += bytes_ - whole_bytes_;
  }

  Result<void> write_file() const {
    const bool has_new = first_new_ < pieces_.size();
    if (!has_new && bytes_ == whole_bytes_) return {};
    return in_order_ ? append() : rewrite();
  }

 private:
  Error damaged(std::string_view what) const {
    const std::string place = path_.string() + ": at byte " + std::to_string(whole_bytes_) + ": ";
    return {ErrorCode::malformed,
            place + std::string(what) + "; the file was damaged by something else than the end of its program"};
  }
  static bool write_live(const base::OwnedFile& file, std::uint64_t at, const LivePacket& packet) {
    constexpr std::byte nothing[4] = {};
    const std::size_t content = packet.content_bytes();
    return file.write_at(at, &packet.header, sizeof packet.header) &&
           file.write_at(at + sizeof packet.header, packet.content, content) &&
           file.write_at(at + sizeof packet.header + content, nothing, packet.padded_bytes() - content);
  }

  /// Appends packets. Removes a packet again that a full disk has cut.
  Result<void> append() const {
    const auto opened = folder_.file(name_, O_RDWR | O_CREAT);
    if (!opened) return opened.error();
    const base::OwnedFile& file = opened.value();
    if (!file.resize(whole_bytes_)) return io_error(path_, "cannot be shortened");
    std::uint64_t at = whole_bytes_;
    for (std::size_t i = first_new_; i < pieces_.size(); ++i) {
      if (!write_live(file, at, *pieces_[i].live)) {
        const Error error = io_error(path_, "cannot be written");
        (void)file.resize(at);
        return error;
      }
      at += pieces_[i].header.packet_bits / 8;
    }
    return {};
  }

  /// Writes a new file and renames it, for a packet that belongs between those of the file.
  Result<void> rewrite() const {
    const auto from = folder_.file(name_, O_RDONLY);
    if (!from) return from.error();
    const auto to = folder_.new_file(base::draft_name(name_));
    if (!to) return to.error();
    std::uint64_t at = 0;
    std::vector<std::byte> packet;
    for (const Piece& piece : pieces_) {
      packet.resize(piece.live != nullptr ? 0 : piece.header.packet_bits / 8);
      const bool written = piece.live != nullptr ? write_live(to.value(), at, *piece.live)
                                                 : from.value().read_at(piece.at, packet.data(), packet.size()) &&
                                                       to.value().write_at(at, packet.data(), packet.size());
      if (!written) return io_error(to.value().path(), "cannot be written");
      at += piece.header.packet_bits / 8;
    }
    return folder_.finish(name_);
  }

  const base::OwnedFolder& folder_;
  std::string name_;
  std::filesystem::path path_;     ///< for messages
  std::uint32_t actor_;
  std::uint64_t bytes_ = 0;        ///< of the file
  std::uint64_t whole_bytes_ = 0;  ///< up to the end of the last whole packet
  std::vector<Piece> pieces_;      ///< in the order of sequence numbers
  std::size_t first_new_ = std::numeric_limits<std::size_t>::max();
  bool in_order_ = true;
};

Result<std::vector<std::uint32_t>> actors_of(const base::OwnedFolder& folder, std::span<const LivePacket> packets) {
  const auto names = folder.names();
  if (!names) return names.error();
  std::vector<std::uint32_t> actors;
  for (const LivePacket& packet : packets) actors.push_back(packet.header.actor);
  for (const std::string& name : names.value())
    if (const auto actor = actor_of_stream(name)) actors.push_back(*actor);
  std::ranges::sort(actors);
  actors.erase(std::ranges::unique(actors).begin(), actors.end());
  return actors;
}

/// Repairs all streams. All files are read before the first is changed: a file of another user, a link or a damaged
/// file stops all.
Result<void> repair_streams(const base::OwnedFolder& folder, std::span<const LivePacket> packets,
                            RecoverReport* report) {
  const auto actors = actors_of(folder, packets);
  if (!actors) return actors.error();
  std::vector<StreamRepair> repairs;
  for (const std::uint32_t actor : actors.value()) {
    StreamRepair& repair = repairs.emplace_back(folder, actor);
    if (auto read = repair.read_file(); !read) return read;
    const auto own = std::ranges::equal_range(packets, actor, {},
                                              [](const LivePacket& packet) { return packet.header.actor; });
    repair.add({own.begin(), own.end()}, report);
  }
  for (const StreamRepair& repair : repairs)
    if (auto written = repair.write_file(); !written) return written;
  return {};
}

/// Date minus rank 0's clock, if rank 0's folder is beside this one.
std::optional<std::int64_t> reference_offset_of_run(const std::filesystem::path& folder) {
  const auto first = Manifest::read(folder / ".." / rank_folder_name(0));
  if (!first || first.value().rank != 0) return std::nullopt;
  return first.value().realtime_ns - first.value().realtime_local_ns;
}

Result<void> write_metadata(const base::OwnedFolder& folder, RecoverReport* report) {
  if (folder.has(metadata_file)) return {};
  auto opened = RankTrace::open(folder.path());
  if (!opened) return opened.error();
  const RankTrace& trace = *opened.value();
  std::optional<std::uint64_t> first_ticks;
  for (const auto& stream : trace.streams)
    if (const auto& summary = stream->summary(); summary.packets > 0)
      first_ticks = std::min(first_ticks.value_or(summary.first_ticks), summary.first_ticks);
  ClockFacts facts{.scale = trace.scale, .realtime_ns = trace.realtime_ns, .realtime_local_ns = trace.realtime_local_ns,
                   .line = trace.line(), .reference_realtime_offset_ns = reference_offset_of_run(folder.path()),
                   .exact_at_ticks = first_ticks.value_or(trace.scale.origin_ticks)};
  ++report->metadata_written;
  const std::string metadata = ctf_metadata({.hostname = trace.host, .program = trace.program, .rank = trace.rank,
                                             .tandem_version = trace.version, .clock = ctf_clock(facts),
                                             .declared = trace.declared.get()});
  return folder.replace(metadata_file, metadata);
}

/// Removes first the buffers, which take memory, then the link: on its own host a dangling link means the same as no
/// link.
Result<void> remove_live(const base::OwnedFolder& folder, const std::optional<LiveFile>& live) {
  if (live)
    if (auto removed = remove_live_file(live->file); !removed) return removed;
  const auto own = folder.folder(own_folder);
  return own ? own.value().remove(live_name) : Result<void>(own.error());
}

Error still_alive(const base::OwnedFolder& folder, std::uint32_t process) {
  return {ErrorCode::unsupported,
          folder.path().string() + ": process " + std::to_string(process) +
              " that writes it is alive: wait until it has ended. If that is another program: --force"};
}

/// The live file of a dead process; empty when there is none (any more).
Result<std::optional<LiveFile>> live_of_the_dead(const base::OwnedFolder& folder, const Manifest& manifest,
                                                 bool force) {
  auto live = find_live(folder);
  const bool here = manifest.host == base::host_name();
  if (!live) {
    const bool is_gone = live.error().code == ErrorCode::not_found;
    if (is_gone && (here || force)) return std::optional<LiveFile>{};
    if (is_gone)
      return Error{ErrorCode::not_found, live.error().message + ". They are in the memory of " + manifest.host +
                                             ": recover the trace there, or, without them, with --force"};
    return live.error();
  }
  if (force) return live;
  if (live.value() && live.value()->is_alive()) return still_alive(folder, live.value()->page.process);
  if (!live.value() && here && manifest.process > 0 && ::kill(static_cast<pid_t>(manifest.process), 0) == 0)
    return still_alive(folder, manifest.process);
  return live;
}

}  // namespace

Result<RecoverReport> recover_rank(const std::filesystem::path& path, const RecoverOptions& options) {
  const auto opened = base::OwnedFolder::open(path, base::Owners::self);
  if (!opened) return opened.error();
  const base::OwnedFolder& folder = opened.value();
  const auto manifest = Manifest::read(folder);
  if (!manifest) return manifest.error();
  const auto own = folder.folder(own_folder);
  if (!own) return own.error();
  if ((manifest.value().complete || manifest.value().recovered) && !own.value().has(live_name)) return RecoverReport{};
  const auto live = live_of_the_dead(folder, manifest.value(), options.force);
  if (!live) return live.error();

  RecoverReport report{.ranks = 1};
  if (!manifest.value().complete) {
    const auto copy = LiveCopy::of(live.value());
    if (!copy) return copy.error();
    const auto packets = collect_live(copy.value().bytes(), *manifest.value().declared);
    if (auto repaired = repair_streams(folder, packets, &report); !repaired) return repaired.error();
    if (auto marked = mark_recovered(folder); !marked) return marked.error();
    if (auto written = write_metadata(folder, &report); !written) return written.error();
  }
  if (auto removed = remove_live(folder, live.value()); !removed) return removed.error();
  return report;
}

Result<RecoverReport> recover_run(const std::filesystem::path& folder, const RecoverOptions& options) {
  const auto folders = rank_folders(folder);
  if (!folders) return folders.error();
  RecoverReport sum;
  std::optional<Error> first_error;
  for (const auto& rank_folder : folders.value()) {
    const auto report = recover_rank(rank_folder, options);
    if (!report) {
      if (!first_error) first_error = report.error();
      continue;
    }
    sum.ranks += report.value().ranks;
    sum.packets_added += report.value().packets_added;
    sum.events_added += report.value().events_added;
    sum.bytes_cut += report.value().bytes_cut;
    sum.metadata_written += report.value().metadata_written;
  }
  if (first_error) return *first_error;
  return sum;
}

}  // namespace tandem::trace
