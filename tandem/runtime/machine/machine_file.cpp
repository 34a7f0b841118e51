// tandem/runtime/machine/machine_file.cpp: writes a machine as tables of TOML, and reads and checks them.
#include "tandem/runtime/machine/machine_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tandem/base/exceptions.hpp"
#include "tandem/base/number_of.hpp"
#include "tandem/base/replace_file.hpp"
#include "tandem/base/suggest.hpp"
#include "tandem/base/toml_file.hpp"
#include "tandem/base/units.hpp"

namespace tandem::runtime {
namespace {

using base::Error;
using base::ErrorCode;
using base::number_of;

constexpr std::string_view kFormat = "1";
constexpr std::string_view kAnew = "or write the file anew with `tandem machine --save FILE`";
constexpr double kMostWatts = 1e5;                          ///< power of a worker
constexpr double kMostUs = 1e9;                             ///< a latency of a quarter of an hour is a mistake
constexpr double kLeastUs = 1e-3;                           ///< time of a message; no time at all would be a mistake
constexpr std::int64_t kMostBytes = std::int64_t{1} << 53;  ///< the most that base::format_bytes writes exactly

constexpr std::array<std::pair<NodeKind, std::string_view>, 4> kNodeKinds{
    {{NodeKind::main, "main"}, {NodeKind::numa, "numa"}, {NodeKind::device, "device"}, {NodeKind::storage, "storage"}}};
constexpr std::array<std::pair<LinkSource, std::string_view>, 3> kSources{
    {{LinkSource::assumed, "assumed"}, {LinkSource::given, "given"}, {LinkSource::measured, "measured"}}};
constexpr std::array<std::pair<DeviceKind, std::string_view>, 4> kWorkerKinds{
    {{DeviceKind::cpu, "cpu"}, {DeviceKind::cuda, "cuda"}, {DeviceKind::opencl, "opencl"}, {DeviceKind::user, "user"}}};

template <class Names, class Value>
std::string_view word_in_list(const Names& names, Value value) {
  const auto known = std::ranges::find(names, value, &Names::value_type::first);
  return known != names.end() ? known->second : std::string_view();
}

template <class Names>
std::vector<std::string> words_of(const Names& names) {
  std::vector<std::string> words;
  for (const auto& [value, word] : names) words.emplace_back(word);
  return words;
}

// --- reading

/// The keys of one table of the file.
struct Table {
  unsigned line = 0;  ///< line of its first key
  std::map<std::string, base::TomlValue, std::less<>> values;
};

/// Splits the file into tables, then makes a machine of them. The first error ends it, as an exception within this
/// file.
class MachineReader {
 public:
  explicit MachineReader(std::string_view file) : file_(file) {}

  base::Result<Machine> read(const std::vector<base::TomlValue>& values) {
    try {
      take_format(values);
      for (const base::TomlValue& value : values) sort(value);
      make_memories();
      make_links();
      make_networks();
      make_workers();
      make_distances();
      machine_.check();
    } catch (const Refusal& refusal) {
      return refusal.error;
    } catch (const UsageError& not_whole) {
      return Error{ErrorCode::malformed, fmt::format("{}: {}; correct it, {}", file_, not_whole.what(), kAnew)};
    }
    return std::move(machine_);
  }

 private:
  struct Refusal {
    Error error;
  };
  using LinkEnds = std::pair<NodeIndex, NodeIndex>;

  /// Throws an error; `line` 0: not known.
  [[noreturn]] void refuse(unsigned line, const std::string& what, ErrorCode code = ErrorCode::malformed) const {
    throw Refusal{{code, line != 0 ? fmt::format("{}:{}: {}", file_, line, what) : fmt::format("{}: {}", file_, what)}};
  }
  [[noreturn]] void refuse_value(const base::TomlValue& value, const std::string& accepted) const {
    refuse(value.line, fmt::format("{} is '{}'; write {}", value.name, value.text, accepted));
  }

  void take_format(const std::vector<base::TomlValue>& values) const {
    const auto format = std::ranges::find(values, "format", &base::TomlValue::name);
    if (format == values.end())
      refuse(0, fmt::format("format is missing, so this is no file of a machine, or a damaged one; write `format = {}` "
                            "in its first line, {}",
                            kFormat, kAnew));
    if (format->text != kFormat)
      refuse(format->line,
             fmt::format("format is {}, and this version of Tandem reads format {}; write the file anew with `tandem "
                         "machine --save FILE`",
                         format->text, kFormat),
             ErrorCode::unsupported);
  }

