// tandem/trace/read/reader.hpp: reads the folder of a run: its ranks and actors, and their events in order.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/base/result.hpp"
#include "tandem/clock/tsc_clock.hpp"
#include "tandem/trace/clock_point.hpp"
#include "tandem/trace/declared.hpp"
#include "tandem/trace/event.hpp"
#include "tandem/trace/packet.hpp"

namespace tandem::trace {

namespace internal {
class RecordEvents;  // record_events.hpp
}

/// One event, a view into the mapped file. Valid as long as its reader.
///
/// Fields are found by their index in the type's specification. The reader has checked that all of them are inside the
/// packet, so access cannot fail. Access to a field of another kind is an assertion failure.
///
/// A record may stand for several events (`is_compound`): they follow each other, and none has such a type.
class Event {
 public:
  Type type = Type::none;
  std::uint32_t rank = 0;
  std::uint32_t actor = 0;
  std::uint64_t ticks = 0;   ///< raw
  std::int64_t local_ns = 0;  ///< of the rank's clock

  const EventSpec& spec() const noexcept { return *spec_; }
  /// Bytes of the event's record; 0 when that record had another event before.
  std::uint32_t record_bytes() const noexcept { return record_bytes_; }
  /// The value of a field u8, u16, u32 or u64.
  std::uint64_t number(std::size_t field) const noexcept;
  /// The value of a field i32 or i64.
  std::int64_t integer(std::size_t field) const noexcept;
  double real(std::size_t field) const noexcept;
  std::string_view text(std::size_t field) const noexcept;
  /// The number of entries of a list. Entries may be unaligned, so each is copied.
  std::size_t list_size(std::size_t field) const noexcept;
  std::uint32_t list_entry(std::size_t field, std::size_t index) const noexcept;
  /// The event as text for people: "task=3 priority=-1 ...".
  std::string described() const;

 private:
  friend class internal::RecordEvents;
  const std::byte* find(std::size_t field) const noexcept;

  const EventSpec* spec_ = nullptr;
  const internal::TypeInfo* info_ = nullptr;
  const std::byte* fields_ = nullptr;
  std::uint32_t record_bytes_ = 0;
  std::uint32_t implied_task_ = 0;     ///< fields that the record does not have (`TypeInfo::implied_task`)
  std::uint16_t implied_number_ = 0;   ///< a site or a worker
};

/// Contents of an actor's stream, from its packets' headers.
struct StreamSummary {
  std::uint32_t actor = 0;
  ActorKind kind = ActorKind::user;
  std::uint16_t index = 0;
  std::int32_t core = -1;
  std::string name;
  std::uint64_t packets = 0;
  std::uint64_t records = 0;        ///< some stand for several events
  std::uint64_t lost_events = 0;    ///< from the last packet
  std::uint64_t missing_packets = 0;  ///< gaps in the sequence: overwritten, or not written
  std::uint64_t bytes = 0;
  std::uint64_t first_ticks = 0;
  std::uint64_t last_ticks = 0;
  bool truncated = false;           ///< the file ends inside a packet, whose whole records count
  std::uint64_t cut_events = 0;     ///< records of that packet behind the file's end; later packets are unknown
};

/// The events of one actor, in order. A stream's file is mapped, not copied, unless another user owns it and could cut
/// it. Read parts are unmapped, so that a long stream takes little memory; events that still refer to them find them in
/// the file.
class StreamReader {
 public:
  /// Opens a stream's file. `declared`: event types of the program; null: none. Errors: io, malformed.
  static base::Result<std::unique_ptr<StreamReader>> open(const std::filesystem::path& file, std::uint32_t rank,
                                                          const clock::TickScale& scale,
                                                          std::shared_ptr<const DeclaredTypes> declared = nullptr);
  ~StreamReader();
  StreamReader(const StreamReader&) = delete;
  StreamReader& operator=(const StreamReader&) = delete;

  const StreamSummary& summary() const noexcept { return summary_; }
  /// The next event; empty: the end. Errors (malformed): the file, the byte and the fault; no events follow.
  base::Result<std::optional<Event>> next();
  void rewind() noexcept;
  void name_actor(ActorKind kind, std::uint16_t index, std::int32_t core, std::string name);
  /// Sets the number of a file without packets, which does not contain it.
  void set_actor(std::uint32_t actor);

 private:
  StreamReader();
  base::Result<void> map();
  base::Result<void> index_packets();
  base::Result<void> enter_packet_at(std::size_t at, const PacketHeader& header);
  base::Result<void> enter_cut_packet(std::size_t at, const PacketHeader& header);
  base::Result<void> end_packet();
  void begin_packet(std::size_t packet) noexcept;
  void drop_pages(std::size_t until) noexcept;
  base::Error malformed(std::size_t at, std::string_view what) const;

