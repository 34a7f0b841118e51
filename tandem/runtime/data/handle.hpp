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

/// The most bytes, rows or columns of one datum; registration refuses more. So neither the sum over the data of a task
/// nor the rounding of sizes by memories overflows.
inline constexpr std::size_t kMostDataBytes = std::size_t{1} << 50;
static_assert(kMostDataBytes <= SIZE_MAX / kMaxAccesses / 2);

/// Rows and columns of elements; a vector is one column, a scalar or a user's object one element.
struct Shape {
  std::size_t rows = 1;
  std::size_t cols = 1;
  std::size_t element_bytes = 0;

  /// Bytes of a shape that `is_within(kMostDataBytes)`.
  std::size_t bytes() const noexcept { return rows * cols * element_bytes; }
  /// Whether the shape takes at most `most` bytes and none of its numbers is larger. `ld`: distance of its columns in
  /// elements.
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

  /// Whether the replica has memory. Another thread may allocate it at this moment: the one that divides data whose
  /// first writer begins.
  bool has_memory() const noexcept {
    return std::atomic_ref(const_cast<void*&>(pointer)).load(std::memory_order_acquire) != nullptr;
  }
  /// Sets memory of Tandem's, which other threads see by `has_memory`. Under the handle's lock.
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

/// Depth of the data in the flow: how many tasks in a row use it (`PullingPolicy::by_depth`). Written by the submitting
/// thread.
struct FlowDepth {
  std::uint32_t written = 0;  ///< depth of the last task that changes the data
  std::uint32_t read = 0;     ///< largest depth of the tasks that only read it
};

/// A private copy of `reduce` accesses that moves between memories: a datum of its own, which the flow does not know. A
/// task for a device has one instead of the data that it names, with mode `read_write` (`Memory::bind_private_copies`),
/// so it is fetched, counted in budgets and evicted like all data.
///
/// Protocol. The lock of `of` guards `in_use` and `filled`; the combining task runs alone and needs no lock. A copy
/// that is not `filled` has no valid content: the task that gets it next makes it neutral in main memory, unless its
/// old value is being moved at that moment.
struct PrivateCopy {
  Handle& of;
  Handle* data = nullptr;
  bool in_use = false;   ///< a task uses the copy
  bool filled = false;   ///< the copy has contributions of ended tasks
  Link link = {};        ///< entry of the combining task, which waits for the copy in main memory
};

/// Kind of the neighbouring accesses that the flow gathers since the last writer.
enum class GroupKind : std::uint8_t { readers, commuters, reducers };

/// The data's place in the flow: what the next access must wait for. Touched by the submitting thread alone.
///
/// Invariant: a task that reads waits for `writer`; one that writes waits for all `members` or, when there are none,
/// for `writer`. References carry the task's id, so that a recycled task counts as ended.
struct FlowState {
  TaskRef writer;
  [[no_unique_address]] MemberList members;  // the next members use its tail padding
  GroupKind kind = GroupKind::readers;
  bool has_value = false;  ///< the data has a value at this point of the flow
  /// Uses before which the layer above is asked; bit 0: uses that see the value, bit 1: uses that change it.
  std::uint8_t asks = 0;

  void forget() noexcept {
    writer = {};
    members.clear();
    kind = GroupKind::readers;
    has_value = false;
  }
};

/// A piece of data.
///
/// Three parts on separate cache lines: the flow's, which the submitting thread changes at each submission; the
/// replicas', which workers read at each task; and what is rarely looked at.
///
/// Life. `owners` counts `Data` objects (and recorded graphs, for memory of Tandem's); when the last one goes, the
/// registry frees the data. `references` keeps this object itself: one for all owners together, one for the
/// registration, one for each recorded graph that uses it, and one for each live task with a `scratch` access, for
/// which no dependency makes others wait. Any thread may drop either; `registry` turns null under the registry's mutex,
/// so that the last owner and the registry agree on which of them frees it.
///
/// Coherence (modified, shared, invalid): bit n of `valid` says that node n holds the present value. One bit alone:
/// that node may be modified; several: shared; none: nobody has written yet. The graph's order makes a writer
/// exclusive, so it stores its own bit without a lock. Readers on several nodes may set bits at the same time; they
/// change bits and transfers under `lock`, which no submitting thread ever takes while tasks use the data. The bit
/// `kMoving` says that the only valid replica is being moved away from its node, and is set in runtimes with a limited
/// memory alone; see `Room`.
class alignas(64) Handle {
 public:
  // --- the flow's line
  FlowState flow;
  std::atomic<std::uint32_t> registry_number{0};  ///< number of `registry`; see DataRegistry::owns
  std::uint32_t number = 0;                       ///< number of data registered there before this one

  // --- the replicas' line
  alignas(64) Poison poison;  ///< why the present version does not exist, if so
  Replica home;               ///< on node 0
  Shape shape;
  std::atomic<std::uint32_t> valid{0};
  /// Bit n: workers of memory n use the data in main memory; see `node_at`. Set before any task uses it.
  std::uint32_t at_home = 0;

