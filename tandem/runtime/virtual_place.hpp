// tandem/runtime/virtual_place.hpp: where a simulated program lives, in place of this machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tandem/base/event_loop.hpp"
#include "tandem/runtime/worker/world.hpp"

namespace tandem::base {
class FiberLocal;
}

namespace tandem::comm {
class Endpoint;
struct EndpointOptions;
}

namespace tandem::runtime {

/// What a program asks of the machine of its place.
struct Furnishing {
  unsigned workers = 0;               ///< of kind cpu; 0: as many as the place has cores
  bool divides_memory = false;        ///< each NUMA node with workers is a memory, and holds the data of their tasks
  std::optional<unsigned> home = {};  ///< NUMA node of the calling thread and of main memory; none: the first one
};

/// One rank of a simulated job: the machine, the network and the time that its program sees. A `Runtime` that is
/// constructed while the program lives there uses them, whatever its options say of this machine.
///
/// Threads: the one of the event loop.
class VirtualPlace {
 public:
  virtual ~VirtualPlace() = default;

  /// Of the program that runs on this fiber, or in this process; null: it lives on this machine.
  static VirtualPlace* current() noexcept { return current_ != nullptr ? current_ : of_process_; }
  /// From now on the program of this process lives in `place`, which outlives it.
  static void settle(VirtualPlace& place) noexcept { of_process_ = &place; }
  /// While it lives, the program that runs here lives in `place`.
  class Stay {
   public:
    explicit Stay(VirtualPlace& place) noexcept : before_(std::exchange(current_, &place)) {}
    ~Stay() { current_ = before_; }
    Stay(const Stay&) = delete;
    Stay& operator=(const Stay&) = delete;

   private:
    VirtualPlace* const before_;
  };

  virtual std::uint32_t rank() const noexcept = 0;
  virtual std::uint32_t size() const noexcept = 0;
  /// Name of the job, for its trace.
  virtual std::string job() const = 0;
  /// Where the rank's workers, messages and copies take place. Outlives every runtime of the rank.
  virtual base::EventLoop& loop() noexcept = 0;
  virtual std::unique_ptr<base::Driver> make_driver() = 0;
  /// Adds workers, memories and devices. Throws UsageError for what the place does not have.
  virtual void furnish(World& world, const Furnishing& wanted) = 0;
  /// Connects the rank to the others; null: there is one rank.
  virtual std::unique_ptr<comm::Endpoint> open_endpoint(const comm::EndpointOptions& options, base::Log& log) = 0;
  /// How long kernels take there.
  virtual Emulation emulation() = 0;
  /// What policies that look ahead know of that before any kernel has run.
  virtual std::unique_ptr<Estimates> estimates() = 0;
  /// Whether all kernels run there, so that data has its values.
  virtual bool computes() const noexcept = 0;
  /// Messages of more bytes arrive without them.
  virtual std::size_t carried_bytes() const noexcept = 0;
  /// The rank's cores there.
  virtual ModelledHost& host() = 0;
  /// The memory that kernels and messages share there; null: they do not.
  virtual ModelledMemory* memory() noexcept = 0;

 private:
  static constinit inline thread_local VirtualPlace* current_ = nullptr;
  static constinit inline VirtualPlace* of_process_ = nullptr;
  static const base::FiberLocal own_place_;
};

}  // namespace tandem::runtime
