// benchmarks/pingpong/pair.hpp: two processes of one program, and a socket between them.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <string>

#include "benchmarks/pingpong/harness.hpp"

namespace benchmarks::pingpong {

/// Made before any library starts threads: the maker becomes rank 0 and its child rank 1, which dies with it. Their
/// pair of sockets carries what they exchange before they measure.
class Pair {
 public:
  Pair() {
    int ends[2];
    require(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
    maker_ = getpid();
    child_ = fork();
    require(child_ >= 0, "fork");
    rank_ = child_ == 0 ? 1 : 0;
    if (rank_ == 1) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != maker_) std::_Exit(1);
    }
    socket_ = ends[rank_];
    close(ends[1 - rank_]);
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  unsigned rank() const { return rank_; }
  pid_t maker() const { return maker_; }

  void send(const std::string& bytes) {
    const std::size_t size = bytes.size();
    require(write(socket_, &size, sizeof size) == static_cast<ssize_t>(sizeof size), "write");
    require(write(socket_, bytes.data(), size) == static_cast<ssize_t>(size), "write");
  }
  std::string receive() {
    std::size_t size = 0;
    require(read(socket_, &size, sizeof size) == static_cast<ssize_t>(sizeof size), "read");
    std::string bytes(size, '\0');
    for (std::size_t at = 0; at < size;) {
      const ssize_t got = read(socket_, bytes.data() + at, size - at);
      require(got > 0, "read");
      at += static_cast<std::size_t>(got);
    }
    return bytes;
  }
  /// Until both are here.
  void meet() {
    send("x");
    receive();
  }
  /// The program's exit status, once rank 1 has ended.
  int end() {
    if (rank_ == 1) return 0;
    int status = 0;
    require(waitpid(child_, &status, 0) == child_, "waitpid");
    return status == 0 ? 0 : 1;
  }

 private:
  pid_t child_ = 0, maker_ = 0;
  unsigned rank_ = 0;
  int socket_ = -1;
};

}  // namespace benchmarks::pingpong
