// tandem/trace/read/stream_reader.cpp: the events of one actor, each checked before it is returned.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/base/owned_file.hpp"
#include "tandem/trace/read/io_error.hpp"
#include "tandem/trace/read/reader.hpp"
#include "tandem/trace/read/record.hpp"
#include "tandem/trace/read/record_events.hpp"

namespace tandem::trace {

using base::Error;
using base::ErrorCode;
using base::Result;
using internal::io_error;

namespace {

/// Read parts are unmapped in pieces of this size: multiples of the page, on all machines.
constexpr std::size_t piece_bytes = std::size_t{256} << 10;

/// Whether the clock's time is near enough to its origin (70 years) at both stamps, and thus between them, for safe
/// arithmetic in 64 bits.
bool in_the_clocks_reach(const clock::TickScale& scale, std::uint64_t begin, std::uint64_t end) noexcept {
  __extension__ using Wide = __int128;
  constexpr Wide most_ns = Wide{1} << 61;
  const auto elapsed = [&](std::uint64_t ticks) { return static_cast<std::int64_t>(ticks - scale.origin_ticks); };
  const auto near = [&](std::uint64_t ticks) {
    const Wide ns = (Wide{elapsed(ticks)} * scale.multiplier) >> 32;
    return ns > -most_ns && ns < most_ns;
  };
  return elapsed(begin) <= elapsed(end) && near(begin) && near(end);
}

/// Copies a file to one without a name, which vanishes with its descriptor. Blocks of zeros are left out.
Result<base::FileDescriptor> private_copy(const base::OwnedFile& file) {
  const char* const chosen = std::getenv("TMPDIR");
  const std::filesystem::path folder = chosen != nullptr && *chosen != 0 ? chosen : "/var/tmp";
  base::FileDescriptor copy(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!copy) copy = base::FileDescriptor(::memfd_create("tandem-trace", MFD_CLOEXEC));
  if (!copy) return io_error(folder, "there is no place for a copy of " + file.path().string());
  const std::uint64_t bytes = file.bytes();
  const std::string no_room = "no room for a copy of " + file.path().string();
  if (::ftruncate(copy.get(), static_cast<off_t>(bytes)) != 0) return io_error(folder, no_room);
  std::vector<char> piece(piece_bytes);
  for (std::uint64_t at = 0; at < bytes; at += piece.size()) {
    piece.resize(static_cast<std::size_t>(std::min<std::uint64_t>(piece_bytes, bytes - at)));
    if (!file.read_at(at, piece.data(), piece.size())) return io_error(file.path(), "cannot be read");
    if (std::ranges::all_of(piece, [](char c) { return c == 0; })) continue;
    if (::pwrite(copy.get(), piece.data(), piece.size(), static_cast<off_t>(at)) != static_cast<ssize_t>(piece.size()))
      return io_error(folder, no_room);
  }
  return copy;
}

}  // namespace

StreamReader::StreamReader() : events_(std::make_unique<internal::RecordEvents>()) {}

Error StreamReader::malformed(std::size_t at, std::string_view what) const {
  return {ErrorCode::malformed, file_.string() + ": at byte " + std::to_string(at) + ": " + std::string(what)};
}

Result<std::unique_ptr<StreamReader>> StreamReader::open(const std::filesystem::path& file, std::uint32_t rank,
                                                         const clock::TickScale& scale,
                                                         std::shared_ptr<const DeclaredTypes> declared) {
  std::unique_ptr<StreamReader> reader(new StreamReader);
  reader->file_ = file;
  reader->rank_ = rank;
  reader->scale_ = scale;
  reader->declared_ = declared != nullptr ? std::move(declared) : std::make_shared<const DeclaredTypes>();
  if (auto mapped = reader->map(); !mapped) return mapped.error();
  if (auto indexed = reader->index_packets(); !indexed) return indexed.error();
  reader->rewind();
  return reader;
}

StreamReader::~StreamReader() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), bytes_);
}

/// Maps the file. Another user could cut it while it is mapped, which would end this process, so such a file is copied
/// first.
Result<void> StreamReader::map() {
  const auto opened = base::OwnedFile::open(file_, base::Owners::anyone);
  if (!opened) {
    const bool is_malformed = opened.error().code == ErrorCode::malformed;
    return Error{is_malformed ? ErrorCode::malformed : ErrorCode::io, opened.error().message};
  }
  base::FileDescriptor copied;
  if (!base::accepts(base::Owners::self_or_root, opened.value().owner())) {
    auto copy = private_copy(opened.value());
    if (!copy) return copy.error();
    copied = std::move(copy).value();
  }
  const int file = copied ? copied.get() : opened.value().descriptor();
  struct stat status {};
  if (::fstat(file, &status) != 0) return io_error(file_, "its size is unknown");
  if (status.st_size == 0) return {};
  void* memory = ::mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_PRIVATE, file, 0);
  if (memory == MAP_FAILED) return io_error(file_, "cannot be mapped");
  bytes_ = static_cast<std::size_t>(status.st_size);
  data_ = static_cast<const std::byte*>(memory);
  ::madvise(memory, bytes_, MADV_SEQUENTIAL);
  return {};
}

Result<void> StreamReader::index_packets() {
  summary_.bytes = bytes_;
  std::size_t at = 0;
  while (at < bytes_) {
    if (bytes_ - at < sizeof(PacketHeader)) break;
    const auto header = internal::load<PacketHeader>(data_ + at);
    if (const auto problem = internal::problem_of(header); !problem.empty()) return malformed(at, problem);
    if (header.packet_bits / 8 > bytes_ - at) {
      if (auto entered = enter_cut_packet(at, header); !entered) return entered;
      break;
    }
    if (auto entered = enter_packet_at(at, header); !entered) return entered;
    at += header.packet_bits / 8;
    if (at - dropped_ >= piece_bytes) drop_pages(at);
  }
  summary_.truncated = at < bytes_;
  set_actor(summary_.actor);
  return {};
}

