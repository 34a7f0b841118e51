// tandem/runtime/device/cuda/library.hpp: a library of NVIDIA's that is loaded if it is there.
#pragma once

#include <string>
#include <vector>

namespace tandem::runtime::cuda {

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
