// tandem/comm/bootstrap/master_job.cpp: rank 0's server thread, and the user's own secret.
#include "tandem/comm/bootstrap/master_job.hpp"

#include <poll.h>
#include <pwd.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include <fmt/core.h>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/base/thread.hpp"
#include "tandem/comm/bootstrap/rendezvous_server.hpp"
#include "tandem/comm/bootstrap/secret.hpp"
#include "tandem/comm/bootstrap/secret_descriptor.hpp"

namespace tandem::comm::internal {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using std::chrono::steady_clock;

constexpr const char* names[] = {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"};

std::int64_t now_ns() { return std::chrono::nanoseconds(steady_clock::now().time_since_epoch()).count(); }

/// Serves a rendezvous on a thread that sleeps when nobody asks. The server is the thread's alone until the destructor
/// has joined it.
class ServerThread {
 public:
  explicit ServerThread(std::unique_ptr<RendezvousServer> server)
      : server_(std::move(server)), stop_(eventfd(0, EFD_CLOEXEC)), thread_({.name = "tandem-master"},
                                                                            [this] { run(); }) {}
  ~ServerThread() {
    const std::uint64_t one = 1;
    (void)!write(stop_.get(), &one, sizeof one);
    thread_.join();
    server_->hand_over();
  }
  HostPort place_on_this_host() const { return server_->place_on_this_host(); }

 private:
  void run() {
    for (;;) {
      const std::int64_t next_ns = server_->serve(now_ns());
      const std::int64_t left_ms = std::clamp<std::int64_t>((next_ns - now_ns()) / 1'000'000 + 1, 0, 1'000'000);
      pollfd waited[] = {{server_->descriptor(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
      poll(waited, 2, next_ns == std::numeric_limits<std::int64_t>::max() ? -1 : static_cast<int>(left_ms));
      if (waited[1].revents != 0) return;
    }
  }

  const std::unique_ptr<RendezvousServer> server_;
  const base::FileDescriptor stop_;
  base::Thread thread_;
};

/// The store of rank 0: a client as on the other ranks, and the server.
class ServingStore final : public CardStore {
 public:
  ServingStore(std::unique_ptr<ServerThread> server, std::unique_ptr<RendezvousClient> client)
      : server_(std::move(server)), client_(std::move(client)) {}
  Result<void> put(Entry entry, const std::string& bytes) override { return client_->put(entry, bytes); }
  Result<std::string> get(Entry entry, Rank peer, std::int64_t timeout_ns) override {
    return client_->get(entry, peer, timeout_ns);
  }
  std::int64_t patience_ns() const override { return client_->patience_ns(); }
  std::vector<Rank> missing() override { return client_->missing(); }
  void give_up() override { client_->give_up(); }

 private:
  const std::unique_ptr<ServerThread> server_;  // outlives the client
  const std::unique_ptr<RendezvousClient> client_;
};

std::filesystem::path home_folder(const Variables& variables) {
  if (const std::string* home = variables.find("HOME")) return *home;
  passwd entry{}, *found = nullptr;
  char buffer[4096];
  if (getpwuid_r(geteuid(), &entry, buffer, sizeof buffer, &found) == 0 && found != nullptr) return entry.pw_dir;
  return "/";
}

Result<JobSecret> base_secret(const Variables& variables) {
  if (const std::string* text = variables.find("TANDEM_JOB_SECRET")) return secret_of_text(*text, "TANDEM_JOB_SECRET");
  if (const std::string* file = variables.find("TANDEM_JOB_SECRET_FILE")) return secret_of_file(*file);
  return user_secret(home_folder(variables) / ".tandem");
}

Job job_with(std::unique_ptr<CardStore> store, const rendezvous::Membership& membership, const JobSecret& secret,
             Rank rank, std::uint32_t size, std::string source) {
  Job job;
  job.rank = rank;
  job.size = size;
  job.secret = membership.secret(secret);
  job.id = membership.name();
  job.source = std::move(source);
  job.directory = std::make_shared<CardDirectory>(std::move(store), rank, size);
  return job;
}

Result<std::unique_ptr<ServerThread>> serve(const HostPort& master, const char* port_origin, std::uint32_t size,
                                            const JobSecret& secret, base::Log& log) {
  auto server = RendezvousServer::listen({.size = size, .secret = secret, .job_id = random_name(6), .host = master.host,
                                          .port = master.port, .port_origin = port_origin},
                                         log);
  if (server) return std::make_unique<ServerThread>(std::move(server).value());
  return Error{
      server.error().code,
      fmt::format(
          "rank 0 cannot serve the rendezvous of its job: {}; when the launcher itself uses that port (torchrun "
          "does), set TANDEM_MASTER_PORT to a free one, the same on all ranks",
          server.error().message)};
}

}  // namespace

bool started_by_master(const Variables& variables) {
  return std::count_if(std::begin(names), std::end(names), [&](const char* name) { return variables.has(name); }) >= 2;
}

Job job_of(std::unique_ptr<RendezvousClient> client, const JobSecret& secret, Rank rank, std::uint32_t size,
           std::string source) {
  const rendezvous::Membership membership = client->membership();
  return job_with(std::move(client), membership, secret, rank, size, std::move(source));
}

Result<Job> join_master(const Variables& variables, const BootstrapOptions& options) {
  const auto place = variables.place("RANK", "WORLD_SIZE");
  if (!place) return place.error();
  const auto [rank, size] = place.value();
  const auto host = variables.text("MASTER_ADDR");
  if (!host) return host.error();
  const char* const port_origin = variables.has("TANDEM_MASTER_PORT") ? "TANDEM_MASTER_PORT" : "MASTER_PORT";
  const auto port = variables.number(port_origin);
  if (!port) return port.error();
  if (port.value() == 0 || port.value() > 65535) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("the environment variable {} is {}, which is no port from 1 to 65535", port_origin, port.value())};
  }
  const HostPort master{host.value(), static_cast<std::uint16_t>(port.value())};
  const auto own = base_secret(variables);
  if (!own) return own.error();
  // The key contains port and size, so that other jobs of the user are refused, but not the address, whose text may
  // differ between ranks.
  const JobSecret secret = derive_secret(own.value(), fmt::format("tandem rendezvous {} {}", master.port, size));

  std::unique_ptr<ServerThread> server;
  std::vector<HostPort> servers = {master};
  if (rank == 0) {
    auto served = serve(master, port_origin, size, secret, options.log);
    if (!served) return served.error();
    server = std::move(served).value();
    servers = {server->place_on_this_host()};  // what MASTER_ADDR means to the others may not be reachable from here
  }
  auto client = RendezvousClient::join({servers, secret, rank, size, options.join_timeout_ns()});
  if (!client) return client.error();
  if (server == nullptr) return job_of(std::move(client).value(), secret, Rank(rank), size, "environment");
  const rendezvous::Membership membership = client.value()->membership();
  auto store = std::make_unique<ServingStore>(std::move(server), std::move(client).value());
  return job_with(std::move(store), membership, secret, Rank(rank), size, "environment");
}

}  // namespace tandem::comm::internal
