// tandem/dist/transfers_in_turns.cpp: sends and receives when main memory of some rank has a budget.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

#include "tandem/dist/agreement.hpp"
#include "tandem/base/narrow.hpp"
#include "tandem/dist/transfers.hpp"

namespace tandem::dist {

using runtime::Task;

namespace {

/// Messages may take main memory's budget divided by this, beside the budget.
constexpr std::size_t kArrivingPart = 8;

bool is_known(const std::vector<comm::Recipient>& recipients, comm::Rank rank) {
  return std::any_of(recipients.begin(), recipients.end(),
                     [&](const comm::Recipient& known) { return known.rank == rank; });
}

}  // namespace

void Transfers::send_in_turns() {
  in_turns_ = true;
  notices_ = endpoint_.channel("tandem.dist.posted");
  endpoint_.register_rpc(notices_, {.arrived = [](const comm::RpcArrival&) { return comm::RpcAnswer{}; },
                                    .done = [this](const comm::Status& status) {
                                      std::uint32_t channel = 0;
                                      if (status.ending != comm::Ending::done || status.header.size() != sizeof channel)
                                        return;
                                      std::memcpy(&channel, status.header.data(), sizeof channel);
                                      note_posted(status.source.value(), comm::Channel(channel), status.tag.value());
                                    }});
  runtime::Memory& memory = core_.memory();
  if (!memory.is_limited(0)) return;
  most_arriving_ = std::max<std::size_t>(memory.room().budget(0) / kArrivingPart, 1);
  arriving_->set(most_arriving_);
  memory.on_settled(
      [arriving = arriving_, most = most_arriving_](std::size_t bytes) { arriving->give_back(std::min(bytes, most)); });
}

void Transfers::lift_bound() { arriving_->lift(); }

// --- sends

/// Adds a recipient. False: the bag has ended, or has the recipient.
bool Transfers::expect_receive(const std::shared_ptr<Bag>& bag, comm::Recipient recipient) {
  {
    const std::lock_guard guard(bag->lock);
    if (bag->ended || is_known(bag->recipients, recipient.rank) || is_known(bag->posted_at, recipient.rank))
      return false;
    bag->recipients.push_back(recipient);
    trace_submitter<trace::Type::bag_joined>(bag->number, recipient.rank.value(), recipient.priority);
  }
  switch (posted_.expect({recipient.rank.value(), bag->channel.value(), bag->tag}, bag)) {
    case PostedReceives::Answer::later: break;
    case PostedReceives::Answer::posted: serve(*bag, recipient.rank); break;
    case PostedReceives::Answer::never: give_up(*bag); break;
  }
  return true;
}

void Transfers::note_posted(std::uint32_t rank, comm::Channel channel, std::uint64_t tag) {
  if (const std::shared_ptr<Bag> bag = posted_.note({rank, channel.value(), tag})) serve(*bag, comm::Rank(rank));
}

/// Serves `rank`, whose receive is posted.
void Transfers::serve(Bag& bag, comm::Rank rank) {
  {
    const std::lock_guard guard(bag.lock);
    const auto known = std::find_if(bag.recipients.begin(), bag.recipients.end(),
                                    [&](const comm::Recipient& one) { return one.rank == rank; });
    if (known != bag.recipients.end()) {
      bag.posted_at.push_back(*known);
      bag.recipients.erase(known);
    }
  }
  advance(bag);
}

/// Ends a bag after a failure of the job: the waiting receives will not be posted.
void Transfers::give_up(Bag& bag) {
  {
    const std::lock_guard guard(bag.lock);
    bag.recipients.clear();
  }
  advance(bag);
}

void Transfers::give_up_sends() {
  for (const std::shared_ptr<Bag>& bag : posted_.end()) give_up(*bag);
}

/// Called when the event is ready, or has the memory for which a turn has asked.
void Transfers::step(Bag& bag, Task& task) {
  const std::shared_ptr<Bag> alive = bag.itself;  // once started, a thread that hears of a posted receive may end it
  bool begins = false;
  {
    const std::lock_guard guard(bag.lock);
    begins = !std::exchange(bag.started, true);
  }
  if (begins) advance(bag);
  else send_turn(bag, task);
}

/// Begins the next turn, or ends the bag, if it is time. The caller keeps the bag.
void Transfers::advance(Bag& bag) {
  std::shared_ptr<Bag> last;
  runtime::TaskRef event;
  std::optional<comm::Rank> only;  ///< recipient of this turn, if only one
  {
    const std::lock_guard guard(bag.lock);
    if (!bag.started || bag.in_turn || bag.ended) return;
    event = bag.event.readable;
    if (!bag.posted_at.empty()) {
      bag.in_turn = true;
      if (bag.posted_at.size() == 1) only = bag.posted_at.front().rank;
    } else if (bag.recipients.empty()) {
      bag.ended = true;
      last = std::move(bag.itself);
    } else {
      return;
    }
  }
  if (last == nullptr) {
    runtime::ExternalEvents::may_read_in(*event.task, only ? device_nodes_for(*bag.handle, *only) : 0);
    return core_.events().ask(event);
  }
  record<trace::Type::bag_closed>(last->number, last->served, last->last_request);
  core_.events().complete_read(event);
}

void Transfers::send_turn(Bag& bag, Task& task) {
  const bool from_device = runtime::ExternalEvents::node_of(task) != 0;
  std::vector<comm::Recipient> recipients;
  {
    const std::lock_guard guard(bag.lock);
    // One message leaves from a device's memory: recipients that have joined meanwhile have the next turn.
    const auto end = from_device ? bag.posted_at.begin() + 1 : bag.posted_at.end();
    recipients.assign(bag.posted_at.begin(), end);
    bag.posted_at.erase(bag.posted_at.begin(), end);
  }
  bag.served += base::narrow<std::uint32_t>(recipients.size());
  bool is_empty = false;
  const std::vector<std::byte> header = header_of(bag, task, is_empty);
  post(bag, recipients, is_empty ? Content::nothing : from_device ? Content::later : Content::value, header);
}

/// Ends a turn, after its last message has ended.
void Transfers::end_turn(Bag& bag) {
  const std::shared_ptr<Bag> alive = bag.itself;
  if (std::exchange(bag.holds_bytes, false)) bag.packed->release();
  core_.events().give_back(bag.event.readable);
  {
    const std::lock_guard guard(bag.lock);
    bag.in_turn = false;
  }
  advance(bag);
}

std::string Transfers::explain_unsent() const {
  constexpr std::size_t most_listed = 8;
  std::string text;
  std::size_t count = 0;
  posted_.for_each_waiting([&](const PostedReceives::Key& key, Bag& bag) {
    const std::lock_guard guard(bag.lock);
    if (!bag.started || ++count > most_listed) return;
    text += fmt::format("\n  rank {} has data '{}' for rank {}, which has not posted its receive",
                        endpoint_.rank().value(), bag.handle->name, key.rank);
  });
  if (count > most_listed) text += fmt::format("\n  ... and {} more messages", count - most_listed);
  return text;
}

// --- receives

/// Bytes that a message into `handle` takes beside the budget, if they are counted.
std::size_t Transfers::arriving_bytes(const runtime::Handle& handle) const {
  if (most_arriving_ == 0) return 0;
  const std::size_t bytes = handle.travels_packed()            ? handle.travel_bytes()
                            : runtime::Room::counts(handle, 0) ? handle.shape.bytes()
                                                               : 0;
  return std::min(bytes, most_arriving_);
}

/// Tells the source that the receive is posted, so that it may send.
void Transfers::tell_posted(std::uint32_t source, const Address& address) {
  std::array<std::byte, sizeof(std::uint32_t)> header;
  const std::uint32_t channel = address.channel.value();
  std::memcpy(header.data(), &channel, sizeof channel);
  endpoint_.isend(comm::Rank(source), comm::Tag(address.tag), comm::SendBuffer(),
                  {.channel = notices_, .priority = Agreement::kPriority, .header = header});
}

}  // namespace tandem::dist
