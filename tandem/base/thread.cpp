// tandem/base/thread.cpp: POSIX threads.
#include "tandem/base/thread.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "tandem/base/assert.hpp"
#include "tandem/base/exceptions.hpp"

namespace tandem::base {

namespace {

constexpr std::size_t kStackWithoutLimit = 64 << 20;

std::size_t whole_pages(std::size_t bytes) noexcept {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes > SIZE_MAX - page ? bytes / page * page : (bytes + page - 1) / page * page;
}

[[noreturn]] void refuse(const Thread::Options& options, std::size_t stack_bytes, int error) {
  const std::string what = fmt::format("cannot make thread '{}' with a stack of {} bytes: {}", options.name,
                                       stack_bytes, std::strerror(error));
  const char* const why =
      error == EAGAIN ? "the limit of processes and threads of this user or container is reached (ulimit -u, "
                        "pids.max), or there is no memory for the "
                        "stack; use fewer workers (option workers), a smaller stack (option stack), or raise the limit"
                      : "try another size (option stack)";
  throw StartError(what + ": " + why);
}

/// Attributes of a new thread.
class Attributes {
 public:
  Attributes() noexcept { pthread_attr_init(&attributes_); }
  ~Attributes() { pthread_attr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  int set_stack(std::size_t bytes) noexcept { return pthread_attr_setstacksize(&attributes_, bytes); }
  const pthread_attr_t* get() const noexcept { return &attributes_; }

 private:
  pthread_attr_t attributes_;
};

}  // namespace

std::size_t usual_stack_bytes() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kStackWithoutLimit;
  return whole_pages(std::max<std::size_t>(limit.rlim_cur, kLeastStackBytes));
}

struct Thread::Body {
  std::string name;
  std::function<void()> run;

  static void* begin(void* body) noexcept {  // an exception that leaves `run` ends the process
    const auto& self = *static_cast<Body*>(body);
    pthread_setname_np(pthread_self(), self.name.substr(0, 15).c_str());
    self.run();
    return nullptr;
  }
};

void Thread::Free::operator()(Body* body) const noexcept { delete body; }

Thread::Thread(const Options& options, std::function<void()> run) : body_(new Body{options.name, std::move(run)}) {
  const std::size_t asked = std::max(options.stack_bytes, kLeastStackBytes);
  const std::size_t stack_bytes = options.stack_bytes == 0 ? usual_stack_bytes() : whole_pages(asked);
  Attributes attributes;
  int error = attributes.set_stack(stack_bytes);
  if (error == 0) error = pthread_create(&thread_, attributes.get(), &Body::begin, body_.get());
  if (error == 0) return;
  body_.reset();
  refuse(options, stack_bytes, error);
}

Thread& Thread::operator=(Thread&& other) noexcept {
  TANDEM_ASSERT(!joinable());
  body_ = std::move(other.body_);
  thread_ = other.thread_;
  return *this;
}

Thread::~Thread() { TANDEM_ASSERT(!joinable()); }

void Thread::join() {
  TANDEM_ASSERT(joinable());
  pthread_join(thread_, nullptr);
  body_.reset();
}

}  // namespace tandem::base
