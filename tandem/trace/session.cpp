// tandem/trace/session.cpp: opens a trace, attaches its streams, hands their buffers on, and closes it.
#include "tandem/trace/session.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>

#include "tandem/base/thread_driver.hpp"
#include "tandem/trace/layout.hpp"
#include "tandem/trace/live.hpp"
#include "tandem/trace/read/record.hpp"
#include "tandem/trace/recover.hpp"

namespace tandem::trace {

namespace fs = std::filesystem;
using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

constexpr std::int64_t kLeastPeriodNs = 1'000'000;
constexpr std::int64_t kMostPeriodNs = 50'000'000;
constexpr std::size_t kLongestText = 4096;
constexpr std::size_t kMostMetadataBytes = std::size_t{64} << 20;
constexpr unsigned kMostYields = 1'000;  ///< for a buffer, before one is made

void raise_to(std::atomic<std::uint64_t>& most, std::uint64_t value) noexcept {
  std::uint64_t known = most.load(std::memory_order_relaxed);
  while (known < value && !most.compare_exchange_weak(known, value, std::memory_order_relaxed)) {
  }
}

void append(std::string& record, std::string_view text) {
  record.append(text.substr(0, std::min(text.find('\0'), kLongestText)));
  record.push_back('\0');
}

template <class Number>
  requires std::is_arithmetic_v<Number>
void append(std::string& record, Number number) {
  record.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

const clock::Clock* clock_of_probes(const clock::Clock& clock) noexcept {
#if defined(__x86_64__)
  if (dynamic_cast<const clock::TscClock*>(&clock) != nullptr) return nullptr;
#endif
  return &clock;
}

}  // namespace

Session::Session(const SessionOptions& options, const clock::Clock& clock, base::Log& log)
    : options_(options), clock_(clock), probes_clock_(clock_of_probes(clock)), log_(log), selection_(options.selection) {}

Result<std::unique_ptr<Session>> Session::open(const SessionOptions& options, const clock::Clock& clock, base::Log& log,
                                                     base::EventLoop* loop) {
  std::unique_ptr<Session> session(new Session(options, clock, log));
  if (auto prepared = session->prepare(loop); !prepared) {
    session->closed_ = true;
    return prepared.error();
  }
  return session;
}

Result<void> Session::prepare(base::EventLoop* loop) {
  if (options_.buffer_bytes < 2 * kLongestText || options_.buffer_bytes % 64 != 0 || options_.buffer_bytes > (1u << 30))
    return Error{ErrorCode::invalid_argument,
                       fmt::format("a trace's buffers of {} bytes: they take a multiple of 64, from {} bytes to 1 GiB",
                                   options_.buffer_bytes, 2 * kLongestText)};
  if (options_.memory_bytes / options_.buffer_bytes >= LivePage::most_buffers)
    return Error{ErrorCode::invalid_argument,
                 fmt::format("a trace's memory of {} bytes in buffers of {}: at most {} buffers", options_.memory_bytes,
                             options_.buffer_bytes, LivePage::most_buffers)};
  std::error_code failed;
  const fs::path run_folder = fs::absolute(options_.folder, failed);
  fs::create_directories(run_folder, failed);
  if (auto made = make_folders(run_folder); !made) return made;
  BufferPool::Options pool_options{.buffer_bytes = options_.buffer_bytes,
                                   .count = static_cast<std::uint32_t>(
                                       std::max<std::size_t>(options_.memory_bytes / options_.buffer_bytes, 4) +
                                       (options_.when_full == WhenFull::wait ? 1 : 0)),
                                   .live_folder = options_.live_folder,
                                   .rank_folder = rank_folder_.string(),
                                   .numa_nodes = options_.numa_nodes,
                                   .bind = options_.bind,
                                   .context = options_.context};
  auto pool = BufferPool::make(pool_options);
  if (!pool) {
    fs::remove_all(rank_folder_, failed);
    return pool.error();
  }
  pool_ = std::move(pool).value();
  if (options_.when_full == WhenFull::wait) spare_ = pool_->take(0);
  files_ = std::make_unique<StreamFiles>(*folder_);
  realtime_local_ns_ = clock_.now_ns();
  realtime_ns_ =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  write_metadata();
  write_manifest(*own_, Written::begun);
  if (const auto linked = own_->make_link(live_name, fs::absolute(pool_->live_file(), failed)); !linked)
    log_.warn("a killed program's trace could not be recovered: {}", linked.error().message);

  attach(catalogue_, {.kind = ActorKind::catalogue, .name = "catalogue"});
  attach(others_, {.kind = ActorKind::others, .name = "other threads"});
  attach(flusher_stream_, {.kind = ActorKind::flusher, .name = "flusher"});
  if (loop != nullptr) {
    loop_ = loop;
    waker_ = &loop->add(flusher_, {});
  } else {
    thread_ = std::make_unique<base::ThreadDriver>([this] { return clock_.now_ns(); }, [](int) {});
    thread_->add(flusher_, {.core = -1, .name = "tandem-trace"}).wake();
  }
  return {};
}

/// The owner of the run's folder can exchange its content: the rank's folder must be ours when it is open, and all else
/// goes into that one.
Result<void> Session::make_folders(const fs::path& run_folder) {
  const std::string name = rank_folder_name(options_.rank);
  rank_folder_ = run_folder / name;
  std::error_code failed;
  if (!fs::create_directory(rank_folder_, failed)) {
    if (!failed)
      return Error{ErrorCode::invalid_argument,
                         fmt::format("{} exists: a trace would be mixed with another one; name another folder by "
                                     "--tandem.trace.folder, or remove this one",
                                     rank_folder_.string())};
    return Error{ErrorCode::io, fmt::format("cannot make the trace's folder {}: {}", rank_folder_.string(),
                                                        failed.message())};
  }
  const auto run = base::OwnedFolder::open(run_folder, base::Owners::anyone);
  if (!run) return run.error();
  auto rank = run.value().folder(name, base::Owners::self);
  if (!rank) return Error{rank.error().code, rank.error().message + "; name another folder by --tandem.trace.folder"};
  folder_ = std::move(rank).value();
  auto own = folder_->make_folder(own_folder);
  if (!own) return own.error();
  own_ = std::move(own).value();
  return {};
}

Session::~Session() { close(); }

void Session::attach(Stream& stream, const ActorSpec& spec) {
  std::uint32_t actor = 0;
  {
    const std::lock_guard guard(mutex_);
    TANDEM_ASSERT(!stream.attached());
    actor = static_cast<std::uint32_t>(actors_.size());
    actors_.push_back(std::make_unique<Actor>());
    actors_.back()->stream = &stream;
    actors_.back()->name = spec.name;
    stream.actor_ = actor;
    stream.numa_node_ = spec.numa_node;
    stream.clock_ = probes_clock_;
    stream.last_ = stream.read_clock();
    stream.instant_ = stream.last_event_ = stream.last_;
    stream.sequence_ = stream.lost_ = stream.lost_reported_ = stream.waited_ns_ = 0;  // from the previous session
    stream.session_.store(this, std::memory_order_release);
    turn(stream, selection_);
  }
  describe_as(Type::actor, actor, static_cast<std::uint8_t>(spec.kind), spec.index,
              static_cast<std::int32_t>(spec.core), std::string_view(spec.name));
}

/// Records changes whatever is selected, since a reader must know whether events were left out for a time.
void Session::turn(Stream& stream, const Selection& selection) noexcept {
  Selection on = selection;
  if (!on.empty()) on.add(Type::selection_changed);
  for (std::size_t i = 0; i < on.words.size(); ++i) stream.on_[i].store(on.words[i], std::memory_order_release);
}

void Session::select(const Selection& selection) {
  const auto record_change = [&] { emit_shared<Type::selection_changed>(selection.words[0], selection.words[1]); };
  if (selection.empty()) record_change();  // before all types are off
  {
    const std::lock_guard guard(mutex_);
    selection_ = selection;
    if (!selection_.empty())
      for (std::size_t i = 0; i < selection_.words.size(); ++i)
        selection_.words[i] |= Selection::of(Category::about).words[i];
    for (const auto& actor : actors_)
      if (actor->stream != nullptr) turn(*actor->stream, selection_);
  }
  if (!selection.empty()) record_change();
}

Selection Session::selection() const {
  const std::lock_guard guard(mutex_);
  return selection_;
}

void Session::begin_quiet() {
  quiet_.fetch_add(1, std::memory_order_relaxed);
  emit_shared<Type::quiet_began>();
}

void Session::end_quiet() {
  emit_shared<Type::quiet_ended>();
  quiet_.fetch_sub(1, std::memory_order_relaxed);
  if (waker_ != nullptr) waker_->wake();
}

// --- of streams

/// Hands over the stream's buffer and gives it another one. False: none is free.
bool Session::renew(Stream& stream, std::uint64_t ticks) noexcept {
  if (stream.buffer_ != nullptr) complete(stream, *stream.buffer_);
  Buffer* const buffer = find_buffer(stream);
  if (buffer == nullptr) return false;
  raise_to(most_in_use_, in_use_.fetch_add(1, std::memory_order_relaxed) + 1);
  // Readers of the memory see that `magic` is 0 before they see anything of the new packet; pairs with
  // `LiveBuffers::copy`.
  std::atomic_thread_fence(std::memory_order_release);
  PacketHeader header;
  header.magic = 0;
  header.actor = stream.actor_;
  header.begin_ticks = header.end_ticks = ticks;
  header.sequence = stream.sequence_++;
  header.lost_events = stream.lost_;
  std::memcpy(buffer->memory, &header, sizeof(header));
  std::memset(buffer->memory + sizeof(header), 0, RecordHeader::compact_bytes);
  std::atomic_ref<std::uint32_t>(buffer->header().magic).store(PacketHeader::ctf_magic, std::memory_order_release);
  stream.buffer_ = buffer;
  stream.at_ = buffer->memory + sizeof(PacketHeader);
  stream.end_ = buffer->memory + pool_->buffer_bytes() - RecordHeader::compact_bytes;
  stream.last_ = stream.last_event_ = ticks;
  return true;
}

Buffer* Session::find_buffer(Stream& stream) noexcept {
  if (Buffer* const buffer = pool_->take(stream.numa_node_)) return buffer;
  if (options_.when_full == WhenFull::newest) return overwrite_oldest();
  if (&stream == &flusher_stream_) {  // it must not wait for itself
    if (spare_ != nullptr || options_.when_full != WhenFull::wait) return std::exchange(spare_, nullptr);
    return pool_->take_beyond();
  }
  const bool waits = options_.when_full == WhenFull::wait || &stream == &catalogue_;  // names are few and needed
  if (!waits) return nullptr;
  const std::int64_t begin_ns = clock_.now_ns();
  Buffer* const buffer = wait_for_buffer(stream.numa_node_);
  stream.waited_ns_ += static_cast<std::uint64_t>(clock_.now_ns() - begin_ns);
  return buffer;
}

/// Writes buffers that other actors have handed over until one is free. Null: none became free, and events may be lost,
/// or no memory is left.
Buffer* Session::wait_for_buffer(unsigned numa_node) noexcept {
  waits_.fetch_add(1, std::memory_order_relaxed);
  for (unsigned attempt = 0; attempt < kMostYields; ++attempt) {
    flush(true);
    if (Buffer* const buffer = pool_->take(numa_node)) return buffer;
    if (options_.when_full != WhenFull::wait) return nullptr;
    std::this_thread::yield();  // streams hold all buffers; one of them may be about to hand one over
  }
  // Other streams may keep all buffers for ever, and wait for this thread. There are at most as many buffers beyond as
  // streams.
  return pool_->take_beyond();
}

Buffer* Session::overwrite_oldest() noexcept {
  const std::lock_guard guard(newest_mutex_);
  if (newest_.empty()) return nullptr;
  Buffer* const oldest = newest_.front();
  newest_.pop_front();
  const PacketHeader& header = oldest->header();
  actor(header.actor).dropped.fetch_add(header.event_count, std::memory_order_relaxed);
  lost_.fetch_add(header.event_count, std::memory_order_relaxed);
  events_.fetch_sub(header.event_count, std::memory_order_relaxed);
  bytes_.fetch_sub(oldest->content_bytes, std::memory_order_relaxed);
  in_use_.fetch_sub(1, std::memory_order_relaxed);
  std::atomic_ref<std::uint32_t>(oldest->header().magic).store(0, std::memory_order_release);
  return oldest;
}

/// Makes the stream's buffer a complete packet and hands it over; then the stream has none.
void Session::complete(Stream& stream, Buffer& buffer) noexcept {
  buffer.content_bytes = static_cast<std::uint32_t>(stream.at_ - buffer.memory);
  PacketHeader& header = buffer.header();
  header.end_ticks = stream.last_event();
  header.lost_events = stream.lost_;
  header.event_count = stream.count_;
  header.packet_bits = std::uint64_t{buffer.content_bytes} * 8;
  // CTF's readers would read bytes after the last record as another record.
  std::size_t end = buffer.content_bytes;
  if (stream.count_ > 0) {
    internal::Record last;
    const auto at = static_cast<std::size_t>(reinterpret_cast<const std::byte*>(stream.last_record_) - buffer.memory);
    internal::decode(buffer.memory, at, end, *stream.last_record_, 0, declared_, &last);
    end = last.end;
  }
  const std::uint64_t content_bits = std::uint64_t{end} * 8;
  std::atomic_ref<std::uint64_t>(header.content_bits).store(content_bits, std::memory_order_release);
  events_.fetch_add(stream.count_, std::memory_order_relaxed);
  bytes_.fetch_add(buffer.content_bytes, std::memory_order_relaxed);
  packets_.fetch_add(1, std::memory_order_relaxed);
  stream.buffer_ = nullptr;
  stream.at_ = stream.end_ = nullptr;
  stream.last_record_ = nullptr;
  stream.open_key_ = stream.mark_ = Stream::kNone;
  stream.count_ = 0;
  if (options_.when_full == WhenFull::newest) {
    const std::lock_guard guard(newest_mutex_);
    newest_.push_back(&buffer);
  } else {
    full_.put(&buffer);
    if (waker_ != nullptr) waker_->wake();
  }
}

/// Detaches the stream and hands over its last buffer. Its actor does not write.
void Session::let_go(Stream& stream) noexcept {
  turn(stream, Selection::none());
  // No packet has recorded yet what was lost since the last one.
  if (stream.buffer_ == nullptr && stream.lost_ != stream.lost_reported_) renew(stream, stream.last_event());
  if (stream.buffer_ != nullptr) complete(stream, *stream.buffer_);
  lost_.fetch_add(stream.lost_, std::memory_order_relaxed);
  {
    const std::lock_guard guard(mutex_);
    Actor& gone = *actors_[stream.actor_];
    gone.stream = nullptr;
    gone.lost_at_end = stream.lost_;
    gone.packets_at_end = stream.sequence_;
  }
  stream.session_.store(nullptr, std::memory_order_release);
}

Session::Actor& Session::actor(std::uint32_t number) noexcept {
  const std::lock_guard guard(mutex_);
  return *actors_[number];
}

// --- flushing

std::int64_t Session::flush_step(std::int64_t now_ns) {
  const bool now =
      options_.write_early && options_.when_full != WhenFull::newest && quiet_.load(std::memory_order_relaxed) == 0;
  const std::size_t written = now ? flush(false) : 0;
  if (waker_ != nullptr) return base::kNever;
  // The period adapts so that at most an eighth of the buffers waits.
  if (written * 8 > pool_->count()) period_ns_ = std::max(period_ns_ / 2, kLeastPeriodNs);
  else if (written * 32 < pool_->count()) period_ns_ = std::min(period_ns_ * 2, kMostPeriodNs);
  return std::min(now_ns + period_ns_, call_what_is_due(now_ns));
}

/// Returns when the next call is due.
std::int64_t Session::call_what_is_due(std::int64_t now_ns) {
  const std::lock_guard guard(every_mutex_);
  if (!every_) return base::kNever;
  if (now_ns >= every_due_ns_) {
    every_();
    every_due_ns_ = now_ns + every_ns_;
  }
  return every_due_ns_;
}

void Session::every(std::int64_t period_ns, std::function<void()> call) {
  const std::lock_guard guard(every_mutex_);
  every_ = std::move(call);
  every_ns_ = period_ns;
  every_due_ns_ = clock_.now_ns() + period_ns;
}

/// Writes the buffers that were handed over; returns their number. `quietly`: emits no events.
std::size_t Session::flush(bool quietly) {
  const std::lock_guard guard(flush_mutex_);
  std::size_t written = 0;
  for (Buffer* buffer = full_.take_all_in_order(); buffer != nullptr; ++written) {
    Buffer* const next = buffer->next;
    write_out(*buffer, quietly);
    buffer = next;
  }
  return written;
}

void Session::write_out(Buffer& buffer, bool quietly) {
  PacketHeader& header = buffer.header();
  const std::uint32_t actor = header.actor;
  note_losses(header);
  if (!quietly) flusher_stream_.emit<Type::flush_began>(actor, buffer.content_bytes);
  if (auto added = files_->add(actor, {buffer.memory, buffer.content_bytes}); !added) {
    write_errors_.fetch_add(1, std::memory_order_relaxed);
    this->actor(actor).dropped.fetch_add(header.event_count, std::memory_order_relaxed);
    lost_.fetch_add(header.event_count, std::memory_order_relaxed);
    events_.fetch_sub(header.event_count, std::memory_order_relaxed);
    bytes_.fetch_sub(buffer.content_bytes, std::memory_order_relaxed);
    if (!std::exchange(error_logged_, true))
      log_.error("{}; what cannot be written is counted as lost", added.error().message);
  }
  in_use_.fetch_sub(1, std::memory_order_relaxed);
  if (options_.when_full == WhenFull::wait && spare_ == nullptr) {
    BufferPool::clear(buffer);
    spare_ = &buffer;
  } else {
    pool_->give_back(buffer);
  }
  if (!quietly) flusher_stream_.emit<Type::flush_ended>(actor);
}

/// Adds the losses that the actor did not know: overwritten events and, in the last packet, events lost after it.
void Session::note_losses(PacketHeader& header) noexcept {
  const std::lock_guard guard(mutex_);
  const Actor& actor = *actors_[header.actor];
  if (actor.stream == nullptr && header.sequence + 1 == actor.packets_at_end) header.lost_events = actor.lost_at_end;
  header.lost_events += actor.dropped.load(std::memory_order_relaxed);
}

// --- descriptions

template <class... Parts>
void Session::describe_as(Type type, const Parts&... parts) {
  const std::lock_guard guard(describe_mutex_);
  record_.clear();
  (append(record_, parts), ...);
  if (!catalogue_.attached()) return;
  const Stream::Open record = catalogue_.open(type, catalogue_.last_, record_.size());
  if (record.fields == nullptr) return;
  std::memcpy(record.fields, record_.data(), record_.size());
  catalogue_.publish(record);
}

std::uint32_t Session::name(NameKind kind, std::string_view text) {
  std::uint32_t number = 0;
  {
    const std::lock_guard guard(describe_mutex_);
    const auto [entry, fresh] =
        names_.try_emplace({kind, std::string(text)}, static_cast<std::uint32_t>(names_.size()));
    number = entry->second;
    if (!fresh) return number;
  }
  describe_as(Type::name, number, static_cast<std::uint8_t>(kind), text);
  return number;
}

std::uint16_t Session::site(std::string_view codelet, std::string_view file, std::uint32_t line) {
  constexpr std::size_t most = UINT16_MAX;
  std::uint16_t number = 0;
  {
    const std::lock_guard guard(describe_mutex_);
    std::tuple key{std::string(codelet), std::string(file), line};
    if (const auto known = sites_.find(key); known != sites_.end()) return known->second;
    if (sites_.size() == most) return static_cast<std::uint16_t>(most);
    number = static_cast<std::uint16_t>(sites_.size());
    sites_.emplace(std::move(key), number);
  }
  describe_as(Type::site, number, line, codelet, file);
  return number;
}

void Session::describe(const DataFacts& facts) {
  const auto saturated = [](std::uint64_t count) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(count, UINT32_MAX));
  };
  describe_as(Type::data, facts.data, facts.owner, facts.bytes, saturated(facts.rows), saturated(facts.cols),
              site("", facts.file, facts.line), facts.name);
}

