// tandem/runtime/data/handle.hpp: a piece of data as the runtime knows it: its place in the flow, and its replicas.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <typeinfo>
#include <vector>

#include "tandem/base/spin_lock.hpp"
#include "tandem/base/turnstile.hpp"
#include "tandem/runtime/data/access.hpp"
#include "tandem/runtime/data/layout.hpp"
#include "tandem/runtime/data/member_list.hpp"
#include "tandem/runtime/data/node_index.hpp"
#include "tandem/runtime/data/object.hpp"
#include "tandem/runtime/data/poison.hpp"
#include "tandem/runtime/data/residence.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

class DataRegistry;

/// No datum is larger, nor has more rows or columns; registration refuses it. So no sum over the data of a task overflows, nor does what memories add
/// to round a size.
inline constexpr std::size_t kMostDataBytes = std::size_t{1} << 50;
static_assert(kMostDataBytes <= SIZE_MAX / kMaxAccesses / 2);

/// Rows and columns of elements; a vector is one column, a scalar or a user's object one element.
struct Shape {
  std::size_t rows = 1;
  std::size_t cols = 1;
  std::size_t element_bytes = 0;

  /// Of one that `is_within(kMostDataBytes)`.
  std::size_t bytes() const noexcept { return rows * cols * element_bytes; }
  /// Whether it takes at most `most` bytes, and none of its numbers is larger; `ld`: with columns that are so many elements apart.
  bool is_within(std::size_t most, std::size_t ld = 0) const noexcept {
    if (rows > most || cols > most || element_bytes > most) return false;
    if (rows == 0 || cols == 0 || element_bytes == 0) return true;
    return std::max(cols > 1 ? ld : 0, rows) <= most / element_bytes / cols;
  }
  bool operator==(const Shape&) const = default;
};

/// The data's memory on one node. Columns are `ld` elements apart.
struct Replica {
  void* pointer = nullptr;
  std::size_t ld = 0;
  bool owned = false;  ///< allocated by Tandem

  /// Whether there is memory, which another thread may allocate at this moment: the one that divides data whose first writer begins.
  bool has_memory() const noexcept { return std::atomic_ref(const_cast<void*&>(pointer)).load(std::memory_order_acquire) != nullptr; }
  /// Memory of Tandem's, for `has_memory` of other threads. Under the handle's lock.
  void give_memory(void* memory, std::size_t rows) noexcept {
    ld = rows;
    owned = true;
    std::atomic_ref(pointer).store(memory, std::memory_order_release);
  }
};

/// A transfer towards a replica.
struct Transfer {
  bool under_way = false;
  Link* waiting = nullptr;  ///< tasks that wait for it
};

/// How partial results of `reduce` accesses start, and how one is added to another.
struct Reduction {
  std::function<void(void* partial, std::size_t ld, const Shape&)> init;
  std::function<void(void* into, std::size_t into_ld, const void* from, std::size_t from_ld, const Shape&)> combine;
};

class Handle;

/// How many tasks use data in a row, for policies that go by it (`PullingPolicy::by_depth`). By the submitting thread.
struct FlowDepth {
  std::uint32_t written = 0;  ///< of the last task that changes it
  std::uint32_t read = 0;     ///< the largest of those that only read it
};

/// A private copy of `reduce` accesses that moves between memories: a datum of its own, which the flow does not know. A task for a device has
/// one instead of the data that it names, with mode `read_write` (`Memory::bind_private_copies`), so that it is brought, kept in budgets and
/// given up like all data.
///
/// Protocol. `in_use` and `filled` are under the lock of `of`, but for the combining task, which is alone. What a copy holds that is not `filled` is
/// worth nothing: the task that has it next makes it neutral in main memory, unless the old value is being moved at that moment.
struct PrivateCopy {
  Handle& of;
  Handle* data = nullptr;
  bool in_use = false;   ///< a task has it
  bool filled = false;   ///< it holds contributions of tasks that have ended
  Link link = {};        ///< of the combining task, which waits for it in main memory
};

/// What neighbouring accesses the flow gathers since the last writer.
enum class GroupKind : std::uint8_t { readers, commuters, reducers };

/// The data's place in the flow: what the next access must wait for. Touched by the submitting thread alone.
///
/// Invariant: a task that reads waits for `writer`; one that writes waits for all `members` or, when there are none, for
/// `writer`. References carry the task's id, so that a recycled task counts as ended.
struct FlowState {
  TaskRef writer;
  [[no_unique_address]] MemberList members;  // what follows lies in the bytes at its end
  GroupKind kind = GroupKind::readers;
  bool has_value = false;  ///< somebody has written it by this point of the flow
  std::uint8_t asks = 0;   ///< before these uses the layer above is asked, bit 0: that see the value, bit 1: that change it

  void forget() noexcept {
    writer = {};
    members.clear();
    kind = GroupKind::readers;
    has_value = false;
  }
};

/// A piece of data.
///
/// Three parts on separate cache lines: the flow's, which the submitting thread changes at each submission; the replicas', which
/// workers read at each task; and what is rarely looked at.
///
/// Life. `owners` counts `Data` objects (and recorded graphs, for memory of Tandem's); when the last one goes, the registry
/// frees the data. `references` keeps this object itself: one for all owners together, one for the registration, one for each
/// recorded graph that uses it, and one for each live task with a `scratch` access, for which no dependency makes others wait.
/// Any thread may drop either; `registry` turns null under the registry's mutex, so that the last owner and the registry agree on
/// who frees it.
///
/// Coherence (modified, shared, invalid): bit n of `valid` says that node n holds the present value. One bit alone: that node may
/// be modified; several: shared; none: nobody has written yet. The graph's order makes a writer exclusive, so it stores its own
/// bit without a lock. Readers on several nodes may set bits at the same time; they change bits and transfers under `lock`, which
/// no submitting thread ever takes while tasks use the data. The bit `kMoving` says that the only valid replica is being moved away
/// from its node, and is set in runtimes with a limited memory alone; see `Room`.
class alignas(64) Handle {
 public:
  // --- the flow's line
  FlowState flow;
  std::atomic<std::uint32_t> registry_number{0};  ///< of `registry`; see DataRegistry::owns
  std::uint32_t number = 0;                       ///< as many data were registered there before it

