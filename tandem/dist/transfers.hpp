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
#include "tandem/dist/copy_budget.hpp"
#include "tandem/dist/flow_options.hpp"
#include "tandem/dist/posted_receives.hpp"
#include "tandem/runtime/runtime_core.hpp"
#include "tandem/base/exceptions.hpp"

namespace tandem::dist {

/// Posts sends and receives when their data is ready, and ends their nodes of the graph when the endpoint reports their
/// end.
///
/// A send is a node that reads its data and ends when the endpoint has read it. A receive is a node that writes it,
/// with the two completions of an event: readers start when the data has arrived, writers when it was also forwarded to
/// others (thesis 4.3.4). A version that does not exist, because a kernel threw, travels as an empty message that says
/// so.
///
/// An object is written to bytes when its first send starts, by the thread that ended its writer, and the bytes are
/// freed when the last send has ended. Its receive takes a message of any size into the endpoint's memory. A task of
/// this rank, before all readers, makes the value from it, so slow types delay no messages. If the bytes are not what
/// the type expects, that task fails as a kernel does.
///
/// In turns. If main memory of some rank has a budget (option `memory`), neither end of a message may have memory of it
/// pinned while it waits for the other end: tasks would wait for that memory, and the other end, perhaps by way of
/// further ranks, for these tasks.
/// - A receive pins memory beside the budget (`Room::hold_beside`) from its post on. It is posted when it has its part
///   of the bytes that messages may take there (`arriving_`). These parts are granted in the order of the flow, and
///   return when the data has come into the budget.
/// - A posted receive sends a notice to the sender (`PostedReceives`). Only then does the send ask for memory, and, if
///   the data has left, for its value; it keeps the memory until the message has left.
/// - Explicit messages have no common position in the flow: their receives are posted at once, and do not count.
/// - Readers start when the message was also forwarded, as with `early_read` off.
///
/// Progress in turns. Only running tasks, and sends whose receives are posted, have memory of a budget pinned: both end
/// by themselves, so every request for memory is granted. All ranks go through one flow; consider the earliest of its
/// tasks, sends and receives that have not ended. A task needs memory, which it gets. A receive needs its part of
/// `arriving_`, for which it waits only for earlier receives, whose data comes into the budgets. A send needs memory
/// and the notice of its receive, which has the same position and waits only for earlier ones. So the earliest one
/// ends.
///
/// From devices. A value that is only in a device's memory leaves from there, if it goes to one rank, is large (option
/// `device_messages`), and the link reads such memory (`MessageMemory`). It may not stay there until its receiver takes
/// it: tasks may wait for that memory, and the receiver, perhaps by way of further ranks, for these tasks. So the
/// message is announced without its bytes (`Endpoint::isend_later`). When its receiver has taken it, the send asks for
/// memory, and finds the value where it is by then: in the device's memory, where it stays until the message has left,
/// or in main memory. Broadcasts leave main memory, from which their recipients pass them on, too.
///
/// Into devices. A large message may arrive in the memory of the device where its first reader runs (decision 113). Its
/// receive posts a probe, and has no memory until the message is announced. Then its sender is ready, so device memory
/// that is pinned for a message is released without further waits. A message that comes otherwise is received in main
/// memory.
///
/// Threads: the submitting thread calls `send`, `add` and `receive`; any calls `abort`. Nodes start on any thread; the
/// endpoint makes one callback at a time. `mutex_` guards the receives under way, so that `abort` finds them, and
/// `origins_`.
class Transfers {
 public:
  Transfers(runtime::RuntimeCore& core, comm::Endpoint& endpoint, const TransferOptions& options);

  /// Address of a message: data `tag` on `channel`, and its version.
  struct Address {
    std::uint64_t tag = 0;
    comm::Channel channel{0};
    std::uint32_t version = 0;  ///< equal at both ends; `kAnyVersion`: not compared
    bool exact = true;          ///< false: a lower bound, since this rank has skipped tasks
  };
  static constexpr std::uint32_t kAnyVersion = UINT32_MAX;

  /// Turns on sending in turns: main memory of some rank has a budget. Before anything is sent, on all ranks.
  void send_in_turns();
  /// Called when an operation is refused after some of its receives were submitted, of which one may wait for ever.
  /// Later receives do not wait for its bytes beside the budget, since the program may wait for them when it gives up.
  void lift_bound();

