// tandem/runtime/sched/placing/explainer.cpp: tables of what a policy knew of all workers.
#include "tandem/runtime/sched/placing/explainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <limits>
#include <utility>

#include "tandem/base/short_time.hpp"
#include "tandem/base/units.hpp"
#include "tandem/runtime/task/describe.hpp"
#include "tandem/runtime/task/task_number.hpp"

namespace tandem::runtime {

namespace {

const char* name_of(DeviceKind kind) noexcept {
  switch (kind) {
    case DeviceKind::cpu: return "core";
    case DeviceKind::cuda: return "cuda";
    case DeviceKind::opencl: return "opencl";
    default: return "device";
  }
}

/// The workers of one kind and memory that may run a task; one of them stands for all.
struct Class {
  const MachineWorker* like = nullptr;
  unsigned count = 0;
  unsigned shown = 0;  ///< the chosen worker, or the one that is free first
};

std::vector<Class> classes_of(const TaskView& view, const LoadView& load, unsigned chosen) {
  std::vector<Class> classes;
  for (const unsigned worker : view.workers) {
    const MachineWorker& here = load.machine.workers[worker];
    const auto known = std::ranges::find_if(
        classes, [&](const Class& one) { return one.like->kind == here.kind && one.like->node == here.node; });
    if (known == classes.end()) {
      classes.push_back({&here, 1, worker});
      continue;
    }
    ++known->count;
    if (worker == chosen ||
        (known->shown != chosen && load.workers[worker].free_ns < load.workers[known->shown].free_ns))
      known->shown = worker;
  }
  return classes;
}

std::string copies_of(const TaskView& view, NodeIndex node, double alone_ns) {
  std::size_t bytes = 0;
  unsigned count = 0, coming = 0;
  for (const AccessView& access : view.accesses) {
    if (!access.is_missing(node)) continue;
    if (access.is_coming(node)) {
      ++coming;
      continue;
    }
    ++count;
    bytes += access.bytes;
  }
  if (count == 0) return coming == 0 ? "none" : "on their way";
  return fmt::format("{} in {}", base::format_bytes(static_cast<std::int64_t>(bytes)), base::short_time(alone_ns));
}

}  // namespace

void say_on_stderr(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines += fmt::format("tandem: explain: {}\n", text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  std::fwrite(lines.data(), 1, lines.size(), stderr);
}

Explainer::Explainer(std::string_view wanted, std::string policy, Say say)
    : policy_(std::move(policy)), say_(std::move(say)) {
  while (!wanted.empty()) {
    const std::size_t end = std::min(wanted.find(','), wanted.size());
    std::string_view name = wanted.substr(0, end);
    wanted.remove_prefix(std::min(end + 1, wanted.size()));
    const auto is_space = [](char letter) { return letter == ' ' || letter == '\t'; };
    while (!name.empty() && is_space(name.front())) name.remove_prefix(1);
    while (!name.empty() && is_space(name.back())) name.remove_suffix(1);
    if (name.empty()) continue;
    Wanted one{.name = std::string(name)};
    const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), one.number);
    if (error != std::errc{} || rest != name.data() + name.size()) one.number = 0;
    wanted_.push_back(std::move(one));
  }
}

Explainer::~Explainer() {
  for (const Wanted& one : wanted_)
    if (one.explained == 0)
      say(one.number != 0 ? fmt::format("no task {} has run here", one.number)
                          : fmt::format("no task '{}' has run here", one.name));
}

bool Explainer::wants(const Task& task, unsigned Wanted::*count) {
  const std::lock_guard guard(mutex_);
  for (Wanted& one : wanted_) {
    const bool is_it = one.number != 0 ? one.number == TaskNumber::of(flow_position(task))
                                       : one.*count < kMost && one.name == runtime::name_of(task);
    if (!is_it) continue;
    ++(one.*count);
    return true;
  }
  return false;
}

