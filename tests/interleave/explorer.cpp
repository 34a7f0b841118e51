// tests/interleave/explorer.cpp: the search, and the fibers that it switches between.
#include "tests/interleave/explorer.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#elif defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#endif

namespace tandem::interleave {

namespace {

/// These notify the sanitizers of switches between stacks. Each of these does nothing without its sanitizer.
void* this_fiber() noexcept {
#if defined(__SANITIZE_THREAD__)
  return __tsan_get_current_fiber();
#else
  return nullptr;
#endif
}

[[maybe_unused]] const void* main_stack = nullptr;
[[maybe_unused]] std::size_t main_stack_bytes = 0;

void after_switch([[maybe_unused]] bool from_main, [[maybe_unused]] void* saved) noexcept {
#if defined(__SANITIZE_ADDRESS__)
  const void* from = nullptr;
  std::size_t bytes = 0;
  __sanitizer_finish_switch_fiber(saved, &from, &bytes);
  if (from_main) {
    main_stack = from;
    main_stack_bytes = bytes;
  }
#endif
}

/// A schedule that is abandoned in the middle of a function leaves what this function holds at that moment: no leak of
/// the code. Leaks of the code itself are found by its other tests.
class LeaksIgnored {
 public:
#if defined(__SANITIZE_ADDRESS__)
  LeaksIgnored() { __lsan_disable(); }
  ~LeaksIgnored() { __lsan_enable(); }
  LeaksIgnored(const LeaksIgnored&) = delete;
  LeaksIgnored& operator=(const LeaksIgnored&) = delete;
#endif
};

constexpr char kSuffixes[] = {'\0', '!', '~'};

}  // namespace

// --- fibers

void Explorer::make_fiber(unsigned thread) {
  Fiber& fiber = fibers_[thread];
  if (fiber.stack == nullptr) fiber.stack = std::make_unique<std::byte[]>(kStackBytes);
#if defined(__SANITIZE_THREAD__)
  if (fiber.sanitizer != nullptr) __tsan_destroy_fiber(fiber.sanitizer);
  fiber.sanitizer = __tsan_create_fiber(0);
#elif defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(fiber.stack.get(), kStackBytes);
#endif
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = kStackBytes;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, &Explorer::enter_fiber, 0);
}

void Explorer::enter_fiber() {
  Explorer& explorer = *current_;
  const unsigned me = explorer.running_;
  after_switch(explorer.starting_, nullptr);
  for (;;) {  // once for each schedule that lets the body end
    explorer.program_->run(me);
    explorer.ended_[me] = true;
    explorer.switch_to(explorer.starting_ ? kMain : explorer.next_thread());
  }
}

void Explorer::switch_to(unsigned to) {
  const unsigned from = running_;
  if (from == to) return;
  running_ = to;
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(fibers_[to].sanitizer, 0);
#elif defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&fibers_[from].sanitizer, to == kMain ? main_stack : fibers_[to].stack.get(),
                                 to == kMain ? main_stack_bytes : kStackBytes);
#endif
  swapcontext(&fibers_[from].context, &fibers_[to].context);
  after_switch(from != kMain && starting_, fibers_[from].sanitizer);
}

// --- what model types call

bool Explorer::point(const Operation& operation) noexcept {
  const unsigned me = running_;
  operations_[me] = operation;
  switch_to(starting_ ? kMain : next_thread());
  ++clocks_[me].ticks[me];
  return second_outcome_;
}

void Explorer::buffer(Location* location, std::uint64_t bits, const VectorClock* released) noexcept {
  stores_[running_].push_back({location, bits, released != nullptr ? *released : VectorClock{}});
}

bool Explorer::buffered(const Location* location, std::uint64_t& bits) const noexcept {
  const auto& stores = stores_[running_];
  const auto at = std::find_if(stores.rbegin(), stores.rend(),
                               [&](const Store& store) { return store.location == location; });
  if (at == stores.rend()) return false;
  bits = at->bits;
  return true;
}

void Explorer::flush(unsigned thread) {
  const Store store = stores_[thread].front();
  stores_[thread].erase(stores_[thread].begin());
  store.location->bits = store.bits;
  store.location->released = store.released;
}

void Explorer::note_value(std::uint64_t bits) {
  if (!tracing_) return;
  char text[32];
  std::snprintf(text, sizeof text, "  %#llx", static_cast<unsigned long long>(bits));
  trace_ += text;
}

void Explorer::fail(const char* what) noexcept {
  Explorer& explorer = *current_;
  if (explorer.end_ != End::failed) explorer.what_ = what;
  explorer.end_ = End::failed;
  if (explorer.running_ != kMain) explorer.switch_to(kMain);
}

