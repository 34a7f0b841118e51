// tandem/trace/metadata.cpp: the text of a rank's `metadata`, made from the table of events.
#include "tandem/trace/metadata.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "tandem/base/units.hpp"
#include "tandem/trace/event.hpp"
#include "tandem/trace/packet.hpp"

namespace tandem::trace {
namespace {

/// A string literal of TSDL, with C's escapes; bytes below 32 could end the line or the file for a reader.
std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 32 || c == 127 ? '?' : c;
  }
  return result + "\"";
}

std::string_view tsdl_type(Field field) noexcept {
  switch (field) {
    case Field::u8: return "u8";
    case Field::u16:
    case Field::list16: return "u16";
    case Field::u32:
    case Field::list32: return "u32";
    case Field::u64: return "u64";
    case Field::i16: return "i16";
    case Field::i32: return "i32";
    case Field::i64: return "i64";
    case Field::f64: return "f64";
    case Field::text: return "text";
  }
  return "";
}

void add_event(std::string& out, const EventSpec& spec) {
  out += "event {\n  name = " + in_quotes(spec.name) + ";\n  id = " + std::to_string(static_cast<unsigned>(spec.type)) +
         ";\n";
  out += "  fields := struct {\n";
  for (std::size_t i = 0; i < field_count(spec); ++i) {
    const FieldSpec& field = spec.fields[i];
    const std::string name(field.name);
    out += "    " + std::string(tsdl_type(field.field)) + " _" + name;
    if (entry_bytes_of(field.field) != 0) out += "[_" + name + "_count]";
    out += ";\n";
  }
  out += "  } align(8);\n};\n\n";
}

constexpr std::string_view types =
    "typealias integer { size = 8; align = 8; signed = false; } := u8;\n"
    "typealias integer { size = 16; align = 8; signed = false; } := u16;\n"
    "typealias integer { size = 32; align = 8; signed = false; } := u32;\n"
    "typealias integer { size = 64; align = 8; signed = false; } := u64;\n"
    "typealias integer { size = 16; align = 8; signed = true; } := i16;\n"
    "typealias integer { size = 32; align = 8; signed = true; } := i32;\n"
    "typealias integer { size = 64; align = 8; signed = true; } := i64;\n"
    "typealias integer { size = 7; align = 1; signed = false; } := type_bits;\n"
    "typealias integer { size = 25; align = 1; signed = false; } := extended_type;\n"
    "typealias floating_point { exp_dig = 11; mant_dig = 53; align = 8; } := f64;\n"
    "typealias string { encoding = UTF8; } := text;\n\n";

// Each packet's header has its stream's number, so that there is one kind of stream, which needs no number.
constexpr std::string_view trace =
    "trace {\n"
    "  major = 1;\n"
    "  minor = 8;\n"
    "  byte_order = le;\n"
    "  packet.header := struct {\n"
    "    u32 magic;\n"
    "    u32 stream_instance_id;\n"
    "  };\n"
    "};\n\n";

// A structure begins at the greatest alignment of its fields. So the full stamp of an extended header, though it lies
// at a multiple of 8 bits, must not require that, or the structure could not begin behind 7 bits.
constexpr std::string_view stamps =
    "typealias integer { size = 64; align = 8; signed = false; map = clock.tandem.value; } := stamp;\n"
    "typealias integer { size = 64; align = 1; signed = false; map = clock.tandem.value; } := whole_stamp;\n"
    "typealias integer { size = 25; align = 1; signed = false; map = clock.tandem.value; } := stamp_bits;\n\n";

constexpr std::string_view stream =
    "struct record_header {\n"
    "  enum : type_bits { compact = 0 ... 126, extended = 127 } id;\n"
    "  variant <id> {\n"
    "    struct {\n"
    "      stamp_bits timestamp;\n"
    "    } compact;\n"
    "    struct {\n"
    "      extended_type id;\n"
    "      whole_stamp timestamp;\n"
    "    } extended;\n"
    "  } v;\n"
    "} align(32);\n\n"
    "stream {\n"
    "  packet.context := struct {\n"
    "    stamp timestamp_begin;\n"
    "    stamp timestamp_end;\n"
    "    u64 content_size;\n"
    "    u64 packet_size;\n"
    "    u64 events_discarded;\n"
    "    u64 packet_seq_num;\n"
    "    u32 event_count;\n"
    "    u32 reserved;\n"
    "  };\n"
    "  event.header := struct record_header;\n"
    "};\n\n";
static_assert(RecordHeader::type_bits == 7 && RecordHeader::stamp_bits == 25 &&
              static_cast<unsigned>(Type::extended) == 127);

}  // namespace

CtfClock ctf_clock(const ClockFacts& facts) {
  __extension__ using Wide = __int128;
  constexpr auto billion = Wide{base::ns_per_s};
  const double ticks_per_s = 1e9 * facts.scale.ticks_per_ns() / facts.line.rate();
  const double frequency = std::isfinite(ticks_per_s) ? std::clamp(std::round(ticks_per_s), 1.0, 1e15) : 1e9;

  CtfClock clock;
  clock.frequency_hz = static_cast<std::uint64_t>(frequency);
  const Wide reference_offset_ns = facts.reference_realtime_offset_ns
      ? Wide{*facts.reference_realtime_offset_ns}
      : Wide{facts.realtime_ns} - facts.line.to_reference(facts.realtime_local_ns);
  const Wide date_ns = reference_offset_ns + facts.line.to_reference(facts.scale.to_ns(facts.exact_at_ticks));

  // date = offset_s + (offset_ticks + ticks) / frequency, all of it in ticks: |date_ns| < 2^65 and frequency < 2^50.
  const auto hz = static_cast<Wide>(clock.frequency_hz);
  const Wide offset_ticks = date_ns * hz / billion - static_cast<Wide>(facts.exact_at_ticks);
  const Wide below = (offset_ticks % hz + hz) % hz;
  clock.offset_s = static_cast<std::int64_t>((offset_ticks - below) / hz);
  clock.offset_ticks = static_cast<std::uint64_t>(below);
  return clock;
}

std::string ctf_metadata(const MetadataOptions& options) {
  std::string out = "/* CTF 1.8 */\n\n";
  out += types;
  out += trace;
  out += "env {\n  hostname = " + in_quotes(options.hostname) + ";\n  program = " + in_quotes(options.program) +
         ";\n  rank = " + std::to_string(options.rank) + ";\n  tandem_version = " + in_quotes(options.tandem_version) +
         ";\n};\n\n";
  out +=
      "clock {\n  name = \"tandem\";\n  description = \"rank 0's time, by the line through the first and the last "
      "comparison\";\n";
  out += "  freq = " + std::to_string(options.clock.frequency_hz) +
         ";\n  offset_s = " + std::to_string(options.clock.offset_s) +
         ";\n  offset = " + std::to_string(options.clock.offset_ticks) + ";\n  absolute = true;\n};\n\n";
  out += stamps;
  out += stream;
  for (std::size_t i = 0; i < kEventSpecs; ++i) add_event(out, spec_at(i));
  for (std::size_t i = 0; options.declared != nullptr && i < options.declared->size(); ++i)
    add_event(out, options.declared->spec_at(i));
  return out;
}

}  // namespace tandem::trace
