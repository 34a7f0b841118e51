// tests/install/consumer/comm_consumer.cpp: the smallest program that uses the communication library alone.
// Usage: comm_consumer TRANSPORT
#include <tandem/base/log.hpp>
#include <tandem/comm/bootstrap/job.hpp>
#include <tandem/comm/endpoint.hpp>

#include <cstdio>

int main(int argc, char** argv) {
  using namespace tandem;
  base::Log log;
  auto opened = comm::Endpoint::open(comm::Job{}, {.transports = {argc > 1 ? argv[1] : "tcp"}}, log);
  if (!opened) return std::fprintf(stderr, "%s\n", opened.error().message.c_str()), 1;
  comm::Endpoint& endpoint = *opened.value();
  const std::vector<int> sent{1, 2, 3};
  std::vector<int> received(3);
  const comm::Request receive = endpoint.irecv(comm::any_source, comm::any_tag, received);
  endpoint.wait(endpoint.isend(endpoint.rank(), comm::Tag{7}, sent));
  endpoint.wait(receive);
  return received == sent ? 0 : 1;
}
