// tests/comm_processes/team.cpp: forking, shared memory, and a watchdog in each rank.
// COMM_PROCESSES_LOG=1 lets the ranks log what they know of each other.
#include "team.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

#include <fmt/core.h>

#include "tandem/base/sanitizers.hpp"
#include "tandem/comm/bootstrap/card.hpp"

namespace tandem::comm_processes {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

/// After this time a rank that has not ended prints what it was doing; the test kills ranks that cannot.
// Under sanitizers and beside another test ranks take up to ten times as long.
constexpr auto patience = std::chrono::seconds(base::under_sanitizer ? 120 : 75);
constexpr auto last_patience = patience + std::chrono::seconds(5);
/// A peer's death is known within this.
constexpr std::int64_t death_known_ns = 2'000'000'000;
constexpr int exit_failed = 3;

void nap() { std::this_thread::sleep_for(std::chrono::microseconds(500)); }

/// Cards on the board.
class BoardDirectory final : public comm::Directory {
 public:
  BoardDirectory(Board& board, comm::Rank self) : board_(board), self_(self) {}

  Result<void> publish(const comm::PeerCard& card) override {
    own_version_ = card.wire_version;
    auto bytes = comm::internal::encode_card(card);
    if (!bytes) return bytes.error();
    Board::Place& place = board_.places[self_.index()];
    std::memcpy(place.card.data(), bytes.value().data(), bytes.value().size());
    place.card_bytes.store(static_cast<std::uint32_t>(bytes.value().size()), std::memory_order_release);
    return {};
  }
  Result<comm::PeerCard> lookup(comm::Rank peer) override {
    const Board::Place& place = board_.places[peer.index()];
    while (place.card_bytes.load(std::memory_order_acquire) == 0) nap();
    return comm::internal::decode_card({place.card.data(), place.card_bytes.load(std::memory_order_relaxed)},
                                       own_version_);
  }

 private:
  Board& board_;
  comm::Rank self_;
  std::uint32_t own_version_ = 0;
};

[[noreturn]] void end_badly(Board& board, comm::Rank rank, std::string_view why) {
  Board::Place& place = board.places[rank.index()];
  const std::size_t bytes = std::min(why.size(), place.failure.size() - 1);
  std::memcpy(place.failure.data(), why.data(), bytes);
  place.failure[bytes] = '\0';
  place.failed.store(true, std::memory_order_release);
  std::_Exit(exit_failed);
}

[[noreturn]] void play_alone(Board& board, comm::Rank rank, std::uint32_t size, const comm::EndpointOptions& options,
                             const Team::Play& play) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  {
    Member member(board, rank, size, options);
    std::thread([&] {
      std::this_thread::sleep_for(patience);
      const std::int64_t note = board.places[rank.index()].notes[0].load();
      end_badly(board, rank, fmt::format("hangs, its note is {}\n{}", note, member.endpoint().describe()));
    }).detach();
    play(member);
    member.endpoint().close();
    std::_Exit(0);  // the watchdog is not waited for
  }
}

}  // namespace

Bytes pattern(std::size_t bytes, unsigned seed) {
  constexpr std::size_t period = 65'536;
  Bytes made(bytes);
  for (std::size_t i = 0; i < std::min(bytes, period); ++i)
    made[i] = static_cast<std::uint8_t>(i * 7 + seed * 131 + (i >> 8));
  // Copied: under sanitizers each byte that is computed costs as much as hundreds that are copied.
  for (std::size_t i = period; i < bytes; i += period) std::memcpy(&made[i], made.data(), std::min(period, bytes - i));
  return made;
}

std::int64_t steady_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

comm::EndpointOptions options_for(const std::string& transport) {
  comm::EndpointOptions options;
  options.cross_memory = transport != "shm_copy";
  options.transports = {transport == "shm_copy" ? "shm" : transport};
  if (transport == "tcp") options.interface = "lo";
  return options;
}

Member::Member(Board& board, comm::Rank rank, std::uint32_t size, const comm::EndpointOptions& options)
    : board_(board),
      rank_(rank),
      size_(size),
      log_(std::getenv("COMM_PROCESSES_LOG") ? base::LogLevel::info : base::LogLevel::error) {
  comm::Job job;
  job.rank = rank;
  job.size = size;
  job.id = fmt::format("team-{}", getppid());
  job.source = "fork";
  job.secret.fill(std::byte{42});
  job.directory = std::make_shared<BoardDirectory>(board, rank);
  auto opened = comm::Endpoint::open(std::move(job), options, log_);
  if (!opened) end_badly(board_, rank_, opened.error().message);
  endpoint_ = std::move(opened).value();
  endpoint_->on_peer_death([this](comm::Rank dead, std::string_view) { deaths_.fetch_or(1U << dead.value()); });
}

