// tandem/runtime/device/kept_sources.hpp: the kernels of sources that a program launches again and again, found without
// reading the sources.
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>

namespace tandem::runtime {

/// Maps the address of a source to its kernel. It keeps the source, so that no other one gets its address. For a
/// program that makes its sources anew each time it keeps few.
///
/// Used by one thread.
template <class Source, class Kernel>
class KeptSources {
 public:
  /// The kernel of `source`; for a new source, the result of `make(*source)`, which outlives this.
  template <class Make>
  Kernel& find(const std::shared_ptr<const Source>& source, const Make& make) {
    if (const auto known = known_.find(source); known != known_.end()) return *known->second;
    Kernel& kernel = make(*source);
    if (known_.size() == kMost) known_.clear();
    known_.emplace(source, &kernel);
    return kernel;
  }

 private:
  static constexpr std::size_t kMost = 1024;
  std::unordered_map<std::shared_ptr<const Source>, Kernel*> known_;
};

}  // namespace tandem::runtime
