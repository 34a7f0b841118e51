// tandem/comm/transport/mpi/module.cpp: the transport mpi as a module.
#include <fmt/format.h>

#include <array>
#include <string_view>

#include "tandem/comm/transport/module.hpp"
#include "tandem/comm/transport/mpi/mpi_transport.hpp"

namespace tandem::comm::internal::mpi {
namespace {

#ifdef OPEN_MPI
constexpr bool made_for_open_mpi = true;
#else
constexpr bool made_for_open_mpi = false;
#endif

/// Checks that the program uses the MPI library of this module: else the wrong one would answer its calls, and handles
/// and constants differ between Open MPI and the family of MPICH. May be called before MPI is initialised.
base::Result<void> expect_our_library() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string_view running(text.data(), static_cast<std::size_t>(length));
  if (running.starts_with("Open MPI") == made_for_open_mpi) return {};
  return base::Error{
      base::ErrorCode::unsupported,
      fmt::format("the transport mpi was made {} Open MPI, and this program runs {}; build Tandem with the MPI "
                  "library of the program",
                  made_for_open_mpi ? "for" : "for another library than", running.substr(0, running.find('\n')))};
}

base::Result<std::unique_ptr<Transport>> make(const TransportNeeds& needs) {
  if (auto ours = expect_our_library(); !ours) return ours.error();
  MpiOptions options{.rank = needs.job.rank};
  if (const void* given = needs.options.mpi_communicator; given != nullptr) {
    options.communicator = *static_cast<const MPI_Comm*>(given);
  }
  return make_mpi_transport(options, needs.sink, needs.log);
}

constexpr TransportModule module{.make = make};

}  // namespace
}  // namespace tandem::comm::internal::mpi

const tandem::comm::internal::TransportModule* tandem_comm_transport_module() noexcept {
  return &tandem::comm::internal::mpi::module;
}
