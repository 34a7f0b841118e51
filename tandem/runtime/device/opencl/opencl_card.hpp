// tandem/runtime/device/opencl/opencl_card.hpp: one OpenCL device with its queues, and the thread that reports ended
// copies.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "tandem/base/thread.hpp"
#include "tandem/runtime/memory/device_error.hpp"

namespace tandem::runtime::opencl {

class Card;

/// Memory of a device. The address of this object is the pointer of a replica.
struct Buffer {
  cl_mem memory = nullptr;
  Card* card = nullptr;
  std::size_t bytes = 0;
};

/// The buffers of all devices, to tell a buffer from memory that the processor reaches. Any thread.
class Buffers {
 public:
  void add(const Buffer* buffer) {
    const std::lock_guard guard(mutex_);
    all_.insert(buffer);
  }
  void remove(const Buffer* buffer) {
    const std::lock_guard guard(mutex_);
    all_.erase(buffer);
  }
  /// The buffer at `pointer`; null: it is none.
  const Buffer* find(const void* pointer) const {
    const std::lock_guard guard(mutex_);
    const auto known = all_.find(static_cast<const Buffer*>(pointer));
    return known != all_.end() ? *known : nullptr;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_set<const Buffer*> all_;
};

/// Name of an error such as "CL_OUT_OF_RESOURCES", or its number.
std::string name_of_error(cl_int error);
/// Throws DeviceError if `error` says that `what` has failed; the error says that nothing has begun.
void check(cl_int error, const char* what);

/// Properties of an OpenCL device before it is used.
struct CardFacts {
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  std::string name;
  std::string platform_name;
  std::string version;
  std::size_t memory_bytes = 0;
  std::size_t largest_buffer_bytes = 0;
  unsigned units = 0;        ///< compute units
  bool is_processor = false;  ///< the host's processor stands for a device
  std::string bus_address;    ///< PCI address such as 0000:3b:00.0; empty: not known
};

/// Lists all devices of all platforms; empty if no platform is installed.
std::vector<CardFacts> find_cards();

/// An OpenCL device: a context and three queues, each in order: kernels, copies to the device, copies from it. Copies
/// in both directions and kernels may overlap. The host waits for the end of work before it posts what depends on it,
/// so no queue waits for another.
///
/// OpenCL reports the end of a command on a thread of its own, which must not wait. Ended copies lead to further calls
/// of the runtime, so a thread of this object makes these calls.
class Card {
 public:
  Card(CardFacts facts, unsigned number, std::shared_ptr<Buffers> buffers);
  ~Card();
  Card(const Card&) = delete;
  Card& operator=(const Card&) = delete;

  const CardFacts& facts() const noexcept { return facts_; }
  /// Name for messages: "opencl 0 (Graphics)".
  const std::string& name() const noexcept { return name_; }
  cl_context context() const noexcept { return context_; }
  cl_command_queue kernels() const noexcept { return kernels_; }
  cl_command_queue to_device() const noexcept { return to_device_; }
  cl_command_queue from_device() const noexcept { return from_device_; }
  Buffers& buffers() noexcept { return *buffers_; }
  /// True if the device runs nothing any more.
  bool is_lost() const noexcept;

  /// Sends the command to the device, and calls `ended(status)` on this object's thread when `event`, which this takes,
  /// has ended.
  void when_ended(cl_command_queue queue, cl_event event, std::function<void(cl_int status)> ended);
  /// Waits for all posted work and for all calls. Nothing is posted from then on, except by these calls.
  void finish() noexcept;

 private:
  struct Waiting;
  struct Call {
    std::function<void(cl_int)> ended;
    cl_int status = CL_COMPLETE;
  };
  static void CL_CALLBACK heard(cl_event event, cl_int status, void* waiting);
  void serve();

  const CardFacts facts_;
  const std::string name_;
  const std::shared_ptr<Buffers> buffers_;
  cl_context context_ = nullptr;
  cl_command_queue kernels_ = nullptr;
  cl_command_queue to_device_ = nullptr;
  cl_command_queue from_device_ = nullptr;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Call> calls_;
  std::size_t pending_ = 0;  ///< events that have not ended, and calls that have not returned
  bool stopping_ = false;
  base::Thread thread_;
};

}  // namespace tandem::runtime::opencl
