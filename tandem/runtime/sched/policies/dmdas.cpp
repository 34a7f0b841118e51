// tandem/runtime/sched/policies/dmdas.cpp: gives each task to the worker that ends it first, copies included; a
// worker's tasks by priority.
#include "tandem/runtime/sched/policies/dmda.hpp"

namespace tandem::runtime {
namespace {

class DataAwareSorted final : public EarliestEndWithData {
 public:
  std::string_view name() const noexcept override { return "dmdas"; }
  std::string_view help() const noexcept override { return "as dmda, and each worker runs its tasks by priority"; }
  bool by_priority() const noexcept override { return true; }
};

}  // namespace

std::unique_ptr<Policy> make_dmdas() { return std::make_unique<DataAwareSorted>(); }

}  // namespace tandem::runtime
