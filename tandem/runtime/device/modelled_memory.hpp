// tandem/runtime/device/modelled_memory.hpp: memory that modelled kernels and a simulated network share.
#pragma once

#include <cstdint>
#include <list>

#include "tandem/base/driver.hpp"
#include "tandem/base/event_loop.hpp"
#include "tandem/model/contention/model.hpp"

namespace tandem::runtime {

/// The memory of a host in manual time. Kernels that move bytes, and messages, go on at the rates that a model of memory contention has for what is
/// under way at the moment: when something begins or ends, the rates of all others change.
///
/// Kernels share alike, and none is faster than it would be alone. One that moves only a part of what a core can move counts as that part of a core. Used by the steps of one event loop; the model outlives this.
class ModelledMemory {
 public:
  /// `placement`: where the data of kernels and of messages lie.
  ModelledMemory(const model::contention::Model& model, model::contention::Placement placement, base::EventLoop& loop)
      : model_(model),
        placement_(placement),
        loop_(loop),
        core_bytes_per_ns_(model.predict({.cores = 1, .placement = placement}).computation_alone_mb_s * 1e-3) {}
  ModelledMemory(const ModelledMemory&) = delete;
  ModelledMemory& operator=(const ModelledMemory&) = delete;

  /// A kernel that moves bytes.
  struct Kernel {
    double bytes_left = 0;
    double alone_bytes_per_ns = 0;  ///< its rate when nothing else uses memory
    double bytes_per_ns = 0;        ///< now
    base::Waker* waker = nullptr;   ///< is woken when the rate changes
  };
  using Running = std::list<Kernel>::iterator;

  /// A kernel that takes `alone_ns` alone begins now.
  Running begin(double bytes, std::int64_t alone_ns, base::Waker& waker);
  /// When it ends if nothing changes; not after now: it has ended.
  std::int64_t end_ns(Running kernel);
  void end(Running kernel);

  /// Of all kernels that began.
  double bytes() const noexcept { return bytes_; }

  /// What a message has now.
  double network_bytes_per_ns() const { return now(true).communication_mb_s * 1e-3; }
  /// Of what it would have alone.
  double network_share() const { return now(true).communication_mb_s / now(true).communication_alone_mb_s; }
  /// Messages move bytes until `when_ns` at least.
  void use_network_until(std::int64_t when_ns);

 private:
  model::contention::Bandwidths now(bool with_network) const;
  double whole_cores() const;
  void settle();
  void share();
  void look_at_network();

  const model::contention::Model& model_;
  const model::contention::Placement placement_;
  base::EventLoop& loop_;
  const double core_bytes_per_ns_;  ///< alone
  std::list<Kernel> kernels_;
  double bytes_ = 0;
  std::int64_t settled_ns_ = 0;  ///< `bytes_left` is of this date
  std::int64_t network_until_ns_ = 0;
  bool network_ = false;         ///< messages are under way
};

}  // namespace tandem::runtime
