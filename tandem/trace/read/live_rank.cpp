// tandem/trace/read/live_rank.cpp: follows the events of a rank, from live buffers and files.
#include "tandem/trace/read/live_rank.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <numeric>
#include <string_view>
#include <utility>

#include "tandem/base/owned_file.hpp"
#include "tandem/base/host.hpp"
#include "tandem/base/process_stat.hpp"
#include "tandem/clock/clock.hpp"
#include "tandem/clock/tsc_clock.hpp"
#include "tandem/trace/layout.hpp"
#include "tandem/trace/read/record.hpp"
#include "tandem/trace/recover.hpp"

namespace tandem::trace {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

constexpr std::uint32_t kMostActors = 1 << 20;    ///< a greater number is damage
constexpr std::size_t kMostNames = 1 << 22;
constexpr std::size_t kSmallestMost = 1 << 20;    ///< packets up to this size are read whatever the options say
constexpr std::size_t kPortion = 64;              ///< packets that are read before they are delivered

std::span<const LiveBuffers::Held> of_actor(std::span<const LiveBuffers::Held> held, std::uint32_t number) {
  const auto range = std::ranges::equal_range(held, number, {},
                                              [](const LiveBuffers::Held& one) { return one.header.actor; });
  return {range.begin(), range.end()};
}

}  // namespace

std::string_view name_of(LiveState state) noexcept {
  switch (state) {
    case LiveState::running: return "running";
    case LiveState::elsewhere: return "on another host";
    case LiveState::ended: return "ended";
    case LiveState::killed: return "killed";
    case LiveState::recovered: return "killed, recovered";
  }
  return "";
}

/// The file of an actor, to which the program may be appending.
class LiveRank::StreamFile {
 public:
  StreamFile(const std::optional<base::OwnedFolder>& folder, std::uint32_t actor) {
    auto opened = folder->file(stream_file_name(actor), O_RDONLY);
    if (!opened) return;
    file_ = std::move(opened).value();
    bytes_ = file_->bytes();
  }
  std::uint64_t bytes() const noexcept { return bytes_; }

  bool read(std::uint64_t at, void* to, std::size_t bytes) const noexcept {
    return file_ && file_->read_at(at, to, bytes);
  }
  /// The header of the packet at `at` when the file holds all of it. Sets `is_bad` when none begins there.
  bool packet_at(std::uint64_t at, std::uint32_t actor, PacketHeader& header, bool& is_bad) const noexcept {
    if (bytes_ < sizeof header || at > bytes_ - sizeof header || !read(at, &header, sizeof header)) return false;
    is_bad = header.actor != actor || !internal::problem_of(header).empty();
    return !is_bad && header.packet_bits / 8 <= bytes_ - at;
  }

 private:
  std::optional<base::OwnedFile> file_;
  std::uint64_t bytes_ = 0;
};

// --- what exists

Result<std::unique_ptr<LiveRank>> LiveRank::open(const std::filesystem::path& folder, const LiveOptions& options) {
  std::unique_ptr<LiveRank> rank(new LiveRank);
  rank->folder_ = folder;
  rank->options_ = options;
  auto manifest = Manifest::read(folder);
  if (!manifest) return manifest.error();
  auto opened = base::OwnedFolder::open(folder, base::Owners::anyone);
  if (!opened) return opened.error();
  rank->opened_ = std::move(opened).value();
  rank->manifest_ = std::move(manifest).value();
  auto selection = Selection::parse(rank->manifest_.selection);
  rank->selection_ = selection && !rank->manifest_.selection.empty() ? selection.value() : Selection::all();
  rank->process_ = rank->manifest_.process;
  if (auto present = rank->refuse_the_past(); !present) return present.error();
  return rank;
}

Result<void> LiveRank::refuse_the_past() {
  const std::string name = folder_.string();
  if (manifest_.complete)
    return Error{ErrorCode::unsupported, name + ": the run has ended: see tandem trace summary " + name};
  if (manifest_.recovered)
    return Error{ErrorCode::unsupported,
                 name + ": the run was killed, and its trace was recovered: see tandem trace summary " + name};
  if (manifest_.unwritten)
    return Error{ErrorCode::unsupported,
                 name + ": the run has ended, and could not write the end of its trace (was the disk full?); "
                        "gather what is there: tandem trace recover " + name};
  connect();
  if (state_ == LiveState::running && process_is_gone())
    return Error{ErrorCode::unsupported, name + ": the run was killed: its process " + std::to_string(process_) +
                                             " is gone; recover what it recorded: tandem trace recover " + name};
  return {};
}

