// tests/random_flow/arithmetic.cpp: wrapping sums and products that show which task read what, and in which order.
#include "arithmetic.hpp"

namespace tandem::random_flow {

namespace {

std::uint64_t digest(const Cells& cells) {
  std::uint64_t sum = 17;
  for (std::size_t i = 0; i < cells.size(); ++i) sum = sum * 31 + cells[i];
  return sum;
}

void apply(const Use& use, const Cells& cells, std::uint64_t seen, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    switch (use.mode) {
      case AccessMode::write: cells[i] = seen * (i + 3) + i; break;
      case AccessMode::read_write: cells[i] = cells[i] * 5 + seen * (i + 1); break;
      case AccessMode::commute: cells[i] += seen * (i + 1); break;
      case AccessMode::reduce: cells[i] += seen * (2 * i + 1); break;
      case AccessMode::read:
      case AccessMode::scratch: break;
    }
  }
}

}  // namespace

void compute(const std::vector<Use>& uses, std::uint64_t factor, Fault fault, const std::string& label,
             std::span<const Cells> cells) {
  if (fault == Fault::before) throw Thrown(label);
  std::uint64_t seen = factor;
  for (std::size_t u = 0; u < uses.size(); ++u) {
    if (uses[u].mode == AccessMode::read || uses[u].mode == AccessMode::read_write)
      seen = seen * 1'000'003 + digest(cells[u]);
    if (uses[u].mode != AccessMode::scratch) continue;
    for (std::size_t i = 0; i < cells[u].size(); ++i) cells[u][i] = factor + u * 100 + i;
  }
  for (std::size_t u = 0; u < uses.size(); ++u) {
    const std::size_t count = cells[u].size();
    apply(uses[u], cells[u], seen, fault == Fault::halfway ? count / 2 : count);
  }
  for (std::size_t u = 0; u < uses.size(); ++u) {
    if (uses[u].mode != AccessMode::scratch) continue;
    for (std::size_t i = 0; i < cells[u].size(); ++i)
      if (cells[u][i] != factor + u * 100 + i)
        throw std::logic_error("somebody else wrote into the scratch memory of " + label);
  }
  if (fault == Fault::halfway) throw Thrown(label);
}

}  // namespace tandem::random_flow
