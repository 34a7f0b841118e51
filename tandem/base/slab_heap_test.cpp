// tandem/base/slab_heap_test.cpp: objects lie side by side without overlap, and slabs go with their last object.
#include "tandem/base/slab_heap.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>
#include <vector>

namespace tandem::base::slab_heap_test {
namespace {

std::uintptr_t address(const void* object) { return reinterpret_cast<std::uintptr_t>(object); }

TEST(SlabHeap, ObjectsLieInOrderAndSideBySide) {
  for (const std::size_t bytes : {16, 40, 64, 100, 128, 200}) {
    SlabHeap heap(bytes);
    const std::size_t alignment = bytes < 64 ? 16 : 64;
    const std::size_t stride = (bytes + alignment - 1) / alignment * alignment;
    std::vector<void*> objects;
    for (unsigned i = 0; i < 100; ++i) objects.push_back(heap.take());
    for (unsigned i = 0; i < 100; ++i) {
      EXPECT_EQ(address(objects[i]) % alignment, 0u);
      EXPECT_EQ(address(objects[i]), address(objects[0]) + i * stride) << bytes;
    }
    EXPECT_EQ(heap.slabs(), 1u);
    for (void* object : objects) heap.give_back(object);
    EXPECT_EQ(heap.slabs(), 0u);
  }
}

TEST(SlabHeap, SlabsMayStayForTheNextObjects) {
  SlabHeap heap(SlabHeap::kSlabBytes / 4, SlabHeap::Emptied::stays);
  std::vector<void*> objects;
  for (unsigned i = 0; i < 9; ++i) objects.push_back(heap.take());
  EXPECT_EQ(heap.slabs(), 3u);  // three objects to each, beside what the heap keeps there
  const std::set<void*> first(objects.begin(), objects.end());
  EXPECT_EQ(first.size(), 9u);
  for (void* object : objects) heap.give_back(object);
  EXPECT_EQ(heap.slabs(), 3u);
  std::set<void*> again;
  for (unsigned i = 0; i < 9; ++i) again.insert(heap.take());
  EXPECT_EQ(again, first);
  EXPECT_EQ(heap.slabs(), 3u);
}

TEST(SlabHeap, NobodyHasWhatAnotherHasAndSlabsGoWithTheirLastObject) {
  constexpr std::size_t bytes = 1000;  // some 2,000 to a slab
  SlabHeap heap(bytes);
  std::vector<unsigned char*> taken;
  std::mt19937 random(1);
  std::size_t most = 0;
  const auto mark = [](const unsigned char* object) { return static_cast<int>(address(object) / 64 % 251); };
  const auto take = [&] {
    auto* const object = static_cast<unsigned char*>(heap.take());
    ASSERT_NE(object, nullptr);
    std::memset(object, mark(object), bytes);
    taken.push_back(object);
  };
  const auto give_back = [&] {
    std::swap(taken[random() % taken.size()], taken.back());
    unsigned char* const object = taken.back();
    taken.pop_back();
    const int expected = mark(object);
    ASSERT_TRUE(std::all_of(object, object + bytes, [expected](unsigned char byte) { return byte == expected; }));
    heap.give_back(object);
  };
  for (unsigned wave = 0; wave < 4; ++wave) {
    while (taken.size() < 9000) random() % 3 > 0 || taken.empty() ? take() : give_back();
    most = std::max(most, heap.slabs());
    while (taken.size() > 50) random() % 3 > 0 ? give_back() : take();
  }
  EXPECT_LE(most, 6u);  // returned objects are used before a slab is added
  EXPECT_GE(most, 5u);
  while (!taken.empty()) give_back();
  EXPECT_EQ(heap.slabs(), 0u);
}

}  // namespace
}  // namespace tandem::base::slab_heap_test