Result<void> StreamReader::enter_packet_at(std::size_t at, const PacketHeader& header) {
  if (!packets_.empty() && header.actor != summary_.actor) return malformed(at, "a packet of another actor");
  if (!packets_.empty() && header.begin_ticks < summary_.last_ticks)
    return malformed(at, "the packet begins before the one before ends");
  // Packets that should have come before this one; those that did not are missing.
  const std::uint64_t expected = summary_.packets + summary_.missing_packets;
  if (header.sequence < expected)
    return malformed(at, "the packet's number is not greater than that of the one before");
  if (!in_the_clocks_reach(scale_, header.begin_ticks, header.end_ticks))
    return malformed(at, "the packet's time is more than 70 years from the clock's origin in rank.json");
  if (packets_.empty()) {
    summary_.actor = header.actor;
    summary_.first_ticks = header.begin_ticks;
  }
  summary_.missing_packets += header.sequence - expected;
  ++summary_.packets;
  summary_.records += header.event_count;
  summary_.lost_events = header.lost_events;
  summary_.last_ticks = header.end_ticks;
  packets_.push_back({at, at + header.content_bits / 8, header.begin_ticks, header.end_ticks, header.event_count});
  return {};
}

/// Enters a packet that the file cuts off: its records before the file's end are valid, and the last of them ends it.
Result<void> StreamReader::enter_cut_packet(std::size_t at, const PacketHeader& header) {
  const std::size_t end = at + std::min<std::size_t>(header.content_bits / 8, bytes_ - at);
  PacketHeader cut = header;
  cut.event_count = 0;
  cut.end_ticks = header.begin_ticks;
  std::size_t next = at + sizeof(PacketHeader);
  internal::RecordEvents events;
  events.begin_packet(header.begin_ticks);
  while (next < end && end - next >= RecordHeader::compact_bytes && cut.event_count < header.event_count) {
    const auto fault = events.enter(data_, next, end, internal::load<std::uint32_t>(data_ + next), *declared_);
    if (fault != internal::RecordFault::none || events.last_event() > header.end_ticks) break;
    next = events.record().next();
    cut.end_ticks = events.last_event();
    ++cut.event_count;
  }
  summary_.cut_events = header.event_count - cut.event_count;
  if (cut.event_count == 0) return {};
  cut.content_bits = (next - at) * 8;
  return enter_packet_at(at, cut);
}

void StreamReader::begin_packet(std::size_t packet) noexcept {
  packet_ = packet;
  records_ = 0;
  events_->begin_packet(packet == packets_.size() ? 0 : packets_[packet].begin_ticks);
  if (packet == packets_.size()) return;
  const Packet& entered = packets_[packet];
  at_ = entered.begin + sizeof(PacketHeader);
  end_ = entered.end;
  end_ticks_ = entered.end_ticks;
}

void StreamReader::rewind() noexcept {
  dropped_ = 0;
  begin_packet(0);
}

/// Drops mapped pages that were read, which would count as memory of the process until it ends. Reading them again
/// loads them from the file.
void StreamReader::drop_pages(std::size_t until) noexcept {
  const std::size_t end = until / piece_bytes * piece_bytes;
  ::madvise(const_cast<std::byte*>(data_) + dropped_, end - dropped_, MADV_DONTNEED);
  dropped_ = end;
}

Result<void> StreamReader::end_packet() {
  const Packet& packet = packets_[packet_];
  if (records_ != packet.events)
    return malformed(packet.begin, "the packet says that it has " + std::to_string(packet.events) +
                                       " events, and has " + std::to_string(records_));
  if (records_ > 0 && events_->last_event() != packet.end_ticks)
    return malformed(packet.begin, "the packet's last stamp is not its timestamp_end");
  begin_packet(packet_ + 1);
  return {};
}

Result<std::optional<Event>> StreamReader::next() {
  const auto fail = [this](Error error) {
    begin_packet(packets_.size());
    return error;
  };
  const auto take = [this] {
    Event event = events_->take(scale_);
    event.rank = rank_;
    event.actor = summary_.actor;
    return std::optional<Event>(event);
  };
  if (events_->has_next()) return take();
  if (packet_ == packets_.size()) return std::optional<Event>{};
  while (at_ >= end_) {
    if (auto ended = end_packet(); !ended) return fail(ended.error());
    if (packet_ == packets_.size()) return std::optional<Event>{};
  }
  auto fault = internal::RecordFault::header_cut;
  if (end_ - at_ >= RecordHeader::compact_bytes)
    fault = events_->enter(data_, at_, end_, internal::load<std::uint32_t>(data_ + at_), *declared_);
  if (fault != internal::RecordFault::none) return fail(malformed(at_, internal::describe(fault)));
  if (events_->last_event() > end_ticks_)
    return fail(malformed(at_, "a record's stamp is behind its packet's timestamp_end"));
  if (at_ - dropped_ >= piece_bytes) [[unlikely]] drop_pages(at_);
  at_ = events_->record().next();
  ++records_;
  return take();
}

void StreamReader::set_actor(std::uint32_t actor) {
  summary_.actor = actor;
  summary_.name = "actor " + std::to_string(actor);
}

void StreamReader::name_actor(ActorKind kind, std::uint16_t index, std::int32_t core, std::string name) {
  summary_.kind = kind;
  summary_.index = index;
  summary_.core = core;
  events_->set_worker(index);
  if (!name.empty()) summary_.name = std::move(name);
}

}  // namespace tandem::trace
