// tandem/runtime/device/cuda/cuda_driver.hpp: the part of CUDA's driver API that devices need, in declarations of our
// own.
//
// CUDA's rule is that a function whose signature has changed has a further symbol with the suffix _v2, which cuda.h
// gives to the old name. A program that looks symbols up must name the new one. tests/cuda/declarations_test.cpp
// compares all of this with cuda.h where there is one.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "tandem/base/result.hpp"
#include "tandem/runtime/device/cuda/library.hpp"
#include "tandem/runtime/memory/device_error.hpp"

namespace tandem::runtime::cuda {

using Status = int;                   ///< CUresult
using DeviceNumber = int;             ///< CUdevice
using Address = unsigned long long;   ///< CUdeviceptr
using Context = struct ContextObject*;    ///< CUcontext
using Stream = struct StreamObject*;      ///< CUstream
using Event = struct EventObject*;        ///< CUevent
using ModuleHandle = struct ModuleObject*;    ///< CUmodule
using Function = struct FunctionObject*;  ///< CUfunction
using GraphHandle = struct GraphObject*;      ///< CUgraph
using GraphNode = struct GraphNodeObject*;    ///< CUgraphNode
using GraphExec = struct GraphExecObject*;    ///< CUgraphExec

/// Values of enumerations in cuda.h.
enum : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kDeviceUnavailable = 46,
  kNoDevice = 100,
  kEccUncorrectable = 214,
  kNvlinkUncorrectable = 220,
  kContained = 226,
  kNotFound = 500,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kLaunchTimeout = 702,
  kPeerAccessAlreadyEnabled = 704,
  kContextIsDestroyed = 709,
  kAssert = 710,
  kHardwareStackError = 714,
  kIllegalInstruction = 715,
  kMisalignedAddress = 716,
  kInvalidAddressSpace = 717,
  kInvalidProgramCounter = 718,
  kLaunchFailed = 719,
  kExternalDevice = 911,
  kUnknown = 999,

  kMaxThreadsOfBlock = 1,  // CUdevice_attribute
  kMaxBlockX = 2,
  kMaxBlockY = 3,
  kMaxBlockZ = 4,
  kMaxGridX = 5,
  kMaxGridY = 6,
  kMaxGridZ = 7,
  kMultiprocessorCount = 16,
  kPciBus = 33,
  kPciDevice = 34,
  kPciDomain = 50,
  kCapabilityMajor = 75,
  kCapabilityMinor = 76,
  kMaxSharedOfBlock = 97,  ///< bytes, for functions that ask for so much

  kFunctionMaxThreads = 0,  // CUfunction_attribute
  kFunctionStaticShared = 1,
  kFunctionMaxDynamicShared = 8,

  kMemoryHost = 1,  // CUmemorytype
  kMemoryDevice = 2,

  kPointerMemoryType = 2,  // CUpointer_attribute
};
/// Flags in cuda.h.
enum : unsigned {
  kStreamNonBlocking = 1,
  kEventBlockingSync = 1,
  kHostAllocPortable = 1,
  kHostRegisterPortable = 1,
};

/// CUDA_MEMCPY2D, of version 2.
struct Copy2D {
  std::size_t from_x_bytes = 0;
  std::size_t from_y = 0;
  int from_type = 0;
  const void* from_host = nullptr;
  Address from_device = 0;
  void* from_array = nullptr;
  std::size_t from_pitch = 0;
  std::size_t to_x_bytes = 0;
  std::size_t to_y = 0;
  int to_type = 0;
  void* to_host = nullptr;
  Address to_device = 0;
  void* to_array = nullptr;
  std::size_t to_pitch = 0;
  std::size_t width_bytes = 0;
  std::size_t height = 0;
};

/// CUDA_KERNEL_NODE_PARAMS, of version 2.
struct KernelNode {
  Function function = nullptr;
  unsigned blocks[3] = {};
  unsigned threads[3] = {};  ///< of a block
  unsigned shared_bytes = 0;
  void** arguments = nullptr;
  void** extra = nullptr;
  void* kernel = nullptr;
  Context context = nullptr;
};

