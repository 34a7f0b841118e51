// examples/11_messages.cpp: messages between ranks, without tasks: start it with `tandem run -n 4 11_messages`, with
// mpirun, or alone.
#include <atomic>
#include <cstdio>
#include <cstring>
#include <vector>

#include <tandem/comm/bootstrap/join.hpp>
#include <tandem/comm/endpoint.hpp>
#include <tandem/comm/sync/clock_sync.hpp>

namespace comm = tandem::comm;

int main() {
  // As MPI_Init: the launcher's environment says which rank this is. The log outlives the endpoint.
  tandem::base::Log log;
  auto job = comm::join_job({.environment = tandem::base::process_environment(), .log = log});
  if (!job) return std::fprintf(stderr, "%s\n", job.error().message.c_str()), 2;
  auto endpoint = comm::Endpoint::open(std::move(job).value(), {}, log);
  if (!endpoint) return std::fprintf(stderr, "%s\n", endpoint.error().message.c_str()), 2;
  comm::Endpoint& ep = *endpoint.value();
  const unsigned me = ep.rank().value(), size = ep.size();

  // Send and receive: each rank sends to the next one. Both calls return at once.
  std::vector<double> out(1000, me), in(1000);
  comm::Request receive = ep.irecv(comm::Rank{(me + size - 1) % size}, comm::Tag{7}, in);
  comm::Request send = ep.isend(comm::Rank{(me + 1) % size}, comm::Tag{7}, out);
  const comm::Status status = ep.wait(receive);  // status.source, .tag, .bytes; status.ending says whether it is there
  ep.wait(send);                                 // from now on `out` may change

  // Active messages: rank 0 handles each message on the channel when it arrives, and posts no receive.
  double sum = 0;
  std::atomic<unsigned> parts = 0;
  const comm::Channel sums = ep.channel("sums");
  if (me == 0) {
    ep.register_rpc(sums, {.done = [&](const comm::Status& arrived) {
      double part = 0;
      std::memcpy(&part, arrived.owned.data(), sizeof part);
      sum += part;  // handlers of one endpoint run one at a time
      ++parts;
    }});
  }
  const double mine = me + 1;
  ep.wait(ep.rpc(comm::Rank{0}, sums, comm::Tag{0}, {}, {&mine, sizeof mine}));

  // Broadcast: rank 0 names the recipients, and each of them posts an ordinary receive.
  if (me == 0) {
    while (parts < size) ep.progress();
    std::vector<comm::Recipient> others;
    for (unsigned rank = 1; rank < size; ++rank) others.push_back({.rank = comm::Rank{rank}});
    ep.wait(ep.mcast(others, comm::Tag{8}, {&sum, sizeof sum}));
  } else {
    ep.wait(ep.irecv(comm::Rank{0}, comm::Tag{8}, {&sum, sizeof sum}));
  }

  // Barrier: all ranks leave it at one instant of a clock on which they agree.
  auto clocks = comm::ClockSync::open(ep, {}, log);
  if (!clocks || !clocks.value()->barrier()) return 1;

  if (me == 0) std::printf("sum = %g\n", sum);
  return status.ending == comm::Ending::done && in[0] == (me + size - 1) % size ? 0 : 1;
}
