// tools/report/run_tables_test.cpp: the tables that a report has of a run.
#include "tools/report/run_tables.hpp"

#include <gtest/gtest.h>

#include "tandem/analysis/history/small_run.hpp"

namespace tandem::tools::run_tables_test {
namespace {

using analysis::test::at;
using analysis::test::SmallRun;
using trace::Type;

RunTables tables_of_run(SmallRun& run) {
  const auto history = run.read();
  const analysis::TaskGraph graph(*history);
  return tables_of(*history, graph, analysis::Summary(*history, graph), analysis::broadcasts(*history));
}
bool has_column(const RunTables& tables, const std::string& name) {
  return tables.columns.index().dump().find('"' + name + '"') != std::string::npos;
}

TEST(RunTables, NegativeIterationsAreNone) {
  SmallRun run;
  run.usual();
  run.stream(0, 1).add(Type::task_iteration, at(0), {-3});
  run.submit(0, 0, 1, 0).execute(0, 2, 1, 10, 20);
  EXPECT_FALSE(has_column(tables_of_run(run), "task.iteration"));
  EXPECT_FALSE(has_column(tables_of_run(run), "pass.start"));
  run.stream(0, 1).add(Type::task_iteration, at(30), {0});
  run.submit(0, 30, 2, 0).execute(0, 2, 2, 40, 50);
  EXPECT_TRUE(has_column(tables_of_run(run), "task.iteration"));
  EXPECT_TRUE(has_column(tables_of_run(run), "pass.start"));
}

}  // namespace
}  // namespace tandem::tools::run_tables_test
