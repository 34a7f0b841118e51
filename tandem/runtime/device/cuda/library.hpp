// tandem/runtime/device/cuda/library.hpp: a library of NVIDIA's that is loaded if it is there.
#pragma once

#include <string>
#include <vector>

namespace tandem::runtime::cuda {

/// A file of a library, and the oldest driver that runs it.
struct LibraryFile {
  const char* name;    ///< "libcublas.so.12"
  int cuda_major = 0;  ///< of that driver: 12; 0: the name does not say it
};

/// Those of `files` that a driver for CUDA `driver_version` (12040 is 12.4; 0: not known) runs, in the order in which
/// they are to be tried: those of its own major version, older ones, and then names without a version, which may be of
/// any.
std::vector<std::string> files_for_driver(const std::vector<LibraryFile>& files, int driver_version);

/// Stays loaded for the life of the process: NVIDIA's libraries have threads.
class Library {
 public:
  /// The first of `names` that loads: from `folder`, if it is not empty, else from where the dynamic loader looks and /usr/local/cuda/lib64.
  Library(const std::string& folder, const std::vector<std::string>& names);

  bool is_loaded() const noexcept { return handle_ != nullptr; }
  /// Why it is not loaded: "libnvrtc.so.12: cannot open shared object file: No such file or directory".
  const std::string& missing() const noexcept { return missing_; }
  /// Null: it has none of that name.
  void* find(const char* symbol) const noexcept;
  /// Sets `function` to the function `symbol`. False: it has none.
  template <class Function>
  bool find(const char* symbol, Function*& function) const noexcept {
    function = reinterpret_cast<Function*>(find(symbol));
    return function != nullptr;
  }

 private:
  void* handle_ = nullptr;
  std::string missing_;
};

}  // namespace tandem::runtime::cuda
