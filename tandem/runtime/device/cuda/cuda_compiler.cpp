// tandem/runtime/device/cuda/cuda_compiler.cpp: calls NVRTC, and passes on its messages.
#include "tandem/runtime/device/cuda/cuda_compiler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "tandem/runtime/memory/device_error.hpp"

namespace tandem::runtime::cuda {

Compiler::Compiler(const std::string& folder, int driver_version)
    : library_(folder, files_for_driver(
                           {{"libnvrtc.so.13", 13}, {"libnvrtc.so.12", 12}, {"libnvrtc.so.11.2", 11}, {"libnvrtc.so"}},
                           driver_version)),
      missing_(library_.missing()) {
  if (!library_.is_loaded()) return;
  missing_.clear();
#define TANDEM_CUDA_FIND(member, symbol, parameters) \
  if (!library_.find(#symbol, call_##member)) missing_ = "it is too old: it has no " #symbol;
  TANDEM_CUDA_NVRTC(TANDEM_CUDA_FIND)
#undef TANDEM_CUDA_FIND
  int major = 0, minor = 0;
  if (missing_.empty() && driver_version != 0 && call_version(&major, &minor) == 0 && major > driver_version / 1000)
    missing_ = fmt::format("it is of CUDA {}.{}, and the driver runs CUDA {}.{} and older", major, minor,
                           driver_version / 1000, driver_version % 1000 / 10);
  int count = 0;
  if (!missing_.empty() || call_architecture_count(&count) != 0 || count <= 0) return;
  architectures_.resize(static_cast<std::size_t>(count));
  call_architectures(architectures_.data());
  std::sort(architectures_.begin(), architectures_.end());
}

CompiledKernel Compiler::compile(const CudaSource& source, unsigned architecture) const {
  if (!missing_.empty())
    throw DeviceError(DeviceEffect::refused,
                      fmt::format("kernel '{}' is CUDA source, and NVRTC cannot be used: {}", source.kernel, missing_));
  Program program = nullptr;
  if (call_create(&program, source.text.c_str(), "tandem.cu", 0, nullptr, nullptr) != 0)
    throw DeviceError(DeviceEffect::refused, fmt::format("NVRTC takes no program for kernel '{}'", source.kernel));
  struct Owned {
    const Compiler& compiler;
    Program& program;
    ~Owned() { compiler.call_destroy(&program); }
  } const owned{*this, program};

  // The driver compiles PTX for a device that NVRTC does not know.
  const auto newer = std::upper_bound(architectures_.begin(), architectures_.end(), static_cast<int>(architecture));
  const bool is_known = newer != architectures_.begin() && *(newer - 1) == static_cast<int>(architecture);
  const bool to_ptx = !is_known && newer != architectures_.begin();
  std::vector<std::string> options = {to_ptx ? fmt::format("--gpu-architecture=compute_{}", *(newer - 1))
                                             : fmt::format("--gpu-architecture=sm_{}", architecture)};
  std::istringstream words(source.options);
  for (std::string word; words >> word;) options.push_back(word);
  std::vector<const char*> pointers;
  for (const std::string& option : options) pointers.push_back(option.c_str());

  const char* symbol = nullptr;
  const bool is_right = call_add_name(program, source.kernel.c_str()) == 0 &&
                        call_compile(program, static_cast<int>(pointers.size()), pointers.data()) == 0 &&
                        call_lowered_name(program, source.kernel.c_str(), &symbol) == 0;
  if (!is_right) {
    std::size_t bytes = 0;
    std::string log;
    if (call_log_bytes(program, &bytes) == 0 && bytes > 1) {
      log.resize(bytes);
      call_log(program, log.data());
      log.resize(bytes - 1);
    }
    while (!log.empty() && log.back() == '\n') log.pop_back();
    throw std::runtime_error(
        fmt::format("the CUDA source of kernel '{}' does not compile for compute capability {}.{}:\n{}", source.kernel,
                    architecture / 10, architecture % 10, log));
  }
  CompiledKernel kernel;
  kernel.symbol = symbol;
  std::size_t bytes = 0;
  if ((to_ptx ? call_ptx_bytes : call_code_bytes)(program, &bytes) != 0 || bytes == 0)
    throw DeviceError(DeviceEffect::refused, fmt::format("NVRTC gives no code of kernel '{}'", source.kernel));
  kernel.code.resize(bytes);
  (to_ptx ? call_ptx : call_code)(program, kernel.code.data());
  return kernel;
}

}  // namespace tandem::runtime::cuda
