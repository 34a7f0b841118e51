// tandem/comm/transport/shm/shm_process_test.cpp: the shared-memory transport between processes that are killed and
// stopped.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <string>

#include "tandem/comm/transport/shm/shm_test_support.hpp"

namespace tandem::comm::shm_process_test {
namespace {

using namespace shm_test;

/// What parent and child share before they share a segment: addresses, and the child's progress.
struct Board {
  std::array<char, 512> cards[2];
  std::atomic<int> written[2];
  std::atomic<int> stage;
};

struct Family {
  Family()
      : board(new (mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Board{}) {}
  ~Family() {
    if (child > 0) kill(child, SIGKILL), waitpid(child, nullptr, 0);
    munmap(board, sizeof(Board));
  }

  /// Forks; the child becomes rank 1, connects to rank 0, and runs `body`.
  template <class Body>
  void have_child(Body body) {
    child = fork();
    if (child != 0) {
      parent = std::make_unique<ShmRank>(0, 2);
      publish(*parent, 0);
      return;
    }
    ShmRank me(1, 2);
    publish(me, 1);
    while (board->written[0] == 0) usleep(100);
    body(me, me.transport->connect(Rank(0), board->cards[0].data(), 0), *board);
    _exit(0);
  }
  void publish(ShmRank& rank, int as) {
    rank.transport->card().copy(board->cards[as].data(), 511);
    board->written[as] = 1;
  }
  bool step(const std::function<bool()>& done, int seconds = 20) {
    return step_until(std::array{parent.get()}, done, seconds);
  }
  void kill_child() {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    child = -1;
  }

  Board* board;
  pid_t child = -1;
  std::unique_ptr<ShmRank> parent;
};

/// Sends `text` for ever, with a payload.
void chatter(ShmRank& me, Link& link, Board& board) {
  const std::vector<std::byte> payload = pattern(300'000, 1);
  const iovec piece{const_cast<std::byte*>(payload.data()), payload.size()};
  for (std::uint64_t cookie = 1;; ++cookie) {
    SendStatus status;
    while ((status = link.try_send({.control = bytes_of("chatter"),
                                    .payload = {&piece, 1},
                                    .payload_bytes = payload.size(),
                                    .cookie = cookie})) == SendStatus::retry) {
      me.poll();
      usleep(20);
    }
    while (status == SendStatus::posted && (me.sink.cookies.empty() || me.sink.cookies.back() != cookie))
      me.poll(), usleep(20);
    board.stage = 1;
  }
}

TEST(ShmProcesses, AKilledPeerIsReportedWithinTwoSecondsWhereverItWas) {
  for (int delay_us : {0, 50, 200, 1000, 5000, 20'000}) {
    Family family;
    family.have_child(chatter);
    while (family.board->written[1] == 0) usleep(100);
    family.parent->transport->connect(Rank(1), family.board->cards[1].data(), 0);  // while the child calls
    family.step([&] { return delay_us == 0 || family.board->stage == 1; });
    for (const std::int64_t end = now_ns() + delay_us * 1000; now_ns() < end;) family.parent->poll();
    const std::int64_t killed_ns = now_ns();
    family.kill_child();
    ASSERT_TRUE(family.step([&] { return !family.parent->sink.failures.empty(); })) << delay_us;
    EXPECT_LT(now_ns() - killed_ns, 2'000'000'000) << delay_us;
    EXPECT_EQ(family.parent->sink.failures.size(), 1U);
  }
}

TEST(ShmProcesses, AStoppedPeerIsNotDeadAndGoesOn) {
  Family family;
  family.have_child(chatter);
  ASSERT_TRUE(family.step([&] { return family.parent->sink.landed_from(1) > 2; }));
  kill(family.child, SIGSTOP);
  family.step([] { return false; }, 3);
  EXPECT_TRUE(family.parent->sink.failures.empty());
  const std::size_t before = family.parent->sink.landed_from(1);
  kill(family.child, SIGCONT);
  EXPECT_TRUE(family.step([&] { return family.parent->sink.landed_from(1) > before + 3; }));
}

TEST(ShmProcesses, APeerThatIsStoppedBeforeItAnswersIsAwaited) {
  Family family;
  family.have_child([](ShmRank& me, Link&, Board& board) {
    board.stage = 1;
    raise(SIGSTOP);
    for (;;) me.poll(), usleep(100);
  });
  while (family.board->stage == 0) usleep(100);
  Link& link = family.parent->transport->connect(Rank(1), family.board->cards[1].data(), 0);
  family.step([] { return false; }, 1);
  EXPECT_TRUE(family.parent->sink.failures.empty());
  kill(family.child, SIGCONT);
  EXPECT_TRUE(family.step([&] { return link.try_send({.control = bytes_of("at last")}) == SendStatus::done; }));
}

/// Names in /dev/shm, and this process's mappings of shared memory files.
std::size_t traces_of_rings() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    count += entry.path().filename().string().find("tandem") != std::string::npos;
  FILE* maps = std::fopen("/proc/self/maps", "r");
  std::array<char, 512> line;
  while (std::fgets(line.data(), line.size(), maps) != nullptr)
    count += std::string(line.data()).find("tandem-rings") != std::string::npos;
  std::fclose(maps);
  return count;
}

TEST(ShmProcesses, ADeadPeersMemoryVanishes) {
  const std::size_t before = traces_of_rings();
  Family family;
  family.have_child(chatter);
  ASSERT_TRUE(family.step([&] { return family.parent->sink.landed_from(1) > 2; }));
  EXPECT_GT(traces_of_rings(), before);
  family.kill_child();
  ASSERT_TRUE(family.step([&] { return !family.parent->sink.failures.empty(); }));
  EXPECT_EQ(traces_of_rings(), before);
}

TEST(ShmProcesses, AChildOfThePeerThatLivesOnDoesNotHideItsDeath) {
  Family family;
  family.have_child([](ShmRank& me, Link& link, Board& board) {
    while (link.try_send({.control = bytes_of("hello")}) == SendStatus::retry) me.poll(), usleep(20);
    if (fork() == 0) {  // holds copies of all sockets
      board.stage = getpid();
      for (;;) pause();
    }
    for (;;) pause();
  });
  ASSERT_TRUE(family.step([&] { return family.parent->sink.landed_from(1) == 1 && family.board->stage != 0; }));
  family.kill_child();
  EXPECT_TRUE(family.step([&] { return !family.parent->sink.failures.empty(); }, 2));
  kill(family.board->stage, SIGKILL);
}

}  // namespace
}  // namespace tandem::comm::shm_process_test
