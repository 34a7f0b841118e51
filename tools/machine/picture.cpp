// tools/machine/picture.cpp: a tree of boxes, drawn as text with branches or as SVG.
#include "tools/machine/picture.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "tools/counted.hpp"
#include "tools/svg_text.hpp"

namespace tandem::tools {
namespace {

enum class Look : std::uint8_t { machine, package, memory, cache, core, busy_core, device, network };

/// A part of the machine, and the parts within.
struct Box {
  Look look = Look::machine;
  std::string title;
  std::string note = {};  ///< the workers of a core
  std::vector<Box> parts = {};

  Box& add(Look kind, std::string text) { return parts.emplace_back(Box{.look = kind, .title = std::move(text)}); }
  bool is_core() const noexcept { return look == Look::core || look == Look::busy_core; }
};

/// The workers bound to each core.
std::map<unsigned, std::string> workers_by_core(const MachineView& machine) {
  std::map<unsigned, std::string> names;
  for (const WorkerPlacement& placement : machine.workers) {
    if (!placement.core || placement.is_caller) continue;
    std::string& name = names[placement.core->value()];
    name += fmt::format("{}{}", name.empty() ? "worker " : ", ", placement.worker);
  }
  return names;
}

/// The smallest cache that several of the machine's cores share and `core` belongs to; null: there is none.
const base::Cache* shared_cache(const base::Topology& topology, base::CoreId core) {
  const base::Cache* found = nullptr;
  for (const base::Cache& cache : topology.caches())
    if (cache.cores.size() > 1 && std::ranges::find(cache.cores, core) != cache.cores.end() &&
        (found == nullptr || cache.cores.size() < found->cores.size()))
      found = &cache;
  return found;
}

std::string name_of(const base::NumaNode& node) {
  return fmt::format("NUMA node {}{}", node.os_index, node.bytes > 0 ? ", " + readable_bytes(node.bytes) : "");
}

/// The part of `in` with that title, which is added if it is missing.
Box& part(Box& in, Look look, const std::string& title) {
  const auto found = std::ranges::find(in.parts, title, &Box::title);
  return found != in.parts.end() ? *found : in.add(look, title);
}

Box boxes_of(const MachineView& machine) {
  const base::Topology& topology = machine.topology;
  Box all{.look = Look::machine, .title = topology.cpu_model().empty() ? "processor unknown" : topology.cpu_model()};
  const auto workers = workers_by_core(machine);
  std::map<const base::Cache*, std::size_t> cache_numbers;
  std::set<unsigned> nodes_with_cores;
  for (const base::Core& core : topology.cores()) {
    Box* in = &part(all, Look::package, fmt::format("package {}", core.package));
    const auto node = std::ranges::find(topology.numa_nodes(), core.numa_node, &base::NumaNode::os_index);
    if (node != topology.numa_nodes().end()) {
      nodes_with_cores.insert(core.numa_node);
      in = &part(*in, Look::memory, name_of(*node));
    }
    if (const base::Cache* const cache = shared_cache(topology, core.id)) {
      const std::size_t number = cache_numbers.try_emplace(cache, cache_numbers.size()).first->second;
      in = &part(*in, Look::cache, fmt::format("L{} cache {}, {}", cache->level, number, readable_bytes(cache->bytes)));
    }
    const auto worker = workers.find(core.id.value());
    Box& box = in->add(worker != workers.end() ? Look::busy_core : Look::core, fmt::format("core {}", core.id.value()));
    if (worker != workers.end()) box.note = worker->second;
  }
  for (const base::NumaNode& node : topology.numa_nodes())
    if (!nodes_with_cores.contains(node.os_index)) all.add(Look::memory, name_of(node) + ", without cores");
  for (const MachineView::Device& device : machine.devices)
    all.add(Look::device, fmt::format("{}: {}, {}", device.kind, device.name, readable_bytes(device.memory_bytes)));
  for (const std::string& network : machine.networks) all.add(Look::network, "network " + network);
  return all;
}

/// Lists the workers without a core of their own.
std::string unbound(const MachineView& machine) {
  std::string text;
  for (const WorkerPlacement& placement : machine.workers) {
    if (placement.core && !placement.is_caller) continue;
    text += fmt::format("{}worker {} {}", text.empty() ? "" : "; ", placement.worker,
                        placement.is_caller ? "is the calling thread" : "runs on any core");
  }
  return text;
}

// --- text

void write_tree(const Box& box, const std::string& indent, std::string& text) {
  for (std::size_t i = 0; i < box.parts.size(); ++i) {
    const Box& one = box.parts[i];
    const bool last = i + 1 == box.parts.size();
    text += fmt::format("{}{} {}{}\n", indent, last ? "`-" : "|-", one.title, one.note.empty() ? "" : ": " + one.note);
    write_tree(one, indent + (last ? "   " : "|  "), text);
  }
}

// --- picture; lengths in pixels

constexpr double core_width = 76, core_height = 38, gap = 8, title_height = 20, page_width = 1000;
constexpr double letter = 6.9;  ///< greatest mean width of a letter

struct Size {
  double width = 0, height = 0;
};

Size size_of(const Box& box, double most);

/// Calls `place(part, x, y, size)` for the parts of a box, left to right in rows not wider than `most`; returns the
/// size of all.
template <class Place>
Size lay_out(const Box& box, double most, const Place& place) {
  if (!box.parts.empty() && box.parts.front().is_core())  // as a square
    most = std::min(most, std::ceil(std::sqrt(static_cast<double>(box.parts.size()))) * (core_width + gap));
  Size all;
  double x = 0, y = 0, row_height = 0;
  for (const Box& one : box.parts) {
    const Size size = size_of(one, most);
    if (x > 0 && x + size.width > most) {
      x = 0;
      y += row_height + gap;
      row_height = 0;
    }
    place(one, x, y, size);
    all.width = std::max(all.width, x + size.width);
    row_height = std::max(row_height, size.height);
    all.height = std::max(all.height, y + size.height);
    x += size.width + gap;
  }
  return all;
}

/// The size of a box with its frame.
Size size_of(const Box& box, double most) {
  if (box.is_core()) return {core_width, core_height};
  const Size within = lay_out(box, most - 2 * gap, [](const Box&, double, double, Size) {});
  const double title_width = letter * static_cast<double>(box.title.size());
  return {std::min(std::max(within.width, title_width) + 2 * gap, std::max(most, within.width + 2 * gap)),
          title_height + within.height + (box.parts.empty() ? gap / 2 : gap)};
}

/// Colours that are told apart with all kinds of colour vision, light enough for black text; worked cores are dark.
std::pair<std::string_view, std::string_view> colours_of(Look look) {
  switch (look) {
    case Look::machine: return {"#ffffff", "#ffffff"};
    case Look::package: return {"#fafafa", "#555555"};
    case Look::memory: return {"#e3f1e9", "#009e73"};
    case Look::cache: return {"#ffffff", "#999999"};
    case Look::core: return {"#eeeeee", "#aaaaaa"};
    case Look::busy_core: return {"#0072b2", "#0072b2"};
    case Look::device: return {"#fdf1d8", "#e69f00"};
    case Look::network: return {"#f7e9f1", "#cc79a7"};
  }
  return {"", ""};
}

void draw(const Box& box, double x, double y, Size size, double most, std::string& svg) {
  const auto [fill, line] = colours_of(box.look);
  svg += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"4\" fill=\"{}\" stroke=\"{}\"/>\n", x, y,
      size.width, size.height, fill, line);
  const auto write = [&](double down, std::string_view text, std::string_view colour) {
    const double room = size.width - gap;
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"{}\"", x + gap / 2 + 2, y + down, colour);
    if (letter * static_cast<double>(text.size()) > room)
      svg += fmt::format(" textLength=\"{:.1f}\" lengthAdjust=\"spacingAndGlyphs\"", room - 4);
    svg += fmt::format(">{}</text>\n", svg_text(text));
  };
  const std::string_view ink = box.look == Look::busy_core ? "#ffffff" : "#222222";
  write(15, box.title, ink);
  if (!box.note.empty()) write(31, box.note, ink);
  lay_out(box, most - 2 * gap, [&](const Box& one, double right, double down, Size of) {
    draw(one, x + gap + right, y + title_height + down, of, most - 2 * gap, svg);
  });
}

}  // namespace

std::string machine_tree(const MachineView& machine) {
  const Box all = boxes_of(machine);
  std::string text = all.title + "\n";
  write_tree(all, "", text);
  if (const std::string rest = unbound(machine); !rest.empty()) text += rest + "\n";
  return text;
}

std::string machine_svg(const MachineView& machine) {
  const Box all = boxes_of(machine);
  const Size size = size_of(all, page_width);
  const std::string rest = unbound(machine);
  const double width = std::max(size.width, letter * static_cast<double>(rest.size()) + 2 * gap);
  const double height = size.height + (rest.empty() ? 0 : title_height);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "font-family=\"system-ui, sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"#ffffff\"/>\n",
      width, height);
  draw(all, 0, 0, size, page_width, svg);
  if (!rest.empty())
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"#222222\">{}</text>\n", gap, size.height + 14,
                       svg_text(rest));
  return svg + "</svg>\n";
}

}  // namespace tandem::tools
