// tools/trace/check_findings.cpp: finds which parts of a rank's trace are complete, and adds up ranks.
#include "tools/trace/check_findings.hpp"

#include <fmt/format.h>

#include "tools/counted.hpp"
#include "tools/json/json.hpp"

namespace tandem::tools {

namespace {

/// The cause of a stream's missing events; empty: it has all events of its actor.
std::string gap_of(const trace::StreamSummary& summary) {
  if (summary.missing_packets > 0)
    return fmt::format("{} of {} {} overwritten or missing", counted(summary.missing_packets, "packet"), summary.name,
                       summary.missing_packets == 1 ? "is" : "are");
  if (summary.lost_events > 0)
    return fmt::format("{} of {} {} lost", counted(summary.lost_events, "event"), summary.name,
                       summary.lost_events == 1 ? "was" : "were");
  if (summary.truncated) return fmt::format("the stream of {} is cut off", summary.name);
  return {};
}

Account& account_of(TraceCheck& result, const std::string& name) {
  const auto found = std::ranges::find(result.accounts, name, &Account::name);
  return found != result.accounts.end()
             ? *found
             : result.accounts.emplace_back(Account{.name = name, .counts = {}, .skipped = {}});
}

}  // namespace

Recorded::Recorded(const trace::RankTrace& rank, bool selection_changed) : ended_(rank.complete) {
  const Json manifest = Json::parse(rank.manifest).value_or(Json());
  const Json* const said = manifest.find("selection");
  if (said == nullptr || !said->is_text()) {
    selection_gap_ = "rank.json does not say what was recorded";
  } else if (auto parsed = trace::Selection::parse(said->text())) {
    selection_ = parsed.value();
  } else {
    selection_gap_ = "rank.json names recorded events that this version does not know";
  }
  if (selection_changed) selection_gap_ = "the selection was changed while the program ran";
  for (const auto& stream : rank.streams)
    if (auto gap = gap_of(stream->summary()); !gap.empty()) stream_gap_ = std::move(gap);
}

std::string Recorded::gap(std::initializer_list<trace::Type> types) const {
  if (!stream_gap_.empty()) return stream_gap_;
  return !selection_gap_.empty() ? selection_gap_ : unselected(types);
}

std::string Recorded::unselected(std::initializer_list<trace::Type> types) const {
  std::string missing;
  for (const trace::Type type : types)
    if (!selection_.has(type))
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", trace::find_spec(type)->name);
  return missing.empty() ? "" : missing + " not recorded";
}

void add_to_account(TraceCheck& result, const std::string& name,
                    const std::vector<std::pair<std::string, std::uint64_t>>& counts) {
  Account& account = account_of(result, name);
  ++account.ranks;
  for (const auto& [what, count] : counts) {
    const auto found = std::ranges::find(account.counts, what, &std::pair<std::string, std::uint64_t>::first);
    if (found != account.counts.end())
      found->second += count;
    else
      account.counts.emplace_back(what, count);
  }
}

void skip_account(TraceCheck& result, const std::string& name, std::uint32_t rank, const std::string& why) {
  auto& skipped = account_of(result, name).skipped;
  const auto found = std::ranges::find(skipped, why, &Account::Skipped::why);
  if (found != skipped.end())
    found->ranks.push_back(rank);
  else
    skipped.push_back({.why = why, .ranks = {rank}});
}

}  // namespace tandem::tools
