// tandem/api/trace.hpp: what a program may do with its trace: choose what is recorded, mark, count, and keep quiet.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "tandem/base/config.hpp"
#include "tandem/base/topology.hpp"
#include "tandem/runtime/runtime_core.hpp"
#include "tandem/trace/session.hpp"

namespace tandem {

/// What a rank knows of its job, for its trace.
struct TracePlace {
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::string job = "alone";
};

/// The session's options by the configuration: `trace`, `trace.folder` and so on. Throws UsageError for a selection that is none.
trace::SessionOptions trace_options(const base::Config& config, const TracePlace& place, const base::Topology* topology);

/// A program's trace. `Runtime::trace()` gives it; members belong to the thread that made the runtime, but where they say
/// otherwise. Without option `trace` nothing is recorded, and all of this does nothing, until `start`.
class Trace {
 public:
  using Open = std::function<std::unique_ptr<trace::Session>()>;

  /// `session` may be null; then `open` makes one when it is wanted.
  Trace(std::unique_ptr<trace::Session> session, Open open) : session_(std::move(session)), open_(std::move(open)) {}

  /// Records what the selection says from now on (`task,comm,-task.deps`; see trace::Selection). The first call of a program that
  /// was started without option `trace` opens the trace; on several ranks each does it for itself. Throws UsageError.
  void start(std::string_view selection = "all");
  /// Records nothing until `start`.
  void stop();
  bool on() const noexcept { return session_ != nullptr && !session_->selection().empty(); }

  /// The program is here. Any thread.
  void mark(std::string_view name, double value = 0) {
    if (session_ != nullptr) session_->mark(name, value);
  }
  /// A number of the program's has this value from now on. Any thread.
  void counter(std::string_view name, double value) {
    if (session_ != nullptr) session_->counter(name, value);
  }

  /// A part of the program, from here until the object goes.
  class Span {
   public:
    Span(trace::Stream* stream, std::uint32_t name) noexcept : stream_(stream), name_(name) {
      if (stream_ != nullptr) stream_->emit<trace::Type::span_began>(name_);
    }
    ~Span() {
      if (stream_ != nullptr) stream_->emit<trace::Type::span_ended>(name_);
    }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    trace::Stream* stream_;
    std::uint32_t name_;
  };
  [[nodiscard]] Span span(std::string_view name);
  /// The same on a thread of the program's own, which has a stream.
  [[nodiscard]] Span span(trace::Stream& stream, std::string_view name);
  /// A thread of the program's own writes its events there, without locks. The stream goes before the runtime. Any thread.
  void attach(trace::Stream& stream, std::string name);

  /// While it lives nothing is flushed: a region of interest.
  class Quiet {
   public:
    explicit Quiet(trace::Session* session) : session_(session) {
      if (session_ != nullptr) session_->begin_quiet();
    }
    ~Quiet() {
      if (session_ != nullptr) session_->end_quiet();
    }
    Quiet(const Quiet&) = delete;
    Quiet& operator=(const Quiet&) = delete;

   private:
    trace::Session* session_;
  };
  [[nodiscard]] Quiet quiet() { return Quiet(session_.get()); }

  /// Null: there is none.
  trace::Session* session() noexcept { return session_.get(); }
  /// Whoever shall be told of a session, now if there is one, else when it is opened.
  void connect(std::function<void(trace::Session&)> connect);

 private:
  friend class Runtime;

  std::unique_ptr<trace::Session> session_;
  Open open_;
  std::function<void(trace::Session&)> connect_;
  trace::Stream* submitter_ = nullptr;
};

}  // namespace tandem
