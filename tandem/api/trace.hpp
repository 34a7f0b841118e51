// tandem/api/trace.hpp: the program's interface to its trace: select events, mark, count, and defer flushes.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/trace/current.hpp"
#include "tandem/trace/session.hpp"

namespace tandem::base {
class Config;
class Topology;
}  // namespace tandem::base

namespace tandem {

/// A rank's place in its job, for its trace.
struct TracePlace {
  std::uint32_t rank = 0;     ///< rank of this process
  std::uint32_t size = 1;     ///< number of ranks
  std::string job = "alone";  ///< the job's name
};

/// The session's options by the configuration: `trace`, `trace.folder` and so on. Throws UsageError for a selection
/// that is none.
trace::SessionOptions trace_options(const base::Config& config, const TracePlace& place,
                                    const base::Topology* topology);

/// A program's trace. `Runtime::trace()` returns it. Without option `trace` nothing is recorded, and all of this does
/// nothing, until `start`.
///
/// Threads. `start`, `stop`, `quiet`, `session` and `connect` belong to the thread that made the runtime; the rest is
/// for any thread, kernels and callbacks included. An event goes to the stream of the actor that runs on its thread
/// (`trace::CurrentStream`): a worker in its kernels, the progress thread, the submitter on the thread that made the
/// runtime. Another thread gets its own stream with its first span; the stream ends with the thread or with the
/// runtime. Until then its marks and counters go to the stream of all others, under a lock. No thread of the program
/// may record while the runtime is destroyed.
///
/// Cost: with a `Name`, a read of a thread-local variable and the event, which reads the clock: 10 ns, no lock. With a
/// text, a look-up under a lock in addition.
class Trace {
 public:
  /// Opens a session in `folder`.
  using Open = std::function<std::unique_ptr<trace::Session>(const std::filesystem::path& folder)>;

  /// The name of a mark, a counter, or a span. Valid as long as its runtime, also before there is a trace.
  class Name {
   public:
    Name() noexcept = default;  ///< no name: events with it are not recorded

   private:
    friend class Trace;
    explicit Name(std::uint32_t number) noexcept : number_(number) {}
    std::uint32_t number_ = UINT32_MAX;
  };

  /// `session` may be null; then `open` makes one when it is needed, in `folder`, or where the configuration says if
  /// that is empty.
  Trace(std::unique_ptr<trace::Session> session, Open open) : session_(std::move(session)), open_(std::move(open)) {}

  /// Records what the selection says from now on (`task,comm,-task.deps`; see trace::Selection). The first call of a
  /// program that was started without option `trace` opens the trace, in `folder` if one is named; on several ranks
  /// each does it for itself, and they compare their clocks in the first `wait()` for which all have. Throws
  /// UsageError.
  void start(std::string_view selection = "all", const std::filesystem::path& folder = {});
  /// Records nothing until `start`.
  void stop();
  /// Whether something is recorded.
  bool on() const noexcept { return session_ != nullptr && !session_->selection().empty(); }

  /// Makes a name for events that are recorded often: equal texts have one name.
  Name name(std::string_view text);

  /// Marks that the program is here.
  void mark(Name name, double value = 0) { record_value<trace::Type::mark>(name, value); }
  /// Marks that the program is here, with a look-up of the name.
  void mark(std::string_view text, double value = 0) {
    if (records<trace::Type::mark>()) mark(name(text), value);
  }
  /// Sets a counter of the program to this value.
  void counter(Name name, double value) { record_value<trace::Type::counter>(name, value); }
  /// Sets a counter, with a look-up of the name.
  void counter(std::string_view text, double value) {
    if (records<trace::Type::counter>()) counter(name(text), value);
  }

  /// A type of events of the program. A call with a value for each field, on any thread, records one event; in kernels
  /// at the cost of an event. Lives as long as its runtime.
  template <class... Values>
  class Event {
   public:
    /// Records one event. Any thread.
    void operator()(Values... values) const noexcept { trace_->record_declared(type_, values...); }

   private:
    friend class Trace;
    Event(Trace* trace, trace::Type type) noexcept : trace_(trace), type_(type) {}
    Trace* trace_;
    trace::Type type_;
  };
  /// Declares a type, as `event<std::uint32_t, double>("solver.residual", {"iteration", "norm"})`; a second call
  /// returns the same. Values are std::uint8_t, uint16_t, uint32_t, uint64_t, int32_t, int64_t, double, or
  /// std::string_view (up to 4096 bytes, which end at the first zero); eight at most. Names are letters, digits and
  /// `_`; the type's may have `.` and `-`. Throws UsageError for others, when the name is taken, and beyond 256 types.
  template <class... Values>
  Event<Values...> event(std::string_view type_name, const std::array<std::string_view, sizeof...(Values)>& fields) {
    static_assert(sizeof...(Values) <= trace::DeclaredTypes::most_fields, "an event has eight fields at most");
    std::vector<trace::DeclaredTypes::FieldName> named;
    [[maybe_unused]] std::size_t index = 0;
    (named.emplace_back(fields[index++], trace::internal::field_of<Values>()), ...);
    return {this, declare(type_name, named)};
  }

