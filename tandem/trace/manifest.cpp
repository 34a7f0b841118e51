// tandem/trace/manifest.cpp: what a rank's folder says of itself: rank.json and CTF's metadata.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "tandem/base/host.hpp"
#include "tandem/base/replace_file.hpp"
#include "tandem/trace/layout.hpp"
#include "tandem/trace/metadata.hpp"
#include "tandem/trace/session.hpp"

namespace tandem::trace {

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
  static constexpr std::string_view names[] = {"u8", "u16", "u32", "u64", "i32", "i64", "f64", "text", "list16", "list32"};
  return names[static_cast<std::size_t>(field)];
}

nlohmann::ordered_json events_table(const DeclaredTypes& declared) {
  auto events = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < kEventSpecs + declared.size(); ++i) {
    const EventSpec& spec = i < kEventSpecs ? spec_at(i) : declared.spec_at(i - kEventSpecs);
    auto fields = nlohmann::ordered_json::array();
    for (std::size_t f = 0; f < field_count(spec); ++f)
      fields.push_back({{"name", spec.fields[f].name}, {"kind", name_of(spec.fields[f].field)}});
    events.push_back({{"type", static_cast<unsigned>(spec.type)},
                      {"name", spec.name},
                      {"category", trace::name_of(spec.category)},
                      {"fields", fields}});
  }
  return events;
}

void write(const std::filesystem::path& path, const std::string& text, base::Log& log) {
  const auto written = base::replace_file(path, text);
  if (!written) log.error("cannot write the trace's file {}: {}", path.string(), written.error().message);
}

}  // namespace

std::string Session::manifest(Written written) const {
  const clock::TickScale scale = tick_scale();
  const auto started = static_cast<std::time_t>(realtime_ns_ / 1'000'000'000);
  nlohmann::ordered_json json = {
      {"tandem", kVersion},
      {"format", 1},
      {"commit", options_.commit},
      {"rank", options_.rank},
      {"size", options_.size},
      {"job", options_.job},
      {"program", options_.program},
      {"arguments", options_.arguments},
      {"host", base::host_name()},
      {"pid", ::getpid()},
      {"started", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(started))},
      {"clock",
       {{"kind", probes_clock_ == nullptr ? "tsc" : "ns"},
        {"origin_ticks", scale.origin_ticks},
        {"origin_ns", scale.origin_ns},
        {"multiplier", scale.multiplier},
        {"realtime_ns", realtime_ns_},
        {"realtime_local_ns", realtime_local_ns_}}},
      {"machine", {{"cpu", options_.cpu}, {"cores", options_.cores}, {"numa_nodes", options_.numa_nodes}}},
      {"buffers",
       {{"bytes", options_.buffer_bytes}, {"count", pool_->count()}, {"policy", name_of(options_.when_full)}}},
      {"selection", selection().described()},
      {"events", events_table(declared_)},
      {"complete", written == Written::ended},
      {"recovered", written == Written::gathered}};
  if (written == Written::ended) {
    const SessionCounts counted = counts();
    json["end"] = {{"events", counted.events},           {"lost_events", counted.lost_events},
                   {"bytes", counted.bytes},             {"most_buffers", counted.most_buffers},
                   {"needed_bytes", counted.needed_bytes}, {"waits", counted.waits},
                   {"write_errors", counted.write_errors}};
    auto actors = nlohmann::ordered_json::array();
    const std::lock_guard guard(mutex_);
    for (std::size_t i = 0; i < actors_.size(); ++i)
      actors.push_back({{"actor", i},
                        {"name", actors_[i]->name},
                        {"packets", actors_[i]->packets_at_end},
                        {"lost_events", actors_[i]->lost_at_end + actors_[i]->dropped.load(std::memory_order_relaxed)}});
    json["end"]["actors"] = actors;
  }
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void Session::write_manifest(const std::filesystem::path& rank_folder, Written written) {
  write(rank_folder / manifest_file, manifest(written), log_);
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
    const std::lock_guard guard(describe_mutex_);  // a type may be declared while others describe
    facts.exact_at_ticks = catalogue_.last_stamp();
  }
  const std::string text = ctf_metadata({.hostname = base::host_name(),
                                         .program = options_.program,
                                         .rank = options_.rank,
                                         .tandem_version = std::string(kVersion),
                                         .clock = ctf_clock(facts),
                                         .declared = &declared_});
  write(rank_folder_ / metadata_file, text, log_);
}

}  // namespace tandem::trace
