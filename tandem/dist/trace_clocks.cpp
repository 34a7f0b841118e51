// tandem/dist/trace_clocks.cpp: clock points of a trace, by barriers and in between.
#include "tandem/dist/trace_clocks.hpp"

#include <utility>

namespace tandem::dist {

namespace {

/// Interval of measurements in the background whose results no thread reads.
constexpr std::int64_t kHardlyEverNs = 3'600'000'000'000;

}  // namespace

std::unique_ptr<TraceClocks> TraceClocks::start(comm::Endpoint& endpoint, trace::Session& session,
                                                const clock::Clock& clock, std::int64_t every_ns, base::Log& log) {
  const comm::ClockSyncOptions options{.interval_ns = every_ns > 0 ? every_ns : kHardlyEverNs, .clock = &clock};
  auto sync = comm::ClockSync::open(endpoint, options, log);
  if (!sync) {
    log.warn("the traces of the ranks have no common clock: {}", sync.error().message);
    return nullptr;
  }
  std::unique_ptr<TraceClocks> clocks(new TraceClocks(std::move(sync).value(), session, log));
  clocks->meet();
  if (every_ns > 0) session.every(every_ns, [&known = *clocks] { known.note_time(); });
  return clocks;
}

TraceClocks::TraceClocks(std::unique_ptr<comm::ClockSync> sync, trace::Session& session, base::Log& log)
    : sync_(std::move(sync)), session_(session), log_(log) {}

TraceClocks::~TraceClocks() { session_.every(0, {}); }

void TraceClocks::end() {
  session_.every(0, {});
  meet();
}

void TraceClocks::meet() {
  const auto left = sync_->barrier();
  if (!left) return log_.info("a trace without the time of all ranks: {}", left.error().message);
  const comm::BarrierExit& exit = left.value();
  session_.describe({.kind = trace::ClockPointKind::barrier,
                     .local_ns = exit.local_ns,
                     .reference_ns = exit.global_ns,
                     .error_ns = exit.error_ns,
                     .late_ns = exit.late_ns});
}

void TraceClocks::note_time() {
  const std::int64_t local_ns = sync_->local_clock().now_ns();
  const clock::GlobalTime global = sync_->to_global(local_ns);
  session_.describe({.kind = trace::ClockPointKind::background,
                     .local_ns = local_ns,
                     .reference_ns = global.ns,
                     .error_ns = global.error_ns});
}

}  // namespace tandem::dist
