// tandem/trace/read/test_support.hpp: writes packets, streams, folders and live files for tests, by FORMAT.md alone.
#pragma once

#include <unistd.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tandem/trace/declared.hpp"
#include "tandem/trace/event.hpp"
#include "tandem/trace/layout.hpp"
#include "tandem/trace/live.hpp"
#include "tandem/trace/metadata.hpp"
#include "tandem/trace/packet.hpp"

namespace tandem::trace::test {

/// A folder for one test, removed by the destructor.
class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tandem_trace_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder can be made");
    path_ = name;
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

inline void write_file(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}
inline std::string read_file(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

/// The value of a field.
struct Value {
  Value(std::integral auto value) : number(static_cast<std::uint64_t>(value)) {}
  Value(double value) : real(value) {}
  Value(const char* value) : text(value) {}
  Value(std::vector<std::uint32_t> value) : list(std::move(value)) {}

  std::uint64_t number = 0;
  double real = 0;
  std::string text;
  std::vector<std::uint32_t> list;
};

/// Bytes that are aligned like live memory, unlike a string's.
class AlignedBytes {
 public:
  explicit AlignedBytes(const std::string& bytes) : words_((bytes.size() + 7) / 8), size_(bytes.size()) {
    put(0, bytes);
  }
  std::span<const std::byte> bytes() const { return {reinterpret_cast<const std::byte*>(words_.data()), size_}; }
  void put(std::size_t at, const std::string& bytes) {
    if (!bytes.empty()) std::memcpy(reinterpret_cast<char*>(words_.data()) + at, bytes.data(), bytes.size());
  }

 private:
  std::vector<std::uint64_t> words_;
  std::size_t size_;
};

/// Makes one packet, record by record.
class PacketWriter {
 public:
  PacketWriter(std::uint32_t actor, std::uint64_t sequence, std::uint64_t begin_ticks, std::uint64_t lost_events = 0)
      : ticks_(begin_ticks) {
    header_.actor = actor;
    header_.sequence = sequence;
    header_.begin_ticks = begin_ticks;
    header_.lost_events = lost_events;
  }

  /// Adds a record, with one value for each field, including the counts of lists.
  PacketWriter& add(Type type, std::uint64_t ticks, std::initializer_list<Value> values = {}) {
    records_.resize((records_.size() + 3) & ~std::size_t{3});
    if (ticks - ticks_ < RecordHeader::stamp_span) {
      put(RecordHeader::compact(type, ticks));
    } else {
      put(RecordHeader::extended(type));
      put(ticks);
    }
    ticks_ = ticks;
    ++header_.event_count;
    const EventSpec* spec = find_spec(type);
    if (spec == nullptr) return *this;
    if (values.size() != field_count(*spec)) throw std::logic_error("values of " + std::string(spec->name));
    for (std::size_t i = 0; i < values.size(); ++i) put_field(spec->fields[i].field, std::data(values)[i]);
    return *this;
  }
  /// Adds an event of the type that `sample_declared` has.
  PacketWriter& add_sample(std::uint64_t ticks, std::uint32_t index, double norm, const std::string& note) {
    records_.resize((records_.size() + 3) & ~std::size_t{3});
    put(RecordHeader::extended(static_cast<Type>(kFirstDeclared))).put(ticks).put(index).put(norm);
    records_.append(note.c_str(), note.size() + 1);
    ticks_ = ticks;
    ++header_.event_count;
    return *this;
  }
  /// Sets the time of the last event, which a completed record contains.
  PacketWriter& until(std::uint64_t ticks) {
    until_ = ticks;
    return *this;
  }
  /// Overwrites bytes with values that the format does not allow.
  template <class T>
  PacketWriter& put(T value) {
    records_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }

  PacketHeader header() const {
    PacketHeader header = header_;
    header.end_ticks = until_ > ticks_ ? until_ : ticks_;
    header.content_bits = (sizeof header + records_.size()) * 8;
    header.packet_bits = (header.content_bits + 31) / 32 * 32;
    return header;
  }
  std::string bytes() const { return with(header()); }
  std::string with(const PacketHeader& header) const {
    std::string packet(reinterpret_cast<const char*>(&header), sizeof header);
    packet += records_;
    packet.resize((packet.size() + 3) & ~std::size_t{3});
    return packet;
  }
  /// The packet as a live buffer that is being written: the header does not know its end yet, and zeros follow.
  std::string live_unfinished(std::size_t buffer_bytes) const {
    PacketHeader header = header_;
    header.event_count = 0;
    std::string buffer = with(header);
    buffer.resize(buffer_bytes);
    return buffer;
  }
  std::string live_complete(std::size_t buffer_bytes) const {
    std::string buffer = bytes();
    buffer.resize(buffer_bytes);
    return buffer;
  }

 private:
  void put_field(Field field, const Value& value) {
    switch (field) {
      case Field::u8: put(static_cast<std::uint8_t>(value.number)); break;
      case Field::u16:
      case Field::i16: put(static_cast<std::uint16_t>(value.number)); break;
      case Field::u32:
      case Field::i32: put(static_cast<std::uint32_t>(value.number)); break;
      case Field::u64:
      case Field::i64: put(value.number); break;
      case Field::f64: put(value.real); break;
      case Field::text: records_.append(value.text.c_str(), value.text.size() + 1); break;
      case Field::list16:
        for (const std::uint32_t entry : value.list) put(static_cast<std::uint16_t>(entry));
        break;
      case Field::list32:
        for (const std::uint32_t entry : value.list) put(entry);
        break;
    }
  }

  PacketHeader header_;
  std::uint64_t ticks_;
  std::uint64_t until_ = 0;
  std::string records_;
};

/// The bytes of a live file with these buffers, each `buffer_bytes` long.
inline std::string live_file(const std::filesystem::path& folder, std::uint32_t process, std::size_t buffer_bytes,
                             const std::vector<std::string>& buffers) {
  LivePage page;
  page.buffer_bytes = static_cast<std::uint32_t>(buffer_bytes);
  page.buffers = static_cast<std::uint32_t>(buffers.size());
  page.process = process;
  std::strncpy(page.folder, folder.c_str(), sizeof page.folder - 1);
  std::string file(reinterpret_cast<const char*>(&page), sizeof page);
  for (const std::string& buffer : buffers) file += buffer;
  return file;
}

/// A rank's manifest. Ticks are nanoseconds divided by 2 by default.
struct RankFacts {
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::uint32_t process = 0;
  std::string host = "node1";
  bool complete = true;
  bool recovered = false;
  std::uint64_t origin_ticks = 1'000'000;
  std::int64_t origin_ns = 5'000;
  std::int64_t multiplier = std::int64_t{1} << 33;
  std::int64_t realtime_ns = 1'700'000'000'000'000'000;
  std::int64_t realtime_local_ns = 5'000;
  std::uint64_t events = 0;
  std::uint64_t lost_events = 0;
  ReferenceLine line = {};
  std::string selection = "all";  ///< empty: not in rank.json
  std::string pus = {};           ///< "[0, 1]"; empty: not in rank.json

  clock::TickScale scale() const { return {origin_ticks, origin_ns, multiplier}; }
};

/// What the program of a test's rank has declared.
inline const DeclaredTypes& sample_declared() {
  static DeclaredTypes types;
  static const DeclaredTypes::FieldName fields[] = {{"index", Field::u32}, {"norm", Field::f64}, {"note", Field::text}};
  [[maybe_unused]] static const auto type = types.add("sample.value", fields);
  return types;
}

inline std::string manifest(const RankFacts& facts) {
  std::ostringstream json;
  json << "{\"tandem\": \"0.1.0\", \"format\": " << manifest_format
       << ", \"commit\": \"0123abc\", \"rank\": " << facts.rank << ", \"size\": " << facts.size
       << ", \"job\": \"job1\", \"program\": \"./app\", \"arguments\": [\"-n\", \"3\"], \"host\": \"" << facts.host
       << "\", \"pid\": " << facts.process
       << ", \"started\": \"2026-11-23T07:00:00Z\",\n \"clock\": {\"kind\": \"tsc\", \"origin_ticks\": "
       << facts.origin_ticks << ", \"origin_ns\": " << facts.origin_ns << ", \"multiplier\": " << facts.multiplier
       << ", \"realtime_ns\": " << facts.realtime_ns << ", \"realtime_local_ns\": " << facts.realtime_local_ns
       << "},\n \"machine\": {\"cpu\": \"x\", \"cores\": 2, "
       << (facts.pus.empty() ? "" : "\"pus\": " + facts.pus + ", ") << "\"numa_nodes\": 1},\n"
       << " \"buffers\": {\"bytes\": 65536, \"count\": 256, \"policy\": \"lose\"},\n";
  if (!facts.selection.empty()) json << " \"selection\": \"" << facts.selection << "\",\n";
  json << " \"events\": [{\"type\": 14, \"name\": \"task.started\", \"category\": \"task\", \"fields\": "
       << "[{\"name\": \"task\", \"kind\": \"u32\"}]},\n  {\"type\": 128, \"name\": \"sample.value\", \"category\": "
          "\"user\", "
          "\"fields\": "
       << "[{\"name\": \"index\", \"kind\": \"u32\"}, {\"name\": \"norm\", \"kind\": \"f64\"}, "
       << "{\"name\": \"note\", \"kind\": \"text\"}]}],\n"
       << " \"complete\": " << (facts.complete ? "true" : "false")
       << ", \"recovered\": " << (facts.recovered ? "true" : "false");
  if (facts.complete)
    json << ",\n \"end\": {\"events\": " << facts.events << ", \"lost_events\": " << facts.lost_events
         << ", \"bytes\": 0, \"most_buffers\": 1, \"needed_bytes\": 1, \"waits\": 0, \"write_errors\": 0}";
  json << "}\n";
  return json.str();
}

inline std::filesystem::path stream_path(const std::filesystem::path& folder, std::uint32_t actor) {
  return folder / stream_file_name(actor);
}

/// Writes the other files of a rank's folder, besides streams.
inline void write_rank(const std::filesystem::path& folder, const RankFacts& facts, bool with_metadata = true) {
  std::filesystem::create_directories(folder / own_folder);
  write_file(folder / manifest_file, manifest(facts));
  if (!with_metadata) return;
  const CtfClock clock = ctf_clock({.scale = facts.scale(),
                                    .realtime_ns = facts.realtime_ns,
                                    .realtime_local_ns = facts.realtime_local_ns,
                                    .line = facts.line,
                                    .reference_realtime_offset_ns = 1'699'999'999'999'995'000,
                                    .exact_at_ticks = facts.origin_ticks});
  write_file(folder / metadata_file, ctf_metadata({.hostname = facts.host, .program = "./app", .rank = facts.rank,
                                                .tandem_version = "0.1.0", .clock = clock,
                                                .declared = &sample_declared()}));
}

}  // namespace tandem::trace::test
