// tandem/trace/manifest.cpp: the description in a rank's folder: rank.json and CTF's metadata.
#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <ctime>
#include <string>
#include <vector>

#include "tandem/base/host.hpp"
#include "tandem/base/owned_file.hpp"
#include "tandem/trace/json_writer.hpp"
#include "tandem/trace/layout.hpp"
#include "tandem/trace/metadata.hpp"
#include "tandem/trace/session.hpp"

namespace tandem::trace {

using base::Result;

namespace {

constexpr std::string_view kVersion = "0.1.0";

std::string_view name_of(WhenFull what) noexcept {
  switch (what) {
    case WhenFull::lose: return "lose";
    case WhenFull::wait: return "wait";
    case WhenFull::newest: return "newest";
  }
  return "";
}

std::string_view name_of(Field field) noexcept {
  static constexpr std::string_view names[] = {"u8",  "u16", "u32",  "u64",    "i16",   "i32",
                                               "i64", "f64", "text", "list16", "list32"};
  return names[static_cast<std::size_t>(field)];
}

std::vector<JsonObject> events_table(const DeclaredTypes& declared) {
  std::vector<JsonObject> events;
  for (std::size_t i = 0; i < kEventSpecs + declared.size(); ++i) {
    const EventSpec& spec = i < kEventSpecs ? spec_at(i) : declared.spec_at(i - kEventSpecs);
    std::vector<JsonObject> fields;
    for (std::size_t f = 0; f < field_count(spec); ++f)
      fields.push_back(JsonObject().add("name", spec.fields[f].name).add("kind", name_of(spec.fields[f].field)));
    events.push_back(JsonObject()
                         .add("type", static_cast<unsigned>(spec.type))
                         .add("name", spec.name)
                         .add("category", trace::name_of(spec.category))
                         .add("fields", fields));
  }
  return events;
}

bool write(const base::OwnedFolder& folder, const char* name, const std::string& text, base::Log& log) {
  const auto written = folder.replace(name, text);
  if (written) return true;
  log.error("cannot write the trace's file {}: {}", (folder.path() / name).string(), written.error().message);
  return false;
}

constexpr std::string_view kNotUnwritten = "\"unwritten\": false", kUnwritten = "\"unwritten\": true ";
static_assert(kNotUnwritten.size() == kUnwritten.size());
constexpr std::size_t kMostManifestBytes = std::size_t{64} << 20;

}  // namespace

std::string Session::manifest(Written written) const {
  const clock::TickScale scale = tick_scale();
  const auto started = static_cast<std::time_t>(realtime_ns_ / 1'000'000'000);
  JsonObject clock;
  clock.add("kind", probes_clock_ == nullptr ? "tsc" : "ns")
      .add("origin_ticks", scale.origin_ticks)
      .add("origin_ns", scale.origin_ns)
      .add("multiplier", scale.multiplier)
      .add("realtime_ns", realtime_ns_)
      .add("realtime_local_ns", realtime_local_ns_);
  JsonObject machine;
  machine.add("cpu", options_.cpu).add("cores", options_.cores).add("pus", options_.pus).add("numa_nodes", options_.numa_nodes);
  JsonObject buffers;
  buffers.add("bytes", options_.buffer_bytes).add("count", pool_->count()).add("policy", name_of(options_.when_full));
  JsonObject json;
  json.add("tandem", kVersion)
      .add("format", manifest_format)
      .add("commit", options_.commit)
      .add("rank", options_.rank)
      .add("size", options_.size)
      .add("job", options_.job)
      .add("program", options_.program)
      .add("arguments", options_.arguments)
      .add("host", base::host_name())
      .add("pid", ::getpid())
      .add("started", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(started)))
      .add("clock", clock)
      .add("machine", machine)
      .add("buffers", buffers)
      .add("selection", selection().described())
      .add("events", events_table(declared_))
      .add("complete", written == Written::ended)
      .add("recovered", written == Written::gathered)
      .add("unwritten", false);
  if (written == Written::ended) {
    std::vector<JsonObject> actors;
    {
      const std::lock_guard guard(mutex_);
      for (std::size_t i = 0; i < actors_.size(); ++i) {
        const std::uint64_t lost = actors_[i]->lost_at_end + actors_[i]->dropped.load(std::memory_order_relaxed);
        actors.push_back(JsonObject()
                             .add("actor", i)
                             .add("name", actors_[i]->name)
                             .add("packets", actors_[i]->packets_at_end)
                             .add("lost_events", lost));
      }
    }
    const SessionCounts counted = counts();
    JsonObject end;
    end.add("events", counted.events)
        .add("lost_events", counted.lost_events)
        .add("bytes", counted.bytes)
        .add("most_buffers", counted.most_buffers)
        .add("needed_bytes", counted.needed_bytes)
        .add("waits", counted.waits)
        .add("write_errors", counted.write_errors)
        .add("actors", actors);
    json.add("end", end);
  }
  return json.text() + "\n";
}

bool Session::write_manifest(const base::OwnedFolder& own, Written written) {
  return write(own, manifest_name, manifest(written), log_);
}

/// Marks the files in place: they keep their sizes and blocks.
void Session::mark_unwritten() {
  const auto file = own_->file(manifest_name, O_RDWR);
  const auto text = file ? file.value().text(kMostManifestBytes) : Result<std::string>(file.error());
  const std::size_t at = text ? text.value().rfind(kNotUnwritten) : std::string::npos;
  if (at == std::string::npos || !file.value().write_at(at, kUnwritten.data(), kUnwritten.size()))
    log_.error("{} looks as though its program had been killed", rank_folder_.string());
}

void Session::write_metadata() {
  ClockFacts facts;
  facts.scale = tick_scale();
  facts.realtime_ns = realtime_ns_;
  facts.realtime_local_ns = realtime_local_ns_;
  {
    const std::lock_guard guard(mutex_);
    facts.line = ReferenceLine::through(clock_points_);
    facts.reference_realtime_offset_ns = reference_date_ns_;
  }
  {
    const std::lock_guard guard(describe_mutex_);  // a type may be declared while others are described
    facts.exact_at_ticks = catalogue_.last_event();
  }
  const std::string text = ctf_metadata({.hostname = base::host_name(),
                                         .program = options_.program,
                                         .rank = options_.rank,
                                         .tandem_version = std::string(kVersion),
                                         .clock = ctf_clock(facts),
                                         .declared = &declared_});
  (void)write(*folder_, metadata_file, text, log_);
}

}  // namespace tandem::trace
