// benchmarks/trace/bench_trace_tandem.cpp: what an event costs on Tandem; `cold...` as cold.hpp says.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

#include "benchmarks/trace/cold.hpp"
#include "benchmarks/trace/harness.hpp"
#include "tandem/trace/session.hpp"

namespace benchmarks::trace {
namespace {

namespace tt = tandem::trace;

class TandemAdapter {
 public:
  static constexpr const char* name = "tandem";

  TandemAdapter() : folder_(std::filesystem::temp_directory_path() / ("bench-trace-" + std::to_string(::getpid()))) {
    tt::SessionOptions options{.folder = folder_, .selection = tt::Selection::parse("all,-task.ready").value()};
    options.memory_bytes = 16 << 20;
    auto opened = tt::Session::open(options, *clock_, log_);
    if (!opened.ok()) {
      std::fprintf(stderr, "%s\n", opened.error().message.c_str());
      std::exit(1);
    }
    session_ = std::move(opened).value();
  }
  ~TandemAdapter() {
    const tt::SessionCounts counts = session_->close();
    if (counts.lost_events > 0)
      std::fprintf(stderr, "%llu events were lost\n", static_cast<unsigned long long>(counts.lost_events));
    std::filesystem::remove_all(folder_);
  }

  class Actor {
   public:
    Actor(TandemAdapter& adapter, unsigned index) {
      adapter.session_->attach(stream_, {.name = "thread " + std::to_string(index)});
    }
    void on(std::uint32_t a, std::uint32_t b) { stream_.emit<tt::Type::task_deps>(a, b); }
    void off(std::uint32_t a, std::uint32_t) {
      stream_.emit<tt::Type::task_ready>(a);
      asm volatile("" ::: "memory");
    }

   private:
    tt::Stream stream_;
  };

  std::string version() const { return "0.1.0"; }
  /// The flusher looks at least each 50 ms.
  void drain() { std::this_thread::sleep_for(std::chrono::milliseconds(80)); }

 private:
  std::filesystem::path folder_;
  std::unique_ptr<tandem::clock::Clock> clock_ = tandem::clock::best_clock();
  tandem::base::Log log_;
  std::unique_ptr<tt::Session> session_;
};

/// Processor time of the thread that writes, so far, in ns.
double flusher_ns() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::ifstream(task.path() / "comm") >> name;
    double ns = 0;
    if (name == "tandem-trace" && std::ifstream(task.path() / "schedstat") >> ns) return ns;
  }
  return 0;
}

/// What the flusher takes of a core while two threads record half a million events per second each.
void measure_flusher(TandemAdapter& adapter, Report& report) {
  constexpr unsigned threads = 2, milliseconds = 1'000, events = 500;
  const double before_ns = flusher_ns(), from_ns = internal::wall_ns();
  std::vector<std::thread> all;
  for (unsigned t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      TandemAdapter::Actor actor(adapter, t);
      auto next = std::chrono::steady_clock::now();
      for (unsigned i = 0; i < milliseconds; ++i) {
        for (std::uint32_t event = 0; event < events; ++event) actor.on(event, i);
        std::this_thread::sleep_until(next += std::chrono::milliseconds(1));
      }
    });
  for (std::thread& thread : all) thread.join();
  adapter.drain();
  const double seconds = (internal::wall_ns() - from_ns) / 1e9;
  const double per_million = (flusher_ns() - before_ns) / (threads * events * milliseconds) * 1e6;
  report.results.push_back({"flusher_per_million", "% of a core", {per_million / 1e7}});
  report.results.push_back({"rate", "million events/s", {threads * events * milliseconds / seconds / 1e6}});
}

}  // namespace
}  // namespace benchmarks::trace

int main(int argc, char** argv) {
  const benchmarks::trace::Plan plan(argc, argv);
  benchmarks::Report report;
  {
    benchmarks::trace::TandemAdapter adapter;
    report = benchmarks::trace::measure(adapter, plan);
    benchmarks::trace::measure_flusher(adapter, report);
  }
  benchmarks::trace::measure_cold(report, plan.repetitions, plan.cold);
  report.print();
}
