// tests/cuda/fake_cuda.hpp: a CUDA driver without a device, for tests: what they can ask of it, and what they see.
//
// The library answers to the names of libcuda, NVRTC, cuBLAS and cuSOLVER. Memory of its devices lies in this process,
// but at addresses that the processor refuses; streams run what is posted in order, each on a thread of its own;
// kernels are functions of the test, found by name.
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

namespace tandem::fake_cuda {

/// This bit is set in all addresses of devices. No address of a process has it.
inline constexpr std::uintptr_t kFar = std::uintptr_t{1} << 62;

/// Where the bytes are that a device has at `address`.
template <class T>
T* near(T* address) {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  if ((number & kFar) == 0) std::abort();  // main memory, which a device cannot reach
  return reinterpret_cast<T*>(number & ~kFar);
}

/// One run of a kernel, with all its threads.
class Launch {
 public:
  Launch(std::vector<void*> arguments, std::size_t blocks, std::size_t threads)
      : arguments_(std::move(arguments)), blocks_(blocks), threads_(threads) {}
  std::size_t blocks() const { return blocks_; }
  /// Of all blocks, in all dimensions.
  std::size_t threads() const { return threads_; }
  /// Argument i: a value, or a pointer to memory of the device, which becomes one that this process can use.
  template <class T>
  T get(std::size_t i) const {
    const T value = *static_cast<const T*>(arguments_.at(i));
    if constexpr (std::is_pointer_v<T>) return near(value);
    else return value;
  }

 private:
  std::vector<void*> arguments_;
  std::size_t blocks_;
  std::size_t threads_;
};

/// A kernel that programs can find in any source that has its name.
struct Kernel {
  std::vector<std::size_t> parameter_bytes;
  std::function<void(const Launch&)> body;
  int most_threads = 1024;  ///< of a block
  int static_shared = 0;    ///< bytes of shared memory of a block that it declares
};

/// Of the whole library. Settings may change while it works.
struct Control {
  std::atomic<int> devices{2};
  std::atomic<std::size_t> memory_bytes{std::size_t{64} << 20};  ///< of each device
  std::atomic<std::int64_t> copy_ns{0};                          ///< how long each copy takes at least
  std::atomic<std::int64_t> kernel_ns{0};                        ///< how long each kernel takes at least
  std::atomic<std::size_t> taken_bytes{0};                       ///< of each device's memory, by other processes
  std::atomic<std::int64_t> event_ns{0};  ///< the time between two events that the driver tells; 0: the true one
  std::atomic<int> lose_at_copy{0};                              ///< as `lose_at`, for copies
  std::atomic<bool> holds_frees{
      false};  ///< memory of devices is freed only when this is false again, or after some seconds
  std::atomic<int> refuse_launches{0};                           ///< so many of the next launches are refused
  std::atomic<int> lose_at{0};  ///< the kernel after so many fails, and its context runs nothing any more; 0: none does
  std::atomic<bool> refuse_graphs{false};                        ///< none is instantiated
  std::atomic<bool> has_blas{true};                              ///< cuBLAS and cuSOLVER give handles

  std::atomic<int> kernels{0};                ///< run
  std::atomic<int> kernels_now{0};            ///< at this moment
  std::atomic<int> most_kernels{0};           ///< at one moment
  std::atomic<int> copies{0};                 ///< asked for, and refused ones
  std::atomic<int> frees_now{0};              ///< that go on at this moment
  std::atomic<int> copies_beside_kernels{0};  ///< that ran while a kernel ran
  std::atomic<int> peer_copies{0};            ///< between two devices
  std::atomic<int> pageable_copies{0};        ///< from or to main memory that is not page-locked
  std::atomic<int> compilations{0};
  std::atomic<int> graphs{0};                 ///< instantiated, and not destroyed
  std::atomic<int> graph_launches{0};
  std::atomic<std::int64_t> blocks{0};        ///< pieces of memory of devices that are allocated
  std::atomic<int> contexts{0};               ///< retained
  std::atomic<int> host_blocks{0};            ///< pieces of page-locked memory that are allocated
  std::atomic<int> host_allocations{0};       ///< of such memory
  std::atomic<std::size_t> host_bytes{std::size_t{1} << 40};  ///< page-locked memory that may still be allocated
  std::atomic<int> copies_of_columns{0};      ///< of matrices with gaps

  std::mutex mutex;
  std::map<std::string, Kernel> known;  ///< under the mutex; never shrinks

  void add(const std::string& name, Kernel kernel) {
    const std::lock_guard guard(mutex);
    known.insert_or_assign(name, std::move(kernel));
  }
  /// As it was at first, but for kernels.
  void reset() {
    devices = 2;
    memory_bytes = std::size_t{64} << 20;
    copy_ns = kernel_ns = event_ns = 0;
    taken_bytes = 0;
    holds_frees = false;
    refuse_launches = lose_at = lose_at_copy = copies = 0;
    has_blas = true;
    refuse_graphs = false;
    graph_launches = 0;
    host_bytes = std::size_t{1} << 40;
    host_allocations = copies_of_columns = 0;
    kernels = kernels_now = most_kernels = copies_beside_kernels = peer_copies = pageable_copies = compilations = 0;
  }
};

/// A function of the library in `folder`.
template <class Function>
Function* function(const std::string& folder, const char* symbol) {
  void* const library = dlopen((folder + "/libcuda.so.1").c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  void* const found = library != nullptr ? dlsym(library, symbol) : nullptr;
  if (found == nullptr) std::abort();
  return reinterpret_cast<Function*>(found);
}

/// Of the library in `folder`.
inline Control& control(const std::string& folder) { return *function<Control*()>(folder, "tandem_fake_cuda")(); }

}  // namespace tandem::fake_cuda
