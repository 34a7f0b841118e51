// tandem/runtime/task/flow_test.cpp: dependencies of tasks, by example, seen by an observer of the graph.
#include "tandem/runtime/task/flow.hpp"

#include <deque>
#include <set>
#include <utility>

#include <gtest/gtest.h>

namespace tandem::runtime::flow_test {
namespace {

using Edges = std::set<std::pair<TaskId, TaskId>>;

/// A flow without workers, whose tasks end when the test says so.
struct Fixture final : FlowHost, GraphObserver {
  TaskPool pool;
  Flow flow{pool, *this};
  std::deque<Handle> handles;
  Edges edges;
  std::vector<TaskId> joins;
  std::vector<TaskId> combines;
  std::vector<TaskId> ready_inside;
  TaskId last_id = 0;

  Fixture() { flow.set_observer(this); }

  Handle& data() { return handles.emplace_back(); }
  Task& take(unsigned accesses) {
    Task& task = *pool.take(Task::value_offset(accesses, 1));
    task.id = ++last_id;
    task.access_count = static_cast<std::uint8_t>(accesses);
    task.kind = TaskKind::kernel;
    task.successors.reset();
    task.where = {};
    return task;
  }
  struct Use {
    Handle* handle;
    AccessMode mode;
  };
  /// Enters a task. Returns true if it is ready.
  std::pair<Task*, bool> enter(std::initializer_list<Use> uses) {
    Task& task = take(static_cast<unsigned>(uses.size()));
    unsigned i = 0;
    for (const Use& use : uses) task.accesses()[i++].set(use.handle, use.mode);
    flow.begin_entering(task);
    flow.enter_accesses(task);
    return {&task, flow.finish_entering(task)};
  }
  Task& enter(Handle& handle, AccessMode mode) { return *enter({{&handle, mode}}).first; }
  /// Ends a task: counts its successors down, as the executor does.
  void end(Task& task) {
    for (Link* link = task.successors.seal(); link != nullptr; link = link->next) link->task()->waits.fetch_sub(1);
  }

