// tests/comm_modules/old_module.cpp: a module that another version of Tandem left behind.
#include "tandem/comm/transport/module.hpp"

namespace {

constexpr tandem::comm::internal::TransportModule module{.version = "0.0.7"};

}  // namespace

const tandem::comm::internal::TransportModule* tandem_comm_transport_module() noexcept { return &module; }
