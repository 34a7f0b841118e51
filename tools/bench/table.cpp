// tools/bench/table.cpp: from the plan of a benchmark to its subcommand.
#include "tools/bench/table.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <sstream>
#include <type_traits>

#include <fmt/args.h>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "tools/counted.hpp"

namespace tandem::tools {
namespace {

template <class T>
constexpr bool is_list = std::is_same_v<T, Numbers> || std::is_same_v<T, Words>;

std::size_t size_of_list(const BenchValues::Value& value) {
  return std::visit(
      []<class T>(const T& list) {
        if constexpr (is_list<T>) return list.size();
        return std::size_t{0};
      },
      value);
}

/// An element of a list of numbers or texts; 0 or "" where the list ends before it.
BenchValues::Value element(const BenchValues::Value& list, std::size_t index) {
  if (const auto* const numbers = std::get_if<Numbers>(&list)) return index < numbers->size() ? (*numbers)[index] : 0;
  return std::get<Words>(list).at(index);
}

void declare(Subcommand command, BenchOption& option) {
  std::visit(
      [&]<class T>(T& value) {
        if constexpr (std::is_same_v<T, bool>) {
          command.add_flag(option.flag, value, option.help);
        } else {
          Option added = command.add_option(option.flag, value, option.help);
          if constexpr (is_list<T>) added.list();
          if (const auto* const range = std::get_if<Range>(&option.limit)) added.between(range->least, range->most);
          else if (const auto* const allowed = std::get_if<Words>(&option.limit)) added.one_of(*allowed);
          else if constexpr (std::is_same_v<T, unsigned> || std::is_same_v<T, Numbers>) added.positive();
          if (value != T{}) added.show_default();
        }
      },
      option.value);
}

/// A subcommand: the plan and what the command line gives.
struct BenchTableCommand {
  BenchPlan plan;
  BenchOptions options;

  BenchValues values(unsigned workers) const {
    BenchValues all;
    for (const BenchOption& option : plan.options) {
      std::string name = option.flag.substr(option.flag.find_first_not_of('-'));
      std::replace(name.begin(), name.end(), '-', '_');
      all[name] = option.value;
    }
    all["bench"] = plan.name;
    all["workers"] = workers;
    all["self"] = std::filesystem::read_symlink("/proc/self/exe").string();
    return all;
  }

  BenchProgram program(const Programs& programs, const ProgramPlan& one, const std::string& words,
                       const BenchValues& values) const {
    const std::string usual = one.peer == "tandem" ? "bench_{bench}_tandem" : "peer_{bench}_" + one.peer;
    std::vector<Words> launchers;
    for (const std::string& launcher : one.launchers) launchers.push_back(values.words(launcher));
    return programs.launched(programs.find(one.peer, values.fill(one.file.empty() ? usual : one.file),
                                           values.words(one.words.empty() ? words : one.words), one.environment),
                             launchers);
  }

  BenchSuite suite(const Programs& programs, const SuitePlan& from, const BenchValues& values) const {
    BenchSuite made = from.suite;
    made.title = values.fill(made.title);
    for (const auto& [name, value] : from.suite.params.members())
      if (value.is_text() && value.text().starts_with('{'))
        std::visit([&](const auto& typed) { made.params[name] = typed; },
                   values.at(value.text().substr(1, value.text().size() - 2)));
    for (const ProgramPlan& one : from.programs)
      made.programs.push_back(program(programs, one, from.words, values));
    if (made.stability_probe) {
      BenchProgram probe = program(programs, {"bare"}, from.stability_probe, values);
      made.stability_probe->command = std::move(probe.command);
      if (!probe.exists) made.stability_probe.reset();
    }
    return made;
  }

  /// Adds the suites for every combination of elements of the lists `each`.
  void add_suites(const Programs& programs, BenchValues values, std::span<const std::string> each,
                  std::vector<BenchSuite>& suites) const {
    if (each.empty()) {
      for (const SuitePlan& from : plan.suites(values)) suites.push_back(suite(programs, from, values));
      return;
    }
    const BenchValues lists = values;
    const std::string& name = each.front();
    for (std::size_t i = 0; i < size_of_list(lists.at(name)); ++i) {
      values[name] = element(lists.at(name), i);
      if (name == "n" && std::holds_alternative<Numbers>(lists.at("nb"))) values["nb"] = element(lists.at("nb"), i);
      add_suites(programs, values, each.subspan(1), suites);
    }
  }

  /// Whether each order has a tile, or none has; logs an error if not.
  bool has_matching_tiles(ToolContext& context) const {
    BenchValues all = values(0);
    const std::size_t tiles = size_of_list(all["nb"]), orders = size_of_list(all["n"]);
    if (tiles == 0 || tiles == orders) return true;
    context.log.error("bench {}: --nb gives {}, -n gives {}: give one tile for each order", plan.name,
                      counted(tiles, "tile"), counted(orders, "order"));
    context.exit_status = 2;
    return false;
  }

  void run(ToolContext& context) {
    if (!has_matching_tiles(context)) return;
    if (!plan.seconds.empty())
      options.timeout_s = std::max(options.timeout_s, 2.0 * values(0).get<unsigned>(plan.seconds));
    run_bench(plan.name, options, context, [&](const Programs& programs, unsigned workers) {
      std::vector<BenchSuite> suites;
      add_suites(programs, values(workers), plan.each, suites);
      return suites;
    });
    plan.clean_up();
  }
};

}  // namespace

std::string BenchValues::fill(const std::string& text) const {
  fmt::dynamic_format_arg_store<fmt::format_context> named;
  for (const auto& [name, value] : values_)
    std::visit(
        [&, &name = name]<class T>(const T& one) {
          if constexpr (is_list<T>) named.push_back(fmt::arg(name.c_str(), fmt::format("{}", fmt::join(one, ","))));
          else named.push_back(fmt::arg(name.c_str(), one));
        },
        value);
  return fmt::vformat(text, named);
}

Words BenchValues::words(const std::string& text) const {
  Words words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words.push_back(fill(word));
  return words;
}

void add_benchmark(Subcommand bench, const BenchPlan& plan, ToolContext& context) {
  Subcommand command = bench.add_subcommand(plan.name, plan.help);
  const auto made = std::make_shared<BenchTableCommand>();
  made->plan = plan;
  made->options.rounds = plan.rounds;
  add_bench_options(command, made->options);
  for (BenchOption& option : made->plan.options) declare(command, option);
  if (!plan.picture.empty()) add_picture_option(command, made->options, plan.picture);
  command.callback([made, &context] { made->run(context); });
}

}  // namespace tandem::tools
