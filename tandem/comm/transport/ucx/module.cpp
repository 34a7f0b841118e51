// tandem/comm/transport/ucx/module.cpp: the transport ucx as a module.
#include "tandem/comm/transport/module.hpp"
#include "tandem/comm/transport/ucx/ucx_transport.hpp"

namespace tandem::comm::internal::ucx {
namespace {

base::Result<std::unique_ptr<Transport>> make(const TransportNeeds& needs) {
  return make_ucx_transport({.rank = needs.job.rank, .secret = needs.job.secret}, needs.sink, needs.log);
}

constexpr TransportModule module{.make = make};

}  // namespace
}  // namespace tandem::comm::internal::ucx

const tandem::comm::internal::TransportModule* tandem_comm_transport_module() noexcept {
  return &tandem::comm::internal::ucx::module;
}
