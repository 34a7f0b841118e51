// tandem/dist/job_abort.hpp: the end of a job that has failed, on all ranks.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace tandem::comm {
class Endpoint;
struct Status;
}
namespace tandem::runtime {
class RuntimeCore;
}

namespace tandem::dist {

class Transfers;

/// Spreads the reason for which a job ends, and releases all that waits on this rank.
///
/// Protocol. The first reason that reaches `Transfers::abort` counts: a mistake that a receive finds, a lost rank, the
/// user's own reason, or a message from another rank. This rank sends it to its neighbours in the tree of `Agreement`,
/// which send it on, and to the ranks that it is connected with; in place of a rank that is dead or has left, to that
/// rank's neighbours. So all ranks get it, and a rank makes at most as many new connections as it has neighbours, and
/// neighbours of dead ones. It closes its links only after these messages have left, so that a rank reads the reason
/// before it sees that the link is gone. A rank that sees a link go first sends a message to itself (`note_loss`): if
/// the reason has arrived and waits to be handled, it is handled before.
///
/// Threads: any, except `throw_if_aborted` and `work_until`, which the submitting thread calls. `aborted_` is stored
/// before the submitting thread is woken.
class JobAbort {
 public:
  JobAbort(runtime::RuntimeCore& core, comm::Endpoint& endpoint, Transfers& transfers);
  JobAbort(const JobAbort&) = delete;
  JobAbort& operator=(const JobAbort&) = delete;

  /// Begins to take part. `release`, called once on the thread that aborts, releases all else that waits.
  void listen(std::function<void()> release);

  bool aborted() const noexcept { return aborted_.load(); }
  /// Throws the JobError, if there is one.
  void throw_if_aborted();
  /// Whether `throw_if_aborted` has thrown.
  bool reported() const noexcept { return reported_; }
  /// Works until `done`, or until the job is aborted. The thread that sets `done` then wakes the caller.
  void work_until(const std::atomic<bool>& done);

 private:
  void spread(const std::string& text);
  void note_loss(const std::string& text);
  struct Round;
  void tell(const std::shared_ptr<Round>& round, std::uint32_t to);
  void ended(const std::shared_ptr<Round>& round);
  void send(std::uint32_t to, const std::shared_ptr<const std::string>& text,
            std::function<void(const comm::Status&)> ended);

  runtime::RuntimeCore& core_;
  comm::Endpoint& endpoint_;
  Transfers& transfers_;
  std::function<void()> release_;
  std::atomic<std::uint32_t> told_by_;  ///< the rank whose message brings the reason; own rank: none
  std::atomic<bool> aborted_{false};
  bool reported_ = false;
};

}  // namespace tandem::dist
