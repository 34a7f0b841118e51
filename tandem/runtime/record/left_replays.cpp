// tandem/runtime/record/left_replays.cpp: frees replays that have ended.
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
    std::vector<std::unique_ptr<Instance>> running;
    if (!all) running = Instance::take_running(left->instances);
    if (!left->instances.empty()) left->data.forget_recorded_tasks(runtime_.data(), all);
    for (const auto& instance : left->instances) instance->destroy(runtime_);
    left->instances = std::move(running);
    return left->instances.empty();
  });
}

}  // namespace tandem::runtime