// --- choosing

bool Explorer::can_run(unsigned thread) const {
  const Operation& operation = operations_[thread];
  return (!operation.drains || stores_[thread].empty()) &&
         (operation.ready == nullptr || operation.ready(*operation.location, thread));
}

Explorer::Choices Explorer::enabled() const {
  Choices all = 0;
  for (unsigned thread = 0; thread < threads_; ++thread) {
    if (!stores_[thread].empty()) all |= 1U << (thread * kKinds + kFlush);
    if (ended_[thread]) continue;
    if (can_run(thread)) all |= 1U << (thread * kKinds + kRun);
    if (operations_[thread].may_fail && failures_[thread] < options_.most_failures && stores_[thread].empty())
      all |= 1U << (thread * kKinds + kFail);
  }
  return all;
}

bool Explorer::preempts(const Node& node, Choice choice) {
  return node.before_can_go && choice % kKinds != kFlush && choice / kKinds != node.before;
}

Explorer::Choice Explorer::first_of(Choices choices, unsigned preferred) {
  if (preferred < kMostThreads && (choices >> (preferred * kKinds + kRun) & 1) != 0) return preferred * kKinds + kRun;
  return static_cast<Choice>(std::countr_zero(choices));
}

bool Explorer::independent(const Node& node, Choice a, Choice b) {
  if (a / kKinds == b / kKinds) return false;
  const auto location = [&](Choice c) {
    return c % kKinds == kFlush ? node.flushes[c / kKinds] : node.operations[c / kKinds].location;
  };
  const auto access = [&](Choice c) {
    return c % kKinds == kFlush ? Access::write : node.operations[c / kKinds].access;
  };
  if (access(a) == Access::none || access(b) == Access::none || location(a) != location(b)) return true;
  return access(a) == Access::read && access(b) == Access::read;
}

Explorer::Choices Explorer::sleep_after(const Node& node) {
  Choices sleep = 0;
  for (Choices rest = node.sleep; rest != 0; rest &= rest - 1) {
    const auto choice = static_cast<Choice>(std::countr_zero(rest));
    if (independent(node, choice, node.chosen)) sleep |= 1U << choice;
  }
  return sleep;
}

bool Explorer::replayed(Choices all, Choice& choice) {
  choice = depth_ < replay_.size() ? replay_[depth_] : first_of(all, running_);
  return (all >> choice & 1) != 0;
}

bool Explorer::decide(Choice& choice) {
  if (depth_ < nodes_.size()) {
    choice = nodes_[depth_].chosen;
    return true;
  }
  const Choices all = enabled();
  if (all == 0) {
    end_ = std::all_of(ended_.begin(), ended_.begin() + threads_, [](bool ended) { return ended; }) ? End::ended
                                                                                                    : End::asleep;
    return false;
  }
  Node node;
  node.before = running_;
  node.before_can_go = running_ < kMain && (all >> (running_ * kKinds + kRun) & 1) != 0;
  node.operations = operations_;
  for (unsigned thread = 0; thread < threads_; ++thread)
    node.flushes[thread] = stores_[thread].empty() ? nullptr : stores_[thread].front().location;
  if (!nodes_.empty()) {
    node.sleep = sleep_after(nodes_.back());
    node.preemptions = nodes_.back().preemptions + (preempts(nodes_.back(), nodes_.back().chosen) ? 1 : 0);
  }
  if (tracing_) {
    if (!replayed(all, choice)) {
      end_ = End::failed;
      what_ = "the schedule does not fit the program";
      return false;
    }
  } else {
    node.open = all & ~node.sleep;
    if (options_.most_preemptions >= 0 && node.preemptions >= options_.most_preemptions)
      for (Choice c = 0; c < threads_ * kKinds; ++c)
        if (preempts(node, c)) node.open &= ~(1U << c);
    if (node.open == 0) {
      end_ = End::redundant;
      return false;
    }
    choice = first_of(node.open, running_);
    node.open &= ~(1U << choice);
  }
  node.chosen = choice;
  nodes_.push_back(node);
  return true;
}

/// Carries out flushes, and returns the thread that goes on: kMain when the schedule has ended.
unsigned Explorer::next_thread() {
  for (;;) {
    Choice choice = 0;
    if (end_ != End::running) return kMain;
    if (depth_ >= kMostSteps) {
      end_ = End::failed;
      what_ = "the program does not end";
      return kMain;
    }
    if (!decide(choice)) return kMain;
    ++depth_;
    if (tracing_) trace_step(choice);
    const unsigned thread = choice / kKinds;
    if (choice % kKinds == kFlush) {
      flush(thread);
      continue;
    }
    second_outcome_ = choice % kKinds == kFail;
    if (second_outcome_) ++failures_[thread];
    return thread;
  }
}