void Session::describe_task(std::uint32_t task, std::string_view name) { describe_as(Type::task_name, task, name); }

void Session::describe_colour(std::string_view codelet, std::uint32_t rgb) {
  {
    const std::lock_guard guard(describe_mutex_);
    if (!coloured_.emplace(codelet).second) return;
  }
  describe_as(Type::codelet_colour, codelet, rgb);
}

void Session::describe_option(std::string_view name, std::string_view value, std::string_view source) {
  describe_as(Type::option, name, value, source);
}

void Session::describe(const ClockPoint& point) {
  {
    const std::lock_guard guard(mutex_);
    clock_points_.push_back(point);
  }
  describe_as(Type::clock_point, static_cast<std::uint8_t>(point.kind), point.local_ns, point.reference_ns,
              point.error_ns, point.late_ns);
}

void Session::set_reference_date(std::int64_t offset_ns) {
  const std::lock_guard guard(mutex_);
  reference_date_ns_ = offset_ns;
}

Result<Type> Session::declare(std::string_view name, std::span<const DeclaredTypes::FieldName> fields) {
  const std::lock_guard guard(declare_mutex_);
  const std::size_t before = declared_.size();
  const auto type = declared_.add(name, fields);
  if (!type || declared_.size() == before) return type;
  write_metadata();
  write_manifest(*own_, Written::begun);
  emit_shared<Type::declared>(static_cast<std::uint32_t>(type.value()));
  return type;
}

