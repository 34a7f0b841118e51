// tests/dist_flow/random_operation.cpp: what kernels compute.
#include "random_operation.hpp"

namespace tandem::dist_test {

std::string label(std::size_t position) { return "failure at " + std::to_string(position); }

void compute(Word factor, std::span<const std::span<const Word>> seen, AccessMode mode, std::span<Word> written) {
  for (std::size_t i = 0; i < written.size(); ++i) {
    Word sum = factor + i;
    for (const auto& in : seen)
      if (!in.empty()) sum = sum * 31 + in[i % in.size()];
    if (mode == AccessMode::write) written[i] = sum;
    else if (mode == AccessMode::commute || mode == AccessMode::reduce) written[i] += sum;
    else written[i] = written[i] * 7 + sum;
  }
}

std::span<Word> resized(Word factor, AccessMode mode, Values& values) {
  const std::size_t wanted = factor % 600;
  if (mode == AccessMode::commute || mode == AccessMode::reduce) {
    if (values.size() < wanted) values.resize(wanted);
    return std::span(values).first(wanted);
  }
  if (mode == AccessMode::write) values.assign(wanted, 0);
  else values.resize((values.size() + factor) % 700);
  return values;
}

}  // namespace tandem::dist_test
