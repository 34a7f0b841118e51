// tandem/api/message_place_test.cpp: options comm.progress_core and message_node, on made-up machines.
#include "tandem/api/message_place.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"
#include "tandem/base/exceptions.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/model/contention/platforms.hpp"

namespace tandem::message_place_test {
namespace {

using model::contention::StoredMachine;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;

using Values = std::vector<std::pair<std::string, std::string>>;

struct PlaceOfMessages : testing::Test {
  base::Config config(const Values& values = {}) {
    Values all{{"comm.progress_core", "model"}, {"workers", "0"}};
    all.insert(all.end(), values.begin(), values.end());
    return test::test_config({.more = all});
  }
  /// The system's number of a node; a part of a host has its nodes in another order.
  static std::optional<unsigned> place_number(const base::Topology& own, std::optional<std::size_t> place) {
    return place ? std::optional(own.numa_nodes()[*place].os_index) : std::nullopt;
  }
  MessageHost host() { return {.own = machine, .host = machine}; }
  MessageHost host_near_card(unsigned node) { return {.own = machine, .host = machine, .network_node = node}; }

  base::Topology machine = base::Topology::synthetic("numa:2 core:2 pu:1").value();
  StoredMachine billy{.machine = model::contention::soften(model::contention::find_platform("billy")->machine),
                      .cores = 32};
  test::LogLines lines;
  std::unique_ptr<base::Log> log = lines.make_log(base::LogLevel::info);
};

TEST_F(PlaceOfMessages, WithoutCardAndModelNothingChanges) {
  base::Config options = config({{"workers", "2"}});
  EXPECT_FALSE(place_messages(options, host(), *log));
  EXPECT_EQ(options.get_string("comm.progress_core"), "-1");
  EXPECT_THAT(lines.all(),
              HasSubstr("option comm.progress_core: neither the NUMA node of the network card nor a model"));
}

TEST_F(PlaceOfMessages, TheThreadHasACoreWithoutAWorkerNearTheCard) {
  base::Config options = config({{"workers", "3"}});
  EXPECT_THAT(place_messages(options, host_near_card(1), *log), Optional(1U));
  EXPECT_EQ(options.get_string("comm.progress_core"), "3");
  EXPECT_EQ(options.get_string("message_node"), "1");
  // The free core is far from the network card, but still better than that of a worker.
  options = config({{"workers", "3"}});
  EXPECT_THAT(place_messages(options, host_near_card(0), *log), Optional(0U));
  EXPECT_EQ(options.get_string("comm.progress_core"), "3");
  EXPECT_THAT(lines.all(), HasSubstr("since NUMA node 0, where the network card is, has none"));
}

TEST_F(PlaceOfMessages, WorkersKeepTheirCores) {
  base::Config options = config();
  EXPECT_THAT(place_messages(options, host_near_card(1), *log), Optional(1U));
  EXPECT_EQ(options.get_string("comm.progress_core"), "-1");
  EXPECT_THAT(lines.all(), HasSubstr("no core of its own, since workers have all cores"));
}

TEST_F(PlaceOfMessages, AReservedCoreIsNearTheCard) {
  base::Config options = config({{"reserve_core", "true"}});
  EXPECT_THAT(place_messages(options, host_near_card(0), *log), Optional(0U));
  EXPECT_EQ(options.get_string("comm.progress_core"), "1") << "the last core of NUMA node 0";
  const auto workers = plan_workers(machine, {}, options);
  ASSERT_EQ(workers.size(), 3U);
  for (const WorkerPlacement& worker : workers)
    if (worker.core) {
      EXPECT_NE(worker.core->value(), 1U);
    }
}

TEST_F(PlaceOfMessages, TheModelMovesMemoryToTheOtherSocket) {
  base::Config options = config({{"workers", "2"}});
  MessageHost measured = host();
  measured.machine = &billy;
  EXPECT_THAT(place_messages(options, measured, *log), Optional(1U))
      << "both workers compute near NUMA node 0, the network is faster on the other one";
  EXPECT_EQ(options.get_string("comm.progress_core"), "3");
  EXPECT_THAT(
      lines.all(),
      AllOf(HasSubstr("what messages bring lies on NUMA node 1: beside all computing cores, messages have 18.9 GB/s"),
            HasSubstr("where that memory is")));
  options = config({{"workers", "2"}, {"message_node", "off"}});
  EXPECT_FALSE(place_messages(options, measured, *log));
  EXPECT_EQ(options.get_string("comm.progress_core"), "3");
}

/// With ranks on both sockets, no rank moves its memory to the cores of another one as if these were idle.
TEST_F(PlaceOfMessages, CoresOfOtherRanksCompute) {
  StoredMachine henri{.machine = model::contention::soften(model::contention::find_platform("henri")->machine),
                      .cores = 18};
  const auto large = base::Topology::synthetic("numa:2 core:18 pu:1").value();
  std::vector<unsigned> first(18), second(18);
  for (unsigned i = 0; i < 18; ++i) first[i] = i, second[i] = 18 + i;
  for (const auto& pus : {first, second}) {
    const auto own = large.restricted_to(pus).value();
    base::Config options = config();
    const MessageHost shared{
        .own = own, .host = large, .share = {.ranks_here = 2}, .network_node = 0, .machine = &henri};
    EXPECT_EQ(place_number(own, place_messages(options, shared, *log)), 0U)
        << "no node is better than that of the card";
    const MessageHost without_card{.own = own, .host = large, .share = {.ranks_here = 2}, .machine = &henri};
    options = config();
    EXPECT_EQ(place_number(own, place_messages(options, without_card, *log)), pus == first ? 0U : 1U)
        << "near its own cores";
    const MessageHost alone{.own = own, .host = large, .network_node = 0, .machine = &henri};
    options = config();
    EXPECT_EQ(place_number(own, place_messages(options, alone, *log)), pus == first ? 1U : 0U)
        << "away from computing cores";
  }
}

TEST_F(PlaceOfMessages, WorkersThatAreNotBoundLeaveEverythingAsItIs) {
  for (const Values& values : {Values{{"bind", "false"}}, Values{{"workers", "9"}}}) {
    base::Config options = config(values);
    MessageHost known = host_near_card(1);
    known.machine = &billy;
    EXPECT_FALSE(place_messages(options, known, *log));
    EXPECT_EQ(options.get_string("comm.progress_core"), "-1");
  }
  EXPECT_THAT(lines.all(), HasSubstr("workers are not bound"));
}

TEST_F(PlaceOfMessages, ByNumbers) {
  base::Config options = test::test_config({.more = {{"message_node", "1"}, {"comm.progress_core", "2"}}});
  EXPECT_THAT(place_messages(options, host(), *log), Optional(1U));
  EXPECT_EQ(comm::comm_options(options).progress_core, 2);
  options = test::test_config({});
  EXPECT_FALSE(place_messages(options, host(), *log));
  EXPECT_EQ(comm::comm_options(options).progress_core, -1);
  EXPECT_THAT(lines.all(), IsEmpty());
}

TEST_F(PlaceOfMessages, WrongValuesAreRefused) {
  base::Config options = test::test_config({.more = {{"message_node", "2"}}});
  EXPECT_THAT(test::thrown_by<StartError>([&] { place_messages(options, host(), *log); }),
              HasSubstr("'2' is neither auto nor off, nor one of this host's NUMA nodes: 0, 1"));
  EXPECT_THAT(test::thrown_by<StartError>([&] { check_message_options(options, machine); }),
              HasSubstr("message_node")) << "without messages, too";
  for (const char* const wrong : {"modell", "-2", "", "1.5"}) {
    options = test::test_config({.more = {{"comm.progress_core", wrong}}});
    EXPECT_THAT(test::thrown_by<StartError>([&] { place_messages(options, host(), *log); }),
                HasSubstr("comm.progress_core")) << wrong;
  }
}

}  // namespace
}  // namespace tandem::message_place_test