// --- the end

Result<fs::path> Session::snapshot() {
  fs::path folder;
  std::error_code failed;
  do folder = rank_folder_.parent_path().string() + "-snapshot-" + std::to_string(++snapshots_);
  while (fs::exists(folder / rank_folder_.filename(), failed));
  const fs::path rank_folder = folder / rank_folder_.filename();
  fs::create_directories(rank_folder, failed);
  if (failed)
    return Error{ErrorCode::io,
                 fmt::format("cannot make the snapshot's folder {}: {}", rank_folder.string(), failed.message())};
  const auto run = base::OwnedFolder::open(folder, base::Owners::anyone);
  if (!run) return run.error();
  const auto rank = run.value().folder(rank_folder.filename().string(), base::Owners::self);
  if (!rank) return rank.error();
  const auto own = rank.value().make_folder(own_folder);
  if (!own) return own.error();
  // No buffer is overwritten meanwhile: new events are lost instead.
  const std::lock_guard guard(newest_mutex_);
  StreamFiles files(rank.value());
  std::vector<std::byte> packet;
  for (const LivePacket& live : collect_live(pool_->live_memory(), declared_)) {
    packet.assign(live.header.packet_bits / 8, std::byte{0});
    std::memcpy(packet.data(), &live.header, sizeof(live.header));
    std::memcpy(packet.data() + sizeof(live.header), live.content, live.content_bytes());
    if (auto added = files.add(live.header.actor, packet); !added) return added.error();
  }
  const auto metadata = folder_->file(metadata_file, O_RDONLY);
  const auto text = metadata ? metadata.value().text(kMostMetadataBytes) : Result<std::string>(metadata.error());
  if (text) (void)rank.value().replace(metadata_file, text.value()).ok();  // recovery makes it from the manifest
  write_manifest(own.value(), Written::gathered);
  return folder;
}

