// tandem/trace/read/live_rank.hpp: follows the events of a rank while its program runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "tandem/base/result.hpp"
#include "tandem/trace/read/live_buffers.hpp"
#include "tandem/trace/read/manifest.hpp"
#include "tandem/trace/read/reader.hpp"
#include "tandem/trace/read/record_events.hpp"
#include "tandem/trace/selection.hpp"

namespace tandem::trace {

/// Receives the events.
class LiveListener {
 public:
  virtual ~LiveListener() = default;
  /// Takes an event. Events of one actor come in order; the submission of a task usually comes before other actors'
  /// events of it. Valid during the call.
  virtual void event(const Event& event) = 0;
  /// Notes packets of an actor that were not read: left out to keep up, overwritten, or not written.
  virtual void missed(std::uint32_t actor, std::uint64_t packets) = 0;
};

struct LiveOptions {
  /// Most bytes of records that one `poll` reads; more are left out, the oldest first, in proportion for all actors.
  /// Descriptions are always read.
  std::size_t most_bytes = 8 << 20;
  std::size_t most_bytes_at_first = 256 << 20;  ///< of the first `poll`, which reads what was recorded before
};

enum class LiveState : std::uint8_t {
  running,
  elsewhere,  ///< on another host: only the files are known
  ended,      ///< the program has ended its trace
  killed,     ///< the process is gone, and the trace was not ended
  recovered,  ///< the process is gone, and the trace was recovered
};
std::string_view name_of(LiveState state) noexcept;

/// One rank of a run that runs: reads what its streams have got since the last call, from the live buffers, and from
/// the files where buffers have been flushed. The program is neither stopped nor told; reading costs it some cache
/// lines.
///
/// A packet is at each moment in a live buffer or in its file; when one is missing before a later one, both are
/// searched once more, in this order. So nothing is missed, except what was overwritten (`trace.when_full=newest`),
/// could not be written, lies in memory beyond the live file (`trace.when_full=wait`), or was left out by
/// `LiveOptions::most_bytes`.
///
/// Not thread-safe. Names may become known after the first event that uses them, and are all known when `poll` returns.
class LiveRank {
 public:
  /// Opens a rank's folder. Errors: not_found (no trace), malformed, io, unsupported (the run has ended, or was killed;
  /// the message has the remedy).
  static base::Result<std::unique_ptr<LiveRank>> open(const std::filesystem::path& folder,
                                                      const LiveOptions& options = {});

  /// Reads new events. When `state()` is no longer running, all events have been read.
  void poll(LiveListener& listener);

  LiveState state() const noexcept { return state_; }
  const Manifest& manifest() const noexcept { return manifest_; }
  const std::filesystem::path& folder() const noexcept { return folder_; }
  /// The present selection: from rank.json, and changes since.
  const Selection& selection() const noexcept { return selection_; }
  /// The time of the rank's clock; on another host by the date.
  std::int64_t now_ns() const;
  /// The time of the last event that was read; before the first, the clock's origin.
  std::int64_t last_event_ns() const noexcept { return last_event_ns_; }

  struct Actor {
    ActorKind kind = ActorKind::user;
    std::uint16_t index = 0;
    std::int32_t core = -1;
    std::string name = {};
    bool described = false;
    std::uint64_t lost_events = 0;  ///< as of its newest packet
  };
  const std::vector<Actor>& actors() const noexcept { return actors_; }
  /// Entries without a description are empty.
  const std::vector<Site>& sites() const noexcept { return sites_; }
  const std::string* data_name(std::uint32_t data) const;   ///< null: not described
  const std::string* name(std::uint32_t number) const;      ///< of a mark, a counter, a span; null: not described

