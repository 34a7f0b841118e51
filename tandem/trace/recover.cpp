// tandem/trace/recover.cpp: completes the folder of a rank that was killed.
#include "tandem/trace/recover.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string>
#include <system_error>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/base/host.hpp"
#include "tandem/base/replace_file.hpp"
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

/// An open file that is read and written at positions.
class File {
 public:
  File(const std::filesystem::path& path, int flags) : descriptor_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}

  bool is_open() const noexcept { return static_cast<bool>(descriptor_); }
  int descriptor() const noexcept { return descriptor_.get(); }
  std::uint64_t bytes() const noexcept {
    struct stat status {};
    return ::fstat(descriptor_.get(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
  }
  bool read_at(std::uint64_t at, void* to, std::size_t bytes) const noexcept {
    auto* next = static_cast<std::byte*>(to);
    while (bytes > 0) {
      const ssize_t got = ::pread(descriptor_.get(), next, bytes, static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      next += got, at += static_cast<std::uint64_t>(got), bytes -= static_cast<std::size_t>(got);
    }
    return true;
  }
  bool write_at(std::uint64_t at, const void* from, std::size_t bytes) const noexcept {
    const auto* next = static_cast<const std::byte*>(from);
    while (bytes > 0) {
      const ssize_t put = ::pwrite(descriptor_.get(), next, bytes, static_cast<off_t>(at));
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) return false;
      next += put, at += static_cast<std::uint64_t>(put), bytes -= static_cast<std::size_t>(put);
    }
    return true;
  }

 private:
  base::FileDescriptor descriptor_;
};

/// Maps a live file while it lives; empty when there is none.
class Mapping {
 public:
  explicit Mapping(const std::optional<LiveFile>& live) {
    if (!live) return;
    const File file(live->file, O_RDONLY);
    bytes_ = file.is_open() ? file.bytes() : 0;
    if (bytes_ == 0) return;
    memory_ = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, file.descriptor(), 0);
    if (memory_ == MAP_FAILED) bytes_ = 0;
  }
  ~Mapping() {
    if (bytes_ > 0) ::munmap(memory_, bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::span<const std::byte> bytes() const noexcept { return {static_cast<const std::byte*>(memory_), bytes_}; }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

/// A packet of a stream, in its file or in a live buffer.
struct Piece {
  PacketHeader header;
  std::uint64_t at = 0;               ///< in the file
  const LivePacket* live = nullptr;   ///< null: in the file
};

/// The stream of one actor, before and after.
class StreamRepair {
 public:
  StreamRepair(const std::filesystem::path& folder, std::uint32_t actor) : path_(folder / stream_file_name(actor)) {}

  Result<void> read_file() {
    const File file(path_, O_RDONLY);
    if (!file.is_open()) return errno == ENOENT ? Result<void>{} : io_error(path_, "cannot be opened");
    bytes_ = file.bytes();
    while (bytes_ - whole_bytes_ >= sizeof(PacketHeader)) {
      Piece piece{.header = {}, .at = whole_bytes_};
      if (!file.read_at(whole_bytes_, &piece.header, sizeof piece.header)) return io_error(path_, "cannot be read");
      if (const auto problem = internal::problem_of(piece.header); !problem.empty())
        return Error{ErrorCode::malformed, path_.string() + ": at byte " + std::to_string(whole_bytes_) + ": " +
                                               std::string(problem) +
                                               "; the file was damaged by something else than the end of its program"};
      if (piece.header.packet_bits / 8 > bytes_ - whole_bytes_) break;
      pieces_.push_back(piece);
      whole_bytes_ += piece.header.packet_bits / 8;
    }
    return {};
  }

  /// Adds the actor's packets that the file lacks and that fit between their neighbours. `packets` is in the order of sequence
  /// numbers.
  void add(std::span<const LivePacket> packets, RecoverReport* report) {
    const std::size_t in_file = pieces_.size();
    for (const LivePacket& packet : packets) {
      const auto same = [&](const Piece& piece) { return piece.header.sequence == packet.header.sequence; };
      if (std::ranges::any_of(pieces_, same)) continue;
      const auto place =
          std::ranges::upper_bound(pieces_, packet.header.sequence, {}, [](const Piece& p) { return p.header.sequence; });
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
  static bool write_live(const File& file, std::uint64_t at, const LivePacket& packet) {
    constexpr std::byte nothing[4] = {};
    const std::size_t content = packet.content_bytes();
    return file.write_at(at, &packet.header, sizeof packet.header) &&
           file.write_at(at + sizeof packet.header, packet.content, content) &&
           file.write_at(at + sizeof packet.header + content, nothing, packet.padded_bytes() - content);
  }

  /// Removes a packet again that a full disk has cut.
  Result<void> append() const {
    const File file(path_, O_RDWR | O_CREAT);
    if (!file.is_open()) return io_error(path_, "cannot be opened for writing");
    if (::ftruncate(file.descriptor(), static_cast<off_t>(whole_bytes_)) != 0) return io_error(path_, "cannot be shortened");
    std::uint64_t at = whole_bytes_;
    for (std::size_t i = first_new_; i < pieces_.size(); ++i) {
      if (!write_live(file, at, *pieces_[i].live)) {
        const Error error = io_error(path_, "cannot be written");
        (void)!::ftruncate(file.descriptor(), static_cast<off_t>(at));
        return error;
      }
      at += pieces_[i].header.packet_bits / 8;
    }
    return {};
  }

  /// For a packet that belongs between those of the file: writes a new file and renames it.
  Result<void> rewrite() const {
    const auto anew = base::unfinished(path_);
    {
      const File from(path_, O_RDONLY);
      const File to(anew, O_RDWR | O_CREAT | O_TRUNC);
      if (!from.is_open() || !to.is_open()) return io_error(anew, "cannot be made from the stream's file");
      std::uint64_t at = 0;
      std::vector<std::byte> packet;
      for (const Piece& piece : pieces_) {
        packet.resize(piece.header.packet_bits / 8);
        const bool written = piece.live != nullptr ? write_live(to, at, *piece.live)
                                                   : from.read_at(piece.at, packet.data(), packet.size()) &&
                                                         to.write_at(at, packet.data(), packet.size());
        if (!written) return io_error(anew, "cannot be written");
        at += piece.header.packet_bits / 8;
      }
    }
    return base::finish_file(path_);
  }

  std::filesystem::path path_;
  std::uint64_t bytes_ = 0;        ///< of the file
  std::uint64_t whole_bytes_ = 0;  ///< up to the end of the last whole packet
  std::vector<Piece> pieces_;      ///< in the order of sequence numbers
  std::size_t first_new_ = std::numeric_limits<std::size_t>::max();
  bool in_order_ = true;
};

std::vector<std::uint32_t> actors_of(const std::filesystem::path& folder, std::span<const LivePacket> packets) {
  std::vector<std::uint32_t> actors;
  for (const LivePacket& packet : packets) actors.push_back(packet.header.actor);
  std::error_code error;
  for (std::filesystem::directory_iterator file(folder, error), end; !error && file != end; file.increment(error))
    if (const auto actor = actor_of_stream(file->path())) actors.push_back(*actor);
  std::ranges::sort(actors);
  actors.erase(std::ranges::unique(actors).begin(), actors.end());
  return actors;
}

Result<void> repair_streams(const std::filesystem::path& folder, std::span<const LivePacket> packets, RecoverReport* report) {
  for (const std::uint32_t actor : actors_of(folder, packets)) {
    StreamRepair repair(folder, actor);
    if (auto read = repair.read_file(); !read) return read;
    const auto own = std::ranges::equal_range(packets, actor, {}, [](const LivePacket& packet) { return packet.header.actor; });
    repair.add({own.begin(), own.end()}, report);
    if (auto written = repair.write_file(); !written) return written;
  }
  return {};
}

/// Date minus rank 0's clock, if rank 0's folder is beside this one.
std::optional<std::int64_t> reference_offset_of_run(const std::filesystem::path& folder) {
  const auto first = Manifest::read(folder / ".." / rank_folder_name(0));
  if (!first || first.value().rank != 0) return std::nullopt;
  return first.value().realtime_ns - first.value().realtime_local_ns;
}

Result<void> write_metadata(const std::filesystem::path& folder, RecoverReport* report) {
  std::error_code error;
  if (std::filesystem::exists(folder / metadata_file, error)) return {};
  auto opened = RankTrace::open(folder);
  if (!opened) return opened.error();
  const RankTrace& trace = *opened.value();
  std::optional<std::uint64_t> first_ticks;
  for (const auto& stream : trace.streams)
    if (const auto& summary = stream->summary(); summary.packets > 0)
      first_ticks = std::min(first_ticks.value_or(summary.first_ticks), summary.first_ticks);
  ClockFacts facts{.scale = trace.scale, .realtime_ns = trace.realtime_ns, .realtime_local_ns = trace.realtime_local_ns,
                   .line = trace.line(), .reference_realtime_offset_ns = reference_offset_of_run(folder),
                   .exact_at_ticks = first_ticks.value_or(trace.scale.origin_ticks)};
  ++report->metadata_written;
  const std::string metadata = ctf_metadata({.hostname = trace.host, .program = trace.program, .rank = trace.rank,
                                             .tandem_version = trace.version, .clock = ctf_clock(facts),
                                             .declared = trace.declared.get()});
  return base::replace_file(folder / metadata_file, metadata);
}

/// First the buffers, which hold memory, then the link: a dangling link on its own host means the same as no link.
Result<void> remove_live(const std::filesystem::path& folder, const std::optional<LiveFile>& live) {
  std::error_code error;
  if (live) std::filesystem::remove(live->file, error);
  if (!error) std::filesystem::remove(folder / live_link, error);
  if (error) return Error{ErrorCode::io, folder.string() + ": the live buffers cannot be removed: " + error.message()};
  return {};
}

Error still_alive(const std::filesystem::path& folder, std::uint32_t process) {
  return {ErrorCode::unsupported, folder.string() + ": process " + std::to_string(process) +
                                      " that writes it is alive: wait until it has ended. If that is another program: --force"};
}

/// The live file, or nothing when there is none (any more).
Result<std::optional<LiveFile>> live_of_the_dead(const std::filesystem::path& folder, const Manifest& manifest, bool force) {
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

Result<RecoverReport> recover_rank(const std::filesystem::path& folder, const RecoverOptions& options) {
  const auto manifest = Manifest::read(folder);
  if (!manifest) return manifest.error();
  std::error_code error;
  const bool has_link =
      std::filesystem::symlink_status(folder / live_link, error).type() != std::filesystem::file_type::not_found;
  if ((manifest.value().complete || manifest.value().recovered) && !has_link) return RecoverReport{};
  const auto live = live_of_the_dead(folder, manifest.value(), options.force);
  if (!live) return live.error();

  RecoverReport report{.ranks = 1};
  if (!manifest.value().complete) {
    const Mapping mapping(live.value());
    if (live.value() && mapping.bytes().empty()) return Error{ErrorCode::io, live.value()->file.string() + ": cannot be mapped"};
    const auto packets = collect_live(mapping.bytes(), *manifest.value().declared);
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