SessionCounts Session::close() {
  if (std::exchange(closed_, true)) return counts();
  // The flusher stops first: from here on only this thread writes files.
  if (thread_ != nullptr) thread_->stop();
  if (loop_ != nullptr) loop_->remove(flusher_);
  waker_ = nullptr;
  thread_streams_.detach_all();
  std::vector<Stream*> streams;
  {
    const std::lock_guard guard(mutex_);
    for (const auto& actor : actors_)
      if (actor->stream != nullptr) streams.push_back(actor->stream);
  }
  for (Stream* const stream : streams)
    if (stream != &flusher_stream_) let_go(*stream);
  let_go(flusher_stream_);
  for (Buffer* const buffer : newest_) full_.put(buffer);
  newest_.clear();
  flush(true);
  write_metadata();
  if (!write_manifest(*own_, Written::ended)) mark_unwritten();
  (void)own_->remove(live_name).ok();  // a dangling link is none
  const SessionCounts counted = counts();
  if (counted.lost_events > 0)
    log_.warn("trace {}: {} of {} events were lost; --tandem.trace.memory={}MiB would have kept them all",
              rank_folder_.string(), counted.lost_events, counted.events + counted.lost_events,
              (counted.needed_bytes >> 20) + 1);
  pool_.reset();
  return counted;
}

