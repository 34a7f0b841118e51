// tandem/sim/platform_file.cpp: keys and values of a platform.
#include "tandem/sim/platform_file.hpp"

#include <array>
#include <cmath>
#include <functional>
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
  return {{"name", "a text", [&file](std::string_view text) { return file.name = text, true; }},
          {"cores", "a number from 1 to 65536",
           [&platform](std::string_view text) {
             const auto cores = base::number_of<unsigned>(text);
             if (!cores || *cores < 1 || *cores > 65536) return false;
             platform.cores = *cores;
             return true;
           }},
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
          real_key("run_spread", 0, 1, platform.run_spread)};
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

/// A key "kernels.CODELET.KIND.NAME", whose codelet may have dots.
struct KernelKey {
  std::string codelet;
  std::string_view kind, name;
};

std::optional<KernelKey> kernel_key(std::string_view key) {
  constexpr std::string_view table = "kernels.";
  if (!key.starts_with(table)) return {};
  key.remove_prefix(table.size());
  const auto last = key.rfind('.');
  if (last == key.npos || last == 0) return {};
  const auto kind = key.rfind('.', last - 1);
  if (kind == key.npos || kind == 0) return {};
  return KernelKey{std::string(key.substr(0, kind)), key.substr(kind + 1, last - kind - 1), key.substr(last + 1)};
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

Result<DescribedPlatform> platform_of(const std::vector<base::TomlValue>& values, std::string_view file,
                                      const std::filesystem::path& folder) {
  DescribedPlatform described;
  for (const base::TomlValue& value : values)
    if (value.name == "machine") {
      if (const auto taken = take_machine(folder / value.text, described.platform); !taken.ok()) return taken.error();
    } else if (value.name == "models") {
      described.models = folder / value.text;
    }
  for (const base::TomlValue& value : values) {
    if (value.name == "machine" || value.name == "models") continue;
    if (value.name == "contention") {
      if (const auto taken = take_contention(folder, value, file, described.platform); !taken.ok())
        return taken.error();
      continue;
    }
    const auto of_kernel = kernel_key(value.name);
    if (!of_kernel) {
      if (const auto taken = take(keys_of(described), value.name, value, file); !taken.ok()) return taken.error();
      continue;
    }
    const auto kind = kind_of(of_kernel->kind);
    if (!kind)
      return Error{ErrorCode::malformed,
                   fmt::format("{}:{}: {} is no kind of worker: write [kernels.{}.cpu], .cuda or .opencl", file,
                               value.line, of_kernel->kind, of_kernel->codelet)};
    KernelLaw& law = described.kernels[{of_kernel->codelet, *kind}];
    if (const auto taken = take(keys_of(law), of_kernel->name, value, file); !taken.ok()) return taken.error();
  }
  for (const auto& [key, law] : described.kernels)
    if (law.mean_ns <= 0)
      return Error{ErrorCode::malformed,
                   fmt::format("{}: kernel {} has no duration: write mean = \"1.2ms\"", file, key.first)};
  return described;
}

}  // namespace

std::optional<KernelTime> DescribedPlatform::time_of(const runtime::EmulatedTask& task) const {
  const auto found = kernels.find({std::string(task.codelet), task.device});
  if (found == kernels.end()) return {};
  const KernelLaw& law = found->second;
  const auto bytes = static_cast<double>(runtime::footprint_of(task.data).bytes);
  const double mean_ns = law.bytes > 0 ? law.mean_ns * std::pow(bytes / law.bytes, law.power) : law.mean_ns;
  return KernelTime{.mean_ns = mean_ns, .deviation_ns = mean_ns * law.spread};
}

Result<DescribedPlatform> parse_platform(std::string_view text, std::string_view name,
                                         const std::filesystem::path& folder) {
  const auto values = base::parse_toml(text, name);
  if (!values.ok()) return values.error();
  return platform_of(values.value(), name, folder);
}

Result<DescribedPlatform> read_platform(const std::filesystem::path& file) {
  const auto values = base::read_toml(file);
  if (!values.ok()) return values.error();
  return platform_of(values.value(), file.string(), file.parent_path());
}

}  // namespace tandem::sim
