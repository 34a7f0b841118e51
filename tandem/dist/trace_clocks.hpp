// tandem/dist/trace_clocks.hpp: what the traces of a flow's ranks know of each other's clocks.
#pragma once

#include <cstdint>
#include <memory>

#include "tandem/base/log.hpp"
#include "tandem/clock/clock.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/comm/sync/clock_sync.hpp"
#include "tandem/trace/session.hpp"

namespace tandem::dist {

/// Keeps the clocks of traced ranks together while it lives: all ranks leave a barrier at one instant when it is made, and
/// another one when it ends, and the times that were waited for are clock points of the trace (thesis 3.4.2: the line through
/// both takes a rank's time to rank 0's). Between them, what the clocks that follow each other know is a point of kind
/// `background` now and then.
///
/// All ranks make one, and end it or are gone: who cannot come to the last barrier, because of a failure, destroys it instead,
/// and the barriers of the others fail. Of the submitting thread; points between the barriers are told by the session's flusher.
class TraceClocks {
 public:
  /// `clock` is that of the events. `every_ns`: between points in the background; 0: none. Null when the ranks do not find each
  /// other's time, which is logged.
  static std::unique_ptr<TraceClocks> start(comm::Endpoint& endpoint, trace::Session& session, const clock::Clock& clock,
                                            std::int64_t every_ns, base::Log& log);
  ~TraceClocks();
  TraceClocks(const TraceClocks&) = delete;
  TraceClocks& operator=(const TraceClocks&) = delete;

  /// The last barrier.
  void end();

 private:
  TraceClocks(std::unique_ptr<comm::ClockSync> sync, trace::Session& session, base::Log& log);
  void meet();
  void note_time();

  std::unique_ptr<comm::ClockSync> sync_;
  trace::Session& session_;
  base::Log& log_;
};

}  // namespace tandem::dist
