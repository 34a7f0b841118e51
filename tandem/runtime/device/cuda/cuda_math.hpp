// tandem/runtime/device/cuda/cuda_math.hpp: cuBLAS and cuSOLVER, loaded when a kernel asks for them.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tandem/runtime/device/cuda/cuda_driver.hpp"
#include "tandem/runtime/device/cuda/library.hpp"

namespace tandem::runtime::cuda {

/// cuBLAS or cuSOLVER. Both have handles that post to one stream and have settings. Thread-safe.
class MathLibrary {
 public:
  /// Names that differ between the two libraries.
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

  /// The library is loaded from `folder` at the first use (see `Library`), in a version for `driver_version` (see
  /// `files_for_driver`).
  MathLibrary(Names names, std::string folder, int driver_version)
      : names_(std::move(names)), folder_(std::move(folder)), driver_version_(driver_version) {}

  /// Creates a handle of the library. Throws DeviceError.
  void* create();
  /// Makes `handle` post to `stream` of the current context, with the settings of a new handle: a function that used it
  /// before may have changed them. Throws DeviceError.
  void prepare(void* handle, Stream stream);
  void destroy(void* handle) noexcept;
  /// Finds a function of the library. Throws DeviceError if there is none.
  void* function(const char* symbol);

 private:
  // Both libraries pass and return alike: an opaque pointer, and a status that is 0 for success.
  using SetStream = int(void* handle, Stream stream);
  using SetNumber = int(void* handle, int value);
  struct Loaded {
    Library library;
    SetStream* set_stream = nullptr;     ///< null: the library has no such function
    std::vector<SetNumber*> settings = {};  ///< functions of settings that the library has
  };
  const Loaded& loaded();

  const Names names_;
  const std::string folder_;
  const int driver_version_;
  std::mutex mutex_;
  std::optional<Loaded> loaded_;  ///< under the mutex until it is set
};

}  // namespace tandem::runtime::cuda
