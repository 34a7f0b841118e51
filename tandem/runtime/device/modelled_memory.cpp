// tandem/runtime/device/modelled_memory.cpp: updates rates when something begins or ends.
#include "tandem/runtime/device/modelled_memory.hpp"

#include <algorithm>
#include <cmath>

namespace tandem::runtime {

ModelledMemory::Running ModelledMemory::begin(double bytes, std::int64_t alone_ns, base::Waker& waker) {
  settle();
  bytes_ += bytes;
  kernels_.push_front({.bytes_left = bytes,
                       .alone_bytes_per_ns = bytes / static_cast<double>(std::max<std::int64_t>(alone_ns, 1)),
                       .waker = &waker});
  share();
  return kernels_.begin();
}

std::int64_t ModelledMemory::end_ns(Running kernel) {
  settle();
  return loop_.now_ns() + static_cast<std::int64_t>(std::ceil(kernel->bytes_left / kernel->bytes_per_ns - 1e-6));
}

void ModelledMemory::end(Running kernel) {
  settle();
  kernels_.erase(kernel);
  share();
}

void ModelledMemory::use_network_until(std::int64_t when_ns) {
  network_until_ns_ = std::max(network_until_ns_, when_ns);
  if (network_) return;
  settle();
  network_ = true;
  share();
  look_at_network();
}

void ModelledMemory::look_at_network() {
  if (network_until_ns_ > loop_.now_ns()) return loop_.at(network_until_ns_, [this] { look_at_network(); });
  settle();
  network_ = false;
  share();
}

/// Number of kernels of a socket, in units of a kernel that moves all that a core can. Fewer kernels than there are
/// sockets have one each.
double ModelledMemory::cores_of_socket() const {
  double sum = 0;
  for (const Kernel& kernel : kernels_) sum += std::min(1.0, kernel.alone_bytes_per_ns / core_bytes_per_ns_);
  sum = std::max(sum / sockets_, std::min(sum, 1.0));
  const double whole = std::round(sum);
  return whole > 0 && std::abs(sum - whole) < 1e-3 ? whole : sum;  // durations are whole ns
}

model::contention::Bandwidths ModelledMemory::now(bool with_network) const {
  const double cores = cores_of_socket(), below = std::floor(cores), part = cores - below;
  const auto of = [&](double count) {
    return model_.predict({.cores = static_cast<unsigned>(count), .placement = placement_});
  };
  model::contention::Bandwidths found = of(below);
  if (part > 0) {
    const model::contention::Bandwidths above = of(below + 1);
    for (double model::contention::Bandwidths::*const mb_s :
         {&model::contention::Bandwidths::computation_alone_mb_s, &model::contention::Bandwidths::computation_mb_s,
          &model::contention::Bandwidths::communication_mb_s})
      found.*mb_s += part * (above.*mb_s - found.*mb_s);
  }
  if (!with_network) found.computation_mb_s = found.computation_alone_mb_s;
  return found;
}

/// Advances all kernels to the present date.
void ModelledMemory::settle() {
  const auto passed_ns = static_cast<double>(loop_.now_ns() - settled_ns_);
  settled_ns_ = loop_.now_ns();
  for (Kernel& kernel : kernels_)
    kernel.bytes_left = std::max(0.0, kernel.bytes_left - kernel.bytes_per_ns * passed_ns);
}

/// Sets the rate of each kernel.
void ModelledMemory::share() {
  if (kernels_.empty()) return;
  double mb_s = now(network_).computation_mb_s;
  if (sockets_ > 1) mb_s += (now(false).computation_mb_s - mb_s) * (sockets_ - 1) / sockets_;
  const double each = mb_s * 1e-3 / std::max(cores_of_socket(), 1.0);
  for (Kernel& kernel : kernels_) {
    const double rate = std::min(kernel.alone_bytes_per_ns, each);
    if (rate == kernel.bytes_per_ns) continue;
    kernel.bytes_per_ns = rate;
    kernel.waker->wake();
  }
}

}  // namespace tandem::runtime
