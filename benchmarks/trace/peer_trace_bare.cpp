// benchmarks/trace/peer_trace_bare.cpp: the bound: each thread stores the TSC and two numbers into a ring of its own.
#include <array>
#include <memory>

#include "benchmarks/trace/harness.hpp"

namespace benchmarks::trace {
namespace {

class BareAdapter {
 public:
  static constexpr const char* name = "bare";

  class Actor {
   public:
    Actor(BareAdapter&, unsigned) : ring_(std::make_unique<std::array<Event, kEvents>>()) {}
    void on(std::uint32_t a, std::uint32_t b) {
      (*ring_)[next_++ % kEvents] = {__rdtsc(), a, b};
      asm volatile("" ::: "memory");
    }
    void off(std::uint32_t a, std::uint32_t b) {
      if (enabled_) [[unlikely]] on(a, b);
      asm volatile("" ::: "memory");
    }

   private:
    static constexpr std::size_t kEvents = 4096;
    struct Event {
      std::uint64_t ticks;
      std::uint32_t a, b;
    };
    std::unique_ptr<std::array<Event, kEvents>> ring_;
    std::size_t next_ = 0;
    volatile bool enabled_ = false;
  };

  std::string version() const { return "1"; }
  void drain() {}
};

}  // namespace
}  // namespace benchmarks::trace

int main(int argc, char** argv) {
  const benchmarks::trace::Plan plan(argc, argv);
  benchmarks::trace::BareAdapter adapter;
  benchmarks::trace::measure(adapter, plan).print();
}
