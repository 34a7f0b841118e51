// tandem/runtime/device/cuda/cuda_queue.hpp: the queue to which kernels of a CUDA device post their work. Needs no CUDA
// headers.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace tandem {

/// Text in CUDA C++, and the name of a kernel in it. A device compiles it once, by NVRTC.
struct CudaSource {
  std::string text;     ///< in CUDA C++
  std::string kernel;   ///< a `__global__` function of it, as C++ names it: "axpy", "axpy<double>"
  std::string options;  ///< for the compiler, divided by spaces, such as "--use_fast_math -DN=4"
};

/// One argument of a kernel.
struct CudaArgument {
  const void* value = nullptr;  ///< `bytes` bytes; of data: its address in the device's memory
  std::size_t bytes = 0;        ///< 0: data in the device's memory
};

/// How many threads run a kernel, in one to three dimensions. The device starts whole blocks, so there may be more
/// threads than that, and a kernel has to look at its indices. Nothing runs if a number is 0.
struct CudaRange {
  std::array<std::size_t, 3> threads{1, 1, 1};   ///< the least number of threads
  std::array<unsigned, 3> block{256, 1, 1};      ///< threads of a block
  unsigned shared_bytes = 0;  ///< dynamic shared memory of a block, as much as the device has for one

  CudaRange() = default;
  CudaRange(std::size_t count) : threads{count, 1, 1} {}  ///< threads in one dimension, in blocks of 256
  /// Threads in two dimensions, in blocks of 16 x 16.
  CudaRange(std::size_t x, std::size_t y) : threads{x, y, 1}, block{16, 16, 1} {}
  /// Threads in three dimensions, in blocks of 8 x 8 x 4.
  CudaRange(std::size_t x, std::size_t y, std::size_t z) : threads{x, y, z}, block{8, 8, 4} {}
};

/// What kernels of `DeviceKind::cuda` get as `Context::queue`, and functions given to `Codelet::cuda` as first
/// argument: a stream of the device, during the launch of one task. The device's context is current. What is posted to
/// the stream runs in order, beside what other tasks have posted to other streams; the task ends with the last of it. A
/// function must not wait for the stream, and posts to no other.
///
/// Errors: DeviceError when the device fails, or a library of CUDA is missing: then the task runs by another
/// implementation, if there is one. UsageError for a range that the device cannot run: too many threads in a block,
/// blocks in a dimension, or bytes of shared memory.
class CudaQueue {
 public:
  virtual ~CudaQueue() = default;
  /// Posts a kernel. Throws std::runtime_error with the compiler's words when the text is wrong.
  virtual void launch(const CudaSource& source, std::span<const CudaArgument> arguments, const CudaRange& range) = 0;
  /// As `launch`, for a source of many launches: the device keeps it and knows it again by its address, without reading
  /// its text.
  virtual void launch_kept(const std::shared_ptr<const CudaSource>& source, std::span<const CudaArgument> arguments,
                           const CudaRange& range) = 0;
  /// The stream: a `CUstream`, which is a `cudaStream_t`, too.
  virtual void* stream() = 0;
  /// A `cublasHandle_t` that posts to the stream, with pointers to scalars in main memory. Its settings are cuBLAS' own
  /// at the first call of a task, whatever other tasks have set.
  virtual void* blas() = 0;
  /// A `cusolverDnHandle_t` that posts to the stream.
  virtual void* solver() = 0;
  /// A function of cuBLAS by the name of its symbol, such as "cublasDgemm_v2", for programs that do not link it.
  virtual void* blas_function(const char* symbol) = 0;
  /// A function of cuSOLVER by the name of its symbol, such as "cusolverDnDpotrf".
  virtual void* solver_function(const char* symbol) = 0;
  /// Memory of the device until the task ends, aligned to 256 bytes. At most once for a task.
  virtual void* scratch(std::size_t bytes) = 0;
  /// Reads the `int` at `device_address` when what was posted so far has ended, and calls `then` with it before the
  /// task's end is reported, on a thread of the device. What `then` throws fails the task. Not called when the device
  /// fails. At most eight times for a task.
  virtual void read_int(const void* device_address, std::function<void(int)> then) = 0;
};

}  // namespace tandem