  /// Puts a value into its table.
  void sort(const base::TomlValue& value) {
    if (value.name == "format" || value.name == "found_on") return;
    const std::string_view name = value.name;
    const std::size_t first = name.find('.');
    const std::string_view section = name.substr(0, first),
                           rest = first == name.npos ? std::string_view() : name.substr(first + 1);
    if (section == "distance" && first != name.npos) {
      distances_[number_in(value, rest)] = value;
      return;
    }
    const std::size_t second = rest.find('.');
    const std::string_view item = rest.substr(0, second);
    Table* table = nullptr;
    if (second != rest.npos) {
      if (section == "memory") table = &memories_[number_in(value, item)];
      if (section == "worker") table = &workers_[number_in(value, item)];
      if (section == "link") table = &links_[ends_in(value, item)];
      if (section == "network") table = &networks_[transport_in(value, item)];
    }
    if (table == nullptr)
      refuse(value.line, fmt::format("{} is no key of a machine; there are [memory.N], [link.FROM-TO], "
                                     "[network.TRANSPORT], [worker.N] and [distance]",
                                     value.name));
    if (table->values.empty()) table->line = value.line;
    table->values.emplace(rest.substr(second + 1), value);
  }

  unsigned number_in(const base::TomlValue& value, std::string_view text) const {
    const auto number = number_of<std::uint16_t>(text);
    if (!number)
      refuse(value.line,
             fmt::format("{}: '{}' is no number of a memory or worker; they are counted from 0", value.name, text));
    return *number;
  }

  LinkEnds ends_in(const base::TomlValue& value, std::string_view text) const {
    const std::size_t dash = text.find('-');
    const auto from = number_of<NodeIndex>(text.substr(0, dash));
    const auto to = dash != text.npos ? number_of<NodeIndex>(text.substr(dash + 1)) : std::nullopt;
    if (!from || !to)
      refuse(value.line,
             fmt::format("{}: '{}' does not name two memories; write [link.0-1] for the link from memory 0 to memory 1",
                         value.name, text));
    return {*from, *to};
  }

  std::string transport_in(const base::TomlValue& value, std::string_view text) const {
    const auto may_stand = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
    if (text.empty() || !std::ranges::all_of(text, may_stand))
      refuse(value.line, fmt::format("{}: '{}' is no name of a transport; write [network.tcp] for messages over TCP",
                                     value.name, text));
    return std::string(text);
  }

  /// Checks that the numbers are 0, 1, 2 and so on.
  template <class Numbered>
  void check_numbers(const Numbered& items, std::string_view section) const {
    unsigned next = 0;
    for (const auto& [number, item] : items) {
      if (number != next)
        refuse(item.line, fmt::format("{}.{} is here, and {}.{} is missing; count them from 0 without gaps, {}",
                                      section, number, section, next, kAnew));
      ++next;
    }
  }

  void check_keys(const Table& table, std::span<const std::string> known) const {
    for (const auto& [key, value] : table.values) {
      if (std::ranges::find(known, key) != known.end()) continue;
      const std::string near = base::nearest_name(key, known);
      refuse(value.line,
             fmt::format("{} is not known{}; there are {}", value.name,
                         near.empty() ? "" : fmt::format(" (did you mean {}?)", near), fmt::join(known, ", ")));
    }
  }

  /// The value of a key; null: the table does not have it.
  static const base::TomlValue* find(const Table& table, std::string_view key) {
    const auto value = table.values.find(key);
    return value != table.values.end() ? &value->second : nullptr;
  }
  const base::TomlValue& needed(const Table& table, const std::string& name, std::string_view key,
                                std::string_view example) const {
    const base::TomlValue* const value = find(table, key);
    if (value == nullptr)
      refuse(table.line, fmt::format("{}.{} is missing; write {} = {}, {}", name, key, key, example, kAnew));
    return *value;
  }

  static std::vector<std::string_view> words_in(std::string_view text) {
    std::vector<std::string_view> words;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find(' '), text.size());
      if (end != 0) words.push_back(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return words;
  }

