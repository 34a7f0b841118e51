// tandem/runtime/device/cuda/library.cpp: tries the places where a library may be.
#include "tandem/runtime/device/cuda/library.hpp"

#include <dlfcn.h>

#include <algorithm>

namespace tandem::runtime::cuda {

std::vector<std::string> files_for_driver(const std::vector<LibraryFile>& files, int driver_version) {
  const int newest = driver_version / 1000;
  std::vector<LibraryFile> usable;
  for (const LibraryFile& file : files)
    if (newest == 0 || file.cuda_major <= newest) usable.push_back(file);
  std::stable_sort(usable.begin(), usable.end(),
                   [](const LibraryFile& a, const LibraryFile& b) { return a.cuda_major > b.cuda_major; });
  std::vector<std::string> names;
  for (const LibraryFile& file : usable) names.emplace_back(file.name);
  return names;
}

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
