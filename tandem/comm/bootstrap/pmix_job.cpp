// tandem/comm/bootstrap/pmix_job.cpp: with PMIx: put, commit, get.
#include "tandem/comm/bootstrap/pmix_job.hpp"

#include <pmix.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstring>
#include <sstream>
#include <thread>

#include <fmt/core.h>

#include "tandem/comm/bootstrap/card_directory.hpp"
#include "tandem/comm/bootstrap/pmix_presence.hpp"
#include "tandem/comm/bootstrap/secret.hpp"

namespace tandem::comm::internal {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr const char* entry_keys[] = {"tandem.card", "tandem.place"};  ///< by Entry
constexpr const char* joined_key = "tandem.joined";  ///< of each rank, as early as it can be
constexpr const char* job_key = "tandem.job";  ///< of rank 0: the secret, then the id
constexpr milliseconds first_question_pause(2), longest_question_pause(100);

Error pmix_error(std::string_view what, pmix_status_t status) {
  return {ErrorCode::io, fmt::format("PMIx: {}: {}", what, PMIx_Error_string(status))};
}

/// A process's membership of a PMIx namespace; PMIx counts the initialisations of a process, so that MPI may use it
/// beside us. Thread-safe, as PMIx is.
class PmixSession {
 public:
  explicit PmixSession(const pmix_proc_t& self) : self_(self) {}
  PmixSession(const PmixSession&) = delete;
  PmixSession& operator=(const PmixSession&) = delete;
  ~PmixSession() { PMIx_Finalize(nullptr, 0); }

  const pmix_proc_t& self() const noexcept { return self_; }
  std::uint32_t rank() const noexcept { return self_.rank; }
  void give_up() noexcept { gave_up_.store(true); }

  Result<std::uint32_t> size() const { return number(PMIX_JOB_SIZE, "the size of the job"); }
  Result<std::uint32_t> local_size() const { return number(PMIX_LOCAL_SIZE, "the number of ranks on this machine"); }

  Result<std::uint32_t> number(const char* key, const char* what) const {
    pmix_proc_t job = self_;
    job.rank = PMIX_RANK_WILDCARD;
    pmix_value_t* value = nullptr;
    const pmix_status_t status = PMIx_Get(&job, key, nullptr, 0, &value);
    if (status != PMIX_SUCCESS) return pmix_error(what, status);
    const std::uint32_t size = value->data.uint32;
    PMIX_VALUE_RELEASE(value);
    return size;
  }

  /// A value of the job as text; empty when the launcher does not have it.
  std::string text(const char* key) const {
    pmix_proc_t job = self_;
    job.rank = PMIX_RANK_WILDCARD;
    pmix_value_t* value = nullptr;
    if (PMIx_Get(&job, key, nullptr, 0, &value) != PMIX_SUCCESS) return {};
    std::string text;
    if (value->type == PMIX_STRING && value->data.string != nullptr) text = value->data.string;
    PMIX_VALUE_RELEASE(value);
    return text;
  }

  Result<void> put(const char* key, const std::string& bytes) const {
    pmix_value_t value;
    value.type = PMIX_BYTE_OBJECT;
    value.data.bo.bytes = const_cast<char*>(bytes.data());  // PMIx copies it
    value.data.bo.size = bytes.size();
    pmix_status_t status = PMIx_Put(PMIX_GLOBAL, key, &value);
    if (status == PMIX_SUCCESS) status = PMIx_Commit();
    if (status != PMIX_SUCCESS) return pmix_error(fmt::format("{} cannot be published", key), status);
    return {};
  }

