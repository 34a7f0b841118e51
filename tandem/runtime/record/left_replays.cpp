// tandem/runtime/record/left_replays.cpp: frees what has ended.
#include "tandem/runtime/record/left_replays.hpp"

#include <algorithm>
#include <utility>

#include "tandem/runtime/runtime_core.hpp"

namespace tandem::runtime {

void LeftReplays::keep(std::vector<std::unique_ptr<Instance>> instances, KeptData data) {
  free_ended();
  left_.push_back(std::unique_ptr<Left>(new Left{std::move(instances), std::move(data)}));
}

void LeftReplays::free(bool all) noexcept {
  std::erase_if(left_, [&](const std::unique_ptr<Left>& left) {
    std::erase_if(left->instances, [&](const std::unique_ptr<Instance>& instance) {
      if (!all && !has_ended(instance->end)) return false;
      instance->destroy(runtime_);
      return true;
    });
    return left->instances.empty();
  });
}

}  // namespace tandem::runtime
