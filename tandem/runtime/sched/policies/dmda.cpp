// tandem/runtime/sched/policies/dmda.cpp: gives each task to the worker that ends it first, copies included; a worker's
// tasks first come, first served.
#include "tandem/runtime/sched/policies/dmda.hpp"

namespace tandem::runtime {
namespace {

class DataAware final : public EarliestEndWithData {
 public:
  std::string_view name() const noexcept override { return "dmda"; }
  std::string_view help() const noexcept override { return "as dm, with the copies of the data"; }
  bool by_priority() const noexcept override { return false; }
};

}  // namespace

std::unique_ptr<Policy> make_dmda() { return std::make_unique<DataAware>(); }

}  // namespace tandem::runtime
