// tandem/runtime/sched/placing/explainer.hpp: explains why tasks got their workers (option explain).
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/runtime/sched/placing/durations.hpp"
#include "tandem/runtime/sched/policies/pulling_policy.hpp"

namespace tandem::runtime {

/// Logs for chosen tasks which worker got them, and what was known of all workers at that moment.
///
/// Threads: any. Any other task costs a look at a few names.
class Explainer {
 public:
  static constexpr unsigned kMost = 8;
  using Say = std::function<void(std::string_view text)>;

  /// `wanted`: names and numbers of tasks, separated by commas, as "potrf,1234". Of tasks of one name the first `kMost`
  /// are explained. `say` gets a text of one or several lines without the last newline, one at a time.
  Explainer(std::string_view wanted, std::string policy, Say say);
  /// Reports the names and numbers that no task had.
  ~Explainer();
  Explainer(const Explainer&) = delete;
  Explainer& operator=(const Explainer&) = delete;

  /// Whether `task` is to be explained; counts as an explanation.
  bool wants(const Task& task) { return wants(task, &Wanted::explained); }

  /// Explains that the policy gave `task`, seen as `view`, to `worker`, with the machine as in `load`. `ready`: the
  /// waiting tasks; null: tasks are placed at once.
  void given(const Task& task, unsigned worker, const TaskView& view, const LoadView& load, const ReadyView* ready);
  /// Explains, without a policy that chooses workers, that `worker` takes `task`, which it has just made ready
  /// (`kept`), or from a queue: of `victim`, or its own or a common one.
  void taken(const Task& task, unsigned worker, bool kept, std::optional<unsigned> victim);

  /// Whether the choice of implementation for `task` is to be explained. Counts as an explanation of its own.
  bool wants_choice(const Task& task) { return wants(task, &Wanted::choices); }
  /// Explains that `worker` runs one of the implementations; `known`: what was known of all of them.
  void chosen(const Task& task, unsigned worker, const Durations::Choice& choice,
              const std::vector<Durations::Known>& known);

 private:
  struct Wanted {
    std::string name;
    std::uint64_t number = 0;  ///< 0: the task is wanted by name
    unsigned explained = 0;
    unsigned choices = 0;  ///< explained choices of implementations
  };
  bool wants(const Task& task, unsigned Wanted::*count);
  void say(const std::string& text);

  const std::string policy_;
  const Say say_;
  std::mutex mutex_;  ///< guards the members below, and `say_`
  std::vector<Wanted> wanted_;
};

/// Writes to standard error, each line as "tandem: explain: ...".
void say_on_stderr(std::string_view text);

}  // namespace tandem::runtime
