// tandem/base/standard_streams_test.cpp: no file gets the number of a closed stream.
#include "tandem/base/standard_streams.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include <gtest/gtest.h>

namespace tandem::base::standard_streams_test {
namespace {

/// The status of a child that runs `body`.
template <class Body>
int in_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(StandardStreams, ThatAreClosedAreHeldByWhatNobodyCanWrite) {
  EXPECT_EQ(in_child([] {
              for (int standard = 0; standard < 3; ++standard) ::close(standard);
              hold_standard_streams();
              if (::open("/dev/null", O_RDWR) < 3) return 1;
              char byte = 0;
              if (::read(0, &byte, 1) != 0) return 2;
              for (const int standard : {1, 2})
                if (::write(standard, "x", 1) != -1 || errno != EBADF) return 3;
              return 0;
            }),
            0);
}

TEST(StandardStreams, ThatAreOpenStayAsTheyAre) {
  EXPECT_EQ(in_child([] {
              ::close(2);
              int ends[2];
              if (::pipe(ends) != 0 || ::dup2(ends[1], 1) != 1) return 1;
              hold_standard_streams();
              if (::write(1, "x", 1) != 1) return 2;
              char byte = 0;
              return ::read(ends[0], &byte, 1) == 1 && byte == 'x' ? 0 : 3;
            }),
            0);
}

}  // namespace
}  // namespace tandem::base::standard_streams_test
