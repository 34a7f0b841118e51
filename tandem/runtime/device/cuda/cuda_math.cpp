// tandem/runtime/device/cuda/cuda_math.cpp: handles of cuBLAS and cuSOLVER.
#include "tandem/runtime/device/cuda/cuda_math.hpp"

#include <fmt/format.h>

namespace tandem::runtime::cuda {

namespace {

// Both libraries pass and return alike: an opaque pointer, and a status that is 0 for success.
using Create = int(void** handle);
using Destroy = int(void* handle);
using SetStream = int(void* handle, Stream stream);

}  // namespace

MathLibrary::Names MathLibrary::blas() {
  return {"cuBLAS", {"libcublas.so", "libcublas.so.13", "libcublas.so.12", "libcublas.so.11"}, "cublasCreate_v2", "cublasDestroy_v2", "cublasSetStream_v2"};
}

MathLibrary::Names MathLibrary::solver() {
  return {"cuSOLVER", {"libcusolver.so", "libcusolver.so.12", "libcusolver.so.11"}, "cusolverDnCreate", "cusolverDnDestroy", "cusolverDnSetStream"};
}

const Library& MathLibrary::library() {
  const std::lock_guard guard(mutex_);
  if (!library_) library_.emplace(folder_, names_.files);
  if (!library_->is_loaded()) throw DeviceError(DeviceEffect::refused, fmt::format("{} cannot be used: {}", names_.title, library_->missing()));
  return *library_;
}

void* MathLibrary::function(const char* symbol) {
  void* const found = library().find(symbol);
  if (found == nullptr) throw DeviceError(DeviceEffect::refused, fmt::format("{} here has no {}", names_.title, symbol));
  return found;
}

void* MathLibrary::create(Stream stream) {
  void* handle = nullptr;
  int status = reinterpret_cast<Create*>(function(names_.create))(&handle);
  if (status != 0) throw DeviceError(DeviceEffect::refused, fmt::format("{} gives no handle: its status is {}", names_.title, status));
  status = reinterpret_cast<SetStream*>(function(names_.set_stream))(handle, stream);
  if (status == 0) return handle;
  destroy(handle);
  throw DeviceError(DeviceEffect::refused, fmt::format("{} takes no stream: its status is {}", names_.title, status));
}

void MathLibrary::destroy(void* handle) noexcept {
  if (handle == nullptr) return;
  if (void* const found = library_->find(names_.destroy)) reinterpret_cast<Destroy*>(found)(handle);
}

}  // namespace tandem::runtime::cuda
