// tandem/comm/transport/shm/shm_bench.cpp: two processes over the bare transport: half ping-pong by size, and message
// rate.
//
// usage: bench_shm [bytes ...]     (no engine above: what is measured is try_send, the rings and poll)
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tandem/comm/transport/shm/shm.hpp"

namespace {

using namespace tandem;
using comm::Rank;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// A buffer that was touched, so that first accesses are not measured.
struct Buffer {
  explicit Buffer(std::size_t size)
      : bytes(size), data(static_cast<std::byte*>(std::aligned_alloc(4096, (size + 8191) / 4096 * 4096))) {
    std::memset(data, 1, size);
  }
  ~Buffer() { std::free(data); }
  Buffer(const Buffer&) = delete;
  std::size_t bytes;
  std::byte* data;
};

class Side final : public comm::PacketSink {
 public:
  comm::Landing arrived(comm::Link&, std::span<const std::byte>, std::size_t payload_bytes) override {
    if (payload_bytes == 0) ++messages;
    into.iov_len = payload_bytes;
    return {.pieces = {&into, 1}};
  }
  void landed(comm::Link&, std::uint64_t) override { ++messages; }
  void sent(comm::Link&, std::uint64_t) override { ++sends; }
  void writable(comm::Link&) override {}
  void peer_failed(Rank, std::string_view reason) override {
    if (finished) return;
    std::fprintf(stderr, "bench_shm: %.*s\n", static_cast<int>(reason.size()), reason.data());
    std::exit(1);
  }

  std::uint64_t messages = 0;
  std::uint64_t sends = 0;
  iovec into{};
  bool finished = false;
};

struct Shared {  ///< between the two processes: addresses
  std::array<char, 512> cards[2];
  volatile int ready[2];
};

class Bench {
 public:
  Bench(unsigned me, Shared& shared) : me_(me) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(me, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
    comm::ShmOptions options{.rank = Rank(me), .job_size = 2, .job_id = "bench"};
    auto made = comm::make_shm_transport(options, side_);
    if (!made) std::fprintf(stderr, "%s\n", made.error().message.c_str()), std::exit(1);
    transport_ = std::move(made).value();
    std::strcpy(shared.cards[me].data(), transport_->card().c_str());
    shared.ready[me] = 1;
    while (shared.ready[1 - me] == 0) sched_yield();
    link_ = &transport_->connect(Rank(1 - me), shared.cards[1 - me].data(), 0);
  }

  void send(std::span<const std::byte> control, const Buffer* from, std::size_t bytes) {
    const iovec piece{from == nullptr ? nullptr : from->data, bytes};
    const comm::Packet packet{.control = control, .payload = {&piece, bytes > 0 ? 1U : 0U}, .payload_bytes = bytes};
    for (;;) {
      switch (link_->try_send(packet)) {
        case comm::SendStatus::done: return;
        case comm::SendStatus::posted:
          for (const std::uint64_t before = side_.sends; side_.sends == before;) poll();
          return;
        case comm::SendStatus::retry: poll();
      }
    }
  }
  void receive(Buffer* to) {
    if (to != nullptr) side_.into.iov_base = to->data;
    const std::uint64_t wanted = ++received_;
    while (side_.messages < wanted) poll();
  }
  void poll() {
    if (++polls_ % 64 == 0) now_ = now_ns();
    transport_->poll(now_);
  }

  /// Measures us per half round trip; 4 bytes travel in the control block.
  void pingpong(std::size_t bytes) {
    const std::size_t payload = bytes <= 4 ? 0 : bytes;
    std::array<std::byte, 40> control{};
    Buffer buffer(payload + 1);
    const std::size_t rounds = std::clamp<std::size_t>(400'000'000 / (bytes + 20'000), 8, 20'000);
    std::vector<double> us;
    const std::size_t batch = bytes < 16384 ? 50 : 1;
    for (std::size_t i = 0; i < rounds / batch + 2; ++i) {
      const std::int64_t begin = now_ns();
      for (std::size_t k = 0; k < batch; ++k) {
        if (me_ == 0) send(control, &buffer, payload), receive(&buffer);
        else receive(&buffer), send(control, &buffer, payload);
      }
      us.push_back(static_cast<double>(now_ns() - begin) / 2e3 / static_cast<double>(batch));
    }
    std::sort(us.begin(), us.end());
    if (me_ == 0) std::printf("pingpong %9zu B: median %10.3f us, least %10.3f\n", bytes, us[us.size() / 2], us[0]);
  }
  void rate() {
    constexpr std::uint64_t kMessages = 1'000'000;
    std::array<std::byte, 40> control{};
    const std::int64_t begin = now_ns();
    if (me_ == 0) {
      for (std::uint64_t i = 0; i < kMessages; ++i) send(control, nullptr, 0);
      receive(nullptr);
      std::printf("rate: %.4f us per message one way\n", static_cast<double>(now_ns() - begin) / 1e3 / kMessages);
    } else {
      received_ += kMessages - 1;
      receive(nullptr);
      send(control, nullptr, 0);
    }
  }
  /// Measures a poll that finds nothing, and falling asleep and waking up.
  void idle() {
    constexpr int kPolls = 1'000'000;
    std::int64_t begin = now_ns();
    for (int i = 0; i < kPolls; ++i) transport_->poll(now_);
    if (me_ == 0) std::printf("idle poll: %.2f ns\n", static_cast<double>(now_ns() - begin) / kPolls);
    constexpr int kNaps = 1000;
    begin = now_ns();
    for (int i = 0; i < kNaps; ++i)
      if (transport_->arm()) transport_->disarm();
    if (me_ == 0) std::printf("arm and disarm: %.0f ns\n", static_cast<double>(now_ns() - begin) / kNaps);
  }
  void finish() { side_.finished = true; }

 private:
  unsigned me_;
  Side side_;
  std::unique_ptr<comm::Transport> transport_;
  comm::Link* link_ = nullptr;
  std::uint64_t received_ = 0;
  unsigned polls_ = 0;
  std::int64_t now_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::size_t> sizes;
  for (int i = 1; i < argc; ++i) sizes.push_back(std::stoull(argv[i]));
  if (sizes.empty()) sizes = {4, 1024, 4096, 8192, 16384, 65536, 439'296, 8 << 20, 64 << 20};
  auto* shared =
      static_cast<Shared*>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const pid_t child = fork();
  Bench bench(child == 0 ? 1 : 0, *shared);
  for (const std::size_t bytes : sizes) bench.pingpong(bytes);
  bench.rate();
  bench.finish();
  bench.idle();
  if (child == 0) _exit(0);
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}
