// benchmarks/bcast/peer_bcast_bare.cpp: broadcasts along Tandem's trees over plain TCP sockets, with nothing around
// them.
//
// What a tree can reach on a network when nobody matches, schedules or decides. Forks all ranks; with NETNS_PREFIX (see
// benchmarks/netns) each enters a namespace of its own. A tree is written NAME, or NAME/BYTES when it forwards segments
// of so many bytes. Without, chain and two_tree forward segments of 16 KiB, the others the whole message.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>

#include "benchmarks/bcast/harness.hpp"
#include "benchmarks/common/options.hpp"
#include "tandem/comm/mcast/tree.hpp"

namespace {

using tandem::comm::Forest;
using tandem::comm::RouteNode;
using tandem::comm::TreeBuilder;
using tandem::comm::TreeKind;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "peer_bcast_bare: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

void check(bool good, const char* what) {
  if (!good) fail(what);
}

struct Setting {
  unsigned ranks = 8;
  unsigned rounds = 3;
  unsigned pause_ms = 30;
  std::size_t bytes = 439'296;
  int send_buffer_bytes = 65'536;
  std::string netns, subnet;
};

struct TreeChoice {
  std::string name;
  TreeKind kind = TreeKind::flat;
  std::size_t segment_bytes = 0;
};

/// What the ranks share: one barrier that sleeps, and the times.
struct Shared {
  pthread_barrier_t barrier;
  std::int64_t start_ns;

  /// Arrived of each rank, then released of each rank: behind this object.
  std::int64_t& time_ns(std::size_t index) { return reinterpret_cast<std::int64_t*>(this + 1)[index]; }
};
static_assert(sizeof(Shared) % alignof(std::int64_t) == 0);

Shared& make_shared_memory(unsigned ranks) {
  const std::size_t bytes = sizeof(Shared) + 2 * ranks * sizeof(std::int64_t);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  check(memory != MAP_FAILED, "mmap");
  Shared& shared = *static_cast<Shared*>(memory);
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared.barrier, &attributes, ranks);
  return shared;
}

/// This rank's place in one strand.
struct Position {
  int parent = -1;  ///< a socket; -1 at the root
  std::vector<int> children;
  std::size_t first = 0, bytes = 0;  ///< the strand's part of the message
  std::size_t received = 0;
  std::vector<std::size_t> sent;
};