void Member::expect(bool good, std::string_view what) {
  if (!good) end_badly(board_, rank_, fmt::format("{}\n{}", what, endpoint_->describe()));
}

comm::Status Member::expect_ending(const comm::Request& request, comm::Ending ending, std::string_view what) {
  const comm::Status status = endpoint_->wait(request);
  expect(status.ending == ending,
         fmt::format("{} ended as {}, not as {}", what, name_of(status.ending), name_of(ending)));
  return status;
}

void Member::expect_death(const comm::Request& request, std::uint32_t culprit, std::string_view what) {
  const comm::Status status = expect_ending(request, comm::Ending::peer_dead, what);
  expect(status.culprit.value() == culprit, fmt::format("{} blames rank {}", what, status.culprit.value()));
  const std::int64_t late_ns = steady_now_ns() - board_.killed_ns.load();
  expect(late_ns < death_known_ns, fmt::format("{} failed only {} ms after the death", what, late_ns / 1'000'000));
}

void Member::await(std::uint32_t rank, int stage) {
  while (board_.places[rank].stage.load() < stage) nap();
}

void Member::await_order(int stage) {
  while (board_.orders.load() < stage) nap();
}

void Member::await_death() {
  while (true) pause();
}

void Member::talk(const std::vector<std::uint32_t>& ranks, std::size_t bytes, std::uint64_t tag) {
  std::vector<comm::Request> requests;
  std::vector<Bytes> got(ranks.size(), Bytes(bytes));
  const Bytes mine = pattern(bytes, rank());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (is(ranks[i])) continue;
    requests.push_back(endpoint_->irecv(comm::Rank{ranks[i]}, comm::Tag{tag}, got[i]));
    requests.push_back(endpoint_->isend(comm::Rank{ranks[i]}, comm::Tag{tag}, mine));
  }
  for (const comm::Request& request : requests)
    expect_ending(request, comm::Ending::done, "a message of those that go on");
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    expect(is(ranks[i]) || got[i] == pattern(bytes, ranks[i]), fmt::format("wrong bytes from rank {}", ranks[i]));
  }
}

Team::Team(std::uint32_t size, const comm::EndpointOptions& options, const Play& play)
    : processes_(size), ended_(size), killed_(size) {
  void* memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || size > most_ranks) std::abort();
  board_ = new (memory) Board;
  std::fflush(nullptr);
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    processes_[rank] = fork();
    if (processes_[rank] == 0) play_alone(*board_, comm::Rank{rank}, size, options, play);
    if (processes_[rank] < 0) std::abort();
  }
}

Team::~Team() {
  for (std::uint32_t rank = 0; rank < processes_.size(); ++rank) {
    if (ended_[rank]) continue;
    ::kill(processes_[rank], SIGKILL);
    reap(rank, true);
  }
  munmap(board_, sizeof(Board));
}

bool Team::reap(std::uint32_t rank, bool wait) {
  if (ended_[rank]) return true;
  int status = 0;
  if (waitpid(processes_[rank], &status, wait ? 0 : WNOHANG) != processes_[rank]) return false;
  ended_[rank] = true;
  if (killed_[rank] || status == 0) return true;
  const Board::Place& place = board_->places[rank];
  std::string why = fmt::format("exit code {}", WEXITSTATUS(status));
  if (WIFSIGNALED(status)) why = fmt::format("ended by {}", strsignal(WTERMSIG(status)));
  if (place.failed.load(std::memory_order_acquire)) why = place.failure.data();
  wrong_ += fmt::format("rank {}: {}\n", rank, why);
  return true;
}

bool Team::await(std::uint32_t rank, int stage) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (board_->places[rank].stage.load() < stage) {
    if (reap(rank, false) || std::chrono::steady_clock::now() > deadline) return false;
    nap();
  }
  return true;
}

void Team::signal(std::uint32_t rank, int number) { ::kill(processes_[rank], number); }

void Team::kill(std::uint32_t rank) {
  killed_[rank] = true;
  board_->killed_ns.store(steady_now_ns());
  signal(rank, SIGKILL);
}

std::string Team::finish() {
  const auto deadline = std::chrono::steady_clock::now() + last_patience;
  for (std::uint32_t rank = 0; rank < processes_.size(); ++rank) {
    while (!reap(rank, false)) {
      if (std::chrono::steady_clock::now() > deadline) {
        ::kill(processes_[rank], SIGKILL);
        reap(rank, true);
        break;
      }
      nap();
    }
  }
  return wrong_;
}

}  // namespace tandem::comm_processes
