// tandem/runtime/submit/adopted_codelets.hpp: keeps the codelets of submitted tasks alive.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_set>

#include "tandem/runtime/task/codelet_core.hpp"

namespace tandem::runtime {

/// Shares the ownership of each codelet that a task uses, so that a task needs only a plain pointer. Used by the
/// submitting thread. A small table by address knows the codelets adopted lately, so `adopt` costs one load and one
/// comparison.
class AdoptedCodelets {
 public:
  void adopt(const std::shared_ptr<CodeletCore>& codelet) {
    const auto slot = (reinterpret_cast<std::uintptr_t>(codelet.get()) >> 4) % recent_.size();
    if (__builtin_expect(recent_[slot] != codelet.get(), 0)) adopt_slowly(codelet, slot);
  }

  std::size_t size() const noexcept { return all_.size(); }

 private:
  [[gnu::noinline]] void adopt_slowly(const std::shared_ptr<CodeletCore>& codelet, std::size_t slot) {
    recent_[slot] = codelet.get();
    all_.insert(codelet);
  }

  std::array<const CodeletCore*, 64> recent_{};
  std::unordered_set<std::shared_ptr<CodeletCore>> all_;
};

}  // namespace tandem::runtime
