// tandem/runtime/task/flow_chart.cpp: the DOT writer.
#include "tandem/runtime/task/flow_chart.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>

#include "tandem/runtime/task/describe.hpp"
#include "tandem/runtime/task/task_number.hpp"

namespace tandem::runtime {

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + '"';
}

/// A separate hue for each codelet, light enough for black text.
std::string colour_of(const std::string& name) {
  const double hue = static_cast<double>(std::hash<std::string>()(name) % 360) / 360.0;
  return fmt::format("\"{:.3f} 0.35 0.95\"", hue);
}

}  // namespace

void FlowChart::node(Task& task) { nodes_.push_back({task.id, name_of(task), task.priority}); }

void FlowChart::edge(TaskId from, const Task& to, const Handle* data) {
  edges_.push_back({from, to.id, data != nullptr ? data->name : std::string()});
}

std::string FlowChart::dot() const {
  std::string out =
      "digraph flow {\n  node [style=filled, shape=box, fontname=\"sans-serif\"];\n  edge [fontsize=9];\n";
  auto end = std::back_inserter(out);
  for (const Node& node : nodes_) {
    std::string label = fmt::format("{} #{}", node.name, TaskNumber::of(node.id));
    if (node.priority != 0) label += fmt::format(" (priority {})", node.priority);
    fmt::format_to(end, "  t{} [label={}, fillcolor={}];\n", TaskNumber::unmarked(node.id), quoted(label),
                   colour_of(node.name));
  }
  for (const Edge& edge : edges_) {
    fmt::format_to(end, "  t{} -> t{}", TaskNumber::unmarked(edge.from), TaskNumber::unmarked(edge.to));
    if (edge.data.empty()) fmt::format_to(end, " [style=dashed];\n");
    else fmt::format_to(end, " [label={}];\n", quoted(edge.data));
  }
  return out + "}\n";
}

base::Result<void> FlowChart::write(const std::string& path) const {
  std::ofstream file(path);
  file << dot();
  file.close();
  if (!file)
    return base::Error{base::ErrorCode::io,
                       fmt::format("cannot write the graph to '{}': {}; give a file in a folder that exists and "
                                   "can be written to",
                                   path, std::strerror(errno))};
  return {};
}

}  // namespace tandem::runtime
