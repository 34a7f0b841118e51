// tandem/runtime/device/cuda/library.hpp: a library of NVIDIA's that is loaded if it is there.
#pragma once

#include <string>
#include <vector>

namespace tandem::runtime::cuda {

/// A file of a library, and the oldest driver that runs it.
struct LibraryFile {
  const char* name;    ///< "libcublas.so.12"
  int cuda_major = 0;  ///< major CUDA version of that driver, such as 12; 0: the name does not say it
};

/// The files that a driver for CUDA `driver_version` (12040 is 12.4; 0: unknown) runs, in the order in which to try
/// them: files of its own major version, of older ones, then names without a version, which may be of any.
std::vector<std::string> files_for_driver(const std::vector<LibraryFile>& files, int driver_version);

/// A shared library, loaded for the life of the process, since NVIDIA's libraries have threads.
class Library {
 public:
  /// Loads the first of `names` that loads: from `folder`, if not empty, else by the dynamic loader and from
  /// /usr/local/cuda/lib64.
  Library(const std::string& folder, const std::vector<std::string>& names);

  bool is_loaded() const noexcept { return handle_ != nullptr; }
  /// Why the library is not loaded, as "libnvrtc.so.12: cannot open shared object file: No such file or directory".
  const std::string& missing() const noexcept { return missing_; }
  /// Address of a symbol; null: the library has none of that name.
  void* find(const char* symbol) const noexcept;
  /// Sets `function` to the function `symbol`. False: the library has none.
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
