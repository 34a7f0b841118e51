// tandem/api/graph.cpp: changes of a recorded flow.
#include "tandem/api/graph.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <string>

#include "tandem/api/recorded_parts.hpp"
#include "tandem/runtime/record/recorded_flow.hpp"

namespace tandem {

namespace {

/// The types of a tuple in source form: "(int, double)".
std::string type_list(const std::type_info& tuple) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(tuple.name(), nullptr, nullptr, &status),
                                                         &std::free);
  if (status != 0) return tuple.name();
  const std::string text(name.get());
  const auto first = text.find('<');
  const auto last = text.rfind('>');
  return first == std::string::npos ? text : "(" + text.substr(first + 1, last - first - 1) + ")";
}

}  // namespace

Graph::Graph() = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

std::size_t Graph::task_count() const noexcept { return flow_ != nullptr ? flow_->task_count() : 0; }

void* Graph::values_of(const TaskRef& task, const std::type_info& types) {
  runtime::Task* const model = flow_->change(task);
  if (model == nullptr) return nullptr;
  const std::type_info* const kept = model->ops->value_types;
  if (kept == nullptr || *kept != types)
    throw UsageError("set_values: the task was submitted with values of types " +
                     (kept != nullptr ? type_list(*kept) : "()") + ", and is given " + type_list(types) +
                     "; the number and the types must be the same, so convert them first");
  return model->values();
}

void Graph::set_priority(const TaskRef& task, int priority) {
  if (runtime::Task* const model = flow_->change(task)) model->priority = priority;
}

std::function<void(const std::function<void(runtime::Handle&)>&)> Graph::each_datum() const {
  return [&data = flow_->data()](const std::function<void(runtime::Handle&)>& visit) { data.for_each(visit); };
}

void Graph::rebind_handles(runtime::Handle* from, runtime::Handle* to) {
  if (from == nullptr || to == nullptr) throw UsageError("rebind: an empty Data object");
  for (const runtime::Handle* const handle : {from, to})
    if (internal::PartPlan::is_bound(*handle))
      throw UsageError("cannot rebind " + from->described() + " to " + to->described() + ": " + handle->described() +
                       " has parts, or is a part");
  flow_->rebind(*from, *to);
}

}  // namespace tandem
