// tandem/trace/read/rank_trace.cpp: opens one rank's folder: manifest, streams, catalogue.
#include <algorithm>
#include <charconv>
#include <system_error>

#include "tandem/trace/read/manifest.hpp"
#include "tandem/trace/read/reader.hpp"
#include "tandem/trace/recover.hpp"

namespace tandem::trace {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

/// Numbers are consecutive, so a number far beyond the count of descriptions is damage, and a table for it would take
/// all memory. The slack is for numbers without a description.
constexpr std::uint64_t undescribed_numbers = 65536;

template <class T>
T* entry(std::vector<T>& entries, std::uint64_t number, std::uint64_t most) {
  if (number >= most) return nullptr;
  if (entries.size() <= number) entries.resize(number + 1);
  return &entries[number];
}

}  // namespace

Result<std::unique_ptr<RankTrace>> RankTrace::open(const std::filesystem::path& folder) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error))
    return Error{ErrorCode::not_found, folder.string() + ": there is no such folder"};
  std::unique_ptr<RankTrace> trace(new RankTrace);
  trace->folder = folder;
  for (const auto step : {&RankTrace::read_manifest, &RankTrace::open_streams, &RankTrace::read_catalogue})
    if (auto done = (trace.get()->*step)(); !done) return done.error();
  return trace;
}

Result<void> RankTrace::read_manifest() {
  auto read = Manifest::read(folder);
  if (!read) return read.error();
  Manifest& known = read.value();
  rank = known.rank;
  size = known.size;
  written_events = known.events;
  lost_events = known.lost_events;
  complete = known.complete;
  recovered = known.recovered;
  unwritten = known.unwritten;
  manifest = std::move(known.text);
  host = std::move(known.host);
  pus = std::move(known.pus);
  program = std::move(known.program);
  arguments = std::move(known.arguments);
  job = std::move(known.job);
  commit = std::move(known.commit);
  version = std::move(known.version);
  scale = known.scale;
  declared = known.declared;
  realtime_ns = known.realtime_ns;
  realtime_local_ns = known.realtime_local_ns;
  return complete || recovered ? Result<void>{} : refuse_unfinished();
}

Result<void> RankTrace::refuse_unfinished() const {
  if (const auto live = find_live(folder); live && live.value() && live.value()->is_alive())
    return Error{ErrorCode::unsupported, folder.string() + ": process " + std::to_string(live.value()->page.process) +
                                             " is still writing this trace: read it when that has ended"};
  if (unwritten)
    return Error{ErrorCode::unsupported,
                 folder.string() +
                     ": the program ended, and the end of its trace could not be written (was the disk full?); "
                     "gather what is there: tandem trace recover " +
                     folder.string()};
  return Error{ErrorCode::unsupported, folder.string() +
                                           ": the program was killed before it ended its trace; gather what it left: " +
                                           "tandem trace recover " + folder.string()};
}

Result<void> RankTrace::open_streams() {
  std::error_code error;
  for (std::filesystem::directory_iterator file(folder, error), end; !error && file != end; file.increment(error)) {
    const auto actor = actor_of_stream(file->path());
    if (!actor) continue;
    auto stream = StreamReader::open(file->path(), rank, scale, declared);
    if (!stream) return stream.error();
    if (const auto& summary = stream.value()->summary(); summary.packets > 0 && summary.actor != *actor)
      return Error{ErrorCode::malformed,
                   file->path().string() + ": holds the stream of actor " + std::to_string(summary.actor)};
    stream.value()->set_actor(*actor);
    streams.push_back(std::move(stream).value());
  }
  if (error) return Error{ErrorCode::io, folder.string() + ": cannot be listed: " + error.message()};
  const auto actor = [](const auto& stream) { return stream->summary().actor; };
  std::ranges::sort(streams, {}, actor);
  if (const auto same = std::ranges::adjacent_find(streams, {}, actor); same != streams.end())
    return Error{ErrorCode::malformed,
                 folder.string() + ": actor " + std::to_string((*same)->summary().actor) + " has two streams"};
  return {};
}

Result<void> RankTrace::read_catalogue() {
  StreamReader* catalogue = stream_of(0);
  if (catalogue == nullptr) return {};
  const StreamSummary& summary = catalogue->summary();
  catalogue->name_actor(ActorKind::catalogue, 0, -1, "catalogue");
  // Lost descriptions had numbers, too. The bound keeps a damaged count of them from disabling the check.
  const std::uint64_t most =
      undescribed_numbers + summary.records + std::min<std::uint64_t>(summary.lost_events, undescribed_numbers);
  for (;;) {
    auto event = catalogue->next();
    if (!event) return event.error();
    if (!event.value()) break;
    if (auto learnt = learn(*event.value(), most); !learnt) return learnt;
  }
  catalogue->rewind();
  return {};
}

Result<void> RankTrace::learn(const Event& event, std::uint64_t most_numbers) {
  bool known = true;
  switch (event.type) {
    case Type::actor:
      if (StreamReader* stream = stream_of(static_cast<std::uint32_t>(event.number(0))))
        stream->name_actor(static_cast<ActorKind>(event.number(1)), static_cast<std::uint16_t>(event.number(2)),
                           static_cast<std::int32_t>(event.integer(3)), std::string(event.text(4)));
      break;
    case Type::site:
      if (Site* site = entry(sites, event.number(0), most_numbers); (known = site != nullptr))
        *site = {std::string(event.text(2)), std::string(event.text(3)), static_cast<std::uint32_t>(event.number(1))};
      break;
    case Type::data:
      if (DataDescription* datum = entry(data, event.number(0), most_numbers); (known = datum != nullptr)) {
        datum->owner = static_cast<std::uint32_t>(event.number(1));
        datum->bytes = event.number(2);
        datum->rows = event.number(3);
        datum->cols = event.number(4);
        datum->site = static_cast<std::uint16_t>(event.number(5));
        datum->name = event.text(6);
      }
      break;
    case Type::name:
      if (auto* name = entry(names, event.number(0), most_numbers); (known = name != nullptr))
        *name = {static_cast<NameKind>(event.number(1)), std::string(event.text(2))};
      break;
    case Type::clock_point:
      clock_points.push_back({static_cast<ClockPointKind>(event.number(0)), event.integer(1), event.integer(2),
                              event.integer(3), event.integer(4)});
      break;
    case Type::codelet_colour: colours.emplace_back(event.text(0), static_cast<std::uint32_t>(event.number(1))); break;
    case Type::option: options.emplace_back(event.text(0), event.text(1)); break;
    default: break;
  }
  if (known) return {};
  return Error{ErrorCode::malformed, folder.string() + ": the catalogue gives the number " +
                                         std::to_string(event.number(0)) + " in " + std::string(event.spec().name) +
                                         ", far beyond what it describes"};
}

StreamReader* RankTrace::stream_of(std::uint32_t actor) noexcept {
  const auto found = std::ranges::lower_bound(streams, actor, {},
                                              [](const auto& stream) { return stream->summary().actor; });
  return found != streams.end() && (*found)->summary().actor == actor ? found->get() : nullptr;
}

std::optional<std::uint32_t> actor_of_stream(const std::filesystem::path& file) {
  const std::string name = file.filename();
  constexpr std::string_view prefix = "stream_";
  if (!name.starts_with(prefix) || name.size() < prefix.size() + 4) return std::nullopt;
  std::uint32_t actor = 0;
  const char* end = name.data() + name.size();
  const auto [behind, error] = std::from_chars(name.data() + prefix.size(), end, actor);
  return error == std::errc{} && behind == end ? std::optional(actor) : std::nullopt;
}

}  // namespace tandem::trace
