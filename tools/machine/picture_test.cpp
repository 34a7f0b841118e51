// tools/machine/picture_test.cpp: the tree and the picture of invented machines.
#include "tools/machine/picture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace tandem::tools::machine_picture_test {
namespace {

using testing::HasSubstr;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(MachinePicture, TheTreeHasEachPartWithinTheOneThatItBelongsTo) {
  const auto topology = base::Topology::synthetic("package:2 numa:1 l3:1 core:2 pu:1").value();
  const std::vector<WorkerPlacement> workers{
      {.worker = 0, .is_caller = true}, {.worker = 1, .core = base::CoreId(1)}, {.worker = 2, .core = base::CoreId(2)}};
  const std::string tree = machine_tree({topology, workers, {{"OpenCL 0", "a card", 1U << 30U}}, {"eth0"}});
  EXPECT_THAT(tree, HasSubstr("|- package 0\n|  `- NUMA node 0"));
  EXPECT_THAT(tree, HasSubstr("|- package 1\n|  `- NUMA node 1"));
  EXPECT_THAT(tree, HasSubstr("|- core 0\n"));
  EXPECT_THAT(tree, HasSubstr("`- core 1: worker 1\n"));
  EXPECT_THAT(tree, HasSubstr("|- core 2: worker 2\n"));
  EXPECT_THAT(tree, HasSubstr("|- OpenCL 0: a card, 1.0 GiB\n`- network eth0\nworker 0 is the calling thread\n"));
  EXPECT_EQ(count(tree, "L3 cache"), 2u) << tree;
}

TEST(MachinePicture, AWideMachineIsDrawnInRowsWithinThePage) {
  const auto topology = base::Topology::synthetic("package:2 numa:4 core:16 pu:2").value();
  std::vector<WorkerPlacement> workers;
  for (unsigned i = 0; i < 128; ++i) workers.push_back({.worker = i, .core = base::CoreId(i)});
  const std::string svg = machine_svg({topology, workers, {{"CUDA 0", "<a & b>", 0}}, {}});
  EXPECT_EQ(count(svg, ">core "), 128u);
  EXPECT_EQ(count(svg, ">worker "), 128u);
  EXPECT_EQ(count(svg, ">NUMA node "), 8u);
  EXPECT_THAT(svg, HasSubstr("&lt;a &amp; b&gt;"));
  // No box is beyond the page.
  const auto number = [&](std::size_t at) { return std::stod(svg.substr(svg.find('"', at) + 1)); };
  const double width = number(svg.find(" width="));
  EXPECT_LE(width, 1000);
  for (std::size_t at = svg.find("<rect x="); at != std::string::npos; at = svg.find("<rect x=", at + 1))
    EXPECT_LE(number(at) + number(svg.find(" width=", at)), width + 0.2);
}

TEST(MachinePicture, ACoreAndNothingElse) {
  const auto topology = base::Topology::synthetic("core:1 pu:1").value();
  EXPECT_EQ(count(machine_svg({topology, {}, {}, {}}), ">core 0<"), 1u);
  EXPECT_EQ(count(machine_tree({topology, {}, {}, {}}), "core 0\n"), 1u);
}

}  // namespace
}  // namespace tandem::tools::machine_picture_test
