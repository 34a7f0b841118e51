// tandem/base/topology.cpp: reading the machine with hwloc, which is included nowhere else.
#include "tandem/base/topology.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/core.h>
#include <hwloc.h>

#include "tandem/base/pu_list.hpp"

namespace tandem::base {
namespace {

struct DestroyTopology {
  void operator()(hwloc_topology_t topology) const noexcept { hwloc_topology_destroy(topology); }
};
using HwlocTopology = std::unique_ptr<hwloc_topology, DestroyTopology>;

struct FreeBitmap {
  void operator()(hwloc_bitmap_t bitmap) const noexcept { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

std::vector<unsigned> members(hwloc_const_bitmap_t bitmap) {
  std::vector<unsigned> result;
  if (hwloc_bitmap_weight(bitmap) < 0) return result;  // infinitely many: not a set of real hardware threads
  for (int i = hwloc_bitmap_first(bitmap); i >= 0; i = hwloc_bitmap_next(bitmap, i))
    result.push_back(static_cast<unsigned>(i));
  return result;
}

}  // namespace

struct Topology::State {
  HwlocTopology hwloc;
  bool synthetic = false;
  std::vector<hwloc_obj_t> core_objects;  ///< owned by hwloc; the same order as cores
  std::vector<Core> cores;
  std::vector<NumaNode> numa_nodes;
  std::vector<Cache> caches;
  std::size_t package_count = 1;
  std::string cpu_model;
  std::vector<unsigned> order;  ///< of hardware threads, and so of the cores; empty: hwloc's

  std::vector<CoreId> cores_within(hwloc_const_cpuset_t set) const {
    std::vector<CoreId> result;
    for (std::size_t i = 0; i < cores.size(); ++i)
      if (hwloc_bitmap_intersects(core_objects[i]->cpuset, set)) result.push_back(cores[i].id);
    return result;
  }

  void restrict_to_process_binding();
  void read_cores();
  void sort_cores();
  void read_numa_nodes();
  std::optional<std::size_t> numa_place(unsigned os_index) const {
    for (std::size_t i = 0; i < numa_nodes.size(); ++i)
      if (numa_nodes[i].os_index == os_index) return i;
    return std::nullopt;
  }
  void read_caches();
  void read_names();
  void read() {
    read_cores();
    read_numa_nodes();
    read_caches();
    read_names();
  }
};

/// Restricts to the affinity mask by which a launcher (mpirun, srun, taskset) assigns cores. The union over the threads
/// of the process is taken, not the mask of the calling thread, because an earlier runtime may have bound that one to
/// its first core.
void Topology::State::restrict_to_process_binding() {
  const Bitmap mask(hwloc_bitmap_alloc());
  if (hwloc_get_cpubind(hwloc.get(), mask.get(), HWLOC_CPUBIND_PROCESS) != 0) return;  // no mask known: no limit
  if (hwloc_bitmap_iszero(mask.get())) return;
  // On failure (a mask with no known hardware thread in it) hwloc does not change the topology.
  hwloc_topology_restrict(hwloc.get(), mask.get(), 0);
}

void Topology::State::read_cores() {
  // Some containers and virtual machines show hardware threads but no cores.
  const bool has_cores = hwloc_get_nbobjs_by_type(hwloc.get(), HWLOC_OBJ_CORE) > 0;
  const hwloc_obj_type_t type = has_cores ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  for (hwloc_obj_t object = nullptr; (object = hwloc_get_next_obj_by_type(hwloc.get(), type, object)) != nullptr;) {
    Core core;
    core.id = CoreId(static_cast<std::uint32_t>(cores.size()));
    core.pus = members(object->cpuset);
    if (core.pus.empty()) continue;
    if (const auto package = hwloc_get_ancestor_obj_by_type(hwloc.get(), HWLOC_OBJ_PACKAGE, object))
      core.package = package->os_index;
    const int node = hwloc_bitmap_first(object->nodeset);
    if (node >= 0) core.numa_node = static_cast<unsigned>(node);
    cores.push_back(std::move(core));
    core_objects.push_back(object);
  }
  sort_cores();
  const int packages = hwloc_get_nbobjs_by_type(hwloc.get(), HWLOC_OBJ_PACKAGE);
  package_count = packages > 0 ? static_cast<std::size_t>(packages) : 1;
}

/// Sorts cores in the order in which the list named the first hardware thread of each.
void Topology::State::sort_cores() {
  if (order.empty()) return;
  const auto rank_of = [this](const Core& core) {
    std::size_t first = order.size();
    for (const unsigned pu : core.pus)
      first = std::min(first, static_cast<std::size_t>(std::find(order.begin(), order.end(), pu) - order.begin()));
    return first;
  };
  std::vector<std::pair<Core, hwloc_obj_t>> sorted;
  for (std::size_t i = 0; i < cores.size(); ++i) sorted.emplace_back(std::move(cores[i]), core_objects[i]);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const auto& a, const auto& b) { return rank_of(a.first) < rank_of(b.first); });
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    cores[i] = std::move(sorted[i].first);
    cores[i].id = CoreId(static_cast<std::uint32_t>(i));
    core_objects[i] = sorted[i].second;
  }
}

