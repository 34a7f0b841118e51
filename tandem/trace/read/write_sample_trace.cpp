// tandem/trace/read/write_sample_trace.cpp: writes the sample trace, for tests that run other programs on it. Usage:
// write_sample_trace FOLDER, or write_sample_trace FOLDER LIVE_FILE PROCESS for one whose rank 1 was killed as that
// process.
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "tandem/base/host.hpp"
#include "tandem/trace/read/sample_trace.hpp"

int main(int argc, char** argv) {
  namespace test = tandem::trace::test;
  if (argc != 2 && argc != 4) {
    std::fprintf(stderr, "Usage: write_sample_trace FOLDER [LIVE_FILE PROCESS]\n");
    return 2;
  }
  try {
    test::write_sample_run(argv[1]);
    if (argc == 2) return 0;
    test::kill_sample_rank(test::sample_rank_folder(argv[1], 1), argv[2],
                           {.rank = 1, .size = 2, .process = static_cast<std::uint32_t>(std::atoi(argv[3])),
                            .host = tandem::base::host_name()});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "write_sample_trace: %s\n", error.what());
    return 1;
  }
}
