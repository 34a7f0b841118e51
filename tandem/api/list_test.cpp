// tandem/api/list_test.cpp: tasks that name lists of data, whose length the program knows at run time.
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"
#include "tandem/runtime/memory/out_of_memory.hpp"
#include "tandem/trace/read/reader.hpp"
#include "tandem/trace/read/test_support.hpp"

namespace tandem::list_test {
namespace {

using test::loop_runtime;
using test::thread_runtime;
using test::thrown_by;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const Codelet set_to("set to", [](int value, int& to) { to = value; });
const Codelet sum("sum", [](Each<const int&> list, int& to) {
  to = 0;
  for (const int& value : list) to = to * 3 + value;
});

/// The result of `sum` for `values`.
int sum_of(const std::vector<int>& values) {
  unsigned result = 0;
  for (const int value : values) result = result * 3 + static_cast<unsigned>(value);
  return static_cast<int>(result);
}

/// Numbers that Tandem allocates.
std::vector<Data<int>> numbers(Runtime& rt, std::size_t count) {
  std::vector<Data<int>> data;
  for (std::size_t i = 0; i < count; ++i) data.push_back(rt.scalar<int>("n" + std::to_string(i)));
  return data;
}

TEST(List, ATaskFollowsAllThatWroteItsListAndIsFollowedByAllThatChangeIt) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto rt = loop_runtime({.seed = seed, .workers = 3});
    for (const std::size_t count : {0U, 1U, 2U, 40U}) {
      const auto list = numbers(*rt, count);
      const auto total = rt->scalar<int>("total");
      std::vector<int> values;
      for (std::size_t i = 0; i < count; ++i) {
        values.push_back(static_cast<int>(i % 3 + seed % 2));
        rt->submit(set_to, values.back(), write(list[i]));
      }
      rt->submit("sum", [](Each<const int&> each, std::size_t expected, int& to) {
        if (each.size() != expected || each.empty() != (expected == 0)) throw std::logic_error("another length");
        unsigned result = 0;
        for (const int& value : each) result = result * 3 + static_cast<unsigned>(value);
        to = static_cast<int>(result);
      }, read(list), count, write(total));
      for (const Data<int>& one : list) rt->submit(set_to, 77, write(one));
      EXPECT_EQ(*rt->acquire(read(total)), sum_of(values)) << "seed " << seed << ", " << count << " data";
      for (const Data<int>& one : list) EXPECT_EQ(*rt->acquire(read(one)), 77);
    }
    rt->wait();
  }
}

TEST(List, HundredsOfDataInOneTask) {
  const auto rt = thread_runtime();
  for (const std::size_t count : {165U, 170U, 255U, 256U, 257U, 1'000U, 4'095U}) {
    const auto list = numbers(*rt, count);
    const auto total = rt->scalar<int>("total");
    for (int round = 0; round < 3; ++round) {
      rt->submit("fill", [round](Each<int&> each) {
        for (std::size_t i = 0; i < each.size(); ++i) each[i] = static_cast<int>(i) * round;
      }, write(list));
      rt->submit("add", [](Each<const int&> each, int& to) {
        to = 0;
        for (const int& value : each) to += value;
      }, read(list), write(total));
      const int last = static_cast<int>(count) - 1;
      EXPECT_EQ(*rt->acquire(read(total)), round * (last * (last + 1) / 2)) << count;
    }
  }
}

TEST(List, ListsStandBetweenOtherArgumentsAndKeepTheirPlaces) {
  const auto rt = loop_runtime();
  std::vector<double> x{1, 2}, y{3, 4, 5}, z{6};
  std::vector<Data<Vector<double>>> two{rt->data("x", x), rt->data("y", y)};
  const std::array<Data<Vector<double>>, 1> one{rt->data("z", z)};
  const auto out = rt->vector<double>("out", 6);
  rt->submit(
      "gather",
      [](const Context& context, int factor, Each<std::span<const double>> first, std::string text,
         Each<std::span<double>> second, Each<std::span<const double>> none, std::span<double> to, double last) {
        EXPECT_EQ(context.memory_node, 0U);
        EXPECT_EQ(text, "text");
        EXPECT_EQ(last, 0.5);
        EXPECT_TRUE(none.empty());
        std::size_t at = 0;
        for (const std::span<const double> part : first)
          for (const double value : part) to[at++] = factor * value;
        EXPECT_EQ(second.size(), 1U);
        to[at++] = second[0][0];
        second[0][0] = 100;
        EXPECT_EQ(at, to.size());
      },
      10, read(two), std::string("text"), read_write(one), read(std::vector<Data<Vector<double>>>()), write(out), 0.5);
  EXPECT_THAT(*rt->acquire(read(out)), ElementsAre(10, 20, 30, 40, 50, 6));
  rt->wait();
  EXPECT_EQ(z[0], 100);
}

