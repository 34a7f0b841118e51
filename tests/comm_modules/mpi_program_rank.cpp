// tests/comm_modules/mpi_program_rank.cpp: a program that uses MPI itself hands its communicator over, and goes on
// using it.
#include <fmt/core.h>
#include <mpi.h>

#include "exchange.hpp"
#include "tandem/comm/bootstrap/join.hpp"

namespace {

using namespace tandem;

int run(MPI_Comm communicator) {
  base::Log log;
  auto job = comm::join_job({.environment = base::process_environment(), .log = log});
  if (!job) return fmt::print(stderr, "{}\n", job.error().message), 1;
  const comm::Rank self = job.value().rank;
  const comm::EndpointOptions options{.transports = {"mpi"}, .mpi_communicator = &communicator};
  auto endpoint = comm::Endpoint::open(std::move(job).value(), options, log);
  if (!endpoint) return fmt::print(stderr, "{}\n", endpoint.error().message), 1;
  // The program's own traffic is under way while ours goes.
  const std::uint32_t own = self.value() + 1;
  std::uint32_t sum = 0;
  MPI_Request request;
  MPI_Iallreduce(&own, &sum, 1, MPI_UINT32_T, MPI_SUM, communicator, &request);
  const std::string wrong = comm::exchange(*endpoint.value(), "mpi");
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  const std::uint32_t size = endpoint.value()->size();
  if (!wrong.empty()) return fmt::print(stderr, "rank {}: {}\n", self.value(), wrong), 1;
  if (sum != size * (size + 1) / 2) return fmt::print(stderr, "rank {}: MPI's own sum is {}\n", self.value(), sum), 1;
  fmt::print("rank {} has everything\n", self.value());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  const int status = run(MPI_COMM_WORLD);
  MPI_Finalize();
  return status;
}
