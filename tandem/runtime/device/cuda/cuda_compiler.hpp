// tandem/runtime/device/cuda/cuda_compiler.hpp: CUDA C++ to machine code, by NVRTC.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "tandem/runtime/device/cuda/cuda_queue.hpp"
#include "tandem/runtime/device/cuda/library.hpp"

namespace tandem::runtime::cuda {

using Program = struct ProgramObject*;  ///< nvrtcProgram

/// Table of functions as F(member, symbol, parameters); all return nvrtcResult.
#define TANDEM_CUDA_NVRTC(F)                                                                                       \
  F(version, nvrtcVersion, (int*, int*))                                                                           \
  F(create, nvrtcCreateProgram, (Program*, const char*, const char*, int, const char* const*, const char* const*)) \
  F(destroy, nvrtcDestroyProgram, (Program*))                                                                      \
  F(compile, nvrtcCompileProgram, (Program, int, const char* const*))                                              \
  F(add_name, nvrtcAddNameExpression, (Program, const char*))                                                      \
  F(lowered_name, nvrtcGetLoweredName, (Program, const char*, const char**))                                       \
  F(log_bytes, nvrtcGetProgramLogSize, (Program, std::size_t*))                                                    \
  F(log, nvrtcGetProgramLog, (Program, char*))                                                                     \
  F(code_bytes, nvrtcGetCUBINSize, (Program, std::size_t*))                                                        \
  F(code, nvrtcGetCUBIN, (Program, char*))                                                                         \
  F(ptx_bytes, nvrtcGetPTXSize, (Program, std::size_t*))                                                           \
  F(ptx, nvrtcGetPTX, (Program, char*))                                                                            \
  F(architecture_count, nvrtcGetNumSupportedArchs, (int*))                                                         \
  F(architectures, nvrtcGetSupportedArchs, (int*))

/// Code of one kernel.
struct CompiledKernel {
  std::vector<char> code;  ///< for cuModuleLoadData: machine code, or PTX for a device that is newer than NVRTC
  std::string symbol;      ///< the kernel's name in it
};

/// NVRTC, if the machine has it. Thread-safe.
class Compiler {
 public:
  /// Loads NVRTC from `folder` (see `Library`) for a driver of CUDA `driver_version` (see `files_for_driver`).
  Compiler(const std::string& folder, int driver_version);

  /// Compiles for devices of compute capability `architecture`: 90 is 9.0. Throws std::runtime_error with the
  /// compiler's message if the text is wrong, DeviceError if there is no NVRTC.
  CompiledKernel compile(const CudaSource& source, unsigned architecture) const;

 private:
  const Library library_;
  std::string missing_;             ///< why NVRTC cannot be used; empty: it can
  std::vector<int> architectures_;  ///< architectures for which NVRTC makes machine code, ascending
#define TANDEM_CUDA_MEMBER(member, symbol, parameters) int(*call_##member) parameters = nullptr;
  TANDEM_CUDA_NVRTC(TANDEM_CUDA_MEMBER)
#undef TANDEM_CUDA_MEMBER
};

}  // namespace tandem::runtime::cuda
