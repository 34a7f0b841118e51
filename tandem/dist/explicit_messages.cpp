// tandem/dist/explicit_messages.cpp: joins sends of one value.
#include "tandem/dist/explicit_messages.hpp"

#include "tandem/dist/data_table.hpp"
#include "tandem/dist/datum.hpp"
#include "tandem/dist/place.hpp"
#include "tandem/dist/transfers.hpp"

namespace tandem::dist {

using runtime::Handle;

ExplicitMessages::ExplicitMessages(comm::Endpoint& endpoint, Transfers& transfers, DataTable& table)
    : transfers_(transfers), table_(table), channel_(endpoint.channel("tandem.dist.explicit")) {}

void ExplicitMessages::send(Handle& handle, std::span<const comm::Recipient> recipients, std::uint64_t tag,
                            const std::shared_ptr<comm::BroadcastPlan>& plan) {
  Datum& datum = table_.datum_of(handle);
  Datum::ExplicitSend& last = datum.explicit_send;
  const std::uint32_t version = place_of(handle).version;
  const bool same_value = last.bag != nullptr && last.bag->tag == tag && last.version == version;
  unserved_.clear();
  for (const comm::Recipient& to : recipients) {
    const bool joins = same_value && !last.recipients.contains(to.rank.value()) && transfers_.add(last.bag, to);
    if (joins) last.recipients.add(to.rank.value());
    else unserved_.push_back(to);
  }
  if (unserved_.empty()) return;
  last.bag = transfers_.send(handle, {tag, channel_, Transfers::kAnyVersion}, unserved_, datum.packed(), plan);
  last.version = version;
  last.recipients.clear();
  for (const comm::Recipient& to : unserved_) last.recipients.add(to.rank.value());
}

void ExplicitMessages::receive(Handle& handle, std::uint32_t from, std::uint64_t tag) {
  Place& place = place_of(handle);
  place.unwritten = false;
  if (place.datum != nullptr) place.datum->explicit_send.bag.reset();
  transfers_.receive(handle, {tag, channel_, Transfers::kAnyVersion}, from, {}, 0);
}

}  // namespace tandem::dist
