// tandem/dist/program_flow.hpp: the flow of a program, on one rank.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "tandem/dist/flow_statistics.hpp"
#include "tandem/dist/placement.hpp"
#include "tandem/dist/use.hpp"

namespace tandem::runtime {
class RecordedFlow;
class RuntimeCore;
}  // namespace tandem::runtime
namespace tandem::trace {
class Session;
}

namespace tandem::dist {

/// The flow of a program, as `Runtime` sees it: its operations on one rank, which runs all tasks, and whose data has no
/// owner. `Flow` overrides them for several ranks; its header says what they do there.
///
/// Threads: the submitting thread; any may call `cancel`.
class ProgramFlow {
 public:
  explicit ProgramFlow(runtime::RuntimeCore& core) : core_(core) {}
  virtual ~ProgramFlow() = default;
  ProgramFlow(const ProgramFlow&) = delete;
  ProgramFlow& operator=(const ProgramFlow&) = delete;

  virtual std::uint32_t rank() const noexcept { return 0; }
  virtual std::uint32_t size() const noexcept { return 1; }
  virtual unsigned most_workers() const noexcept;

  // --- data
  virtual void add(runtime::Handle&, std::uint32_t /*owner*/, bool /*has_value*/) {}
  virtual std::uint32_t reserve(std::size_t /*count*/, const std::function<std::uint64_t()>& /*digest*/) { return 0; }
  virtual void add_reserved(runtime::Handle&, std::uint32_t /*owner*/, std::uint32_t /*number*/) {}
  /// Whether the data has an owner, and is not a copy for each rank.
  virtual bool has_owner(runtime::Handle&) const noexcept { return false; }
  /// The rank that owns the data; this rank if the data has no owner.
  virtual std::uint32_t owner_of(runtime::Handle&) const { return 0; }
  /// Whether the data has a value, as all ranks know it; while a flow is recorded, at this point of a replay.
  virtual bool has_value(runtime::Handle& handle) const;
  virtual void forget_value(runtime::Handle& handle);
  virtual bool has_spare_id() const noexcept { return true; }

  // --- parts of data
  /// Whether parts get their own memory, since that of the whole may leave main memory. The same on all ranks.
  virtual bool copies_parts(const runtime::Handle& whole) const noexcept;
  /// Whether splits and gathers have an effect. False: on several ranks the flow is over, until the next wait.
  virtual bool orders_parts() { return true; }
  /// Whether splits and gathers without values are submitted, too: all ranks count them, even those that do not know of
  /// values, and replays repeat them.
  virtual bool orders_without_value() const noexcept { return is_recording(); }

  // --- tasks
  virtual bool enter(std::span<const Use>, const Wish&) { return true; }
  virtual void entered() {}
  /// Begins a task, now or, while a flow is recorded, in each replay. `reduces`: it has `reduce` accesses. True: it
  /// runs here, and the caller must fill and `submit` it. Throws UsageError.
  virtual bool begin_task(std::span<Use>, Wish&, bool /*reduces*/) { return true; }
  virtual runtime::TaskRef submit(runtime::Task& task, std::span<const Use>, const Wish&);
  virtual void skip(std::uint64_t tasks);
  virtual bool prunes() const noexcept { return false; }
  virtual bool concerns(std::span<const Use>) const { return true; }

  // --- recorded flows
  virtual bool is_recording() const noexcept;
  /// Calls `flow`, and records the operations that it submits. Throws what it throws, and UsageError.
  virtual std::unique_ptr<runtime::RecordedFlow> record(const std::function<void()>& flow);

  // --- operations that are no tasks
  virtual void fetch(runtime::Handle*, std::uint32_t /*rank*/, const SourceLine&) {}
  virtual void migrate(runtime::Handle*, std::uint32_t /*rank*/, const SourceLine&) {}
  virtual void flush(runtime::Handle*) {}

  // --- the end
  virtual void wait();
  virtual bool end() noexcept;
  virtual void cancel();
  virtual bool is_over();
  virtual bool cancelled() { return is_over(); }
  virtual std::optional<std::uint64_t> cancelled_at() const noexcept;
  virtual void agree_on_least(std::shared_ptr<std::atomic<std::uint64_t>>) {}

  // --- what is known
  virtual void set_placement(PlacementPolicy) {}
  virtual void trace_to(trace::Session&) {}
  virtual FlowStatistics statistics() const { return {}; }
  virtual std::uint64_t position() const noexcept;

 protected:
  runtime::RuntimeCore& core_;
};

}  // namespace tandem::dist
