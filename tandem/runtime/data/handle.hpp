// tandem/runtime/data/handle.hpp: a piece of data as the runtime knows it: its place in the flow, and its replicas.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <typeinfo>
#include <vector>

#include "tandem/base/spin_lock.hpp"
#include "tandem/base/turnstile.hpp"
#include "tandem/runtime/data/access.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

class RuntimeCore;
struct FlowFailure;

/// Index of a memory node: 0 is main memory, where the application's pointers live.
using NodeIndex = unsigned;
inline constexpr unsigned kMaxNodes = 16;

/// Rows and columns of elements; a vector is one column, a scalar or a user's object one element.
struct Shape {
  std::size_t rows = 1;
  std::size_t cols = 1;
  std::size_t element_bytes = 0;

  std::size_t bytes() const noexcept { return rows * cols * element_bytes; }
  bool operator==(const Shape&) const = default;
};

/// The data's memory on one node. Columns are `ld` elements apart.
struct Replica {
  void* pointer = nullptr;
  std::size_t ld = 0;
  bool owned = false;      ///< allocated by Tandem
  bool fetching = false;   ///< a transfer towards it is under way
  Link* waiting = nullptr; ///< tasks that wait for that transfer
};

/// How partial results of `reduce` accesses start, and how one is added to another.
struct Reduction {
  std::function<void(void* partial, std::size_t ld, const Shape&)> init;
  std::function<void(void* into, std::size_t into_ld, const void* from, std::size_t from_ld, const Shape&)> combine;
};

/// What neighbouring accesses the flow gathers since the last writer.
enum class GroupKind : std::uint8_t { readers, commuters, reducers };

/// The data's place in the flow: what the next access must wait for. Touched by the submitting thread alone.
///
/// Invariant: a task that reads waits for `writer`; one that writes waits for all `members` or, when there are none, for `writer`.
/// References carry the task's id, so that a recycled task counts as ended.
struct FlowState {
  TaskRef writer;
  std::vector<TaskRef> members;
  GroupKind kind = GroupKind::readers;
  bool has_value = false;  ///< somebody has written it by this point of the flow
  std::uint32_t recorder_slot = 0;  ///< index in the recorder that saw it last
  std::uint64_t recorder_serial = 0;
};

/// A piece of data.
///
/// Two halves on separate cache lines: the flow's, which the submitting thread changes at each submission, and the replicas', which
/// workers read at each task. Lives until its last reference is gone (`Data` objects of the user count; so does each registration).
///
/// Coherence (modified, shared, invalid): bit n of `valid` says that node n holds the present value. One bit alone: that node may be
/// modified; several: shared; none: nobody has written yet. The graph's order makes a writer exclusive, so it stores its own bit
/// without a lock. Readers on several nodes may set bits at the same time; they change bits and transfers under `lock`, which no
/// submitting thread ever takes while tasks use the data.
class alignas(64) Handle {
 public:
  // --- the flow's half
  FlowState flow;
  RuntimeCore* runtime = nullptr;  ///< null once unregistered
  std::string name;
  SourceLine registered_at;
  const std::type_info* type = nullptr;
  std::uint64_t serial = 0;       ///< order of registration
  Reduction reduction;
  bool user_memory = false;
  std::atomic<std::uint32_t> references{0};

  // --- the replicas' half
  alignas(64) std::atomic<std::uint32_t> valid{0};
  std::atomic<FlowFailure*> poison{nullptr};  ///< why the present version does not exist
  Shape shape;
  Replica home;                         ///< on node 0
  std::unique_ptr<Replica[]> elsewhere;  ///< on the nodes from 1 on; null where there is main memory only
  base::SpinLock lock;
  base::Turnstile<Task> turnstile;  ///< for commuting tasks

  struct Partial {
    void* pointer = nullptr;
    bool in_use = false;
    bool filled = false;
  };
  std::vector<Partial> partials;  ///< private copies of `reduce` accesses, in main memory; under `lock`

  bool valid_on(NodeIndex node) const noexcept { return (valid.load(std::memory_order_acquire) >> node & 1U) != 0; }

  Replica& replica(NodeIndex node) noexcept { return node == 0 ? home : elsewhere[node - 1]; }

  /// What to call it in a message.
  std::string described() const;
};

}  // namespace tandem::runtime