void Topology::State::read_numa_nodes() {
  for (hwloc_obj_t object = nullptr;
       (object = hwloc_get_next_obj_by_type(hwloc.get(), HWLOC_OBJ_NUMANODE, object)) != nullptr;) {
    numa_nodes.push_back({object->os_index, object->attr->numanode.local_memory, cores_within(object->cpuset)});
  }
}

void Topology::State::read_caches() {
  for (const auto type :
       {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L5CACHE}) {
    for (hwloc_obj_t object = nullptr; (object = hwloc_get_next_obj_by_type(hwloc.get(), type, object)) != nullptr;) {
      const auto& cache = object->attr->cache;
      caches.push_back({cache.depth, cache.size, cache.linesize, cores_within(object->cpuset)});
    }
  }
}

void Topology::State::read_names() {
  // hwloc puts the model on the packages, or on the machine when there is no package.
  for (hwloc_obj_t object :
       {hwloc_get_obj_by_type(hwloc.get(), HWLOC_OBJ_PACKAGE, 0), hwloc_get_root_obj(hwloc.get())}) {
    if (object == nullptr) continue;
    if (const char* model = hwloc_obj_get_info_by_name(object, "CPUModel")) {
      cpu_model = model;
      return;
    }
  }
}

Result<Topology> Topology::discover() { return discover(true); }
Result<Topology> Topology::discover_host() { return discover(false); }

Result<Topology> Topology::discover(bool within_mask) {
  auto state = std::make_unique<State>();
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return Error{ErrorCode::exhausted, "hwloc cannot start: out of memory"};
  state->hwloc.reset(raw);
  if (hwloc_topology_load(raw) != 0) {
    return Error{ErrorCode::unsupported, fmt::format("hwloc cannot read this machine: {}; see whether `lstopo` can",
                                                     std::strerror(errno))};
  }
  if (within_mask) state->restrict_to_process_binding();
  state->read();
  if (state->cores.empty()) return Error{ErrorCode::unsupported, "hwloc finds no core that this process may use"};
  return Topology(std::move(state));
}

Result<Topology> Topology::restricted_to(std::span<const unsigned> pus) const {
  const std::vector<unsigned> wanted(pus.begin(), pus.end());
  std::vector<unsigned> all;
  for (const Core& core : state_->cores) all.insert(all.end(), core.pus.begin(), core.pus.end());
  for (const unsigned pu : wanted)
    if (std::count(all.begin(), all.end(), pu) == 0) {
      return Error{
          ErrorCode::invalid_argument,
          fmt::format("hardware thread {} is not among those that this process may use: {}", pu, format_pu_list(all))};
    }
  auto state = std::make_unique<State>();
  state->synthetic = state_->synthetic;
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_dup(&raw, state_->hwloc.get()) != 0) return Error{ErrorCode::exhausted, "hwloc: out of memory"};
  state->hwloc.reset(raw);
  const Bitmap mask(hwloc_bitmap_alloc());
  for (const unsigned pu : wanted) hwloc_bitmap_set(mask.get(), pu);
  if (wanted.empty() || hwloc_topology_restrict(raw, mask.get(), 0) != 0)
    return Error{ErrorCode::invalid_argument, "a list of hardware threads without any"};
  state->order = wanted;
  state->read();
  return Topology(std::move(state));
}

Result<Topology> Topology::synthetic(const std::string& description) {
  auto state = std::make_unique<State>();
  state->synthetic = true;
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return Error{ErrorCode::exhausted, "hwloc cannot start: out of memory"};
  state->hwloc.reset(raw);
  if (hwloc_topology_set_synthetic(raw, description.c_str()) != 0 || hwloc_topology_load(raw) != 0) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("'{}' is not a hwloc synthetic topology; an example is 'numa:2 l3:1 core:4 pu:1'", description)};
  }
  state->read();
  if (state->cores.empty()) return Error{ErrorCode::invalid_argument, fmt::format("'{}' has no core", description)};
  return Topology(std::move(state));
}