  template <class Names>
  auto word_in(const base::TomlValue& value, const Names& names) const {
    const auto known = std::ranges::find(names, std::string_view(value.text), &Names::value_type::second);
    if (known == names.end()) refuse_value(value, fmt::format("one of {}", fmt::join(words_of(names), ", ")));
    return known->first;
  }
  std::optional<double> rate_in(const base::TomlValue* value) const {
    if (value == nullptr) return {};
    const auto rate = number_of<double>(value->text);
    if (!rate || !(*rate > 0)) refuse_value(*value, "GB/s, a number above 0 such as 12.5");
    return rate;
  }
  template <class Number>
  std::optional<Number> count_in(const base::TomlValue* value, std::string_view what) const {
    if (value == nullptr) return {};
    const auto number = number_of<Number>(value->text);
    if (!number || *number < 0) refuse_value(*value, fmt::format("{}, a whole number from 0", what));
    return number;
  }

  void make_memories() {
    static const std::vector<std::string> keys{"kind", "name", "budget", "numa_node"};
    if (memories_.empty())
      refuse(0, fmt::format("memory.0 is missing, which is main memory; write [memory.0], {}", kAnew));
    check_numbers(memories_, "memory");
    machine_.nodes.clear();
    for (const auto& [number, table] : memories_) {
      const std::string name = fmt::format("memory.{}", number);
      check_keys(table, keys);
      const base::TomlValue& kind = needed(table, name, "kind", "\"device\"");
      MachineNode node{.kind = word_in(kind, kNodeKinds), .name = needed(table, name, "name", "\"card\"").text};
      if ((node.kind == NodeKind::main) != (number == 0))
        refuse(kind.line,
               fmt::format("{} is '{}'; memory.0 is of kind main, and no other one is", kind.name, kind.text));
      const base::TomlValue& budget = needed(table, name, "budget", "\"8GiB\", or 0 for no limit");
      const auto bytes = base::parse_bytes(budget.text);
      if (!bytes.ok() || bytes.value() < 0) refuse_value(budget, "bytes, as in \"8GiB\", or 0 for no limit");
      node.budget = static_cast<std::size_t>(bytes.value());
      node.numa_node = count_in<std::uint16_t>(find(table, "numa_node"), "a NUMA node").value_or(0);
      if (number >= kMaxNodes)
        refuse(table.line, fmt::format("{} is one memory too many; a machine has at most {}", name, kMaxNodes));
      machine_.nodes.push_back(std::move(node));
    }
  }

  void make_links() {
    static const std::vector<std::string> keys{"gb_s", "latency_us", "source", "loaded_gb_s", "beside_messages_gb_s"};
    for (const auto& [ends, table] : links_) {
      const std::string name = fmt::format("link.{}-{}", ends.first, ends.second);
      check_keys(table, keys);
      if (ends.first == ends.second || std::max(ends.first, ends.second) >= machine_.nodes.size())
        refuse(table.line,
               fmt::format("{} does not lead from one of the {} memories to another; correct its name or leave it out",
                           name, machine_.nodes.size()));
      MachineLink link{.from = ends.first, .to = ends.second, .source = LinkSource::given};
      link.bytes_per_ns = *rate_in(&needed(table, name, "gb_s", "12.5"));
      const base::TomlValue& latency = needed(table, name, "latency_us", "10");
      const auto us = number_of<double>(latency.text);
      if (!us || !(*us >= 0 && *us <= kMostUs)) refuse_value(latency, "us, a number from 0 such as 12.5");
      link.latency_ns = std::llround(*us * 1e3);
      if (const base::TomlValue* const source = find(table, "source")) link.source = word_in(*source, kSources);
      link.loaded_bytes_per_ns = rate_in(find(table, "loaded_gb_s"));
      link.beside_messages_bytes_per_ns = rate_in(find(table, "beside_messages_gb_s"));
      machine_.links.push_back(link);
    }
  }