/// Table of functions as F(member, symbol, parameters).
#define TANDEM_CUDA_DRIVER(F)                                                                \
  F(init, cuInit, (unsigned))                                                                \
  F(error_name, cuGetErrorName, (Status, const char**))                                      \
  F(driver_version, cuDriverGetVersion, (int*))                                              \
  F(device_count, cuDeviceGetCount, (int*))                                                  \
  F(device, cuDeviceGet, (DeviceNumber*, int))                                               \
  F(device_name, cuDeviceGetName, (char*, int, DeviceNumber))                                \
  F(device_memory, cuDeviceTotalMem_v2, (std::size_t*, DeviceNumber))                        \
  F(device_attribute, cuDeviceGetAttribute, (int*, int, DeviceNumber))                       \
  F(retain_context, cuDevicePrimaryCtxRetain, (Context*, DeviceNumber))                      \
  F(release_context, cuDevicePrimaryCtxRelease_v2, (DeviceNumber))                           \
  F(set_current, cuCtxSetCurrent, (Context))                                                 \
  F(get_current, cuCtxGetCurrent, (Context*))                                                \
  F(can_access_peer, cuDeviceCanAccessPeer, (int*, DeviceNumber, DeviceNumber))              \
  F(enable_peer_access, cuCtxEnablePeerAccess, (Context, unsigned))                          \
  F(memory_info, cuMemGetInfo_v2, (std::size_t*, std::size_t*))                              \
  F(allocate, cuMemAlloc_v2, (Address*, std::size_t))                                        \
  F(release, cuMemFree_v2, (Address))                                                        \
  F(allocate_host, cuMemHostAlloc, (void**, std::size_t, unsigned))                          \
  F(release_host, cuMemFreeHost, (void*))                                                    \
  F(pointer_attribute, cuPointerGetAttribute, (void*, int, Address))                         \
  F(lock_host, cuMemHostRegister_v2, (void*, std::size_t, unsigned))                         \
  F(unlock_host, cuMemHostUnregister, (void*))                                               \
  F(copy_to_device, cuMemcpyHtoDAsync_v2, (Address, const void*, std::size_t, Stream))       \
  F(copy_to_host, cuMemcpyDtoHAsync_v2, (void*, Address, std::size_t, Stream))               \
  F(copy_2d, cuMemcpy2DAsync_v2, (const Copy2D*, Stream))                                    \
  F(copy_peer, cuMemcpyPeerAsync, (Address, Context, Address, Context, std::size_t, Stream)) \
  F(create_stream, cuStreamCreate, (Stream*, unsigned))                                      \
  F(destroy_stream, cuStreamDestroy_v2, (Stream))                                            \
  F(synchronize_stream, cuStreamSynchronize, (Stream))                                       \
  F(create_event, cuEventCreate, (Event*, unsigned))                                         \
  F(destroy_event, cuEventDestroy_v2, (Event))                                               \
  F(record_event, cuEventRecord, (Event, Stream))                                            \
  F(synchronize_event, cuEventSynchronize, (Event))                                          \
  F(elapsed_ms, cuEventElapsedTime, (float*, Event, Event))                                  \
  F(load_module, cuModuleLoadData, (ModuleHandle*, const void*))                             \
  F(unload_module, cuModuleUnload, (ModuleHandle))                                           \
  F(find_function, cuModuleGetFunction, (Function*, ModuleHandle, const char*))              \
  F(function_attribute, cuFuncGetAttribute, (int*, int, Function))                           \
  F(set_function_attribute, cuFuncSetAttribute, (Function, int, int))                        \
  F(launch, cuLaunchKernel,                                                                  \
    (Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void**, void**))

/// Functions of graphs: CUDA 12 and newer have all of them.
#define TANDEM_CUDA_GRAPHS(F)                                                                                         \
  F(create_graph, cuGraphCreate, (GraphHandle*, unsigned))                                                            \
  F(destroy_graph, cuGraphDestroy, (GraphHandle))                                                                     \
  F(add_kernel, cuGraphAddKernelNode_v2, (GraphNode*, GraphHandle, const GraphNode*, std::size_t, const KernelNode*)) \
  F(add_event, cuGraphAddEventRecordNode, (GraphNode*, GraphHandle, const GraphNode*, std::size_t, Event))            \
  F(instantiate, cuGraphInstantiateWithFlags, (GraphExec*, GraphHandle, unsigned long long))                          \
  F(launch_graph, cuGraphLaunch, (GraphExec, Stream))                                                                 \
  F(destroy_exec, cuGraphExecDestroy, (GraphExec))

/// The driver, loaded and initialised. Thread-safe, as CUDA's functions are.
struct Driver {
  /// Loads the driver. Errors: it is missing, or has no device that can be used.
  static base::Result<std::shared_ptr<const Driver>> load(const std::string& folder);

#define TANDEM_CUDA_MEMBER(member, symbol, parameters) Status(*member) parameters = nullptr;
  TANDEM_CUDA_DRIVER(TANDEM_CUDA_MEMBER)
#undef TANDEM_CUDA_MEMBER
#define TANDEM_CUDA_MEMBER(member, symbol, parameters) Status(*member) parameters = nullptr;
  TANDEM_CUDA_GRAPHS(TANDEM_CUDA_MEMBER)
#undef TANDEM_CUDA_MEMBER
  bool has_graphs = false;  ///< the driver has the functions of graphs
  int version = 0;          ///< CUDA version of the driver: 12040 is 12.4; 0: unknown
  /// Function of CUDA 12.4 and newer; null before.
  Status (*parameter_info)(Function, std::size_t, std::size_t*, std::size_t*) = nullptr;

  /// Name of a status such as "CUDA_ERROR_OUT_OF_MEMORY", or its number.
  std::string name_of(Status status) const;
  /// The failure of `what`, which a device error ended; null when `status` is success. `begun`: the task's data is
  /// undefined.
  std::exception_ptr failure_of(Status status, const std::string& what, bool begun) const;
  /// Throws DeviceError if `status` says that `what` has failed; the error says that nothing has begun.
  void check(Status status, const char* what) const;
};

/// Makes a context the calling thread's, and restores the thread's former context, which may belong to a program that
/// uses CUDA itself.
class Within {
 public:
  Within(const Driver& driver, Context context) noexcept : driver_(driver) {
    driver_.get_current(&before_);
    driver_.set_current(context);
  }
  ~Within() { driver_.set_current(before_); }
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;

 private:
  const Driver& driver_;
  Context before_ = nullptr;
};

/// Whether the status is one after which a context runs nothing any more ("the process must be terminated and
/// relaunched" in CUDA's manual).
bool is_lost(Status status) noexcept;

}  // namespace tandem::runtime::cuda
