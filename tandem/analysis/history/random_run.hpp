// tandem/analysis/history/random_run.hpp: for tests: a small random run on some ranks, and the truth about it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "tandem/analysis/history/small_run.hpp"

namespace tandem::analysis::test {

/// Tasks on two workers for each rank, dependencies within ranks and messages between them. Nothing begins before its
/// causes. All times are even numbers of nanoseconds since the first event.
class RandomRun {
 public:
  struct Task {
    std::uint32_t rank = 0, id = 0;
    unsigned worker = 0;
    std::int64_t submit_ns = 0, ready_ns = 0, start_ns = 0, end_ns = 0;
    std::vector<std::size_t> after = {};        ///< tasks
    std::optional<std::size_t> message = {};
  };
  struct Message {
    std::uint32_t source = 0, destination = 0;
    std::size_t of_task = 0, for_task = 0;
    std::uint64_t bytes = 0;
    std::int64_t posted_ns = 0, receive_posted_ns = 0, arrived_ns = 0;
  };

  RandomRun(unsigned seed, std::uint32_t ranks, std::size_t count = 30) : random_(seed), run_(ranks), ranks_(ranks) {
    next_id_.resize(ranks);
    free_ns_.resize(ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      run_.usual(rank);
      for (const std::uint32_t actor : {2u, 3u})
        run_.stream(rank, actor)
            .add(Type::worker_state, at(0), {static_cast<std::uint8_t>(trace::WorkerState::polling)});
    }
    for (std::size_t i = 0; i < count; ++i) add_task();
    std::ranges::stable_sort(network_, {}, [](const auto& event) { return event.first; });
    for (const auto& event : network_) event.second();
  }

  std::unique_ptr<History> read() { return run_.read(); }

  std::vector<Task> tasks;
  std::vector<Message> messages;

 private:
  std::int64_t even(unsigned below) { return 2 * static_cast<std::int64_t>(random_() % below); }

  void add_task() {
    Task task{.rank = static_cast<std::uint32_t>(random_() % ranks_), .worker = static_cast<unsigned>(random_() % 2)};
    task.submit_ns = now_ns_ += even(10);
    task.ready_ns = task.submit_ns;
    std::vector<std::uint32_t> deps;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (tasks[i].rank != task.rank || random_() % 5 != 0) continue;
      task.after.push_back(i);
      deps.push_back(tasks[i].id);
      task.ready_ns = std::max(task.ready_ns, tasks[i].end_ns);
    }
    if (ranks_ > 1 && !tasks.empty() && random_() % 2 == 0) {
      const std::size_t from = random_() % tasks.size();
      if (tasks[from].rank != task.rank) {
        deps.push_back(add_message(from, task));
        task.message = messages.size() - 1;
        task.ready_ns = std::max(task.ready_ns, messages.back().arrived_ns);
      }
    }
    task.id = next_id_[task.rank]++;
    std::int64_t& free_ns = free_ns_[task.rank][task.worker];
    task.start_ns = std::max(task.ready_ns, free_ns) + even(10);
    task.end_ns = free_ns = task.start_ns + 2 + even(60);
    run_.submit(task.rank, task.submit_ns, task.id, 0, {}, deps);
    run_.execute(task.rank, 2 + task.worker, task.id, task.start_ns, task.end_ns);
    if (!deps.empty())
      network_.emplace_back(task.ready_ns, [this, task] {
        run_.stream(task.rank, 4).add(Type::task_ready, at(task.ready_ns), {task.id});
      });
    tasks.push_back(task);
  }

  /// Adds a message for a task. Returns the id of the receive on the task's rank.
  std::uint32_t add_message(std::size_t from, const Task& task) {
    const Task& source = tasks[from];
    Message message{.source = source.rank, .destination = task.rank, .of_task = from, .for_task = tasks.size(), .bytes = 8 * (1 + random_() % 100)};
    message.posted_ns = std::max(source.end_ns, task.submit_ns) + even(5);
    message.arrived_ns = message.posted_ns + even(80);
    message.receive_posted_ns =
        task.submit_ns + even(static_cast<unsigned>((message.arrived_ns - task.submit_ns) / 2 + 1));
    messages.push_back(message);
    const auto number = static_cast<std::uint32_t>(messages.size());
    const std::uint32_t send = next_id_[source.rank]++, receive = next_id_[task.rank]++;
    run_.submit(source.rank, task.submit_ns, send, 1, {}, {source.id}).submit(task.rank, task.submit_ns, receive, 1);
    network_.emplace_back(message.receive_posted_ns, [this, message, number] {
      run_.stream(message.destination, 4)
          .add(Type::receive_posted, at(message.receive_posted_ns), {number, message.source, 0, number});
    });
    network_.emplace_back(message.posted_ns, [this, message, number, send] {
      run_.stream(message.source, 4)
          .add(Type::send_posted, at(message.posted_ns), {number, message.destination, 0, 0, number, message.bytes});
      run_.stream(message.source, 4).add(Type::data_sent, at(message.posted_ns), {0, number, send, number});
    });
    network_.emplace_back(message.arrived_ns, [this, message, number, receive] {
      run_.stream(message.destination, 4)
          .add(Type::message_arrived, at(message.arrived_ns), {number, message.source, 0, number, message.bytes});
      run_.stream(message.destination, 4)
          .add(Type::data_received, at(message.arrived_ns), {0, number, receive, number});
    });
    return receive;
  }

  std::mt19937 random_;
  SmallRun run_;
  std::uint32_t ranks_;
  std::int64_t now_ns_ = 0;
  std::vector<std::uint32_t> next_id_;                                            ///< of each rank
  std::vector<std::array<std::int64_t, 2>> free_ns_;                              ///< of each rank's workers
  std::vector<std::pair<std::int64_t, std::function<void()>>>
      network_;  ///< events of progress actors, to be added in order
};

}  // namespace tandem::analysis::test