  // --- the rest
  alignas(64) base::SpinLock lock;
  bool user_memory = false;
  bool is_part = false;    ///< the main memory of this data is a part of other data's
  bool has_parts = false;  ///< parts of the main memory of this data are other data
  /// Messages bring the values from another rank; set before the data has memory, never cleared.
  bool is_received = false;
  /// Bit n: a task placed in memory n brings the data there; a hint for `Placer`.
  std::atomic<std::uint32_t> coming{0};
  std::atomic<DataRegistry*> registry{nullptr};  ///< null once unregistered; `registry_number` is 0 then
  Transfer to_home;
  struct Place {
    Replica replica;
    Transfer transfer;
  };
  std::unique_ptr<Place[]> elsewhere;    ///< places on the nodes from 1 on; null if there is main memory only
  std::unique_ptr<Residence> residence;  ///< null where no memory is limited
  base::Turnstile<Task> turnstile;       ///< for commuting tasks
  struct Partial {
    void* pointer = nullptr;
    bool in_use = false;
    bool filled = false;
  };
  std::vector<Partial> partials;  ///< private copies of `reduce` accesses, in main memory; under `lock`
  /// Private copies that move between memories; null: none so far; under `lock`.
  std::unique_ptr<std::deque<PrivateCopy>> private_copies;
  PrivateCopy* private_copy = nullptr;  ///< the private copy whose data this is, while that data lives; null: none
  std::uint32_t copy_number = 0;  ///< number of a private copy among those of its data, from 1; 0: no private copy
  std::atomic<std::uint32_t> owners{1};
  std::atomic<std::uint32_t> references{2};
  std::string name;
  SourceLine registered_at;
  const std::type_info* type = nullptr;
  std::unique_ptr<Reduction> reduction;  ///< how `reduce` accesses add up; null: such accesses are errors
  const ObjectOps* object = nullptr;     ///< functions of the type of an object; null: the value is its bytes
  std::unique_ptr<const Layout> layout;  ///< layout of an array in main memory; null: no array
  FlowDepth depth;                       ///< depth in the flow, by the tasks submitted so far
  std::size_t typical_bytes = 0;         ///< of an object: expected bytes when it travels
  std::shared_ptr<void> division;        ///< how the layer above divides the data; null: undivided

  // --- the line of the layer above
  /// Bytes that belong to the layer above: `dist` keeps there which rank has the data, so a task of other ranks costs
  /// one line per access and no look-up.
  alignas(64) std::array<std::byte, 64> above{};

  static constexpr std::uint32_t kMoving = 1U << 31;  ///< in `valid`
  static_assert(kMaxNodes < 31);

  /// The memory where a task that works in memory `node` finds the value: main memory if the processor reaches it, else
  /// `node`.
  NodeIndex node_at(NodeIndex node) const noexcept { return node == 0 || (at_home >> node & 1U) != 0 ? 0 : node; }
  /// Bits of the nodes whose workers see the value without a copy.
  std::uint32_t seen_valid() const noexcept {
    const std::uint32_t nodes = valid.load(std::memory_order_acquire) & ~kMoving;
    return (nodes & 1U) != 0 ? nodes | at_home : nodes;
  }
  bool valid_on(NodeIndex node) const noexcept {
    return (valid.load(std::memory_order_acquire) >> node_at(node) & 1U) != 0;
  }

  Replica& replica(NodeIndex node) noexcept {
    const NodeIndex at = node_at(node);
    return at == 0 ? home : elsewhere[at - 1].replica;
  }
  Transfer& transfer_to(NodeIndex node) noexcept {
    const NodeIndex at = node_at(node);
    return at == 0 ? to_home : elsewhere[at - 1].transfer;
  }

  // Handles get their memory from slabs of the process (handle.cpp).
  static void* operator new(std::size_t bytes, std::align_val_t alignment);
  static void operator delete(void* memory, std::align_val_t alignment) noexcept;

  void drop_reference() noexcept {
    if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  /// True if its main memory keeps its address as long as the data is registered.
  bool stays() const noexcept { return user_memory || is_part || has_parts; }

  /// True if main memory has the array with gaps; other memories have it packed.
  bool is_strided_at_home() const noexcept { return layout != nullptr && !layout->is_packed(); }
  /// True if the data travels between ranks through memory of the message.
  bool travels_packed() const noexcept { return object != nullptr || layout != nullptr; }

  /// Bytes of a copy elsewhere; for an object, the program's estimate.
  std::size_t travel_bytes() const noexcept { return object != nullptr ? typical_bytes : shape.bytes(); }

  /// Name of the data for messages.
  std::string described() const;
};
static_assert(offsetof(Handle, poison) == 64 && offsetof(Handle, lock) == 128,
              "the flow and the replicas have one cache line each");

/// The mode that the program gave for the access, also if the task uses a private copy.
inline AccessMode shown_mode(const AccessSlot& slot) noexcept {
  return slot.handle()->private_copy != nullptr ? AccessMode::reduce : slot.mode();
}

/// The handle of a Data object. Throws UsageError if it is empty: "cannot ACTION an empty Data object".
Handle& named(Handle* handle, const char* action);

}  // namespace tandem::runtime
