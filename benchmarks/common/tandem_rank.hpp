// benchmarks/common/tandem_rank.hpp: one rank of a Tandem job as the two-sided benchmarks see it;
// `tandem run` starts it.
//
// Its twin is mpi_rank.hpp; both present:
//
//   static constexpr const char* name;
//   std::string version() const;
//   unsigned rank() const;
//   void post_send(std::uint64_t tag, const void* data, std::size_t bytes, int priority = 0);   // to the other rank
//   void post_receive(std::uint64_t tag, void* data, std::size_t bytes, bool any_source = false);
//   void wait_all();                                                                         // all that were posted
//   void send(std::uint64_t tag, const void* data, std::size_t bytes);                          // for this one alone
//   void receive(std::uint64_t tag, void* data, std::size_t bytes);
//   void progress();
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tandem/api/configure.hpp"
#include "tandem/api/options.hpp"
#include "tandem/base/config.hpp"
#include "tandem/base/log.hpp"
#include "tandem/comm/bootstrap/join.hpp"
#include "tandem/comm/bootstrap/variables.hpp"
#include "tandem/comm/endpoint.hpp"

namespace benchmarks {

/// Opens an endpoint of a job of two, and closes it. What fails ends the program. Options come from the environment,
/// but for the transport and who makes progress.
class TandemRank {
 public:
  static constexpr const char* name = "tandem";

  /// `progress`: "inline" or "thread". An empty `transport` leaves the choice to Tandem.
  TandemRank(const std::string& transport, const std::string& progress) {
    tandem::base::Registry registry;
    tandem::register_options(registry);
    char* no_arguments[] = {nullptr};  // the command line is the benchmark's
    auto sources = tandem::base::ConfigSources::of_process(0, no_arguments);
    sources.reserved_variables = tandem::comm::job_variables();
    const auto config = tandem::base::Config::load(registry, sources);
    if (!config) fail(config.error().message);
    auto options = tandem::comm::comm_options(config.value());
    options.progress = progress;
    if (!transport.empty()) options.transports = {transport};
    auto job = tandem::comm::join_job({.environment = tandem::base::process_environment(), .log = log_});
    if (!job) fail(job.error().message);
    if (job.value().size != 2) fail("needs two ranks; start it with tandem run -n 2");
    auto opened = tandem::comm::Endpoint::open(std::move(job).value(), options, log_);
    if (!opened) fail(opened.error().message);
    endpoint_ = std::move(opened).value();
    other_ = tandem::comm::Rank(1 - rank());
  }

  std::string version() const { return "0.1.0"; }
  unsigned rank() const { return endpoint_->rank().value(); }
  void post_send(std::uint64_t tag, const void* data, std::size_t bytes, int priority = 0) {
    posted_.push_back(endpoint_->isend(other_, tandem::comm::Tag{tag}, {data, bytes}, {.priority = priority}));
  }
  void post_receive(std::uint64_t tag, void* data, std::size_t bytes, bool any_source = false) {
    const auto from = any_source ? tandem::comm::Source(tandem::comm::any_source) : tandem::comm::Source(other_);
    posted_.push_back(endpoint_->irecv(from, tandem::comm::Tag{tag}, {data, bytes}));
  }
  void wait_all() {
    endpoint_->wait_all(posted_);
    for (auto& request : posted_) {  // looked at and released in one walk through memory, as in MPI_Waitall
      expect_done(request.status());
      request = {};
    }
    posted_.clear();
  }
  void send(std::uint64_t tag, const void* data, std::size_t bytes) {
    expect_done(endpoint_->wait(endpoint_->isend(other_, tandem::comm::Tag{tag}, {data, bytes})));
  }
  void receive(std::uint64_t tag, void* data, std::size_t bytes) {
    expect_done(endpoint_->wait(endpoint_->irecv(other_, tandem::comm::Tag{tag}, {data, bytes})));
  }
  void progress() { endpoint_->progress(); }
  /// Parts of large messages that this rank has sent, or copied from the other one's memory.
  std::uint64_t segments() const { return endpoint_->statistics().segments; }

 private:
  [[noreturn]] static void fail(const std::string& what) {
    std::fprintf(stderr, "%s\n", what.c_str());
    std::exit(1);
  }
  static void expect_done(const tandem::comm::Status& status) {
    if (status.ending != tandem::comm::Ending::done) fail("a message ended as " + std::string(name_of(status.ending)));
  }

  tandem::base::Log log_;
  tandem::comm::Rank other_{0};
  std::unique_ptr<tandem::comm::Endpoint> endpoint_;
  std::vector<tandem::comm::Request> posted_;
};

}  // namespace benchmarks
