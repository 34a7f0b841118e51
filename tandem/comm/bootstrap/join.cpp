// tandem/comm/bootstrap/join.cpp: which launcher started this process.
#include "tandem/comm/bootstrap/join.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/core.h>

#include "tandem/base/pu_list.hpp"
#include "tandem/comm/bootstrap/master_job.hpp"
#include "tandem/comm/bootstrap/pmix_job.hpp"
#include "tandem/comm/bootstrap/rendezvous_client.hpp"
#include "tandem/comm/bootstrap/secret.hpp"
#include "tandem/comm/bootstrap/secret_descriptor.hpp"
#include "tandem/comm/bootstrap/variables.hpp"

namespace tandem::comm {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using internal::Variables;

constexpr std::int64_t without_limit_ns = 1'000'000'000'000'000'000;  ///< 31 years

Job alone() {
  Job job;
  job.id = "alone-" + internal::random_name(4);
  job.source = "alone";
  std::memcpy(job.secret.data(), internal::random_bytes(job.secret.size()).data(), job.secret.size());
  return job;
}

Result<JobSecret> launcher_secret(const Variables& variables) {
  if (const std::string* text = variables.find("TANDEM_JOB_SECRET"))
    return internal::secret_of_text(*text, "TANDEM_JOB_SECRET");
  const auto descriptor = variables.number("TANDEM_JOB_SECRET_FD");
  if (!descriptor) return descriptor.error();
  const auto text = internal::read_secret_descriptor(static_cast<int>(descriptor.value()));
  if (!text) return text.error();
  return internal::secret_of_text(text.value(), "TANDEM_JOB_SECRET_FD");
}

/// Ranks on this host by a variable of the launcher; 1 when it does not say, since it may have started this one here
/// alone.
std::uint32_t ranks_here(const Variables& variables, std::string_view name) {
  const auto count = variables.number(name);
  return count ? std::max(1u, count.value()) : 1;
}

/// The ranks of this host, which are consecutive; `place_name` is the variable with this rank's index among them.
std::vector<Rank> neighbours_here(const Variables& variables, std::string_view place_name, const Job& job) {
  const auto place = variables.number(place_name);
  if (!place || place.value() >= job.ranks_here || place.value() > job.rank.value()) return {};
  const std::uint32_t first = job.rank.value() - place.value();
  std::vector<Rank> ranks;
  for (std::uint32_t i = 0; i < job.ranks_here && first + i < job.size; ++i) ranks.emplace_back(first + i);
  return ranks;
}

Result<Job> join_launcher(const Variables& variables, const BootstrapOptions& options) {
  const auto place = variables.place("TANDEM_JOB_RANK", "TANDEM_JOB_SIZE");
  if (!place) return place.error();
  const auto server = variables.text("TANDEM_JOB_SERVER");
  if (!server) return server.error();
  const auto servers = internal::parse_host_ports(server.value(), "TANDEM_JOB_SERVER");
  if (!servers) return servers.error();
  const auto secret = launcher_secret(variables);
  if (!secret) return secret.error();
  const auto [rank, size] = place.value();
  auto client =
      internal::RendezvousClient::join({servers.value(), secret.value(), rank, size, options.join_timeout_ns(),
                                        options.timeout_ns > 0 ? options.timeout_ns : without_limit_ns});
  if (!client) return client.error();
  Job job = internal::job_of(std::move(client).value(), secret.value(), Rank(rank), size, "tandem run");
  job.ranks_here = ranks_here(variables, "TANDEM_JOB_LOCAL_SIZE");
  const std::string* const here = variables.find("TANDEM_JOB_LOCAL_RANKS");
  const auto listed =
      here != nullptr ? base::parse_pu_list(*here) : base::Result<std::vector<unsigned>>(std::vector<unsigned>());
  if (listed.ok())
    for (const unsigned other : listed.value())
      if (other < size) job.here.emplace_back(other);
  return job;
}

Result<Job> join_by_variables(const Variables& variables, const BootstrapOptions& options) {
  auto job = internal::join_master(variables, options);
  if (!job) return job;
  job.value().ranks_here = ranks_here(variables, "LOCAL_WORLD_SIZE");
  job.value().here = neighbours_here(variables, "LOCAL_RANK", job.value());
  return job;
}

/// Whether this variable says that the launcher started several tasks.
bool says_several(const Variables& variables, std::string_view name) {
  const auto count = variables.number(name);
  return count.ok() && count.value() > 1;
}

/// Finds a launcher that started several processes without the variables that Tandem needs: each process would take
/// itself for a job of one rank, and all would compute the same thing. Returns a description of the launcher; empty
/// when there is none.
std::string silent_launcher(const Variables& variables) {
  const char* tasks = variables.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  if (variables.has("SLURM_PROCID") && says_several(variables, tasks)) {
    return fmt::format(
        "this is task {} of {} that Slurm started ({}), but without PMIx, so that the tasks cannot find each "
        "other: start them with `srun --mpi=pmix`, or start `tandem run` once inside the allocation (`tandem run "
        "-n 1` for a program that is meant to be alone)",
        *variables.find("SLURM_PROCID"), *variables.find(tasks), tasks);
  }
  for (const char* size : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (says_several(variables, size)) {
      return fmt::format(
          "a launcher started {} processes ({}), but does not speak PMIx, so that they cannot find each other: "
          "use the mpirun of Open MPI 4 or later, `prterun`, `srun --mpi=pmix` or `tandem run`",
          *variables.find(size), size);
    }
  return {};
}

}  // namespace

Result<Job> join_job(const BootstrapOptions& options) {
  const Variables variables(options.environment);
  if (variables.has("TANDEM_JOB_RANK") || variables.has("TANDEM_JOB_SERVER")) {
    auto job = join_launcher(variables, options);
    if (job || job.error().code != ErrorCode::not_found) return job;
    return Error{ErrorCode::not_found,
                 fmt::format("`tandem run` started this process, but {}: does a wrapper program remove it "
                             "from the environment?",
                             job.error().message)};
  }
  if (internal::started_by_pmix(variables)) return internal::join_pmix(variables, options);
  if (internal::started_by_master(variables)) return join_by_variables(variables, options);
  if (const std::string why = silent_launcher(variables); !why.empty()) return Error{ErrorCode::unsupported, why};
  return alone();
}

}  // namespace tandem::comm