  void make_networks() {
    static const std::vector<std::string> keys{"source",       "sizes",     "alone_us",
                                               "both_ways_us", "loaded_us", "all_pairs_us"};
    for (const auto& [transport, table] : networks_) {
      const std::string name = fmt::format("network.{}", transport);
      check_keys(table, keys);
      MachineNetwork network{.transport = transport, .times = sizes_in(needed(table, name, "sizes", "\"4KiB 1MiB\""))};
      if (const base::TomlValue* const source = find(table, "source")) network.source = word_in(*source, kSources);
      const std::size_t count = network.times.size();
      const auto alone = times_in(needed(table, name, "alone_us", "\"12.5 130\""), count);
      const auto optional_times = [&](std::string_view key) {
        const base::TomlValue* const value = find(table, key);
        return value != nullptr ? times_in(*value, count) : std::vector<std::optional<double>>(count);
      };
      const auto both_ways = optional_times("both_ways_us"), loaded = optional_times("loaded_us"),
                 all_pairs = optional_times("all_pairs_us");
      for (std::size_t i = 0; i < count; ++i) {
        if (!alone[i])
          refuse_value(*find(table, "alone_us"), "a time for each of the sizes, or leave out the sizes that have none");
        network.times[i].alone_ns = *alone[i];
        network.times[i].both_ways_ns = both_ways[i];
        network.times[i].loaded_ns = loaded[i];
        network.times[i].all_pairs_ns = all_pairs[i];
      }
      machine_.networks.push_back(std::move(network));
    }
  }

  std::vector<MessageTimes> sizes_in(const base::TomlValue& value) const {
    std::vector<MessageTimes> times;
    for (const std::string_view word : words_in(value.text)) {
      const auto bytes = base::parse_bytes(word);
      const std::size_t least = times.empty() ? 0 : times.back().bytes;
      if (!bytes.ok() || bytes.value() > kMostBytes || bytes.value() <= static_cast<std::int64_t>(least)) {
        times.clear();
        break;
      }
      times.push_back({.bytes = static_cast<std::size_t>(bytes.value())});
    }
    if (times.empty()) refuse_value(value, "sizes of messages in ascending order, as in \"4KiB 64KiB 1MiB\"");
    return times;
  }

  /// Times in ns; none for '-'.
  std::vector<std::optional<double>> times_in(const base::TomlValue& value, std::size_t count) const {
    std::vector<std::optional<double>> times;
    const std::vector<std::string_view> words = words_in(value.text);
    for (const std::string_view word : words) {
      const auto us = number_of<double>(word);
      const bool is_time = us && *us >= kLeastUs && *us <= kMostUs;
      if (!is_time && word != "-") break;
      times.push_back(is_time ? std::optional(*us * 1e3) : std::nullopt);
    }
    if (times.size() != count || words.size() != count)
      refuse_value(value, fmt::format("{} numbers of us, one for each of the sizes, as in \"12.5 130\"; - where a time is not known", count));
    return times;
  }

  void make_workers() {
    static const std::vector<std::string> keys{"kind",        "memory",        "core",      "numa_node",
                                               "bus_address", "running_watts", "idle_watts"};
    check_numbers(workers_, "worker");
    for (const auto& [number, table] : workers_) {
      const std::string name = fmt::format("worker.{}", number);
      check_keys(table, keys);
      MachineWorker worker{.kind = worker_kind_in(needed(table, name, "kind", "\"cpu\""))};
      if (worker.kind == DeviceKind::cpu && !machine_.workers.empty() &&
          machine_.workers.back().kind != DeviceKind::cpu)
        refuse(
            table.line,
            fmt::format("{} is of kind cpu and stands behind a device's worker; let the CPU workers come first", name));
      const base::TomlValue& memory = needed(table, name, "memory", "0");
      worker.node = *count_in<NodeIndex>(&memory, "a memory");
      if (worker.node >= machine_.nodes.size())
        refuse_value(memory, fmt::format("one of the {} memories, counted from 0", machine_.nodes.size()));
      worker.core = count_in<std::int32_t>(find(table, "core"), "a core").value_or(-1);
      worker.numa_node = count_in<std::uint16_t>(find(table, "numa_node"), "a NUMA node").value_or(0);
      if (const base::TomlValue* const address = find(table, "bus_address")) worker.bus_address = address->text;
      worker.power = power_in(table, name);
      machine_.workers.push_back(std::move(worker));
    }
  }

  std::optional<WorkerPower> power_in(const Table& table, const std::string& name) const {
    if (find(table, "running_watts") == nullptr && find(table, "idle_watts") == nullptr) return {};
    const base::TomlValue &running = needed(table, name, "running_watts", "12.5"),
                          &idle = needed(table, name, "idle_watts", "2.5");
    const auto idle_watts = watts_in(idle), running_watts = watts_in(running);
    if (running_watts < idle_watts)
      refuse_value(running, fmt::format("no less than {}, which is {}", idle.name, idle.text));
    return WorkerPower{.running_watts = running_watts, .idle_watts = idle_watts};
  }
  double watts_in(const base::TomlValue& value) const {
    const auto watts = number_of<double>(value.text);
    if (!watts || !(*watts >= 0 && *watts <= kMostWatts)) refuse_value(value, "W, a number from 0 such as 12.5");
    return *watts;
  }