// --- the search

void Explorer::run_schedule() {
  if (program_ != nullptr) program_->~Program();
  program_ = make_(memory_);
  threads_ = program_->threads();
  depth_ = 0;
  end_ = End::running;
  failures_ = {};
  clocks_ = {};
  for (unsigned thread = 0; thread < threads_; ++thread) {
    if (fibers_[thread].stack == nullptr || !ended_[thread]) make_fiber(thread);
    ended_[thread] = false;
    operations_[thread] = {};
    stores_[thread].clear();
    clocks_[thread].ticks[thread] = 1;
  }
  starting_ = true;
  for (unsigned thread = 0; thread < threads_ && end_ == End::running; ++thread) switch_to(thread);
  starting_ = false;
  if (end_ == End::running) switch_to(next_thread());
  if (end_ == End::asleep && !program_->may_end_asleep()) fail("deadlock: nobody can go on");
  if (end_ == End::asleep || end_ == End::ended) program_->check();
}

bool Explorer::backtrack() {
  while (!nodes_.empty()) {
    Node& node = nodes_.back();
    if (options_.most_preemptions < 0) node.sleep |= 1U << node.chosen;
    if (node.open != 0) {
      node.chosen = first_of(node.open, node.before);
      node.open &= ~(1U << node.chosen);
      return true;
    }
    nodes_.pop_back();
  }
  return false;
}

Outcome Explorer::explore() {
  [[maybe_unused]] const LeaksIgnored leaks_ignored;
  Explorer* const outer = current_;
  current_ = this;
  fibers_[kMain].sanitizer = this_fiber();
  Outcome outcome;
  if (options_.replay.empty()) {
    do {
      run_schedule();
      ++outcome.schedules;
    } while (end_ != End::failed && outcome.schedules < options_.most_schedules && backtrack());
    outcome.complete = nodes_.empty();
  }
  if (!options_.replay.empty() || end_ == End::failed) {
    const std::string found = what_;
    const std::string text = options_.replay.empty() ? schedule() : options_.replay;
    nodes_.clear();
    tracing_ = true;
    if (!parse(text)) what_ = "not a schedule";
    else run_schedule();
    if (!found.empty() && found != what_) what_ = found + " (and then not again: the program is not deterministic)";
    outcome.failed = !what_.empty();
    outcome.what = what_;
    outcome.schedule = schedule();
    outcome.trace = trace_;
  }
  if (program_ != nullptr) program_->~Program();
#if defined(__SANITIZE_THREAD__)
  for (unsigned thread = 0; thread < threads_; ++thread) __tsan_destroy_fiber(fibers_[thread].sanitizer);
#endif
  current_ = outer;
  return outcome;
}

// --- schedules as text: a digit is a thread that takes its step, with ! its second outcome, with ~ its oldest store
// reaches memory

std::string Explorer::schedule() const {
  std::string text;
  for (const Node& node : nodes_) {
    text += static_cast<char>('0' + node.chosen / kKinds);
    if (const char suffix = kSuffixes[node.chosen % kKinds]; suffix != '\0') text += suffix;
  }
  return text;
}

bool Explorer::parse(const std::string& text) {
  replay_.clear();
  for (const char c : text) {
    if (c >= '0' && c < static_cast<char>('0' + kMostThreads)) replay_.push_back((c - '0') * kKinds);
    else if (!replay_.empty() && c == '!') replay_.back() += kFail;
    else if (!replay_.empty() && c == '~') replay_.back() += kFlush;
    else return false;
  }
  return true;
}

void Explorer::trace_step(Choice choice) {
  const unsigned thread = choice / kKinds;
  const Operation& operation = operations_[thread];
  const bool flushes = choice % kKinds == kFlush;
  const Location* location = flushes ? stores_[thread].front().location : operation.location;
  auto at = std::find(seen_.begin(), seen_.end(), location);
  if (at == seen_.end()) at = seen_.insert(at, location);
  char text[128];
  std::snprintf(text, sizeof text, "\nthread %u: %s%s #%d", thread, flushes ? "store reaches memory" : operation.name,
                choice % kKinds == kFail ? " (second outcome)" : "", static_cast<int>(at - seen_.begin()));
  trace_ += text;
}

}  // namespace tandem::interleave
