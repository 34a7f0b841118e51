// tandem/runtime/device/load_device_module.hpp: a kind of device from a shared library that only programs with such
// devices load.
#pragma once

#include <dlfcn.h>
#include <fmt/format.h>

#include <string_view>

#include "tandem/base/result.hpp"

namespace tandem::runtime {

/// Where a module is, and what to do without it.
struct DeviceModuleFile {
  const char* kind;    ///< "CUDA"
  const char* file;    ///< file name for the dynamic loader
  const char* entry;   ///< its function that returns its `Module`
  const char* remedy;  ///< advice when it is missing: a sentence without a period, or the first part of one
};

/// Loads a module by the dynamic loader, and refuses one of another build: `Module` holds its interface, its layout and
/// Tandem's version. It stays loaded. Thread-safe. Errors: unsupported, it is missing or belongs to another build;
/// malformed, it is no module.
template <class Module>
base::Result<const Module*> load_device_module(const DeviceModuleFile& what, std::string_view our_version) {
  using base::Error;
  using base::ErrorCode;
  void* const library = dlopen(what.file, RTLD_NOW | RTLD_NODELETE | RTLD_LOCAL);
  if (library == nullptr)
    return Error{ErrorCode::unsupported,
                 fmt::format("{} cannot be used: {}. {}, or name the folder of {} in LD_LIBRARY_PATH", what.kind,
                             dlerror(), what.remedy, what.file)};
  void* const entry = dlsym(library, what.entry);
  if (entry == nullptr)
    return Error{ErrorCode::malformed, fmt::format("{} is no module of Tandem; remove it", what.file)};
  const Module& module = *reinterpret_cast<const Module* (*)() noexcept>(entry)();
  const Module ours;
  if (module.interface != ours.interface || module.layout != ours.layout || module.version != our_version)
    return Error{ErrorCode::unsupported,
                 fmt::format("{} was made by another build, of Tandem {}, and this program is of Tandem {}; build both "
                             "together",
                             what.file, module.version, our_version)};
  return &module;
}

}  // namespace tandem::runtime