TEST(List, MatricesAndConstantMemoryAndSpans) {
  const auto rt = loop_runtime();
  std::vector<MatrixData<float>> tiles{rt->matrix<float>("a", 2, 3), rt->matrix<float>("b", 1, 1)};
  const std::vector<int> fixed{7, 8};
  const std::vector<Data<Vector<const int>>> constants{rt->data("fixed", fixed)};
  rt->submit("shape", [](Each<MatrixView<float>> each, Each<std::span<const int>> numbers) {
    for (MatrixView<float> tile : each)
      for (std::size_t j = 0; j < tile.cols; ++j)
        for (std::size_t i = 0; i < tile.rows; ++i)
          tile(i, j) = static_cast<float>(numbers[0][0]) * 10 + static_cast<float>(tile.rows);
  }, write(std::span<const MatrixData<float>>(tiles)), read(constants));
  EXPECT_EQ((*rt->acquire(read(tiles[0])))(1, 2), 72);
  EXPECT_EQ((*rt->acquire(read(tiles[1])))(0, 0), 71);
}

TEST(List, CommutingTasksOnCommonDataTakeTurns) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const auto rt = loop_runtime({.seed = seed, .workers = 4});
    auto list = numbers(*rt, 60);
    for (const Data<int>& one : list) rt->submit(set_to, 0, write(one));
    for (int task = 0; task < 20; ++task) {
      std::vector<Data<int>> some;  // overlapping, in different orders
      for (std::size_t i = 0; i < list.size(); ++i)
        if ((i * 7 + static_cast<std::size_t>(task)) % 3 != 0)
          some.push_back(list[task % 2 == 0 ? i : list.size() - 1 - i]);
      rt->submit("count", [](Each<int&> each) {
        for (int& value : each) ++value;
      }, commute(some));
    }
    int total = 0;
    for (const Data<int>& one : list) total += *rt->acquire(read(one));
    EXPECT_EQ(total, 20 * 40) << "seed " << seed;
  }
}

TEST(List, ReductionsAndScratch) {
  const auto rt = thread_runtime({.workers = 3});
  auto list = numbers(*rt, 50);
  for (Data<int>& one : list) {
    one.reduction([](int& value) { value = 0; }, [](int& into, const int& from) { into += from; });
    rt->submit(set_to, 1, write(one));
  }
  const auto room = rt->vector<int>("room", 10);
  const std::vector<Data<Vector<int>>> rooms{room, rt->vector<int>("more room", 5)};
  for (int task = 0; task < 20; ++task)
    rt->submit("add", [](Each<int&> each, Each<std::span<int>> scratch_memory) {
      if (scratch_memory[0].size() != 10 || scratch_memory[1].size() != 5) throw std::logic_error("another size");
      scratch_memory[0][9] = scratch_memory[1][4] = 2;
      for (int& value : each) value += scratch_memory[0][9];
    }, reduce(list), scratch(rooms));
  for (const Data<int>& one : list) EXPECT_EQ(*rt->acquire(read(one)), 41);
}

TEST(List, ADatumTwiceCountsAsElsewhereInATask) {
  const auto rt = loop_runtime();
  for (const std::size_t count : {2U, 100U}) {  // below and above the number that is compared in pairs
    auto list = numbers(*rt, count);
    for (const Data<int>& one : list) rt->submit(set_to, 2, write(one));
    list.push_back(list.front());
    const auto to = rt->scalar<int>("to");
    rt->submit("length", [](Each<const int&> each, int& sum_of_ends) {
      sum_of_ends = each[0] + each[each.size() - 1];
    }, read(list), write(to));
    EXPECT_EQ(*rt->acquire(read(to)), 4);
    // A datum is read in the list and changed beside it: one task changes it, and the next one sees that.
    rt->submit("change", [](Each<const int&> each, int& value) { value = each[1] + 5; }, read(list),
               read_write(list.front()));
    rt->submit("length", [](Each<const int&> each, int& first) { first = each[0]; }, read(list), write(to));
    EXPECT_EQ(*rt->acquire(read(to)), 7);
    EXPECT_THAT(thrown_by<UsageError>([&] {
                  rt->submit(
                      "add", [](Each<int&>) {}, commute(list));
                }),
                AllOf(HasSubstr("'add'"), HasSubstr("names data 'n0'"), HasSubstr("twice"),
                      HasSubstr("other than read, write")));
  }
  rt->wait();
}

