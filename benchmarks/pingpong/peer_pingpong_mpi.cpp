// benchmarks/pingpong/peer_pingpong_mpi.cpp: ping-pong on the MPI library that is found.
//
// Started alone it starts itself again as two ranks under mpiexec. --transport: shm (cross-memory attach for large
// messages), shm_copy (without it), tcp; these names are mapped to Open MPI's settings.
#include <mpi.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "benchmarks/pingpong/harness.hpp"

namespace benchmarks::pingpong {
namespace {

class MpiAdapter {
 public:
  static constexpr const char* name = "openmpi";

  MpiAdapter() {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    rank_ = rank;
  }

  std::string version() const {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    const std::string whole(text.data());
    return whole.substr(0, whole.find(','));
  }
  unsigned rank() const { return static_cast<unsigned>(rank_); }
  void send(const void* data, std::size_t bytes) {
    MPI_Send(data, static_cast<int>(bytes), MPI_BYTE, 1 - rank_, 0, MPI_COMM_WORLD);
  }
  void receive(void* data, std::size_t bytes) {
    MPI_Recv(data, static_cast<int>(bytes), MPI_BYTE, 1 - rank_, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  void send_many(const void* data, std::size_t bytes, unsigned count) {
    requests_.resize(count);
    for (auto& one : requests_) one = post_send(data, bytes);
    finish_all();
  }
  void receive_many(void* data, std::size_t bytes, unsigned count) {
    requests_.resize(count);
    for (auto& one : requests_) one = post_receive(data, bytes);
    finish_all();
  }
  void send_stream(const void* data, std::size_t bytes, unsigned count, unsigned window) {
    slide(requests_, count, window, [&] { return post_send(data, bytes); }, finish);
  }
  void receive_stream(void* data, std::size_t bytes, unsigned count, unsigned window) {
    slide(requests_, count, window, [&] { return post_receive(data, bytes); }, finish);
  }

 private:
  MPI_Request post_send(const void* data, std::size_t bytes) const {
    MPI_Request one;
    MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, 1 - rank_, 0, MPI_COMM_WORLD, &one);
    return one;
  }
  MPI_Request post_receive(void* data, std::size_t bytes) const {
    MPI_Request one;
    MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, 1 - rank_, 0, MPI_COMM_WORLD, &one);
    return one;
  }
  static void finish(MPI_Request& one) { MPI_Wait(&one, MPI_STATUS_IGNORE); }
  void finish_all() { MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE); }

  int rank_ = 0;
  std::vector<MPI_Request> requests_;
};

/// Does not return: this program again, as two ranks.
[[noreturn]] void start_ranks(const Plan& plan, char** argv) {
  const bool tcp = plan.transport == "tcp";
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
  setenv("OMPI_MCA_pml", "ob1", 1);
  setenv("OMPI_MCA_btl", tcp ? "tcp,self" : "vader,self", 1);
  if (tcp) setenv("OMPI_MCA_btl_tcp_if_include", "lo", 1);
  if (plan.transport == "shm_copy") setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 1);
  std::vector<char*> words{const_cast<char*>(BENCHMARK_MPIEXEC), const_cast<char*>("-n"), const_cast<char*>("2"),
                           const_cast<char*>("--bind-to"), const_cast<char*>("none")};
  for (char** word = argv; *word != nullptr; ++word) words.push_back(*word);
  words.push_back(nullptr);
  execv(words.front(), words.data());
  require(false, BENCHMARK_MPIEXEC);
  std::abort();
}

}  // namespace
}  // namespace benchmarks::pingpong

int main(int argc, char** argv) {
  using namespace benchmarks::pingpong;
  const Plan plan(argc, argv);
  if (plan.sleep) {
    std::fprintf(stderr, "MPI does not sleep\n");
    return 2;
  }
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr && std::getenv("PMI_SIZE") == nullptr) start_ranks(plan, argv);
  MPI_Init(nullptr, nullptr);
  MpiAdapter adapter;
  benchmarks::pingpong::bind_as_planned(plan, adapter.rank());
  measure(adapter, plan);
  MPI_Finalize();
}
