// tandem/linalg/flows/info.hpp: LAPACK's info of a factorisation that runs as tasks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace tandem::linalg {

/// Whether a factorisation succeeded: 0, or for Cholesky the order of the first leading minor that is not positive
/// definite, for LU the number, from 1, of the first pivot that is exactly zero. A numerical outcome, not an error:
/// once it is set, the kernels of the flows that use it return at once, and the flow ends soon.
///
/// Lives until the program has waited for those flows; read it then. Only factorisations of diagonal tiles write it.
/// The flow orders these tasks, so the first failure is kept, and it is the same in every schedule. Tasks that do not
/// depend on the failed one may read it while it is written, and need not see the new value: their results are not
/// used.
///
class Info {
 public:
  Info() = default;
  Info(const Info&) = delete;
  Info& operator=(const Info&) = delete;

  /// 0 or the failed order, after the flow's end.
  std::size_t value() const noexcept { return value_->load(std::memory_order_relaxed); }
  bool failed() const noexcept { return value() != 0; }

  /// For kernels: the factorisation failed at this order. Relaxed: tasks that must see it depend on the caller's task.
  void fail(std::size_t order) noexcept { value_->store(order, std::memory_order_relaxed); }

  /// The value on which ranks agree when they wait: the first failure on any of them.
  const std::shared_ptr<std::atomic<std::uint64_t>>& word() noexcept { return value_; }

  /// Makes the object ready for another factorisation.
  void reset() noexcept { value_->store(0, std::memory_order_relaxed); }

 private:
  const std::shared_ptr<std::atomic<std::uint64_t>> value_ = std::make_shared<std::atomic<std::uint64_t>>(0);
};

}  // namespace tandem::linalg
