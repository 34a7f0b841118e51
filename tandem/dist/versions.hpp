// tandem/dist/versions.hpp: versions of data in the flow: the holder of the current one, and its recipients.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tandem/comm/buffer.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/dist/flow_statistics.hpp"
#include "tandem/dist/recorded_operation.hpp"

namespace tandem::runtime {
class Handle;
class RuntimeCore;
}

namespace tandem::dist {

class Copies;
class DataTable;
class Datum;
struct Place;
class Pruning;
class Transfers;

/// Keeps `Place` of all data in the order of the flow, and derives from it what this rank sends and receives.
///
/// Protocol. A task sees a version: its holder sends it to the executor, unless it has sent that version there before;
/// the executor receives it, unless it has a copy (`bring`). A task writes: every rank counts the version, the executor
/// holds the data from here on, and other ranks drop what they have (`overwrite`). All ranks make the same calls in the
/// same order, so a send on one rank meets a receive on the other without any request.
///
/// Threads: the submitting thread.
class Versions {
 public:
  Versions(runtime::RuntimeCore& core, comm::Endpoint& endpoint, Transfers& transfers, DataTable& table, Copies& copies,
           const Pruning& pruning);

  /// Why the executor gets the current version: as a copy, or to hold it from here on.
  enum class Purpose { copy, possession };
  /// Brings the data to a task that sees it on `executor`, or on all ranks (`kEverywhere`). `reader`: its codelet;
  /// null: not known.
  void bring(runtime::Handle& handle, std::uint32_t executor, Purpose purpose, int priority,
             const runtime::CodeletCore* reader = nullptr);
  /// Sends a recorded version to all its readers at once.
  void bring_recorded(std::span<RecordedSending> sendings);

  /// Notes that a task on `executor` writes the data, which counts as so many versions.
  void overwrite(runtime::Handle& handle, std::uint32_t executor, std::uint32_t versions = 1);
  /// Notes that the task writes the data afresh here, and another rank drops its value. If the flow is cancelled
  /// between, there is none.
  void mark_lost(runtime::Handle& handle);
  /// Drops all copies of the current version; its holder sends it again.
  void flush(runtime::Handle& handle);

  /// Takes the list of data that another rank than its owner may hold, in the order of registration. The caller unlists
  /// each.
  std::vector<runtime::Handle*> take_away_list();
  /// Removes the data from the list. True: it was listed, and another rank than its owner holds it.
  bool unlist_away(runtime::Handle& handle);
  /// Sends the value from its holder to its owner, as if a task there wrote it.
  void take_home(runtime::Handle& handle);

  /// Called when the runtime forgets the data.
  void forget(runtime::Handle& handle);
  /// At a wait, when all tasks have ended and all data is at home: false, if the sends of the current versions do not
  /// agree.
  bool check_invariants() const;
  /// Adds the sends so far, those of current versions included.
  void add_to(FlowStatistics& statistics) const;

 private:
  void add_recipients(std::uint32_t executor, int priority);
  void send(runtime::Handle& handle, const std::shared_ptr<comm::BroadcastPlan>& plan);
  void receive(runtime::Handle& handle, Purpose purpose, int priority, const runtime::CodeletCore* reader);
  void close_version(Datum& datum, const Place& place);
  static void count_version(const Datum& datum, FlowStatistics& statistics);

  runtime::RuntimeCore& core_;
  Transfers& transfers_;
  DataTable& table_;
  Copies& copies_;
  const Pruning& pruning_;
  const std::uint32_t rank_;
  const std::uint32_t size_;
  const comm::Channel channel_;
  FlowStatistics counts_;  ///< counts for versions that have ended
  std::vector<runtime::Handle*> away_;
  /// Recipients of the present send; members to keep their memory.
  std::vector<comm::Recipient> recipients_, unserved_;
};

}  // namespace tandem::dist