void Explainer::given(const Task& task, unsigned worker, const TaskView& view, const LoadView& load,
                      const ReadyView* ready) {
  std::string text =
      fmt::format("{}, priority {}: {} gives it to worker {}", describe(task), task.priority, policy_, worker);
  if (ready != nullptr) {
    std::string kinds;
    for (const ReadyKind& kind : ready->kinds())
      if (!kind.tasks.empty())
        kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", kind.tasks.size(), kind.codelet);
    text += fmt::format("\n  ready and without a worker, this one included: {}", kinds);
  }
  const bool has_prices = !load.prices.empty();
  double least = std::numeric_limits<double>::infinity();
  for (const double price : load.prices) least = std::min(least, price);
  const bool by_energy = load.energy != nullptr;
  const int of_worth = by_energy && has_prices ? 19 : 0;  // the column's width if another one follows
  text += fmt::format("\n  {:<18} {:<22} {:<20} {:<18} {:<12}{:<{}}{}", "worker", "free in", "copies", "kernel",
                      "ends in", has_prices ? "its time is worth" : "", of_worth, by_energy ? "kernel takes" : "");
  for (const Class& one : classes_of(view, load, worker)) {
    const double free_ns = static_cast<double>(load.workers[one.shown].free_ns - load.now_ns);
    const Transfers transfers = transfers_to(view, load, one.like->node);
    const Estimate kernel = load.kernel(view, one.shown);
    const double ready_ns = static_cast<double>(transfers.ready_ns - load.now_ns);
    const auto watts = by_energy ? load.energy->powers->kernel_watts(view.codelet, one.like->kind) : std::nullopt;
    const std::string joules = !by_energy              ? ""
                               : watts && kernel.known ? fmt::format("{:.3g} J", *watts * kernel.mean_ns * 1e-9)
                                                       : "?";
    text += fmt::format(
        "\n  {:<18} {:<22} {:<20} {:<18} {:<12}{:<{}}{}{}",
        fmt::format("{} ({} {}{})", one.shown, one.count, name_of(one.like->kind), one.count == 1 ? "" : "s"),
        free_ns <= 0 ? "now"
                     : fmt::format("{} ({} task{})", base::short_time(free_ns), load.workers[one.shown].tasks,
                                   load.workers[one.shown].tasks == 1 ? "" : "s"),
        copies_of(view, one.like->node, transfers.alone_ns),
        kernel.known ? fmt::format("{} +- {}", base::short_time(kernel.mean_ns), base::short_time(kernel.deviation_ns))
                     : "not known yet",
        kernel.known ? base::short_time(std::max(free_ns, ready_ns) + kernel.mean_ns) : "?",
        has_prices ? fmt::format("{:.3g}", load.prices[one.shown] / least) : "", of_worth, joules,
        one.shown != worker ? ""
        : kernel.known      ? "  <- chosen"
                            : "  <- chosen, to learn it");
  }
  say(text);
}

void Explainer::taken(const Task& task, unsigned worker, bool kept, std::optional<unsigned> victim) {
  std::string how = "takes it from its own queue, or from the one of submitted tasks";
  if (kept) how = "runs it next: it has just made it ready, and nothing in its queue is more urgent";
  else if (victim) how = fmt::format("takes it from the queue of worker {}, since its own is empty", *victim);
  say(fmt::format("{}, priority {}: worker {} {}", describe(task), task.priority, worker, how));
}

void Explainer::chosen(const Task& task, unsigned worker, const Durations::Choice& choice,
                       const std::vector<Durations::Known>& known) {
  std::string text = fmt::format("{}: worker {} runs implementation {}", describe(task), worker, choice.implementation);
  const auto ran = std::ranges::find(known, choice.implementation, &Durations::Known::implementation);
  if (ran != known.end() && !ran->is_tried) text += ", to learn it";
  else if (!choice.is_usual) text += ", to see whether it is still slower";
  text += "; of those for such workers";
  for (const Durations::Known& one : known)
    text += fmt::format(
        "{} {} takes {}", &one == &known.front() ? "" : ",", one.implementation,
        one.mean_ns < std::numeric_limits<double>::infinity() ? base::short_time(one.mean_ns) : "an unknown time");
  say(text);
}

void Explainer::say(const std::string& text) {
  const std::lock_guard guard(mutex_);
  say_(text);
}

}  // namespace tandem::runtime