TEST(List, MistakesAreToldAndLeaveTheFlowAsItWas) {
  const auto rt = loop_runtime();
  auto list = numbers(*rt, 4);
  for (std::size_t i = 0; i < 3; ++i) rt->submit(set_to, 1, write(list[i]));
  const auto to = rt->scalar<int>("to");
  EXPECT_THAT(
      thrown_by<UsageError>([&] { rt->submit(sum, read(list), write(to)); }),
      AllOf(HasSubstr("'sum'"), HasSubstr("'n3'"), HasSubstr("nobody has written it"), HasSubstr("list_test.cpp")));
  list[3] = {};
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->submit(sum, read(list), write(to)); }),
              HasSubstr("empty Data object as its access 4 (read)"));
  list.pop_back();
  const std::vector<Data<int>> many(runtime::kMaxAccesses, list[0]);
  EXPECT_THAT(thrown_by<UsageError>([&] { rt->submit(sum, read(many), write(to)); }),
              AllOf(HasSubstr("'sum'"), HasSubstr("names 4097 data"), HasSubstr("4096 at most")));
  rt->submit(sum, read(list), write(to));
  EXPECT_EQ(*rt->acquire(read(to)), 13);
}

TEST(List, AFailureCancelsTheTaskThatHasTheValueInItsList) {
  const auto rt = loop_runtime();
  const auto list = numbers(*rt, 50);
  for (std::size_t i = 0; i < list.size(); ++i)
    rt->submit("fill", [](std::size_t place, int& value) {
      if (place == 40) throw std::runtime_error("no value at 40");
      value = 1;
    }, i, write(list[i]));
  const auto to = rt->scalar<int>("to");
  bool ran = false;
  const TaskRef task = rt->submit("sum", [&ran](Each<const int&>, int&) { ran = true; }, read(list), write(to));
  EXPECT_THAT(thrown_by<std::runtime_error>([&] { rt->wait(task); }), HasSubstr("no value at 40"));
  EXPECT_FALSE(ran);
  rt->wait();
}

TEST(List, ObjectsThatAreReplacedAreEmpty) {
  const auto rt = loop_runtime();
  std::string a = "a", b = "b";
  const std::vector<ObjectData<std::string>> list{rt->object("a", a), rt->object("b", b)};
  rt->submit("append", [](Each<std::string&> each) {
    for (std::string& text : each) text += "+";
  }, read_write(list));
  rt->submit("replace", [](Each<std::string&> each) {
    for (std::string& text : each) text += "new";
  }, write(std::span(list).first(1)));
  rt->wait();
  EXPECT_EQ(a, "new");
  EXPECT_EQ(b, "b+");
}

TEST(List, PartsOfDataAreSplitForAList) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const auto rt = loop_runtime({.seed = seed});
    std::vector<int> x(10, 1);
    const auto whole = rt->data("x", x);
    {
      const auto parts = rt->parts(whole, {.rows = 3});
      std::vector<Data<Vector<int>>> list;
      for (std::size_t i = 0; i < parts.rows(); ++i) list.push_back(parts(i));
      rt->submit("number", [](Each<std::span<int>> each) {
        for (std::size_t i = 0; i < each.size(); ++i)
          for (int& value : each[i]) value += static_cast<int>(i) * 10;
      }, read_write(list));
      rt->submit("double", [](std::span<int> all) {
        for (int& value : all) value *= 2;
      }, read_write(whole));
    }
    rt->wait();
    EXPECT_THAT(x, ElementsAre(2, 2, 2, 22, 22, 22, 42, 42, 42, 62)) << seed;
  }
}

