// tandem/comm/endpoint_trace_test.cpp: the events that endpoints record in the trace.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tandem/comm/endpoint_test_support.hpp"
#include "tandem/trace/read/reader.hpp"
#include "tandem/trace/session.hpp"

namespace tandem::comm::endpoint_trace_test {
namespace {

namespace fs = std::filesystem;
using endpoint_test::Bytes;
using endpoint_test::pattern;
using endpoint_test::World;
using testing::ElementsAre;
using testing::UnorderedElementsAre;
using trace::Type;

class LoopClock final : public clock::Clock {
 public:
  explicit LoopClock(base::EventLoop& loop) : loop_(loop) {}
  std::int64_t now_ns() const noexcept override { return loop_.now_ns(); }

 private:
  base::EventLoop& loop_;
};

/// An event, and its fields that are numbers.
struct RecordedEvent {
  std::uint32_t rank;
  Type type;
  std::vector<std::uint64_t> fields;
};

/// Ranks of one process, each with a trace.
class EndpointTrace : public testing::Test {
 protected:
  ~EndpointTrace() override { fs::remove_all(folder_); }

  void open(std::uint32_t ranks, EndpointOptions options = {}) {
    world.emplace(ranks, LoopOptions{}, options);
    clock_.emplace(world->loop);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      auto session = trace::Session::open({.folder = folder_, .live_folder = folder_, .rank = rank, .size = ranks},
                                          *clock_, world->log, &world->loop);
      ASSERT_TRUE(session.ok());
      sessions.push_back(std::move(session).value());
      world->at[rank]->trace_to(*sessions.back());
    }
  }
  /// Ends all ranks, and reads the recorded events.
  std::vector<RecordedEvent> recorded() {
    world->at.clear();
    sessions.clear();
    std::vector<RecordedEvent> all;
    auto run = trace::TraceReader::open(folder_);
    EXPECT_TRUE(run.ok()) << run.error().message;
    const auto read = run.value()->in_order([](const trace::Event& event) { return event.local_ns; },
                                            [&](const trace::Event& event, std::int64_t) {
                                              RecordedEvent one{event.rank, event.type, {}};
                                              for (std::size_t i = 0; i < trace::field_count(event.spec()); ++i) {
                                                const trace::Field field = event.spec().fields[i].field;
                                                const bool number =
                                                    field == trace::Field::u8 || field == trace::Field::u16 ||
                                                    field == trace::Field::u32 || field == trace::Field::u64;
                                                one.fields.push_back(number ? event.number(i) : 0);
                                              }
                                              all.push_back(std::move(one));
                                              return true;
                                            });
    EXPECT_TRUE(read.ok());
    return all;
  }

  std::optional<World> world;
  std::vector<std::unique_ptr<trace::Session>> sessions;

