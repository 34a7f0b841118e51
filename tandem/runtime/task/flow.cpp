// tandem/runtime/task/flow.cpp: the rare paths of dependency inference.
#include "tandem/runtime/task/flow.hpp"

namespace tandem::runtime {

void Flow::close_group(Handle& handle) {
  FlowState& flow = handle.flow;
  const bool reduced = flow.kind == GroupKind::reducers;
  if (!reduced && flow.members.size() == 1) {
    flow.writer = flow.members.front();
    flow.members.clear();
    flow.kind = GroupKind::readers;
    return;
  }
  // The join or the combining task is entered in the middle of another task's entering: keep that one's count.
  const std::int32_t outer_edges = edges_;
  Task* task = reduced ? host_.make_combine(handle) : host_.make_join();
  begin_entering(*task);
  for (const TaskRef& member : flow.members) depend(*task, nullptr, member, &handle);
  flow.members.clear();
  flow.kind = GroupKind::readers;
  flow.writer = {task, task->id};
  if (finish_entering(*task)) host_.entered_ready(*task);
  edges_ = outer_edges;
}

}  // namespace tandem::runtime
