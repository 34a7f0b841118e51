// tandem/dist/transfers.hpp: sends and receives as nodes of the task graph.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "tandem/comm/endpoint.hpp"
#include "tandem/dist/bag.hpp"
#include "tandem/runtime/runtime_core.hpp"
#include "tandem/runtime/usage_error.hpp"

namespace tandem::dist {

struct TransferOptions {
  bool broadcasts = true;                               ///< false: each recipient gets a plain message
  comm::TreeKind tree = comm::TreeKind::automatic;
  std::int64_t hold_ns = 0;                             ///< how long a broadcast waits for late recipients
  bool announce = true;                                 ///< the endpoint is told of messages whose writers run
  bool incoming = true;                                 ///< the scheduler is told of messages that begin to come
  bool early_read = true;                               ///< readers start when data has *arrived*; else when it is *released*
};

/// Posts what the flow has decided, when the data is ready, and ends the nodes of the graph when the library says so.
///
/// A send is a node that reads its data and ends when the library has read it. A receive is a node that writes it, with the two
/// completions of an event: readers start when the data has arrived, writers when it was also forwarded to others (thesis
/// 4.3.4). A version that does not exist, because a kernel threw, travels as an empty message that says so.
///
/// An object is written to bytes when its first send starts, by the thread that ended its writer, and the bytes are freed when
/// the last send has ended. Its receive takes a message of whatever size into the library's memory, and a task of this rank, at
/// the head of the readers, makes the value of it: so what is slow about that delays no messages. That task fails as a kernel
/// does when the bytes are not what the type expects.
///
/// Threads. `send`, `add` and `receive` by the submitting thread. Nodes start on any thread; the endpoint calls back one at a
/// time. `mutex_` guards the receives under way, so that `abort` finds them.
class Transfers {
 public:
  Transfers(runtime::RuntimeCore& core, comm::Endpoint& endpoint, const TransferOptions& options);

  /// Where a message belongs: data `tag` on `channel`, its version.
  struct Address {
    std::uint64_t tag = 0;
    comm::Channel channel{0};
    std::uint32_t version = 0;  ///< both ends must mean the same one; `kAnyVersion`: not compared
    bool exact = true;          ///< false: this rank knows a lower bound only, as it has passed over tasks
  };
  static constexpr std::uint32_t kAnyVersion = UINT32_MAX;

  /// The present version of `handle` goes to `recipients`, and to those added later. `packed`: of an object, shared by its sends.
  /// `plan`: of sends that will be alike, or null.
  std::shared_ptr<Bag> send(runtime::Handle& handle, const Address& address, std::span<const comm::Recipient> recipients,
                            std::shared_ptr<PackedValue> packed, std::shared_ptr<comm::BroadcastPlan> plan = {});
  /// False: too late, or there already; the recipient needs a send of its own.
  bool add(Bag& bag, comm::Recipient recipient);
  /// A recipient that is there may have a more urgent use. What was posted keeps its priority.
  static void raise(Bag& bag, comm::Recipient recipient);

  /// The next version of `handle` comes from `source`. `after`: a node that comes first, or none. `priority`: of the task that
  /// makes an object of the message.
  void receive(runtime::Handle& handle, const Address& address, std::uint32_t source, const runtime::TaskRef& after,
               int priority);

  /// Is told of what makes the job fail; on the thread that finds it. Before anything is posted.
  void on_abort(std::function<void(const std::string& text)> tell) { tell_abort_ = std::move(tell); }
  /// Is told that a rank is lost, as far as this one sees; its reason may be on its way. `abort` follows, with it or this text.
  void on_loss(std::function<void(const std::string& text)> tell) { tell_loss_ = std::move(tell); }
  /// Ends all receives that wait, now and later, with a JobError that says `text`. Any thread. True: it was the first.
  bool abort(const std::string& text);
  /// Why everything ends, or null.
  std::exception_ptr aborted() const;

  /// From now on `session`, which outlives this, is told of bags and versions.
  void trace_to(trace::Session& session) noexcept { trace_.store(&session, std::memory_order_release); }
  /// Of the submitting thread's events.
  template <trace::Type T, class... Fields>
  void tell_submitter(Fields... fields) noexcept {
    core_.submission().trace().emit<T>(fields...);
  }

  std::uint64_t received() const noexcept { return received_.load(std::memory_order_relaxed); }
  std::uint64_t received_bytes() const noexcept { return received_bytes_.load(std::memory_order_relaxed); }

 private:
  struct Receive;
  struct Head;

  /// Of whichever thread it is. The submitting one's events that stand in no order with it have its own stream.
  template <trace::Type T, class... Fields>
  void tell(Fields... fields) {
    if (trace::Session* const session = trace_.load(std::memory_order_acquire)) session->emit_shared<T>(fields...);
  }
  void tell_sent(const Bag& bag, const comm::Request& request);

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
  runtime::FlowFailure* job_failure();

  runtime::RuntimeCore& core_;
  comm::Endpoint& endpoint_;
  const TransferOptions options_;
  mutable std::mutex mutex_;
  std::function<void(const std::string&)> tell_abort_;
  std::function<void(const std::string&)> tell_loss_;
  std::vector<Receive*> lost_;  ///< that failed because of a loss, and end when the job is aborted
  std::unordered_multimap<std::uint64_t, Receive*> waiting_;  ///< by tag
  std::exception_ptr aborted_;
  runtime::FlowFailure* job_failure_ = nullptr;
  std::atomic<trace::Session*> trace_{nullptr};  ///< its store releases the session
  std::uint32_t bags_ = 0;                       ///< opened so far; of the submitting thread
  std::atomic<std::uint64_t> received_{0};
  std::atomic<std::uint64_t> received_bytes_{0};
};

}  // namespace tandem::dist