/// Without a link, the program is about to make it, or has removed it at its end.
void LiveRank::connect() {
  is_here_ = manifest_.host == base::host_name();
  auto live = find_live(*opened_);
  if (live && live.value()) {
    std::error_code error;
    // A link from another host may name a file of this one by accident.
    if (is_here_ || std::filesystem::equivalent(live.value()->folder(), folder_, error)) {
      process_ = live.value()->page.process;
      buffers_ = std::make_unique<LiveBuffers>(*std::move(live).value());
      return;
    }
  }
  if (!is_here_ && buffers_ == nullptr) state_ = LiveState::elsewhere;
}

bool LiveRank::process_is_gone() const {
  if (process_ == 0 || !is_here_) return false;
  if (::kill(static_cast<pid_t>(process_), 0) != 0 && errno == ESRCH) return true;
  const auto stat = base::process_stat(process_);
  return stat && stat->has_ended();
}

bool LiveRank::read_manifest_if_changed() {
  struct stat status {};
  if (::stat((folder_ / manifest_file).c_str(), &status) != 0) return false;
  const std::int64_t changed_ns = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  if (changed_ns == manifest_changed_ns_ && status.st_ino == manifest_inode_) return false;
  auto manifest = Manifest::read(folder_);
  if (!manifest) return false;
  manifest_changed_ns_ = changed_ns;
  manifest_inode_ = status.st_ino;
  manifest_ = std::move(manifest).value();
  return true;
}

/// `killed` needs two checks, the second of which finds nothing new: a process of another container looks as if it were
/// gone.
LiveState LiveRank::state_now() {
  // before the manifest, which is written before the end
  const bool is_gone = state_ == LiveState::running && process_is_gone();
  read_manifest_if_changed();
  if (manifest_.complete || manifest_.unwritten) return LiveState::ended;
  if (manifest_.recovered) return LiveState::recovered;
  if (std::exchange(seemed_gone_, is_gone) && is_gone) return LiveState::killed;
  return state_;
}

std::int64_t LiveRank::now_ns() const {
  if (state_ != LiveState::elsewhere) {
#if defined(__x86_64__)
    if (manifest_.clock_kind == "tsc") return manifest_.scale.to_ns(clock::TscClock::ticks());
#endif
    if (manifest_.clock_kind == "ns") return clock::RawMonotonicClock().now_ns();
  }
  using std::chrono::nanoseconds;
  const auto date =
      std::chrono::duration_cast<nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  return manifest_.realtime_local_ns + (date - manifest_.realtime_ns);
}

const std::string* LiveRank::data_name(std::uint32_t data) const {
  const auto found = data_names_.find(data);
  return found == data_names_.end() ? nullptr : &found->second;
}

const std::string* LiveRank::name(std::uint32_t number) const {
  const auto found = names_.find(number);
  return found == names_.end() ? nullptr : &found->second;
}

LiveRank::Counts LiveRank::counts() const {
  Counts counts = counts_;
  for (const Actor& actor : actors_) counts.lost_events += actor.lost_events;
  return counts;
}

bool LiveRank::knows(std::uint32_t number) {
  if (number >= kMostActors) return false;
  if (actors_.size() <= number) {
    actors_.resize(number + 1);
    cursors_.resize(number + 1);
    told_.resize(number + 1);
  }
  return true;
}

// --- reading

void LiveRank::poll(LiveListener& listener) {
  if (state_ != LiveState::running && state_ != LiveState::elsewhere) return;
  const LiveState state = state_now();
  if (buffers_ == nullptr && state_ == LiveState::running) connect();
  const bool is_end = state != LiveState::running && state != LiveState::elsewhere;
  const std::uint64_t before = counts_.events;
  read_new(listener, first_ || is_end ? options_.most_bytes_at_first : options_.most_bytes);
  first_ = false;
  if (state == LiveState::killed && counts_.events > before) return;  // it has just written, so it is not killed
  if (is_end) state_ = state;
}

