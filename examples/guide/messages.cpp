// examples/guide/messages.cpp: docs/guide/ranks.md: explicit messages between ranks. A ring: each rank passes its
// number on.
#include <cstdio>

#include <tandem/tandem.hpp>

int main(int argc, char** argv) {
  tandem::Runtime rt(argc, argv);
  int mine = static_cast<int>(rt.rank());
  int got = mine;
  auto hmine = rt.data("mine", mine);  // without an owner: each rank has its own
  auto hgot = rt.data("got", got);

  if (rt.size() > 1) {  // on one rank there is nobody to send to: a UsageError
    const std::uint32_t next = (rt.rank() + 1) % rt.size();
    const std::uint32_t previous = (rt.rank() + rt.size() - 1) % rt.size();
    rt.send(hmine, next, 7);
    rt.receive(hgot, previous, 7);
  }
  rt.submit("increase", [](int& value) { ++value; }, read_write(hgot));  // runs when the message is there
  rt.wait();
  if (rt.rank() == 0) std::printf("rank 0 got %d\n", got);
}
