// tools/machine/links_test.cpp: tables and JSON of links of invented machines.
#include "tools/machine/links.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tandem::tools::machine_links_test {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A device with 10 GB/s from main memory, half of it under load, and an unknown rate to main memory.
LinkView measured() {
  LinkView view;
  view.sizes = {4'096, 1 << 20, 16 << 20};
  view.machine.workers.resize(1);
  view.machine.distance = {{1}};
  view.machine.add_node({.kind = runtime::NodeKind::device, .name = "card", .budget = std::size_t{6} << 30});
  runtime::LinkCurves curves{.from = 0, .to = 1, .times = {}};
  for (int i = 0; i < 8; ++i)
    for (const std::size_t bytes : {4'096, 1 << 20}) {
      curves.times.alone.add(bytes, static_cast<double>(bytes) / 10);
      curves.times.loaded.add(bytes, static_cast<double>(bytes) / 5);
    }
  view.machine.links.push_back(curves.link().value());
  view.curves.push_back(curves);
  return view;
}

TEST(MachineLinks, TablesHaveFiguresAloneAtOnceAndTheirRatio) {
  const std::string text = links_text(measured());
  EXPECT_THAT(text, HasSubstr("     0  main     no limit    main memory\n     1  device   6.0 GiB     card\n"));
  EXPECT_THAT(text, HasSubstr("   0 -> 1          10       0 ns           5     50 %  measured\n"));
  EXPECT_THAT(text,
              HasSubstr("from    to       4KiB      1MiB     16MiB\n   0 -> 1          10        10         -\n"));
  EXPECT_THAT(text, HasSubstr("   0 -> 1           5         5         -\n"));
  EXPECT_THAT(text, HasSubstr("   0 -> 1         0.5       0.5         -\n"));
}

TEST(MachineLinks, TablesHaveMessagesAndCopiesBesideThem) {
  LinkView view = measured();
  EXPECT_THAT(links_text(view),
              HasSubstr("Messages are measured on several ranks: tandem run -n 2 tandem machine --links"));
  view.machine.links[0].beside_messages_bytes_per_ns = 8;
  view.machine.networks.push_back({.transport = "tcp",
                                   .source = runtime::LinkSource::measured,
                                   .times = {{.bytes = 8, .alone_ns = 15'250},
                                             {.bytes = 1 << 20,
                                              .alone_ns = 524'288,
                                              .both_ways_ns = 600'000,
                                              .loaded_ns = 1e6,
                                              .all_pairs_ns = 750'000}}});
  const std::string text = links_text(view);
  EXPECT_THAT(text, Not(HasSubstr("Messages are measured on several ranks")));
  EXPECT_THAT(text,
              HasSubstr("from    to       GB/s    latency  at once, GB/s     of it  beside messages     of it\n"
                        "   0 -> 1          10       0 ns           5     50 %                8     80 %  measured\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "messages over tcp (measured)\n   bytes   alone, us        GB/s  both ways, us  loaded, us  all pairs, us\n"
          "      8B       15.25    0.000525              -           -              -\n"
          "    1MiB       524.3           2            600        1000            750\n"));
  Json machine = Json::object();
  add_links_json(view, machine);
  EXPECT_NEAR(machine["links"].at(0)["beside_messages_gb_s"].number(), 8, 1e-6);
  const Json& messages = machine["messages"].at(0);
  EXPECT_EQ(messages["transport"].text(), "tcp");
  EXPECT_NEAR(messages["latency_us"].number(), 15.25, 1e-6);
  EXPECT_NEAR(messages["gb_s"].number(), 2, 1e-6);
  EXPECT_TRUE(messages["sizes"].at(0)["loaded_us"].is_null());
  EXPECT_NEAR(messages["sizes"].at(1)["loaded_us"].number(), 1'000, 1e-6);
  EXPECT_NEAR(messages["sizes"].at(1)["all_pairs_us"].number(), 750, 1e-6);
}

TEST(MachineLinks, WithoutAMeasurementTheTextSaysHowToGetOne) {
  LinkView view = measured();
  view.curves.clear();
  EXPECT_THAT(links_text(view), Not(HasSubstr("each link alone")));
  view.machine.links.clear();
  EXPECT_THAT(links_text(view), HasSubstr("The links between them are not measured: --links does it now"));
  view.machine.nodes.pop_back();
  EXPECT_THAT(links_text(view), HasSubstr("There are no copies between memories. Name devices (--tandem.opencl=1"));
}

TEST(MachineLinks, JsonHasTheSame) {
  Json machine = Json::object();
  add_links_json(measured(), machine);
  EXPECT_EQ(machine["memories"].at(1)["name"].text(), "card");
  EXPECT_TRUE(machine["memories"].at(0)["budget_bytes"].is_null());
  const Json& link = machine["links"].at(0);
  EXPECT_EQ(link["to"].number(), 1);
  EXPECT_EQ(link["source"].text(), "measured");
  EXPECT_NEAR(link["gb_s"].number(), 10, 1e-6);
  EXPECT_NEAR(link["loaded_gb_s"].number(), 5, 1e-6);
  EXPECT_NEAR(link["sizes"].at(1)["ratio"].number(), 0.5, 1e-6);
  EXPECT_EQ(link["sizes"].at(1)["bytes"].number(), 1 << 20);
  EXPECT_TRUE(link["sizes"].at(2)["alone_gb_s"].is_null());
}

}  // namespace
}  // namespace tandem::tools::machine_links_test
