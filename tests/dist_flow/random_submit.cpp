// tests/dist_flow/random_submit.cpp: the kernel of a random flow, and the choice of its instantiation by the first access.
#include "random_submit.hpp"

#include <stdexcept>

#include "random_submit_first.hpp"

namespace tandem::dist_test {

void run_kernel(const Operation& operation, std::size_t position, Runtime& rt, std::span<const View> views) {
  if (operation.cancels) rt.cancel();
  if (operation.throws) throw std::runtime_error(label(position) + "!");
  std::vector<std::span<const Word>> seen;
  for (std::size_t i = 0; i < views.size(); ++i)
    if (operation.modes[i] == AccessMode::read) seen.push_back(views[i].seen);
  for (std::size_t i = 0; i < views.size(); ++i) {
    const AccessMode mode = operation.modes[i];
    if (mode == AccessMode::read) continue;
    const Word factor = operation.factor + i;
    compute(factor, seen, mode, views[i].object != nullptr ? resized(factor, mode, *views[i].object) : views[i].written);
  }
}

template <bool objects>
void submit_task(Runtime& rt, const AllData<objects>& data, std::size_t position, const Operation& operation) {
  switch (operation.modes.front()) {
    case AccessMode::read: return submit_first<objects, AccessMode::read>(rt, data, position, operation);
    case AccessMode::write: return submit_first<objects, AccessMode::write>(rt, data, position, operation);
    case AccessMode::commute: return submit_first<objects, AccessMode::commute>(rt, data, position, operation);
    case AccessMode::reduce: return submit_first<objects, AccessMode::reduce>(rt, data, position, operation);
    default: return submit_first<objects, AccessMode::read_write>(rt, data, position, operation);
  }
}
template void submit_task<true>(Runtime&, const AllData<true>&, std::size_t, const Operation&);
template void submit_task<false>(Runtime&, const AllData<false>&, std::size_t, const Operation&);

}  // namespace tandem::dist_test
