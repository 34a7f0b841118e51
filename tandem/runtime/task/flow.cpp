// tandem/runtime/task/flow.cpp: the rare paths of dependency inference.
#include "tandem/runtime/task/flow.hpp"

namespace tandem::runtime {

/// Makes the nodes that end groups of one datum.
struct Flow::Groups {
  Flow& flow;
  Handle& handle;

  static bool member_may_close(const FlowState&) noexcept { return true; }
  Follower begin_closing(bool reduced) {
    Task* task = reduced ? flow.host_.make_combine(handle) : flow.host_.make_join();
    flow.begin_entering(*task);
    return {flow, *task, nullptr, handle};
  }
  void end_closing(const Follower& follower) {
    if (flow.finish_entering(follower.entered)) flow.host_.entered_ready(follower.entered);
  }
};

void Flow::close(Handle& handle) {
  // The node is entered while another task is being entered, so that one's count is kept.
  const std::int32_t outer_edges = edges_;
  close_group(handle.flow, Groups{*this, handle});
  edges_ = outer_edges;
}

}  // namespace tandem::runtime
