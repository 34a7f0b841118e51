// tandem/runtime/sched/policies/dmdar.cpp: gives each task to the worker that ends it first, copies included; a
// worker's tasks by their present data.
#include "tandem/runtime/sched/policies/dmda.hpp"

namespace tandem::runtime {
namespace {

class DataAwareReady final : public EarliestEndWithData {
 public:
  std::string_view name() const noexcept override { return "dmdar"; }
  std::string_view help() const noexcept override {
    return "as dmda, and each worker first runs the task of which the fewest bytes are missing there";
  }
  bool by_priority() const noexcept override { return false; }
  bool by_data() const noexcept override { return true; }
};

}  // namespace

std::unique_ptr<Policy> make_dmdar() { return std::make_unique<DataAwareReady>(); }

}  // namespace tandem::runtime
