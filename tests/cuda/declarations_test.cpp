// tests/cuda/declarations_test.cpp: our declarations of CUDA's functions against its own headers, where they are.
// Compiling is the test.
#include <cstddef>
#include <type_traits>

#include <cublas_v2.h>
#include <cuda.h>
#include <cusolverDn.h>
#include <nvrtc.h>

#include "tandem/linalg/kernels/cuda_functions.hpp"
#include "tandem/runtime/device/cuda/cuda_compiler.hpp"
#include "tandem/runtime/device/cuda/cuda_driver.hpp"
#include "tandem/runtime/device/cuda/cuda_math.hpp"

namespace tandem::runtime::cuda::declarations_test {
namespace {

/// Passed alike: both are pointers, or numbers (enumerations, too) of the same size.
template <class Ours, class Theirs>
constexpr bool same_value =
    std::is_pointer_v<Ours> ? std::is_pointer_v<Theirs>
                            : !std::is_pointer_v<Theirs> &&
                                  std::is_floating_point_v<Ours> == std::is_floating_point_v<Theirs> &&
                                  sizeof(Ours) == sizeof(Theirs);
/// What pointers point to is of one size, unless it is opaque.
template <class Ours, class Theirs>
constexpr bool same_target() {
  if constexpr (!std::is_pointer_v<Ours> || !std::is_pointer_v<Theirs>) {
    return true;
  } else {
    using A = std::remove_pointer_t<Ours>;
    using B = std::remove_pointer_t<Theirs>;
    if constexpr (std::is_pointer_v<A> != std::is_pointer_v<B>) return false;
    else if constexpr (requires {
                         sizeof(A);
                         sizeof(B);
                       } &&
                       !std::is_void_v<A> && !std::is_void_v<B> && !std::is_function_v<A>)
      return sizeof(A) == sizeof(B) && std::is_const_v<A> == std::is_const_v<B>;
    else return true;
  }
}

template <class Ours, class Theirs>
constexpr bool alike = false;
template <class OurResult, class... Ours, class TheirResult, class... Theirs>
  requires(sizeof...(Ours) == sizeof...(Theirs))
constexpr bool alike<OurResult (*)(Ours...), TheirResult (*)(Theirs...)> =
    same_value<OurResult, TheirResult> && ((same_value<Ours, Theirs> && same_target<Ours, Theirs>()) && ...);

#define CHECK(member, symbol, parameters) static_assert(alike<Status(*) parameters, decltype(&::symbol)>, #symbol);
TANDEM_CUDA_DRIVER(CHECK)
TANDEM_CUDA_GRAPHS(CHECK)
TANDEM_CUDA_NVRTC(CHECK)
static_assert(alike<decltype(Driver::parameter_info), decltype(&::cuFuncGetParamInfo)>);

static_assert(sizeof(KernelNode) == sizeof(CUDA_KERNEL_NODE_PARAMS));
#define OFFSET(ours, theirs) static_assert(offsetof(KernelNode, ours) == offsetof(CUDA_KERNEL_NODE_PARAMS, theirs));
OFFSET(function, func)
OFFSET(blocks, gridDimX)
OFFSET(threads, blockDimX)
OFFSET(shared_bytes, sharedMemBytes)
OFFSET(arguments, kernelParams)
OFFSET(extra, extra)
OFFSET(kernel, kern)
OFFSET(context, ctx)
#undef OFFSET
static_assert(sizeof(Copy2D) == sizeof(CUDA_MEMCPY2D));
#define OFFSET(ours, theirs) static_assert(offsetof(Copy2D, ours) == offsetof(CUDA_MEMCPY2D, theirs));
OFFSET(from_x_bytes, srcXInBytes)
OFFSET(from_y, srcY)
OFFSET(from_type, srcMemoryType)
OFFSET(from_host, srcHost)
OFFSET(from_device, srcDevice)
OFFSET(from_array, srcArray)
OFFSET(from_pitch, srcPitch)
OFFSET(to_x_bytes, dstXInBytes)
OFFSET(to_y, dstY)
OFFSET(to_type, dstMemoryType)
OFFSET(to_host, dstHost)
OFFSET(to_device, dstDevice)
OFFSET(to_array, dstArray)
OFFSET(to_pitch, dstPitch)
OFFSET(width_bytes, WidthInBytes)
OFFSET(height, Height)

#define VALUE(ours, theirs) static_assert(static_cast<long>(ours) == static_cast<long>(theirs));
VALUE(kSuccess, CUDA_SUCCESS)
VALUE(kInvalidValue, CUDA_ERROR_INVALID_VALUE)
VALUE(kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY)
VALUE(kDeviceUnavailable, CUDA_ERROR_DEVICE_UNAVAILABLE)
VALUE(kNoDevice, CUDA_ERROR_NO_DEVICE)
VALUE(kEccUncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE)
VALUE(kNvlinkUncorrectable, CUDA_ERROR_NVLINK_UNCORRECTABLE)
VALUE(kContained, CUDA_ERROR_CONTAINED)
VALUE(kExternalDevice, CUDA_ERROR_EXTERNAL_DEVICE)
VALUE(kNotFound, CUDA_ERROR_NOT_FOUND)
VALUE(kIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS)
VALUE(kLaunchOutOfResources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
VALUE(kLaunchTimeout, CUDA_ERROR_LAUNCH_TIMEOUT)
VALUE(kPeerAccessAlreadyEnabled, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
VALUE(kContextIsDestroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED)
VALUE(kAssert, CUDA_ERROR_ASSERT)
VALUE(kHardwareStackError, CUDA_ERROR_HARDWARE_STACK_ERROR)
VALUE(kIllegalInstruction, CUDA_ERROR_ILLEGAL_INSTRUCTION)
VALUE(kMisalignedAddress, CUDA_ERROR_MISALIGNED_ADDRESS)
VALUE(kInvalidAddressSpace, CUDA_ERROR_INVALID_ADDRESS_SPACE)
VALUE(kInvalidProgramCounter, CUDA_ERROR_INVALID_PC)
VALUE(kLaunchFailed, CUDA_ERROR_LAUNCH_FAILED)
VALUE(kUnknown, CUDA_ERROR_UNKNOWN)
VALUE(kMaxThreadsOfBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
VALUE(kMaxBlockX, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)
VALUE(kMaxBlockY, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)
VALUE(kMaxBlockZ, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)
VALUE(kMaxGridX, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)
VALUE(kMaxGridY, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)
VALUE(kMaxGridZ, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)
VALUE(kMaxSharedOfBlock, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
VALUE(kFunctionMaxThreads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
VALUE(kFunctionStaticShared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)
VALUE(kFunctionMaxDynamicShared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
VALUE(kMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
VALUE(kCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
VALUE(kPciDomain, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)
VALUE(kPciBus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)
VALUE(kPciDevice, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)
VALUE(kCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
VALUE(kMemoryHost, CU_MEMORYTYPE_HOST)
VALUE(kMemoryDevice, CU_MEMORYTYPE_DEVICE)
VALUE(kPointerMemoryType, CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
VALUE(kStreamNonBlocking, CU_STREAM_NON_BLOCKING)
VALUE(kEventBlockingSync, CU_EVENT_BLOCKING_SYNC)
VALUE(kHostAllocPortable, CU_MEMHOSTALLOC_PORTABLE)
VALUE(kHostRegisterPortable, CU_MEMHOSTREGISTER_PORTABLE)

// cuBLAS and cuSOLVER, by the symbols that MathLibrary and the tile kernels look up.
static_assert(alike<int (*)(void**), decltype(&::cublasCreate_v2)>);
static_assert(alike<int (*)(void*), decltype(&::cublasDestroy_v2)>);
static_assert(alike<int (*)(void*, Stream), decltype(&::cublasSetStream_v2)>);
static_assert(alike<int (*)(void*, int), decltype(&::cublasSetPointerMode_v2)>);
static_assert(alike<int (*)(void*, int), decltype(&::cublasSetMathMode)>);
static_assert(alike<int (*)(void*, int), decltype(&::cublasSetAtomicsMode)>);
static_assert(alike<int (*)(void*, int), decltype(&::cublasSetSmCountTarget)>);
static_assert(alike<int (*)(void**), decltype(&::cusolverDnCreate)>);
static_assert(alike<int (*)(void*), decltype(&::cusolverDnDestroy)>);
static_assert(alike<int (*)(void*, Stream), decltype(&::cusolverDnSetStream)>);

using namespace linalg::internal;
#define ROUTINES(T, letter)                                                                \
  static_assert(alike<CublasGemm<T>*, decltype(&::cublas##letter##gemm_v2)>);              \
  static_assert(alike<CublasSyrk<T>*, decltype(&::cublas##letter##syrk_v2)>);              \
  static_assert(alike<CublasTrsm<T>*, decltype(&::cublas##letter##trsm_v2)>);              \
  static_assert(alike<CublasTrmm<T>*, decltype(&::cublas##letter##trmm_v2)>);              \
  static_assert(alike<CublasGeam<T>*, decltype(&::cublas##letter##geam)>);                 \
  static_assert(alike<CusolverGetrfSize<T>*, decltype(&::cusolverDn##letter##getrf_bufferSize)>); \
  static_assert(alike<CusolverGetrf<T>*, decltype(&::cusolverDn##letter##getrf)>);         \
  static_assert(alike<CusolverPotrfSize<T>*, decltype(&::cusolverDn##letter##potrf_bufferSize)>); \
  static_assert(alike<CusolverPotrf<T>*, decltype(&::cusolverDn##letter##potrf)>);
ROUTINES(float, S)
ROUTINES(double, D)
ROUTINES(std::complex<float>, C)
ROUTINES(std::complex<double>, Z)
static_assert(alike<CublasHerk<std::complex<float>>*, decltype(&::cublasCherk_v2)>);
static_assert(alike<CublasHerk<std::complex<double>>*, decltype(&::cublasZherk_v2)>);

VALUE(kCublasNoTrans, CUBLAS_OP_N)
VALUE(kCublasTrans, CUBLAS_OP_T)
VALUE(kCublasConjTrans, CUBLAS_OP_C)
VALUE(kCublasLower, CUBLAS_FILL_MODE_LOWER)
VALUE(kCublasUpper, CUBLAS_FILL_MODE_UPPER)
VALUE(kCublasLeft, CUBLAS_SIDE_LEFT)
VALUE(kCublasRight, CUBLAS_SIDE_RIGHT)
VALUE(kCublasNonUnit, CUBLAS_DIAG_NON_UNIT)
VALUE(kCublasUnit, CUBLAS_DIAG_UNIT)
VALUE(0, CUBLAS_POINTER_MODE_HOST)
VALUE(0, CUBLAS_DEFAULT_MATH)
VALUE(0, CUBLAS_ATOMICS_NOT_ALLOWED)
VALUE(0, CUBLAS_STATUS_SUCCESS)
VALUE(0, CUSOLVER_STATUS_SUCCESS)
VALUE(0, NVRTC_SUCCESS)

}  // namespace
}  // namespace tandem::runtime::cuda::declarations_test
