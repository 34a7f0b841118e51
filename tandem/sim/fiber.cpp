// tandem/sim/fiber.cpp: fibers of Boost.Context; under a sanitizer, threads that take turns.
#include "tandem/sim/fiber.hpp"

#include <utility>

#include "tandem/base/assert.hpp"
#include "tandem/base/fiber_local.hpp"

#if defined(TANDEM_FIBERS_ARE_THREADS)
#include <condition_variable>
#include <mutex>
#include <thread>
#else
#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#endif

namespace tandem::sim {

class Fiber::Context {
 public:
  enum class State { fresh, suspended, runs, ended };

  Context(std::function<void()> body, std::size_t stack_bytes);
  ~Context();

  /// Gives the turn to the fiber; returns when it has come back.
  void enter();
  /// Gives the turn back, from inside.
  void leave();

  State state = State::fresh;
  static constinit inline thread_local Context* current = nullptr;  ///< the fiber that runs here

 private:
  /// The body throws nothing.
  void run() noexcept {
    body_();
    state = State::ended;
  }

  const std::function<void()> body_;
#if defined(TANDEM_FIBERS_ARE_THREADS)
  void give_turn();

  std::mutex mutex_;
  std::condition_variable turn_;
  bool is_inside_ = false;  ///< the fiber's thread has the turn, not the caller of `resume`; guarded by `mutex_`
  std::thread thread_;
#else
  base::FiberLocal::Values locals_{};
  boost::context::fiber other_;  ///< the fiber while it does not run; while it runs, the caller of `resume`
#endif
};

#if defined(TANDEM_FIBERS_ARE_THREADS)

Fiber::Context::Context(std::function<void()> body, std::size_t) : body_(std::move(body)) {}

Fiber::Context::~Context() {
  if (thread_.joinable()) thread_.join();
}

void Fiber::Context::enter() {
  std::unique_lock lock(mutex_);
  is_inside_ = true;
  if (thread_.joinable()) turn_.notify_all();
  else
    thread_ = std::thread([this] {
      current = this;
      run();
      const std::lock_guard guard(mutex_);
      give_turn();
    });
  turn_.wait(lock, [this] { return !is_inside_; });
}

void Fiber::Context::leave() {
  std::unique_lock lock(mutex_);
  give_turn();
  turn_.wait(lock, [this] { return is_inside_; });
}

/// To the caller of `resume`; under the mutex.
void Fiber::Context::give_turn() {
  is_inside_ = false;
  turn_.notify_all();
}

#else

Fiber::Context::Context(std::function<void()> body, std::size_t stack_bytes)
    : body_(std::move(body)),
      other_(std::allocator_arg, boost::context::protected_fixedsize_stack(stack_bytes),
             [this](boost::context::fiber&& resumer) {
               other_ = std::move(resumer);
               run();
               return std::move(other_);
             }) {}

Fiber::Context::~Context() = default;

void Fiber::Context::enter() {
  Context* const before = std::exchange(current, this);
  base::FiberLocal::exchange(locals_);
  other_ = std::move(other_).resume();
  base::FiberLocal::exchange(locals_);
  current = before;
}

void Fiber::Context::leave() { other_ = std::move(other_).resume(); }

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
