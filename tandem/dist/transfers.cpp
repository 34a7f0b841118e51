// tandem/dist/transfers.cpp: posting, completions, failures.
#include "tandem/dist/transfers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tandem/base/narrow.hpp"
#include "tandem/dist/bytes_of.hpp"
#include "tandem/dist/message_head.hpp"
#include "tandem/dist/receive.hpp"
#include "tandem/runtime/task/main_memory_codelet.hpp"
#include "tandem/runtime/worker/worker_team.hpp"

namespace tandem::dist {

using runtime::Task;

runtime::NodeIndex Transfers::node_of(const Receive& receive) {
  return runtime::ExternalEvents::node_of(*receive.event.readable.task);
}

void Transfers::Receive::unpack() const {
  if (packed.size() > transfers->options_.carried_bytes) return;
  const auto what_is_wrong = [this] {
    return fmt::format("the {} bytes that rank {} sent of {} cannot be read", packed.size(), source,
                       handle->described());
  };
  try {
    if (handle->object != nullptr) return handle->object->read(handle->home.pointer, packed);
    if (packed.size() != handle->shape.bytes())
      throw std::length_error(fmt::format("the array has {} bytes here", handle->shape.bytes()));
    handle->layout->unpack(packed.data(), handle->home.pointer);
  } catch (const std::exception& error) {
    std::throw_with_nested(SerializationError(what_is_wrong() + ": " + error.what()));
  } catch (...) {
    std::throw_with_nested(SerializationError(what_is_wrong()));
  }
}

namespace {

/// Messages that take less time are not announced. Those between ranks of one host take less.
constexpr std::int64_t kShortNs = 100'000;
/// Id of the job's failure, smaller than the ids of all kernels' failures.
constexpr runtime::TaskId kJobFailure = 1;

}  // namespace

Transfers::Transfers(runtime::RuntimeCore& core, comm::Endpoint& endpoint, const TransferOptions& options)
    : core_(core), endpoint_(endpoint), options_(options) {
  if (!options_.incoming) return;
  endpoint_.on_incoming([this](comm::Rank source, comm::Channel channel, comm::Tag tag, std::uint64_t bytes,
                               std::int64_t in_ns) {
    expect(source, channel, tag, bytes, in_ns);
  });
}

// --- sends

std::shared_ptr<Bag> Transfers::send(runtime::Handle& handle, const Address& address,
                                     std::span<const comm::Recipient> recipients, std::shared_ptr<PackedValue> packed,
                                     std::shared_ptr<comm::BroadcastPlan> plan) {
  auto bag = std::make_shared<Bag>();
  bag->transfers = this;
  bag->handle = &handle;
  bag->tag = address.tag;
  bag->channel = address.channel;
  bag->version = address.version;
  bag->exact = address.exact;
  bag->packed = std::move(packed);
  bag->plan = std::move(plan);
  if (!in_turns_) bag->recipients.assign(recipients.begin(), recipients.end());
  bag->itself = bag;
  Task& task = core_.events().begin("send " + handle.name, 1);
  task.accesses()[0].set(&handle, AccessMode::read);
  task.extra->context = bag.get();
  task.extra->on_ready = [](Task& ready, void* context) {
    auto& started = *static_cast<Bag*>(context);
    if (started.transfers->in_turns_) started.transfers->step(started, ready);
    else started.transfers->start(started, ready);
  };
  const std::uint32_t devices = device_nodes(handle);
  task.extra->asks = in_turns_ || devices != 0;
  runtime::ExternalEvents::may_read_in(task, devices);
  if (options_.announce && !in_turns_) {
    task.extra->on_expected = [](void* context, std::int64_t in_ns) {
      auto& expected = *static_cast<Bag*>(context);
      expected.transfers->announce(expected, in_ns);
    };
  }
  bag->number = ++bags_;
  bag->data_number = handle.number;
  trace_submitter<trace::Type::bag_opened>(bag->number, handle.number, bag->version);
  for (const comm::Recipient& recipient : recipients) {
    if (in_turns_) expect_receive(bag, recipient);
    else trace_submitter<trace::Type::bag_joined>(bag->number, recipient.rank.value(), recipient.priority);
  }
  core_.events().submit(task, false, bag->event);
  return bag;
}

bool Transfers::add(const std::shared_ptr<Bag>& to, comm::Recipient recipient) {
  if (in_turns_) return expect_receive(to, recipient);
  Bag& bag = *to;
  const auto joined = [&] {
    trace_submitter<trace::Type::bag_joined>(bag.number, recipient.rank.value(), recipient.priority);
    return true;
  };
  const std::lock_guard guard(bag.lock);
  if (bag.started) return bag.posted.valid() && endpoint_.append(bag.posted, recipient) && joined();
  const auto known = std::find_if(bag.recipients.begin(), bag.recipients.end(),
                                  [&](const comm::Recipient& other) { return other.rank == recipient.rank; });
  if (known != bag.recipients.end()) return false;
  bag.recipients.push_back(recipient);
  return joined();
}

void Transfers::raise(Bag& bag, comm::Recipient recipient) {
  const std::lock_guard guard(bag.lock);
  for (std::vector<comm::Recipient>* const recipients : {&bag.recipients, &bag.posted_at})
    for (comm::Recipient& known : *recipients)
      if (known.rank == recipient.rank) known.priority = std::max(known.priority, recipient.priority);
}

/// Announces that the bag's writer runs, and will end in so many ns.
void Transfers::announce(Bag& bag, std::int64_t in_ns) {
  const std::lock_guard guard(bag.lock);
  if (bag.started || bag.announced != 0 || bag.recipients.empty()) return;
  int priority = INT_MIN;
  for (const comm::Recipient& recipient : bag.recipients) priority = std::max(priority, recipient.priority);
  bag.announced = endpoint_.announce(bag.recipients.front().rank, bag.handle->travel_bytes(), in_ns, priority);
}

/// Header of a value. `is_empty`: there is no value, because of a failure.
std::vector<std::byte> Transfers::header_of(Bag& bag, Task& task, bool& is_empty) {
  MessageHead head{.version = bag.version, .flags = bag.exact ? 0 : MessageHead::kLowerBound};
  std::vector<std::byte> header(MessageHead::kShort);
  runtime::FlowFailure* failure = core_.executor().why_cancelled(task);
  if (failure == nullptr && bag.packed != nullptr) failure = pack(bag, task);
  if (failure != nullptr) {
    head.flags |= MessageHead::kFailed;
    head.failure = failure->id;
    const Origin origin = origin_of(*failure);
    head.rank = origin.rank;
    const std::size_t text = std::min(origin.description.size(), comm::Endpoint::max_header_bytes - sizeof head);
    header.resize(sizeof head + text);
    std::memcpy(header.data() + sizeof head, origin.description.data(), text);
  }
  std::memcpy(header.data(), &head, std::min(header.size(), sizeof head));
  is_empty = failure != nullptr;
  return header;
}

void Transfers::start(Bag& bag, Task& task) {
  if (bag.is_due) return supply(bag, task);
  bool is_empty = false;
  const std::vector<std::byte> header = header_of(bag, task, is_empty);
  const runtime::NodeIndex node = is_empty ? 0 : runtime::ExternalEvents::node_of(task);
  if (node != 0 && !leaves_from(node, bag)) return bring_home(bag, task);
  std::vector<comm::Recipient> recipients;
  std::uint64_t announced = 0;
  {
    const std::lock_guard guard(bag.lock);
    bag.started = node == 0 || bag.recipients.size() == 1;
    if (bag.started) recipients = std::move(bag.recipients);
    announced = bag.announced;
  }
  if (recipients.empty()) return bring_home(bag, task);  // another recipient has joined
  const comm::Rank first = recipients.front().rank;
  if (options_.announce && endpoint_.uses_announcements(first)) core_.workers().report_expected_ends();
  post(bag, recipients, is_empty ? Content::nothing : node != 0 ? Content::later : Content::value, header);
  if (announced != 0) endpoint_.withdraw(first, announced);
}

/// Writes the object to bytes. Returns the failure, or null.
runtime::FlowFailure* Transfers::pack(Bag& bag, const Task& task) {
  std::string why;
  std::exception_ptr exception;
  try {
    try {
      bag.bytes = bag.packed->acquire(*bag.handle);
      bag.holds_bytes = true;
      return nullptr;
    } catch (const std::exception& error) {
      why = fmt::format("{} cannot be written to a message: {}", bag.handle->described(), error.what());
      std::throw_with_nested(SerializationError(why));
    } catch (...) {
      why = fmt::format("{} cannot be written to a message", bag.handle->described());
      std::throw_with_nested(SerializationError(why));
    }
  } catch (...) {
    exception = std::current_exception();
  }
  return core_.executor().failures().add(task.id, exception, why);
}

/// Posts messages; `later`: to one recipient, a plain message whose bytes follow when they are due.
void Transfers::post(Bag& bag, std::span<const comm::Recipient> recipients, Content content,
                     std::span<const std::byte> header) {
  const bool empty = content == Content::nothing, later = content == Content::later;
  const auto buffer = [&] {
    if (empty) return comm::SendBuffer();
    return bag.packed != nullptr ? comm::SendBuffer(bag.bytes) : bytes_of(*bag.handle, 0);
  };
  comm::Callbacks ended{.released = [&bag](const comm::Status&) { bag.transfers->sent(bag); },
                        .failed = [&bag](const comm::Status&) { bag.transfers->sent(bag); }};
  // A message may end before this thread goes on: `alive` keeps the bag until all are counted.
  const std::shared_ptr<Bag> alive = bag.itself;
  const std::int64_t hold_ns = in_turns_ ? 0 : options_.hold_ns;
  const bool broadcast = !later && options_.broadcasts && (recipients.size() > 1 || hold_ns > 0);
  const bool matters = !empty && watch().matters(bag.handle->travel_bytes());
  if (matters || later) [[unlikely]] {
    const int priority = std::ranges::max_element(recipients, {}, &comm::Recipient::priority)->priority;
    const auto begin = [&bag, priority, matters, later] {
      if (matters) bag.transfers->watch().begin_data(bag.watched, bag.handle->travel_bytes(), priority);
      if (later) bag.transfers->due(bag);
    };
    if (broadcast) begin();
    else ended.leaving = begin;
  }
  watch().load().begin_send(bag.handle->travel_bytes());
  // In turns this thread ends the turn, if the messages have ended before it goes on.
  const unsigned messages = broadcast ? 1 : base::narrow<unsigned>(recipients.size());
  bag.under_way.store(messages + (in_turns_ ? 1 : 0), std::memory_order_relaxed);
  comm::Request posted;
  if (broadcast) {
    const std::lock_guard guard(bag.lock);
    posted = bag.posted = endpoint_.mcast(recipients, comm::Tag(bag.tag), buffer(),
                                          {.channel = bag.channel, .tree = options_.tree, .hold_ns = hold_ns,
                                           .header = header, .callbacks = ended, .plan = in_turns_ ? nullptr : bag.plan});
  } else if (later) {
    const comm::Recipient& recipient = recipients.front();
    const std::lock_guard guard(bag.lock);  // `supply` may run before this thread goes on
    posted = bag.late = endpoint_.isend_later(
        recipient.rank, comm::Tag(bag.tag), bag.handle->shape.bytes(),
        {.channel = bag.channel, .priority = recipient.priority, .header = header, .callbacks = ended});
  } else {
    for (const comm::Recipient& recipient : recipients) {
      if (posted.valid()) trace_sent(*alive, posted);
      posted = endpoint_.isend(
          recipient.rank, comm::Tag(bag.tag), buffer(),
          {.channel = bag.channel, .priority = recipient.priority, .header = header, .callbacks = ended});
    }
  }
  trace_sent(*alive, posted);
  if (in_turns_) {
    alive->last_request = posted.trace_number();
    return sent(*alive);
  }
  record<trace::Type::bag_closed>(alive->number, recipients.size(), posted.trace_number());
}

/// Traces a send by numbers alone: the send may have ended, and the data may be gone.
void Transfers::trace_sent(const Bag& bag, const comm::Request& request) {
  record<trace::Type::data_sent>(bag.data_number, bag.version, bag.event.readable.id, request.trace_number());
}

/// Ends one message of the bag, successful or not. A message whose recipient is gone is no failure here: the end of
/// that rank is reported otherwise.
void Transfers::sent(Bag& bag) {
  if (bag.under_way.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  watch().end_data(bag.watched);
  watch().load().end_send(bag.handle->travel_bytes());
  if (in_turns_) return end_turn(bag);
  const std::shared_ptr<Bag> last = std::move(bag.itself);
  if (last->holds_bytes) last->packed->release();
  core_.events().complete_read(last->event.readable);
}

// --- receives

void Transfers::receive(runtime::Handle& handle, const Address& address, std::uint32_t source,
                        const runtime::TaskRef& after, int priority, const runtime::CodeletCore* reader) {
  const runtime::NodeIndex wanted =
      reader != nullptr && !in_turns_ ? device_for(handle, *reader) : runtime::NodeIndex{0};
  const auto receive = std::make_shared<Receive>();
  receive->transfers = this;
  receive->handle = &handle;
  receive->address = address;
  receive->source = source;
  receive->itself = receive;
  Task& task = core_.events().begin("receive " + handle.name, 1);
  task.accesses()[0].set(&handle, AccessMode::write);
  task.extra->context = receive.get();
  task.extra->on_ready = [](Task&, void* context) {
    auto& started = *static_cast<Receive*>(context);
    if (started.transfers->in_turns_) started.transfers->step(started);
    else if (started.wanted != 0) started.transfers->await(started);
    else started.transfers->start(started);
  };
  if (in_turns_) plan_arrival(*receive, task);
  receive->wanted = wanted;
  if (wanted != 0) task.extra->memory = runtime::EventMemory::later;
  // An object or an array has memory of its own, so its next writer need not wait until the message was forwarded.
  trace_submitter<trace::Type::data_expected>(handle.number, address.version, task.id, source);
  try {
    core_.events().submit(task, !handle.travels_packed() && !in_turns_, receive->event, after);
  } catch (...) {  // it fits into no budget
    lift_bound();
    receive->itself.reset();
    throw;
  }
  if (handle.travels_packed()) unpack_after(receive, priority);
}

/// Submits the task that unpacks the message; its values are the receive, which lives as long as the task or the
/// message needs it.
void Transfers::unpack_after(const std::shared_ptr<Receive>& receive, int priority) {
  using Values = std::shared_ptr<Receive>;
  static constexpr runtime::TaskOps ops{
      .invoke = [](runtime::KernelCall& call) { (*static_cast<Values*>(call.task.values()))->unpack(); },
      .destroy_values = [](Task& task) noexcept { static_cast<Values*>(task.values())->~Values(); },
      .always = true,
      .value_bytes = sizeof(Values),
      .value_alignment = alignof(Values),
      .serves = true};
  static const auto codelet = runtime::make_main_memory_codelet("read an object");
  Task& task = core_.submission().begin(codelet, ops, 1);
  new (task.values()) Values(receive);
  task.accesses()[0].set(receive->handle, AccessMode::read_write);
  task.priority = priority;
  core_.submission().submit(task);
}

/// In turns: decides from where the memory of the receive comes, at the receive's place in the flow.
void Transfers::plan_arrival(Receive& receive, Task& task) {
  task.extra->asks = true;
  task.extra->memory = runtime::EventMemory::beside;
  const std::size_t bytes = receive.address.version != kAnyVersion ? arriving_bytes(*receive.handle) : 0;
  if (bytes == 0) return;
  if (receive.handle->travels_packed()) {
    receive.part_of = arriving_;
    receive.part = bytes;
  } else {
    task.extra->memory = runtime::EventMemory::counted;
  }
  if (arriving_->try_reserve(bytes)) return;
  receive.waits.store(2, std::memory_order_relaxed);
  arriving_->reserve_later(bytes, [this, &receive] { go_on(receive); });
}

/// Called when the receive's predecessors have ended, or its memory is there.
void Transfers::step(Receive& receive) {
  if (receive.asked) start(receive);
  else go_on(receive);
}

void Transfers::go_on(Receive& receive) {
  if (receive.waits.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  receive.asked = true;
  core_.events().ask(receive.event.readable);
}

/// Posts the receive, or, if it awaits an announcement, a probe. False: the job has failed, and the receive has ended.
bool Transfers::post(Receive& receive, comm::ReceiveOptions options) {
  {
    // The lock is held while it is posted, so that neither its end nor `abort` comes between the post and the entry in
    // `waiting_`.
    const std::lock_guard guard(mutex_);
    if (aborted_ == nullptr) {
      options.channel = receive.address.channel;
      options.callbacks.failed = [&receive](const comm::Status& status) { receive.transfers->failed(receive, status); };
      const comm::Rank source(receive.source);
      const comm::Tag tag(receive.address.tag);
      if (receive.wanted != 0) receive.request = endpoint_.iprobe(source, tag, options);
      else if (receive.handle->travels_packed()) receive.request = endpoint_.irecv_owned(source, tag, options);
      else receive.request = endpoint_.irecv(source, tag, room_of(*receive.handle, node_of(receive)), options);
      if (!std::exchange(receive.is_known, true)) {
        waiting_.emplace(receive.address.tag, &receive);
        watch().load().begin_receive(receive.handle->travel_bytes());
      }
      return true;
    }
  }
  forget(receive);
  end(receive, job_failure());
  return false;
}

void Transfers::start(Receive& receive) {
  const std::uint32_t from = receive.source;
  const Address address = receive.address;
  const bool is_posted = post(
      receive,
      {.memory = is_cuda(node_of(receive)) ? comm::BufferMemory::cuda : comm::BufferMemory::host,
       .callbacks = {.arrived = [&receive](const comm::Status& status) { receive.transfers->arrived(receive, status); },
                     .released = [&receive](const comm::Status&) { receive.transfers->released(receive); }}});
  if (is_posted && in_turns_) tell_posted(from, address);  // the receive may have ended
}

void Transfers::arrived(Receive& receive, const comm::Status& status) {
  forget(receive);
  watch().end_data(receive.watched);
  received_.fetch_add(1, std::memory_order_relaxed);
  received_bytes_.fetch_add(status.bytes, std::memory_order_relaxed);
  if (node_of(receive) != 0) received_in_devices_.fetch_add(1, std::memory_order_relaxed);
  const std::optional<MessageHead> read = MessageHead::read(status.header);
  const MessageHead head = read.value_or(MessageHead{});
  const runtime::Handle& handle = *receive.handle;
  const std::size_t wanted = handle.shape.bytes();
  const Address& address = receive.address;
  record<trace::Type::data_received>(handle.number, head.version, receive.event.readable.id,
                                     receive.request.trace_number());
  if (!read) {
    abort(fmt::format("rank {} sent data '{}' with a header of {} bytes, which is cut off: do all ranks run one build?",
                      receive.source, handle.name, status.header.size()));
    receive.failure = job_failure();
  } else if (head.failed()) {
    Origin origin{base::saturated<std::uint32_t>(head.rank), std::string(MessageHead::description(status.header))};
    const std::string said = origin.told();
    {
      const std::lock_guard guard(mutex_);
      origins_.try_emplace(head.failure, std::move(origin));
    }
    receive.failure = core_.executor().failures().known_or(head.failure, [&](std::string& description) {
      description = said;
      return std::make_exception_ptr(RemoteFailure(said));
    });
  } else if (address.version != kAnyVersion && !head.may_be(address.version, address.exact)) {
    const std::string text = fmt::format(
        "ranks go through different flows: rank {} sent version {} of data '{}' where rank {} expects version {}; all "
        "ranks must "
        "submit the same tasks in the same order",
        receive.source, head.version, handle.name, endpoint_.rank().value(), address.version);
    abort(text);
    receive.failure = job_failure();
  } else if (handle.travels_packed()) {
    receive.packed = status.owned;
  } else if (status.bytes != wanted) {
    const std::string text = fmt::format(
        "rank {} sent {} bytes of data '{}', which has {} bytes on rank {}; all ranks must register the same shape",
        receive.source, status.bytes, handle.name, wanted, endpoint_.rank().value());
    abort(text);
    receive.failure = job_failure();
  }
  if (!options_.early_read || in_turns_) return;
  receive.readable = true;
  if (receive.failure != nullptr) core_.events().complete_failed(receive.event.readable, *receive.failure);
  else core_.events().complete(receive.event.readable);
  expect_no_more(receive);
}

void Transfers::released(Receive& receive) { end(receive, receive.failure); }

void Transfers::failed(Receive& receive, const comm::Status& status) {
  forget(receive);
  if (receive.failure != nullptr || status.ending == comm::Ending::cancelled)
    return end(receive, receive.failure != nullptr ? receive.failure : job_failure());
  if (status.ending == comm::Ending::truncated) {
    abort(fmt::format(
        "rank {} sent {} bytes of data '{}', which has {} bytes on rank {}; all ranks must register the same shape",
        receive.source, status.bytes, receive.handle->name, receive.handle->shape.bytes(), endpoint_.rank().value()));
    return end(receive, job_failure());
  }
  const bool dead = status.ending == comm::Ending::peer_dead;
  const std::string text =
      fmt::format("rank {} {} before it sent data '{}' to rank {}", dead ? status.culprit.value() : receive.source,
                  dead ? "died" : "ended", receive.handle->name, endpoint_.rank().value());
  bool reason_known = false;
  {
    const std::lock_guard guard(mutex_);
    reason_known = aborted_ != nullptr;
    if (!reason_known) lost_.push_back(&receive);  // `abort` ends it
  }
  if (reason_known) end(receive, job_failure());
  else on_loss_(text);
}

void Transfers::end(Receive& receive, runtime::FlowFailure* failure) {
  const std::shared_ptr<Receive> last = std::move(receive.itself);
  watch().end_data(last->watched);
  if (!last->readable) {
    if (failure != nullptr) core_.events().complete_failed(last->event.readable, *failure);
    else core_.events().complete(last->event.readable);
  }
  if (last->event.released.task != nullptr) core_.events().complete(last->event.released);
  expect_no_more(*last);
}

void Transfers::forget(Receive& receive) {
  const std::lock_guard guard(mutex_);
  const auto [first, last] = waiting_.equal_range(receive.address.tag);
  const auto found = std::find_if(first, last, [&](const auto& known) { return known.second == &receive; });
  if (found == last) return;
  waiting_.erase(found);
  watch().load().end_receive(receive.handle->travel_bytes());
}

/// Called when a message begins to arrive. If it is long, the scheduler expects its end. Its receive cannot end
/// meanwhile, since the endpoint makes one callback at a time.
void Transfers::expect(comm::Rank source, comm::Channel channel, comm::Tag tag, std::uint64_t bytes,
                       std::int64_t in_ns) {
  if (in_ns < kShortNs) return;
  Receive* receive = nullptr;
  {
    const std::lock_guard guard(mutex_);
    const auto [first, last] = waiting_.equal_range(tag.value());
    const auto found = std::find_if(first, last, [&](const auto& known) {
      const Receive& one = *known.second;
      return one.source == source.value() && one.address.channel == channel && one.expected == 0 &&
             (one.handle->travels_packed() || one.handle->shape.bytes() == bytes);
    });
    if (found != last) receive = found->second;
  }
  if (receive == nullptr) return;
  receive->expected = core_.events().expect_end(receive->event.readable, in_ns);
  if (watch().matters(bytes)) [[unlikely]]
    watch().begin_data(receive->watched, bytes, core_.events().urgency_of(receive->event.readable));
}

/// Called after the tasks that wait for the receive were released.
void Transfers::expect_no_more(Receive& receive) {
  if (const std::uint64_t expected = std::exchange(receive.expected, 0); expected != 0)
    core_.events().expect_no_more(expected);
}

bool Transfers::abort(const std::string& text) {
  std::vector<comm::Request> waiting;
  std::vector<Receive*> lost;
  {
    const std::lock_guard guard(mutex_);
    if (aborted_ != nullptr) return false;
    aborted_ = std::make_exception_ptr(JobError(text));
    job_failure_ = core_.executor().failures().add_for_good(kJobFailure, aborted_, text);
    core_.executor().failures().note_thrown(*job_failure_, UINT64_MAX);  // the flow reports it
    for (const auto& [tag, receive] : waiting_) waiting.push_back(receive->request);
    lost = std::exchange(lost_, {});
  }
  for (const comm::Request& request : waiting) endpoint_.cancel(request);
  give_up_sends();
  lift_bound();
  for (Receive* receive : lost) end(*receive, job_failure());
  if (on_abort_) on_abort_(text);
  return true;
}

std::exception_ptr Transfers::aborted() const {
  const std::lock_guard guard(mutex_);
  return aborted_;
}

std::string Transfers::Origin::told() const { return fmt::format("on rank {}, {}", rank, description); }

Transfers::Origin Transfers::origin_of(const runtime::FlowFailure& failure) const {
  const std::lock_guard guard(mutex_);
  const auto known = origins_.find(failure.id);
  return known != origins_.end() ? known->second : Origin{endpoint_.rank().value(), failure.description};
}

/// Forgets origins, once there are many. Nothing is under way.
void Transfers::forget_origins() {
  const std::lock_guard guard(mutex_);
  if (origins_.size() < most_origins_) return;
  runtime::FailureLog& known = core_.executor().failures();
  std::erase_if(origins_, [&](const auto& origin) { return known.find(origin.first) == nullptr; });
  most_origins_ = kFewOrigins + 2 * origins_.size();
}

std::vector<Transfers::Expected> Transfers::expected() const {
  const std::lock_guard guard(mutex_);
  std::vector<Expected> all;
  for (const auto& [tag, receive] : waiting_)
    all.push_back({receive->source, receive->handle->name, receive->address.version, tag});
  return all;
}

bool Transfers::check_invariants() const {
  bool is_done = arriving_->waiting() == 0 && watch().load().is_empty();
  posted_.for_each_waiting([&](const PostedReceives::Key&, Bag&) { is_done = false; });
  const std::lock_guard guard(mutex_);
  return is_done && waiting_.empty() && lost_.empty();
}

runtime::FlowFailure* Transfers::job_failure() {
  const std::lock_guard guard(mutex_);
  return job_failure_;
}

}  // namespace tandem::dist