  struct Counts {
    std::uint64_t events = 0;          ///< read, descriptions included
    std::uint64_t bytes = 0;
    std::uint64_t missed_packets = 0;
    std::uint64_t reused_buffers = 0;  ///< while they were read; their packets were read from files, or missed
    std::uint64_t lost_events = 0;     ///< by the program, as far as packets record it
    std::size_t buffers = 0, buffers_used = 0, buffers_full = 0;  ///< now; full ones wait for the flusher
  };
  Counts counts() const;

  /// For tests.
  LiveBuffers* buffers() noexcept { return buffers_.get(); }

 private:
  /// How far an actor's stream has been read.
  struct Cursor {
    std::uint64_t sequence = 0;  ///< of the packet that is read next, or
    std::size_t from = sizeof(PacketHeader);  ///< from this byte on
    std::uint64_t ticks = 0;     ///< of the record before that byte
    std::uint64_t file_at = 0;   ///< a packet of the file begins here; those before have been read
    std::uint64_t leave_out = 0; ///< bytes of packets to leave out before the next one is read
    bool file_is_bad = false;
  };
  /// How far an actor's events have been reported. A record that can still be completed is read again until another one
  /// follows.
  struct Told {
    internal::RecordEvents events;
    std::uint64_t sequence = UINT64_MAX;  ///< of its packet
    std::uint8_t of_open = 0;  ///< events of the record that comes next
  };
  struct Piece {
    std::uint32_t actor = 0;
    std::uint64_t sequence = 0, begin_ticks = 0;  ///< of the packet
    bool is_begin = false;     ///< its first record is that of the packet
    bool ends_open = false;    ///< its last record can still be completed
    std::vector<std::byte> bytes = {};
    std::uint64_t missed = 0;  ///< packets before it
  };
  using HeldOfActor = std::span<const LiveBuffers::Held>;
  class StreamFile;

  LiveRank() = default;
  base::Result<void> refuse_the_past();
  void connect();
  bool read_manifest_if_changed();
  bool process_is_gone() const;
  LiveState state_now();
  void read_new(LiveListener& listener, std::size_t most_bytes);
  void find_files();
  void read_catalogue(HeldOfActor held, LiveListener& listener);
  void share_out(std::span<const std::uint32_t> numbers, std::span<const LiveBuffers::Held> held,
                 std::size_t most_bytes);
  bool is_left_out(const Cursor& cursor, std::uint64_t packet_bytes) const noexcept;
  std::uint64_t backlog(std::uint32_t number, HeldOfActor held);
  bool collect(std::uint32_t number, HeldOfActor held, std::vector<Piece>& pieces);
  bool collect_from_file(std::uint32_t number, std::uint64_t until, std::vector<Piece>& pieces);
  bool copy_held(std::uint32_t number, const LiveBuffers::Held& held, std::vector<Piece>& pieces);
  void begin_packet(std::uint32_t number, std::uint64_t sequence, std::vector<Piece>& pieces);
  void deliver(std::vector<Piece>& pieces, LiveListener& listener);
  void deliver(const Piece& piece, LiveListener& listener);
  void tell(std::uint32_t actor, Event event, LiveListener& listener);
  void learn(const Event& event);
  bool knows(std::uint32_t number);

  std::filesystem::path folder_;
  std::optional<base::OwnedFolder> opened_;
  LiveOptions options_;
  LiveState state_ = LiveState::running;
  Manifest manifest_;
  std::int64_t manifest_changed_ns_ = 0;
  std::uint64_t manifest_inode_ = 0;
  std::unique_ptr<LiveBuffers> buffers_;
  std::uint32_t process_ = 0;
  bool is_here_ = false;  ///< on this host
  bool seemed_gone_ = false;
  bool first_ = true;
  Selection selection_;
  std::vector<Actor> actors_;
  std::vector<Cursor> cursors_;  ///< of each actor
  std::deque<Told> told_;        ///< of each actor; adding others does not move them
  std::vector<Site> sites_;
  std::unordered_map<std::uint32_t, std::string> data_names_, names_;
  std::int64_t last_event_ns_ = 0;
  Counts counts_;
};

}  // namespace tandem::trace
