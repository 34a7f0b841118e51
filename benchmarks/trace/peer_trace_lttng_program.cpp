// benchmarks/trace/peer_trace_lttng_program.cpp: what an event costs on LTTng-UST. Started by peer_trace_lttng, within
// a session that records one of its two tracepoints.
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "benchmarks/trace/lttng_tracepoints.h"

#include <chrono>

#include "benchmarks/trace/harness.hpp"

namespace benchmarks::trace {
namespace {

class LttngAdapter {
 public:
  static constexpr const char* name = "lttng";

  class Actor {
   public:
    Actor(LttngAdapter&, unsigned) {}
    void on(std::uint32_t a, std::uint32_t b) { lttng_ust_tracepoint(bench_trace, recorded, a, b); }
    void off(std::uint32_t a, std::uint32_t b) {
      lttng_ust_tracepoint(bench_trace, ignored, a, b);
      asm volatile("" ::: "memory");
    }
  };

  std::string version() const { return "2.13"; }
  /// The consumer daemon is woken by full buffers.
  void drain() { std::this_thread::sleep_for(std::chrono::milliseconds(200)); }
};

}  // namespace
}  // namespace benchmarks::trace

int main(int argc, char** argv) {
  const benchmarks::trace::Plan plan(argc, argv);
  benchmarks::trace::LttngAdapter adapter;
  benchmarks::trace::measure(adapter, plan).print();
}
