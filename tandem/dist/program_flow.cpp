// tandem/dist/program_flow.cpp: the flow of one rank, which is that of the runtime.
#include "tandem/dist/program_flow.hpp"

#include "tandem/base/narrow.hpp"
#include "tandem/runtime/record/recorder.hpp"
#include "tandem/runtime/runtime_core.hpp"

namespace tandem::dist {

using runtime::Handle;

unsigned ProgramFlow::most_workers() const noexcept {
  return base::narrow<unsigned>(core_.world().machine.workers.size());
}

bool ProgramFlow::has_value(Handle& handle) const { return handle.flow.has_value; }
void ProgramFlow::forget_value(Handle& handle) {
  core_.data().note_value(handle);
  handle.flow.has_value = false;
}

/// Memory of the program's does not leave.
bool ProgramFlow::copies_parts(const Handle& whole) const noexcept {
  return core_.memory().is_limited(0) && !whole.user_memory && !whole.is_part;
}

runtime::TaskRef ProgramFlow::submit(runtime::Task& task, std::span<const Use>, const Wish& wish) {
  return core_.submission().submit_after(task, wish.after.data(), wish.after.size());
}

void ProgramFlow::skip(std::uint64_t tasks) {
  if (tasks > 0 && !is_over()) throw UsageError("cannot skip tasks: there is one rank only, which runs them all");
}

bool ProgramFlow::is_recording() const noexcept { return core_.submission().recorder() != nullptr; }
std::unique_ptr<runtime::RecordedFlow> ProgramFlow::record(const std::function<void()>& flow) {
  return runtime::record_graph(core_, flow);
}

void ProgramFlow::wait() { core_.waits().wait_all(); }
bool ProgramFlow::end() noexcept { return core_.shut_down(); }
void ProgramFlow::cancel() { core_.waits().cancel(); }
bool ProgramFlow::is_over() { return core_.submission().is_over(); }
std::optional<std::uint64_t> ProgramFlow::cancelled_at() const noexcept { return core_.waits().cancelled_at(); }
std::uint64_t ProgramFlow::position() const noexcept { return core_.submission().last_id(); }

}  // namespace tandem::dist
