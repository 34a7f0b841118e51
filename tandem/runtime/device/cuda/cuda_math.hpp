// tandem/runtime/device/cuda/cuda_math.hpp: cuBLAS and cuSOLVER, which are loaded when a kernel asks for them.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "tandem/runtime/device/cuda/cuda_driver.hpp"
#include "tandem/runtime/device/cuda/library.hpp"

namespace tandem::runtime::cuda {

/// One of the two. Both have handles, which post to one stream. Thread-safe.
class MathLibrary {
 public:
  /// What differs between the two.
  struct Names {
    const char* title;    ///< "cuBLAS"
    std::vector<std::string> files;
    const char* create;   ///< symbols
    const char* destroy;
    const char* set_stream;
  };
  static Names blas();
  static Names solver();

  /// Looked for in `folder` at the first use, as `Library` has it.
  MathLibrary(Names names, std::string folder) : names_(std::move(names)), folder_(std::move(folder)) {}

  /// A handle that posts to `stream` of the current context. Throws DeviceError.
  void* create(Stream stream);
  void destroy(void* handle) noexcept;
  /// A function. Throws DeviceError: there is none.
  void* function(const char* symbol);

 private:
  const Library& library();

  const Names names_;
  const std::string folder_;
  std::mutex mutex_;
  std::optional<Library> library_;
};

}  // namespace tandem::runtime::cuda
