// tandem/dist/explicit_messages.hpp: explicit `send` and `receive` between data of two ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tandem/comm/endpoint.hpp"

namespace tandem::runtime {
class Handle;
}

namespace tandem::dist {

class DataTable;
class Transfers;

/// Messages that the program matches itself, in order per pair of ranks and tag. Like other transfers they are nodes of
/// the local graph; they change neither owner nor holder. Sends of one value with one tag become one broadcast while
/// the value is not ready.
///
/// Threads: the submitting thread.
class ExplicitMessages {
 public:
  ExplicitMessages(comm::Endpoint& endpoint, Transfers& transfers, DataTable& table);

  /// `plan`: shared by equal sends, or null.
  void send(runtime::Handle& handle, std::span<const comm::Recipient> recipients, std::uint64_t tag,
            const std::shared_ptr<comm::BroadcastPlan>& plan);
  void receive(runtime::Handle& handle, std::uint32_t from, std::uint64_t tag);

 private:
  Transfers& transfers_;
  DataTable& table_;
  const comm::Channel channel_;
  std::vector<comm::Recipient> unserved_;  ///< recipients of the present send; a member to keep its memory
};

}  // namespace tandem::dist