  // --- the replicas' line
  alignas(64) Poison poison;  ///< why the present version does not exist
  Replica home;               ///< on node 0
  Shape shape;
  std::atomic<std::uint32_t> valid{0};
  std::uint32_t at_home = 0;  ///< bit n: who works in memory n uses it in main memory; see `node_at`. Before any task uses it

  // --- the rest
  alignas(64) base::SpinLock lock;
  bool user_memory = false;
  bool is_part = false;    ///< its main memory is a part of other data's
  bool has_parts = false;  ///< parts of its main memory are those of other data
  bool is_received = false;  ///< its values come from another rank, by messages; before it has memory, for good
  std::atomic<std::uint32_t> coming{0};  ///< bit n: a task that was placed in memory n brings it there; a hint for `Placer`
  std::atomic<DataRegistry*> registry{nullptr};  ///< null once unregistered, as its number
  Transfer to_home;
  struct Place {
    Replica replica;
    Transfer transfer;
  };
  std::unique_ptr<Place[]> elsewhere;    ///< the nodes from 1 on; null where there is main memory only
  std::unique_ptr<Residence> residence;  ///< null where no memory is limited
  base::Turnstile<Task> turnstile;       ///< for commuting tasks
  struct Partial {
    void* pointer = nullptr;
    bool in_use = false;
    bool filled = false;
  };
  std::vector<Partial> partials;  ///< private copies of `reduce` accesses, in main memory; under `lock`
  std::unique_ptr<std::deque<PrivateCopy>> private_copies;  ///< those that move; null: there was none yet; under `lock`
  PrivateCopy* private_copy = nullptr;                      ///< which one this is, while its data lives; null: none
  std::uint32_t copy_number = 0;                            ///< of a private copy, among those of its data, from 1; 0: it is none
  std::atomic<std::uint32_t> owners{1};
  std::atomic<std::uint32_t> references{2};
  std::string name;
  SourceLine registered_at;
  const std::type_info* type = nullptr;
  std::unique_ptr<Reduction> reduction;  ///< how `reduce` accesses add up; null: they are errors
  const ObjectOps* object = nullptr;     ///< of an object: its type's; null: the value is its bytes
  std::unique_ptr<const Layout> layout;  ///< of an array, as it lies in main memory; null: it is none
  FlowDepth depth;                       ///< of the tasks that were submitted so far
  std::size_t typical_bytes = 0;         ///< of an object: what it is said to take when it travels
  std::shared_ptr<void> division;        ///< of the layer above: how it is divided; null: it is not

  // --- the line of the layer above
  /// Bytes at which this layer does not look: `dist` keeps there which rank has the data, so that a task of other ranks costs
  /// one line per access and no look-up.
  alignas(64) std::array<std::byte, 64> above{};

  static constexpr std::uint32_t kMoving = 1U << 31;  ///< in `valid`
  static_assert(kMaxNodes < 31);

  /// Where a task that works in memory `node` finds the value: there, or, where the processor reaches main memory, in main memory.
  NodeIndex node_at(NodeIndex node) const noexcept { return node == 0 || (at_home >> node & 1U) != 0 ? 0 : node; }
  /// The nodes from which the value is had without a copy.
  std::uint32_t seen_valid() const noexcept {
    const std::uint32_t nodes = valid.load(std::memory_order_acquire) & ~kMoving;
    return (nodes & 1U) != 0 ? nodes | at_home : nodes;
  }
  bool valid_on(NodeIndex node) const noexcept { return (valid.load(std::memory_order_acquire) >> node_at(node) & 1U) != 0; }

  Replica& replica(NodeIndex node) noexcept {
    const NodeIndex at = node_at(node);
    return at == 0 ? home : elsewhere[at - 1].replica;
  }
  Transfer& transfer_to(NodeIndex node) noexcept {
    const NodeIndex at = node_at(node);
    return at == 0 ? to_home : elsewhere[at - 1].transfer;
  }

  // Its memory comes from slabs of the process (handle.cpp).
  static void* operator new(std::size_t bytes, std::align_val_t alignment);
  static void operator delete(void* memory, std::align_val_t alignment) noexcept;

  void drop_reference() noexcept {
    if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  /// Its main memory is where it is as long as the data is registered.
  bool stays() const noexcept { return user_memory || is_part || has_parts; }

  /// Main memory has the array with gaps; other memories have it packed.
  bool is_strided_at_home() const noexcept { return layout != nullptr && !layout->is_packed(); }
  /// Between ranks it goes through memory of the message.
  bool travels_packed() const noexcept { return object != nullptr || layout != nullptr; }

  /// What it takes to have it elsewhere; of an object as its program has estimated.
  std::size_t travel_bytes() const noexcept { return object != nullptr ? typical_bytes : shape.bytes(); }

  /// What to call it in a message.
  std::string described() const;
};
static_assert(offsetof(Handle, poison) == 64 && offsetof(Handle, lock) == 128,
              "the flow and the replicas have one cache line each");

/// How the task uses the data, as its program has said: not that it has a private copy.
inline AccessMode shown_mode(const AccessSlot& slot) noexcept {
  return slot.handle()->private_copy != nullptr ? AccessMode::reduce : slot.mode();
}

}  // namespace tandem::runtime
