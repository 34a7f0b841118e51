// tandem/runtime/runtime_core.cpp: connects the parts of a runtime, and ends them.
#include "tandem/runtime/runtime_core.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "tandem/base/assert.hpp"
#include "tandem/base/thread_driver.hpp"
#include "tandem/runtime/device/device.hpp"
#include "tandem/runtime/device/modelled_host.hpp"
#include "tandem/runtime/exec/log_lines.hpp"
#include "tandem/runtime/record/left_replays.hpp"
#include "tandem/runtime/task/flow_chart.hpp"
#include "tandem/base/exceptions.hpp"
#include "tandem/runtime/worker/worker_team.hpp"

namespace tandem::runtime {

namespace {

/// On a node with a budget, so many tasks for each worker have memory pinned, or more if its device runs several. One
/// runs, one is ready when it ends, and the others are being copied.
constexpr unsigned kHoldingPerWorker = 4;

World checked(World world) {
  world.machine.check();
  TANDEM_ASSERT(world.nodes.size() + 1 == world.machine.nodes.size() &&
                world.devices.size() <= world.machine.workers.size());
  return world;
}

/// Result of a step of the runtime's end. `stuck`: its wait would never end.
enum class Ending : std::uint8_t { well, failed, stuck };

template <class Step>
Ending log_failures(base::Log& log, const Step& step) {
  constexpr std::string_view at_end = "at the end of the runtime: ";
  try {
    step();
    return Ending::well;
  } catch (const StuckError& error) {
    log_lines(log, std::string(at_end), error.what());
    return Ending::stuck;
  } catch (const UsageError& error) {
    log.error("{}{}", at_end, error.what());
    return Ending::stuck;
  } catch (const std::exception& error) {
    log.error("{}{}", at_end, error.what());
  } catch (...) {
    log.error("{}a kernel threw something that is no std::exception", at_end);
  }
  return Ending::failed;
}

}  // namespace

/// Tells the room which data each submitted task will use.
class RuntimeCore::Foresight final : public GraphObserver {
 public:
  Foresight(Room& room, GraphObserver* next) : room_(room), next_(next) {}
  void node(Task& task) override {
    const bool is_hint = task.kind == TaskKind::event && task.extra != nullptr && task.extra->is_hint;
    if (!task.recorded && !is_hint) room_.note_uses(task);
    if (next_ != nullptr) next_->node(task);
  }
  void edge(TaskId from, const Task& to, const Handle* data) override {
    if (next_ != nullptr) next_->edge(from, to, data);
  }

