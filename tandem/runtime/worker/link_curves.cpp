// tandem/runtime/worker/link_curves.cpp: threads that copy, alone and concurrently.
#include "tandem/runtime/worker/link_curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <latch>
#include <memory>
#include <string>
#include <utility>

#include "tandem/base/exceptions.hpp"
#include "tandem/base/thread.hpp"
#include "tandem/runtime/memory/seen_by_copier.hpp"
#include "tandem/runtime/worker/timed_copy.hpp"

namespace tandem::runtime {

class LinkMeter::Measurement {
  /// Copies between two memories. Used by one thread at a time; several probes may copy at once.
  class Probe {
   public:
    Probe(NodeIndex from, NodeIndex to, std::size_t most, Copier& copier, const CopyRequest& request,
          MemoryNode& source, MemoryNode& target, const clock::Clock& clock)
        : curves{.from = from, .to = to},
          most_bytes(most),
          copier_(copier),
          source_(source, most),
          target_(target, most),
          request_(request),
          clock_(clock) {
      request_.from = source_.memory();
      request_.to = target_.memory();
    }
    bool has_memory() const noexcept { return source_.memory() != nullptr && target_.memory() != nullptr; }
    void* source() const noexcept { return source_.memory(); }
    std::optional<double> copy(std::size_t bytes) { return timed_copy(copier_, request_, bytes, clock_); }
    const clock::Clock& clock() const noexcept { return clock_; }

    LinkCurves curves;
    const std::size_t most_bytes;
    int core = -1;       ///< core of its thread; -1: anywhere
    bool fails = false;  ///< a copy has failed

   private:
    Copier& copier_;
    Block source_, target_;
    CopyRequest request_;
    const clock::Clock& clock_;
  };

 public:
  Measurement(World& world, LinkCurveOptions options) : world_(world), machine_(world.machine), options_(std::move(options)) { make_probes(); }
  ~Measurement() { stop_traffic(); }

  bool has_links() const noexcept { return !probes_.empty(); }

  void measure() {
    if (!has_links()) return;
    const auto sizes = static_cast<unsigned>(options_.sizes.size()), links = static_cast<unsigned>(probes_.size());
    begin_steps(links + sizes);
    for (const auto& probe : probes_) {
      tell(fmt::format("memory {} to memory {}, alone", probe->curves.from, probe->curves.to));
      base::Thread({.name = "tandem-links"}, [&] { measure_alone(*probe, probe->curves.times.alone); }).join();
    }
    for (const std::size_t bytes : options_.sizes) {
      tell(fmt::format("all links at once, {} bytes", bytes));
      measure_loaded(bytes, slice_ns() * links);
    }
  }

  void measure_beside_messages() {
    begin_steps(static_cast<unsigned>(probes_.size()));
    for (const auto& probe : probes_) {
      tell(fmt::format("memory {} to memory {}, beside messages", probe->curves.from, probe->curves.to));
      base::Thread({.name = "tandem-links"}, [&] { measure_alone(*probe, probe->curves.beside_messages); }).join();
    }
  }

  void start_traffic(std::size_t bytes) {
    stop_traffic();
    copies_on_.store(true, std::memory_order_relaxed);
    for (const auto& probe : probes_) {
      if (probe->fails) continue;
      try {
        traffic_.add({.name = "tandem-traffic"}, [this, &one = *probe, bytes] {
          bind(one);
          while (copies_on_.load(std::memory_order_relaxed) && !one.fails)
            one.fails = !one.copy(std::min(bytes, one.most_bytes));
        });
      } catch (const StartError&) {  // no more threads: there is less traffic
        return;
      }
    }
  }

  void stop_traffic() noexcept {
    copies_on_.store(false, std::memory_order_relaxed);  // joining the threads makes their writes visible
    traffic_.join();
  }

  std::vector<LinkCurves> curves() const {
    std::vector<LinkCurves> curves;
    for (const auto& probe : probes_)
      if (!probe->fails) curves.push_back(probe->curves);
    return curves;
  }

 private:
  /// Time for one size of one link.
  std::int64_t slice_ns() const noexcept {
    return std::max<std::int64_t>(
        1, options_.most_ns / (2 * static_cast<std::int64_t>(probes_.size() * options_.sizes.size())));
  }
  void begin_steps(unsigned steps) noexcept {
    step_ = 0;
    steps_ = steps;
  }

  MemoryNode& memory_of(NodeIndex node) { return node == 0 ? *main_ : *world_.nodes[node - 1].first; }
  Copier& copier_of(NodeIndex node) { return *world_.nodes[node - 1].second; }
  bool is_kind(NodeIndex node, NodeKind kind) const { return machine_.nodes[node].kind == kind; }

  void tell(const std::string& what) {
    if (options_.progress) options_.progress(step_, steps_, what);
    ++step_;
  }

