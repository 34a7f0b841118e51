// tests/dist_flow/random_oracle.cpp: executes operations of a plan, and follows failed tasks through the data.
#include "random_oracle.hpp"

#include <span>

namespace tandem::dist_test {

std::string Oracle::step(std::size_t position, const Operation& operation) {
  if (operation.kind == Kind::task) run(position, operation);
  if (operation.kind == Kind::write_at_owner)
    values_[operation.data[0]].assign(plan_.sizes[operation.data[0]], operation.factor);
  if (operation.kind == Kind::replace) poison_[operation.data[0]] = nullptr;
  if (operation.kind != Kind::wait) return {};
  Failure* thrown = nullptr;
  for (auto& failure : failures_) {
    const bool is_new = failure->reported == 0 || failure->last_cancelled > failure->reported;
    if (is_new && thrown == nullptr) thrown = failure.get();
    failure->reported = position + 1;
  }
  return thrown == nullptr ? std::string() : label(thrown->position);
}

void Oracle::run(std::size_t position, const Operation& operation) {
  Failure* cause = nullptr;
  std::vector<std::span<const Word>> seen;
  for (std::size_t i = 0; i < operation.data.size(); ++i) {
    if (operation.modes[i] == AccessMode::read) seen.emplace_back(values_[operation.data[i]]);
    Failure* poison = poison_[operation.data[i]];
    if (operation.modes[i] != AccessMode::write && poison != nullptr &&
        (cause == nullptr || poison->position < cause->position))
      cause = poison;
  }
  if (cause != nullptr) cause->last_cancelled = position + 1;
  if (cause == nullptr && operation.throws) {
    failures_.push_back(std::make_unique<Failure>(Failure{.position = position}));
    cause = failures_.back().get();
  }
  for (std::size_t i = 0; i < operation.data.size(); ++i) {
    if (operation.modes[i] == AccessMode::read) continue;
    poison_[operation.data[i]] = cause;
    if (cause != nullptr) continue;
    Values& values = values_[operation.data[i]];
    const Word factor = operation.factor + i;
    compute(factor, seen, operation.modes[i], plan_.objects ? resized(factor, operation.modes[i], values) : values);
  }
}

}  // namespace tandem::dist_test