class RankProcess {
 public:
  RankProcess(const Setting& setting, Shared& shared, unsigned rank) : setting_(setting), shared_(shared), rank_(rank) {
    enter_namespace();
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    const int yes = 1;
    setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    const sockaddr_in own = address_of(rank_);
    check(bind(listener_, reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0, "bind");
    check(listen(listener_, 16) == 0, "listen");
    message_.resize(setting.bytes);
  }

  /// Rank 0 gets the times.
  benchmarks::BroadcastResult measure(const TreeChoice& tree) {
    Forest forest;
    TreeBuilder().build(setting_.ranks - 1, {.kind = tree.kind}, forest);
    connect_all(forest);
    benchmarks::BroadcastResult result{tree.name, {}};
    for (std::uint32_t round = 0; round <= setting_.rounds; ++round) {  // the first one warms up
      for (Position& position : positions_) {
        position.received = rank_ == 0 ? position.bytes : 0;
        position.sent.assign(position.children.size(), 0);
      }
      if (rank_ == 0) benchmarks::fill(message_, round);
      pthread_barrier_wait(&shared_.barrier);
      if (rank_ == 0) {
        usleep(setting_.pause_ms * 1000);
        shared_.start_ns = benchmarks::shared_now_ns();
      }
      broadcast(tree.segment_bytes == 0 ? setting_.bytes : tree.segment_bytes, forest.interleaved);
      pthread_barrier_wait(&shared_.barrier);
      if (!benchmarks::holds(message_, round)) fail("wrong bytes");
      if (rank_ == 0 && round > 0) result.rounds.push_back(collect());
    }
    for (const Position& position : positions_) {
      if (position.parent >= 0) close(position.parent);
      for (int child : position.children) close(child);
    }
    pthread_barrier_wait(&shared_.barrier);
    return result;
  }

 private:
  void enter_namespace() {
    if (setting_.netns.empty()) return;
    const std::string path = "/run/netns/" + setting_.netns + std::to_string(rank_);
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    check(descriptor >= 0 && setns(descriptor, CLONE_NEWNET) == 0, path.c_str());
    close(descriptor);
  }

  sockaddr_in address_of(unsigned rank) const {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    const std::string host = setting_.netns.empty() ? "127.0.0.1" : setting_.subnet + "." + std::to_string(rank + 1);
    inet_pton(AF_INET, host.c_str(), &address.sin_addr);
    address.sin_port = htons(static_cast<std::uint16_t>(setting_.netns.empty() ? 21'000 + rank : 21'000));
    return address;
  }

  /// Parents connect; the first byte says which strand it is.
  void connect_all(const Forest& forest) {
    positions_.assign(forest.strand_count, {});
    for (unsigned s = 0; s < forest.strand_count; ++s) {
      const std::size_t half = (setting_.bytes + forest.strand_count - 1) / forest.strand_count;
      positions_[s].first = s * half;
      positions_[s].bytes = std::min(half, setting_.bytes - s * half);
      for (unsigned child : children_of(forest.strands[s].nodes))
        positions_[s].children.push_back(connect_to(child, s));
    }
    for (unsigned s = 0; rank_ != 0 && s < forest.strand_count; ++s) {
      const int parent = accept(listener_, nullptr, nullptr);
      unsigned char strand = 0;
      check(parent >= 0 && read(parent, &strand, 1) == 1, "accept");
      prepare(parent);
      positions_[strand].parent = parent;
    }
  }

  /// Recipient i is rank i + 1.
  std::vector<unsigned> children_of(const std::vector<RouteNode>& nodes) const {
    std::size_t first = 0, end = nodes.size();
    if (rank_ != 0) {
      while (nodes[first].recipient + 1 != rank_) ++first;
      end = first + nodes[first].subtree_size;
      ++first;
    }
    std::vector<unsigned> children;
    for (std::size_t i = first; i < end; i += nodes[i].subtree_size) children.push_back(nodes[i].recipient + 1);
    return children;
  }

  int connect_to(unsigned rank, unsigned strand) const {
    const int link = socket(AF_INET, SOCK_STREAM, 0);
    // Bounded, or the kernel buffers a whole message for each child and the later children wait for the earlier ones.
    setsockopt(link, SOL_SOCKET, SO_SNDBUF, &setting_.send_buffer_bytes, sizeof setting_.send_buffer_bytes);
    const sockaddr_in peer = address_of(rank);
    check(connect(link, reinterpret_cast<const sockaddr*>(&peer), sizeof peer) == 0, "connect");
    const auto word = static_cast<unsigned char>(strand);
    check(write(link, &word, 1) == 1, "write");
    prepare(link);
    return link;
  }

  static void prepare(int link) {
    const int yes = 1;
    setsockopt(link, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    fcntl(link, F_SETFL, O_NONBLOCK);
  }

  void broadcast(std::size_t segment_bytes, bool interleaved) {
    bool arrived = false;
    std::vector<pollfd> waits;
    for (;;) {
      bool has_all = true, gave_all = true;
      waits.clear();
      for (Position& position : positions_) {
        if (position.received < position.bytes) receive(position);
        if (position.received < position.bytes) waits.push_back({position.parent, POLLIN, 0});
        has_all = has_all && position.received == position.bytes;
        gave_all = serve(position, segment_bytes, interleaved, waits) && gave_all;
      }
      if (has_all && !arrived) {
        arrived = true;
        shared_.time_ns(rank_) = benchmarks::shared_now_ns();
      }
      if (has_all && gave_all) break;
      poll(waits.data(), waits.size(), -1);
    }
    shared_.time_ns(setting_.ranks + rank_) = benchmarks::shared_now_ns();
  }

  void receive(Position& position) {
    while (position.received < position.bytes) {
      const ssize_t got =
          recv(position.parent, &message_[position.first + position.received], position.bytes - position.received, 0);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
      check(got > 0, "recv");
      position.received += static_cast<std::size_t>(got);
    }
  }

  /// Sends what can be sent; true when all children have all. Sockets that must be waited for are added to `waits`.
  bool serve(Position& position, std::size_t segment_bytes, bool interleaved, std::vector<pollfd>& waits) {
    const bool complete = position.received == position.bytes;
    const std::size_t ready = complete ? position.bytes : position.received - position.received % segment_bytes;
    bool gave_all = true, moved = true;
    while (moved) {
      moved = false;
      for (std::size_t c = 0; c < position.children.size(); ++c) {
        if (position.sent[c] == position.bytes) continue;
        moved = send_some(position, c, std::min(ready, position.sent[c] + segment_bytes)) || moved;
        if (!interleaved && position.sent[c] < position.bytes) break;
      }
    }
    for (std::size_t c = 0; c < position.children.size(); ++c) {
      if (position.sent[c] == position.bytes) continue;
      gave_all = false;
      if (position.sent[c] < ready) waits.push_back({position.children[c], POLLOUT, 0});
      if (!interleaved) break;
    }
    return gave_all;
  }

  bool send_some(Position& position, std::size_t child, std::size_t end) {
    std::size_t& sent = position.sent[child];
    if (sent >= end) return false;
    const ssize_t put = send(position.children[child], &message_[position.first + sent], end - sent, MSG_NOSIGNAL);
    if (put < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    check(put > 0, "send");
    sent += static_cast<std::size_t>(put);
    return true;
  }

  benchmarks::BroadcastTimes collect() const {
    benchmarks::BroadcastTimes times;
    for (unsigned rank = 1; rank < setting_.ranks; ++rank) {
      times.arrived_ns.push_back(shared_.time_ns(rank) - shared_.start_ns);
      times.released_ns.push_back(shared_.time_ns(setting_.ranks + rank) - shared_.start_ns);
    }
    return times;
  }

  const Setting& setting_;
  Shared& shared_;
  unsigned rank_;
  int listener_ = -1;
  std::vector<unsigned char> message_;
  std::vector<Position> positions_;
};

std::vector<TreeChoice> parse_trees(const std::string& text) {
  std::vector<TreeChoice> trees;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const std::size_t slash = word.find('/');
    const auto kind = tandem::comm::tree_kind(word.substr(0, slash));
    if (!kind || *kind == TreeKind::automatic) {
      std::fprintf(stderr, "peer_bcast_bare: '%s' is no tree\n", word.c_str());
      std::exit(2);
    }
    const bool pipelined = *kind == TreeKind::chain || *kind == TreeKind::two_tree;
    const std::size_t usual = pipelined ? 16'384 : 0;
    trees.push_back(
        {word, *kind, slash == std::string::npos ? usual : std::strtoul(word.c_str() + slash + 1, nullptr, 10)});
  }
  return trees;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

int main(int argc, char** argv) {
  const benchmarks::Options options(argc, argv, {"ranks", "bytes", "trees", "repetitions", "pause-ms", "send-buffer"});
  Setting setting;
  setting.ranks = options.count("ranks", 8);
  setting.bytes = options.count("bytes", 439'296);
  setting.rounds = options.count("repetitions", 3);
  setting.pause_ms = options.count("pause-ms", 30);
  setting.send_buffer_bytes = static_cast<int>(options.count("send-buffer", 65'536));
  setting.netns = environment("NETNS_PREFIX");
  setting.subnet = environment("NETNS_SUBNET");
  const std::vector<TreeChoice> trees = parse_trees(options.text("trees", "flat,binomial,binary,chain,two_tree"));

  Shared& shared = make_shared_memory(setting.ranks);
  std::vector<pid_t> others;
  for (unsigned rank = 1; rank < setting.ranks; ++rank) {
    const pid_t child = fork();
    check(child >= 0, "fork");
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      RankProcess process(setting, shared, rank);
      pthread_barrier_wait(&shared.barrier);
      for (const TreeChoice& tree : trees) process.measure(tree);
      std::_Exit(0);
    }
    others.push_back(child);
  }
  // A rank that fails would leave the others at the barrier for ever.
  signal(SIGCHLD, [](int) {
    int status = 0;
    while (waitpid(-1, &status, WNOHANG) > 0)
      if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) std::_Exit(1);
  });
  RankProcess process(setting, shared, 0);
  pthread_barrier_wait(&shared.barrier);
  std::vector<benchmarks::BroadcastResult> results;
  for (const TreeChoice& tree : trees) results.push_back(process.measure(tree));
  benchmarks::print_broadcasts("bare", "", results);
}
