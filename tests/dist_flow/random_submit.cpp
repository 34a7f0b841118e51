// tests/dist_flow/random_submit.cpp: the kernel of a random flow.
#include "random_submit.hpp"

#include <stdexcept>

#include "random_submit_task.hpp"

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
    compute(factor, seen, mode,
            views[i].object != nullptr ? resized(factor, mode, *views[i].object) : views[i].written);
  }
}

}  // namespace tandem::dist_test
