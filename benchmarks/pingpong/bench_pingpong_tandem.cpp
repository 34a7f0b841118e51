// benchmarks/pingpong/bench_pingpong_tandem.cpp: ping-pong on Tandem's endpoints.
//
// --transport: shm, shm_copy (without cross-memory attach), tcp, and ucx where the build has it. With PINGPONG_TRACE, a
// folder, both sides trace everything into a new folder in it, as a flight recorder does.
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/pingpong/harness.hpp"
#include "benchmarks/pingpong/pair.hpp"
#include "tandem/comm/bootstrap/card.hpp"
#include "tandem/clock/clock.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/trace/session.hpp"

namespace benchmarks::pingpong {
namespace {

using tandem::base::Error;
using tandem::base::ErrorCode;
using tandem::base::Result;
namespace comm = tandem::comm;

/// Swaps cards over the pair's sockets.
class PairDirectory final : public comm::Directory {
 public:
  explicit PairDirectory(Pair& pair) : pair_(&pair) {}

  Result<void> publish(const comm::PeerCard& card) override {
    own_ = card;
    auto bytes = comm::internal::encode_card(card);
    if (!bytes) return bytes.error();
    pair_->send(bytes.value());
    return {};
  }
  Result<comm::PeerCard> lookup(comm::Rank peer) override {
    if (peer.value() == pair_->rank()) return own_;
    if (other_.empty()) other_ = pair_->receive();
    return comm::internal::decode_card(other_, own_.wire_version);
  }

 private:
  Pair* pair_;
  comm::PeerCard own_;
  std::string other_;
};

class TandemAdapter {
 public:
  static constexpr const char* name = "tandem";

  TandemAdapter(Pair& pair, const Plan& plan) : other_(1 - pair.rank()) {
    comm::Job job;
    job.rank = comm::Rank(pair.rank());
    job.size = 2;
    job.id = "pingpong-" + std::to_string(pair.maker());
    job.source = "fork";
    job.secret.fill(std::byte{17});
    job.directory = std::make_shared<PairDirectory>(pair);
    const bool copies = plan.transport == "shm_copy";
    comm::EndpointOptions options;
    options.transports = {copies ? "shm" : plan.transport};
    options.cross_memory = !copies;
    options.progress = "inline";
    options.spin_ns = plan.sleep ? 0 : 1'000'000'000;
    if (const char* const folder = std::getenv("PINGPONG_TRACE")) {
      const auto run = std::filesystem::path(folder) / ("pingpong-" + std::to_string(pair.maker()));
      tandem::trace::SessionOptions traced{.folder = run, .rank = pair.rank(), .size = 2};
      traced.when_full = tandem::trace::WhenFull::newest;
      auto session = tandem::trace::Session::open(traced, *clock_, log_);
      if (!session) {
        std::fprintf(stderr, "%s\n", session.error().message.c_str());
        std::_Exit(1);
      }
      session_ = std::move(session).value();
      options.trace = session_.get();
    }
    auto opened = comm::Endpoint::open(std::move(job), options, log_);
    if (!opened) {
      std::fprintf(stderr, "%s\n", opened.error().message.c_str());
      std::_Exit(1);
    }
    endpoint_ = std::move(opened).value();
  }

  std::string version() const { return "0.1.0"; }
  unsigned rank() const { return endpoint_->rank().value(); }
  void send(const void* data, std::size_t bytes) { endpoint_->wait(endpoint_->isend(other_, tag, {data, bytes})); }
  void receive(void* data, std::size_t bytes) { endpoint_->wait(endpoint_->irecv(other_, tag, {data, bytes})); }
  void send_many(const void* data, std::size_t bytes, unsigned count) {
    for (unsigned i = 0; i < count; ++i) requests_.push_back(endpoint_->isend(other_, tag, {data, bytes}));
    finish_all();
  }
  void receive_many(void* data, std::size_t bytes, unsigned count) {
    for (unsigned i = 0; i < count; ++i) requests_.push_back(endpoint_->irecv(other_, tag, {data, bytes}));
    finish_all();
  }
  void send_stream(const void* data, std::size_t bytes, unsigned count, unsigned window) {
    slide(requests_, count, window, [&] { return endpoint_->isend(other_, tag, {data, bytes}); },
          [&](const comm::Request& one) { endpoint_->wait(one); });
  }
  void receive_stream(void* data, std::size_t bytes, unsigned count, unsigned window) {
    slide(requests_, count, window, [&] { return endpoint_->irecv(other_, tag, {data, bytes}); },
          [&](const comm::Request& one) { endpoint_->wait(one); });
  }
  void leave() { endpoint_->close(); }

 private:
  static constexpr comm::Tag tag{1};

  void finish_all() {
    endpoint_->wait_all(requests_);
    requests_.clear();
  }

  tandem::base::Log log_;
  std::unique_ptr<tandem::clock::Clock> clock_ = tandem::clock::best_clock();
  std::unique_ptr<tandem::trace::Session> session_;  ///< with PINGPONG_TRACE, a folder
  comm::Rank other_;
  std::unique_ptr<comm::Endpoint> endpoint_;
  std::vector<comm::Request> requests_;
};

}  // namespace
}  // namespace benchmarks::pingpong

int main(int argc, char** argv) {
  using namespace benchmarks::pingpong;
  const Plan plan(argc, argv);
  Pair pair;
  benchmarks::pingpong::bind_as_planned(plan, pair.rank());
  {
    TandemAdapter adapter(pair, plan);
    measure(adapter, plan);
    adapter.leave();
  }
  return pair.end();
}
