// tests/cuda/fake_driver.cpp: libcuda.so.1 for tests.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <set>

#include "tests/cuda/fake_objects.hpp"

namespace tandem::fake_cuda {

using namespace runtime::cuda;

Control& settings() {
  static Control control;
  static const bool has_row_kernels = (add_row_kernels(control), true);
  static_cast<void>(has_row_kernels);
  static const bool has_kernels = [] {  // of bench_stretch
    control.known["work"] = {{4, 8, 8}, [](const Launch& launch) {
                               float* const x = launch.get<float*>(1);
                               for (std::size_t i = 0; i < launch.get<std::size_t>(2); ++i)
                                 for (int step = 0; step < launch.get<int>(0); ++step) x[i] = x[i] * 0.5F + 1;
                             }};
    return true;
  }();
  static_cast<void>(has_kernels);
  return control;
}

void spend(std::int64_t ns) {
  if (ns > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
}

bool is_far(const void* address) { return (reinterpret_cast<std::uintptr_t>(address) & kFar) != 0; }

void run_kernel(ContextObject& context, const std::function<void()>& body) {
  Control& control = settings();
  const int now = ++control.kernels_now;
  for (int most = control.most_kernels; most < now && !control.most_kernels.compare_exchange_weak(most, now);) continue;
  ++control.kernels;
  spend(control.kernel_ns);
  if (control.lose_at > 0 && --control.lose_at == 0) context.failure = kLaunchFailed;
  else body();
  --control.kernels_now;
}

namespace {

constexpr int kMostDevices = 8;
constexpr Status kInvalidContext = 201;
constexpr Status kNotInitialized = 3;
constexpr Status kInvalidHandle = 400;
constexpr Status kNotReady = 600;

std::atomic<bool> initialised{false};
ContextObject contexts[kMostDevices];
thread_local Context current = nullptr;
std::mutex mutex;
std::set<std::pair<const char*, const char*>> pinned;  // first and last byte, under the mutex

bool is_pinned(const void* memory) {
  const std::lock_guard guard(mutex);
  const char* const at = static_cast<const char*>(memory);
  return std::any_of(pinned.begin(), pinned.end(),
                     [at](const auto& range) { return range.first <= at && at < range.second; });
}

/// What a function of the driver says before it does anything.
Status state() {
  if (!initialised) return kNotInitialized;
  if (current == nullptr) return kInvalidContext;
  return current->failure;
}

template <class T>
T* pointer(Address address) {
  return reinterpret_cast<T*>(address);
}

/// `host` is not page-locked: the driver returns when it does not need it any more.
Status post_copy(Stream stream, const void* host, std::function<void()> copy) {
  stream->post([stream, copy = std::move(copy)] {
    Control& control = settings();
    if (control.kernels_now > 0) ++control.copies_beside_kernels;
    spend(control.copy_ns);
    if (control.lose_at_copy > 0 && --control.lose_at_copy == 0) stream->context.failure = kLaunchFailed;
    else copy();
  });
  if (host == nullptr || is_pinned(host)) return kSuccess;
  ++settings().pageable_copies;
  return stream->wait();
}

void post_event(Event event, Stream stream) {
  unsigned number = 0;
  {
    const std::lock_guard guard(event->mutex);
    number = ++event->recorded;
  }
  stream->post(
      [event, number] {
        const std::lock_guard guard(event->mutex);
        event->at = std::chrono::steady_clock::now();
        event->passed = number;
        event->changed.notify_all();
      },
      true);
}

constexpr int kMostThreads = 1024, kMostThreadsZ = 64, kMostBlocks = 65'535, kMostShared = 227 << 10;

bool can_run(const KernelNode& node) {
  const auto product = [](const unsigned(&of)[3]) { return std::size_t{of[0]} * of[1] * of[2]; };
  return node.extra == nullptr && product(node.blocks) != 0 && node.blocks[1] <= kMostBlocks &&
         node.blocks[2] <= kMostBlocks &&
         product(node.threads) <= static_cast<std::size_t>(node.function->kernel.most_threads) &&
         node.threads[2] <= kMostThreadsZ && node.shared_bytes <= static_cast<unsigned>(node.function->dynamic_shared);
}

/// With the values that the arguments have now.
std::function<void()> work_of(const KernelNode& node, ContextObject& context) {
  std::vector<std::vector<char>> values;
  for (std::size_t i = 0; i < node.function->kernel.parameter_bytes.size(); ++i) {
    const char* const value = static_cast<const char*>(node.arguments[i]);
    values.emplace_back(value, value + node.function->kernel.parameter_bytes[i]);
  }
  std::size_t blocks = 1, threads = 1;
  for (unsigned i = 0; i < 3; ++i) blocks *= node.blocks[i], threads *= node.threads[i];
  threads *= blocks;
  return [function = node.function, blocks, threads, values = std::move(values), &context]() mutable {
    std::vector<void*> pointers;
    for (std::vector<char>& value : values) pointers.push_back(value.data());
    run_kernel(context, [&] { function->kernel.body(Launch(pointers, blocks, threads)); });
  };
}

/// Graphs are chains here: each node waits for the one that was added before it.
Status add_node(GraphNode* made, GraphHandle graph, const GraphNode* before, std::size_t count, GraphNodeObject node) {
  if (graph->nodes.empty() ? count != 0 : count != 1 || *before != &graph->nodes.back()) return kInvalidValue;
  *made = &graph->nodes.emplace_back(std::move(node));
  return kSuccess;
}

}  // namespace
}  // namespace tandem::fake_cuda

using namespace tandem::fake_cuda;
using namespace tandem::runtime::cuda;

#define STATE_OR_RETURN() \
  if (const Status now = state(); now != kSuccess) return now

extern "C" {

Control* tandem_fake_cuda() { return &settings(); }

Status cuInit(unsigned flags) {
  initialised = flags == 0;
  return flags == 0 ? kSuccess : kInvalidValue;
}
Status cuDriverGetVersion(int* version) {
  *version = 12'040;
  return kSuccess;
}
Status cuGetErrorName(Status status, const char** name) {
  switch (status) {
    case kSuccess: *name = "CUDA_SUCCESS"; return kSuccess;
    case kInvalidValue: *name = "CUDA_ERROR_INVALID_VALUE"; return kSuccess;
    case kOutOfMemory: *name = "CUDA_ERROR_OUT_OF_MEMORY"; return kSuccess;
    case kInvalidContext: *name = "CUDA_ERROR_INVALID_CONTEXT"; return kSuccess;
    case kLaunchOutOfResources: *name = "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"; return kSuccess;
    case kLaunchFailed: *name = "CUDA_ERROR_LAUNCH_FAILED"; return kSuccess;
    default: *name = nullptr; return kInvalidValue;
  }
}
Status cuDeviceGetCount(int* count) {
  if (!initialised) return kNotInitialized;
  *count = settings().devices;
  return kSuccess;
}
Status cuDeviceGet(DeviceNumber* device, int ordinal) {
  if (ordinal < 0 || ordinal >= settings().devices) return kInvalidValue;
  *device = ordinal;
  return kSuccess;
}
Status cuDeviceGetName(char* name, int bytes, DeviceNumber) {
  std::strncpy(name, "Fake", static_cast<std::size_t>(bytes));
  return kSuccess;
}
Status cuDeviceTotalMem_v2(std::size_t* bytes, DeviceNumber) {
  *bytes = settings().memory_bytes;
  return kSuccess;
}
Status cuDeviceGetAttribute(int* value, int attribute, DeviceNumber device) {
  if (attribute == kMaxThreadsOfBlock || attribute == kMaxBlockX || attribute == kMaxBlockY) *value = kMostThreads;
  else if (attribute == kMaxBlockZ) *value = kMostThreadsZ;
  else if (attribute == kMaxGridX) *value = std::numeric_limits<int>::max();
  else if (attribute == kMaxGridY || attribute == kMaxGridZ) *value = kMostBlocks;
  else if (attribute == kMaxSharedOfBlock) *value = kMostShared;
  else if (attribute == kMultiprocessorCount) *value = 4;
  else if (attribute == kCapabilityMajor) *value = 9;
  else if (attribute == kCapabilityMinor) *value = 0;
  else if (attribute == kPciDomain) *value = 0;
  else if (attribute == kPciBus) *value = 0x3b + device;
  else if (attribute == kPciDevice) *value = 0;
  else return kInvalidValue;
  return kSuccess;
}
Status cuDevicePrimaryCtxRetain(Context* context, DeviceNumber device) {
  const std::lock_guard guard(mutex);
  *context = &contexts[device];
  contexts[device].device = device;
  if (contexts[device].retained++ == 0) contexts[device].failure = kSuccess;
  ++settings().contexts;
  return kSuccess;
}
Status cuDevicePrimaryCtxRelease_v2(DeviceNumber device) {
  const std::lock_guard guard(mutex);
  if (contexts[device].retained == 0) return kInvalidContext;
  --contexts[device].retained;
  --settings().contexts;
  return kSuccess;
}
Status cuCtxSetCurrent(Context context) {
  current = context;
  return kSuccess;
}
Status cuCtxGetCurrent(Context* context) {
  *context = current;
  return kSuccess;
}
Status cuDeviceCanAccessPeer(int* can, DeviceNumber a, DeviceNumber b) {
  *can = a != b ? 1 : 0;
  return kSuccess;
}
Status cuCtxEnablePeerAccess(Context peer, unsigned flags) {
  STATE_OR_RETURN();
  return peer != current && flags == 0 ? kSuccess : kInvalidValue;
}

Status cuMemGetInfo_v2(std::size_t* free, std::size_t* all) {
  STATE_OR_RETURN();
  *all = settings().memory_bytes;
  *free = *all - std::min(*all, settings().taken_bytes + current->used_bytes);
  return kSuccess;
}
Status cuMemAlloc_v2(Address* address, std::size_t bytes) {
  STATE_OR_RETURN();
  if (bytes == 0) return kInvalidValue;
  if (current->used_bytes + settings().taken_bytes + bytes > settings().memory_bytes) return kOutOfMemory;
  auto* const header = static_cast<std::size_t*>(std::aligned_alloc(256, 256 + (bytes + 255) / 256 * 256));
  *header = bytes;
  current->used_bytes += bytes;
  ++settings().blocks;
  *address = (reinterpret_cast<std::uintptr_t>(header) + 256) | kFar;
  return kSuccess;
}
Status cuMemFree_v2(Address address) {
  if (current == nullptr) return kInvalidContext;
  ++settings().frees_now;
  for (int i = 0; i < 10'000 && settings().holds_frees; ++i) spend(1'000'000);
  --settings().frees_now;
  auto* const header = reinterpret_cast<std::size_t*>((address & ~kFar) - 256);
  current->used_bytes -= *header;
  --settings().blocks;
  std::free(header);
  return current->failure;
}
Status cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  STATE_OR_RETURN();
  const std::lock_guard guard(mutex);
  if (bytes > settings().host_bytes) return kOutOfMemory;
  settings().host_bytes -= bytes;
  ++settings().host_blocks;
  ++settings().host_allocations;
  *memory = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  pinned.emplace(static_cast<char*>(*memory), static_cast<char*>(*memory) + bytes);
  return kSuccess;
}
Status cuMemFreeHost(void* memory) {
  const std::lock_guard guard(mutex);
  std::erase_if(pinned, [memory](const auto& range) { return range.first == memory; });
  std::free(memory);
  --settings().host_blocks;
  return kSuccess;
}
Status cuPointerGetAttribute(void* value, int attribute, Address address) {
  STATE_OR_RETURN();
  const void* const memory = pointer<const void>(address);
  if (attribute != kPointerMemoryType || (!is_far(memory) && !is_pinned(memory))) return kInvalidValue;
  *static_cast<int*>(value) = is_far(memory) ? kMemoryDevice : kMemoryHost;
  return kSuccess;
}

Status cuMemHostRegister_v2(void* memory, std::size_t bytes, unsigned flags) {
  STATE_OR_RETURN();
  if (flags != kHostRegisterPortable || bytes == 0) return kInvalidValue;
  const std::lock_guard guard(mutex);
  pinned.emplace(static_cast<char*>(memory), static_cast<char*>(memory) + bytes);
  return kSuccess;
}
Status cuMemHostUnregister(void* memory) {
  STATE_OR_RETURN();
  const std::lock_guard guard(mutex);
  return std::erase_if(pinned, [memory](const auto& range) { return range.first == memory; }) == 1 ? kSuccess
                                                                                                   : kInvalidValue;
}

Status cuMemcpyHtoDAsync_v2(Address to, const void* from, std::size_t bytes, Stream stream) {
  ++settings().copies;
  STATE_OR_RETURN();
  if ((to & kFar) == 0 || is_far(from)) return kInvalidValue;
  return post_copy(stream, from, [=] { std::memcpy(near(pointer<char>(to)), from, bytes); });
}
Status cuMemcpyDtoHAsync_v2(void* to, Address from, std::size_t bytes, Stream stream) {
  ++settings().copies;
  STATE_OR_RETURN();
  if ((from & kFar) == 0 || is_far(to)) return kInvalidValue;
  return post_copy(stream, to, [=] { std::memcpy(to, near(pointer<char>(from)), bytes); });
}
Status cuMemcpy2DAsync_v2(const Copy2D* wanted, Stream stream) {
  ++settings().copies;
  STATE_OR_RETURN();
  const Copy2D copy = *wanted;
  if (copy.from_x_bytes != 0 || copy.from_y != 0 || copy.to_x_bytes != 0 || copy.to_y != 0) return kInvalidValue;
  if (copy.from_pitch < copy.width_bytes || copy.to_pitch < copy.width_bytes) return kInvalidValue;
  const bool in = copy.from_type == kMemoryHost && copy.to_type == kMemoryDevice;
  const bool out = copy.from_type == kMemoryDevice && copy.to_type == kMemoryHost;
  if (!in && !out) return kInvalidValue;
  if (((in ? copy.to_device : copy.from_device) & kFar) == 0 || is_far(in ? copy.from_host : copy.to_host))
    return kInvalidValue;
  ++settings().copies_of_columns;
  return post_copy(stream, in ? copy.from_host : copy.to_host, [=] {
    const char* const from =
        in ? static_cast<const char*>(copy.from_host) : near(pointer<const char>(copy.from_device));
    char* const to = in ? near(pointer<char>(copy.to_device)) : static_cast<char*>(copy.to_host);
    for (std::size_t i = 0; i < copy.height; ++i)
      std::memcpy(to + i * copy.to_pitch, from + i * copy.from_pitch, copy.width_bytes);
  });
}
Status cuMemcpyPeerAsync(Address to, Context to_context, Address from, Context from_context, std::size_t bytes,
                         Stream stream) {
  ++settings().copies;
  STATE_OR_RETURN();
  if ((to & from & kFar) == 0 || to_context == from_context) return kInvalidValue;
  if (to_context->failure != kSuccess) return to_context->failure;
  ++settings().peer_copies;
  return post_copy(stream, nullptr, [=] { std::memcpy(near(pointer<char>(to)), near(pointer<char>(from)), bytes); });
}

Status cuStreamCreate(Stream* stream, unsigned flags) {
  STATE_OR_RETURN();
  if (flags != kStreamNonBlocking) return kInvalidValue;
  *stream = new StreamObject(*current);
  return kSuccess;
}
Status cuStreamDestroy_v2(Stream stream) {
  delete stream;
  return kSuccess;
}
Status cuStreamSynchronize(Stream stream) { return stream->wait(); }

Status cuEventCreate(Event* event, unsigned flags) {
  STATE_OR_RETURN();
  if (flags != kEventBlockingSync) return kInvalidValue;
  *event = new EventObject;
  (*event)->context = current;
  return kSuccess;
}
Status cuEventDestroy_v2(Event event) {
  delete event;
  return kSuccess;
}
Status cuEventRecord(Event event, Stream stream) {
  STATE_OR_RETURN();
  if (event->context != &stream->context) return kInvalidContext;
  post_event(event, stream);
  return kSuccess;
}
Status cuEventSynchronize(Event event) {
  std::unique_lock lock(event->mutex);
  event->changed.wait(lock, [event] { return event->passed == event->recorded; });
  return event->context->failure;
}
Status cuEventElapsedTime(float* ms, Event since, Event event) {
  if (since->recorded == 0 || event->recorded == 0) return kInvalidHandle;
  if (since->passed != since->recorded || event->passed != event->recorded) return kNotReady;
  const std::int64_t told_ns = settings().event_ns;
  *ms = told_ns != 0 ? static_cast<float>(told_ns) * 1e-6F
                     : std::chrono::duration<float, std::milli>(event->at - since->at).count();
  return kSuccess;
}

Status cuModuleLoadData(ModuleHandle* module, const void* image) {
  STATE_OR_RETURN();
  if (static_cast<const char*>(image)[0] == 0) return kInvalidValue;
  *module = new ModuleObject;
  return kSuccess;
}
Status cuModuleUnload(ModuleHandle module) {
  delete module;
  return kSuccess;
}
Status cuModuleGetFunction(Function* function, ModuleHandle module, const char* name) {
  STATE_OR_RETURN();
  Control& control = settings();
  const std::lock_guard guard(control.mutex);
  if (std::strncmp(name, "_Z", 2) != 0) return kNotFound;  // not the name that the compiler has given it
  const auto known = control.known.find(name + 2);
  if (known == control.known.end()) return kNotFound;
  *function = &module->functions.emplace_back(known->second);
  return kSuccess;
}
Status cuFuncGetAttribute(int* value, int attribute, Function function) {
  if (attribute == kFunctionMaxThreads) *value = function->kernel.most_threads;
  else if (attribute == kFunctionStaticShared) *value = function->kernel.static_shared;
  else if (attribute == kFunctionMaxDynamicShared) *value = function->dynamic_shared;
  else return kInvalidValue;
  return kSuccess;
}
Status cuFuncSetAttribute(Function function, int attribute, int value) {
  STATE_OR_RETURN();
  if (attribute != kFunctionMaxDynamicShared || value < 0 || value + function->kernel.static_shared > kMostShared)
    return kInvalidValue;
  function->dynamic_shared = value;
  return kSuccess;
}
Status cuFuncGetParamInfo(Function function, std::size_t index, std::size_t* offset, std::size_t* bytes) {
  if (index >= function->kernel.parameter_bytes.size()) return kInvalidValue;
  *offset = 0;
  *bytes = function->kernel.parameter_bytes[index];
  return kSuccess;
}
Status cuLaunchKernel(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                      unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream stream, void** arguments,
                      void** extra) {
  STATE_OR_RETURN();
  const KernelNode node{
      function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, arguments, extra, nullptr,
      nullptr};
  if (!can_run(node)) return kInvalidValue;
  if (settings().refuse_launches > 0) {
    --settings().refuse_launches;
    return kLaunchOutOfResources;
  }
  stream->post(work_of(node, stream->context));
  return kSuccess;
}

Status cuGraphCreate(GraphHandle* graph, unsigned flags) {
  STATE_OR_RETURN();
  if (flags != 0) return kInvalidValue;
  *graph = new GraphObject;
  return kSuccess;
}
Status cuGraphDestroy(GraphHandle graph) {
  delete graph;
  return kSuccess;
}
Status cuGraphAddKernelNode_v2(GraphNode* made, GraphHandle graph, const GraphNode* before, std::size_t count,
                               const KernelNode* node) {
  STATE_OR_RETURN();
  if (!can_run(*node)) return kInvalidValue;
  return add_node(made, graph, before, count, {.kernel = work_of(*node, *current)});
}
Status cuGraphAddEventRecordNode(GraphNode* made, GraphHandle graph, const GraphNode* before, std::size_t count,
                                 Event event) {
  STATE_OR_RETURN();
  return add_node(made, graph, before, count, {.event = event});
}
Status cuGraphInstantiateWithFlags(GraphExec* exec, GraphHandle graph, unsigned long long flags) {
  STATE_OR_RETURN();
  if (settings().refuse_graphs) return kOutOfMemory;
  if (flags != 0) return kInvalidValue;
  *exec = new GraphExecObject{graph->nodes};
  ++settings().graphs;
  return kSuccess;
}
/// All its events count as recorded from now on.
Status cuGraphLaunch(GraphExec exec, Stream stream) {
  STATE_OR_RETURN();
  if (settings().refuse_launches > 0) {
    --settings().refuse_launches;
    return kLaunchOutOfResources;
  }
  ++settings().graph_launches;
  for (const GraphNodeObject& node : exec->nodes) {
    if (node.event != nullptr) post_event(node.event, stream);
    else stream->post(node.kernel);
  }
  return kSuccess;
}
Status cuGraphExecDestroy(GraphExec exec) {
  delete exec;
  --settings().graphs;
  return kSuccess;
}

}  // extern "C"

// The fake has exactly the functions that the module asks for, or its tests would say nothing of them.
#define SAME(member, symbol, parameters) static_assert(std::is_same_v<decltype(&symbol), decltype(Driver::member)>);
TANDEM_CUDA_DRIVER(SAME)
TANDEM_CUDA_GRAPHS(SAME)
