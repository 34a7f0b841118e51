// benchmarks/clock/endpoint.hpp: the endpoint of one of the ranks of ranks.hpp.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "benchmarks/clock/ranks.hpp"
#include "tandem/base/log.hpp"
#include "tandem/base/result.hpp"
#include "tandem/comm/bootstrap/card.hpp"
#include "tandem/comm/endpoint.hpp"

namespace benchmarks::clocks {

namespace base = tandem::base;
namespace comm = tandem::comm;

template <class T>
T checked(base::Result<T> result) {
  if (result.ok()) return std::move(result).value();
  std::fprintf(stderr, "%s\n", result.error().message.c_str());
  std::_Exit(1);
}

/// Ranks find each other by their board.
class BoardDirectory final : public comm::Directory {
 public:
  explicit BoardDirectory(Ranks& ranks) : ranks_(&ranks) {}

  base::Result<void> publish(const comm::PeerCard& card) override {
    own_version_ = card.wire_version;
    ranks_->publish_card(checked(comm::internal::encode_card(card)));
    return {};
  }
  base::Result<comm::PeerCard> lookup(comm::Rank peer) override {
    return comm::internal::decode_card(ranks_->card_of(peer.value()), own_version_);
  }

 private:
  Ranks* ranks_;
  std::uint32_t own_version_ = 0;
};

inline std::unique_ptr<comm::Endpoint> open_endpoint(Ranks& ranks, const std::string& transport, base::Log& log) {
  comm::Job job;
  job.rank = comm::Rank(ranks.rank());
  job.size = ranks.size();
  job.id = "clock-" + std::to_string(getpgrp());
  job.secret.fill(std::byte{29});
  job.directory = std::make_shared<BoardDirectory>(ranks);
  comm::EndpointOptions options;
  options.transports = {transport};
  return checked(comm::Endpoint::open(std::move(job), options, log));
}

}  // namespace benchmarks::clocks
