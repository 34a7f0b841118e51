// tandem/dist/cancellation.cpp: notices of a cancelled flow, and the agreement on its end.
#include "tandem/dist/cancellation.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tandem/dist/flow_position.hpp"
#include "tandem/dist/job_abort.hpp"
#include "tandem/runtime/runtime_core.hpp"

namespace tandem::dist {

namespace {

using Bytes = Agreement::Bytes;

/// Progress of a rank; or the most of several ranks.
struct Reach {
  std::uint64_t begun = 0;    ///< last position whose task may have begun
  std::uint64_t entered = 0;  ///< last position that may have been submitted

  Bytes bytes() const {
    Bytes result(sizeof *this);
    std::memcpy(result.data(), this, sizeof *this);
    return result;
  }
  /// A malformed message reads as zeros.
  static Reach from(std::span<const std::byte> bytes) {
    Reach reach;
    if (bytes.size() == sizeof reach) std::memcpy(&reach, bytes.data(), sizeof reach);
    return reach;
  }
  static void merge(Bytes& into, std::span<const std::byte> from) {
    const Reach a = Reach::from(into), b = Reach::from(from);
    into = Reach{std::max(a.begun, b.begun), std::max(a.entered, b.entered)}.bytes();
  }
};

}  // namespace

Cancellation::Cancellation(runtime::RuntimeCore& core, comm::Endpoint& endpoint, JobAbort& abort,
                           FlowPosition& position)
    : core_(core),
      endpoint_(endpoint),
      abort_(abort),
      position_(position),
      channel_(endpoint.channel("tandem.dist.cancel")),
      agreement_(endpoint, "tandem.dist.end") {
  endpoint_.register_rpc(channel_, {.arrived = [](const comm::RpcArrival&) { return comm::RpcAnswer{}; },
                                    .done = [this](const comm::Status& status) {
                                      if (status.ending != comm::Ending::done) return;
                                      join(status.tag.value(), status.source.value());
                                    }});
}

void Cancellation::cancel() {
  std::uint64_t flow = 0;
  {
    const std::lock_guard guard(mutex_);
    if (ending_) return;
    flow = flow_number_;
  }
  join(flow, {});
}

/// Cancels flow number `flow`, by this rank or by the one that has sent the notice. Any thread.
void Cancellation::join(std::uint64_t flow, std::optional<std::uint32_t> noticed_by) {
  Reach mine;
  {
    const std::lock_guard guard(mutex_);
    // The sender has ended a wait that this rank is about to end.
    if (flow == flow_number_ + 1) next_is_cancelled_ = true;
    if (flow != flow_number_ || joined_ || abort_.aborted()) return;
    joined_ = true;
    mine = {core_.executor().freeze_end(), position_.entering.freeze()};
  }
  for (const std::uint32_t other : agreement_.neighbours())
    if (other != noticed_by)
      endpoint_.isend(base::Rank(other), comm::Tag(flow), comm::SendBuffer(),
                      {.channel = channel_, .priority = Agreement::kPriority});
  agreement_.begin(mine.bytes(), &Reach::merge, [this](std::span<const std::byte> outcome) { decide_end(outcome); });
}

void Cancellation::decide_end(std::span<const std::byte> outcome) {
  const Reach all = Reach::from(outcome);
  {
    const std::lock_guard guard(mutex_);
    if (abort_.aborted()) return;
    end_of_tasks_ = all.begun;
    position_.entering.decide(all.entered);
  }
  core_.executor().decide_end(all.begun);
  end_decided_.store(true);
  core_.executor().caller().wake();
}

void Cancellation::give_up() {
  {
    const std::lock_guard guard(mutex_);
    if (!joined_) return;
  }
  core_.executor().decide_end(core_.executor().freeze_end());
}

bool Cancellation::may_enter(std::uint64_t position) {
  using Answer = runtime::Cutoff::Answer;
  for (;;) {
    Answer answer;
    {
      const std::lock_guard guard(mutex_);
      answer = position_.entering.ask(position, position - 1 + kEnterAhead);
    }
    if (answer == Answer::over) return false;  // also once the job has failed: the next wait throws
    if (answer == Answer::go || abort_.aborted()) return true;
    abort_.work_until(end_decided_);
  }
}

bool Cancellation::stop() {
  const std::lock_guard guard(mutex_);
  ending_ = true;
  return joined_;
}

/// Begins the next flow. A rank that has not received the notice yet waits for the decision, too.
std::optional<std::uint64_t> Cancellation::begin_next_flow(bool cancelled, std::uint64_t last_position) {
  std::optional<std::uint64_t> end;
  if (cancelled) {
    abort_.work_until(end_decided_);
    abort_.throw_if_aborted();
    end = std::min(end_of_tasks_, last_position);
  }
  bool next_is_cancelled = false;
  {
    const std::lock_guard guard(mutex_);
    core_.executor().reopen();
    position_.entering.reopen();
    end_decided_.store(false);
    joined_ = ending_ = false;
    ++flow_number_;
    next_is_cancelled = std::exchange(next_is_cancelled_, false);
  }
  if (next_is_cancelled) join(flow_number_, {});
  return end;
}

}  // namespace tandem::dist
