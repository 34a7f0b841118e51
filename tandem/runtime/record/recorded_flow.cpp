// tandem/runtime/record/recorded_flow.cpp: numbers of recordings, and checks of their changes.
#include "tandem/runtime/record/recorded_flow.hpp"

#include <fmt/format.h>

#include <atomic>

#include "tandem/runtime/runtime_core.hpp"

namespace tandem::runtime {

static std::atomic<std::uint32_t> last_number{0};

RecordedFlow::RecordedFlow(RuntimeCore& runtime) : runtime_(runtime), number_(++last_number & 0x7fff'ffff) {}

void RecordedFlow::check_change(const TaskRef& task) const {
  if (task.is_of_recording(number_)) return;
  throw UsageError(
      "a change to a recorded graph names a task that is not of its recording; keep what submit returned while it was "
      "recorded");
}

void RecordedFlow::check_rebind(const Handle& from, const Handle& to, bool uses_from, bool uses_to) const {
  const auto refuse = [&](const char* why) {
    throw UsageError(fmt::format("cannot rebind {} to {}{}", from.described(), to.described(), why));
  };
  if (!uses_from)
    throw UsageError(fmt::format("cannot rebind {}: the recorded graph does not use it", from.described()));
  if (uses_to) refuse(": the recorded graph uses that one too");
  if (!(from.shape == to.shape) || *from.type != *to.type) refuse(": their types or sizes differ");
  if (!runtime_.data().owns(to)) refuse(", which is not registered here");
}

}  // namespace tandem::runtime