  /// Copier between two memories, as `Memory` would use it without an intermediate step; null: there is none.
  Copier* copier_between(CopyRequest& request) {
    request = seen_by_copier(request, [this](NodeIndex node) { return is_kind(node, NodeKind::numa); });
    const auto [from, to] = std::pair(request.from_node, request.to_node);
    if (from == 0 || to == 0) return &copier_of(to == 0 ? from : to);
    if (is_kind(from, NodeKind::storage) || is_kind(to, NodeKind::storage)) return nullptr;
    return reach_each_other(copier_of(from), copier_of(to)) ? &copier_of(to) : nullptr;
  }

  /// Largest size: each memory has two links with each other one, which all copy at once, and take at most half of its
  /// budget.
  std::size_t most_in(NodeIndex node) const {
    const std::size_t budget = machine_.nodes[node].budget;
    return budget != 0 ? budget / (4 * machine_.nodes.size()) : SIZE_MAX;
  }

  void make_probes() {
    if (options_.sizes.empty()) return;
    for (NodeIndex from = 0; from < machine_.nodes.size(); ++from)
      for (NodeIndex to = 0; to < machine_.nodes.size(); ++to)
        if (from != to) make_probe(from, to);
    choose_cores();
  }

  void make_probe(NodeIndex from, NodeIndex to) {
    CopyRequest request{.from_node = from, .to_node = to, .shape = {}};
    Copier* const copier = copier_between(request);
    const std::size_t room = std::min(most_in(from), most_in(to));
    std::size_t most = 0;
    for (const std::size_t bytes : options_.sizes)
      if (bytes <= room) most = std::max(most, bytes);
    if (copier == nullptr || most == 0) return;
    auto probe =
        std::make_unique<Probe>(from, to, most, *copier, request, memory_of(from), memory_of(to), *world_.clock);
    if (probe->has_memory() && fill(*probe, from)) probes_.push_back(std::move(probe));
  }

  /// Writes the source: unwritten pages have no memory, and a new file has nothing to read.
  bool fill(Probe& probe, NodeIndex from) {
    if (is_kind(from, NodeKind::main) || is_kind(from, NodeKind::numa)) {
      std::memset(probe.source(), 1, probe.most_bytes);
      return true;
    }
    const Block zeros(*main_, probe.most_bytes);
    if (zeros.memory() == nullptr) return false;
    std::memset(zeros.memory(), 0, probe.most_bytes);
    const CopyRequest request{
        .from_node = 0, .to_node = from, .from = zeros.memory(), .to = probe.source(), .shape = {}};
    return timed_copy(copier_of(from), request, probe.most_bytes, *world_.clock).has_value();
  }

  /// Chooses a core of a worker at the target, else at the source; a different one for each link.
  void choose_cores() {
    std::vector<unsigned> used(machine_.nodes.size());
    for (const auto& probe : probes_) {
      std::vector<int> cores;
      for (const NodeIndex node : {probe->curves.to, probe->curves.from})
        for (const MachineWorker& worker : machine_.workers)
          if (cores.empty() || node == probe->curves.to)
            if (worker.node == node && worker.core >= 0) cores.push_back(worker.core);
      if (!cores.empty()) probe->core = cores[used[probe->curves.to]++ % cores.size()];
    }
  }

  void bind(const Probe& probe) const {
    if (probe.core >= 0 && options_.bind) options_.bind(probe.core);
  }

  void measure_alone(Probe& probe, model::TransferCurve& curve) const {
    bind(probe);
    for (const std::size_t bytes : options_.sizes) {
      if (bytes > probe.most_bytes || probe.fails) return;
      probe.fails = !probe.copy(bytes);  // the first copy does not count
      const std::int64_t end_ns = probe.clock().now_ns() + slice_ns();
      for (unsigned i = 0; i < options_.copies && !probe.fails && probe.clock().now_ns() < end_ns; ++i) {
        const auto took_ns = probe.copy(bytes);
        probe.fails = !took_ns;
        if (took_ns) curve.add(bytes, *took_ns);
      }
    }
  }

