// tandem/comm/transport/mpi/communicator.hpp: a communicator of our own, and its ranks.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "tandem/base/ids.hpp"
#include "tandem/base/result.hpp"

namespace tandem::comm::internal::mpi {

using base::Rank;

/// Code that may call MPI beside us.
enum class Company { alone, program };

/// Makes sure that MPI is initialised: by the program, or by us for calls by one thread at a time (then it is finalised
/// at exit, since MPI cannot start twice). Errors: unsupported, with the level that was found and the remedy.
base::Result<void> require_mpi(Company company);

/// A failure as text: "MPI_Isend: the text of the error".
std::string mpi_failure(const char* call, int code);

/// A duplicate of a communicator, whose calls return their errors. Freed with this object unless `abandon` was called.
class Communicator {
 public:
  /// Collective. `origin` null: MPI_COMM_WORLD.
  static base::Result<std::unique_ptr<Communicator>> duplicate(MPI_Comm origin, Rank self);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  MPI_Comm handle() const noexcept { return handle_; }
  int own_number() const noexcept { return own_number_; }
  std::uint64_t id() const noexcept {
    return id_;
  }  ///< equal on all its ranks, and different from other communicators'
  int largest_tag() const noexcept { return largest_tag_; }

  Rank rank_of(int number) const { return ranks_.at(static_cast<std::size_t>(number)); }
  /// The number of a rank in the communicator; -1: not in it.
  int number_of(Rank rank) const;

  /// After a peer has failed: keeps the handle, since freeing it is collective.
  void abandon() noexcept { abandoned_ = true; }

 private:
  Communicator() = default;
  base::Result<void> send_hello(Rank self);

  MPI_Comm handle_ = MPI_COMM_NULL;
  int own_number_ = 0;
  int largest_tag_ = 32767;
  std::uint64_t id_ = 0;
  std::vector<Rank> ranks_;
  std::unordered_map<Rank, int> numbers_;
  bool abandoned_ = false;
};

}  // namespace tandem::comm::internal::mpi