 private:
  Room& room_;
  GraphObserver* next_;
};

RuntimeCore::RuntimeCore(World world, const CoreOptions& options)
    : world_(checked(std::move(world))),
      options_(options),
      number_(DataRegistry::next_number()),
      executor_(world_.worker_specs()),
      memory_(executor_),
      submission_(executor_, number_, options_.window),
      workers_(std::make_unique<WorkerTeam>(world_, options_, submission_.pool(), executor_, memory_)),
      loop_(*world_.driver, submission_, executor_, *workers_, *world_.log,
            {.after_ns = options_.watchdog_ns, .throws = options_.watchdog_throws}),
      data_(submission_.thread(), memory_, *world_.log, number_),
      accesses_(submission_, loop_, executor_, data_),
      waits_(submission_, loop_, executor_, data_, accesses_.held(), *world_.log),
      events_(submission_, executor_, *workers_, *world_.clock),
      trace_(submission_.flow().trace()),
      left_replays_(std::make_unique<LeftReplays>(*this)) {
  memory_.set_numa(world_.numa_node_of);
  if (world_.page_locked != nullptr) memory_.set_page_locked(world_.page_locked);
  for (auto& [node, copier] : world_.nodes) memory_.add_node(std::move(node), std::move(copier));
  for (NodeIndex node = 0; node < world_.machine.nodes.size(); ++node)
    if (world_.machine.nodes[node].kind == NodeKind::numa)
      memory_.set_numa_place(node, world_.machine.nodes[node].numa_node);
  for (NodeIndex node = 0; node < world_.machine.nodes.size(); ++node)
    if (world_.machine.nodes[node].budget != 0) limit(node, world_.machine.nodes[node].budget);
  if (memory_.is_limited()) {
    const std::vector<MachineWorker>& workers = world_.machine.workers;
    const NodeIndex shared = workers[0].node;
    submission_.expect_budgets(memory_.is_limited(shared) &&
                               std::all_of(workers.begin(), workers.end(), [&](const MachineWorker& worker) {
                                 return worker.kind != DeviceKind::cpu || worker.node == shared;
                               }));
  }
  if (const auto storage = world_.machine.storage()) memory_.set_storage(*storage);
  if (workers_->places_tasks()) submission_.restrict_all();
  if (workers_->goes_by_depth()) submission_.count_depth();
  executor_.set_ahead(options_.begin_ahead_ns);
  submission_.connect(loop_);
  if (const ModelledHost* const host = options_.modelled_host; host != nullptr && host->costs().pass)
    submission_.window().charge({host->costs().submit_ns, host->costs().pass});
  data_.connect(accesses_);
  data_.set_observer({.added = [this](const Handle& handle) { trace_.data_added(handle); },
                      .removed = [this](const Handle& handle) {
                        // Memory of the runtime may be leaving at this moment; its node is traced when it is freed.
                        if (handle.user_memory || handle.is_part) memory_.trace_numa(handle, handle.home.pointer);
                      }});
  if (!options_.graphviz.empty()) {
    chart_ = std::make_unique<FlowChart>();
    submission_.flow().set_observer(chart_.get());
  }
  if (memory_.is_limited()) {
    foresight_ = std::make_unique<Foresight>(memory_.room(), chart_.get());
    submission_.flow().set_observer(foresight_.get());
  }
  workers_->start();
  // In an event loop no thread runs beside a kernel.
  if (world_.caller_works && dynamic_cast<base::ThreadDriver*>(world_.driver.get()) != nullptr) loop_.watch_kernels();
}

RuntimeCore::~RuntimeCore() { shut_down(); }

void RuntimeCore::limit(NodeIndex node, std::size_t bytes) {
  std::vector<unsigned> sharing;
  unsigned holding = 0;
  const std::vector<WorkerSpec>& specs = executor_.workers();
  for (unsigned worker = 0; worker < specs.size(); ++worker) {
    const WorkerSpec& spec = specs[worker];
    if (spec.node != node) continue;
    holding += kHoldingPerWorker + (spec.unit != nullptr ? spec.unit->depth() - 1 : 0);
    if (spec.device == DeviceKind::cpu) sharing.push_back(worker);
  }
  memory_.limit(node, bytes, holding);
  if (!sharing.empty()) executor_.queues().stage_together(std::move(sharing));
}

bool RuntimeCore::shut_down() {
  if (std::exchange(is_shut_down_, true)) return true;
  if (workers_->are_paused()) workers_->end_pause();
  const Ending waited = log_failures(log(), [&] { waits_.wait_all(); });
  const Ending unregistered = waited == Ending::stuck ? waited : log_failures(log(), [&] { data_.unregister_all(); });
  events_.drain();
  memory_.drain();
  world_.driver->stop();
  workers_->finish_devices();
  workers_->finish_energy();
  workers_->hand_over_durations();
  left_replays_->free_all();
  data_.free_all();  // data for which no wait was possible is freed as it is: nothing runs any more
  write_reports();
  return waited == Ending::well && unregistered == Ending::well;
}

/// Throws nothing: a destructor calls it, and standard error may be closed, or a disk full.
void RuntimeCore::write_reports() noexcept {
  try {
    if (options_.statistics) {
      const std::string table = statistics().table();
      has_lost_reports_ = std::fwrite(table.data(), 1, table.size(), stderr) != table.size();
    }
    if (chart_ == nullptr) return;
    const auto written = chart_->write(options_.graphviz);
    if (written.ok()) return;
    has_lost_reports_ = true;
    log().error("{}", written.error().message);
  } catch (const std::exception&) {  // no memory
    has_lost_reports_ = true;
  }
}

void RuntimeCore::pause() {
  submission_.thread().check("pause workers");
  if (workers_->are_paused()) return;
  workers_->begin_pause();
  world_.driver->run_until([](void* workers) { return static_cast<const WorkerTeam*>(workers)->rest(); },
                           workers_.get(), base::kNever);
  workers_->leave_caller(world_.driver->now_ns());
}

void RuntimeCore::resume() {
  submission_.thread().check("resume workers");
  if (workers_->are_paused()) workers_->end_pause();
}

StatisticsReport RuntimeCore::statistics() {
  StatisticsReport report = workers_->statistics();
  report.prefetches = memory_.prefetches();
  if (world_.page_locked != nullptr) report.page_locked = world_.page_locked->report();
  return report;
}

void RuntimeCore::trace_to(trace::Session& session) {
  submission_.thread().check("trace");
  TANDEM_ASSERT(trace_.session() == nullptr);
  trace_.connect(session);
  submission_.flow().trace().set_session(&session);
  submission_.flow().trace().share_stamps(&executor_.queues().idle_count());
  session.attach(
      submission_.trace(),
      {.kind = trace::ActorKind::submitter, .name = "submitter", .numa_node = world_.machine.workers[0].numa_node});
  workers_->trace_to(session);
  executor_.set_trace(&session);
  memory_.set_trace(&session);
  for (NodeIndex node = 0; node < memory_.node_count(); ++node)
    session.name(trace::NameKind::node, fmt::format("{} {}", node, world_.machine.nodes[node].name));
  data_.for_each([this](const Handle& handle) { trace_.describe_data(handle); });
}

}  // namespace tandem::runtime
