// tandem/runtime/device/cuda/cuda_math.cpp: handles of cuBLAS and cuSOLVER.
#include "tandem/runtime/device/cuda/cuda_math.hpp"

#include <fmt/format.h>

namespace tandem::runtime::cuda {

namespace {

using Create = int(void** handle);
using Destroy = int(void* handle);

}  // namespace

MathLibrary::Names MathLibrary::blas() {
  return {
      .title = "cuBLAS",
      .files = {{"libcublas.so.13", 13}, {"libcublas.so.12", 12}, {"libcublas.so.11", 11}, {"libcublas.so"}},
      .create = "cublasCreate_v2",
      .destroy = "cublasDestroy_v2",
      .set_stream = "cublasSetStream_v2",  // it also selects the default workspace
      .settings = {"cublasSetPointerMode_v2", "cublasSetMathMode", "cublasSetAtomicsMode", "cublasSetSmCountTarget"}};
}

MathLibrary::Names MathLibrary::solver() {
  return {.title = "cuSOLVER",
          .files = {{"libcusolver.so.12", 13}, {"libcusolver.so.11", 11}, {"libcusolver.so"}},
          .create = "cusolverDnCreate",
          .destroy = "cusolverDnDestroy",
          .set_stream = "cusolverDnSetStream",
          .settings = {}};
}

const MathLibrary::Loaded& MathLibrary::loaded() {
  const std::lock_guard guard(mutex_);
  if (!loaded_) {
    loaded_.emplace(Loaded{.library = Library(folder_, files_for_driver(names_.files, driver_version_))});
    loaded_->library.find(names_.set_stream, loaded_->set_stream);
    for (const char* const symbol : names_.settings)
      if (SetNumber* set = nullptr; loaded_->library.find(symbol, set)) loaded_->settings.push_back(set);
  }
  if (!loaded_->library.is_loaded())
    throw DeviceError(DeviceEffect::refused,
                      fmt::format("{} cannot be used: {}", names_.title, loaded_->library.missing()));
  return *loaded_;
}

void* MathLibrary::function(const char* symbol) {
  void* const found = loaded().library.find(symbol);
  if (found == nullptr)
    throw DeviceError(DeviceEffect::refused, fmt::format("{} here has no {}", names_.title, symbol));
  return found;
}

void* MathLibrary::create() {
  void* handle = nullptr;
  const int status = reinterpret_cast<Create*>(function(names_.create))(&handle);
  if (status != 0)
    throw DeviceError(DeviceEffect::refused, fmt::format("{} gives no handle: its status is {}", names_.title, status));
  return handle;
}

void MathLibrary::prepare(void* handle, Stream stream) {
  const Loaded& with = loaded();
  int status = with.set_stream != nullptr ? with.set_stream(handle, stream) : -1;
  if (status != 0)
    throw DeviceError(DeviceEffect::refused, fmt::format("{} takes no stream: its status is {}", names_.title, status));
  for (SetNumber* const set : with.settings)
    if (status = set(handle, 0); status != 0)
      throw DeviceError(DeviceEffect::refused,
                        fmt::format("{} takes no setting of its handle: its status is {}", names_.title, status));
}

void MathLibrary::destroy(void* handle) noexcept {
  if (handle == nullptr) return;
  if (void* const found = loaded().library.find(names_.destroy)) reinterpret_cast<Destroy*>(found)(handle);
}

}  // namespace tandem::runtime::cuda
