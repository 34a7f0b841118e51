// tandem/comm/transports.cpp: making the transports that the options ask for.
#include "tandem/comm/transports.hpp"


#include <charconv>

#include <fmt/format.h>

#include "tandem/base/suggest.hpp"
#include "tandem/comm/transport/load_module.hpp"
#include "tandem/comm/transport/rdma.hpp"
#include "tandem/comm/transport/shm/shm.hpp"
#include "tandem/comm/transport/tcp/tcp.hpp"
#include "tandem/comm/wire.hpp"

namespace tandem::comm::internal {
namespace {

static_assert(std::string_view(kVersion) == TANDEM_VERSION, "transports.hpp and the project's CMakeLists.txt differ");

using Made = base::Result<std::unique_ptr<Transport>>;

Made make_shm(const EndpointOptions& options, const Job& job, PacketSink& sink, base::Log& log) {
  ShmOptions shm = ShmOptions::for_ranks(job.ranks_here);
  shm.rank = job.rank;
  shm.job_size = job.size;
  shm.job_id = job.id;
  shm.secret = job.secret;
  shm.log = &log;
  shm.remote_copies = options.cross_memory;
  return make_shm_transport(shm, sink);
}

base::Result<void> read_ports(const std::string& text, TcpOptions& tcp) {
  if (text.empty()) return {};
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, tcp.first_port);
  bool good = first.ec == std::errc() && first.ptr != end && *first.ptr == '-';
  if (good) {
    const auto last = std::from_chars(first.ptr + 1, end, tcp.last_port);
    good = last.ec == std::errc() && last.ptr == end && tcp.first_port > 0 && tcp.first_port <= tcp.last_port;
  }
  if (good) return {};
  return base::Error{base::ErrorCode::invalid_argument,
                     fmt::format("comm.ports is \"{}\"; write two ports, the lower first, as 20000-20100", text)};
}

Made make_tcp(const EndpointOptions& options, const Job& job, PacketSink& sink, base::Log& log) {
  TcpOptions tcp;
  tcp.self.rank = job.rank;
  tcp.self.size = job.size;
  tcp.self.wire_version = wire::version;
  tcp.self.version = kVersion;
  tcp.self.job_id = job.id;
  tcp.self.secret = job.secret;
  tcp.log = &log;
  tcp.interfaces = options.interface;
  tcp.rails = options.rails;
  if (!options.cross_memory) tcp.least_spliced_bytes = SIZE_MAX;
  if (auto ports = read_ports(options.ports, tcp); !ports) return ports.error();
  return make_tcp_transport(tcp, sink);
}

/// The transports that are loaded as modules.
std::vector<ModuleName> module_names() {
  return {{.transport = "ucx", .package = "libucx-dev"},
          {.transport = "mpi", .package = "libopenmpi-dev", .shares_symbols = true}};
}

Made make_from_module(const ModuleName& name, const EndpointOptions& options, const Job& job, PacketSink& sink,
                      base::Log& log) {
  const auto module = load_module(name, options.modules);
  if (!module) return module.error();
  return module.value()->make({.options = options, .job = job, .sink = sink, .log = log});
}

Made make_one(const std::string& name, const EndpointOptions& options, const Job& job, PacketSink& sink,
              base::Log& log) {
  if (name == "shm") return make_shm(options, job, sink, log);
  if (name == "tcp") return make_tcp(options, job, sink, log);
  for (const ModuleName& module : module_names()) {
    if (name == module.transport) return make_from_module(module, options, job, sink, log);
  }
  const std::vector<std::string> known{"shm", "tcp", "ucx", "mpi"};
  const std::string nearest = base::nearest_name(name, known);
  return base::Error{base::ErrorCode::not_found,
                     fmt::format("comm.transports names \"{}\"; there are shm, tcp, ucx and mpi{}", name,
                                 nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest))};
}

}  // namespace

base::Result<std::vector<std::unique_ptr<Transport>>> make_transports(const EndpointOptions& options, const Job& job,
                                                                      PacketSink& sink, base::Log& log) {
  std::vector<std::unique_ptr<Transport>> made;
  const bool automatic = options.transports.empty();
  const std::vector<std::string> ports = automatic ? active_rdma_ports() : std::vector<std::string>();
  for (const std::string& name : automatic ? automatic_transports(ports) : options.transports) {
    auto transport = make_one(name, options, job, sink, log);
    if (transport) {
      made.push_back(std::move(transport).value());
    } else if (!automatic || name == "tcp") {
      return transport.error();
    } else {
      log.info("rank {}: no {} transport here: {}", job.rank.value(), name, transport.error().message);
    }
  }
  if (job.rank.value() == 0) {
    std::string names;
    for (const auto& transport : made) names += fmt::format("{}{}", names.empty() ? "" : ", ", transport->name());
    log.info("transports, in order of preference: {}{}", names,
             ports.empty() ? "" : fmt::format("; InfiniBand or RoCE ports: {}", fmt::join(ports, ", ")));
  }
  return made;
}

}  // namespace tandem::comm::internal
