// tandem/analysis/history/write_small_run.cpp: writes a run small enough to be computed by hand, for the tests of the
// Python package. Usage: write_small_run FOLDER. python/tests/test_small_run.py has the results.
//
// Rank 0 has two workers, rank 1 has one; all poll when they do not execute. Times in ns:
//
//   rank 0, worker 0:  potrf 1 [200, 400]  gemm 2 [420, 520]        gemm 2 and 3 need potrf 1
//   rank 0, worker 1:                      gemm 3 [440, 540]
//   rank 0 sends 64 bytes that potrf 1 made, by its node 4: [420, 600]
//   rank 1, worker 0:  gemm 2 [640, 740]  gemm 3 [760, 860]  gemm 4 [880, 1880]   each needs the one before; gemm 2 the message;
//                                                                            gemm 4 has a tag of 64 bits
#include <cstdio>
#include <exception>
#include <filesystem>

#include "tandem/analysis/history/small_run.hpp"

namespace {

using tandem::analysis::test::at;
using tandem::analysis::test::SmallRun;
using tandem::trace::Type;
using tandem::trace::WorkerState;

void write_ranks(SmallRun& run) {
  const auto poll = [&](std::uint32_t rank, std::uint32_t actor, std::int64_t ns) {
    run.stream(rank, actor).add(Type::worker_state, at(ns), {static_cast<std::uint8_t>(WorkerState::polling)});
  };
  run.usual(0).usual(1);
  poll(0, 2, 0);
  poll(0, 3, 0);
  poll(1, 2, 0);

  run.submit(0, 100, 1, 0).submit(0, 120, 2, 1, {}, {1}).submit(0, 140, 3, 1, {}, {1}).submit(0, 160, 4, 0, {}, {1});
  run.execute(0, 2, 1, 200, 400);
  run.stream(0, 2).add(Type::task_ready, at(400), {2}).add(Type::task_ready, at(400), {3});
  run.execute(0, 2, 2, 420, 520).execute(0, 3, 3, 440, 540);
  poll(0, 2, 1880);
  poll(0, 3, 1880);
  run.stream(0, 4).add(Type::send_posted, at(420), {1, 1, 0, 0, 7, 64}).add(Type::data_sent, at(420), {0, 1, 4, 1});

  run.submit(1, 100, 1, 0).submit(1, 120, 2, 1, {}, {1}).submit(1, 140, 3, 1, {}, {2});
  run.stream(1, 1).add(Type::task_note, at(150), {4, 18'446'744'073'709'551'557U, ""});  // more than a double holds
  run.submit(1, 160, 4, 1, {}, {3});
  run.stream(1, 4)
      .add(Type::receive_posted, at(80), {1, 0, 0, 7})
      .add(Type::message_arrived, at(600), {1, 0, 0, 7, 64});
  run.stream(1, 4).add(Type::data_received, at(600), {0, 1, 1, 1}).add(Type::task_ready, at(600), {2});
  run.execute(1, 2, 2, 640, 740).stream(1, 2).add(Type::task_ready, at(740), {3});
  run.execute(1, 2, 3, 760, 860).stream(1, 2).add(Type::task_ready, at(860), {4});
  run.execute(1, 2, 4, 880, 1880);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "Usage: write_small_run FOLDER\n");
    return 2;
  }
  try {
    SmallRun run(2);
    write_ranks(run);
    std::filesystem::copy(run.write(), argv[1], std::filesystem::copy_options::recursive);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "write_small_run: %s\n", error.what());
    return 1;
  }
}
