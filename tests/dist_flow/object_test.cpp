// tests/dist_flow/object_test.cpp: objects whose size changes, on several ranks: on threads, and on the event loop with
// seeds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <stdexcept>

#include "deterministic_job.hpp"
#include "ranks.hpp"
#include "tandem/api/test_support.hpp"

namespace tandem::dist_test {

/// Says how often it was written and read, and refuses some values.
struct Fragile {
  static constexpr int kNotWritable = -1, kNotReadable = -2, kShorter = -3, kLonger = -4;
  static inline std::atomic<int> written{0}, read{0};
  int value = 0;
  std::vector<int> more;
};
/// Its value takes no bytes: it is always the same.
struct Nothing {
  static inline std::atomic<int> read{0};
};

}  // namespace tandem::dist_test

namespace tandem {

using dist_test::Fragile;
using dist_test::Nothing;

template <>
struct Serialize<Fragile> {
  static void write(const Fragile& from, ByteWriter& out) {
    ++Fragile::written;
    if (from.value == Fragile::kNotWritable) throw std::runtime_error("too delicate to leave");
    out.write(from.value);
    out.write(from.more);
    if (from.value == Fragile::kLonger) out.write(7);
  }
  static Fragile read(ByteReader& in) {
    ++Fragile::read;
    Fragile into{.value = in.read<int>(), .more = {}};
    if (into.value == Fragile::kNotReadable) throw std::runtime_error("broken on arrival");
    into.more = in.read<std::vector<int>>();
    if (into.value == Fragile::kShorter) static_cast<void>(in.read<double>());
    return into;
  }
};

template <>
struct Serialize<Nothing> {
  static void write(const Nothing&, ByteWriter&) {}
  static Nothing read(ByteReader&) {
    ++Nothing::read;
    return {};
  }
};

namespace dist_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Numbers = std::vector<std::uint64_t>;

void expect_well(const std::vector<Ending>& endings, const std::string& when = {}) {
  for (std::size_t rank = 0; rank < endings.size(); ++rank)
    EXPECT_EQ(endings[rank].error, "") << "rank " << rank << when;
}

/// On threads, and on the event loop with some seeds.
void run_everywhere(JobSetup setup, const std::function<void(Runtime&)>& program, unsigned seeds = 20) {
  for (const unsigned workers : {1U, 2U}) {
    setup.workers = workers;
    expect_well(run_job(setup, program), " on threads");
  }
  setup.core.watchdog_ns = 0;
  for (unsigned seed = 1; seed <= seeds && !testing::Test::HasFailure(); ++seed) {
    DeterministicJob the_job(seed);
    setup.workers = 1 + seed % 2;
    setup.network.latency_max_ns = 1 + 5'000 * (seed % 4);
    setup.network.copies = seed % 2 == 0;
    setup.network.remote_copy = seed % 3 == 0;
    setup.network.ranks_per_host = 1 + seed % 3;
    setup.network.eager_bytes = 64;
    setup.network.segment_bytes = 1024;
    const DeterministicJob::Outcome outcome = the_job.run(setup, [&](Runtime& rt, DeterministicJob&) { program(rt); });
    ASSERT_FALSE(outcome.stuck) << "seed " << seed << ": " << outcome.why;
    expect_well(outcome.endings, ", seed " + std::to_string(seed));
  }
}

const Codelet push("push", [](std::uint64_t value, Numbers& to) { to.push_back(value); });
const Codelet join_to("join", [](const Numbers& from, Numbers& to) { to.insert(to.end(), from.begin(), from.end()); });
const Codelet grow("grow", [](std::size_t size, std::string& to) {
  for (std::size_t i = to.size(); i < size; ++i) to += static_cast<char>('a' + i % 26);
});

TEST(DistObject, VectorsGrowAsTheyTravel) {
  run_everywhere({.ranks = 3}, [](Runtime& rt) {
    Numbers numbers, log{100 + rt.rank()};
    auto hnumbers = rt.object("numbers", numbers, {.owner = 0});
    std::vector<Data<Object<Numbers>>> hlog;
    for (std::uint32_t rank = 0; rank < rt.size(); ++rank) hlog.push_back(rt.object("log", log, {.owner = rank}));
    Numbers expected, expected_log{100 + rt.rank()};
    for (std::uint64_t i = 0; i < 30; ++i) {
      rt.submit({.on = static_cast<std::uint32_t>(i % 3)}, push, i, read_write(hnumbers));  // it moves each time
      expected.push_back(i);
      const auto reader = static_cast<std::uint32_t>(i / 2 % 3);
      rt.submit(join_to, read(hnumbers), read_write(hlog[reader]));
      if (reader == rt.rank()) expected_log.insert(expected_log.end(), expected.begin(), expected.end());
    }
    rt.wait();
    if (rt.rank() == 0) {
      EXPECT_EQ(numbers, expected);
    }
    EXPECT_EQ(log, expected_log);
    // Shorter again, and nothing at all.
    rt.submit(Codelet("clear", [](Numbers& what) { what.clear(); }), read_write(hnumbers));
    rt.submit(join_to, read(hnumbers), write(hlog[1]));
    rt.wait();
    if (rt.rank() == 1) {
      EXPECT_TRUE(log.empty());
    }
  });
}

TEST(DistObject, LongStringsAndEmptyOnes) {
  run_everywhere({.ranks = 2}, [](Runtime& rt) {
    std::string text, seen = "something";
    auto htext = rt.object("text", text, {.owner = 0}), hseen = rt.object("seen", seen, {.owner = 1});
    const Codelet copy("copy", [](const std::string& from, std::string& to) { to = from; });
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{1} << 20}) {
      rt.submit(grow, size, read_write(htext));
      rt.submit(copy, read(htext), write(hseen));
      rt.wait();
      if (rt.rank() != 1) continue;
      ASSERT_EQ(seen.size(), size);
      for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(seen[i], static_cast<char>('a' + i % 26));
    }
    if (rt.rank() == 1) {
      EXPECT_EQ(rt.flow_statistics().received, 3U);
      EXPECT_EQ(rt.flow_statistics().received_bytes, (1U << 20) + 1 + 3 * sizeof(std::uint64_t));
    }
  }, 4);
}

