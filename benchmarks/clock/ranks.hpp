// benchmarks/clock/ranks.hpp: several processes of one program, and the memory that they share.
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace benchmarks::clocks {

inline void require(bool condition, const char* what) {
  if (condition) return;
  std::perror(what);
  std::_Exit(1);
}

/// What ranks exchange besides messages. Each rank writes its own slot, then counts itself in at a meeting; a rank that
/// returns from the meeting sees all slots (the count releases and acquires).
struct Board {
  static constexpr unsigned most_ranks = 64;
  static constexpr std::size_t most_samples = 8192;

  struct Slot {
    std::atomic<std::uint32_t> card_bytes;  ///< 0: not published yet; released after `card`
    std::array<char, 4096> card;
    std::uint32_t sample_count;
    std::array<double, most_samples> samples;
  };
  std::atomic<std::uint32_t> here;
  std::array<Slot, most_ranks> slots;
};

/// Made before any library starts threads: the maker becomes rank 0, its children the others, which die with it.
class Ranks {
 public:
  explicit Ranks(unsigned size) : size_(size) {
    void* memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    require(memory != MAP_FAILED, "mmap");
    board_ = new (memory) Board;  // anonymous memory is zero already
    const pid_t maker = getpid();
    for (unsigned rank = 1; rank < size; ++rank) {
      const pid_t child = fork();
      require(child >= 0, "fork");
      if (child > 0) {
        children_.push_back(child);
        continue;
      }
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != maker) std::_Exit(1);
      rank_ = rank;
      children_.clear();
      return;
    }
  }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  unsigned rank() const { return rank_; }
  unsigned size() const { return size_; }

  void publish_card(std::string_view card) {
    Board::Slot& slot = board_->slots[rank_];
    require(card.size() <= slot.card.size(), "card");
    std::memcpy(slot.card.data(), card.data(), card.size());
    slot.card_bytes.store(static_cast<std::uint32_t>(card.size()), std::memory_order_release);
  }
  std::string card_of(unsigned rank) {
    Board::Slot& slot = board_->slots[rank];
    std::uint32_t bytes;
    while ((bytes = slot.card_bytes.load(std::memory_order_acquire)) == 0) rest();
    return {slot.card.data(), bytes};
  }

  /// Until all are here, asleep.
  void meet() {
    const std::uint32_t meeting = meetings_++;
    board_->here.fetch_add(1);
    while (board_->here.load() < (meeting + 1) * size_) rest();
  }
  /// All ranks' samples, rank by rank, on every rank. Collective.
  std::vector<std::vector<double>> gather(std::span<const double> samples) {
    Board::Slot& own = board_->slots[rank_];
    own.sample_count = static_cast<std::uint32_t>(std::min(samples.size(), Board::most_samples));
    std::copy_n(samples.begin(), own.sample_count, own.samples.begin());
    meet();
    std::vector<std::vector<double>> all;
    for (unsigned rank = 0; rank < size_; ++rank) {
      const Board::Slot& slot = board_->slots[rank];
      all.emplace_back(slot.samples.begin(), slot.samples.begin() + slot.sample_count);
    }
    meet();  // before anybody writes again
    return all;
  }

  /// The program's exit status, once the other ranks have ended.
  int end() {
    bool failed = false;
    for (const pid_t child : children_) {
      int status = 0;
      require(waitpid(child, &status, 0) == child, "waitpid");
      failed |= status != 0;
    }
    return failed ? 1 : 0;
  }

 private:
  static void rest() { std::this_thread::sleep_for(std::chrono::microseconds(200)); }

  unsigned size_;
  unsigned rank_ = 0;
  std::uint32_t meetings_ = 0;
  Board* board_ = nullptr;
  std::vector<pid_t> children_;
};

}  // namespace benchmarks::clocks
