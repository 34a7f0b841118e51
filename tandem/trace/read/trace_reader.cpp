// tandem/trace/read/trace_reader.cpp: opens a run's folder, and merges the events of all actors by time.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <system_error>

#include "tandem/trace/read/manifest.hpp"
#include "tandem/trace/read/reader.hpp"

namespace tandem::trace {

using base::Error;
using base::ErrorCode;
using base::Result;

Result<std::vector<std::filesystem::path>> rank_folders(const std::filesystem::path& folder) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error))
    return Error{ErrorCode::not_found, folder.string() + ": there is no such folder"};
  if (std::filesystem::exists(folder / manifest_file, error)) return std::vector{folder};
  std::vector<std::filesystem::path> folders;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->path().filename().string().starts_with("rank-") && entry->is_directory(ignored))
      folders.push_back(entry->path());
  }
  if (error) return Error{ErrorCode::io, folder.string() + ": cannot be listed: " + error.message()};
  if (folders.empty())
    return Error{ErrorCode::not_found,
                 folder.string() + ": is no trace: it holds neither tandem/rank.json nor folders rank-0000 and so on"};
  std::ranges::sort(folders);
  return folders;
}

Result<std::unique_ptr<TraceReader>> TraceReader::open(const std::filesystem::path& folder) {
  const auto folders = rank_folders(folder);
  if (!folders) return folders.error();
  auto reader = std::make_unique<TraceReader>();
  reader->folder = folder;
  for (const auto& rank_folder : folders.value()) {
    auto rank = RankTrace::open(rank_folder);
    if (!rank) return rank.error();
    reader->ranks.push_back(std::move(rank).value());
  }
  const auto number = [](const auto& rank) { return rank->rank; };
  std::ranges::sort(reader->ranks, {}, number);
  if (const auto same = std::ranges::adjacent_find(reader->ranks, {}, number); same != reader->ranks.end())
    return Error{ErrorCode::malformed, folder.string() + ": two folders are of rank " + std::to_string((*same)->rank) +
                                           ": move one of them away"};
  reader->number_declared_types();
  if (reader->type_count() > UINT16_MAX)
    return Error{ErrorCode::malformed, folder.string() + ": its ranks declare " +
                                           std::to_string(reader->declared.size()) +
                                           " types of events, more than have numbers"};
  return reader;
}

/// Gives one type one number in all ranks, which may declare types in different orders.
void TraceReader::number_declared_types() {
  for (const auto& rank : ranks) {
    for (std::size_t i = 0; i < rank->declared->size(); ++i) {
      const EventSpec& spec = rank->declared->spec_at(i);
      const auto known = std::ranges::find_if(declared,
                                              [&](const EventSpec* one) { return same_declaration(*one, spec); });
      rank->declared->renumber(i,
                               static_cast<Type>(kFirstDeclared + static_cast<std::size_t>(known - declared.begin())));
      if (known == declared.end()) declared.push_back(&spec);
    }
  }
}

RankTrace* TraceReader::rank_of(std::uint32_t rank) noexcept {
  const auto found = std::ranges::lower_bound(ranks, rank, {}, [](const auto& trace) { return trace->rank; });
  return found != ranks.end() && (*found)->rank == rank ? found->get() : nullptr;
}

namespace {

/// A stream and its next event, which is no description.
struct Head {
  StreamReader* stream = nullptr;
  std::size_t order = 0;  ///< among equal times: by rank, then by actor
  Event event;
  std::int64_t time_ns = std::numeric_limits<std::int64_t>::min();

  /// Advances to the next event. False at the end.
  Result<bool> advance(const std::function<std::int64_t(const Event&)>& time_of) {
    for (;;) {
      auto next = stream->next();
      if (!next) return next.error();
      if (!next.value()) return false;
      if (next.value()->spec().category == Category::about) continue;
      event = *next.value();
      time_ns = std::max(time_ns, time_of(event));
      return true;
    }
  }
  bool later_than(const Head& other) const noexcept {
    return time_ns != other.time_ns ? time_ns > other.time_ns : order > other.order;
  }
};

}  // namespace

Result<void> TraceReader::in_order(const std::function<std::int64_t(const Event&)>& time_of,
                                   const std::function<bool(const Event&, std::int64_t time_ns)>& each) {
  std::vector<Head> heads;
  for (const auto& rank : ranks) {
    for (const auto& stream : rank->streams) {
      stream->rewind();
      Head head{.stream = stream.get(), .order = heads.size(), .event = {}};
      const auto begun = head.advance(time_of);
      if (!begun) return begun.error();
      if (begun.value()) heads.push_back(head);
    }
  }
  const auto later = [](const Head& a, const Head& b) { return a.later_than(b); };
  std::ranges::make_heap(heads, later);
  while (!heads.empty()) {
    std::ranges::pop_heap(heads, later);
    Head& first = heads.back();
    bool more = true;
    // Events of an actor come in runs: the heap changes only when another actor's turn comes.
    do {
      if (!each(first.event, first.time_ns)) return {};
      const auto advanced = first.advance(time_of);
      if (!advanced) return advanced.error();
      more = advanced.value();
    } while (more && (heads.size() == 1 || !first.later_than(heads.front())));
    if (more) std::ranges::push_heap(heads, later);
    else heads.pop_back();
  }
  return {};
}

}  // namespace tandem::trace
