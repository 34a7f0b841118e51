// tandem/runtime/trace_link.hpp: writes descriptions of data and recorded graphs into a trace, beside the streams of
// events.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "tandem/runtime/data/handle.hpp"
#include "tandem/runtime/task/submission_trace.hpp"
#include "tandem/runtime/task/task.hpp"
#include "tandem/trace/session.hpp"

namespace tandem::runtime {

/// Describes data and replays to a trace session, if there is one. Used by the submitting thread.
///
/// This layer describes data when it is added, as owned by no rank; after `describe_owners_by`, the layer above, which
/// knows the owners, calls `describe_data` itself.
class TraceLink {
 public:
  static constexpr std::uint32_t kNobody = UINT32_MAX;

  explicit TraceLink(SubmissionTrace& submissions) : submissions_(submissions) {}

  /// The session, which outlives the runtime; null: no trace.
  trace::Session* session() noexcept { return session_; }
  /// Sets the session. Called once.
  void connect(trace::Session& session) noexcept { session_ = &session; }

  /// Sets the function that returns a datum's owner; empty: data has no owner.
  void describe_owners_by(std::function<std::uint32_t(const Handle&)> owner_of) { owner_of_ = std::move(owner_of); }
  void describe_data(const Handle& handle, std::uint32_t owner);
  void describe_data(const Handle& handle) { describe_data(handle, owner_of_ ? owner_of_(handle) : kNobody); }
  void data_added(const Handle& handle) {
    if (session_ != nullptr && !owner_of_) describe_data(handle, kNobody);
  }

  /// Describes `tasks`, which are replayed under the ids from `base` on, and returns the number of their graph; `graph`
  /// 0: it has none yet.
  std::uint32_t describe_replay(std::uint32_t graph, TaskId base, const std::vector<Task*>& tasks);

 private:
  SubmissionTrace& submissions_;
  trace::Session* session_ = nullptr;
  std::function<std::uint32_t(const Handle&)> owner_of_;
  std::uint32_t graphs_ = 0;  ///< number of described graphs
};

}  // namespace tandem::runtime