  DeviceKind worker_kind_in(const base::TomlValue& value) const {
    constexpr std::string_view user = "user ";
    if (value.text.starts_with(user)) {
      constexpr auto first = static_cast<unsigned>(DeviceKind::user);
      const auto number = number_of<std::uint8_t>(std::string_view(value.text).substr(user.size()));
      if (number && *number <= std::numeric_limits<std::uint8_t>::max() - first)
        return static_cast<DeviceKind>(first + *number);
    }
    return word_in(value, kWorkerKinds);
  }

  void make_distances() {
    const unsigned cores = machine_.cpu_workers();
    for (unsigned row = 0; row < cores; ++row) {
      const auto known = distances_.find(row);
      if (known == distances_.end())
        refuse(0, fmt::format("distance.{} is missing, so the file is cut off, or a CPU worker was added; [distance] "
                              "has a row for each of the {}, {}",
                              row, cores, kAnew));
      machine_.distance.push_back(row_in(known->second, cores));
    }
    if (distances_.size() > cores) {
      const base::TomlValue& last = distances_.rbegin()->second;
      refuse(last.line,
             fmt::format("{} is a row too many: there are {} CPU workers; leave it out, {}", last.name, cores, kAnew));
    }
  }

  std::vector<unsigned> row_in(const base::TomlValue& value, unsigned cores) const {
    std::vector<unsigned> row;
    const std::vector<std::string_view> words = words_in(value.text);
    for (const std::string_view word : words) {
      const auto distance = number_of<std::uint16_t>(word);
      if (!distance) break;
      row.push_back(*distance);
    }
    if (row.size() == words.size() && row.size() == cores && cores != 0) return row;
    refuse_value(value, fmt::format("{} whole numbers, the distances of this CPU worker to all of them", cores));
  }