  Task* make_join() override {
    Task& task = take(0);
    task.kind = TaskKind::join;
    joins.push_back(task.id);
    return &task;
  }
  Task* make_combine(Handle& handle) override {
    Task& task = take(1);
    task.accesses()[0].set(&handle, AccessMode::read_write);
    combines.push_back(task.id);
    return &task;
  }
  void entered_ready(Task& task) override { ready_inside.push_back(task.id); }
  void node(Task&) override {}
  void edge(TaskId from, const Task& to, const Handle*) override { edges.emplace(from, to.id); }
};

TEST(Flow, TheFirstTaskOnDataIsReady) {
  Fixture f;
  EXPECT_TRUE(f.enter({{&f.data(), AccessMode::write}}).second);
  EXPECT_TRUE(f.edges.empty());
}

TEST(Flow, ReadersFollowTheWriterAndNotEachOther) {
  Fixture f;
  Handle& x = f.data();
  f.enter(x, AccessMode::write);  // 1
  f.enter(x, AccessMode::read);   // 2
  f.enter(x, AccessMode::read);   // 3
  EXPECT_EQ(f.edges, (Edges{{1, 2}, {1, 3}}));
}

TEST(Flow, AWriterFollowsAllReadersAndNotTheWriterBefore) {
  Fixture f;
  Handle& x = f.data();
  f.enter(x, AccessMode::write);       // 1
  f.enter(x, AccessMode::read);        // 2
  f.enter(x, AccessMode::read);        // 3
  f.enter(x, AccessMode::read_write);  // 4
  f.enter(x, AccessMode::write);       // 5
  EXPECT_EQ(f.edges, (Edges{{1, 2}, {1, 3}, {2, 4}, {3, 4}, {4, 5}}));
}

TEST(Flow, DataDoNotMixAndScratchOrdersNothing) {
  Fixture f;
  Handle& x = f.data();
  Handle& y = f.data();
  f.enter(x, AccessMode::write);                                                    // 1
  f.enter(y, AccessMode::write);                                                    // 2
  EXPECT_TRUE(f.enter({{&x, AccessMode::scratch}}).second);                         // 3
  f.enter({{&x, AccessMode::read}, {&y, AccessMode::read_write}});                  // 4
  EXPECT_EQ(f.edges, (Edges{{1, 4}, {2, 4}}));
}

TEST(Flow, CommutingNeighboursFollowTheWriterAndNotEachOther) {
  Fixture f;
  Handle& x = f.data();
  f.enter(x, AccessMode::write);    // 1
  f.enter(x, AccessMode::commute);  // 2
  f.enter(x, AccessMode::commute);  // 3
  f.enter(x, AccessMode::write);    // 4
  EXPECT_EQ(f.edges, (Edges{{1, 2}, {1, 3}, {2, 4}, {3, 4}}));
  EXPECT_TRUE(f.joins.empty());
}

TEST(Flow, BetweenTwoGroupsStandsAJoin) {
  Fixture f;
  Handle& x = f.data();
  f.enter(x, AccessMode::write);    // 1
  f.enter(x, AccessMode::commute);  // 2
  f.enter(x, AccessMode::commute);  // 3
  f.enter(x, AccessMode::read);     // 4, and the join 5
  f.enter(x, AccessMode::read);     // 6
  EXPECT_EQ(f.joins, (std::vector<TaskId>{5}));
  EXPECT_EQ(f.edges, (Edges{{1, 2}, {1, 3}, {2, 5}, {3, 5}, {5, 4}, {5, 6}}));
}

TEST(Flow, AGroupOfOneNeedsNoJoin) {
  Fixture f;
  Handle& x = f.data();
  f.enter(x, AccessMode::write);    // 1
  f.enter(x, AccessMode::commute);  // 2
  f.enter(x, AccessMode::read);     // 3
  EXPECT_TRUE(f.joins.empty());
  EXPECT_EQ(f.edges, (Edges{{1, 2}, {2, 3}}));
}

TEST(Flow, ReductionsAreCombinedBeforeTheNextOtherAccess) {
  Fixture f;
  Handle& x = f.data();
  f.enter(x, AccessMode::write);   // 1
  f.enter(x, AccessMode::reduce);  // 2
  f.enter(x, AccessMode::reduce);  // 3
  f.enter(x, AccessMode::write);   // 4, and the combining task 5
  EXPECT_EQ(f.combines, (std::vector<TaskId>{5}));
  EXPECT_EQ(f.edges, (Edges{{1, 2}, {1, 3}, {2, 5}, {3, 5}, {5, 4}}));
}

TEST(Flow, AReductionOfOneIsCombinedToo) {
  Fixture f;
  Handle& x = f.data();
  Task& only = f.enter(x, AccessMode::reduce);  // 1
  f.end(only);
  f.flow.close_reduction(x);
  EXPECT_EQ(f.combines, (std::vector<TaskId>{2}));
  EXPECT_EQ(f.ready_inside, (std::vector<TaskId>{2})) << "it waits for nobody, and the flow hands it over";
  f.flow.close_reduction(x);
  EXPECT_EQ(f.combines.size(), 1U) << "closed once";
}

TEST(Flow, NobodyWaitsForWhatHasEnded) {
  Fixture f;
  Handle& x = f.data();
  Task& writer = f.enter(x, AccessMode::write);
  Task& reader = f.enter(x, AccessMode::read);
  f.end(writer);
  EXPECT_EQ(reader.waits.load(), 0);
  f.end(reader);
  EXPECT_TRUE(f.enter({{&x, AccessMode::read_write}}).second);
}

TEST(Flow, AReferenceToARecycledTaskCountsAsEnded) {
  Fixture f;
  Handle& x = f.data();
  Task& writer = f.enter(x, AccessMode::write);
  const TaskRef old{&writer, writer.id};
  f.end(writer);
  f.pool.recycle(&writer);
  Task& other = f.enter(f.data(), AccessMode::write);
  ASSERT_EQ(&other, &writer) << "the memory is used again";
  EXPECT_TRUE(has_ended(old));
  EXPECT_FALSE(has_ended({&other, other.id}));
  EXPECT_TRUE(f.enter({{&x, AccessMode::read}}).second);
}

TEST(Flow, ReadersThatHaveEndedAreForgotten) {
  Fixture f;
  Handle& x = f.data();
  f.end(f.enter(x, AccessMode::write));
  for (int i = 0; i < 10'000; ++i) f.end(f.enter(x, AccessMode::read));
  EXPECT_LE(x.flow.members.capacity(), 16U);
}

TEST(Flow, ATaskIsReadyOnlyWhenAllItWaitsForHasEnded) {
  Fixture f;
  Handle& x = f.data();
  Handle& y = f.data();
  Task& a = f.enter(x, AccessMode::write);
  Task& b = f.enter(y, AccessMode::write);
  auto [both, ready] = f.enter({{&x, AccessMode::read}, {&y, AccessMode::read}});
  EXPECT_FALSE(ready);
  f.end(a);
  EXPECT_EQ(both->waits.load(), 1);
  f.end(b);
  EXPECT_EQ(both->waits.load(), 0);
}

TEST(Flow, AnAliasAddsNoEdge) {
  Fixture f;
  Handle& x = f.data();
  f.enter(x, AccessMode::write);  // 1
  Task& task = f.take(2);         // 2
  task.accesses()[0].set(&x, AccessMode::read_write);
  task.accesses()[1].set(&x, AccessMode::read);
  task.accesses()[1].mark_alias();
  f.flow.begin_entering(task);
  f.flow.enter_accesses(task);
  f.flow.finish_entering(task);
  EXPECT_EQ(task.waits.load(), 1);
  EXPECT_EQ(f.edges, (Edges{{1, 2}}));
}

}  // namespace
}  // namespace tandem::runtime::flow_test
