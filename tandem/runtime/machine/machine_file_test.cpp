// tandem/runtime/machine/machine_file_test.cpp: machines that are read back from their files, and files that are
// refused.
#include "tandem/runtime/machine/machine_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tandem/base/splitmix64.hpp"

namespace tandem::runtime::machine_file_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Two cores near two NUMA nodes, two devices, a file.
Machine machine() {
  Machine one;
  const NodeIndex numa = one.add_node({.kind = NodeKind::numa, .name = "NUMA node 4", .numa_node = 1});
  const std::string name = "the memory of \"card\" 0 (\xC3\xA9\\\t\x01)";
  const NodeIndex card = one.add_node({.kind = NodeKind::device, .name = name, .budget = (std::size_t{6} << 30) + 1});
  const NodeIndex other = one.add_node({.kind = NodeKind::device, .name = ""});
  one.add_node({.kind = NodeKind::storage, .name = "a file"});
  one.nodes[0].budget = 1 << 20;
  one.workers = {{.kind = DeviceKind::cpu, .core = 0},
                 {.kind = DeviceKind::cpu, .node = numa, .core = 17, .numa_node = 1},
                 {.kind = DeviceKind::cuda,
                  .node = card,
                  .bus_address = "0000:3b:00.0",
                  .power = WorkerPower{.running_watts = 312.5, .idle_watts = 40}},
                 {.kind = static_cast<DeviceKind>(static_cast<int>(DeviceKind::user) + 3), .node = other}};
  one.distance = {{0, 4}, {4, 0}};
  one.links.push_back({.from = 0,
                       .to = 2,
                       .bytes_per_ns = 24.8125,
                       .latency_ns = 7'123,
                       .source = LinkSource::measured,
                       .loaded_bytes_per_ns = 11.5});
  one.links.back().beside_messages_bytes_per_ns = 20.25;
  one.links.push_back({.from = 2, .to = 0, .bytes_per_ns = 1e-3, .latency_ns = 0, .source = LinkSource::given});
  one.links.push_back(
      {.from = 3, .to = 1, .bytes_per_ns = 1e9, .latency_ns = 123'456'789, .source = LinkSource::assumed});
  one.networks.push_back({.transport = "shm", .source = LinkSource::given, .times = {{.bytes = 8, .alone_ns = 250}}});
  one.networks.push_back(
      {.transport = "tcp",
       .source = LinkSource::measured,
       .times = {{.bytes = 4'096, .alone_ns = 12'500, .both_ways_ns = 14'750},
                 {.bytes = 1 << 20, .alone_ns = 410'000, .loaded_ns = 822'500, .all_pairs_ns = 633'250}}});
  one.check();
  return one;
}

std::string error_of(const std::string& text) {
  const auto read = parse_machine(text, "m.toml");
  return read.ok() ? "it was read" : read.error().message;
}

/// The file with the first `from` replaced by `to`.
std::string with(const std::string& from, const std::string& to) {
  std::string text = to_text(machine());
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

/// The number of the first line that contains `part`.
std::string line_of(const std::string& text, const std::string& part) {
  return "m.toml:" +
         std::to_string(1 +
                        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(text.find(part)), '\n')) +
         ": ";
}

TEST(MachineFile, HasAllOfTheMachine) {
  const Machine before = machine();
  const std::string text = to_text(before, "here \"and\" now");
  const auto read = parse_machine(text, "m.toml");
  ASSERT_TRUE(read.ok()) << read.error().message;
  const Machine& after = read.value();
  ASSERT_EQ(after.nodes.size(), before.nodes.size());
  for (std::size_t i = 0; i < before.nodes.size(); ++i) {
    EXPECT_EQ(after.nodes[i].kind, before.nodes[i].kind) << i;
    EXPECT_EQ(after.nodes[i].name, before.nodes[i].name) << i;
    EXPECT_EQ(after.nodes[i].budget, before.nodes[i].budget) << i;
    EXPECT_EQ(after.nodes[i].numa_node, before.nodes[i].numa_node) << i;
  }
  ASSERT_EQ(after.workers.size(), before.workers.size());
  for (std::size_t i = 0; i < before.workers.size(); ++i) {
    EXPECT_EQ(after.workers[i].kind, before.workers[i].kind) << i;
    EXPECT_EQ(after.workers[i].node, before.workers[i].node) << i;
    EXPECT_EQ(after.workers[i].core, before.workers[i].core) << i;
    EXPECT_EQ(after.workers[i].numa_node, before.workers[i].numa_node) << i;
    EXPECT_EQ(after.workers[i].bus_address, before.workers[i].bus_address) << i;
    EXPECT_EQ(after.workers[i].power, before.workers[i].power) << i;
  }
  ASSERT_EQ(after.links.size(), before.links.size());
  for (const MachineLink& link : before.links) {
    const MachineLink same = after.link(link.from, link.to);
    EXPECT_EQ(same.bytes_per_ns, link.bytes_per_ns);
    EXPECT_EQ(same.latency_ns, link.latency_ns);
    EXPECT_EQ(same.source, link.source);
    EXPECT_EQ(same.loaded_bytes_per_ns, link.loaded_bytes_per_ns);
    EXPECT_EQ(same.beside_messages_bytes_per_ns, link.beside_messages_bytes_per_ns);
  }
  ASSERT_EQ(after.networks.size(), before.networks.size());
  for (std::size_t i = 0; i < before.networks.size(); ++i) {
    EXPECT_EQ(after.networks[i].transport, before.networks[i].transport);
    EXPECT_EQ(after.networks[i].source, before.networks[i].source);
    ASSERT_EQ(after.networks[i].times.size(), before.networks[i].times.size());
    for (std::size_t j = 0; j < before.networks[i].times.size(); ++j) {
      const MessageTimes &there = after.networks[i].times[j], &here = before.networks[i].times[j];
      EXPECT_EQ(there.bytes, here.bytes);
      EXPECT_EQ(there.alone_ns, here.alone_ns);
      EXPECT_EQ(there.both_ways_ns, here.both_ways_ns);
      EXPECT_EQ(there.loaded_ns, here.loaded_ns);
      EXPECT_EQ(there.all_pairs_ns, here.all_pairs_ns);
    }
  }
  EXPECT_EQ(after.distance, before.distance);
  EXPECT_EQ(to_text(after, "here \"and\" now"), text);
}

TEST(MachineFile, KeepsRandomFiguresToSixDigits) {
  std::uint64_t state = 1;
  const auto random = [&] { return base::splitmix64(state); };
  for (int round = 0; round < 200; ++round) {
    Machine before = machine();
    before.links[0].bytes_per_ns = static_cast<double>(random() % 1'000'000'000 + 1) / 1e6;
    before.links[0].latency_ns = static_cast<std::int64_t>(random() % 1'000'000'000'000);
    before.nodes[2].budget = random() >> (11 + random() % 50);
    const auto after = parse_machine(to_text(before), "m.toml");
    ASSERT_TRUE(after.ok()) << after.error().message;
    EXPECT_NEAR(after.value().link(0, 2).bytes_per_ns / before.links[0].bytes_per_ns, 1, 1e-5);
    EXPECT_EQ(after.value().link(0, 2).latency_ns, before.links[0].latency_ns);
    EXPECT_EQ(after.value().nodes[2].budget, before.nodes[2].budget);
  }
}

TEST(MachineFile, ThatAPersonWroteNeedsNoMoreThanThis) {
  const auto read = parse_machine(
      "format = 1\n"
      "[memory.0]\nkind = 'main'\nname = 'main memory'\nbudget = 0\n"
      "[memory.1]\nkind = 'device'\nname = 'card'\nbudget = '2GiB'\n"
      "[link.0-1]  # one direction\ngb_s = 12\nlatency_us = 1.5\n"
      "[worker.0]\nkind = 'cpu'\nmemory = 0\n"
      "[worker.1]\nkind = 'opencl'\nmemory = 1\n"
      "[distance]\n0 = '0'\n",
      "m.toml");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value().nodes[1].budget, std::size_t{2} << 30);
  EXPECT_EQ(read.value().link(0, 1).source, LinkSource::given);
  EXPECT_EQ(read.value().link(0, 1).latency_ns, 1'500);
  EXPECT_EQ(read.value().link(0, 1).loaded_bytes_per_ns, std::nullopt);
  EXPECT_EQ(read.value().workers[1].core, -1);
}

TEST(MachineFile, ThatIsCutOffAnywhereIsRefused) {
  const std::string text = to_text(machine(), "here");
  for (std::size_t bytes = 0; bytes + 1 < text.size(); ++bytes) {  // the last newline carries no information
    const std::string error = error_of(text.substr(0, bytes));
    ASSERT_THAT(error, HasSubstr("m.toml")) << bytes;
  }
}

TEST(MachineFile, ThatIsDamagedIsRefusedOrIsAMachine) {
  const std::string text = to_text(machine());
  std::uint64_t state = 2;
  const auto random = [&] { return base::splitmix64(state); };
  for (int round = 0; round < 20'000; ++round) {
    std::string damaged = text;
    for (std::uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
      const std::size_t at = random() % damaged.size();
      switch (random() % 4) {
        case 0: damaged[at] = static_cast<char>(random() % 256); break;
        case 1: damaged.erase(at, 1 + random() % 40); break;
        case 2: damaged.insert(at, text.substr(random() % text.size(), random() % 40)); break;
        default: damaged[at] = "0123456789-.\"\n="[random() % 15]; break;
      }
    }
    const auto read = parse_machine(damaged, "m.toml");
    if (read.ok()) read.value().check();
    else ASSERT_THAT(read.error().message, HasSubstr("m.toml")) << damaged;
  }
}

struct Wrong {
  const char* from;
  const char* to;
  const char* at;  ///< text at the beginning of the line that the error names
  const char* says;
};

TEST(MachineFile, ErrorsNameLineKeyAndRemedy) {
  const std::vector<Wrong> cases{
      {"kind = \"main\"", "kind = \"mian\"", "mian",
       "memory.0.kind is 'mian'; write one of main, numa, device, storage"},
      {"kind = \"numa\"", "kind = \"main\"", "\"main\"\nname = \"NUMA",
       "memory.1.kind is 'main'; memory.0 is of kind main, and no other one is"},
      {"kind = \"main\"", "kind = \"device\"", "kind = \"device\"", "memory.0.kind is 'device'"},
      {"budget = \"1MiB\"", "budget = \"1 ton\"", "1 ton",
       "memory.0.budget is '1 ton'; write bytes, as in \"8GiB\", or 0 for no limit"},
      {"budget = \"1MiB\"", "budget = -5", "-5", "memory.0.budget is '-5'; write bytes"},
      {"budget = \"1MiB\"\n", "", "kind = \"main",
       "memory.0.budget is missing; write budget = \"8GiB\", or 0 for no limit, or write the file anew"},
      {"budget = \"1MiB\"", "budegt = \"1MiB\"", "budegt", "memory.0.budegt is not known (did you mean budget?)"},
      {"[memory.1]", "[memory.7]", "kind = \"device\"",
       "memory.2 is here, and memory.1 is missing; count them from 0 without gaps"},
      {"[memory.1]", "[memory.x]", "kind = \"numa\"", "'x' is no number of a memory or worker"},
      {"numa_node = 1", "numa_node = \"one\"", "\"one\"",
       "memory.1.numa_node is 'one'; write a NUMA node, a whole number from 0"},
      {"gb_s = 24.8125", "gb_s = 0", "gb_s = 0", "link.0-2.gb_s is '0'; write GB/s, a number above 0"},
      {"gb_s = 24.8125", "gb_s = nan", "gb_s = nan", "link.0-2.gb_s is 'nan'; write GB/s"},
      {"gb_s = 24.8125\n", "", "latency_us = 7.123", "link.0-2.gb_s is missing; write gb_s = 12.5"},
      {"loaded_gb_s = 11.5", "loaded_gb_s = -1", "loaded_gb_s = -1", "link.0-2.loaded_gb_s is '-1'; write GB/s"},
      {"latency_us = 7.123", "latency_us = -7", "latency_us = -7",
       "link.0-2.latency_us is '-7'; write us, a number from 0"},
      {"latency_us = 7.123", "latency_us = 1e30", "latency_us = 1e30", "latency_us is '1e+30'"},
      {"source = \"measured\"", "source = \"guessed\"", "guessed",
       "link.0-2.source is 'guessed'; write one of assumed, given, measured"},
      {"[link.0-2]", "[link.0-9]", "gb_s = 24", "link.0-9 does not lead from one of the 5 memories to another"},
      {"[link.0-2]", "[link.2-2]", "gb_s = 24", "link.2-2 does not lead from one of the 5 memories to another"},
      {"[link.0-2]", "[link.main]", "gb_s = 24", "'main' does not name two memories; write [link.0-1]"},
      {"[link.0-2]", "[lnik.0-2]", "gb_s = 24",
       "lnik.0-2.gb_s is no key of a machine; there are [memory.N], [link.FROM-TO], [network.TRANSPORT], [worker.N] "
       "and [distance]"},
      {"beside_messages_gb_s = 20.25", "beside_messages_gb_s = 0", "beside_messages_gb_s = 0",
       "link.0-2.beside_messages_gb_s is '0'; write GB/s"},
      {"[network.tcp]", "[network.\"a b\"]", "source = \"measured\"\nsizes",
       "'a b' is no name of a transport; write [network.tcp]"},
      {"\"    4KiB     1MiB\"", "\"1MiB 4KiB\"", "1MiB 4KiB",
       "network.tcp.sizes is '1MiB 4KiB'; write sizes of messages in ascending order"},
      {"\"    4KiB     1MiB\"", "\"\"", "sizes        = \"\"", "network.tcp.sizes is ''; write sizes of messages"},
      {"\"    4KiB     1MiB\"", "\"4KiB\"", "    12.5      410",
       "network.tcp.alone_us is '    12.5      410'; write 1 numbers of us"},
      {"12.5      410", "12.5 fast", "12.5 fast",
       "network.tcp.alone_us is '    12.5 fast'; write 2 numbers of us, one for each of the sizes"},
      {"12.5      410", "12.5 0", "12.5 0", "network.tcp.alone_us is '    12.5 0'; write 2 numbers of us"},
      {"12.5      410", "12.5 -", "12.5 -", "network.tcp.alone_us is '    12.5 -'; write a time for each of the sizes"},
      {"both_ways_us", "both_way_us", "both_way_us",
       "network.tcp.both_way_us is not known (did you mean both_ways_us?)"},
      {"alone_us     = \"    0.25\"\n", "", "source = \"given\"\nsizes",
       "network.shm.alone_us is missing; write alone_us = \"12.5 130\""},
      {"kind = \"cuda\"", "kind = \"gpu\"", "gpu", "worker.2.kind is 'gpu'; write one of cpu, cuda, opencl, user"},
      {"kind = \"user 3\"", "kind = \"user 300\"", "user 300", "worker.3.kind is 'user 300'"},
      {"core = 17", "core = -17", "core = -17", "worker.1.core is '-17'; write a core, a whole number from 0"},
      {"memory = 1", "memory = 300", "memory = 300",
       "worker.1.memory is '300'; write one of the 5 memories, counted from 0"},
      {"memory = 1", "memory = x", "memory = x", "x is no number"},
      {"kind = \"cpu\"", "kind = \"cuda\"", "\"cpu\"\nmemory = 1",
       "worker.1 is of kind cpu and stands behind a device's worker"},
      {"[worker.3]", "[worker.5]", "kind = \"user 3\"", "worker.5 is here, and worker.3 is missing"},
      {"0 = \"0 4\"", "0 = \"0 four\"", "four", "distance.0 is '0 four'; write 2 whole numbers"},
      {"0 = \"0 4\"", "0 = \"0\"", "0 = \"0\"", "distance.0 is '0'; write 2 whole numbers"},
      {"1 = \"4 0\"", "1 = \"4 0\"\n2 = \"4 0\"", "2 = \"4 0", "distance.2 is a row too many: there are 2 CPU workers"},
      {"format = 1", "format = 2", "format = 2",
       "format is 2, and this version of Tandem reads format 1; write the file anew"},
      {"gb_s = 24.8125", "gb_s = [1]", "gb_s = [1]", "an array"},
  };
  for (const Wrong& wrong : cases) {
    const std::string text = with(wrong.from, wrong.to);
    const std::string error = error_of(text);
    EXPECT_THAT(error, AllOf(HasSubstr(line_of(text, wrong.at)), HasSubstr(wrong.says)));
  }
}

TEST(MachineFile, ErrorsOfTheWholeNameTheFile) {
  EXPECT_THAT(error_of(""), AllOf(HasSubstr("m.toml: format is missing"), HasSubstr("tandem machine --save FILE")));
  EXPECT_THAT(error_of("format = 1"), HasSubstr("m.toml: memory.0 is missing, which is main memory"));
  EXPECT_THAT(error_of(with("1 = \"4 0\"\n", "")),
              HasSubstr("m.toml: distance.1 is missing, so the file is cut off, or a CPU worker was added"));
  EXPECT_THAT(error_of(with("memory = 1\n", "memory = 4\n")),
              HasSubstr("worker 1 works in a file, which is storage; correct it"));
  std::string many = "format = 1\n";
  for (int i = 0; i <= 16; ++i)
    many += "[memory." + std::to_string(i) + "]\nkind='" + (i == 0 ? "main" : "device") + "'\nname='x'\nbudget=0\n";
  EXPECT_THAT(error_of(many), HasSubstr("memory.16 is one memory too many; a machine has at most 16"));
  EXPECT_EQ(parse_machine("format = 3", "m.toml").error().code, base::ErrorCode::unsupported);
  EXPECT_EQ(parse_machine("format = 1", "m.toml").error().code, base::ErrorCode::malformed);
}

TEST(MachineFile, IsWrittenAndReadOnDisk) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / ("machine_file_test_" + std::to_string(getpid()) + ".toml");
  ASSERT_TRUE(write_machine(path, machine()).ok());
  const auto read = read_machine(path);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(to_text(read.value()), to_text(machine()));
  std::filesystem::remove(path);
  EXPECT_EQ(read_machine(path).error().code, base::ErrorCode::io);
  EXPECT_FALSE(write_machine("/nonexistent/machine.toml", machine()).ok());
}

}  // namespace
}  // namespace tandem::runtime::machine_file_test
