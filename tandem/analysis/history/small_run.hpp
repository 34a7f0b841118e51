// tandem/analysis/history/small_run.hpp: small runs for tests of readers of traces: streams of a few events, at times
// in nanoseconds.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>

#include "tandem/trace/read/sample_trace.hpp"
#include "tandem/analysis/history/history.hpp"

namespace tandem::analysis::test {

using trace::Type;
using trace::test::PacketWriter;
using trace::test::Value;

/// An even time in ns since the beginning of a test's run, as the stamp of a rank whose clock shows 5 us then.
inline std::uint64_t at(std::int64_t ns) { return 1'000'000 + static_cast<std::uint64_t>(ns / 2); }

/// Reads the folder of a run. Throws the error.
inline std::unique_ptr<History> read_history(const std::filesystem::path& folder, const HistoryOptions& options = {}) {
  auto run = trace::TraceReader::open(folder);
  if (!run) throw std::runtime_error(run.error().message);
  auto history = History::read(*run.value(), options);
  if (!history) throw std::runtime_error(history.error().message);
  return std::move(history).value();
}
/// The history of the run that `write_sample_run` writes.
inline std::unique_ptr<History> read_sample_run() {
  const trace::test::TempFolder folder;
  trace::test::write_sample_run(folder.path() / "run");
  return read_history(folder.path() / "run");
}

/// A run that a test writes event by event. Streams are packets that grow; `read` and `write` store them on the disk.
class SmallRun {
 public:
  explicit SmallRun(std::uint32_t ranks = 1) : ranks_(ranks) {}

  PacketWriter& stream(std::uint32_t rank, std::uint32_t actor, std::int64_t begin_ns = 0) {
    return streams_.try_emplace({rank, actor}, actor, 0, at(begin_ns)).first->second;
  }
  PacketWriter& catalogue(std::uint32_t rank = 0) { return stream(rank, 0); }
  SmallRun& actor(std::uint32_t rank, std::uint32_t actor, trace::ActorKind kind, std::uint16_t index,
                  const char* name) {
    catalogue(rank).add(Type::actor, at(0), {actor, static_cast<std::uint8_t>(kind), index, -1, name});
    return *this;
  }
  /// Adds the usual actors: 1 submits, 2 and 3 are workers 0 and 1, 4 polls the network; site 0 is potrf, site 1 gemm.
  SmallRun& usual(std::uint32_t rank = 0) {
    using enum trace::ActorKind;
    actor(rank, 1, submitter, 0, "submitter")
        .actor(rank, 2, worker, 0, "worker 0")
        .actor(rank, 3, worker, 1, "worker 1");
    actor(rank, 4, progress, 0, "progress");
    this->catalogue(rank)
        .add(Type::site, at(0), {0, 42, "potrf", "app.cpp"})
        .add(Type::site, at(0), {1, 43, "gemm", "app.cpp"});
    this->catalogue(rank).add(Type::data, at(0), {0, rank, 8192, 32, 32, 0, "A[0,0]"});
    this->catalogue(rank).add(Type::data, at(0), {1, rank, 8192, 32, 32, 0, "A[1,0]"});
    return *this;
  }
  /// `pus`: "[0, 1]".
  SmallRun& place(std::uint32_t rank, const std::string& host, const std::string& pus) {
    places_[rank] = {host, pus};
    return *this;
  }
  SmallRun& submit(std::uint32_t rank, std::int64_t ns, std::uint32_t task, std::uint16_t site,
                   std::vector<std::uint32_t> accesses = {}, std::vector<std::uint32_t> deps = {},
                   std::int32_t priority = 0) {
    for (std::uint32_t& predecessor : deps) predecessor = task - predecessor;
    stream(rank, 1).add(Type::task_submitted, at(ns),
                        {task, priority, site, accesses.size(), deps.size(), accesses, deps});
    return *this;
  }
  SmallRun& execute(std::uint32_t rank, std::uint32_t actor, std::uint32_t task, std::int64_t start_ns,
                    std::int64_t end_ns) {
    stream(rank, actor).add(Type::task_started, at(start_ns), {task}).add(Type::task_ended, at(end_ns), {task});
    return *this;
  }