  const std::string_view file_;
  std::map<unsigned, Table> memories_, workers_;
  std::map<LinkEnds, Table> links_;
  std::map<std::string, Table> networks_;
  std::map<unsigned, base::TomlValue> distances_;
  Machine machine_;
};

// --- writing

std::string memories_text(const Machine& machine) {
  std::string text;
  for (std::size_t i = 0; i < machine.nodes.size(); ++i) {
    const MachineNode& node = machine.nodes[i];
    const auto bytes = static_cast<std::int64_t>(std::min<std::uint64_t>(node.budget, kMostBytes));
    text += fmt::format("\n[memory.{}]\nkind = \"{}\"\nname = {}\nbudget = \"{}\"\n", i, word_of(node.kind),
                        base::toml_quoted(node.name), base::format_bytes(bytes));
    if (node.kind == NodeKind::numa) text += fmt::format("numa_node = {}\n", node.numa_node);
  }
  return text;
}

std::string links_text(const Machine& machine) {
  std::string text;
  for (const MachineLink& link : machine.links) {
    text += fmt::format("\n[link.{}-{}]\ngb_s = {:.6g}\nlatency_us = {}\nsource = \"{}\"\n", link.from, link.to,
                        link.bytes_per_ns, static_cast<double>(link.latency_ns) / 1e3, word_of(link.source));
    if (link.loaded_bytes_per_ns) text += fmt::format("loaded_gb_s = {:.6g}\n", *link.loaded_bytes_per_ns);
    if (link.beside_messages_bytes_per_ns)
      text += fmt::format("beside_messages_gb_s = {:.6g}\n", *link.beside_messages_bytes_per_ns);
  }
  return text;
}

/// Text of networks: a table with a column for each size.
std::string networks_text(const Machine& machine) {
  std::string text;
  for (const MachineNetwork& network : machine.networks) {
    text += fmt::format("\n[network.{}]\nsource = \"{}\"\n", network.transport, word_of(network.source));
    const auto row = [&](std::string_view key, const auto& word) {
      text += fmt::format("{:<12} = \"", key);
      for (const MessageTimes& one : network.times)
        text += fmt::format("{}{:>8}", &one == network.times.data() ? "" : " ", word(one));
      text += "\"\n";
    };
    const auto us = [](std::optional<double> ns) { return ns ? fmt::format("{:.6g}", *ns / 1e3) : std::string("-"); };
    row("sizes", [](const MessageTimes& one) { return base::format_bytes(static_cast<std::int64_t>(one.bytes)); });
    row("alone_us", [&](const MessageTimes& one) { return us(one.alone_ns); });
    const auto row_if_known = [&](std::string_view key, std::optional<double> MessageTimes::* time) {
      if (std::ranges::any_of(network.times, [&](const MessageTimes& one) { return (one.*time).has_value(); }))
        row(key, [&](const MessageTimes& one) { return us(one.*time); });
    };
    row_if_known("both_ways_us", &MessageTimes::both_ways_ns);
    row_if_known("loaded_us", &MessageTimes::loaded_ns);
    row_if_known("all_pairs_us", &MessageTimes::all_pairs_ns);
  }
  return text;
}

std::string workers_text(const Machine& machine) {
  std::string text;
  for (std::size_t i = 0; i < machine.workers.size(); ++i) {
    const MachineWorker& worker = machine.workers[i];
    text += fmt::format("\n[worker.{}]\nkind = \"{}\"\nmemory = {}\n", i, word_of(worker.kind), worker.node);
    if (worker.core >= 0) text += fmt::format("core = {}\n", worker.core);
    text += fmt::format("numa_node = {}\n", worker.numa_node);
    if (!worker.bus_address.empty()) text += fmt::format("bus_address = {}\n", base::toml_quoted(worker.bus_address));
    if (worker.power)
      text += fmt::format("running_watts = {:.6g}\nidle_watts = {:.6g}\n", worker.power->running_watts,
                          worker.power->idle_watts);
  }
  text += "\n[distance]\n";
  for (std::size_t i = 0; i < machine.distance.size(); ++i)
    text += fmt::format("{} = \"{}\"\n", i, fmt::join(machine.distance[i], " "));
  return text;
}

}  // namespace

std::string_view word_of(NodeKind kind) { return word_in_list(kNodeKinds, kind); }
std::string_view word_of(LinkSource source) { return word_in_list(kSources, source); }
std::string word_of(DeviceKind kind) {
  const std::string_view word = word_in_list(kWorkerKinds, kind);
  return word.empty() ? fmt::format("user {}", static_cast<int>(kind) - static_cast<int>(DeviceKind::user))
                      : std::string(word);
}

std::string to_text(const Machine& machine, std::string_view found_on) {
  std::string text =
      "# A machine as Tandem sees it. Programs take the figures of memories and links from here with option "
      "machine=FILE.\n"
      "# [memory.N]: budget is the bytes of data that may be there, 0: no limit. Memory 0 is main memory.\n"
      "# [link.FROM-TO]: copies between memories. loaded_gb_s: while all links copy at once; beside_messages_gb_s: "
      "while large messages come and go.\n"
      "# source: measured, given, or assumed, which a program measures itself. Add, change or remove links as you "
      "like.\n"
      "# [network.TRANSPORT]: messages to another rank, by size: alone, while as large ones go the other way, while "
      "all links copy, and\n"
      "# while all other ranks exchange messages in pairs.\n"
      "# [worker.N]: running_watts, idle_watts: what it draws while a kernel runs and while none does, for option "
      "objective; both or none.\n"
      "# [worker.N], [distance]: who works in which memory, and how far the CPU workers are from each other. They must "
      "be as in the program.\n";
  text += fmt::format("format = {}\n", kFormat);
  if (!found_on.empty()) text += fmt::format("found_on = {}\n", base::toml_quoted(found_on));
  return text + memories_text(machine) + links_text(machine) + networks_text(machine) + workers_text(machine);
}

base::Result<Machine> parse_machine(std::string_view text, std::string_view name) {
  const auto values = base::parse_toml(text, name);
  if (!values.ok()) return values.error();
  return MachineReader(name).read(values.value());
}

base::Result<Machine> read_machine(const std::filesystem::path& path) {
  const auto values = base::read_toml(path);
  if (!values.ok()) return values.error();
  const std::string name = path.string();
  return MachineReader(name).read(values.value());
}

base::Result<void> write_machine(const std::filesystem::path& path, const Machine& machine, std::string_view found_on) {
  return base::replace_file(path, to_text(machine, found_on));
}

}  // namespace tandem::runtime
