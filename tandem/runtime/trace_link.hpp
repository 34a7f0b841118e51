// tandem/runtime/trace_link.hpp: what the runtime writes into a trace beside its streams of events: data and recorded graphs.
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

/// Describes data and replays to a trace session, once there is one. Threads: the submitting thread.
///
/// Data is described when it is added, by this layer, as owned by nobody; or, once `describe_owners_by` was called, by the layer
/// above, which knows the owners and calls `describe_data` itself.
class TraceLink {
 public:
  static constexpr std::uint32_t kNobody = UINT32_MAX;

  explicit TraceLink(SubmissionTrace& submissions) : submissions_(submissions) {}

  /// The session, which outlives the runtime; null: there is none.
  trace::Session* session() noexcept { return session_; }
  /// Once.
  void connect(trace::Session& session) noexcept { session_ = &session; }

  /// `owner_of` empty: nobody owns data.
  void describe_owners_by(std::function<std::uint32_t(const Handle&)> owner_of) { owner_of_ = std::move(owner_of); }
  void describe_data(const Handle& handle, std::uint32_t owner);
  void describe_data(const Handle& handle) { describe_data(handle, owner_of_ ? owner_of_(handle) : kNobody); }
  void data_added(const Handle& handle) {
    if (session_ != nullptr && !owner_of_) describe_data(handle, kNobody);
  }

  /// Describes `tasks`, which are replayed under the ids from `base` on; `graph` 0: they have no number yet. Returns their number.
  std::uint32_t describe_replay(std::uint32_t graph, TaskId base, const std::vector<Task*>& tasks);

 private:
  SubmissionTrace& submissions_;
  trace::Session* session_ = nullptr;
  std::function<std::uint32_t(const Handle&)> owner_of_;
  std::uint32_t graphs_ = 0;  ///< replayed graphs that were described
};

}  // namespace tandem::runtime
