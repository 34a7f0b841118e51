// tandem/runtime/sched/explainer.hpp: says why tasks went where they went, to a person who asked (option explain).
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/runtime/sched/implementations.hpp"
#include "tandem/runtime/sched/pulling_policy.hpp"

namespace tandem::runtime {

/// For some tasks: which worker was chosen, and what was known of all workers at that moment.
///
/// Threads: any. A task that nobody asked for costs a look at a few names.
class Explainer {
 public:
  static constexpr unsigned kMost = 8;
  using Say = std::function<void(std::string_view text)>;

  /// `wanted`: names and numbers of tasks, with commas between, as "potrf,1234". Of tasks of one name the first `kMost` are explained.
  /// `say` gets a text of one or several lines without the last end of line; one at a time.
  Explainer(std::string_view wanted, std::string policy, Say say);
  /// Says which names and numbers no task had.
  ~Explainer();
  Explainer(const Explainer&) = delete;
  Explainer& operator=(const Explainer&) = delete;

  /// Whether `task` is one of them, which counts as an explanation.
  bool wants(const Task& task) { return wants(task, &Wanted::explained); }

  /// The policy gave `task`, seen as `view`, to `worker` when the machine was as in `load`. `ready`: what waited; null where tasks are placed
  /// at once.
  void given(const Task& task, unsigned worker, const TaskView& view, const LoadView& load, const ReadyView* ready);
  /// Without a policy that chooses workers: `worker` takes `task`, which it has just made ready (`kept`), or from a queue: of `victim`, or
  /// its own or a common one.
  void taken(const Task& task, unsigned worker, bool kept, std::optional<unsigned> victim);

  /// Whether `task`, whose codelet has a choice of implementations, is one of them. Counts as an explanation of its own.
  bool wants_choice(const Task& task) { return wants(task, &Wanted::choices); }
  /// `worker` runs one of its implementations; `known`: what was known of all of them.
  void chosen(const Task& task, unsigned worker, const Implementations::Choice& choice, const std::vector<Implementations::Known>& known);

 private:
  struct Wanted {
    std::string name;
    std::uint64_t number = 0;  ///< 0: by name
    unsigned explained = 0;
    unsigned choices = 0;  ///< of implementations
  };
  bool wants(const Task& task, unsigned Wanted::*count);
  void say(const std::string& text);

  const std::string policy_;
  const Say say_;
  std::mutex mutex_;  ///< guards what follows, and `say_`
  std::vector<Wanted> wanted_;
};

/// To standard error, each line as "tandem: explain: ...".
void say_on_stderr(std::string_view text);

}  // namespace tandem::runtime
