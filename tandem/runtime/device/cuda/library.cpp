// tandem/runtime/device/cuda/library.cpp: tries the places where a library may be.
#include "tandem/runtime/device/cuda/library.hpp"

#include <dlfcn.h>

namespace tandem::runtime::cuda {

Library::Library(const std::string& folder, const std::vector<std::string>& names) {
  std::vector<std::string> prefixes = {"", "/usr/local/cuda/lib64/"};
  if (!folder.empty()) prefixes.insert(prefixes.begin(), folder + "/");
  for (const std::string& prefix : prefixes) {
    for (const std::string& name : names) {
      handle_ = dlopen((prefix + name).c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
      if (handle_ != nullptr) return;
      if (missing_.empty()) missing_ = dlerror();
    }
  }
}

void* Library::find(const char* symbol) const noexcept { return handle_ != nullptr ? dlsym(handle_, symbol) : nullptr; }

}  // namespace tandem::runtime::cuda
