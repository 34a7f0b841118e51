// tandem/trace/session.hpp: the trace of one rank: its writers, recorded events, and files.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "tandem/base/driver.hpp"
#include "tandem/base/event_loop.hpp"
#include "tandem/base/inbox.hpp"
#include "tandem/base/log.hpp"
#include "tandem/base/result.hpp"
#include "tandem/base/spin_lock.hpp"
#include "tandem/trace/clock_point.hpp"
#include "tandem/trace/declared.hpp"
#include "tandem/trace/pool.hpp"
#include "tandem/trace/stream.hpp"
#include "tandem/trace/stream_files.hpp"
#include "tandem/trace/thread_streams.hpp"

namespace tandem::trace {

/// What happens to events when all buffers are full.
enum class WhenFull : std::uint8_t {
  lose,    ///< they are lost, and counted
  wait,    ///< the actor writes full buffers to files until it gets one
  newest,  ///< they overwrite the oldest, which are counted. Files are written at the end, or by `snapshot`
};

struct SessionOptions {
  std::filesystem::path folder;         ///< of the run; the session makes the rank's in it, which must not exist
  Selection selection = Selection::all();
  std::size_t memory_bytes = 16 << 20;  ///< of all buffers
  std::size_t buffer_bytes = 64 << 10;  ///< a multiple of 64
  WhenFull when_full = WhenFull::lose;
  bool write_early = true;              ///< false: everything stays in memory until the end
  std::filesystem::path live_folder = "/dev/shm";
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::string job = {}, program = {}, commit = {};
  std::vector<std::string> arguments = {};
  std::string cpu = {};                 ///< model
  unsigned cores = 0;
  std::vector<unsigned> pus = {};  ///< hardware threads that the rank may run on, by the operating system's numbers
  unsigned numa_nodes = 1;
  void (*bind)(void* memory, std::size_t bytes, unsigned node, void* context) = nullptr;  ///< to a NUMA node
  void* context = nullptr;
};

struct ActorSpec {
  ActorKind kind = ActorKind::user;
  std::string name;
  std::uint16_t index = 0;
  int core = -1;
  unsigned numa_node = 0;
};

/// What was recorded so far. Events in buffers that actors still fill are counted at the end.
struct SessionCounts {
  std::uint64_t events = 0;        ///< in complete packets
  std::uint64_t lost_events = 0;   ///< no buffer was free, they were overwritten, or their packet could not be written
  std::uint64_t bytes = 0;         ///< of those packets
  std::uint64_t packets = 0;
  std::uint64_t most_buffers = 0;  ///< most that were in use at once
  std::uint64_t needed_bytes = 0;  ///< memory that would have sufficed until the end
  std::uint64_t waits = 0;
  std::uint64_t write_errors = 0;
};

/// The trace of one rank: owns buffers, flusher and files; knows all streams.
///
/// Threads. Any thread may attach streams, describe, select, and emit shared events. A stream is detached or destroyed
/// before its session. `close` detaches the remaining streams; their actors must have stopped writing. The flusher is a
/// steppable on a thread of its own, or in the event loop that `open` got. Only the flusher writes files, except with
/// `WhenFull::wait`, where actors that wait for a buffer write, too.
///
/// Invariants: 1. once it is closed, events emitted = events in files + events counted as lost. 2. Events that were
/// emitted 100 ms before the process is killed can be recovered, except lost ones (`recover.hpp`). 3. No probe waits,
/// except with `WhenFull::wait`.
class Session {
 public:
  /// Opens a session. `clock` is the clock that the probes read; it outlives the session. `loop` steps the flusher;
  /// null: it gets a thread. Errors: io, exhausted, invalid_argument (the rank's folder exists; the message has the
  /// remedy).
  static base::Result<std::unique_ptr<Session>> open(const SessionOptions& options, const clock::Clock& clock,
                                                     base::Log& log, base::EventLoop* loop = nullptr);
  ~Session();  ///< closes the session if it is open
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Makes `stream`, which must not be attached, write to this session from now on. Its actor may be running.
  void attach(Stream& stream, const ActorSpec& spec);