SessionCounts Session::counts() const {
  SessionCounts counts;
  counts.events = events_.load(std::memory_order_relaxed);
  counts.lost_events = lost_.load(std::memory_order_relaxed);
  counts.bytes = bytes_.load(std::memory_order_relaxed);
  counts.packets = packets_.load(std::memory_order_relaxed);
  counts.most_buffers = most_in_use_.load(std::memory_order_relaxed);
  counts.waits = waits_.load(std::memory_order_relaxed);
  counts.write_errors = write_errors_.load(std::memory_order_relaxed);
  // Lost events are assumed to be as large as the others. Packets already count those that were overwritten, or could
  // not be written.
  const bool unseen = options_.when_full != WhenFull::newest && counts.write_errors == 0 && counts.events > 0;
  const double lost_bytes = unseen ? static_cast<double>(counts.lost_events) * static_cast<double>(counts.bytes) /
                                         static_cast<double>(counts.events)
                                   : 0;
  counts.needed_bytes = (counts.packets + 1) * options_.buffer_bytes + static_cast<std::uint64_t>(lost_bytes);
  return counts;
}

clock::TickScale Session::tick_scale() const noexcept {
  if (probes_clock_ == nullptr) return static_cast<const clock::TscClock&>(clock_).scale();
  return {.origin_ticks = 0, .origin_ns = 0, .multiplier = std::int64_t{1} << 32};
}

}  // namespace tandem::trace