  /// Sends the current version of `handle` to `recipients`, and to those added later. `packed`: bytes of an object,
  /// shared by its sends. `plan`: shared by sends to the same recipients, or null.
  std::shared_ptr<Bag> send(runtime::Handle& handle, const Address& address,
                            std::span<const comm::Recipient> recipients, std::shared_ptr<PackedValue> packed,
                            std::shared_ptr<comm::BroadcastPlan> plan = {});
  /// Adds a recipient. False: too late, or it is a recipient already; it needs a separate send.
  bool add(const std::shared_ptr<Bag>& bag, comm::Recipient recipient);
  /// Raises the priority of a recipient that was added. A posted message keeps its priority.
  static void raise(Bag& bag, comm::Recipient recipient);

  /// Receives the next version of `handle` from `source`. `after`: a node that comes first, or none. `priority`: of the
  /// task that makes an object from the message. `reader`: codelet of the first task that sees the value; null: not
  /// known.
  void receive(runtime::Handle& handle, const Address& address, std::uint32_t source, const runtime::TaskRef& after,
               int priority, const runtime::CodeletCore* reader = nullptr);

  /// Sets the function that gets the reason for which the job fails, on the thread that finds it. Before anything is
  /// posted.
  void on_abort(std::function<void(const std::string& text)> call) { on_abort_ = std::move(call); }
  /// Sets the function that is told of a lost rank. That rank's reason may be on its way; `call` leads to `abort` with
  /// it or with this text.
  void on_loss(std::function<void(const std::string& text)> call) { on_loss_ = std::move(call); }
  /// Ends all waiting receives, now and later, with a JobError that says `text`. Any thread. True: it was the first
  /// call.
  bool abort(const std::string& text);
  /// The JobError, or null.
  std::exception_ptr aborted() const;

  /// Origin of a failure: its rank, and its description there.
  struct Origin {
    std::uint32_t rank = 0;
    std::string description;
    /// Text such as "on rank 2, task 5 'bad': no luck".
    std::string told() const;
  };
  /// Origin of a failure. Any thread.
  Origin origin_of(const runtime::FlowFailure& failure) const;
  /// Forgets the origins of failures that this rank has forgotten. Nothing is under way.
  void forget_origins();

  /// A message that this rank waits for now.
  struct Expected {
    std::uint32_t source = 0;
    std::string data;            ///< name of the data
    std::uint32_t version = 0;   ///< `kAnyVersion`: an explicit message
    std::uint64_t tag = 0;
  };
  /// All messages that this rank waits for, in no order. The submitting thread.
  std::vector<Expected> expected() const;
  /// Lines for the watchdog: in turns, ready data whose recipients have not posted their receives.
  std::string explain_unsent() const;

  /// At a wait, when all tasks have ended: whether no receive is under way, nor counted (`MessageLoad`).
  bool check_invariants() const;

  /// Records bags and versions in `session`, which outlives this.
  void trace_to(trace::Session& session) noexcept { trace_.store(&session, std::memory_order_release); }
  /// Writes an event in the submitting thread's stream.
  template <trace::Type T, class... Fields>
  void trace_submitter(Fields... fields) noexcept {
    core_.submission().trace().emit<T>(fields...);
  }

  std::uint64_t received() const noexcept { return received_.load(std::memory_order_relaxed); }
  std::uint64_t received_bytes() const noexcept { return received_bytes_.load(std::memory_order_relaxed); }
  std::uint64_t sent_from_devices() const noexcept { return sent_from_devices_.load(std::memory_order_relaxed); }
  std::uint64_t received_in_devices() const noexcept { return received_in_devices_.load(std::memory_order_relaxed); }

 private:
  struct Receive;

  /// Writes an event of any thread, in the stream that all threads share.
  template <trace::Type T, class... Fields>
  void record(Fields... fields) {
    if (trace::Session* const session = trace_.load(std::memory_order_acquire)) session->emit_shared<T>(fields...);
  }
  void trace_sent(const Bag& bag, const comm::Request& request);

