// tandem/api/object_test.cpp: objects on one rank, and how values become bytes and values again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <unordered_map>

#include "tandem/api/test_support.hpp"

namespace tandem {

/// A type that is not copyable, and changes its size.
struct Tree {
  int value = 0;
  std::vector<std::unique_ptr<Tree>> children;
  bool operator==(const Tree& other) const {
    return value == other.value &&
           std::equal(children.begin(), children.end(), other.children.begin(), other.children.end(),
                      [](const auto& a, const auto& b) { return *a == *b; });
  }
};

template <>
struct Serialize<Tree> {
  static void write(const Tree& tree, ByteWriter& out) {
    out.write(tree.value);
    out.write_size(tree.children.size());
    for (const auto& child : tree.children) out.write(*child);
  }
  static Tree read(ByteReader& in) {
    Tree tree{.value = in.read<int>(), .children = {}};
    for (std::size_t left = in.read_size(); left > 0; --left)
      tree.children.push_back(std::make_unique<Tree>(in.read<Tree>()));
    return tree;
  }
};

namespace {

using test::loop_runtime;
using test::thrown_by;
using test::thread_runtime;
using testing::ElementsAre;
using testing::HasSubstr;

template <class T>
std::vector<std::byte> bytes_of(const T& value) {
  std::vector<std::byte> bytes;
  internal::ObjectType<T>::write(&value, bytes);
  return bytes;
}

template <class T>
void expect_round_trip(const T& value) {
  T read{};
  internal::ObjectType<T>::read(&read, bytes_of(value));
  EXPECT_TRUE(read == value);
}

enum class Colour : std::uint8_t { red, green };
struct Plain {
  int a = 0;
  double b = 0;
  bool operator==(const Plain&) const = default;
};

TEST(Serialize, ValuesComeBack) {
  expect_round_trip(42);
  expect_round_trip(Colour::green);
  expect_round_trip(Plain{3, 0.5});
  expect_round_trip(std::string());
  expect_round_trip(std::string(1'000'000, 'x') + '\0' + "end");
  expect_round_trip(std::u32string(U"\u20ac"));
  expect_round_trip(std::vector<double>{1, 2, 3});
  expect_round_trip(std::vector<bool>{true, false, true});
  expect_round_trip(std::vector<std::string>{"", "a", "bc"});
  expect_round_trip(std::vector<std::vector<std::vector<int>>>{{}, {{1}, {}}, {{2, 3}}});
  expect_round_trip(std::array<int, 3>{1, 2, 3});
  expect_round_trip(std::array<std::string, 2>{"one", "two"});
  expect_round_trip(std::pair<int, std::string>{1, "one"});
  expect_round_trip(std::tuple<int, std::string, std::vector<char>>{1, "one", {'1'}});
  expect_round_trip(std::tuple<>{});
  expect_round_trip(std::optional<std::string>{"there"});
  expect_round_trip(std::optional<std::string>{});
  expect_round_trip(std::list<int>{3, 1, 2});
  expect_round_trip(std::deque<std::string>{"x", "y"});
  expect_round_trip(std::set<std::string>{"b", "a"});
  expect_round_trip(std::map<std::string, std::vector<int>>{{"one", {1}}, {"none", {}}});
  expect_round_trip(std::unordered_map<int, std::map<int, std::string>>{{1, {{2, "x"}}}, {3, {}}});
  Tree tree{.value = 1, .children = {}};
  tree.children.push_back(std::make_unique<Tree>(Tree{.value = 2, .children = {}}));
  expect_round_trip(tree);
}

TEST(Serialize, TheFormatIsPlain) {
  EXPECT_EQ(bytes_of(std::string("ab")).size(), sizeof(std::uint64_t) + 2);
  EXPECT_EQ(bytes_of(Plain{}).size(), sizeof(Plain));
  EXPECT_EQ(bytes_of(std::tuple<>{}).size(), 0U);
}

/// Checks that every proper prefix of a message is refused, and also a longer one; the value stays as it was.
template <class T>
void expect_lengths_are_checked(const T& value) {
  const std::vector<std::byte> bytes = bytes_of(value);
  T read{};
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(internal::ObjectType<T>::read(&read, std::span(bytes).first(size)), MalformedMessage) << size;
  std::vector<std::byte> longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_THAT(thrown_by<MalformedMessage>([&] { internal::ObjectType<T>::read(&read, longer); }), HasSubstr("1 bytes"));
  EXPECT_TRUE(read == T{});
}

TEST(Serialize, MessagesOfAnotherLengthAreRefused) {
  expect_lengths_are_checked(std::vector<double>{1, 2});
  expect_lengths_are_checked(std::map<std::string, std::vector<int>>{{"one", {1, 2}}, {"two", {}}});
  expect_lengths_are_checked(std::tuple<int, std::optional<std::string>>{1, "x"});
  std::vector<std::byte> nonsense(sizeof(std::uint64_t), std::byte{0xff});
  std::vector<double> value;
  EXPECT_THAT(thrown_by<MalformedMessage>([&] { internal::ObjectType<std::vector<double>>::read(&value, nonsense); }),
              HasSubstr("announces 18446744073709551615 elements"));
}

const Codelet append("append", [](int value, std::vector<int>& to) { to.push_back(value); });

TEST(Object, TasksChangeItsSize) {
  auto rt = thread_runtime({.workers = 2});
  std::vector<int> numbers{1};
  std::string text;
  auto hnumbers = rt->object("numbers", numbers);
  auto htext = rt->object("text", text);
  for (int i = 2; i <= 100; ++i) rt->submit(append, i, read_write(hnumbers));
  rt->submit(Codelet("print", [](const std::vector<int>& from, std::string& to) {
               for (const int number : from) to += std::to_string(number) + " ";
             }), read(hnumbers), write(htext));
  rt->submit(Codelet("halve", [](std::vector<int>& what) { what.resize(what.size() / 2); }), read_write(hnumbers));
  rt->wait();
  EXPECT_EQ(numbers.size(), 50U);
  EXPECT_THAT(text, HasSubstr("1 2 3"));
  EXPECT_THAT(text, HasSubstr("99 100 "));
  EXPECT_EQ((*rt->acquire(read(htext))).size(), text.size());
  rt->acquire(read_write(htext))->append("more");
  EXPECT_THAT(text, HasSubstr("100 more"));
}

TEST(Object, ATaskThatWritesFindsAnEmptyOne) {
  auto rt = loop_runtime();
  std::vector<int> numbers{1, 2, 3};
  auto data = rt->object("numbers", numbers);
  for (int i = 0; i < 3; ++i) rt->submit(append, i, write(data));
  rt->wait();
  EXPECT_THAT(numbers, ElementsAre(2));
  // An object that is named twice is read, too.
  const Codelet twice("twice", [](const std::vector<int>& from, std::vector<int>& to) { to.push_back(from[0] + 5); });
  rt->submit(twice, read(data), write(data));
  rt->wait();
  EXPECT_THAT(numbers, ElementsAre(2, 7));
  rt->acquire(write(data))->push_back(4);
  EXPECT_THAT(numbers, ElementsAre(4));
}

/// A type that counts its objects.
struct Counted {
  static inline std::atomic<int> alive{0};
  std::vector<int> values;
  Counted() { ++alive; }
  Counted(Counted&& other) noexcept : values(std::move(other.values)) { ++alive; }
  Counted& operator=(Counted&&) noexcept = default;
  ~Counted() { --alive; }
};

}  // namespace

template <>
struct Serialize<Counted> {
  static void write(const Counted& counted, ByteWriter& out) { out.write(counted.values); }
  static Counted read(ByteReader& in) {
    Counted counted;
    counted.values = in.read<std::vector<int>>();
    return counted;
  }
};

namespace {

TEST(Object, WhatTandemMakesItEnds) {
  ASSERT_EQ(Counted::alive.load(), 0);
  {
    auto rt = thread_runtime({.workers = 2});
    auto data = rt->object<Counted>("counted"), sum = rt->object<Counted>("sum");
    sum.reduction([](Counted& neutral) { neutral.values.clear(); },
                  [](Counted& into, const Counted& more) {
                    into.values.insert(into.values.end(), more.values.begin(), more.values.end());
                  });
    const Codelet add("add", [](int value, Counted& to) { to.values.push_back(value); });
    EXPECT_THAT(thrown_by<UsageError>([&] { rt->submit(add, 1, read_write(data)); }),
                HasSubstr("nobody has written it before"));
    rt->submit(add, 1, write(data));
    rt->submit(add, 2, read_write(data));
    rt->submit(add, -1, write(sum));
    for (int i = 0; i < 100; ++i) rt->submit(add, i, reduce(sum));
    rt->wait();
    EXPECT_THAT((*rt->acquire(read(data))).values, ElementsAre(1, 2));
    auto all = (*rt->acquire(read(sum))).values;
    std::sort(all.begin(), all.end());
    ASSERT_EQ(all.size(), 101U);
    for (int i = 0; i <= 100; ++i) EXPECT_EQ(all[i], i - 1);
    EXPECT_GE(Counted::alive.load(), 3);
    data = {};
    rt->wait();
  }
  EXPECT_EQ(Counted::alive.load(), 0);
}

TEST(Object, AKernelThatThrowsPoisonsIt) {
  auto rt = loop_runtime();
  std::string text = "before";
  auto data = rt->object("text", text);
  rt->submit(Codelet("bad", [](std::string&) { throw std::runtime_error("no luck"); }), read_write(data));
  std::atomic<int> seen{0};
  rt->submit(Codelet("look", [&seen](const std::string&) { ++seen; }), read(data));
  EXPECT_THAT(thrown_by<std::runtime_error>([&] { rt->wait(); }), HasSubstr("no luck"));
  EXPECT_EQ(seen, 0);
  rt->submit(Codelet("good", [](std::string& to) { to += "fresh"; }), write(data));
  rt->wait();
  EXPECT_EQ(text, "fresh");
}

TEST(Object, IsRecordedAndReboundLikeOtherData) {
  auto rt = loop_runtime();
  std::vector<int> a, b;
  auto ha = rt->object("a", a), hb = rt->object("b", b);
  Graph graph = rt->record([&] {
    rt->submit(append, 1, read_write(ha));
    rt->submit(append, 2, read_write(ha));
  });
  for (int i = 0; i < 3; ++i) rt->replay(graph);
  graph.rebind(ha, hb);
  rt->replay(graph);
  rt->wait();
  EXPECT_THAT(a, ElementsAre(1, 2, 1, 2, 1, 2));
  EXPECT_THAT(b, ElementsAre(1, 2));
}

TEST(Object, StaysInMainMemory) {
  auto rt = loop_runtime({.workers = 1, .devices = 1});
  std::string text;
  auto data = rt->object("text", text);
  const Codelet cpu("write", [](std::string& to) { to = "x"; });
  rt->submit(cpu, write(data));
  rt->wait();
  EXPECT_EQ(text, "x");
  const Codelet device =
      cpu.also(DeviceKind::user, [](std::string& to) { to = "device"; }).can_run([](const WorkerDescription& worker) {
        return worker.device == DeviceKind::user;
      });
  rt->submit(device, write(data));
  EXPECT_THAT(thrown_by<std::logic_error>([&] { rt->wait(); }),
              testing::AllOf(HasSubstr("data 'text'"), HasSubstr("objects stay in main memory")));
}

TEST(Object, TheEstimateIsForObjects) {
  auto rt = loop_runtime();
  double value = 0;
  EXPECT_THAT(thrown_by<UsageError>([&] { static_cast<void>(rt->data("value", value, {.bytes = 100})); }),
              HasSubstr("option bytes is for objects"));
}

}  // namespace
}  // namespace tandem