  /// A part of the program, from here until the object is destroyed, on the same thread.
  class Span {
   public:
    /// `Trace::span` makes it.
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
  /// A span of this thread, from here until the object is destroyed.
  [[nodiscard]] Span span(Name name) {
    trace::Session* const session = live_.load(std::memory_order_acquire);
    if (session == nullptr || name.number_ == UINT32_MAX) [[likely]] return {nullptr, 0};
    trace::Stream* stream = stream_here(*session);
    if (stream == nullptr && records<trace::Type::span_began>()) stream = session->stream_of_this_thread();
    return {stream, name.number_};
  }
  /// A span of this thread, with a look-up of the name.
  [[nodiscard]] Span span(std::string_view text) {
    return span(records<trace::Type::span_began>() ? name(text) : Name());
  }

  /// Opens a stream with this name for the calling thread of the program.
  void name_thread(std::string_view text);
  /// Adds a stream for an actor of the program, which writes its events there from any thread. Destroy it before the
  /// runtime.
  void attach(trace::Stream& stream, std::string name);
  /// A span in such a stream.
  [[nodiscard]] Span span(trace::Stream& stream, Name name) {
    return {stream.attached() && name.number_ != UINT32_MAX ? &stream : nullptr, name.number_};
  }

  /// While it lives the trace is not flushed: a region of interest.
  class Quiet {
   public:
    /// `Trace::quiet` makes it.
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
  /// Defers flushes while the returned object lives.
  [[nodiscard]] Quiet quiet() { return Quiet(session_.get()); }

  /// The session; null: there is none.
  trace::Session* session() noexcept { return session_.get(); }
  /// Calls `connect` with the session: now if there is one, otherwise when one is opened.
  void connect(std::function<void(trace::Session&)> connect);

 private:
  friend class Runtime;

  trace::Type declare(std::string_view type_name, std::span<const trace::DeclaredTypes::FieldName> fields);
  template <class... Values>
  void record_declared(trace::Type type, const Values&... values) noexcept {
    trace::Session* const session = live_.load(std::memory_order_acquire);
    if (session == nullptr) [[likely]] return;
    if (trace::Stream* const stream = stream_here(*session)) stream->emit_declared(type, values...);
    else session->emit_declared_shared(type, values...);
  }

  void go_live();
  /// Writes everything; no thread records after this.
  void close();
  /// The stream of the actor that runs on this thread; null: a thread without a stream.
  trace::Stream* stream_here(const trace::Session& session) const noexcept {
    trace::Stream* const current = trace::CurrentStream::get();
    if (current != nullptr && current->writes_to(session)) [[likely]] return current;
    return trace::CurrentStream::thread() == owner_ ? submitter_ : nullptr;
  }
  /// Whether such an event would be recorded.
  template <trace::Type T>
  bool records() const noexcept {
    trace::Session* const session = live_.load(std::memory_order_acquire);
    return session != nullptr && session->shares<T>();
  }
  template <trace::Type T>
  void record_value(Name name, double value) {
    trace::Session* const session = live_.load(std::memory_order_acquire);
    if (session == nullptr || name.number_ == UINT32_MAX) [[likely]] return;
    if (trace::Stream* const stream = stream_here(*session)) stream->emit<T>(name.number_, value);
    else session->emit_shared<T>(name.number_, value);
  }

  std::unique_ptr<trace::Session> session_;
  /// The session, once everything is connected to it: set once, with release, and read by any thread with acquire.
  std::atomic<trace::Session*> live_{nullptr};
  Open open_;
  std::function<void(trace::Session&)> connect_;
  trace::Stream* submitter_ = nullptr;                        ///< stream of the thread `owner_`, except while it works
  const void* const owner_ = trace::CurrentStream::thread();

  std::mutex names_mutex_;          ///< guards the members below, and is held while this becomes the session's
  trace::Session* naming_ = nullptr;  ///< gives names their numbers; null: their index in `early_names_` does
  std::vector<std::string> early_names_;
  trace::DeclaredTypes types_;          ///< types of the session, if there is one
};

}  // namespace tandem
