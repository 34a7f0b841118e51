// tandem/runtime/device/cuda/cuda_card.hpp: one CUDA device: its context, its memory, its lanes for copies.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tandem/base/thread.hpp"
#include "tandem/runtime/device/cuda/cuda_driver.hpp"
#include "tandem/runtime/device/cuda/cuda_lane.hpp"

namespace tandem::runtime::cuda {

class Card;

/// Finds the device that has a piece of memory, by its first address. Addresses of all devices and of main memory
/// differ (unified addressing). Any thread.
class Owners {
 public:
  void add(const void* memory, Card* card) {
    const std::lock_guard guard(mutex_);
    all_.emplace(memory, card);
  }
  void remove(const void* memory) {
    const std::lock_guard guard(mutex_);
    all_.erase(memory);
  }
  /// The device that has `memory`; null: it is main memory.
  Card* find(const void* memory) const {
    const std::lock_guard guard(mutex_);
    const auto known = all_.find(memory);
    return known != all_.end() ? known->second : nullptr;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<const void*, Card*> all_;
};

/// Limits of a device for one launch.
struct CardLimits {
  unsigned threads_of_block = 0;
  std::array<unsigned, 3> block{};  ///< threads of a block in each dimension
  std::array<unsigned, 3> grid{};   ///< blocks in each dimension
  unsigned shared_of_block = 0;     ///< bytes of shared memory
};

/// Properties of a device before it is used.
struct CardFacts {
  DeviceNumber device = 0;
  std::string name;
  std::size_t memory_bytes = 0;
  unsigned multiprocessors = 0;
  unsigned major = 0;  ///< compute capability
  unsigned minor = 0;  ///< minor number of the compute capability
  std::string bus_address;  ///< PCI address such as 0000:3b:00.0; empty: not known
  CardLimits limits = {};
};

/// All devices that the driver shows (CUDA_VISIBLE_DEVICES hides others). Throws DeviceError.
std::vector<CardFacts> find_cards(const Driver& driver);

/// A CUDA device: its primary context, which cuBLAS and the runtime API use, too, and a lane for copies in each
/// direction. Copies in both directions and kernels may overlap. The host waits for the end of work before it posts
/// what depends on it, so no stream waits for another.
class Card {
 public:
  Card(std::shared_ptr<const Driver> driver, CardFacts facts, unsigned number, std::shared_ptr<Owners> owners);
  ~Card();
  Card(const Card&) = delete;
  Card& operator=(const Card&) = delete;

  const Driver& driver() const noexcept { return *driver_; }
  const CardFacts& facts() const noexcept { return facts_; }
  /// Name for messages: "cuda 0 (NVIDIA H100)".
  const std::string& name() const noexcept { return name_; }
  Context context() const noexcept { return context_; }
  Lane& to_device() noexcept { return *to_device_; }
  Lane& from_device() noexcept { return *from_device_; }
  const Owners& owners() const noexcept { return *owners_; }
  /// Makes the context the calling thread's.
  void enter() const;
  /// Lets copies from and to `other` go directly, if the hardware can.
  void reach(const Card& other) const;

  /// Allocates memory; null: the device has none left. Freeing memory may wait for the whole device, so released memory
  /// is kept for the next request of its size: at most a sixteenth of the device's memory, since libraries need some,
  /// and until memory is short. The device's thread frees the rest, so `release`, which may be called under locks,
  /// waits for no device.
  void* allocate(std::size_t bytes);
  void release(void* memory, std::size_t bytes) noexcept;
  /// Bytes that memory for `bytes` takes on the device.
  static std::size_t footprint(std::size_t bytes) noexcept;
  /// Bytes that are free now, also for other processes. Throws DeviceError.
  std::size_t free_bytes() const;
  /// True if the context runs nothing any more.
  bool is_lost() const noexcept;
  /// Waits for the end of all copies.
  void finish() noexcept;

 private:
  std::optional<Address> take_kept(std::size_t bytes);
  void free_kept() noexcept;
  void free_what_leaves();

  const std::shared_ptr<const Driver> driver_;
  const CardFacts facts_;
  const std::string name_;
  const std::shared_ptr<Owners> owners_;
  Context context_ = nullptr;
  std::unique_ptr<Lane> to_device_;
  std::unique_ptr<Lane> from_device_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::size_t, std::vector<Address>> kept_;  ///< by size; under the mutex
  std::size_t kept_bytes_ = 0;                        ///< under the mutex
  std::vector<Address> leaving_;                      ///< to be freed by the thread; under the mutex
  std::size_t freeing_ = 0;                           ///< pieces that a thread is freeing now; under the mutex
  bool stopping_ = false;                             ///< under the mutex
  base::Thread thread_;                               ///< last: it uses all the others
};

}  // namespace tandem::runtime::cuda
