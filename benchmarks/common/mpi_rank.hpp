// benchmarks/common/mpi_rank.hpp: one rank of MPI as the two-sided benchmarks see it (tandem_rank.hpp says what it
// presents).
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace benchmarks {

/// Begins and ends MPI in a job of two. MPI knows no priorities, so they are dropped.
class MpiRank {
 public:
  static constexpr const char* name = "openmpi";

  MpiRank() {
    MPI_Init(nullptr, nullptr);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2) {
      std::fprintf(stderr, "needs two ranks; start it with mpirun -np 2\n");
      std::exit(1);
    }
  }
  ~MpiRank() { MPI_Finalize(); }
  MpiRank(const MpiRank&) = delete;
  MpiRank& operator=(const MpiRank&) = delete;

  std::string version() const {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    const std::string whole(text.data());
    return whole.substr(0, whole.find(','));
  }
  unsigned rank() const { return static_cast<unsigned>(rank_); }
  void post_send(std::uint64_t tag, const void* data, std::size_t bytes, int = 0) {
    posted_.emplace_back();
    MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, 1 - rank_, static_cast<int>(tag), MPI_COMM_WORLD,
              &posted_.back());
  }
  void post_receive(std::uint64_t tag, void* data, std::size_t bytes, bool any_source = false) {
    posted_.emplace_back();
    MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, any_source ? MPI_ANY_SOURCE : 1 - rank_, static_cast<int>(tag),
              MPI_COMM_WORLD, &posted_.back());
  }
  void wait_all() {
    MPI_Waitall(static_cast<int>(posted_.size()), posted_.data(), MPI_STATUSES_IGNORE);
    posted_.clear();
  }
  void send(std::uint64_t tag, const void* data, std::size_t bytes) {
    MPI_Send(data, static_cast<int>(bytes), MPI_BYTE, 1 - rank_, static_cast<int>(tag), MPI_COMM_WORLD);
  }
  void receive(std::uint64_t tag, void* data, std::size_t bytes) {
    MPI_Recv(data, static_cast<int>(bytes), MPI_BYTE, 1 - rank_, static_cast<int>(tag), MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
  }
  void progress() {
    int found = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
  }

 private:
  int rank_ = 0;
  std::vector<MPI_Request> posted_;
};

}  // namespace benchmarks
