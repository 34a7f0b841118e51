// tandem/runtime/trace_link.cpp: descriptions of data and replays for a trace.
#include "tandem/runtime/trace_link.hpp"

#include <unordered_map>

namespace tandem::runtime {

void TraceLink::describe_data(const Handle& handle, std::uint32_t owner) {
  if (session_ == nullptr) return;
  session_->describe({.data = handle.number,
                      .owner = owner,
                      .bytes = handle.shape.bytes(),
                      .rows = handle.shape.rows,
                      .cols = handle.shape.cols,
                      .name = handle.name,
                      .file = handle.registered_at.file != nullptr ? handle.registered_at.file : "",
                      .line = handle.registered_at.line});
}

std::uint32_t TraceLink::describe_replay(std::uint32_t graph, TaskId base, const std::vector<Task*>& tasks) {
  if (!submissions_.stream
           .begin_instant<trace::Type::task_submitted, trace::Type::task_deps, trace::Type::task_replayed>())
    return graph;
  if (graph == 0) {
    graph = ++graphs_;
    std::unordered_map<const Task*, std::uint32_t> index;
    for (std::size_t i = 0; i < tasks.size(); ++i) index.emplace(tasks[i], static_cast<std::uint32_t>(i));
    std::vector<std::vector<std::uint32_t>> predecessors(tasks.size());
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const RecordedPart& part = *tasks[i]->recording;
      for (std::uint32_t s = 0; s < part.successor_count; ++s)
        predecessors[index.at(part.successors[s])].push_back(static_cast<std::uint32_t>(base + i));
    }
    for (std::size_t i = 0; i < tasks.size(); ++i) submissions_.describe(*tasks[i], base + i, predecessors[i]);
  }
  submissions_.tell_iteration_of_replay();
  submissions_.stream.append<trace::Type::task_replayed>(graph, base, tasks.size());
  return graph;
}

}  // namespace tandem::runtime
