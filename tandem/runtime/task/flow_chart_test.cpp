// tandem/runtime/task/flow_chart_test.cpp: the DOT text of a small graph.
#include "tandem/runtime/task/flow_chart.hpp"

#include <cstdio>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/runtime/task/codelet_core.hpp"

namespace tandem::runtime::flow_chart_test {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Fixture {
  CodeletCore codelet{"say \"hello\""};
  Handle data;
  Task first;
  Task second;
  FlowChart chart;
  Fixture() {
    data.name = "x\nand y";
    first.id = 1;
    first.codelet = &codelet;
    second.id = 2;
    second.codelet = &codelet;
    second.priority = 7;
    chart.node(first);
    chart.node(second);
    chart.edge(1, second, &data);
    chart.edge(1, second, nullptr);
  }
};

TEST(FlowChart, HasANodePerTaskAndAnEdgePerDependency) {
  const std::string dot = Fixture().chart.dot();
  EXPECT_EQ(dot.find("digraph flow {"), 0U);
  EXPECT_THAT(dot, HasSubstr("t1 [label=\"say \\\"hello\\\" #1\""));
  EXPECT_THAT(dot, HasSubstr("#2 (priority 7)\""));
  EXPECT_THAT(dot, HasSubstr("t1 -> t2 [label=\"x and y\"]"));
  EXPECT_THAT(dot, HasSubstr("t1 -> t2 [style=dashed]")) << "an order that the user asked for";
  EXPECT_EQ(dot.substr(dot.size() - 2), "}\n");
}

TEST(FlowChart, IsWrittenToAFile) {
  const std::string path = testing::TempDir() + "tandem_flow_chart_test.dot";
  const Fixture f;
  ASSERT_TRUE(f.chart.write(path).ok());
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(text, f.chart.dot());
  std::remove(path.c_str());
}

TEST(FlowChart, AFileThatCannotBeWrittenIsAnErrorThatNamesIt) {
  const auto written = Fixture().chart.write("/no/such/folder/flow.dot");
  ASSERT_FALSE(written.ok());
  EXPECT_THAT(written.error().message, HasSubstr("/no/such/folder/flow.dot"));
}

}  // namespace
}  // namespace tandem::runtime::flow_chart_test
