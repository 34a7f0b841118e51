// tandem/runtime/worker/expected_end.cpp: walks the successors of a task.
#include "tandem/runtime/worker/expected_end.hpp"

namespace tandem::runtime {

void report_expected_end(const Task& task, std::int64_t in_ns) {
  constexpr unsigned most_links = 16;  // the most links that are read
  if (task.recorded) return;
  unsigned looked = 0;
  for (const Link* link = task.successors.peek(); link != nullptr && looked < most_links; link = link->next, ++looked) {
    const Task& next = *link->task();
    if (next.kind == TaskKind::event && next.extra != nullptr && next.extra->on_expected != nullptr)
      next.extra->on_expected(next.extra->context, in_ns);
  }
}

}  // namespace tandem::runtime