Topology::Topology(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Topology::Topology(Topology&&) noexcept = default;
Topology& Topology::operator=(Topology&&) noexcept = default;
Topology::~Topology() = default;

std::span<const Core> Topology::cores() const noexcept { return state_->cores; }
std::span<const NumaNode> Topology::numa_nodes() const noexcept { return state_->numa_nodes; }
std::span<const Cache> Topology::caches() const noexcept { return state_->caches; }
std::size_t Topology::package_count() const noexcept { return state_->package_count; }
const std::string& Topology::cpu_model() const noexcept { return state_->cpu_model; }
bool Topology::is_synthetic() const noexcept { return state_->synthetic; }

std::size_t Topology::pu_count() const noexcept {
  std::size_t count = 0;
  for (const Core& core : state_->cores) count += core.pus.size();
  return count;
}

unsigned Topology::distance(CoreId a, CoreId b) const {
  TANDEM_ASSERT(a.index() < state_->cores.size() && b.index() < state_->cores.size());
  if (a == b) return 0;
  const hwloc_obj_t from = state_->core_objects[a.index()];
  const hwloc_obj_t shared = hwloc_get_common_ancestor_obj(state_->hwloc.get(), from, state_->core_objects[b.index()]);
  return static_cast<unsigned>(from->depth - shared->depth);
}

std::vector<CoreId> Topology::nearest_first(CoreId from) const {
  const std::size_t count = state_->cores.size();
  std::vector<CoreId> others;
  for (std::size_t step = 1; step < count; ++step) others.push_back(state_->cores[(from.index() + step) % count].id);
  std::stable_sort(others.begin(), others.end(),
                   [&](CoreId a, CoreId b) { return distance(from, a) < distance(from, b); });
  return others;
}

Result<void> Topology::bind_this_thread(CoreId core) const {
  TANDEM_ASSERT(core.index() < state_->cores.size());
  if (state_->synthetic) return {};
  if (hwloc_set_cpubind(state_->hwloc.get(), state_->core_objects[core.index()]->cpuset, HWLOC_CPUBIND_THREAD) == 0)
    return {};
  const auto code = errno == ENOSYS ? ErrorCode::unsupported : ErrorCode::io;
  return Error{code, fmt::format("cannot bind a thread to core {}: {}", core.value(), std::strerror(errno))};
}

std::size_t Topology::numa_place_of(CoreId core) const {
  TANDEM_ASSERT(core.index() < state_->cores.size());
  return state_->numa_place(state_->cores[core.index()].numa_node).value_or(0);
}

Result<void> Topology::bind_memory(void* memory, std::size_t bytes, std::size_t numa_place) const {
  TANDEM_ASSERT(numa_place < state_->numa_nodes.size());
  if (state_->synthetic) return {};
  const Bitmap nodes(hwloc_bitmap_alloc());
  hwloc_bitmap_set(nodes.get(), state_->numa_nodes[numa_place].os_index);
  if (hwloc_set_area_membind(state_->hwloc.get(), memory, bytes, nodes.get(), HWLOC_MEMBIND_BIND,
                             HWLOC_MEMBIND_BYNODESET) == 0)
    return {};
  const auto code = errno == ENOSYS ? ErrorCode::unsupported : ErrorCode::io;
  return Error{code, fmt::format("cannot bind {} bytes to NUMA node {}: {}", bytes,
                                 state_->numa_nodes[numa_place].os_index, std::strerror(errno))};
}

std::optional<std::size_t> Topology::numa_place_of(const void* memory, std::size_t bytes) const {
  constexpr std::size_t most_asked = 8;
  const std::size_t count = state_->numa_nodes.size();
  if (state_->synthetic || count == 0) return std::nullopt;
  if (count == 1) return 0;
  const Bitmap nodes(hwloc_bitmap_alloc());
  std::vector<std::size_t> found(count, 0);
  for (std::size_t i = 0; i < std::min(most_asked, bytes); ++i) {
    const auto* const byte = static_cast<const std::byte*>(memory) + bytes * i / most_asked;
    if (hwloc_get_area_memlocation(state_->hwloc.get(), byte, 1, nodes.get(), HWLOC_MEMBIND_BYNODESET) != 0) continue;
    const int node = hwloc_bitmap_first(nodes.get());
    if (const auto place = node >= 0 ? state_->numa_place(static_cast<unsigned>(node)) : std::nullopt) ++found[*place];
  }
  const auto most = std::max_element(found.begin(), found.end());
  return *most > 0 ? std::optional(static_cast<std::size_t>(most - found.begin())) : std::nullopt;
}

std::vector<unsigned> Topology::binding_of_this_thread() const {
  if (state_->synthetic) return {};
  const Bitmap mask(hwloc_bitmap_alloc());
  if (hwloc_get_cpubind(state_->hwloc.get(), mask.get(), HWLOC_CPUBIND_THREAD) != 0) return {};
  return members(mask.get());
}

ScopedBinding::ScopedBinding(const Topology& topology, CoreId core)
    : topology_(topology), former_(topology.binding_of_this_thread()), result_(topology.bind_this_thread(core)) {}

ScopedBinding::~ScopedBinding() {
  if (former_.empty() || !result_.ok()) return;
  const Bitmap mask(hwloc_bitmap_alloc());
  for (const unsigned pu : former_) hwloc_bitmap_set(mask.get(), pu);
  // A refusal leaves the thread bound to a core that it was allowed to use, which is only slower, and no reason to end
  // a program.
  (void)hwloc_set_cpubind(topology_.state_->hwloc.get(), mask.get(), HWLOC_CPUBIND_THREAD);
}

}  // namespace tandem::base