 private:
  fs::path folder_ = [] {
    std::string name = (fs::temp_directory_path() / "endpoint_trace_XXXXXX").string();
    return fs::path(::mkdtemp(name.data()));
  }();
  std::optional<LoopClock> clock_;
};

/// The events of a request on a rank, in order.
std::vector<Type> life_of(const std::vector<RecordedEvent>& all, std::uint32_t rank, std::uint64_t request) {
  std::vector<Type> types;
  for (const RecordedEvent& one : all) {
    const trace::EventSpec& spec = *trace::find_spec(one.type);
    if (one.rank == rank && spec.fields[0].name == "request" && one.fields[0] == request) types.push_back(one.type);
  }
  return types;
}

std::vector<RecordedEvent> of_type(const std::vector<RecordedEvent>& all, Type type) {
  std::vector<RecordedEvent> found;
  for (const RecordedEvent& one : all)
    if (one.type == type) found.push_back(one);
  return found;
}

TEST_F(EndpointTrace, AMessageIsPostedSentReceivedAndReleasedOnceWhateverItsSize) {
  open(2);
  const std::vector<std::size_t> sizes{0, 8, 1024, 3000, 50'000, 1'000'000};
  for (const std::size_t bytes : sizes) {
    const Bytes sent = pattern(bytes, 3);
    Bytes got(bytes);
    const Request receive = world->at[1]->irecv(Rank{0}, Tag{bytes}, got, {.channel = Channel{4}});
    const Request send = world->at[0]->isend(Rank{1}, Tag{bytes}, sent, {.channel = Channel{4}});
    world->at[1]->wait(receive);
    world->at[0]->wait(send);
  }
  const auto all = recorded();
  const auto posted = of_type(all, Type::send_posted), arrived = of_type(all, Type::message_arrived);
  ASSERT_EQ(posted.size(), sizes.size());
  ASSERT_EQ(arrived.size(), sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_THAT(posted[i].fields, ElementsAre(i + 1, 1, 4, 0, sizes[i], sizes[i]));
    EXPECT_THAT(arrived[i].fields, ElementsAre(i + 1, 0, 4, sizes[i], sizes[i]));
    if (sizes[i] < 50'000) {
      EXPECT_THAT(life_of(all, 0, i + 1), ElementsAre(Type::send_posted, Type::message_sent, Type::message_released));
    } else {
      EXPECT_THAT(life_of(all, 0, i + 1), ElementsAre(Type::send_posted, Type::send_announced, Type::send_granted,
                                                      Type::message_sent, Type::message_released));
    }
    EXPECT_THAT(life_of(all, 1, i + 1),
                ElementsAre(Type::receive_posted, Type::message_arrived, Type::message_released));
  }
  EXPECT_FALSE(of_type(all, Type::packet_sent).empty());
  EXPECT_EQ(of_type(all, Type::packet_sent).size(), of_type(all, Type::packet_received).size());
}

TEST_F(EndpointTrace, ABroadcastNamesItsRecipientsAndEachHasItsMessage) {
  open(6);
  const Bytes sent = pattern(200'000, 1);
  std::vector<Bytes> got(6, Bytes(200'000));
  std::vector<Request> receives;
  std::vector<Recipient> recipients;
  for (std::uint32_t rank = 1; rank < 6; ++rank) {
    receives.push_back(world->at[rank]->irecv(Rank{0}, Tag{9}, got[rank]));
    recipients.push_back({Rank{rank}, 0});
  }
  const Request mcast = world->at[0]->mcast(recipients, Tag{9}, sent, {.tree = TreeKind::chain});
  world->at[0]->wait(mcast);
  for (std::uint32_t rank = 1; rank < 6; ++rank) world->at[rank]->wait(receives[rank - 1]);
  EXPECT_EQ(mcast.trace_number(), 1u);
  const auto all = recorded();
  const auto posted = of_type(all, Type::mcast_posted);
  ASSERT_EQ(posted.size(), 1u);
  EXPECT_THAT(posted[0].fields, ElementsAre(1, 0, 9, 200'000, 5));
  std::vector<std::uint64_t> named, reached;
  for (const RecordedEvent& one : of_type(all, Type::mcast_recipient)) named.push_back(one.fields[1]);
  for (const RecordedEvent& one : of_type(all, Type::message_arrived)) {
    reached.push_back(one.rank);
    EXPECT_THAT(one.fields, ElementsAre(1, 0, 0, 9, 200'000));
  }
  EXPECT_THAT(named, UnorderedElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(reached, UnorderedElementsAre(1, 2, 3, 4, 5));
  ASSERT_EQ(of_type(all, Type::mcast_routed).size(), 1u);
  EXPECT_EQ(of_type(all, Type::mcast_routed)[0].fields[1], static_cast<std::uint64_t>(TreeKind::chain));
  EXPECT_EQ(of_type(all, Type::mcast_routed)[0].fields[3], 1u) << "a chain's root has one child";
  EXPECT_EQ(of_type(all, Type::mcast_forwarded).size(), 4u);
}

TEST_F(EndpointTrace, WhatEndsOtherwiseSaysHow) {
  open(2);
  Bytes got(10);
  const Request given_up = world->at[1]->irecv(Rank{0}, Tag{1}, got);
  EXPECT_TRUE(world->at[1]->cancel(given_up));
  const Request shorter = world->at[1]->irecv(any_source, any_tag, got);
  const Bytes sent = pattern(100, 1);
  world->at[0]->isend(Rank{1}, Tag{2}, sent);
  EXPECT_EQ(world->at[1]->wait(shorter).ending, Ending::truncated);
  const auto all = recorded();
  const auto failed = of_type(all, Type::message_failed);
  ASSERT_EQ(failed.size(), 2u);
  EXPECT_THAT(failed[0].fields, ElementsAre(1, static_cast<std::uint64_t>(Ending::cancelled)));
  EXPECT_THAT(failed[1].fields, ElementsAre(2, static_cast<std::uint64_t>(Ending::truncated)));
  EXPECT_THAT(of_type(all, Type::receive_posted)[1].fields, ElementsAre(2, UINT32_MAX, 0, UINT64_MAX));
  EXPECT_THAT(of_type(all, Type::message_arrived)[0].fields, ElementsAre(2, 0, 0, 2, 100));
}

TEST_F(EndpointTrace, AnActiveMessageIsReceivedLikeAnyOther) {
  open(2);
  int seen = 0;
  world->at[1]->register_rpc(Channel{5}, {.arrived = [](const RpcArrival&) { return RpcAnswer{}; },
                                          .done = [&](const Status&) { ++seen; }});
  const Bytes sent = pattern(40, 1);
  world->at[0]->wait(world->at[0]->rpc(Rank{1}, Channel{5}, Tag{3}, {}, sent));
  world->settle();
  EXPECT_EQ(seen, 1);
  const auto all = recorded();
  EXPECT_THAT(of_type(all, Type::receive_posted)[0].fields, ElementsAre(1, 0, 5, 3));
  EXPECT_THAT(of_type(all, Type::message_arrived)[0].fields, ElementsAre(1, 0, 5, 3, 40));
}

TEST_F(EndpointTrace, RequestsPostedWhileNothingWasRecordedAreNotRecorded) {
  open(2);
  for (auto& session : sessions) session->select(trace::Selection::none());
  Bytes got(10);
  const Request receive = world->at[1]->irecv(Rank{0}, Tag{1}, got);
  for (auto& session : sessions) session->select(trace::Selection::all());
  const Bytes sent = pattern(10, 1);
  world->at[0]->isend(Rank{1}, Tag{1}, sent);
  world->at[1]->wait(receive);
  EXPECT_EQ(receive.trace_number(), 0u);
  const auto all = recorded();
  EXPECT_EQ(of_type(all, Type::send_posted).size(), 1u);
  EXPECT_TRUE(of_type(all, Type::message_arrived).empty());
}

}  // namespace
}  // namespace tandem::comm::endpoint_trace_test