TEST(List, RecordedTasksKeepTheirLists) {
  const auto rt = loop_runtime({.workers = 3});
  for (const std::size_t count : {3U, 300U}) {
    auto list = numbers(*rt, count);
    const auto other = rt->scalar<int>("other");
    const auto to = rt->scalar<int>("to");
    for (const Data<int>& one : list) rt->submit(set_to, 1, write(one));
    rt->submit(set_to, 1'000, write(other));
    TaskRef add_task;
    Graph graph = rt->record([&] {
      add_task = rt->submit("add", [](Each<const int&> each, int by, int& sum_of_all) {
        sum_of_all = 0;
        for (const int& value : each) sum_of_all += value + by;
      }, read(list), 0, write(to));
      rt->submit("increment", [](Each<int&> each) {
        for (int& value : each) ++value;
      }, read_write(list));
    });
    const int n = static_cast<int>(count);
    for (int round = 1; round <= 3; ++round) {
      rt->replay(graph);
      EXPECT_EQ(*rt->acquire(read(to)), round * n);
    }
    graph.set_values(add_task, 10);
    graph.rebind(list.back(), other);
    rt->replay(graph);
    EXPECT_EQ(*rt->acquire(read(to)), 4 * (n - 1) + 1'000 + 10 * n);
    EXPECT_EQ(*rt->acquire(read(other)), 1'001);
    EXPECT_EQ(*rt->acquire(read(list.back())), 4);
  }
}

TEST(List, OnDevicesWithSmallMemories) {
  const auto on_device = [](const WorkerDescription& worker) { return worker.device == DeviceKind::user; };
  const auto kernel = [](Each<std::span<const int>> each, std::span<int> to) {
    for (const std::span<const int> one : each)
      for (std::size_t i = 0; i < to.size(); ++i) to[i] += one[i];
  };
  const auto add = Codelet("add", kernel).also(DeviceKind::user, kernel);
  const auto add_there = add.can_run(on_device);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto rt = loop_runtime({.seed = seed, .workers = 2, .devices = 2, .device_bytes = 1'024});
    std::vector<Data<Vector<int>>> all;
    for (int i = 0; i < 12; ++i) {
      all.push_back(rt->vector<int>("v" + std::to_string(i), 32));
      rt->submit("fill", [i](std::span<int> v) {
        for (int& value : v) value = i;
      }, write(all.back()));
    }
    std::vector<int> expected(12);
    for (int i = 0; i < 12; ++i) expected[static_cast<std::size_t>(i)] = i;
    for (std::size_t round = 0; round < 30; ++round) {
      std::vector<Data<Vector<int>>> list;
      int more = 0;
      for (std::size_t i = 0; i < round % 7; ++i) {
        list.push_back(all[(round + i * 5 + 1) % 12]);
        if ((round + i * 5 + 1) % 12 == round % 12) list.pop_back();  // it is the target
        else more += expected[(round + i * 5 + 1) % 12];
      }
      rt->submit(round % 2 == 0 ? add_there : add, read(list), read_write(all[round % 12]));
      expected[round % 12] += more;
    }
    for (std::size_t i = 0; i < 12; ++i)
      EXPECT_EQ((*rt->acquire(read(all[i])))[31], expected[i]) << "seed " << seed << ", " << i;
    EXPECT_THAT(
        thrown_by<OutOfMemory>([&] { rt->submit(add_there, read(std::span(all).first(9)), read_write(all[9])); }),
        AllOf(HasSubstr("takes 1280 bytes"), HasSubstr("budget is 1024 bytes")));
  }
}

TEST(List, ATraceHasAllAccesses) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "trace_of_lists";
  std::filesystem::remove_all(folder);
  {
    const auto rt = std::make_unique<Runtime>(
        Options{.workers = 1, .more = {{"trace.folder", folder.string()}, {"trace", "all"}, {"ranks", "alone"}}});
    const auto list = numbers(*rt, 600);
    rt->submit("fill", [](Each<int&> each) {
      for (int& value : each) value = 1;
    }, write(list));
    rt->wait();
  }
  const auto run = trace::TraceReader::open(folder);
  ASSERT_TRUE(run.ok());
  std::set<std::uint32_t> data;
  std::size_t beside = 0;
  using trace::Type;
  for (const auto& rank : run.value()->ranks)
    for (const auto& stream : rank->streams)
      for (auto event = stream->next(); event.value(); event = stream->next()) {
        const trace::Event& seen = *event.value();
        const auto add = [&](std::uint64_t word) {
          data.insert(trace::data_of_access(static_cast<std::uint32_t>(word)));
        };
        if (seen.type == Type::task_accesses) add(seen.number(1)), ++beside;
        if (seen.type == Type::task_submitted || seen.type == Type::task_submitted_wide)
          for (std::size_t i = 0; i < seen.list_size(5); ++i) add(seen.list_entry(5, i));
      }
  EXPECT_EQ(beside, 600U - 255U);
  EXPECT_EQ(data.size(), 600U);
}

}  // namespace
}  // namespace tandem::list_test
