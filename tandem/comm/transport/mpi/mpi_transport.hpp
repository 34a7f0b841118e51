// tandem/comm/transport/mpi/mpi_transport.hpp: packets over any MPI library, for networks that only it supports well.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>

#include "tandem/base/log.hpp"
#include "tandem/base/result.hpp"
#include "tandem/comm/transport/transport.hpp"

namespace tandem::comm {

/// How `make_mpi_transport` works.
struct MpiOptions {
  Rank rank{0};  ///< our rank in the job, which may differ from the one in the communicator
  /// The communicator of a program that uses MPI itself; duplicated, so that its messages and ours never match each
  /// other. Null: MPI_COMM_WORLD. If MPI is not initialised, Tandem initialises it, and finalises it when the process
  /// exits.
  MPI_Comm communicator = MPI_COMM_NULL;
  /// Whether the program calls MPI while the transport exists; then MPI must have been initialised for many threads at
  /// once.
  bool program_calls_mpi = true;
  unsigned payload_sends = 10;  ///< large payloads in flight at once, to all peers together
};

/// A transport over a duplicate of a communicator. Collective: every rank of the communicator calls it, and blocks
/// until all do. `sink` and `log` outlive it; the destructor comes before MPI_Finalize. The thread that calls the
/// transport calls MPI, one thread at a time. Errors: unsupported (MPI was finalised, or initialised with a thread
/// level that does not suffice), invalid_argument (an intercommunicator, two ranks that say they are the same), io (MPI
/// failed).
base::Result<std::unique_ptr<Transport>> make_mpi_transport(const MpiOptions& options, PacketSink& sink,
                                                            base::Log& log);

}  // namespace tandem::comm
