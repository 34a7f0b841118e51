// tandem/analysis/history/write_large_run.cpp: writes the trace of a large imaginary run, for tests of tools that read
// traces. Usage: write_large_run FOLDER TASKS RANKS WORKERS [DEVICES]. Equal arguments write equal runs. DEVICES of the
// workers of each rank are of kind cuda, and take a quarter of the time.
//
// The ranks submit tasks of six kernels in turns. A task needs up to three of the last tasks of its rank, and the
// earliest free worker runs it. Every 25th task also needs a message of 64 KiB from another rank. Every 1001st is
// broadcast to all ranks, by a binomial tree.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <random>
#include <utility>
#include <vector>

#include "tandem/analysis/history/small_run.hpp"

namespace {

using tandem::analysis::test::at;
using tandem::analysis::test::SmallRun;
using tandem::trace::ActorKind;
using tandem::trace::Type;
using tandem::trace::WorkerState;

class LargeRun {
 public:
  LargeRun(std::uint32_t ranks, std::uint32_t workers, std::uint32_t devices)
      : run_(ranks), ranks_(ranks), workers_(workers), devices_(devices) {
    for (Rank& rank : ranks_) rank.free_ns.resize(workers);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) describe(rank);
  }

  void write(std::size_t tasks, const char* folder) {
    for (std::size_t i = 0; i < tasks; ++i) add_task(i);
    std::ranges::stable_sort(network_, {}, [](const auto& event) { return event.first; });
    for (const auto& event : network_) event.second();
    std::filesystem::copy(run_.write(), folder, std::filesystem::copy_options::recursive);
  }

 private:
  struct Task {
    std::uint32_t id = 0;
    std::int64_t end_ns = 0;
  };
  struct Rank {
    std::uint32_t next_id = 1;
    std::vector<Task> last;              ///< tasks, the oldest first
    std::vector<std::int64_t> free_ns;   ///< time from which each worker is free
  };
  static constexpr std::uint32_t first_worker = 10;  ///< actor
  static constexpr std::uint32_t network = 4;        ///< actor