  // --- what is recorded
  void select(const Selection& selection);
  Selection selection() const;
  /// Between the two calls nothing is flushed, even if buffers run out. Calls nest.
  void begin_quiet();
  void end_quiet();

  // --- descriptions; any thread
  std::uint32_t name(NameKind kind, std::string_view text);
  std::uint16_t site(std::string_view codelet, std::string_view file, std::uint32_t line);
  struct DataFacts {
    std::uint32_t data = 0, owner = UINT32_MAX;
    std::uint64_t bytes = 0, rows = 0, cols = 0;
    std::string_view name, file;
    std::uint32_t line = 0;
  };
  void describe(const DataFacts& facts);
  void describe_task(std::uint32_t task, std::string_view name);
  /// Describes the colour of a codelet, 0xRRGGBB. The first one of a name counts.
  void describe_colour(std::string_view codelet, std::uint32_t rgb);
  void describe_option(std::string_view name, std::string_view value, std::string_view source);
  void describe(const ClockPoint& point);
  /// Sets the date minus rank 0's clock, so that other tools show one date for all ranks of a run.
  void set_reference_date(std::int64_t offset_ns);
  /// The date at which this rank's clock shows 0, according to this machine; nanoseconds since 1970.
  std::int64_t date_offset_ns() const noexcept { return realtime_ns_ - realtime_local_ns_; }

  /// Makes the flusher call `call` about every `period_ns`, unless an event loop steps it. A new `call` replaces the
  /// last one, which no longer runs when this returns. Empty: no call. Any thread except the flusher's.
  void every(std::int64_t period_ns, std::function<void()> call);

  /// Declares an event type of the program. When this returns, rank.json and CTF's metadata describe it, so that the
  /// trace of a killed program can be read. Any thread. Errors: as for `DeclaredTypes::add`.
  base::Result<Type> declare(std::string_view name, std::span<const DeclaredTypes::FieldName> fields);

  // --- threads of the program
  /// The calling thread's stream: attached at the first call, detached when the thread ends or the session is closed.
  /// `name` empty: the system's name of the thread. Null: the thread is ending. Any thread.
  Stream* stream_of_this_thread(std::string_view name = {}) { return thread_streams_.of_this_thread(name); }
  /// Whether events of this type that have no stream are recorded.
  template <Type... T>
  bool shares() const noexcept {
    return others_.any_on<T...>();
  }
  /// Records an event of a thread that has no stream; takes a lock.
  template <Type T, class... Fields>
  void emit_shared(Fields... fields) {
    if (!others_.any_on<T>()) return;
    const std::lock_guard guard(others_lock_);
    others_.emit<T>(fields...);
  }
  template <class... Values>
  void emit_declared_shared(Type type, const Values&... values) {
    if (!others_.any_on<Type::declared>()) return;
    const std::lock_guard guard(others_lock_);
    others_.emit_declared(type, values...);
  }

  // --- the end
  /// Writes the events in memory into a new folder beside the run's, and returns its path: for `WhenFull::newest`.
  /// Errors: io, exhausted.
  base::Result<std::filesystem::path> snapshot();
  /// Turns all streams off and writes everything. No probe of an attached stream may be running.
  SessionCounts close();
  SessionCounts counts() const;
  const std::filesystem::path& rank_folder() const noexcept { return rank_folder_; }

 private:
  friend class Stream;

  /// Steps the flusher.
  class Flusher final : public base::Steppable {
   public:
    explicit Flusher(Session& session) : session_(session) {}
    std::int64_t step(std::int64_t now_ns) override { return session_.flush_step(now_ns); }

   private:
    Session& session_;
  };
  struct Actor {
    std::string name;
    Stream* stream = nullptr;                    ///< null: it is detached
    std::uint64_t lost_at_end = 0;               ///< then: number of its lost events,
    std::uint64_t packets_at_end = 0;            ///< and of its packets
    std::atomic<std::uint64_t> dropped{0};  ///< events in its packets that were overwritten or could not be written
  };

  Session(const SessionOptions& options, const clock::Clock& clock, base::Log& log);
  base::Result<void> prepare(base::EventLoop* loop);
  base::Result<void> make_folders(const std::filesystem::path& run_folder);

