// tandem/comm/engine/completions.cpp: the ends of requests.
#include "tandem/comm/engine/completions.hpp"

namespace tandem::comm::internal {

[[gnu::noinline]] void Completions::keep_notify(RequestCore& core, const Callbacks& callbacks, CompletionQueue* queue,
                                                std::uint64_t user) {
  Extra& extra = core.needed_extra();
  extra.callbacks = callbacks;
  extra.queue = queue;
  extra.user = user;
  core.notifies = true;
}

[[gnu::noinline]] void Completions::add_event(RequestCore& core, CompletionQueue::Event what) {
  core.retain();
  events.push_back(Event{.what = what, .core = &core});
}

void Completions::mark_arrived(ReceiveCore& core, Ending ending) {
  core.ending = ending;
  ++statistics.messages_received;
  trace.arrived(core);
  core.mark_arrived();
  notify(core, ending == Ending::done ? CompletionQueue::Event::arrived : CompletionQueue::Event::failed);
}

void Completions::release(RequestCore& core) {
  end(core, core.ending == Ending::done ? std::optional(CompletionQueue::Event::released) : std::nullopt);
}

void Completions::fail_receive(ReceiveCore& core, Ending ending, Rank culprit) {
  core.end_by(ending, culprit);
  end(core, CompletionQueue::Event::failed);
}

void Completions::end_send(RequestCore& core, Ending ending, Rank culprit) {
  core.end_by(ending, culprit);
  end(core, ending == Ending::done ? CompletionQueue::Event::released : CompletionQueue::Event::failed);
}

void Completions::end(RequestCore& core, std::optional<CompletionQueue::Event> what) {
  --outstanding_;
  trace.ended(core);
  const bool counted = core.counted();
  core.end();
  if (!counted) return;
  if (what) notify(core, *what);
  core.drop();
}

}  // namespace tandem::comm::internal