void LiveRank::read_new(LiveListener& listener, std::size_t most_bytes) {
  std::vector<LiveBuffers::Held> held;
  if (buffers_ != nullptr) held = buffers_->held();
  std::erase_if(held, [&](const LiveBuffers::Held& one) { return !knows(one.header.actor); });
  counts_.buffers = buffers_ != nullptr ? buffers_->count() : 0;
  counts_.buffers_used = held.size();
  counts_.buffers_full = static_cast<std::size_t>(
      std::ranges::count_if(held, [](const LiveBuffers::Held& one) { return one.header.content_bits != 0; }));
  if (!knows(0)) return;
  if (buffers_ == nullptr) find_files();
  read_catalogue(of_actor(held, 0), listener);

  std::vector<std::uint32_t> numbers(actors_.size() - 1);
  std::iota(numbers.begin(), numbers.end(), 1u);
  const auto submits = [&](std::uint32_t number) { return actors_[number].kind == ActorKind::submitter; };
  std::ranges::stable_partition(numbers, submits);
  share_out(numbers, held, most_bytes);
  std::vector<Piece> pieces, newest;
  for (const std::uint32_t number : numbers) {
    for (bool more = true; more;) {
      more = collect(number, of_actor(held, number), pieces);
      if (!more && !submits(number)) break;
      // The names in these events were described before the events were written.
      if (!pieces.empty()) read_catalogue({}, listener);
      deliver(pieces, listener);
    }
    std::ranges::move(pieces, std::back_inserter(newest));
    pieces.clear();
  }
  // The newest events of workers are of tasks that may have been submitted after the submitter's stream was read.
  const auto now = buffers_ != nullptr ? buffers_->held() : std::vector<LiveBuffers::Held>();
  for (const std::uint32_t number : numbers)
    if (submits(number)) collect(number, of_actor(now, number), pieces);
  read_catalogue({}, listener);
  deliver(pieces, listener);
  deliver(newest, listener);
}

/// Without the live buffers, descriptions of actors may not have come yet.
void LiveRank::find_files() {
  std::error_code error;
  for (std::filesystem::directory_iterator file(folder_, error), end; !error && file != end; file.increment(error))
    if (const auto number = actor_of_stream(file->path())) knows(*number);
}

/// `held`: packets of actor 0; none: the buffers are searched again.
void LiveRank::read_catalogue(HeldOfActor held, LiveListener& listener) {
  std::vector<LiveBuffers::Held> now;
  if (held.empty() && buffers_ != nullptr) {
    now = buffers_->held();
    held = of_actor(now, 0);
  }
  std::vector<Piece> pieces;
  for (bool more = true; more;) {
    more = collect(0, held, pieces);
    deliver(pieces, listener);
  }
}

/// Decides how much of each actor is left out so that no more than `most_bytes` are read.
void LiveRank::share_out(std::span<const std::uint32_t> numbers, std::span<const LiveBuffers::Held> held,
                         std::size_t most_bytes) {
  std::vector<std::uint64_t> waiting;
  std::uint64_t total = 0;
  for (const std::uint32_t number : numbers) total += waiting.emplace_back(backlog(number, of_actor(held, number)));
  if (total <= most_bytes) return;
  const double part = static_cast<double>(most_bytes) / static_cast<double>(total);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    cursors_[numbers[i]].leave_out = waiting[i] - static_cast<std::uint64_t>(part * static_cast<double>(waiting[i]));
}

/// Bytes of complete packets that were not read yet. Also skips those of the file that were read from their buffers.
std::uint64_t LiveRank::backlog(std::uint32_t number, HeldOfActor held) {
  Cursor& cursor = cursors_[number];
  std::uint64_t bytes = 0;
  for (const LiveBuffers::Held& one : held)
    if (one.header.sequence >= cursor.sequence) bytes += one.header.content_bits / 8;
  if (cursor.file_is_bad) return bytes;
  const StreamFile file(opened_, number);
  PacketHeader header;
  while (file.packet_at(cursor.file_at, number, header, cursor.file_is_bad) && header.sequence < cursor.sequence)
    cursor.file_at += header.packet_bits / 8;
  return bytes + (file.bytes() - std::min(file.bytes(), cursor.file_at));
}

/// A packet that is larger than the limit of one read is left out, too: its size comes from a file.
bool LiveRank::is_left_out(const Cursor& cursor, std::uint64_t packet_bytes) const noexcept {
  return cursor.leave_out > 0 || packet_bytes > std::max(options_.most_bytes_at_first, kSmallestMost);
}

