// tandem/sim/platform_file.cpp: keys and values of a platform.
#include "tandem/sim/platform_file.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <ranges>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tandem/base/number_of.hpp"
#include "tandem/base/owned_file.hpp"
#include "tandem/base/suggest.hpp"
#include "tandem/base/toml_file.hpp"
#include "tandem/base/units.hpp"
#include "tandem/model/contention/machine_file.hpp"
#include "tandem/model/contention/platforms.hpp"
#include "tandem/runtime/machine/machine_file.hpp"
#include "tandem/runtime/task/footprint.hpp"

namespace tandem::sim {

namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

constexpr unsigned most_cores = 65'536;
constexpr unsigned most_kinds_of_nodes = 64;

/// Sets what one key says. False: its value is wrong.
using Setter = std::function<bool(std::string_view text)>;

struct Key {
  std::string name;
  std::string wants;  ///< for an error
  Setter set;
};

Key real_key(const std::string& name, double least, double most, double& to) {
  return {name, fmt::format("a number from {} to {}", least, most), [least, most, &to](std::string_view text) {
            const auto number = base::number_of<double>(text);
            if (!number || !(*number >= least && *number <= most)) return false;
            to = *number;
            return true;
          }};
}

Key count_key(const std::string& name, unsigned most, unsigned& to) {
  return {name, fmt::format("a number from 1 to {}", most), [most, &to](std::string_view text) {
            const auto number = base::number_of<unsigned>(text);
            if (!number || *number < 1 || *number > most) return false;
            to = *number;
            return true;
          }};
}

Key time_key(const std::string& name, const std::function<void(std::int64_t ns)>& to) {
  return {name, "a time of at most 1 h, such as \"1.5us\"", [to](std::string_view text) {
            const auto ns = base::parse_duration_ns(text);
            if (!ns.ok() || ns.value() < 0 || ns.value() > 3'600 * base::ns_per_s) return false;
            to(ns.value());
            return true;
          }};
}

std::vector<Key> keys_of(DescribedPlatform& file) {
  Platform& platform = file.platform;
  Node& node = platform.nodes.front();
  return {{"name", "a text", [&file](std::string_view text) { return file.name = text, true; }},
          count_key("cores", most_cores, platform.cores),
          time_key("latency", [&platform](std::int64_t ns) { platform.latency_ns = ns; }),
          real_key("bandwidth", 1e-6, 1e6, platform.bytes_per_ns),
          time_key("node_latency", [&platform](std::int64_t ns) { platform.node_latency_ns = ns; }),
          real_key("node_bandwidth", 1e-6, 1e6, platform.node_bytes_per_ns),
          time_key("submit", [&platform](std::int64_t ns) { platform.submit_ns = ns; }),
          time_key("task", [&platform](std::int64_t ns) { platform.task_ns = ns; }),
          time_key("wake", [&platform](std::int64_t ns) { platform.wake_ns = ns; }),
          time_key("packet", [&platform](std::int64_t ns) { platform.packet_ns = ns; }),
          {"segment", "a size from 4KiB to 8MiB",
           [&platform](std::string_view text) {
             const auto bytes = base::parse_bytes(text);
             if (!bytes.ok() || bytes.value() < (4 << 10) || bytes.value() > (8 << 20)) return false;
             platform.segment_bytes = static_cast<std::size_t>(bytes.value());
             return true;
           }},
          real_key("copy", 0, 1e6, platform.copy_bytes_per_ns),
          real_key("node_spread", 0, 1, platform.node_spread),
          real_key("run_spread", 0, 1, platform.run_spread),
          count_key("numa_nodes", 1024, node.numa_nodes),
          real_key("numa_bandwidth", 1e-6, 1e6, node.numa_bytes_per_ns),
          time_key("numa_latency", [&node](std::int64_t ns) { node.numa_latency_ns = ns; }),
          real_key("remote", 1, 1e3, node.remote)};
}

std::vector<Key> keys_of(KernelLaw& law) {
  return {time_key("mean", [&law](std::int64_t ns) { law.mean_ns = static_cast<double>(ns); }),
          {"bytes", "a size, such as \"1200KiB\"",
           [&law](std::string_view text) {
             const auto bytes = base::parse_bytes(text);
             if (!bytes.ok() || bytes.value() <= 0) return false;
             law.bytes = static_cast<double>(bytes.value());
             return true;
           }},
          real_key("power", 0, 4, law.power),
          real_key("spread", 0, 4, law.spread)};
}

std::optional<DeviceKind> kind_of(std::string_view word) {
  if (word == "cpu") return DeviceKind::cpu;
  if (word == "cuda") return DeviceKind::cuda;
  if (word == "opencl") return DeviceKind::opencl;
  return {};
}

std::vector<Key> keys_of(DeviceGroup& group) {
  return {{"kind", "\"cuda\" or \"opencl\"",
           [&group](std::string_view text) {
             const auto kind = kind_of(text);
             if (!kind || *kind == DeviceKind::cpu) return false;
             group.kind = *kind;
             return true;
           }},
          count_key("count", 256, group.count),
          {"memory", "a size, such as \"11GB\"",
           [&group](std::string_view text) {
             const auto bytes = base::parse_bytes(text);
             if (!bytes.ok() || bytes.value() <= 0) return false;
             group.memory_bytes = static_cast<std::size_t>(bytes.value());
             return true;
           }},
          time_key("latency", [&group](std::int64_t ns) { group.latency_ns = ns; }),
          real_key("bandwidth", 1e-6, 1e6, group.bytes_per_ns),
          count_key("in_flight", 64, group.depth)};
}

/// A key "TABLE.OF.NAME", whose middle may have dots.
struct TableKey {
  std::string_view of, name;
};

std::optional<TableKey> key_in(std::string_view table, std::string_view key) {
  if (!key.starts_with(table)) return {};
  key.remove_prefix(table.size());
  const auto last = key.rfind('.');
  if (last == key.npos || last == 0) return {};
  return TableKey{key.substr(0, last), key.substr(last + 1)};
}

Result<void> take(std::vector<Key> keys, std::string_view name, const base::TomlValue& value, std::string_view file) {
  std::vector<std::string> names;
  for (const Key& key : keys) {
    if (key.name != name) {
      names.push_back(key.name);
      continue;
    }
    if (key.set(value.text)) return {};
    return Error{ErrorCode::malformed,
                 fmt::format("{}:{}: {} = {}: write {}", file, value.line, value.name, value.text, key.wants)};
  }
  const std::string nearest = base::nearest_name(name, names);
  return Error{ErrorCode::malformed, fmt::format("{}:{}: a platform has no {}; {}", file, value.line, value.name,
                                                 nearest.empty() ? fmt::format("it has {}", fmt::join(names, ", "))
                                                                 : fmt::format("did you mean {}?", nearest))};
}

/// Takes cores and the network of a node's file.
Result<void> take_machine(const std::filesystem::path& file, Platform& platform) {
  const auto machine = runtime::read_machine(file);
  if (!machine.ok()) return machine.error();
  platform.cores = machine.value().cpu_workers();
  if (machine.value().networks.empty()) return {};
  for (const runtime::MachineNetwork& network : machine.value().networks) {
    const bool is_near = network.transport == "shm";
    (is_near ? platform.node_latency_ns : platform.latency_ns) = network.latency_ns();
    (is_near ? platform.node_bytes_per_ns : platform.bytes_per_ns) = network.marginal_bytes_per_ns();
  }
  return {};
}

/// Takes how kernels and messages share memory: a machine of the thesis, or a file of `tandem contention fit`.
Result<void> take_contention(const std::filesystem::path& folder, const base::TomlValue& value, std::string_view file,
                             Platform& platform) {
  namespace contention = model::contention;
  if (const contention::Platform* const known = contention::find_platform(value.text)) {
    platform.contention = {.machine = contention::soften(known->machine), .cores = known->cores_per_socket};
    return {};
  }
  constexpr std::size_t most_bytes = std::size_t{16} << 20;
  const auto opened = base::OwnedFile::open(folder / value.text, base::Owners::anyone);
  const auto text = opened.ok() ? opened.value().text(most_bytes) : Result<std::string>(opened.error());
  if (!text.ok()) {
    std::vector<std::string_view> names;
    for (const contention::Platform& known : contention::platforms()) names.push_back(known.name);
    return Error{ErrorCode::malformed,
                 fmt::format("{}:{}: contention = {} is none of the machines {}, and as a file: {}", file, value.line,
                             value.text, fmt::join(names, ", "), text.error().message)};
  }
  auto machine = contention::parse_machine(text.value(), (folder / value.text).string());
  if (!machine.ok()) return machine.error();
  platform.contention = std::move(machine).value();
  return {};
}

/// Takes a key of `kernels.CODELET.KIND`.
Result<void> take_kernel(const TableKey& key, const base::TomlValue& value, std::string_view file, KernelLaws& laws) {
  const auto dot = key.of.rfind('.');
  const std::string codelet(key.of.substr(0, dot));
  const std::string_view word = dot == key.of.npos ? "" : key.of.substr(dot + 1);
  const auto kind = kind_of(word);
  if (!kind)
    return Error{ErrorCode::malformed,
                 fmt::format("{}:{}: {} is no kind of worker: write [kernels.{}.cpu], .cuda or .opencl", file,
                             value.line, word, codelet)};
  return take(keys_of(laws[{codelet, *kind}]), key.name, value, file);
}

/// One of several kinds of nodes: "7 chifflet:24".
struct KindOfNodes {
  std::uint32_t count = 0;
  std::string name = {};
  std::optional<unsigned> cores = {};  ///< none: as its file says
  PlatformSettings settings = {};      ///< of "chifflet.KEY"
};

Result<std::vector<KindOfNodes>> kinds_of(const base::TomlValue& value, std::string_view file) {
  std::vector<KindOfNodes> kinds;
  for (const auto range : std::views::split(std::string_view(value.text), ',')) {
    std::string_view part(range.begin(), range.end());
    part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
    const auto space = part.find(' ');
    const auto colon = part.find(':');
    const auto count = base::number_of<std::uint32_t>(part.substr(0, space)).value_or(0);
    const auto cores = colon == part.npos ? 1 : base::number_of<unsigned>(part.substr(colon + 1)).value_or(0);
    if (count == 0 || space == part.npos || cores == 0 || cores > most_cores || kinds.size() == most_kinds_of_nodes)
      return Error{ErrorCode::malformed,
                   fmt::format("{}:{}: nodes: '{}': write \"14 chetemi, 7 chifflet:24\", at most {}", file, value.line,
                               part, most_kinds_of_nodes)};
    KindOfNodes& kind = kinds.emplace_back();
    kind.count = count;
    kind.name = part.substr(space + 1, colon == part.npos ? colon : colon - space - 1);
    if (colon != part.npos) kind.cores = cores;
  }
  return kinds;
}

Result<DescribedPlatform> platform_of(const std::vector<base::TomlValue>& values, std::string_view file,
                                      const std::filesystem::path& folder, const PlatformSettings& settings,
                                      bool is_of_kind = false);

/// Takes the kinds of nodes from their files, which name no others.
Result<void> take_kinds(const std::filesystem::path& folder, const std::vector<KindOfNodes>& kinds,
                        DescribedPlatform& described) {
  const KernelLaws common = std::move(described.kernels.front());
  described.kernels.clear();
  described.platform.nodes.clear();
  for (const KindOfNodes& kind : kinds) {
    const std::filesystem::path file = folder / (kind.name + (kind.name.ends_with(".toml") ? "" : ".toml"));
    const auto values = base::read_toml(file);
    if (!values.ok()) return values.error();
    const auto read = platform_of(values.value(), file.string(), file.parent_path(), kind.settings, true);
    if (!read.ok()) return read.error();
    Node& node = described.platform.nodes.emplace_back(read.value().platform.nodes.front());
    node.count = kind.count;
    node.cores = kind.cores.value_or(read.value().platform.cores);
    described.kernels.push_back(read.value().kernels.front());
    described.kernels.back().insert(common.begin(), common.end());
  }
  return {};
}

/// Takes a key of a table, or of none.
Result<void> take_key(const std::filesystem::path& folder, const base::TomlValue& value, std::string_view file,
                      DescribedPlatform& described, std::map<std::string, DeviceGroup>& devices) {
  if (value.name == "contention") return take_contention(folder, value, file, described.platform);
  if (const auto key = key_in("kernels.", value.name); key && key->of.find('.') != key->of.npos)
    return take_kernel(*key, value, file, described.kernels.front());
  if (const auto key = key_in("devices.", value.name))
    return take(keys_of(devices[std::string(key->of)]), key->name, value, file);
  return take(keys_of(described), value.name, value, file);
}

/// Applies settings; those of a kind of nodes are left to it.
Result<void> take_settings(const std::filesystem::path& folder, const PlatformSettings& settings,
                           std::vector<KindOfNodes>& kinds, DescribedPlatform& described,
                           std::map<std::string, DeviceGroup>& devices) {
  for (unsigned number = 1; const auto& [key, text] : settings) {
    const auto dot = key.find('.');
    const auto kind = std::ranges::find(kinds, key.substr(0, dot), &KindOfNodes::name);
    if (kind != kinds.end() && dot != key.npos) {
      kind->settings.emplace_back(key.substr(dot + 1), text);
    } else if (const auto taken = take_key(folder, {key, text, number}, "--set", described, devices); !taken.ok()) {
      return taken.error();
    }
    ++number;
  }
  return {};
}

/// `is_of_kind`: the file is of one kind of nodes of another one.
Result<DescribedPlatform> platform_of(const std::vector<base::TomlValue>& values, std::string_view file,
                                      const std::filesystem::path& folder, const PlatformSettings& settings,
                                      bool is_of_kind) {
  DescribedPlatform described;
  std::map<std::string, DeviceGroup> devices;
  std::vector<KindOfNodes> kinds;
  for (const base::TomlValue& value : values)
    if (value.name == "machine") {
      if (const auto taken = take_machine(folder / value.text, described.platform); !taken.ok()) return taken.error();
    } else if (value.name == "models") {
      described.models = folder / value.text;
    } else if (value.name == "nodes") {
      auto found = kinds_of(value, file);
      if (!found.ok()) return found.error();
      if (is_of_kind)
        return Error{ErrorCode::malformed,
                     fmt::format("{}:{}: a kind of nodes has several kinds itself", file, value.line)};
      kinds = std::move(found).value();
    }
  for (const base::TomlValue& value : values) {
    if (value.name == "machine" || value.name == "models" || value.name == "nodes") continue;
    if (const auto taken = take_key(folder, value, file, described, devices); !taken.ok()) return taken.error();
  }
  if (const auto taken = take_settings(folder, settings, kinds, described, devices); !taken.ok()) return taken.error();
  for (const auto& [name, group] : devices) described.platform.nodes.front().devices.push_back(group);
  for (const auto& [key, law] : described.kernels.front())
    if (law.mean_ns <= 0)
      return Error{ErrorCode::malformed,
                   fmt::format("{}: kernel {} has no duration: write mean = \"1.2ms\"", file, key.first)};
  if (kinds.empty()) return described;
  if (const auto taken = take_kinds(folder, kinds, described); !taken.ok()) return taken.error();
  return described;
}

}  // namespace

std::optional<KernelTime> DescribedPlatform::time_of(const runtime::EmulatedTask& task, std::uint32_t node) const {
  const auto found = kernels[node].find({std::string(task.codelet), task.device});
  if (found == kernels[node].end()) return {};
  const KernelLaw& law = found->second;
  const auto bytes = static_cast<double>(runtime::footprint_of(task.data).bytes);
  const double mean_ns = law.bytes > 0 ? law.mean_ns * std::pow(bytes / law.bytes, law.power) : law.mean_ns;
  return KernelTime{.mean_ns = mean_ns, .deviation_ns = mean_ns * law.spread};
}

Result<DescribedPlatform> parse_platform(std::string_view text, std::string_view name,
                                         const std::filesystem::path& folder, const PlatformSettings& settings) {
  const auto values = base::parse_toml(text, name);
  if (!values.ok()) return values.error();
  return platform_of(values.value(), name, folder, settings);
}

Result<DescribedPlatform> read_platform(const std::filesystem::path& file, const PlatformSettings& settings) {
  const auto values = base::read_toml(file);
  if (!values.ok()) return values.error();
  return platform_of(values.value(), file.string(), file.parent_path(), settings);
}

}  // namespace tandem::sim
