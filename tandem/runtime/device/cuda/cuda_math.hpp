// tandem/runtime/device/cuda/cuda_math.hpp: cuBLAS and cuSOLVER, which are loaded when a kernel asks for them.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tandem/runtime/device/cuda/cuda_driver.hpp"
#include "tandem/runtime/device/cuda/library.hpp"

namespace tandem::runtime::cuda {

/// One of the two. Both have handles, which post to one stream and have settings. Thread-safe.
class MathLibrary {
 public:
  /// What differs between the two.
  struct Names {
    const char* title;    ///< "cuBLAS"
    std::vector<LibraryFile> files;
    const char* create;   ///< symbols
    const char* destroy;
    const char* set_stream;
    std::vector<const char*> settings;  ///< each sets a number of a handle, which is 0 at first
  };
  static Names blas();
  static Names solver();

  /// Looked for in `folder` at the first use, as `Library` has it.
  /// `driver_version` as `files_for_driver` has it.
  MathLibrary(Names names, std::string folder, int driver_version)
      : names_(std::move(names)), folder_(std::move(folder)), driver_version_(driver_version) {}

  /// A handle. Throws DeviceError.
  void* create();
  /// `handle` posts to `stream` of the current context from now on, and its settings are as they are of a new handle: a
  /// function that had it before may have left others. Throws DeviceError.
  void prepare(void* handle, Stream stream);
  void destroy(void* handle) noexcept;
  /// A function. Throws DeviceError: there is none.
  void* function(const char* symbol);

 private:
  // Both libraries pass and return alike: an opaque pointer, and a status that is 0 for success.
  using SetStream = int(void* handle, Stream stream);
  using SetNumber = int(void* handle, int value);
  struct Loaded {
    Library library;
    SetStream* set_stream = nullptr;     ///< null: the library has none
    std::vector<SetNumber*> settings = {};  ///< those that the library has
  };
  const Loaded& loaded();

  const Names names_;
  const std::string folder_;
  const int driver_version_;
  std::mutex mutex_;
  std::optional<Loaded> loaded_;  ///< under the mutex until it is set
};

}  // namespace tandem::runtime::cuda
