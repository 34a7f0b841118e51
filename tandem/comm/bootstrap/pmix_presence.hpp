// tandem/comm/bootstrap/pmix_presence.hpp: notices under PMIx that a rank has ended before it joined.
#pragma once

#include <pmix.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "tandem/base/log.hpp"
#include "tandem/base/thread.hpp"
#include "tandem/comm/bootstrap/job.hpp"

namespace tandem::comm::internal {

/// Each rank watches two others until they have joined: the next one of the job, and the next one on its host. So of
/// the ranks that do not come, the first after one that came is watched. A neighbour on this host whose process is gone
/// (three looks, a second apart), or any neighbour that has not come when the time is over, ends the job by PMIx_Abort,
/// with its number in the log: others may wait for it in receives, which never ask. Launchers by themselves end a job
/// only when a rank failed.
///
/// Threads: one of its own, which ends once both have come. `missing` may be called by all threads.
class PmixPresence {
 public:
  /// `here` are the job's ranks on this host, sorted. The PMIx session and `log` outlive this object.
  PmixPresence(const pmix_proc_t& self, std::uint32_t size, std::vector<std::uint32_t> here, const char* key,
               std::int64_t timeout_ns, base::Log& log);
  ~PmixPresence();
  PmixPresence(const PmixPresence&) = delete;
  PmixPresence& operator=(const PmixPresence&) = delete;

  /// The ones of the two neighbours that have not come.
  std::vector<Rank> missing() const;

 private:
  struct Neighbour {
    std::uint32_t rank = 0;
    bool is_here = false;
    unsigned absences = 0;  ///< looks in a row that did not find its process
    std::shared_ptr<std::atomic<int>> answer = {};  ///< of the question that is under way; null: none
    std::atomic<bool> came{false};
  };

  void run(std::int64_t timeout_ns);
  bool ask(Neighbour& neighbour);
  bool has_ended(Neighbour& neighbour) const;
  void end_job(std::uint32_t rank, const char* why) const;

  const pmix_proc_t self_;
  const char* const key_;
  base::Log& log_;
  std::vector<std::unique_ptr<Neighbour>> neighbours_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;  ///< guarded by `mutex_`
  base::Thread thread_;
};

}  // namespace tandem::comm::internal
