// tandem/comm/bootstrap/pmix_presence.cpp: one thread that asks two neighbours until they have come.
#include "tandem/comm/bootstrap/pmix_presence.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include <fmt/core.h>

#include "tandem/comm/bootstrap/process_sight.hpp"

namespace tandem::comm::internal {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds first_look_pause(20), longest_look_pause(1000);
constexpr unsigned absences_that_count = 3;
constexpr int pending = 1;  ///< no status of PMIx: they are 0 or negative

/// PMIx reads the limits after the call has returned, and may answer when the object is gone.
struct Question {
  std::shared_ptr<std::atomic<int>> answer = std::make_shared<std::atomic<int>>(pending);
  pmix_info_t limits[2];
};

void take_answer(pmix_status_t status, pmix_value_t*, void* data) {
  const std::unique_ptr<Question> question(static_cast<Question*>(data));
  question->answer->store(status > 0 ? -status : status);
}

std::vector<std::string> variables_of(const char* space, std::uint32_t rank) {
  return {fmt::format("PMIX_NAMESPACE={}", space), fmt::format("PMIX_RANK={}", rank)};
}

}  // namespace

PmixPresence::PmixPresence(const pmix_proc_t& self, std::uint32_t size, std::vector<std::uint32_t> here,
                           const char* key, std::int64_t timeout_ns, base::Log& log)
    : self_(self), key_(key), log_(log) {
  const auto look_after = [&](std::uint32_t rank) {
    if (rank == self.rank || (!neighbours_.empty() && neighbours_.front()->rank == rank)) return;
    neighbours_.push_back(std::make_unique<Neighbour>());
    neighbours_.back()->rank = rank;
    neighbours_.back()->is_here = std::binary_search(here.begin(), here.end(), rank);
  };
  look_after((self.rank + 1) % size);
  if (const auto me = std::find(here.begin(), here.end(), self.rank); me != here.end())
    look_after(me + 1 != here.end() ? me[1] : here.front());
  if (neighbours_.empty()) return;
  thread_ = base::Thread({.name = "tandem-pmix"}, [this, timeout_ns] { run(timeout_ns); });
}

PmixPresence::~PmixPresence() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::vector<Rank> PmixPresence::missing() const {
  std::vector<Rank> ranks;
  for (const auto& neighbour : neighbours_)
    if (!neighbour->came.load()) ranks.emplace_back(neighbour->rank);
  return ranks;
}

void PmixPresence::run(std::int64_t timeout_ns) {
  const auto begun = steady_clock::now();
  auto looked = begun;
  const auto deadline = begun + std::chrono::nanoseconds(timeout_ns);
  std::unique_lock lock(mutex_);
  for (milliseconds pause = first_look_pause; !stop_; pause = std::min(2 * pause, longest_look_pause)) {
    lock.unlock();
    const auto now = steady_clock::now();
    const bool looks = now - looked >= longest_look_pause;
    if (looks) looked = now;
    bool all = true;
    for (const auto& neighbour : neighbours_) {
      if (neighbour->came.load() || ask(*neighbour)) continue;
      all = false;
      if (looks && has_ended(*neighbour)) return end_job(neighbour->rank, "has ended before it joined the job");
      if (now >= deadline) return end_job(neighbour->rank, "has not joined the job in time; does it run?");
    }
    if (all) return;
    lock.lock();
    stopped_.wait_for(lock, pause, [this] { return stop_; });
  }
}

/// True when the neighbour has come. One question at a time: Slurm does not answer before it has an answer.
bool PmixPresence::ask(Neighbour& neighbour) {
  if (neighbour.answer != nullptr) {
    const int status = neighbour.answer->load();
    if (status == pending) return false;
    neighbour.answer.reset();
    if (status == PMIX_SUCCESS) neighbour.came.store(true);
    if (status == PMIX_SUCCESS) return true;
  }
  pmix_proc_t peer = self_;
  peer.rank = neighbour.rank;
  auto question = std::make_unique<Question>();
  int left_s = 1;
  bool refresh = true;
  PMIX_INFO_LOAD(&question->limits[0], PMIX_TIMEOUT, &left_s, PMIX_INT);
  PMIX_INFO_LOAD(&question->limits[1], PMIX_GET_REFRESH_CACHE, &refresh, PMIX_BOOL);
  neighbour.answer = question->answer;
  const pmix_status_t status = PMIx_Get_nb(&peer, key_, question->limits, 2, &take_answer, question.get());
  if (status == PMIX_SUCCESS) (void)question.release();  // `take_answer` has it
  else neighbour.answer->store(status == pending ? PMIX_ERROR : status);
  return false;
}

bool PmixPresence::has_ended(Neighbour& neighbour) const {
  if (!neighbour.is_here) return false;
  const Sight sight = look_for_process("/proc", getpid(), variables_of(self_.nspace, self_.rank),
                                       variables_of(self_.nspace, neighbour.rank));
  neighbour.absences = sight == Sight::absent ? neighbour.absences + 1 : 0;
  return neighbour.absences >= absences_that_count;
}

void PmixPresence::end_job(std::uint32_t rank, const char* why) const {
  log_.error("rank {} {}: rank {} ends the job, in which others may wait for it", rank, why, self_.rank);
  const std::string message = fmt::format("rank {} {}", rank, why);
  PMIx_Abort(1, message.c_str(), nullptr, 0);
}

}  // namespace tandem::comm::internal