  struct Packet {
    std::size_t begin = 0;  ///< of the header
    std::size_t end = 0;    ///< of the content
    std::uint64_t begin_ticks = 0;
    std::uint64_t end_ticks = 0;
    std::uint32_t events = 0;
  };
  std::filesystem::path file_;
  const std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t dropped_ = 0;  ///< bytes of the file, from its beginning, whose pages are not resident
  std::uint32_t rank_ = 0;
  clock::TickScale scale_;
  std::shared_ptr<const DeclaredTypes> declared_;
  StreamSummary summary_;
  std::vector<Packet> packets_;
  std::size_t packet_ = 0;
  std::size_t at_ = 0;
  std::size_t end_ = 0;          ///< of this packet's content
  std::unique_ptr<internal::RecordEvents> events_;  ///< of the record before `at_`
  std::uint64_t end_ticks_ = 0;  ///< of this packet
  std::uint32_t records_ = 0;    ///< already read from this packet
};

/// A place in the program.
struct Site {
  std::string codelet;
  std::string file;
  std::uint32_t line = 0;
};

/// A piece of data that was registered.
struct DataDescription {
  std::uint32_t owner = UINT32_MAX;
  std::uint64_t bytes = 0, rows = 0, cols = 0;
  std::string name;
  std::uint16_t site = 0;  ///< where it was registered: of `RankTrace::sites`
};

/// One rank's folder: its manifest, its streams, and its catalogue.
class RankTrace {
 public:
  /// Opens a rank's folder. Errors: not_found, malformed, io. Refuses the folder of a killed program that was not
  /// recovered; the message has the remedy.
  static base::Result<std::unique_ptr<RankTrace>> open(const std::filesystem::path& folder);

  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  bool complete = false;           ///< the program has ended its trace
  bool recovered = false;          ///< it was killed, and its trace was recovered
  bool unwritten = false;          ///< it ended, and could not write the end of its trace
  std::uint64_t written_events = 0;  ///< of all streams, counted by the program at the end; 0: it was killed
  std::uint64_t lost_events = 0;     ///< likewise, of lost events; a stream that lost all of its events has no file
  std::string manifest;            ///< the text of rank.json
  std::string host, program, job, commit, version;
  std::vector<std::string> arguments;  ///< of the program, after its name
  std::vector<unsigned> pus;       ///< hardware threads that the rank might run on, ascending; empty: not known
  clock::TickScale scale;          ///< of the rank's clock
  std::int64_t realtime_ns = 0;    ///< the system's date (since 1970) when the clock showed `realtime_local_ns`
  std::int64_t realtime_local_ns = 0;
  std::vector<std::unique_ptr<StreamReader>> streams;  ///< by actor, the catalogue among them

  /// Event types that the program has declared; in a run, all ranks have the same numbers.
  std::shared_ptr<DeclaredTypes> declared;

  // From the catalogue. Entries without a description are empty.
  std::vector<Site> sites;
  std::vector<std::pair<std::string, std::uint32_t>> colours;  ///< of codelets: 0xRRGGBB
  std::vector<DataDescription> data;
  std::vector<std::pair<NameKind, std::string>> names;
  std::vector<ClockPoint> clock_points;
  std::vector<std::pair<std::string, std::string>> options;

  StreamReader* stream_of(std::uint32_t actor) noexcept;
  /// Converts to rank 0's time, by the clock points.
  ReferenceLine line() const noexcept { return ReferenceLine::through(clock_points); }
  /// The path of the rank's folder.
  std::filesystem::path folder;

 private:
  friend class TraceReader;
  RankTrace() = default;
  base::Result<void> read_manifest();
  base::Result<void> refuse_unfinished() const;
  base::Result<void> open_streams();
  base::Result<void> read_catalogue();
  base::Result<void> learn(const Event& event, std::uint64_t most_numbers);
};

/// The actor whose stream this file is, by its name; empty for other files.
std::optional<std::uint32_t> actor_of_stream(const std::filesystem::path& file);
/// The folders of ranks in a run's folder, or the folder itself when it is a rank's. Errors: not_found, io.
base::Result<std::vector<std::filesystem::path>> rank_folders(const std::filesystem::path& folder);

/// A run: the folders of all ranks, in the order of ranks.
class TraceReader {
 public:
  /// Opens a run's folder, or one rank's. Errors: as for `RankTrace::open`; two ranks with one number.
  static base::Result<std::unique_ptr<TraceReader>> open(const std::filesystem::path& folder);

  std::filesystem::path folder;
  std::vector<std::unique_ptr<RankTrace>> ranks;
  RankTrace* rank_of(std::uint32_t rank) noexcept;
  /// Event types that programs of the ranks have declared, by their number minus `kFirstDeclared`.
  std::vector<const EventSpec*> declared;
  /// Types have numbers below this.
  std::size_t type_count() const noexcept { return kFirstDeclared + declared.size(); }

  /// Passes all events except descriptions, of all ranks and actors, in the order of `time_of(event)`; equal times in
  /// the order of actors. `each` returns false to stop. A stream's times should not decrease; if they do, its greatest
  /// so far is used. Errors: as for next().
  base::Result<void> in_order(const std::function<std::int64_t(const Event&)>& time_of,
                              const std::function<bool(const Event&, std::int64_t time_ns)>& each);

 private:
  void number_declared_types();
};

}  // namespace tandem::trace
