// tandem/dist/flow_options.hpp: options of the flow of several ranks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/comm/mcast/tree.hpp"

namespace tandem::dist {

struct TransferOptions {
  bool broadcasts = true;                           ///< false: each recipient gets a plain message
  comm::TreeOptions tree = comm::TreeKind::ordered;
  std::int64_t hold_ns = 0;                         ///< time for which a broadcast waits for late recipients
  bool announce = true;  ///< workers announce a message to the endpoint when its writer begins
  bool incoming = true;                             ///< the endpoint announces arriving messages to the scheduler
  /// A message larger than this leaves from a device's memory, if its value is only there, and arrives in one, if its
  /// first reader runs there; SIZE_MAX: none.
  std::size_t device_message_bytes = 16 << 10;
  std::size_t carried_bytes = SIZE_MAX;  ///< larger messages arrive without their bytes, and objects stay as they are
  bool early_read = true;  ///< readers start when data has *arrived*; else when it is *released*
};

struct FlowOptions {
  TransferOptions transfers = {};
  bool idle_progress = true;          ///< idle workers poll the network; false: only its progress thread does
  std::size_t copy_bytes = SIZE_MAX;  ///< memory for received copies; the smallest value of all ranks counts
  bool prune = true;                  ///< loops may skip tasks that do not concern this rank; false: they submit all
  /// A wait in which no task ends for this time compares flows; 0: none does.
  std::int64_t compare_after_ns = 1'000'000'000;
  bool check_pruning = false;  ///< loops submit all tasks, and the flow checks those that they would have skipped
  std::int64_t trace_sync_every_ns = 1'000'000'000;  ///< on traced ranks: time between two clock points; 0: none
};

}  // namespace tandem::dist