  const std::filesystem::path& write() {
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      trace::test::RankFacts facts{.rank = rank, .size = ranks_};
      if (const auto place = places_.find(rank); place != places_.end())
        std::tie(facts.host, facts.pus) = place->second;
      trace::test::write_rank(folder_ / trace::rank_folder_name(rank), facts);
    }
    for (const auto& [place, packet] : streams_)
      trace::test::write_file(trace::test::stream_path(folder_ / trace::rank_folder_name(place.first), place.second),
                              packet.bytes());
    return folder_;
  }
  std::unique_ptr<History> read(const HistoryOptions& options = {}) { return read_history(write(), options); }
  const std::filesystem::path& folder() const { return folder_; }
  const std::filesystem::path& temporary() const { return temporary_.path(); }

 private:
  trace::test::TempFolder temporary_;
  std::filesystem::path folder_ = temporary_.path() / "run";
  std::uint32_t ranks_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, PacketWriter> streams_;
  std::map<std::uint32_t, std::pair<std::string, std::string>> places_;
};

/// A run whose tasks execute on worker 0 of one rank, consecutively from 0 on. `Run` derives from it.
template <class Run>
class TasksInARow : public SmallRun {
 public:
  TasksInARow(std::uint32_t ranks, std::uint32_t rank) : SmallRun(ranks), rank_(rank) {
    for (std::uint32_t each = 0; each < ranks; ++each) usual(each);
  }
  Run& tasks(unsigned count, std::int64_t duration_ns, std::uint16_t site = 1) {
    for (unsigned i = 0; i < count; ++i, ++number_, ns_ += duration_ns)
      submit(rank_, 0, number_, site).execute(rank_, 2, number_, ns_, ns_ + duration_ns);
    return static_cast<Run&>(*this);
  }
  Run& pause(std::int64_t duration_ns) {
    ns_ += duration_ns;
    return static_cast<Run&>(*this);
  }
  std::int64_t now_ns() const noexcept { return ns_; }

 private:
  std::uint32_t rank_, number_ = 0;
  std::int64_t ns_ = 0;
};

/// Two messages that wait for each other: node 1 of each rank receives what node 1 of the other one sends, all at one
/// instant, and task 2 reads it.
inline SmallRun& add_messages_in_a_circle(SmallRun& run) {
  run.usual(0).usual(1);
  for (const std::uint32_t rank : {0u, 1u}) {
    run.submit(rank, 0, 1, 0).submit(rank, 0, 2, 0, {}, {1});
    run.stream(rank, 4)
        .add(Type::receive_posted, at(20), {1, 1 - rank, 0, 7})
        .add(Type::send_posted, at(100), {2, 1 - rank, 0, 0, 7, 64});
    run.stream(rank, 4)
        .add(Type::data_sent, at(100), {0, 1, 1, 2})
        .add(Type::message_arrived, at(100), {1, 1 - rank, 0, 7, 64});
    run.stream(rank, 4).add(Type::data_received, at(100), {0, 1, 1, 1});
    run.execute(rank, 2, 2, 120, 200);
  }
  return run;
}

/// Rank 0 runs task 1, its node 2 sends the result, node 3 of rank 1 receives it, task 4 there reads it.
inline SmallRun& add_message(SmallRun& run) {
  run.usual(0).usual(1);
  run.submit(0, 0, 1, 0).execute(0, 2, 1, 10, 110).submit(0, 0, 2, 0, {}, {1});
  run.stream(0, 4).add(Type::send_posted, at(120), {1, 1, 0, 0, 7, 64}).add(Type::data_sent, at(120), {0, 1, 2, 1});
  run.submit(1, 0, 3, 0).submit(1, 10, 4, 0, {}, {3});
  run.stream(1, 4)
      .add(Type::receive_posted, at(20), {1, 0, 0, 7})
      .add(Type::message_arrived, at(300), {1, 0, 0, 7, 64});
  run.stream(1, 4).add(Type::data_received, at(300), {0, 1, 3, 1});
  run.execute(1, 2, 4, 320, 400);
  return run;
}

}  // namespace tandem::analysis::test
