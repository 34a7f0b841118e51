// benchmarks/trace/peer_trace_fxt.cpp: what an event costs on FxT, as StarPU uses it: one buffer for all threads.
#define CONFIG_FUT 1
#include <cstring>
#include <filesystem>

#include <sys/types.h>
#include <unistd.h>

#include <fxt/fxt.h>
#include <fxt/fut.h>

#include "benchmarks/trace/harness.hpp"

namespace benchmarks::trace {
namespace {

constexpr unsigned kRecorded = 1, kIgnored = 2;  // key masks

class FxtAdapter {
 public:
  static constexpr const char* name = "fxt";

  FxtAdapter() : file_(std::filesystem::temp_directory_path() / ("bench-fxt-" + std::to_string(::getpid()))) {
    fut_set_filename(const_cast<char*>(file_.c_str()));
    enable_fut_flush();
    if (fut_setup(64 << 20, kRecorded, static_cast<unsigned>(::getpid())) < 0) {
      std::fprintf(stderr, "fut_setup failed\n");
      std::exit(1);
    }
  }
  ~FxtAdapter() {
    fut_endup(const_cast<char*>(file_.c_str()));
    std::filesystem::remove(file_);
  }

  class Actor {
   public:
    Actor(FxtAdapter&, unsigned) {}
    void on(std::uint32_t a, std::uint32_t b) { FUT_PROBE2(kRecorded, 0x1001, a, b); }
    void off(std::uint32_t a, std::uint32_t b) {
      FUT_PROBE2(kIgnored, 0x1002, a, b);
      asm volatile("" ::: "memory");
    }
  };

  std::string version() const { return "0.3"; }
  /// The buffer is emptied, as if it were new; a full one would be written by the thread that finds it so.
  void drain() { fut_reset(kRecorded, static_cast<unsigned>(::getpid())); }

 private:
  std::string file_;
};

}  // namespace
}  // namespace benchmarks::trace

int main(int argc, char** argv) {
  const benchmarks::trace::Plan plan(argc, argv);
  benchmarks::trace::FxtAdapter adapter;
  benchmarks::trace::measure(adapter, plan).print();
}