/// Begins the packet of this number; earlier ones that were not read, if any, are missed.
void LiveRank::begin_packet(std::uint32_t number, std::uint64_t sequence, std::vector<Piece>& pieces) {
  Cursor& cursor = cursors_[number];
  if (sequence <= cursor.sequence) return;
  const std::uint64_t packets = sequence - cursor.sequence;
  cursor.sequence = sequence;
  cursor.from = sizeof(PacketHeader);
  counts_.missed_packets += packets;
  pieces.push_back({.actor = number, .missed = packets});
}

/// Appends what an actor has written since the last time, up to a portion. True: there is more.
bool LiveRank::collect(std::uint32_t number, HeldOfActor held, std::vector<Piece>& pieces) {
  Cursor& cursor = cursors_[number];
  bool reads_newest = false;
  std::vector<LiveBuffers::Held> newer;
  std::uint64_t looked_for = UINT64_MAX;
  for (std::size_t next = 0; next < held.size();) {
    const LiveBuffers::Held& one = held[next];
    const std::uint64_t sequence = one.header.sequence;
    actors_[number].lost_events = std::max(actors_[number].lost_events, one.header.lost_events);
    if (sequence < cursor.sequence) {
      ++next;
      continue;
    }
    if (pieces.size() >= kPortion) return true;
    if (sequence > cursor.sequence && collect_from_file(number, sequence, pieces)) return true;
    // The packet before was complete when this one began: if another search does not find it, it was overwritten.
    if (sequence > cursor.sequence && std::exchange(looked_for, cursor.sequence) != cursor.sequence) {
      newer = buffers_->held();
      held = of_actor(newer, number);
      next = 0;
      continue;
    }
    ++next;
    if (one.header.content_bits != 0 && is_left_out(cursor, one.header.content_bits / 8)) {
      cursor.leave_out -= std::min(cursor.leave_out, one.header.content_bits / 8);
      begin_packet(number, sequence + 1, pieces);
      continue;
    }
    begin_packet(number, sequence, pieces);
    reads_newest = copy_held(number, one, pieces);
  }
  cursor.leave_out = reads_newest ? 0 : cursor.leave_out;
  if (reads_newest) return false;
  const bool more = collect_from_file(number, UINT64_MAX, pieces);
  if (!more) cursor.leave_out = 0;
  return more;
}

/// Copies a packet from its buffer. True: it is still being written, and all existing records were read.
bool LiveRank::copy_held(std::uint32_t number, const LiveBuffers::Held& held, std::vector<Piece>& pieces) {
  Cursor& cursor = cursors_[number];
  const std::uint64_t before = cursor.from == sizeof(PacketHeader) ? held.header.begin_ticks : cursor.ticks;
  auto copy = buffers_->copy(held, cursor.from, before, *manifest_.declared);
  if (copy && copy->is_strange && read_manifest_if_changed())
    copy = buffers_->copy(held, cursor.from, before, *manifest_.declared);
  if (!copy) {
    ++counts_.reused_buffers;
    // The packet is in the file, unless it was overwritten.
    collect_from_file(number, held.header.sequence + 1, pieces);
    return false;
  }
  const bool is_begin = cursor.from == sizeof(PacketHeader);
  cursor.from += copy->bytes.size() - copy->open_bytes;
  cursor.ticks = copy->ticks;
  const bool is_complete = copy->is_complete;
  if (!copy->bytes.empty())
    pieces.push_back({.actor = number,
                      .sequence = held.header.sequence,
                      .begin_ticks = held.header.begin_ticks,
                      .is_begin = is_begin,
                      .ends_open = copy->open_bytes > 0,
                      .bytes = std::move(copy->bytes)});
  if (!is_complete) return true;
  cursor.sequence = held.header.sequence + 1;
  cursor.from = sizeof(PacketHeader);
  return false;
}