  // Operations on streams.
  bool renew(Stream& stream, std::uint64_t ticks) noexcept;
  Buffer* find_buffer(Stream& stream) noexcept;
  Buffer* wait_for_buffer(unsigned numa_node) noexcept;
  Buffer* overwrite_oldest() noexcept;
  void complete(Stream& stream, Buffer& buffer) noexcept;
  void let_go(Stream& stream) noexcept;

  std::int64_t flush_step(std::int64_t now_ns);
  std::int64_t call_what_is_due(std::int64_t now_ns);
  std::size_t flush(bool quietly);
  void write_out(Buffer& buffer, bool quietly);
  void note_losses(PacketHeader& header) noexcept;
  void turn(Stream& stream, const Selection& selection) noexcept;
  template <class... Parts>
  void describe_as(Type type, const Parts&... parts);
  /// State of a trace: begun, ended by its program, or gathered from live buffers.
  enum class Written { begun, ended, gathered };
  bool write_manifest(const base::OwnedFolder& own, Written written);  ///< false: it could not, and has logged why
  /// Notes that the end of the trace could not be written, on a full disk for instance.
  void mark_unwritten();
  std::string manifest(Written written) const;
  Actor& actor(std::uint32_t number) noexcept;
  void write_metadata();
  clock::TickScale tick_scale() const noexcept;

  const SessionOptions options_;
  const clock::Clock& clock_;
  const clock::Clock* const probes_clock_;  ///< null: the TSC
  base::Log& log_;
  std::filesystem::path rank_folder_;
  std::optional<base::OwnedFolder> folder_, own_;  ///< the rank's folder, and `own_folder` in it
  std::int64_t realtime_ns_ = 0, realtime_local_ns_ = 0;
  std::unique_ptr<BufferPool> pool_;
  base::Inbox<Buffer> full_;

  mutable std::mutex mutex_;  ///< guards what follows up to the next one
  std::vector<std::unique_ptr<Actor>> actors_;
  Selection selection_;
  std::vector<ClockPoint> clock_points_;
  std::optional<std::int64_t> reference_date_ns_;

  std::mutex describe_mutex_;  ///< guards what follows
  Stream catalogue_;
  std::string record_;
  std::map<std::pair<NameKind, std::string>, std::uint32_t, std::less<>> names_;
  std::map<std::tuple<std::string, std::string, std::uint32_t>, std::uint16_t> sites_;
  std::set<std::string, std::less<>> coloured_;  ///< codelets

  std::mutex declare_mutex_;  ///< serialises declarations and the files that describe them
  DeclaredTypes declared_;

  base::SpinLock others_lock_;
  Stream others_;
  ThreadStreams thread_streams_{*this};

  unsigned snapshots_ = 0;      ///< used by the thread that takes them
  std::mutex newest_mutex_;
  std::deque<Buffer*> newest_;  ///< `WhenFull::newest`: complete buffers, oldest first

  std::mutex flush_mutex_;      ///< serialises flushes; guards the files, the flusher's stream and its spare buffer
  std::unique_ptr<StreamFiles> files_;
  Stream flusher_stream_;
  Buffer* spare_ = nullptr;     ///< `WhenFull::wait`: reserved for the flusher; null while the flusher uses it
  std::int64_t period_ns_ = 10'000'000;
  bool error_logged_ = false;

  std::mutex every_mutex_;      ///< held while it is called; guards what follows
  std::function<void()> every_;
  std::int64_t every_ns_ = 0, every_due_ns_ = 0;

  bool closed_ = false;         ///< used by the thread that closes
  std::atomic<int> quiet_{0};
  std::atomic<std::uint64_t> events_{0}, lost_{0}, bytes_{0}, packets_{0}, waits_{0}, write_errors_{0};
  std::atomic<std::uint64_t> in_use_{0}, most_in_use_{0};

  Flusher flusher_{*this};
  base::EventLoop* loop_ = nullptr;
  base::Waker* waker_ = nullptr;      ///< of the flusher, in an event loop; null: it steps by itself
  std::unique_ptr<base::Driver> thread_;
};

}  // namespace tandem::trace
