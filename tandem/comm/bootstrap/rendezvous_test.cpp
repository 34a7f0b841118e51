// tandem/comm/bootstrap/rendezvous_test.cpp: ranks, impostors and other connections at the rendezvous.
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <chrono>
#include <mutex>
#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/comm/bootstrap/rendezvous_client.hpp"
#include "tandem/comm/bootstrap/rendezvous_server.hpp"
#include "tandem/comm/bootstrap/proof.hpp"
#include "tandem/comm/bootstrap/secret.hpp"

namespace tandem::comm::rendezvous_test {
namespace {

using base::ErrorCode;
using base::Result;
using internal::ByteWriter;
using internal::Entry;
using internal::Frame;
using internal::FrameBuffer;
using internal::RendezvousClient;
using internal::TimedSocket;
using testing::HasSubstr;
namespace rendezvous = internal::rendezvous;
using Kind = rendezvous::Kind;

std::int64_t now_ns() { return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count(); }
internal::Deadline soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(20); }

class Rendezvous : public testing::Test {
 protected:
  void start(std::uint32_t size, std::int64_t proof_timeout_ns = 20'000'000'000) {
    size_ = size;
    auto server = RendezvousServer::listen({.size = size, .secret = secret_, .job_id = "job", .host = "127.0.0.1",
                                            .proof_timeout_ns = proof_timeout_ns}, log_);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(server).value();
    address_ = {"127.0.0.1", server_->port()};
    thread_ = std::thread([this] { serve(); });
  }
  void TearDown() override { stop(); }
  void stop() {
    if (!thread_.joinable()) return;
    const std::uint64_t one = 1;
    ASSERT_EQ(write(stop_.get(), &one, sizeof one), ssize_t(sizeof one));
    thread_.join();
  }
  void serve() {
    for (;;) {
      const std::int64_t next_ns = [&] {
        const std::scoped_lock lock(server_mutex_);
        return server_->serve(now_ns());
      }();
      const auto left_ms = std::clamp<std::int64_t>((next_ns - now_ns()) / 1'000'000 + 1, 0, 1000);
      pollfd waited[] = {{server_->descriptor(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
      poll(waited, 2, static_cast<int>(left_ms));
      if (waited[1].revents != 0) return;
    }
  }

  Result<std::unique_ptr<RendezvousClient>> join(std::uint32_t rank) { return join(rank, secret_); }
  Result<std::unique_ptr<RendezvousClient>> join(std::uint32_t rank, const JobSecret& secret,
                                                 std::int64_t timeout_ns = 20'000'000'000) {
    return RendezvousClient::join({{address_}, secret, rank, size_, timeout_ns});
  }
  TimedSocket connect() { return TimedSocket::connect({address_}, soon()).value(); }
  /// Everything that the server says until it closes.
  static std::string rest_of(TimedSocket& socket) {
    std::string bytes;
    for (;;) {
      const auto more = socket.receive(bytes, soon());
      if (!more || !more.value()) return more ? bytes : "it does not close";
    }
  }
  std::string logged() {
    const std::scoped_lock lock(log_mutex_);
    return logged_;
  }

  const JobSecret secret_ = internal::secret_of_text("the secret of this test", "test").value();
  std::mutex log_mutex_;
  std::string logged_;
  base::Log log_{base::LogLevel::warn, [this](base::LogLevel, std::string_view line) {
    const std::scoped_lock lock(log_mutex_);
    logged_ += std::string(line) + "\n";
  }};
  std::uint32_t size_ = 1;
  std::mutex server_mutex_;
  std::unique_ptr<RendezvousServer> server_;
  internal::HostPort address_;
  base::FileDescriptor stop_{eventfd(0, EFD_CLOEXEC)};
  std::thread thread_;
};

TEST_F(Rendezvous, ALookUpWaitsUntilThePeerHasPublished) {
  start(2);
  auto first = join(0).value(), second = join(1).value();
  std::atomic<bool> found = false;
  std::thread waiter([&] {
    const auto card = first->get(Entry::card, Rank(1));
    ASSERT_TRUE(card) << card.error().message;
    EXPECT_EQ(card.value(), "card of 1");
    found = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(found);
  ASSERT_TRUE(second->put(Entry::card, "card of 1"));
  waiter.join();
}

TEST_F(Rendezvous, ALatePeerDoesNotHoldUpTheLookUpOfAnother) {
  start(3);
  auto first = join(0).value(), second = join(1).value(), third = join(2).value();
  std::thread waits_for_late([&] { EXPECT_EQ(first->get(Entry::card, Rank(1)).value(), "late"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::thread waits_for_early([&] { EXPECT_EQ(first->get(Entry::card, Rank(2)).value(), "early"); });
  ASSERT_TRUE(third->put(Entry::card, "early"));
  waits_for_early.join();
  ASSERT_TRUE(second->put(Entry::card, "late"));
  waits_for_late.join();
}

TEST_F(Rendezvous, ManyThreadsOfManyRanksFindEachOther) {
  constexpr std::uint32_t ranks = 16;
  start(ranks);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([this, rank] {
      auto client = join(rank);
      ASSERT_TRUE(client) << client.error().message;
      ASSERT_TRUE(client.value()->put(Entry::card, "card " + std::to_string(rank)));
      std::vector<std::thread> lookers;
      for (std::uint32_t part = 0; part < 3; ++part)
        lookers.emplace_back([&, part] {
          for (std::uint32_t peer = 0; peer < ranks; ++peer) {
            const std::uint32_t other = (peer + part * 5) % ranks;
            EXPECT_EQ(client.value()->get(Entry::card, Rank(other)).value(), "card " + std::to_string(other));
          }
        });
      for (std::thread& looker : lookers) looker.join();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(logged(), "");
}

TEST_F(Rendezvous, AWrongSecretIsRefusedOnBothSides) {
  start(2);
  const auto stranger = join(1, internal::derive_secret(secret_, "other"));
  ASSERT_FALSE(stranger);
  EXPECT_THAT(stranger.error().message, HasSubstr("proof of the job's secret is wrong"));
  EXPECT_THAT(logged(), HasSubstr("proof of the job's secret is wrong"));
  EXPECT_TRUE(join(1)) << "the place is still free";
}

TEST_F(Rendezvous, AServerThatDoesNotKnowTheSecretIsRefused) {
  // An impostor that lets everybody in.
  const auto listener = internal::listen_at({"127.0.0.1", 0});
  ASSERT_TRUE(listener);
  size_ = 2;
  address_ = {"127.0.0.1", listener.value().port};
  std::thread impostor([&] {
    pollfd waited{listener.value().socket.get(), POLLIN, 0};
    ASSERT_EQ(poll(&waited, 1, 20'000), 1);
    const base::FileDescriptor socket(accept4(listener.value().socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const std::string lies = internal::frame_bytes(std::uint8_t(Kind::challenge), "challenge") +
                             internal::frame_bytes(std::uint8_t(Kind::welcome), std::string(32, 'x') +
                                                   rendezvous::Membership{"job", 0}.encode());
    ASSERT_EQ(send(socket.get(), lies.data(), lies.size(), MSG_NOSIGNAL), ssize_t(lies.size()));
    char byte;
    while (recv(socket.get(), &byte, 1, 0) > 0) {}
  });
  const auto client = join(0);
  impostor.join();
  ASSERT_FALSE(client);
  EXPECT_THAT(client.error().message, HasSubstr("does not prove that it knows the job's secret"));
}

TEST_F(Rendezvous, AProofCannotBeUsedAgain) {
  start(2);
  // What an honest rank says, recorded by an attacker on the way.
  const std::string hello =
      rendezvous::Hello{rendezvous::version, "0.1", 0, 2, std::string(internal::text_of(internal::fresh_nonce()))}
          .encode();
  const std::string hello_frame = internal::frame_bytes(std::uint8_t(Kind::hello), hello);
  std::string proof_frame;
  for (int attempt = 0; attempt < 2; ++attempt) {
    TimedSocket socket = connect();
    ASSERT_TRUE(socket.send(hello_frame, soon()));
    FrameBuffer frames(16384);
    Frame challenge;
    while (!frames.next(challenge)) {
      std::string bytes;
      ASSERT_TRUE(socket.receive(bytes, soon()).value());
      frames.add(bytes);
    }
    if (attempt == 0) {
      const auto proof = internal::prove(secret_, rendezvous::rank_purpose, {hello, challenge.body});
      proof_frame = internal::frame_bytes(std::uint8_t(Kind::proof), internal::text_of(proof));
      ASSERT_TRUE(socket.send(proof_frame, soon()));
      std::string welcome;
      ASSERT_TRUE(socket.receive(welcome, soon()).value());
      EXPECT_EQ(welcome.at(4), char(Kind::welcome));
    } else {
      ASSERT_TRUE(socket.send(proof_frame, soon()));
      EXPECT_THAT(rest_of(socket), HasSubstr("is wrong"));
    }
  }
}

TEST_F(Rendezvous, BuildsOfOtherVersionsAreRefusedWithBothNamed) {
  start(2);
  TimedSocket socket = connect();
  const std::string hello =
      ByteWriter().u32(rendezvous::magic).u32(rendezvous::version + 1).text("9.9").raw("more").take();
  ASSERT_TRUE(socket.send(internal::frame_bytes(std::uint8_t(Kind::hello), hello), soon()));
  const std::string answer = rest_of(socket);
  EXPECT_THAT(answer, HasSubstr("Tandem 9.9 (rendezvous format 3)"));
  EXPECT_THAT(answer, HasSubstr("(rendezvous format 2)"));
}

TEST_F(Rendezvous, TwoProcessesCannotBeTheSameRank) {
  start(2);
  const auto first = join(1);
  ASSERT_TRUE(first);
  const auto second = join(1);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("rank 1 has joined already"));
}

TEST_F(Rendezvous, ProgramsThatComeOneAfterTheOtherSeeTheirOwnGeneration) {
  start(2);
  for (int generation = 0; generation < 3; ++generation) {
    auto first = join(0), second = join(1);
    ASSERT_TRUE(first && second);
    const std::string card = "generation " + std::to_string(generation);
    ASSERT_TRUE(first.value()->put(Entry::card, card));
    EXPECT_EQ(second.value()->get(Entry::card, Rank(0)).value(), card);
    EXPECT_EQ(first.value()->membership().generation, static_cast<std::uint32_t>(generation));
    EXPECT_EQ(first.value()->membership().name(), second.value()->membership().name());
    EXPECT_NE(rendezvous::Membership({"job", 9}).secret(secret_), first.value()->membership().secret(secret_));
  }
}

TEST_F(Rendezvous, AWaitForARankThatEndedFails) {
  start(2);
  auto client = join(0).value();
  std::thread waiter([&] {
    const auto card = client->get(Entry::card, Rank(1));
    ASSERT_FALSE(card);
    EXPECT_EQ(card.error().code, ErrorCode::io);
    EXPECT_THAT(card.error().message, HasSubstr("it went home"));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  {
    const std::scoped_lock lock(server_mutex_);
    server_->rank_ended(Rank(1), "it went home");
  }
  waiter.join();
}

TEST_F(Rendezvous, ARankThatEndedBeforeItJoinedNeverCame) {
  start(3);
  auto client = join(0).value();
  const auto never_came = [&] {
    const std::scoped_lock lock(server_mutex_);
    return server_->never_came();
  };
  const auto ended = [&](std::uint32_t rank) {
    const std::scoped_lock lock(server_mutex_);
    server_->rank_ended(Rank(rank), "it went home");
  };
  EXPECT_EQ(never_came(), std::nullopt);
  {
    auto other = join(1).value();
    ASSERT_TRUE(other->put(Entry::card, "card"));
    ASSERT_TRUE(client->put(Entry::card, "card"));
    EXPECT_TRUE(client->get(Entry::card, Rank(1)));
  }
  ended(1);
  EXPECT_EQ(never_came(), std::nullopt) << "it was a member, and has left";
  ended(2);
  EXPECT_EQ(never_came(), Rank(2));
}

TEST_F(Rendezvous, ARankThatEndedBetweenJoiningAndPublishingNeverCame) {
  start(2);
  auto client = join(0).value();
  { auto other = join(1).value(); }
  {
    const std::scoped_lock lock(server_mutex_);
    server_->rank_ended(Rank(1), "it went home");
    EXPECT_EQ(server_->never_came(), std::nullopt) << "nobody has published: programs may use their rank only";
  }
  ASSERT_TRUE(client->put(Entry::card, "card"));
  ASSERT_TRUE(client->get(Entry::card, Rank(0)));
  const std::scoped_lock lock(server_mutex_);
  EXPECT_EQ(server_->never_came(), Rank(1));
}

TEST_F(Rendezvous, AMemberLearnsWhoIsMissing) {
  start(4);
  auto first = join(0).value(), second = join(2).value();
  ASSERT_TRUE(first->put(Entry::card, "card"));
  ASSERT_TRUE(first->get(Entry::card, Rank(0)));
  EXPECT_THAT(second->missing(), testing::ElementsAre(Rank(1), Rank(2), Rank(3)));
  ASSERT_TRUE(second->put(Entry::card, "card"));
  EXPECT_THAT(second->missing(), testing::ElementsAre(Rank(1), Rank(3)));
}

TEST_F(Rendezvous, PlacesAndCardsAreApart) {
  start(2);
  auto first = join(0).value(), second = join(1).value();
  ASSERT_TRUE(first->put(Entry::place, "place"));
  EXPECT_EQ(second->get(Entry::place, Rank(0)).value(), "place");
  ASSERT_TRUE(first->put(Entry::card, "card"));
  EXPECT_EQ(second->get(Entry::card, Rank(0)).value(), "card");
}

TEST_F(Rendezvous, AServerThatIsGoneIsAnErrorAndNoHang) {
  start(2);
  auto client = join(0).value();
  stop();
  server_.reset();
  const auto card = client->get(Entry::card, Rank(1));
  ASSERT_FALSE(card);
  EXPECT_EQ(card.error().code, ErrorCode::io);
  EXPECT_THAT(card.error().message, HasSubstr("is gone"));
}

TEST_F(Rendezvous, APeerThatDoesNotPublishEndsTheWait) {
  start(2);
  auto client = join(0, secret_, 50'000'000).value();
  const auto card = client->get(Entry::card, Rank(1));
  ASSERT_FALSE(card);
  EXPECT_EQ(card.error().code, ErrorCode::exhausted);
}

TEST_F(Rendezvous, StrangersThatSendGarbageOrNothingDisturbNobody) {
  start(2, 50'000'000);
  TimedSocket silent = connect();
  TimedSocket garbage = connect();
  ASSERT_TRUE(garbage.send(std::string(300, '\xff'), soon()));
  rest_of(garbage);
  TimedSocket web = connect();
  ASSERT_TRUE(web.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n", soon()));
  rest_of(web);
  auto first = join(0).value(), second = join(1).value();
  ASSERT_TRUE(first->put(Entry::card, "card"));
  EXPECT_EQ(second->get(Entry::card, Rank(0)).value(), "card");
  EXPECT_EQ(rest_of(silent), "") << "closed at the end of its time";
  EXPECT_THAT(logged(), HasSubstr("does not follow the format"));
  EXPECT_THAT(logged(), HasSubstr("did not prove the job's secret in time"));
}

TEST_F(Rendezvous, ManySilentConnectionsDoNotKeepRanksOut) {
  start(2);
  std::vector<TimedSocket> crowd;
  for (int i = 0; i < 200; ++i) crowd.push_back(connect());
  auto first = join(0), second = join(1);
  ASSERT_TRUE(first && second);
  ASSERT_TRUE(first.value()->put(Entry::card, "card"));
  EXPECT_EQ(second.value()->get(Entry::card, Rank(0)).value(), "card");
}

/// Leaves this process that many descriptors; the destructor restores the limit.
class FewDescriptors {
 public:
  explicit FewDescriptors(unsigned count) {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(base::FileDescriptor(dup(STDIN_FILENO)).get()) + count;
    setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(Rendezvous, ARankThatNoDescriptorIsLeftForLearnsTheLimitAndTheRemedy) {
  start(4);
  auto first = join(0);
  ASSERT_TRUE(first);
  {
    const FewDescriptors one(1);  // the rank itself takes this one
    const auto second = join(1);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(second.error().message, HasSubstr("file descriptors, and has no more; raise the limit (`ulimit -n`"));
    // The server answers before it logs.
    const std::string line = "no file descriptor for one more of 4 ranks";
    for (int tries = 0; tries < 5'000 && logged().find(line) == std::string::npos; ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_THAT(logged(), HasSubstr(line));
    const FewDescriptors none(0);
    const auto third = join(2);
    ASSERT_FALSE(third);
    EXPECT_THAT(third.error().message, HasSubstr("ulimit -n"));
  }
  EXPECT_TRUE(join(1)) << "the server goes on";
  EXPECT_TRUE(first.value()->put(Entry::card, "card"));
}

TEST_F(Rendezvous, AConnectionThatAForkedChildHoldsIsGoneForTheServer) {
  start(2, 200'000'000);
  TimedSocket silent = connect();
  ASSERT_TRUE(silent.send(
      internal::frame_bytes(std::uint8_t(Kind::hello),
                            rendezvous::Hello{rendezvous::version, "0.1", 0, 2, std::string(32, 'n')}.encode()),
      soon()));
  std::string challenge;
  ASSERT_TRUE(silent.receive(challenge, soon()).value());
  const auto child =
      static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));  // no handlers run that close what it inherits
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) pause();
  }
  while (logged().find("did not prove the job's secret in time") == std::string::npos)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  stop();
  ASSERT_TRUE(silent.send("more", soon()));  // to the description that the child holds
  pollfd waited{server_->descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&waited, 1, 100), 0) << "the server is woken for ever";
  kill(child, SIGKILL);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

TEST_F(Rendezvous, RandomBytesAtAnyPointOfTheDialogueCloseThatConnectionOnly) {
  start(4);
  const auto seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 200; ++i) {
    TimedSocket socket = connect();
    std::string bytes;
    if (random() % 2 == 0) {
      const rendezvous::Hello hello{rendezvous::version, "0.1", unsigned(random() % 6), 4, std::string(32, 'n')};
      bytes = internal::frame_bytes(std::uint8_t(Kind::hello), hello.encode());
    }
    for (unsigned frames = random() % 4; frames > 0; --frames) {
      std::string body(random() % 64, '\0');
      for (char& byte : body) byte = static_cast<char>(random());
      bytes += random() % 3 == 0 ? body : internal::frame_bytes(static_cast<std::uint8_t>(random() % 14), body);
    }
    (void)socket.send(bytes, soon()).ok();
  }
  // A faulty member of the job.
  auto honest = join(0).value();
  ASSERT_TRUE(honest->put(Entry::card, "card"));
  ASSERT_TRUE(join(1).value()->put(Entry::card, std::string(12'000, 'x')));  // longer than any address
  auto other = join(2).value();
  EXPECT_EQ(other->get(Entry::card, Rank(0)).value(), "card");
}

}  // namespace
}  // namespace tandem::comm::rendezvous_test