/// Appends packets of the file up to the one with the number `until`. True: there are more.
bool LiveRank::collect_from_file(std::uint32_t number, std::uint64_t until, std::vector<Piece>& pieces) {
  Cursor& cursor = cursors_[number];
  if (cursor.file_is_bad) return false;
  const StreamFile file(opened_, number);
  PacketHeader header;
  while (cursor.sequence < until && file.packet_at(cursor.file_at, number, header, cursor.file_is_bad) &&
         header.sequence < until) {
    const std::uint64_t bytes = header.packet_bits / 8;
    if (header.sequence >= cursor.sequence) {
      if (pieces.size() >= kPortion) return true;
      actors_[number].lost_events = std::max(actors_[number].lost_events, header.lost_events);
      if (is_left_out(cursor, bytes)) {
        cursor.leave_out -= std::min(cursor.leave_out, bytes);
        begin_packet(number, header.sequence + 1, pieces);
      } else {
        begin_packet(number, header.sequence, pieces);
        const std::size_t from = std::min<std::size_t>(cursor.from, header.content_bits / 8);
        Piece piece{.actor = number,
                    .sequence = header.sequence,
                    .begin_ticks = header.begin_ticks,
                    .is_begin = from == sizeof(PacketHeader),
                    .bytes = std::vector<std::byte>(header.content_bits / 8 - from)};
        if (!file.read(cursor.file_at + from, piece.bytes.data(), piece.bytes.size())) return false;
        pieces.push_back(std::move(piece));
        cursor.sequence = header.sequence + 1;
        cursor.from = sizeof(PacketHeader);
      }
    }
    cursor.file_at += bytes;
  }
  return false;
}

// --- delivering

void LiveRank::deliver(std::vector<Piece>& pieces, LiveListener& listener) {
  for (const Piece& piece : pieces) {
    if (piece.missed > 0) listener.missed(piece.actor, piece.missed);
    deliver(piece, listener);
  }
  pieces.clear();
}

void LiveRank::deliver(const Piece& piece, LiveListener& listener) {
  Told& told = told_[piece.actor];
  if (piece.is_begin) told.events.begin_packet(piece.begin_ticks);
  if (std::exchange(told.sequence, piece.sequence) != piece.sequence) told.of_open = 0;
  told.events.set_worker(actors_[piece.actor].index);
  for (std::size_t at = 0; at + RecordHeader::compact_bytes <= piece.bytes.size();) {
    const auto word = internal::load<std::uint32_t>(piece.bytes.data() + at);
    const auto enter = [&] {
      return told.events.enter(piece.bytes.data(), at, piece.bytes.size(), word, *manifest_.declared);
    };
    auto fault = enter();
    if (fault == internal::RecordFault::unknown_type && read_manifest_if_changed()) fault = enter();
    if (fault != internal::RecordFault::none) return listener.missed(piece.actor, 1);
    told.events.skip(told.of_open);
    while (told.events.has_next()) tell(piece.actor, told.events.take(manifest_.scale), listener);
    at = told.events.record().next();
    const bool comes_again = at >= piece.bytes.size() && piece.ends_open;
    told.of_open = comes_again ? told.events.count() : 0;
    if (comes_again) told.events.leave();
    else counts_.bytes += told.events.bytes();
  }
}

void LiveRank::tell(std::uint32_t actor, Event event, LiveListener& listener) {
  event.rank = manifest_.rank;
  event.actor = actor;
  ++counts_.events;
  if (event.spec().category == Category::about) return learn(event);
  last_event_ns_ = std::max(last_event_ns_, event.local_ns);
  if (event.type == Type::selection_changed) selection_.words = {event.number(0), event.number(1)};
  listener.event(event);
}

void LiveRank::learn(const Event& event) {
  if (event.type == Type::option) return;
  const auto number = static_cast<std::uint32_t>(event.number(0));
  switch (event.type) {
    case Type::actor:
      if (knows(number))
        actors_[number] = {.kind = static_cast<ActorKind>(event.number(1)),
                           .index = static_cast<std::uint16_t>(event.number(2)),
                           .core = static_cast<std::int32_t>(event.integer(3)),
                           .name = std::string(event.text(4)),
                           .described = true,
                           .lost_events = actors_[number].lost_events};
      break;
    case Type::site:
      if (sites_.size() <= number) sites_.resize(number + 1);
      sites_[number] = {std::string(event.text(2)), std::string(event.text(3)),
                        static_cast<std::uint32_t>(event.number(1))};
      break;
    case Type::data:
      if (data_names_.size() < kMostNames) data_names_[number] = event.text(6);
      break;
    case Type::name:
      if (names_.size() < kMostNames) names_[number] = event.text(2);
      break;
    default: break;
  }
}

}  // namespace tandem::trace