TEST(DistObject, ContainersOfContainersAndOwnData) {
  using Table = std::map<std::string, std::vector<std::pair<int, std::optional<std::string>>>>;
  run_everywhere({.ranks = 4}, [](Runtime& rt) {
    Table table;
    std::size_t entries = 0;
    auto htable = rt.object("table", table, {.owner = 2});
    auto hentries = rt.data("entries", entries);
    const Codelet enter("enter", [](int round, Table& into) {
      auto& row = into["row " + std::to_string(round % 3)];
      row.emplace_back(round, round % 2 == 0 ? std::optional<std::string>("even") : std::nullopt);
    });
    const Codelet count("count", [](const Table& in, std::size_t& sum) {
      for (const auto& [name, row] : in) sum += row.size();
    });
    std::size_t expected = 0;
    for (int round = 0; round < 10; ++round) {
      rt.submit(enter, round, read_write(htable));
      rt.submit(count, read(htable), read_write(hentries));  // on every rank
      expected += static_cast<std::size_t>(round) + 1;
    }
    EXPECT_EQ((*rt.acquire(read(htable))).size(), 3U);
    rt.wait();
    EXPECT_EQ(entries, expected);
  });
}

TEST(DistObject, AVersionIsWrittenOnceForABroadcastAndReadOncePerRank) {
  static constexpr unsigned ranks = 7, rounds = 3;
  using comm::TreeKind;
  for (const TreeKind tree : {TreeKind::automatic, TreeKind::ordered, TreeKind::flat, TreeKind::chain, TreeKind::binary,
                              TreeKind::binomial, TreeKind::two_tree}) {
    for (const bool early_read : {true, false}) {
      Fragile::written = Fragile::read = 0;
      JobSetup setup{.ranks = ranks};
      setup.flow.transfers.tree = tree;
      setup.flow.transfers.early_read = early_read;
      expect_well(run_job(setup, [](Runtime& rt) {
        Fragile fragile;
        int sum = 0;
        std::atomic<bool> all_submitted{false};
        auto data = rt.object("fragile", fragile, {.owner = 3});
        auto hsum = rt.data("sum", sum);
        const Codelet late("late", [&](int round, Fragile& to) {
          all_submitted.wait(false);
          to.value = round;
          to.more.assign(static_cast<std::size_t>(5'000 * round), round);
        });
        const Codelet look("look", [](const Fragile& from, int& total) {
          for (const int number : from.more) total += number;
        });
        for (unsigned round = 1; round <= rounds; ++round) {
          rt.submit(late, static_cast<int>(round), read_write(data));
          for (int again = 0; again < 3; ++again) rt.submit(look, read(data), read_write(hsum));
        }
        all_submitted.store(true);
        all_submitted.notify_all();
        rt.wait();
        EXPECT_EQ(sum, 3 * 5'000 * (1 + 4 + 9));
        if (rt.rank() != 3) return;
        EXPECT_EQ(rt.flow_statistics().broadcasts, rounds);
        EXPECT_EQ(rt.flow_statistics().recipients, rounds * (ranks - 1));
      }));
      EXPECT_EQ(Fragile::written.load(), static_cast<int>(rounds));
      EXPECT_EQ(Fragile::read.load(), static_cast<int>(rounds * (ranks - 1)));
    }
  }
}

TEST(DistObject, AValueWithoutBytesIsNoFailure) {
  Nothing::read = 0;
  run_everywhere({.ranks = 3}, [](Runtime& rt) {
    Nothing nothing;
    int seen = 0;
    auto data = rt.object("nothing", nothing, {.owner = 1});
    auto hseen = rt.data("seen", seen);
    rt.submit(Codelet("look", [](const Nothing&, int& count) { ++count; }), read(data), read_write(hseen));
    rt.wait();
    EXPECT_EQ(seen, 1);
  }, 6);
  EXPECT_EQ(Nothing::read.load(), 2 * 8);
}

TEST(DistObject, AFailedWriterIsReportedAndNewValuesTravel) {
  run_everywhere({.ranks = 3}, [](Runtime& rt) {
    std::string text = "old", seen;
    auto htext = rt.object("text", text, {.owner = 1}), hseen = rt.object("seen", seen, {.owner = 2});
    const Codelet bad("bad", [](std::string&) { throw std::runtime_error("no luck"); });
    const Codelet copy("copy", [](const std::string& from, std::string& to) { to = from; });
    rt.submit(bad, read_write(htext));
    rt.submit(copy, read(htext), write(hseen));
    EXPECT_THAT(test::thrown_by<std::runtime_error>([&] { rt.wait(); }), HasSubstr("no luck"));
    rt.wait();
    rt.submit(grow, 3, write(htext));
    rt.submit(copy, read(htext), write(hseen));
    rt.wait();
    EXPECT_EQ(seen, rt.rank() == 2 ? "abc" : "");
  });
}

/// A value that cannot travel: its readers elsewhere are cancelled, every rank learns why, and the flow goes on.
void expect_told(int value, bool reader_fails, const std::string& why) {
  run_everywhere({.ranks = 3}, [&](Runtime& rt) {
    Fragile fragile;
    int here = 0, there = 0;
    auto data = rt.object("porcelain", fragile, {.owner = 0});
    auto hhere = rt.data("here", here, {.owner = 0}), hthere = rt.data("there", there, {.owner = 1});
    const Codelet set("set", [](int what, Fragile& to) { to.value = what; });
    const Codelet look("look", [](const Fragile& from, int& to) { to = from.value; });
    rt.submit(set, value, write(data));
    rt.submit(look, read(data), write(hhere));
    rt.submit(look, read(data), write(hthere));
    try {
      rt.wait();
      FAIL() << "nothing was thrown";
    } catch (const std::exception& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("data 'porcelain'"), HasSubstr(why)));
      const bool mine = rt.rank() == (reader_fails ? 1U : 0U);
      EXPECT_EQ(dynamic_cast<const SerializationError*>(&error) != nullptr, mine);
      EXPECT_EQ(dynamic_cast<const RemoteFailure*>(&error) != nullptr, !mine);
    }
    EXPECT_EQ(here, rt.rank() == 0 ? value : 0) << "its owner has the value";
    rt.submit(set, 5, write(data));
    rt.submit(look, read(data), write(hhere));
    rt.submit(look, read(data), write(hthere));
    rt.wait();
    EXPECT_EQ(here, rt.rank() == 0 ? 5 : 0);
    EXPECT_EQ(there, rt.rank() == 1 ? 5 : 0);
  }, 8);
}

TEST(DistObject, AReadThatThrowsFailsItsReaders) { expect_told(Fragile::kNotReadable, true, "broken on arrival"); }
TEST(DistObject, AMessageThatIsTooShortFailsItsReaders) {
  expect_told(Fragile::kShorter, true, "ends 8 bytes too early");
}
TEST(DistObject, AMessageThatIsTooLongFailsItsReaders) {
  expect_told(Fragile::kLonger, true, "4 bytes of the message are left");
}
TEST(DistObject, AWriteThatThrowsFailsTheReaders) {
  expect_told(Fragile::kNotWritable, false, "too delicate to leave");
}

TEST(DistObject, TheFailureOfAReadTravelsOn) {
  run_everywhere({.ranks = 3}, [](Runtime& rt) {
    Fragile fragile;
    int last = 0;
    auto data = rt.object("porcelain", fragile, {.owner = 0});
    auto hlast = rt.data("last", last, {.owner = 2});
    rt.submit(Codelet("set", [](Fragile& to) { to.value = Fragile::kNotReadable; }), write(data));
    // cancelled: its value does not exist
    rt.submit({.on = 1}, Codelet("add", [](Fragile& to) { ++to.value; }), read_write(data));
    rt.submit(Codelet("look", [](const Fragile& from, int& to) { to = from.value; }), read(data), write(hlast));
    EXPECT_THAT(test::thrown_by<std::exception>([&] { rt.wait(); }), HasSubstr("broken on arrival"));
    rt.wait();
    EXPECT_EQ(last, 0);
  }, 8);
}

TEST(DistObject, FetchMigrateAndFlush) {
  run_everywhere({.ranks = 5}, [](Runtime& rt) {
    Numbers numbers{7};
    auto data = rt.object("numbers", numbers, {.owner = 0});
    auto made = rt.object<Numbers>("made", {.owner = 3});
    rt.migrate(made, 1);  // without a value yet
    Numbers expected{7};
    for (std::uint32_t round = 0; round < 12; ++round) {
      rt.submit(push, round, read_write(data));
      expected.push_back(round);
      if (round % 4 == 1) rt.fetch(data, (round + 2) % 5);
      if (round % 4 == 2) rt.fetch_everywhere(data);
      if (round % 4 == 3) rt.flush(data);
      rt.migrate(data, (round + 1) % 5);
      if (round == 6) rt.submit(join_to, read(data), write(made));
    }
    EXPECT_EQ(*rt.acquire(read(data)), expected);
    EXPECT_EQ((*rt.acquire(read(made))).size(), 8U);
    if (auto mine = rt.acquire_at_owner(write(data))) (*mine)->push_back(99);
    EXPECT_THAT(*rt.acquire(read(data)), ElementsAre(99));
  });
}

TEST(DistObject, ReplaysBroadcastAndRebind) {
  constexpr unsigned replays = 4;
  run_everywhere({.ranks = 4}, [](Runtime& rt) {
    Numbers a{1}, b{2}, sum;
    std::uint64_t own = 0;
    auto ha = rt.object("a", a, {.owner = 1}), hb = rt.object("b", b, {.owner = 1});
    auto hown = rt.data("own", own);
    auto hsum = rt.object("sum", sum, {.owner = 2});
    const Codelet count("count", [](const Numbers& from, std::uint64_t& to) { to += from.size(); });
    Graph graph = rt.record([&] {
      rt.submit(count, read(ha), read_write(hown));
      rt.submit(join_to, read(ha), read_write(hsum));
      rt.submit({.on = 3}, push, 8, read_write(ha));
    });
    for (unsigned replay = 0; replay < replays; ++replay) rt.replay(graph);
    rt.wait();
    EXPECT_EQ(own, 1U + 2 + 3 + 4);
    graph.rebind(ha, hb);
    rt.replay(graph);
    rt.wait();
    EXPECT_EQ(own, 1U + 2 + 3 + 4 + 1);
    if (rt.rank() == 1) {
      EXPECT_THAT(a, ElementsAre(1, 8, 8, 8, 8));
      EXPECT_THAT(b, ElementsAre(2, 8));
    }
    if (rt.rank() == 2) {
      EXPECT_THAT(sum, ElementsAre(1, 1, 8, 1, 8, 8, 1, 8, 8, 8, 2));
    }
  });
}

TEST(DistObject, ExplicitMessages) {
  run_everywhere({.ranks = 3}, [](Runtime& rt) {
    Numbers numbers{rt.rank()};
    auto data = rt.object("numbers", numbers);
    for (std::uint64_t round = 0; round < 5; ++round) {
      if (rt.rank() == 0) {
        rt.submit(push, round, read_write(data));
        rt.send(data, 1, 4), rt.send(data, 2, 4), rt.send(data, 1, 5);
      } else {
        rt.receive(data, 0, 4);
        if (rt.rank() == 1) rt.receive(data, 0, 5);
        rt.submit(push, 100 + round, read_write(data));
      }
    }
    rt.wait();
    if (rt.rank() == 0) EXPECT_THAT(numbers, ElementsAre(0, 0, 1, 2, 3, 4));
    else EXPECT_THAT(numbers, ElementsAre(0, 0, 1, 2, 3, 4, 104));
  });
}

TEST(DistObject, SharesOfReductionsAreObjects) {
  run_everywhere({.ranks = 4}, [](Runtime& rt) {
    std::map<int, int> counts{{-1, 1}};
    auto data = rt.object("counts", counts, {.owner = 1});
    data.reduction([](std::map<int, int>& share) { share.clear(); },
                   [](std::map<int, int>& into, const std::map<int, int>& more) {
                     for (const auto& [key, count] : more) into[key] += count;
                   });
    const Codelet note("note", [](int key, std::map<int, int>& to) { ++to[key]; });
    for (std::uint32_t rank = 0; rank < 4; ++rank)
      for (int key = 0; key < 5; ++key) rt.submit({.on = rank}, note, key * static_cast<int>(rank), reduce(data));
    rt.wait();
    if (rt.rank() != 1) return;
    std::map<int, int> expected{{-1, 1}};
    for (int rank = 0; rank < 4; ++rank)
      for (int key = 0; key < 5; ++key) ++expected[key * rank];
    EXPECT_EQ(counts, expected);
  });
}

/// With room for few estimates, copies are dropped and sent again.
TEST(DistObject, ABudgetCountsEstimates) {
  JobSetup setup{.ranks = 3};
  setup.flow.copy_bytes = 4'000;
  run_everywhere(setup, [](Runtime& rt) {
    std::vector<Numbers> numbers(6, Numbers{1});
    std::vector<Data<Object<Numbers>>> data;
    for (std::size_t i = 0; i < numbers.size(); ++i)
      data.push_back(rt.object("numbers", numbers[i], {.owner = static_cast<std::uint32_t>(i % 3), .bytes = 1'000}));
    for (int round = 0; round < 4; ++round)
      for (std::size_t i = 0; i < 6; ++i) {
        rt.submit(join_to, read(data[(i + 1) % 6]), read_write(data[i]));
        rt.submit(join_to, read(data[(i + 2) % 6]), read_write(data[i]));
      }
    rt.wait();
    std::vector<Numbers> expected(6, Numbers{1});
    for (int round = 0; round < 4; ++round)
      for (std::size_t i = 0; i < 6; ++i)
        for (const std::size_t from : {(i + 1) % 6, (i + 2) % 6})
          expected[i].insert(expected[i].end(), expected[from].begin(), expected[from].end());
    for (std::size_t i = rt.rank(); i < 6; i += 3) EXPECT_EQ(numbers[i], expected[i]);
    EXPECT_LE(rt.flow_statistics().most_copy_bytes, 4'000U);
  });
}

/// The room for one copy comes when another one is dropped, which is submitted after both: nobody may wait for a
/// message before.
TEST(DistObject, ABudgetAndAWindowDoNotWaitForEachOther) {
  JobSetup setup{.ranks = 2};
  setup.flow.copy_bytes = 2'000;
  setup.core.window = 1;
  run_everywhere(setup, [](Runtime& rt) {
    Numbers a{1}, b{2}, c{3}, sum;
    auto ha = rt.object("a", a, {.owner = 0, .bytes = 1'000}), hb = rt.object("b", b, {.owner = 0, .bytes = 1'000}),
         hc = rt.object("c", c, {.owner = 0, .bytes = 1'000}), hsum = rt.object("sum", sum, {.owner = 1});
    const Codelet join_both("join both", [](const Numbers& x, const Numbers& y, Numbers& to) {
      to.insert(to.end(), {x[0], y[0]});
    });
    rt.submit(join_to, read(ha), read_write(hsum));
    rt.submit(join_both, read(hb), read(hc), read_write(hsum));
    rt.wait();
    if (rt.rank() == 1) {
      EXPECT_THAT(sum, ElementsAre(1, 2, 3));
    }
  }, 4);
}

/// Kernels that are not called write nothing; what travels is real.
TEST(DistObject, AModelOfTimesLeavesMessagesReal) {
  JobSetup setup{.ranks = 2};
  setup.core.emulation = [](const runtime::EmulatedTask&) { return std::int64_t{1'000}; };
  run_everywhere(setup, [](Runtime& rt) {
    Numbers numbers;
    if (rt.rank() == 0) numbers = {1, 2, 3};
    auto data = rt.object("numbers", numbers, {.owner = 0});
    rt.submit({.on = 1}, push, 4U, read_write(data));
    EXPECT_THAT(*rt.acquire(read(data)), ElementsAre(1, 2, 3));
  }, 4);
}

TEST(DistObject, RanksThatDisagreeWhetherItIsOneGetAnError) {
  const auto endings = run_job({.ranks = 2}, [](Runtime& rt) {
    std::string text;
    std::vector<char> letters(sizeof(std::string));
    if (rt.rank() == 0) {
      auto data = rt.object("text", text, {.owner = 0});
      rt.wait();
    } else {
      auto data = rt.data("text", letters, {.owner = 0});
      rt.wait();
    }
  });
  for (const Ending& ending : endings) EXPECT_THAT(ending.error, HasSubstr("different flows"));
}

}  // namespace
}  // namespace dist_test
}  // namespace tandem
