// tandem/api/graph.hpp: a recorded flow, and its changes between replays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "tandem/api/data.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {
class RecordedFlow;
}

namespace tandem {

using runtime::Replay;
using runtime::TaskRef;

namespace internal {
class RecordedParts;
}

/// A recorded flow, from `Runtime::record`. Must be destroyed before its runtime. Submitting thread.
class Graph {
 public:
  Graph();  ///< empty: to be assigned
  Graph(Graph&&) noexcept;             ///< leaves the other one empty
  Graph& operator=(Graph&&) noexcept;  ///< destroys its previous recording
  ~Graph();

  /// Number of tasks of all ranks.
  std::size_t task_count() const noexcept;

  /// Sets new values for a recorded task in the next replays: as many as were submitted, of the same types. Does
  /// nothing on a rank that does not run the task. Throws UsageError.
  template <class... Values>
  void set_values(const TaskRef& task, Values&&... values) {
    using Tuple = std::tuple<std::decay_t<Values>...>;
    void* const kept = values_of(task, typeid(Tuple));
    if (kept != nullptr) *static_cast<Tuple*>(kept) = Tuple(std::forward<Values>(values)...);
  }
  /// Sets the priority of the task in the next replays; messages keep the recorded priority.
  void set_priority(const TaskRef& task, int priority);
  /// Replaces `from` by `to`, of the same type and shape, in the next replays. Throws UsageError.
  template <class Kind>
  void rebind(const Data<Kind>& from, const Data<Kind>& to) {
    rebind_handles(from.handle(), to.handle());
  }

 private:
  friend class Runtime;
  void* values_of(const TaskRef& task, const std::type_info& types);
  void rebind_handles(runtime::Handle* from, runtime::Handle* to);
  /// Calls a function for each datum that it uses.
  std::function<void(const std::function<void(runtime::Handle&)>&)> each_datum() const;

  std::unique_ptr<runtime::RecordedFlow> flow_;  ///< null: empty
  std::unique_ptr<internal::RecordedParts> parts_;
};

}  // namespace tandem
