// benchmarks/simulation/peer_simulation_simgrid.cpp: SimGrid's default network model with the traffic of
// `bench_simulation_tandem`: an actor for each rank, on hosts behind one switch.
#include <simgrid/s4u.hpp>
#include <simgrid/version.h>

#include <string>
#include <vector>

#include "benchmarks/simulation/harness.hpp"

namespace {

namespace sg4 = simgrid::s4u;
using namespace benchmarks::simulation;

/// Hosts with a network card of their own, whose two directions do not share its rate.
std::vector<sg4::Host*> make_hosts(std::uint32_t ranks) {
  auto* const zone = sg4::create_star_zone("cluster");
  std::vector<sg4::Host*> hosts;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const std::string name = "host" + std::to_string(rank);
    auto* const host = zone->create_host(name, 1e9)->seal();
    const auto* const card =
        zone->create_split_duplex_link(name + "_card", bytes_per_s)->set_latency(latency_s / 2)->seal();
    zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr,
                    {sg4::LinkInRoute(card, sg4::LinkInRoute::Direction::UP)}, true);
    hosts.push_back(host);
  }
  zone->seal();
  return hosts;
}

}  // namespace

int main(int argc, char** argv) {
  const benchmarks::Options options(argc, argv, {"ranks", "messages"}, {"times"});
  // Without the corrections for TCP over Gigabit Ethernet that its default model has.
  int words = 3;
  std::vector<std::string> texts{argv[0], "--log=root.thresh:warning", "--cfg=network/model:CM02"};
  std::vector<char*> own{texts[0].data(), texts[1].data(), texts[2].data(), nullptr};
  sg4::Engine engine(&words, own.data());
  std::vector<benchmarks::Measurement> results;
  const auto all = all_traffic(options);
  const auto hosts = make_hosts(all.front().ranks);
  for (const Traffic& traffic : all) {
    const double begin_s = processor_s(), begin_virtual_s = sg4::Engine::get_clock();
    for (std::uint32_t rank = 0; rank < traffic.ranks; ++rank)
      sg4::Actor::create("rank" + std::to_string(rank), hosts[rank], [&hosts, &traffic, rank] {
        Receivers receivers(rank, traffic.ranks);
        for (std::uint32_t message = 0; message < traffic.messages; ++message)
          sg4::Comm::sendto(hosts[rank], hosts[receivers.next()], traffic.bytes);
      });
    engine.run();
    results.push_back(measurement(traffic, is_about_times(options), processor_s() - begin_s,
                                  sg4::Engine::get_clock() - begin_virtual_s));
  }
  int major = 0, minor = 0, patch = 0;
  sg_version_get(&major, &minor, &patch);
  benchmarks::Report{"simgrid", "SimGrid " + std::to_string(major) + "." + std::to_string(minor), 1, results}.print();
}
