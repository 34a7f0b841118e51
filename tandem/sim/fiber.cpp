// tandem/sim/fiber.cpp: fibers of Boost.Context; under a sanitizer, threads that take turns.
#include "tandem/sim/fiber.hpp"

#include <utility>

#include "tandem/base/assert.hpp"
#include "tandem/base/fiber_local.hpp"
#include "tandem/base/sanitizers.hpp"

#if defined(TANDEM_FIBERS_ARE_THREADS)
#include <condition_variable>
#include <mutex>
#include <thread>
#else
#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#endif

namespace tandem::sim {

namespace {

/// Runs a body that must not throw.
void run(const std::function<void()>& body) noexcept { body(); }

}  // namespace

#if defined(TANDEM_FIBERS_ARE_THREADS)

/// One of two threads has the turn: `is_inside_` says which, under `mutex_`.
class Fiber::Context {
 public:
  Context(std::function<void()> body, std::size_t) : body_(std::move(body)) {}
  ~Context() {
    if (thread_.joinable()) thread_.join();
  }

  void enter() {
    std::unique_lock lock(mutex_);
    is_inside_ = true;
    if (!thread_.joinable()) thread_ = std::thread([this] { begin(); });
    else turn_.notify_all();
    turn_.wait(lock, [this] { return !is_inside_; });
  }
  void leave() {
    std::unique_lock lock(mutex_);
    give_turn();
    turn_.wait(lock, [this] { return is_inside_; });
  }

  enum class State { fresh, suspended, runs, ended } state = State::fresh;

 private:
  void begin() {
    current = this;
    run(body_);
    const std::lock_guard lock(mutex_);
    state = State::ended;
    give_turn();
  }
  void give_turn() {
    is_inside_ = false;
    turn_.notify_all();
  }

 public:
  static constinit inline thread_local Context* current = nullptr;

 private:
  const std::function<void()> body_;
  std::mutex mutex_;
  std::condition_variable turn_;
  bool is_inside_ = false;
  std::thread thread_;
};

#else

class Fiber::Context {
 public:
  Context(std::function<void()> body, std::size_t stack_bytes)
      : body_(std::move(body)),
        other_(std::allocator_arg, boost::context::protected_fixedsize_stack(stack_bytes),
               [this](boost::context::fiber&& resumer) {
                 other_ = std::move(resumer);
                 run(body_);
                 state = State::ended;
                 return std::move(other_);
               }) {}

  void enter() {
    Context* const before = std::exchange(current, this);
    base::FiberLocal::exchange(locals_);
    other_ = std::move(other_).resume();
    base::FiberLocal::exchange(locals_);
    current = before;
  }
  void leave() { other_ = std::move(other_).resume(); }

  enum class State { fresh, suspended, runs, ended } state = State::fresh;
  static constinit inline thread_local Context* current = nullptr;

 private:
  const std::function<void()> body_;
  base::FiberLocal::Values locals_{};
  boost::context::fiber other_;  ///< the fiber while it does not run; while it runs, the caller of `resume`
};

#endif

Fiber::Fiber(std::function<void()> body, std::size_t stack_bytes)
    : context_(std::make_unique<Context>(std::move(body), stack_bytes)) {}

Fiber::~Fiber() {
  TANDEM_ASSERT(context_->state == Context::State::ended || context_->state == Context::State::fresh);
}

void Fiber::resume() {
  TANDEM_ASSERT(context_->state == Context::State::fresh || context_->state == Context::State::suspended);
  context_->state = Context::State::runs;
  context_->enter();
}

void Fiber::yield() {
  Context* const self = Context::current;
  TANDEM_ASSERT(self != nullptr);
  self->state = Context::State::suspended;
  self->leave();
}

bool Fiber::has_ended() const noexcept { return context_->state == Context::State::ended; }

}  // namespace tandem::sim
