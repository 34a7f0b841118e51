// tests/dist_flow/random_oracle.hpp: the sequential execution of a plan.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "random_plan.hpp"

namespace tandem::dist_test {

/// Executes a plan one operation after the other.
class Oracle {
 public:
  explicit Oracle(const Plan& plan) : plan_(plan) {
    for (std::size_t i = 0; i < plan.sizes.size(); ++i) values_.push_back(initial(plan, i));
    poison_.resize(values_.size());
  }
  static Values initial(const Plan& plan, std::size_t datum) { return Values(plan.sizes[datum], 1000 + datum); }

  /// What this wait throws: the label of a task, or nothing.
  std::string step(std::size_t position, const Operation& operation);
  void set(std::size_t datum, Word value) { values_[datum].assign(plan_.sizes[datum], value); }
  /// Null: it does not exist.
  const Values* value(std::size_t datum) const { return poison_[datum] == nullptr ? &values_[datum] : nullptr; }

 private:
  struct Failure {
    std::size_t position = 0;
    std::size_t last_cancelled = 0;
    std::size_t reported = 0;
  };

  void run(std::size_t position, const Operation& operation);

  const Plan& plan_;
  std::vector<Values> values_;
  std::vector<Failure*> poison_;
  std::vector<std::unique_ptr<Failure>> failures_;
};

}  // namespace tandem::dist_test