  /// Asks until the rank has put that key: PMIx may say "not found" once the rank has committed another key.
  Result<std::string> get(std::uint32_t rank, const char* key, std::int64_t timeout_ns) const {
    const auto deadline = steady_clock::now() + std::chrono::nanoseconds(timeout_ns);
    pmix_proc_t peer = self_;
    peer.rank = rank;
    for (milliseconds pause = first_question_pause;; pause = std::min(2 * pause, longest_question_pause)) {
      int left_s = static_cast<int>(std::chrono::ceil<std::chrono::seconds>(deadline - steady_clock::now()).count());
      bool refresh = true;
      left_s = std::clamp(left_s, 1,
                          2);  // PMIx cannot be interrupted: between two questions this notices that the rank leaves
      pmix_info_t limits[2];
      PMIX_INFO_LOAD(&limits[0], PMIX_TIMEOUT, &left_s, PMIX_INT);
      PMIX_INFO_LOAD(&limits[1], PMIX_GET_REFRESH_CACHE, &refresh, PMIX_BOOL);
      pmix_value_t* value = nullptr;
      const pmix_status_t status = PMIx_Get(&peer, key, limits, 2, &value);
      if (status == PMIX_SUCCESS) return taken(value, rank);
      const bool not_yet =
          status == PMIX_ERR_NOT_FOUND || status == PMIX_ERR_TIMEOUT || status == PMIX_ERR_NOT_AVAILABLE;
      if (gave_up_.load())
        return Error{ErrorCode::io, fmt::format("rank {} leaves, and looks for rank {} no more", self_.rank, rank)};
      if (!not_yet) return pmix_error(fmt::format("what rank {} published cannot be had", rank), status);
      if (steady_clock::now() + pause >= deadline) {
        return Error{
            ErrorCode::exhausted,
            fmt::format(
                "rank {} waited {} s for rank {}, which has not published where it can be reached: does it run?",
                self_.rank, timeout_ns / 1'000'000'000, rank)};
      }
      std::this_thread::sleep_for(pause);
    }
  }

 private:
  static Result<std::string> taken(pmix_value_t* value, std::uint32_t rank) {
    std::string bytes;
    const bool fits = value->type == PMIX_BYTE_OBJECT;
    if (fits) bytes.assign(value->data.bo.bytes, value->data.bo.size);
    PMIX_VALUE_RELEASE(value);
    if (fits) return bytes;
    return Error{ErrorCode::malformed, fmt::format("PMIx: what rank {} published is of another type", rank)};
  }

  const pmix_proc_t self_;
  std::atomic<bool> gave_up_{false};
};

class PmixStore final : public CardStore {
 public:
  PmixStore(std::unique_ptr<PmixSession> session, std::unique_ptr<PmixPresence> presence, std::int64_t timeout_ns)
      : session_(std::move(session)), presence_(std::move(presence)), timeout_ns_(timeout_ns) {}

  Result<void> put(Entry entry, const std::string& bytes) override {
    return session_->put(entry_keys[static_cast<std::size_t>(entry)], bytes);
  }
  Result<std::string> get(Entry entry, Rank peer, std::int64_t timeout_ns) override {
    return session_->get(peer.value(), entry_keys[static_cast<std::size_t>(entry)],
                         timeout_ns == 0 ? timeout_ns_ : timeout_ns);
  }
  std::int64_t patience_ns() const override { return timeout_ns_; }
  std::vector<Rank> missing() override { return presence_->missing(); }
  void give_up() override { session_->give_up(); }

 private:
  const std::unique_ptr<PmixSession> session_;
  const std::unique_ptr<PmixPresence> presence_;  // ends before the session
  const std::int64_t timeout_ns_;
};

/// "0,1,5" as numbers; empty when the launcher does not say.
std::vector<std::uint32_t> ranks_here(const PmixSession& session) {
  std::vector<std::uint32_t> ranks;
  std::istringstream list(session.text(PMIX_LOCAL_PEERS));
  for (std::string number; std::getline(list, number, ',');) {
    std::uint32_t rank = 0;
    if (std::from_chars(number.data(), number.data() + number.size(), rank).ec == std::errc()) ranks.push_back(rank);
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

/// The secret and the id of the job, drawn by rank 0.
Result<std::string> agree(const PmixSession& session, std::int64_t timeout_ns) {
  if (session.rank() != 0) return session.get(0, job_key, timeout_ns);
  std::string drawn = random_bytes(std::tuple_size_v<JobSecret>) + random_name(6);
  if (auto done = session.put(job_key, drawn); !done) return done.error();
  return drawn;
}

}  // namespace

bool speaks_pmix() noexcept { return true; }

bool started_by_pmix(const Variables& variables) {
  return variables.has("PMIX_RANK") && variables.has("PMIX_NAMESPACE");
}

Result<Job> join_pmix(const Variables&, const BootstrapOptions& options) {
  pmix_proc_t self;
  const pmix_status_t status = PMIx_Init(&self, nullptr, 0);
  if (status != PMIX_SUCCESS) {
    return Error{ErrorCode::io,
                 fmt::format("the launcher's PMIx server, which PMIX_NAMESPACE and PMIX_RANK name, cannot be "
                             "joined: {}; does the launcher still run, and does its PMIx fit the one that this "
                             "program was linked with ({})?",
                             PMIx_Error_string(status), PMIx_Get_version())};
  }
  auto session = std::make_unique<PmixSession>(self);
  const auto size = session->size();
  if (!size) return size.error();
  const auto local_size = session->local_size();
  if (auto done = session->put(joined_key, "1"); !done) return done.error();
  const std::vector<std::uint32_t> here = ranks_here(*session);
  auto presence =
      std::make_unique<PmixPresence>(self, size.value(), here, joined_key, options.join_timeout_ns(), options.log);
  const auto agreed = agree(*session, options.join_timeout_ns());
  if (!agreed) return agreed.error();
  Job job;
  if (agreed.value().size() <= job.secret.size())
    return Error{ErrorCode::malformed,
                 "what rank 0 published for the job is too short: does it run another version of Tandem?"};
  std::memcpy(job.secret.data(), agreed.value().data(), job.secret.size());
  job.id = agreed.value().substr(job.secret.size());
  job.rank = Rank(session->rank());
  job.size = size.value();
  job.ranks_here = local_size.ok() ? local_size.value() : 1;
  for (const std::uint32_t rank : here) job.here.emplace_back(rank);
  job.source = "pmix";
  job.directory = std::make_shared<CardDirectory>(
      std::make_unique<PmixStore>(std::move(session), std::move(presence), options.join_timeout_ns()), job.rank,
      job.size);
  return job;
}

}  // namespace tandem::comm::internal
