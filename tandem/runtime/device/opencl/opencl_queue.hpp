// tandem/runtime/device/opencl/opencl_queue.hpp: OpenCL C sources of kernels and the queue that runs them. Needs no
// OpenCL headers.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace tandem {

/// Text in OpenCL C, and the name of a kernel in it. A device compiles a text once.
struct OpenClSource {
  std::string text;     ///< in OpenCL C
  std::string kernel;   ///< name of a `__kernel` function in it
  std::string options;  ///< for the compiler, such as "-cl-fast-relaxed-math"
};

/// One argument of a kernel.
struct OpenClArgument {
  const void* value = nullptr;  ///< `bytes` bytes; of data: what its memory node has allocated
  std::size_t bytes = 0;        ///< 0: data in the device's memory
};

/// How many work items run a kernel, in one to three dimensions. Nothing runs if a number is 0.
struct OpenClRange {
  std::array<std::size_t, 3> global{1, 1, 1};  ///< work items
  std::array<std::size_t, 3> local{0, 0, 0};   ///< work items of a group; 0: the device chooses
  unsigned dimensions = 1;                     ///< number of dimensions that count

  OpenClRange() = default;
  OpenClRange(std::size_t items) : global{items, 1, 1} {}  ///< work items in one dimension
  /// Work items in two dimensions.
  OpenClRange(std::size_t x, std::size_t y) : global{x, y, 1}, dimensions(2) {}
  /// Work items in three dimensions.
  OpenClRange(std::size_t x, std::size_t y, std::size_t z) : global{x, y, z}, dimensions(3) {}
};

/// What kernels of `DeviceKind::opencl` get as `Context::queue`: the device's queue of kernels, during the launch of
/// one task. What is posted runs in order; the task ends with the last of it.
class OpenClQueue {
 public:
  virtual ~OpenClQueue() = default;
  /// Posts a kernel. Throws std::runtime_error with the compiler's message if the text is wrong, DeviceError if the
  /// device fails, and UsageError for a range that the device cannot run.
  virtual void launch(const OpenClSource& source, std::span<const OpenClArgument> arguments,
                      const OpenClRange& range) = 0;
  /// As `launch`, for a source of many launches: the device keeps it and knows it again by its address, without reading
  /// its text.
  virtual void launch_kept(const std::shared_ptr<const OpenClSource>& source, std::span<const OpenClArgument> arguments,
                           const OpenClRange& range) = 0;
  /// The cl_command_queue, for calls of the program's own. It is in order. A kernel that posts to it asks for it here
  /// at each run: the task ends with all that was posted when the kernel returns.
  virtual void* native_queue() = 0;
  /// The cl_mem behind data: the pointer in a kernel's view is no address.
  virtual void* native_memory(const void* data) = 0;
};

}  // namespace tandem
