// tandem/dist/flow_agreement.cpp: the rounds at the start of a flow and at a wait.
#include "tandem/dist/flow_agreement.hpp"

#include <fmt/format.h>

#include <span>
#include <unordered_map>
#include <utility>

#include "tandem/base/narrow.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/dist/data_table.hpp"
#include "tandem/dist/flat_bytes.hpp"
#include "tandem/dist/job_abort.hpp"
#include "tandem/dist/place.hpp"
#include "tandem/dist/trace_clocks.hpp"
#include "tandem/dist/transfers.hpp"
#include "tandem/runtime/runtime_core.hpp"

namespace tandem::dist {

using Bytes = Agreement::Bytes;
using runtime::Handle;

FlowAgreement::FlowAgreement(runtime::RuntimeCore& core, comm::Endpoint& endpoint, JobAbort& abort,
                             Transfers& transfers, const DataTable& table, std::int64_t trace_sync_every_ns)
    : core_(core),
      endpoint_(endpoint),
      abort_(abort),
      transfers_(transfers),
      table_(table),
      trace_sync_every_ns_(trace_sync_every_ns),
      agreement_(endpoint, "tandem.dist.agreement") {}

FlowAgreement::~FlowAgreement() = default;

Bytes FlowAgreement::agree(Bytes mine, Agreement::Merge merge) {
  struct Answer {
    Bytes bytes;
    std::atomic<bool> there{false};
  };
  const auto answer = std::make_shared<Answer>();
  agreement_.begin(std::move(mine), std::move(merge), [this, answer](std::span<const std::byte> outcome) {
    answer->bytes.assign(outcome.begin(), outcome.end());
    answer->there.store(true);
    core_.executor().caller().wake();
  });
  abort_.work_until(answer->there);
  if (!answer->there.load()) abort_.throw_if_aborted();
  return answer->bytes;
}

FlowAgreement::Start FlowAgreement::start(const Start& mine) {
  const StartReport report{.copy_bytes = mine.copy_bytes, .traced = wants_clocks() ? 1U : 0U, .workers = mine.workers,
                           .budgets = mine.budgets ? 1U : 0U};
  const StartReport all = StartReport::from(agree(report.bytes(), &StartReport::merge));
  if (all.traced != 0) compare_clocks();
  return {static_cast<std::size_t>(all.copy_bytes), base::saturated<unsigned>(all.workers), all.budgets != 0};
}

// --- the check of the flow

void FlowAgreement::begin_check(FlowReport mine, Diagnosis diagnosis) {
  checked_.store(false);
  mine.rank = endpoint_.rank().value();
  mine.data = table_.count();
  mine.data_digest = table_.digest();
  agreement_.begin(mine.bytes(), &FlowReport::merge,
                   [this, diagnosis = std::move(diagnosis)](std::span<const std::byte> outcome) {
                     FlowReport all = FlowReport::from(outcome);
                     if (!all.difference.empty()) return name_difference(all.difference, diagnosis);
                     check_ = std::move(all);
                     checked_.store(true);
                     core_.executor().caller().wake();
                   });
}

FlowReport FlowAgreement::finish_check() {
  abort_.work_until(checked_);
  abort_.throw_if_aborted();
  return check_;
}

/// Names the difference between the flows that ranks have submitted. A rank that has ever skipped tasks knows no
/// comparable versions.
void FlowAgreement::name_difference(const std::string& what, const Diagnosis& diagnosis) {
  DifferenceReport mine;
  // Names are taken now: when the outcome arrives, the program may already know it from another rank, and go on.
  std::unordered_map<std::uint64_t, std::string> names;
  {
    const std::lock_guard guard(waits_mutex_);
    if (!waits_) return;  // the job was aborted, and this rank knows why
    table_.for_each([&](std::uint32_t id, const Handle& handle) {
      if (diagnosis.versions_known)
        mine.versions.counts.emplace_back(id, place_of(const_cast<Handle&>(handle)).version);
      names.emplace(id, handle.described());
    });
    mine.sketch = diagnosis.sketch();
  }
  mine.versions.rank = mine.sketch.rank = endpoint_.rank().value();
  const bool versions_known = diagnosis.versions_known;
  agreement_.begin(
      mine.bytes(), &DifferenceReport::merge, [this, what, names, versions_known](std::span<const std::byte> outcome) {
        const auto name = [&](std::uint64_t id) {
          const auto known = names.find(id);
          return known != names.end() ? known->second : fmt::format("data number {} (dropped since)", id);
        };
        const DifferenceReport all = DifferenceReport::from(outcome);
        std::string where;
        if (all.operation.exists()) where = "; " + all.operation.described(name);
        if (const VersionReport& found = all.versions; found.datum != VersionReport::kNone)
          where += fmt::format("; {} was written {} times on rank {} and {} times on rank {}", name(found.datum),
                               found.versions[0], found.ranks[0], found.versions[1], found.ranks[1]);
        transfers_.abort(
            fmt::format("ranks go through different flows: {}{}; all ranks must submit the same tasks in the same order"
                        "{}",
                        what, where, versions_known ? "" : ", or skip as many"));
      });
}

std::string FlowAgreement::explain() {
  std::string text;
  const std::uint32_t rank = endpoint_.rank().value();
  for (const Agreement::Missing& ranks : agreement_.missing()) {
    if (ranks.answered)
      text += fmt::format("\n  rank {} waits for rank {}, which collects what all ranks report at a wait", rank,
                          ranks.first);
    else if (ranks.first == ranks.last)
      text += fmt::format("\n  rank {} waits for rank {}, which has not come to the same wait, or to its start", rank,
                          ranks.first);
    else
      text += fmt::format(
          "\n  rank {} waits for ranks {} to {}: at least one has not come to the same wait, or to its start", rank,
          ranks.first, ranks.last);
  }
  return text;
}

// --- the outcome

Outcome FlowAgreement::outcome(Outcome mine) {
  mine.traced = wants_clocks() ? 1 : 0;
  for (const auto& value : least_) mine.least.push_back(value->load(std::memory_order_relaxed));
  Outcome all = Outcome::from(agree(mine.bytes(), &Outcome::merge));
  for (std::size_t i = 0; i < least_.size() && i < all.least.size(); ++i)
    least_[i]->store(all.least[i], std::memory_order_relaxed);
  least_.clear();
  return all;
}

// --- clocks of traces

/// Whether to compare clocks. In an event loop, which has no threads, all ranks share one clock.
bool FlowAgreement::wants_clocks() const {
  return !clocks_compared_ && core_.trace().session() != nullptr && endpoint_.idle_work() != nullptr;
}

void FlowAgreement::compare_clocks() {
  clocks_compared_ = true;
  trace::Session& session = *core_.trace().session();
  // Date at which rank 0's clock shows 0. Other ranks do not know it, and add nothing.
  const std::uint64_t mine = endpoint_.rank().value() == 0 ? static_cast<std::uint64_t>(session.date_offset_ns()) : 0;
  const Bytes date = agree(FlatWriter().number(mine).take(), [](Bytes& into, std::span<const std::byte> from) {
    into = FlatWriter().number(FlatReader(into).number() | FlatReader(from).number()).take();
  });
  session.set_reference_date(static_cast<std::int64_t>(FlatReader(date).number()));
  clocks_ = TraceClocks::start(endpoint_, session, *core_.world().clock, trace_sync_every_ns_, core_.log());
}

void FlowAgreement::end_clocks() {
  if (clocks_ != nullptr) clocks_->end();
}

void FlowAgreement::drop_clocks() { clocks_.reset(); }

}  // namespace tandem::dist
