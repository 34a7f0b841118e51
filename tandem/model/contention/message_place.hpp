// tandem/model/contention/message_place.hpp: near which NUMA node a program serves its messages, and where their memory
// lies.
//
// With memory for messages on node d, let C(d) be the bandwidth of messages while all computing cores use memory, R(d)
// that of these cores, and R what they have without messages. A message of m bytes takes m / C(d), and meanwhile the
// share 1 - R(d) / R of the work is lost. So d is the node with the least
//
//   1 / C(d) + 1 / C(d) (1 - R(d) / R)                                                    (`cost_of_message`)
//
// among those on which messages have at least 98 % of the bandwidth that they have where memory would be without a
// choice: messages come first.
//
// Worked example: diablo of the thesis, 32 cores of the first socket, whose network card is at the second one. On node
// 0, C = 11.7 GB/s; on node 1, C = 21.7 GB/s, and the cores lose nothing: what messages bring should lie there, and is
// read from there by the cores once.
//
// Messages' bandwidth does not depend on where the thread is that serves them, but their latency does (section 5.3.3:
// 1.4 us near the network card, 1.7 us far from it, and twice as long beside many computing cores). A thread that
// shares its core with a kernel waits much longer than that. So it goes to a core where nothing computes if there is
// one, near the card if possible.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "tandem/model/contention/limit.hpp"
#include "tandem/model/contention/machine_file.hpp"

namespace tandem::model::contention {

/// A NUMA node, and what computes near it.
struct NodeUse {
  unsigned number = 0;      ///< the system's number, for the reason
  unsigned computing = 0;   ///< cores that compute on data of this node
  unsigned of_others = 0;   ///< of these, cores of other ranks of the host
  unsigned free_cores = 0;  ///< cores of the program on which nothing computes
  bool has_cores = true;    ///< memory without cores is never chosen: models do not know it
};

/// The known facts about a program and its host.
struct MessageSituation {
  std::span<const NodeUse> nodes;             ///< of the host, as models count them: those of the first socket first
  std::optional<unsigned> network_node = {};  ///< index in `nodes` of the network card's node
  const StoredMachine* machine = nullptr;     ///< null: there is no model
};

/// A choice, as indices in `MessageSituation::nodes`.
struct MessagePlace {
  std::optional<unsigned> thread = {};  ///< the thread has a free core near it; none: no choice
  std::optional<unsigned> memory = {};  ///< memory of received data; none: the system's choice
  /// The assumed choice of the system: the network card's node, if known, since the thread that touches memory first
  /// runs there; else the node with most computing cores of the program.
  unsigned usual_memory = 0;
  Bandwidths predicted = {};  ///< with the choice; zeros without a model
  Bandwidths usual = {};      ///< with `usual_memory`
  std::string reason = {};    ///< one line
};

/// Bandwidths of all computing cores together and of the network, with memory for messages on node `memory`. Each
/// node's cores are a group that uses data of its own node, as seen from its own socket; the network has the least of
/// what any group leaves it.
Bandwidths bandwidths_beside_messages(const StoredMachine& machine, std::span<const NodeUse> nodes, unsigned memory);

/// Chooses the node for memory that costs least by the model, of those where messages are at most 2 % slower than on
/// the usual one, which stays if the gain is less than 2 %. Without a model it is the network card's node; where
/// neither is known, or there is one node, nothing is chosen. O(nodes^2 cores).
MessagePlace choose_message_place(const MessageSituation& situation);

}  // namespace tandem::model::contention