  void start(Bag& bag, runtime::Task& task);
  void announce(Bag& bag, std::int64_t in_ns);
  runtime::FlowFailure* pack(Bag& bag, const runtime::Task& task);
  enum class Content : std::uint8_t { value, nothing, later };
  void post(Bag& bag, std::span<const comm::Recipient> recipients, Content content, std::span<const std::byte> header);
  void sent(Bag& bag);
  std::vector<std::byte> header_of(Bag& bag, runtime::Task& task, bool& is_empty);

  // From devices.
  std::uint32_t device_nodes(const runtime::Handle& handle) const;
  std::uint32_t device_nodes_for(const runtime::Handle& handle, comm::Rank to);
  bool leaves_from(runtime::NodeIndex node, Bag& bag);
  void bring_home(const Bag& bag, runtime::Task& task);
  void due(Bag& bag);
  void supply(Bag& bag, runtime::Task& task);
  bool is_cuda(runtime::NodeIndex node) const;

  // Into devices.
  runtime::NodeIndex device_for(const runtime::Handle& handle, const runtime::CodeletCore& reader) const;
  void await(Receive& receive);
  void choose_memory(Receive& receive);

  // In turns.
  bool expect_receive(const std::shared_ptr<Bag>& bag, comm::Recipient recipient);
  void note_posted(std::uint32_t rank, comm::Channel channel, std::uint64_t tag);
  void serve(Bag& bag, comm::Rank rank);
  void give_up(Bag& bag);
  void give_up_sends();
  void step(Bag& bag, runtime::Task& task);
  void advance(Bag& bag);
  void send_turn(Bag& bag, runtime::Task& task);
  void end_turn(Bag& bag);
  std::size_t arriving_bytes(const runtime::Handle& handle) const;
  void tell_posted(std::uint32_t source, const Address& address);
  void plan_arrival(Receive& receive, runtime::Task& task);
  void step(Receive& receive);
  void go_on(Receive& receive);

  void unpack_after(const std::shared_ptr<Receive>& receive, int priority);
  static runtime::NodeIndex node_of(const Receive& receive);
  bool post(Receive& receive, comm::ReceiveOptions options);
  void start(Receive& receive);
  void arrived(Receive& receive, const comm::Status& status);
  void released(Receive& receive);
  void failed(Receive& receive, const comm::Status& status);
  void end(Receive& receive, runtime::FlowFailure* failure);
  void forget(Receive& receive);
  void expect(comm::Rank source, comm::Channel channel, comm::Tag tag, std::uint64_t bytes, std::int64_t in_ns);
  void expect_no_more(Receive& receive);
  runtime::MessageWatch& watch() const noexcept { return core_.executor().messages(); }
  runtime::FlowFailure* job_failure();

  runtime::RuntimeCore& core_;
  comm::Endpoint& endpoint_;
  const TransferOptions options_;
  mutable std::mutex mutex_;
  std::function<void(const std::string&)> on_abort_;
  std::function<void(const std::string&)> on_loss_;
  std::vector<Receive*> lost_;  ///< receives that failed with a lost rank; `abort` ends them
  std::unordered_multimap<std::uint64_t, Receive*> waiting_;  ///< receives by tag
  static constexpr std::size_t kFewOrigins = 64;
  std::unordered_map<runtime::TaskId, Origin> origins_;       ///< origins of failures on other ranks
  std::size_t most_origins_ = kFewOrigins;  ///< number of origins at which `forget_origins` looks at them
  std::exception_ptr aborted_;
  runtime::FlowFailure* job_failure_ = nullptr;
  bool in_turns_ = false;
  comm::Channel notices_{0};
  PostedReceives posted_;
  /// Budget of arriving bytes. Outlives this by references of `Memory` and tasks. Made at once, since the job may fail
  /// before `send_in_turns`.
  const std::shared_ptr<CopyBudget> arriving_ = std::make_shared<CopyBudget>();
  /// Bytes that messages may take beside the budget, a larger datum alone; 0: no budget.
  std::size_t most_arriving_ = 0;
  std::atomic<trace::Session*> trace_{nullptr};  ///< the store releases the session, `record` acquires it
  std::uint32_t bags_ = 0;                       ///< number of bags opened so far; the submitting thread's
  std::atomic<std::uint64_t> received_{0};
  std::atomic<std::uint64_t> received_bytes_{0};
  std::atomic<std::uint64_t> sent_from_devices_{0};
  std::atomic<std::uint64_t> received_in_devices_{0};
};

}  // namespace tandem::dist
