// tandem/comm/transport/tcp/tcp_failure_test.cpp: peers that die, stop, are strangers, or are not there.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tandem/comm/transport/tcp/raw_peer.hpp"

namespace tandem::comm::tcp_test::tcp_failure_test {
namespace {

constexpr std::int64_t soon_ns = 2'000'000'000;  // a death must be known within this time

/// A process with a node of rank 1, which does `behaviour` for ever. Its listener exists when the constructor returns.
class Child {
 public:
  explicit Child(const std::function<void(Node&)>& behaviour = [](Node& self) { step_for({&self}, 60'000'000'000); }) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    pid_ = fork();
    if (pid_ == 0) {
      Node self(1);
      const std::string own = self.transport->card();
      if (write(ends[1], own.data(), own.size()) < 0) _exit(1);
      behaviour(self);
      _exit(0);
    }
    char text[512];
    const ssize_t size = read(ends[0], text, sizeof text);
    EXPECT_GT(size, 0);
    card.assign(text, static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ~Child() { die(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void stop() const {
    int status = 0;
    ::kill(pid_, SIGSTOP);
    waitpid(pid_, &status, WUNTRACED);
  }
  void go_on() const { ::kill(pid_, SIGCONT); }
  void die() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

  std::string card;

 private:
  pid_t pid_ = -1;
};

void expect_death_soon(Node& node) {
  const std::int64_t start = now_ns();
  EXPECT_TRUE(step_until({&node}, [&] { return node.sink.failures.contains(1); }));
  EXPECT_LT(now_ns() - start, soon_ns);
}

TEST(TcpFailure, APeerKilledBeforeItAnswersIsDead) {
  Child child;
  child.stop();
  Node node(0);
  Link& link = node.transport->connect(Rank(1), child.card, 0);
  step_for({&node}, 100'000'000);  // its kernel has taken the connection, and the proof waits
  EXPECT_TRUE(node.sink.failures.empty());
  child.die();
  expect_death_soon(node);
  EXPECT_EQ(link.try_send({.control = bytes_of("x")}), SendStatus::retry);
}

/// A child by clone() runs no handler of fork(): it keeps all descriptors open, and with them what the epoll set
/// watches.
TEST(TcpFailure, AConnectionThatAChildHoldsOpenIsGoneWhenItHasEnded) {
  Child peer;
  Node node(0);
  Link& link = node.transport->connect(Rank(1), peer.card, 0);
  EXPECT_EQ(send({&node}, link, "x"), SendStatus::done);
  const auto holder = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  if (holder == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) pause();
  }
  peer.die();
  expect_death_soon(node);
  step_for({&node}, 10'000'000);  // the connection's memory goes
  EXPECT_TRUE(node.transport->arm());
  pollfd waited{node.transport->wait_descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&waited, 1, 100), 0) << "what has ended is still watched";
  node.transport->disarm();
  ::kill(holder, SIGKILL);
  waitpid(holder, nullptr, 0);
}

TEST(TcpFailure, APeerThatWasStoppedBeforeTheProofIsWaitedFor) {
  Child child;
  child.stop();
  Node node(0);
  Link& link = node.transport->connect(Rank(1), child.card, 0);
  step_for({&node}, 500'000'000);
  EXPECT_TRUE(node.sink.failures.empty());
  child.go_on();
  EXPECT_EQ(send({&node}, link, "x"), SendStatus::done);
}

TEST(TcpFailure, APeerKilledInTheMiddleOfAPayloadThatItSendsIsDead) {
  const Bytes payload = pattern(32 << 20, 1);
  Node node(0);
  Child child([&](Node& self) {
    const iovec piece = piece_of(payload);
    send({&self}, self.connect(node, 0), "large", {&piece, 1});
    step_for({&self}, 60'000'000'000);
  });
  ASSERT_TRUE(step_until({&node}, [&] { return node.sink.packets.size() == 1; }));
  child.die();
  expect_death_soon(node);
  EXPECT_EQ(node.sink.landed_count(), 0U);
}

TEST(TcpFailure, APeerKilledInTheMiddleOfAPayloadThatItReceivesIsDead) {
  Child child;
  Node node(0);
  Link& link = node.transport->connect(Rank(1), child.card, 0);
  send({&node}, link, "x");
  child.stop();
  const Bytes payload = pattern(32 << 20, 1);
  const iovec piece = piece_of(payload);
  EXPECT_EQ(send({&node}, link, "large", {&piece, 1}, 5), SendStatus::posted);
  step_for({&node}, 100'000'000);
  child.die();
  expect_death_soon(node);
  EXPECT_TRUE(node.sink.cookies.empty());
}

TEST(TcpFailure, APeerKilledWhileIdleIsDead) {
  Child child;
  Node node(0);
  send({&node}, node.transport->connect(Rank(1), child.card, 0), "x");
  step_for({&node}, 50'000'000);
  child.die();
  expect_death_soon(node);
}

TEST(TcpFailure, AStoppedPeerWithFullWindowsIsNotDead) {
  Child child([](Node& self) {
    step_until({&self}, [&] { return self.sink.landed_count() == 2; }, 60'000'000'000);
    send({&self}, self.transport->connect(Rank(0), "", 0), "all here");
    step_for({&self}, 60'000'000'000);
  });
  Node node(0);
  Link& link = node.transport->connect(Rank(1), child.card, 0);
  send({&node}, link, "x");
  child.stop();
  const Bytes payload = pattern(32 << 20, 1);
  const iovec piece = piece_of(payload);
  EXPECT_EQ(send({&node}, link, "large", {&piece, 1}, 5), SendStatus::posted);
  step_for({&node}, 3'000'000'000);
  EXPECT_TRUE(node.sink.failures.empty());
  EXPECT_TRUE(node.sink.cookies.empty());
  child.go_on();
  EXPECT_TRUE(step_until({&node}, [&] { return node.sink.packets.size() == 1; }));
  EXPECT_EQ(node.sink.cookies.size(), 1U);
}

TEST(TcpFailure, APeerThatIsNotThereFailsWithTheReason) {
  Node node(0);
  std::string card;
  {
    Node gone(1);
    card = gone.transport->card();
  }
  node.transport->connect(Rank(1), card, 0);
  expect_death_soon(node);
  EXPECT_NE(node.sink.failures[1].find("Connection refused"), std::string::npos) << node.sink.failures[1];
}

TEST(TcpFailure, ACardThatCannotBeReadFailsWithTheReason) {
  Node node(0);
  EXPECT_FALSE(node.transport->reaches(Rank(1), "nonsense"));
  node.transport->connect(Rank(1), "tcp1 port=0 host= at=", 0);
  expect_death_soon(node);
  EXPECT_NE(node.sink.failures[1].find("no TCP address"), std::string::npos);
}

TEST(TcpFailure, ALoopbackAddressReachesOnlyTheSameHost) {
  Node node(0);
  std::string card = node.transport->card();
  EXPECT_TRUE(node.transport->reaches(Rank(1), card));
  const std::size_t host = card.find("host=") + 5;
  card[host] = card[host] == 'x' ? 'y' : 'x';
  EXPECT_FALSE(node.transport->reaches(Rank(1), card));
}

TEST(TcpFailure, BuildsOfDifferentWireFormatsRefuseEachOtherAndNameBoth) {
  Node old_one(0);
  Node new_one(1, [](TcpOptions& options) {
    options.self.wire_version = 2;
    options.self.version = "1.1-of-a-name-that-is-longer-than-there-is-room-for";
  });
  old_one.connect(new_one, 1);
  ASSERT_TRUE(step_until({&old_one, &new_one},
                         [&] { return !old_one.sink.failures.empty() && !new_one.sink.failures.empty(); }));
  for (const std::string& text : {old_one.sink.failures[1], new_one.sink.failures[0], old_one.text, new_one.text}) {
    EXPECT_NE(text.find("Tandem 1.0 with wire format 1"), std::string::npos) << text;
    EXPECT_NE(text.find("Tandem 1.1-of-a-name"), std::string::npos) << text;
    EXPECT_NE(text.find("with wire format 2"), std::string::npos) << text;
  }
}

TEST(TcpFailure, AStrangerWithAnotherSecretIsDroppedByBoth) {
  Node node(0);
  Node stranger(1, [](TcpOptions& options) { options.self.secret.fill(std::byte{8}); });
  stranger.connect(node, 0);
  ASSERT_TRUE(step_until({&node, &stranger}, [&] { return stranger.sink.failures.size() == 1 && !node.text.empty(); }));
  EXPECT_NE(stranger.sink.failures[0].find("could not prove that it knows this job's secret"), std::string::npos);
  EXPECT_TRUE(node.sink.failures.empty());
  EXPECT_TRUE(node.logged("dropped a connection from 127.0.0.1:"));
  Node proper(1);
  send({&node, &proper}, proper.connect(node, 0), "welcome");
  EXPECT_TRUE(step_until({&node, &proper}, [&] { return node.sink.packets.size() == 1; }));
}

TEST(TcpFailure, AnotherJobsRankIsAStranger) {
  Node node(0);
  Node stranger(1, [](TcpOptions& options) { options.self.job_id = "another"; });
  stranger.connect(node, 0);
  ASSERT_TRUE(step_until({&node, &stranger}, [&] { return stranger.sink.failures.size() == 1; }));
  EXPECT_TRUE(node.sink.packets.empty());
}

TEST(TcpFailure, TheCardOfAnotherRankIsNoticed) {
  Node node(0, [](TcpOptions& options) { options.connect_timeout_ns = 300'000'000; });
  Node other(2);
  node.connect(other, 1);  // its number is not 1
  ASSERT_TRUE(step_until({&node, &other}, [&] { return node.sink.failures.contains(1); }));
  EXPECT_TRUE(other.logged("was looking for rank 1, not for rank 2"));
  EXPECT_TRUE(other.sink.failures.empty());
}

TEST(TcpFailure, StrangersAreLoggedOncePerHostAndDoNotStayForLong) {
  Node node(0, [](TcpOptions& options) { options.proof_timeout_ns = 300'000'000; });
  std::vector<std::unique_ptr<RawPeer>> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(std::make_unique<RawPeer>(node));
  RawPeer web(node);
  web.write(bytes_of("GET / HTTP/1.1\r\n\r\n"));
  Node proper(1);
  send({&node, &proper}, proper.connect(node, 0), "through the crowd");
  EXPECT_TRUE(step_until({&node, &proper}, [&] { return node.sink.packets.size() == 1; }));
  EXPECT_TRUE(step_until({&node}, [&] {
    const auto closed = [](const auto& peer) { return peer->closed_by_node(); };
    return web.closed_by_node() && std::all_of(silent.begin(), silent.end(), closed);
  }));
  EXPECT_EQ(std::count(node.text.begin(), node.text.end(), '\n'), 1) << node.text;
  EXPECT_TRUE(node.sink.failures.empty());
}

TEST(TcpFailure, AFullPortRangeIsSaid) {
  Node first(0);
  const auto card = internal::TcpCard::parse(first.transport->card());
  TcpOptions options;
  options.self.size = 2;
  options.log = &first.log;
  options.interfaces = "127.0.0.1";
  options.first_port = options.last_port = card->port;
  const auto made = make_tcp_transport(options, first.sink);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, base::ErrorCode::exhausted);
  const std::string range =
      "from " + std::to_string(card->port) + " to " + std::to_string(card->port) + " of 127.0.0.1";
  EXPECT_NE(made.error().message.find(range), std::string::npos) << made.error().message;
}

TEST(TcpFailure, ARangeWithAFreePortIsUsed) {
  Node first(0);
  const auto card = internal::TcpCard::parse(first.transport->card());
  Node second(1, [&](TcpOptions& options) {
    options.first_port = card->port;
    options.last_port = static_cast<std::uint16_t>(std::min(65535, card->port + 50));
  });
  const auto other = internal::TcpCard::parse(second.transport->card());
  EXPECT_GT(other->port, card->port);
  EXPECT_LE(other->port, card->port + 50);
}

TEST(TcpFailure, AnUnknownInterfaceIsAnErrorThatListsWhatThereIs) {
  Node node(0);
  TcpOptions options;
  options.log = &node.log;
  options.interfaces = "nosuch0";
  auto made = make_tcp_transport(options, node.sink);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, base::ErrorCode::invalid_argument);
  EXPECT_NE(made.error().message.find("`nosuch0`"), std::string::npos);
  EXPECT_NE(made.error().message.find("lo (127.0.0.1)"), std::string::npos) << made.error().message;
  options.interfaces = "lo";
  options.rails = 0;
  EXPECT_FALSE(make_tcp_transport(options, node.sink).ok());
  options.rails = 1;
  options.first_port = 10;
  options.last_port = 9;
  EXPECT_FALSE(make_tcp_transport(options, node.sink).ok());
}

TEST(TcpFailure, WithoutDescriptorsAConnectionIsMadeLater) {
  // Large numbers go first: the undefined-behaviour sanitizer needs some descriptors to look at a type for the first
  // time.
  for (rlim_t spare = 14; spare-- > 0;) {
    SCOPED_TRACE(spare);
    Node a(0), b(1);
    rlimit limit{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
    rlimit few = limit;
    {
      const base::FileDescriptor next(::dup(0));  // the lowest free one
      few.rlim_cur = static_cast<rlim_t>(next.get()) + spare;
    }
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    Link& link = a.connect(b, 1);
    step_for({&a, &b}, 20'000'000);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    EXPECT_TRUE(a.sink.failures.empty());
    if (spare == 0) { EXPECT_TRUE(a.logged("cannot connect to rank 1 now")) << a.text; }
    send({&a, &b}, link, "after all");
    EXPECT_TRUE(step_until({&a, &b}, [&] { return b.sink.packets.size() == 1; }));
    EXPECT_TRUE(a.sink.failures.empty() && b.sink.failures.empty());
  }
}

/// Leaves this process that many descriptors; the destructor restores the limit.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t count) {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(base::FileDescriptor(::dup(0)).get()) + count;
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

void be_impatient(TcpOptions& options) {
  options.descriptor_patience_ns = 200'000'000;
  options.connect_timeout_ns = 500'000'000;
}

TEST(TcpFailure, WithoutDescriptorsForLongAConnectionFailsWithTheLimitAndTheRemedy) {
  Node a(0, be_impatient), b(1, be_impatient);
  const FewDescriptors none(0);
  a.connect(b, 1);
  ASSERT_TRUE(step_until({&a, &b}, [&] { return a.sink.failures.contains(1); }));
  EXPECT_NE(a.sink.failures[1].find("no file descriptor"), std::string::npos) << a.sink.failures[1];
  EXPECT_NE(a.sink.failures[1].find("ulimit -n"), std::string::npos) << a.sink.failures[1];
  EXPECT_TRUE(a.logged("no connection to rank 1: ")) << a.text;
}

TEST(TcpFailure, APeerWithoutDescriptorsForLongTurnsAway) {
  Node a(0, be_impatient), b(1, be_impatient);
  const FewDescriptors one(1);  // which the caller takes
  a.connect(b, 1);
  ASSERT_TRUE(step_until({&a, &b}, [&] { return a.sink.failures.contains(1); }));
  EXPECT_NE(a.sink.failures[1].find("closed the connection before the proof had ended"), std::string::npos)
      << a.sink.failures[1];
  EXPECT_TRUE(b.logged("turns away the connections of peers: ") && b.logged("ulimit -n")) << b.text;
}

}  // namespace
}  // namespace tandem::comm::tcp_test::tcp_failure_test
