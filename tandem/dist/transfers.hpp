// tandem/dist/transfers.hpp: sends and receives as nodes of the task graph.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tandem/comm/endpoint.hpp"
#include "tandem/dist/bag.hpp"
#include "tandem/dist/flow_options.hpp"
#include "tandem/runtime/runtime_core.hpp"
#include "tandem/base/exceptions.hpp"

namespace tandem::dist {

/// Posts sends and receives when their data is ready, and ends their nodes of the graph when the endpoint reports their end.
///
/// A send is a node that reads its data and ends when the endpoint has read it. A receive is a node that writes it, with the
/// two completions of an event: readers start when the data has arrived, writers when it was also forwarded to others (thesis
/// 4.3.4). A version that does not exist, because a kernel threw, travels as an empty message that says so.
///
/// An object is written to bytes when its first send starts, by the thread that ended its writer, and the bytes are freed when
/// the last send has ended. Its receive takes a message of any size into the endpoint's memory. A task of this rank, before all
/// readers, makes the value of it; so slow types delay no messages. If the bytes are not what the type expects, that task fails
/// as a kernel does.
///
/// Threads: `send`, `add` and `receive` the submitting thread; `abort` any. Nodes start on any thread; the endpoint calls back
/// one at a time. `mutex_` guards the receives under way, so that `abort` finds them, and
/// `origins_`.
class Transfers {
 public:
  Transfers(runtime::RuntimeCore& core, comm::Endpoint& endpoint, const TransferOptions& options);

  /// Where a message belongs: data `tag` on `channel`, its version.
  struct Address {
    std::uint64_t tag = 0;
    comm::Channel channel{0};
    std::uint32_t version = 0;  ///< equal at both ends; `kAnyVersion`: not compared
    bool exact = true;          ///< false: a lower bound, since this rank has skipped tasks
  };
  static constexpr std::uint32_t kAnyVersion = UINT32_MAX;

  /// The current version of `handle` goes to `recipients`, and to those added later. `packed`: of an object, shared by its
  /// sends. `plan`: shared by sends to the same recipients, or null.
  std::shared_ptr<Bag> send(runtime::Handle& handle, const Address& address, std::span<const comm::Recipient> recipients,
                            std::shared_ptr<PackedValue> packed, std::shared_ptr<comm::BroadcastPlan> plan = {});
  /// Adds a recipient. False: too late, or it is a recipient already; it needs a send of its own.
  bool add(Bag& bag, comm::Recipient recipient);
  /// Raises the priority of a recipient that was added. A posted message keeps its priority.
  static void raise(Bag& bag, comm::Recipient recipient);

  /// The next version of `handle` comes from `source`. `after`: a node that comes first, or none. `priority`: of the task that
  /// makes an object of the message.
  void receive(runtime::Handle& handle, const Address& address, std::uint32_t source, const runtime::TaskRef& after,
               int priority);

  /// Set before anything is posted: `call` gets the reason for which the job fails, on the thread that finds it.
  void on_abort(std::function<void(const std::string& text)> call) { on_abort_ = std::move(call); }
  /// `call` learns that a rank is lost. That rank's reason may be on its way; `call` leads to `abort` with it or with this
  /// text.
  void on_loss(std::function<void(const std::string& text)> call) { on_loss_ = std::move(call); }
  /// Ends all receives that wait, now and later, with a JobError that says `text`. Any thread. True: it was the first.
  bool abort(const std::string& text);
  /// The JobError, or null.
  std::exception_ptr aborted() const;

  /// Where a failure happened, and its description there.
  struct Origin {
    std::uint32_t rank = 0;
    std::string description;
    /// "on rank 2, task 5 'bad': no luck".
    std::string told() const;
  };
  /// Any thread.
  Origin origin_of(const runtime::FlowFailure& failure) const;

  /// A message that this rank waits for now.
  struct Expected {
    std::uint32_t source = 0;
    std::string data;            ///< its name
    std::uint32_t version = 0;   ///< `kAnyVersion`: of an explicit message
    std::uint64_t tag = 0;
  };
  /// All of them, in no order. The submitting thread.
  std::vector<Expected> expected() const;

  /// At a wait, when all tasks have ended: whether no receive is under way.
  bool check_invariants() const;

  /// Records bags and versions in `session`, which outlives this.
  void trace_to(trace::Session& session) noexcept { trace_.store(&session, std::memory_order_release); }
  /// An event in the submitting thread's stream.
  template <trace::Type T, class... Fields>
  void trace_submitter(Fields... fields) noexcept {
    core_.submission().trace().emit<T>(fields...);
  }

  std::uint64_t received() const noexcept { return received_.load(std::memory_order_relaxed); }
  std::uint64_t received_bytes() const noexcept { return received_bytes_.load(std::memory_order_relaxed); }

 private:
  struct Receive;

  /// An event of any thread, in the stream that all threads share.
  template <trace::Type T, class... Fields>
  void record(Fields... fields) {
    if (trace::Session* const session = trace_.load(std::memory_order_acquire)) session->emit_shared<T>(fields...);
  }
  void trace_sent(const Bag& bag, const comm::Request& request);

  void start(Bag& bag, runtime::Task& task);
  void announce(Bag& bag, std::int64_t in_ns);
  runtime::FlowFailure* pack(Bag& bag, const runtime::Task& task);
  void post(Bag& bag, std::span<const comm::Recipient> recipients, bool empty, std::span<const std::byte> header);
  void sent(Bag& bag);
  void unpack_after(const std::shared_ptr<Receive>& receive, int priority);
  void start(Receive& receive);
  void arrived(Receive& receive, const comm::Status& status);
  void released(Receive& receive);
  void failed(Receive& receive, const comm::Status& status);
  void end(Receive& receive, runtime::FlowFailure* failure);
  void forget(Receive& receive);
  void expect(comm::Rank source, comm::Channel channel, comm::Tag tag, std::uint64_t bytes, std::int64_t in_ns);
  void expect_no_more(Receive& receive);
  bool needs_memory(std::size_t bytes) const noexcept;
  void begin_urgent(std::optional<std::int32_t>& urgent, std::int32_t priority);
  void end_urgent(std::optional<std::int32_t>& urgent);
  runtime::FlowFailure* job_failure();

  runtime::RuntimeCore& core_;
  comm::Endpoint& endpoint_;
  const TransferOptions options_;
  mutable std::mutex mutex_;
  std::function<void(const std::string&)> on_abort_;
  std::function<void(const std::string&)> on_loss_;
  std::vector<Receive*> lost_;  ///< that failed with a lost rank; `abort` ends them
  std::unordered_multimap<std::uint64_t, Receive*> waiting_;  ///< by tag
  std::unordered_map<runtime::TaskId, Origin> origins_;       ///< of failures on other ranks
  std::exception_ptr aborted_;
  runtime::FlowFailure* job_failure_ = nullptr;
  std::atomic<trace::Session*> trace_{nullptr};  ///< the store releases the session, `record` acquires it
  std::uint32_t bags_ = 0;                       ///< opened so far; the submitting thread's
  std::atomic<std::uint64_t> received_{0};
  std::atomic<std::uint64_t> received_bytes_{0};
};

}  // namespace tandem::dist