  /// All links begin together, and end when each has its copies, or the time is over: so each always runs beside the
  /// others.
  void measure_loaded(std::size_t bytes, std::int64_t slice_ns) const {
    std::vector<Probe*> active;
    for (const auto& probe : probes_)
      if (bytes <= probe->most_bytes && !probe->fails) active.push_back(probe.get());
    if (active.size() < 2) return;
    std::latch ready(static_cast<std::ptrdiff_t>(active.size()));
    std::atomic<std::size_t> have_enough{0};
    const auto copy = [&](Probe& probe) {
      bind(probe);
      probe.fails |= !probe.copy(bytes);
      ready.arrive_and_wait();
      const std::int64_t end_ns = probe.clock().now_ns() + slice_ns;
      for (unsigned i = 0;
           have_enough.load(std::memory_order_relaxed) < active.size() && probe.clock().now_ns() < end_ns; ++i) {
        // One number, which orders nothing.
        if (i == options_.copies) have_enough.fetch_add(1, std::memory_order_relaxed);
        const auto took_ns = probe.copy(bytes);
        if (!took_ns) {
          probe.fails = true;
          if (i < options_.copies) have_enough.fetch_add(1, std::memory_order_relaxed);
          return;
        }
        if (i < options_.copies) probe.curves.times.loaded.add(bytes, *took_ns);
      }
    };
    base::ThreadGroup threads;
    for (Probe* const probe : active) {
      try {
        threads.add({.name = "tandem-links"}, [&copy, probe] { copy(*probe); });
      } catch (const StartError&) {  // no more threads; no other thread waits for this one
        probe->fails = true;
        have_enough.fetch_add(1, std::memory_order_relaxed);
        ready.count_down();
      }
    }
  }

  World& world_;
  const Machine& machine_;
  const LinkCurveOptions options_;
  const std::unique_ptr<MemoryNode> main_ = world_.make_main_memory();
  std::vector<std::unique_ptr<Probe>> probes_;
  unsigned step_ = 0, steps_ = 0;
  std::atomic<bool> copies_on_{false};  ///< `traffic_` goes on; a flag that orders nothing
  base::ThreadGroup traffic_;           ///< threads, each with its own probe
};

namespace {

/// Measured sizes, ascending.
std::vector<std::size_t> known_sizes(const model::TransferCurve& curve) {
  std::vector<std::size_t> sizes;
  for (const model::SizeModel::Entry& entry : curve.sizes().entries())
    if (entry.history.estimate().known) sizes.push_back(entry.footprint.bytes);
  return sizes;
}

/// Rate by the law of the largest sizes, since smaller ones may stay in caches. None: fewer than two are known.
std::optional<double> rate_of_large_copies(const model::TransferCurve& curve) {
  const std::vector<std::size_t> sizes = known_sizes(curve);
  if (sizes.size() < 2) return {};
  const std::size_t least = std::min(sizes[sizes.size() - 2], sizes.back() / 4);
  model::TransferCurve large;
  for (const std::size_t bytes : sizes)
    if (bytes >= least) large.set(bytes, *curve.sizes().find(bytes));
  const auto law = large.affine();
  return law && law->bytes_per_ns > 0 ? law->bytes_per_ns : LinkCurves::rate(curve, sizes.back());
}

}  // namespace

std::optional<double> LinkCurves::rate(const model::TransferCurve& curve, std::size_t bytes) {
  const model::History* const history = curve.sizes().find(model::Footprint(bytes));
  if (history == nullptr || !history->estimate().known) return {};
  return static_cast<double>(bytes) / history->estimate().mean_ns;
}

std::optional<MachineLink> LinkCurves::link() const {
  const auto rate_of_large = rate_of_large_copies(times.alone);
  if (!rate_of_large) return {};
  MachineLink link{.from = from, .to = to, .bytes_per_ns = *rate_of_large, .source = LinkSource::measured};
  const std::size_t smallest = known_sizes(times.alone).front();
  const double smallest_ns = times.alone.sizes().find(smallest)->estimate().mean_ns;
  link.latency_ns =
      std::max<std::int64_t>(0, std::llround(smallest_ns - static_cast<double>(smallest) / link.bytes_per_ns));
  link.loaded_bytes_per_ns = rate_of_large_copies(times.loaded);
  link.beside_messages_bytes_per_ns = rate_of_large_copies(beside_messages);
  return link;
}

LinkMeter::LinkMeter(World& world, LinkCurveOptions options)
    : measurement_(std::make_unique<Measurement>(world, std::move(options))) {}
LinkMeter::~LinkMeter() = default;
bool LinkMeter::has_links() const noexcept { return measurement_->has_links(); }
void LinkMeter::measure() { measurement_->measure(); }
void LinkMeter::measure_beside_messages() { measurement_->measure_beside_messages(); }
void LinkMeter::start_traffic(std::size_t bytes) { measurement_->start_traffic(bytes); }
void LinkMeter::stop_traffic() noexcept { measurement_->stop_traffic(); }
std::vector<LinkCurves> LinkMeter::curves() const { return measurement_->curves(); }

void take_links(Machine& machine, std::span<const LinkCurves> curves) {
  for (const LinkCurves& one : curves)
    if (const auto link = one.link()) machine.set_link(*link);
}

std::vector<LinkCurves> measure_link_curves(World& world, const LinkCurveOptions& options) {
  LinkMeter meter(world, options);
  meter.measure();
  return meter.curves();
}

}  // namespace tandem::runtime
