// tandem/comm/transport/mpi/communicator.cpp: starting MPI if the program has not, and introducing the ranks to each
// other.
#include "tandem/comm/transport/mpi/communicator.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "tandem/comm/bootstrap/secret.hpp"

namespace tandem::comm::internal::mpi {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

/// Set once, before any other thread uses MPI. It orders nothing else, so that relaxed suffices.
std::atomic<bool> started_by_us{false};

std::string_view name_of_level(int level) {
  switch (level) {
    case MPI_THREAD_SINGLE:
      return "MPI_THREAD_SINGLE";
    case MPI_THREAD_FUNNELED:
      return "MPI_THREAD_FUNNELED";
    case MPI_THREAD_SERIALIZED:
      return "MPI_THREAD_SERIALIZED";
    default:
      return "MPI_THREAD_MULTIPLE";
  }
}

void finalize_at_exit() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized == 0) MPI_Finalize();
}

Result<void> start_mpi() {
  int level = MPI_THREAD_SINGLE;
  if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level); code != MPI_SUCCESS) {
    return Error{ErrorCode::io, mpi_failure("MPI_Init_thread", code)};
  }
  started_by_us.store(true, std::memory_order_relaxed);
  std::atexit(finalize_at_exit);
  return {};
}

}  // namespace

std::string mpi_failure(const char* call, int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  return fmt::format("{}: {}", call, std::string_view(text.data(), static_cast<std::size_t>(length)));
}

Result<void> require_mpi(Company company) {
  int initialized = 0, finalized = 0, level = MPI_THREAD_SINGLE;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (finalized != 0) {
    return Error{ErrorCode::unsupported,
                 "the transport mpi: MPI_Finalize was called, and MPI cannot start again; make the endpoint earlier"};
  }
  if (initialized == 0) {
    if (auto started = start_mpi(); !started) return started;
  }
  MPI_Query_thread(&level);
  const bool shared = company == Company::program && !started_by_us.load(std::memory_order_relaxed);
  const int needed = shared ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED;
  if (level >= needed) return {};
  return Error{
      ErrorCode::unsupported,
      fmt::format("the transport mpi: MPI runs at {}, and {} is needed{}; call MPI_Init_thread with it",
                  name_of_level(level), name_of_level(needed),
                  shared ? " because the program calls MPI beside Tandem's progress" : " by Tandem's progress thread")};
}

Result<std::unique_ptr<Communicator>> Communicator::duplicate(MPI_Comm origin, Rank self) {
  if (origin == MPI_COMM_NULL) origin = MPI_COMM_WORLD;
  int between_groups = 0;
  MPI_Comm_test_inter(origin, &between_groups);
  if (between_groups != 0) {
    return Error{ErrorCode::invalid_argument,
                 "the transport mpi: an intercommunicator was given; merge it first (MPI_Intercomm_merge)"};
  }
  std::unique_ptr<Communicator> made(new Communicator);
  if (const int code = MPI_Comm_dup(origin, &made->handle_); code != MPI_SUCCESS) {
    return Error{ErrorCode::io, mpi_failure("MPI_Comm_dup", code)};
  }
  MPI_Comm_set_errhandler(made->handle_, MPI_ERRORS_RETURN);
  if (auto introduced = made->send_hello(self); !introduced) return introduced.error();
  return made;
}

/// Agrees on the communicator's id, and on the rank of the job at each number.
Result<void> Communicator::send_hello(Rank self) {
  int size = 0;
  MPI_Comm_rank(handle_, &own_number_);
  MPI_Comm_size(handle_, &size);
  if (own_number_ == 0) {
    const std::string random = random_bytes(sizeof id_);
    std::memcpy(&id_, random.data(), sizeof id_);
  }
  int code = MPI_Bcast(&id_, sizeof id_, MPI_BYTE, 0, handle_);
  if (code != MPI_SUCCESS) return Error{ErrorCode::io, mpi_failure("MPI_Bcast", code)};
  std::vector<std::uint32_t> all(static_cast<std::size_t>(size));
  const std::uint32_t own = self.value();
  code = MPI_Allgather(&own, 1, MPI_UINT32_T, all.data(), 1, MPI_UINT32_T, handle_);
  if (code != MPI_SUCCESS) return Error{ErrorCode::io, mpi_failure("MPI_Allgather", code)};
  for (const std::uint32_t rank : all) {
    const int number = static_cast<int>(ranks_.size());
    ranks_.emplace_back(rank);
    if (!numbers_.emplace(Rank(rank), number).second) {
      return Error{
          ErrorCode::invalid_argument,
          fmt::format(
              "the transport mpi: numbers {} and {} of the communicator both say that they are rank {} of the job; "
              "hand over a communicator of this job's processes",
              numbers_.at(Rank(rank)), number, rank)};
    }
  }
  int* bound = nullptr;
  int known = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &known);
  if (known != 0) largest_tag_ = *bound;
  return {};
}

int Communicator::number_of(Rank rank) const {
  const auto at = numbers_.find(rank);
  return at == numbers_.end() ? -1 : at->second;
}

Communicator::~Communicator() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized == 0 && !abandoned_ && handle_ != MPI_COMM_NULL) MPI_Comm_free(&handle_);
}

}  // namespace tandem::comm::internal::mpi