  void describe(std::uint32_t rank) {
    run_.actor(rank, 1, ActorKind::submitter, 0, "submitter").actor(rank, network, ActorKind::progress, 0, "progress");
    for (std::uint32_t worker = 0; worker < workers_; ++worker) {
      run_.actor(rank, first_worker + worker, ActorKind::worker, static_cast<std::uint16_t>(worker),
                 is_device(worker) ? "cuda worker" : "worker");
      run_.stream(rank, first_worker + worker)
          .add(Type::worker_state, at(0), {static_cast<std::uint8_t>(WorkerState::polling)});
    }
    std::uint16_t site = 0;
    for (const char* const kernel : {"gemm", "trsm", "syrk", "potrf", "exchange", "norm"})
      run_.catalogue(rank).add(Type::site, at(0), {site, 100 + site, kernel, "large.cpp"}), ++site;
    run_.catalogue(rank).add(Type::data, at(0), {0, rank, 65'536, 64, 128, 0, "panel"});
  }

  bool is_device(std::uint32_t worker) const { return worker + devices_ >= workers_; }

  std::int64_t duration_ns(std::uint16_t site) {
    const double usual = 4'000.0 * (site + 2) * std::lognormal_distribution(0.0, 0.15)(random_);
    return 2 * static_cast<std::int64_t>(random_() % 500 == 0 ? 4 * usual : usual);
  }

  void add_task(std::size_t number) {
    const auto at_rank = static_cast<std::uint32_t>(number % ranks_.size());
    Rank& rank = ranks_[at_rank];
    const std::int64_t submit_ns = 2 * static_cast<std::int64_t>(number * 11'000 / (ranks_.size() * workers_));
    std::int64_t ready_ns = submit_ns;
    std::vector<std::uint32_t> deps;
    for (std::size_t count = random_() % 4; count > 0 && !rank.last.empty(); --count) {
      const Task& before = rank.last[random_() % rank.last.size()];
      if (std::ranges::find(deps, before.id) != deps.end()) continue;
      deps.push_back(before.id);
      ready_ns = std::max(ready_ns, before.end_ns);
    }
    if (ranks_.size() > 1 && number % 25 == 0) {
      const auto other = static_cast<std::uint32_t>((at_rank + 1 + random_() % (ranks_.size() - 1)) % ranks_.size());
      if (!ranks_[other].last.empty()) deps.push_back(add_message(other, at_rank, submit_ns, ready_ns));
    }
    const std::uint32_t id = rank.next_id++;
    const auto site = static_cast<std::uint16_t>(std::min<std::size_t>(random_() % 10, 5));
    run_.submit(at_rank, submit_ns, id, site, {}, deps);
    if (!deps.empty())
      network_.emplace_back(ready_ns,
                            [this, at_rank, id, ready_ns] { add(at_rank, Type::task_ready, ready_ns, {id}); });
    execute(at_rank, id, ready_ns, duration_ns(site));
    if (ranks_.size() > 1 && number % 1'001 == 0) add_broadcast(at_rank, rank.last.back().end_ns);
  }

  void execute(std::uint32_t at_rank, std::uint32_t id, std::int64_t ready_ns, std::int64_t duration_ns) {
    Rank& rank = ranks_[at_rank];
    const auto free = std::ranges::min_element(rank.free_ns);
    const std::uint32_t actor = first_worker + static_cast<std::uint32_t>(free - rank.free_ns.begin());
    const std::int64_t start_ns = std::max(ready_ns, *free) + 200;
    if (start_ns - *free > 1'000)
      run_.stream(at_rank, actor).add(Type::worker_state, at(*free), {static_cast<std::uint8_t>(WorkerState::sleeping)})
          .add(Type::worker_state, at(start_ns - 200), {static_cast<std::uint8_t>(WorkerState::scheduling)});
    *free = start_ns + (is_device(actor - first_worker) ? duration_ns / 8 * 2 : duration_ns);
    run_.execute(at_rank, actor, id, start_ns, *free);
    rank.last.push_back({id, *free});
    if (rank.last.size() > 8ul * workers_) rank.last.erase(rank.last.begin());
  }

  /// Adds a message. Returns the id of the receive.
  std::uint32_t add_message(std::uint32_t from, std::uint32_t to, std::int64_t submit_ns, std::int64_t& ready_ns) {
    const Task& made = ranks_[from].last.front();
    const std::uint32_t send = ranks_[from].next_id++, receive = ranks_[to].next_id++, number = ++messages_;
    const std::int64_t posted_ns = std::max(made.end_ns, submit_ns) + 400;
    const std::int64_t arrived_ns = posted_ns + 8'000 + 2 * static_cast<std::int64_t>(random_() % 8'000);
    run_.submit(from, submit_ns, send, 0, {}, {made.id}).submit(to, submit_ns, receive, 0);
    network_.emplace_back(posted_ns, [=, this] {
      add(from, Type::send_posted, posted_ns, {number, to, 0, 0, number, 65'536});
      add(from, Type::data_sent, posted_ns, {0, number, send, number});
    });
    network_.emplace_back(arrived_ns, [=, this] {
      add(to, Type::message_arrived, arrived_ns, {number, from, 0, number, 65'536});
      add(to, Type::data_received, arrived_ns, {0, number, receive, number});
    });
    ready_ns = std::max(ready_ns, arrived_ns);
    return receive;
  }

  /// A rank with the data serves the next one without it: position p serves p + 1, p + 2, p + 4, ... beyond p's own
  /// highest bit.
  void add_broadcast(std::uint32_t root, std::int64_t posted_ns) {
    const auto count = static_cast<std::uint32_t>(ranks_.size());
    const std::uint32_t number = ++messages_;
    const auto rank_of = [=](std::uint32_t position) { return (root + position) % count; };
    std::vector<std::int64_t> arrived_ns(count, posted_ns);
    std::vector<std::uint32_t> children;
    for (std::uint32_t step = 1; step < count; step *= 2) children.push_back(rank_of(step));
    network_.emplace_back(posted_ns, [=, this] {
      add(root, Type::mcast_posted, posted_ns, {number, 0, number, 65'536, count - 1});
      for (std::uint32_t position = 1; position < count; ++position)
        add(root, Type::mcast_recipient, posted_ns, {number, rank_of(position)});
      add(root, Type::mcast_routed, posted_ns, {number, 4, 0, children.size(), children});
    });
    for (std::uint32_t step = 1; step < count; step *= 2) {
      for (std::uint32_t position = 0; position < step && position + step < count; ++position) {
        const std::uint32_t from = rank_of(position), to = rank_of(position + step);
        const std::int64_t begun_ns = arrived_ns[position] + 400 * static_cast<std::int64_t>(step);
        const std::int64_t there_ns =
            begun_ns + 8'000 + 2 * static_cast<std::int64_t>(random_() % (random_() % 100 == 0 ? 80'000 : 4'000));
        arrived_ns[position + step] = there_ns;
        if (position > 0) at_time(begun_ns, from, Type::mcast_forwarded, {root, to, number, 65'536});
        at_time(there_ns, to, Type::message_arrived, {number, root, 0, number, 65'536});
      }
    }
  }

  void at_time(std::int64_t ns, std::uint32_t rank, Type type, std::array<std::uint32_t, 5> values) {
    network_.emplace_back(ns, [=, this] {
      if (type == Type::mcast_forwarded) add(rank, type, ns, {values[0], values[1], values[2], values[3]});
      else add(rank, type, ns, {values[0], values[1], values[2], values[3], values[4]});
    });
  }
  void add(std::uint32_t rank, Type type, std::int64_t ns,
           std::initializer_list<tandem::analysis::test::Value> values) {
    run_.stream(rank, network).add(type, at(ns), values);
  }

  std::mt19937 random_{28};
  SmallRun run_;
  std::vector<Rank> ranks_;
  std::uint32_t workers_, devices_, messages_ = 0;
  std::vector<std::pair<std::int64_t, std::function<void()>>>
      network_;  ///< events of progress actors, to be added in order
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5 && argc != 6) {
    std::fprintf(stderr, "Usage: write_large_run FOLDER TASKS RANKS WORKERS [DEVICES]\n");
    return 2;
  }
  try {
    const auto number = [&](int place) { return static_cast<std::uint32_t>(std::strtoul(argv[place], nullptr, 10)); };
    LargeRun(number(3), number(4), argc == 6 ? number(5) : 0).write(number(2), argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "write_large_run: %s\n", error.what());
    return 1;
  }
}
