// tandem/runtime/device/modelled_memory.hpp: the memory that modelled kernels and a simulated network share.
#pragma once

#include <cstdint>
#include <list>

#include "tandem/base/driver.hpp"
#include "tandem/base/event_loop.hpp"
#include "tandem/model/contention/model.hpp"

namespace tandem::runtime {

/// The memory of a host in manual time. Kernels that move bytes, and messages, proceed at the rates that a model of
/// memory contention gives for the present load: when something begins or ends, all other rates change.
///
/// Kernels share equally, and none is faster than alone. A kernel that moves only a part of what a core can move counts
/// as that part of a core. The steps of one event loop use it; the model outlives it.
class ModelledMemory {
 public:
  /// `placement`: where the data of kernels and of messages lie. `sockets`: each has such a memory, kernels are spread
  /// over all of them, and messages use the memory of one.
  ModelledMemory(const model::contention::Model& model, model::contention::Placement placement, base::EventLoop& loop,
                 unsigned sockets = 1)
      : model_(model),
        placement_(placement),
        loop_(loop),
        sockets_(sockets),
        core_bytes_per_ns_(model.predict({.cores = 1, .placement = placement}).computation_alone_mb_s * 1e-3) {}
  ModelledMemory(const ModelledMemory&) = delete;
  ModelledMemory& operator=(const ModelledMemory&) = delete;

  /// A running kernel that moves bytes.
  struct Kernel {
    double bytes_left = 0;
    double alone_bytes_per_ns = 0;  ///< rate when nothing else uses memory
    double bytes_per_ns = 0;        ///< present rate
    base::Waker* waker = nullptr;   ///< woken when the rate changes
  };
  using Running = std::list<Kernel>::iterator;

  /// A kernel that takes `alone_ns` alone begins now.
  Running begin(double bytes, std::int64_t alone_ns, base::Waker& waker);
  /// Present estimate of the end of `kernel`; if it is not later than now, the kernel has ended.
  std::int64_t end_ns(Running kernel);
  void end(Running kernel);

  /// Bytes of all kernels that began.
  double bytes() const noexcept { return bytes_; }

  /// Present rate of a message.
  double network_bytes_per_ns() const { return now(true).communication_mb_s * 1e-3; }
  /// Present rate of a message as a fraction of its rate alone.
  double network_share() const { return now(true).communication_mb_s / now(true).communication_alone_mb_s; }
  /// Messages move bytes until `when_ns` or later.
  void use_network_until(std::int64_t when_ns);

 private:
  model::contention::Bandwidths now(bool with_network) const;
  double cores_of_socket() const;
  void settle();
  void share();
  void look_at_network();

  const model::contention::Model& model_;
  const model::contention::Placement placement_;
  base::EventLoop& loop_;
  const unsigned sockets_;
  const double core_bytes_per_ns_;  ///< rate of one core alone
  std::list<Kernel> kernels_;
  double bytes_ = 0;
  std::int64_t settled_ns_ = 0;  ///< date for which `bytes_left` is valid
  std::int64_t network_until_ns_ = 0;
  bool network_ = false;         ///< messages are under way
};

}  // namespace tandem::runtime
