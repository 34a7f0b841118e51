// tandem/runtime/memory/numa_memory_test.cpp: blocks of a NUMA node's memory.
#include "tandem/runtime/memory/numa_memory.hpp"

#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace tandem::runtime::numa_memory_test {
namespace {

TEST(NumaMemory, GivesBlocksOfEverySizeThatDoNotOverlap) {
  const auto topology = base::Topology::discover();
  ASSERT_TRUE(topology.ok());
  auto made = make_numa_memory(topology.value(), 0);
  if (!made.ok()) GTEST_SKIP() << made.error().message;
  MemoryNode& memory = *made.value();
  std::vector<std::pair<unsigned char*, std::size_t>> blocks;
  unsigned char mark = 0;
  for (const std::size_t bytes : {0UL, 1UL, 63UL, 64UL, 65UL, 4'096UL, 262'143UL, 262'144UL, 3'000'000UL})
    for (int i = 0; i < 20; ++i) {
      auto* const block = static_cast<unsigned char*>(memory.allocate(bytes));
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 64, 0U);
      std::memset(block, ++mark, bytes);
      blocks.emplace_back(block, bytes);
    }
  mark = 0;
  for (const auto& [block, bytes] : blocks) {
    ++mark;
    for (std::size_t at = 0; at < bytes; at += 1 + bytes / 7) ASSERT_EQ(block[at], mark) << bytes;
    if (bytes != 0) {
      EXPECT_EQ(block[bytes - 1], mark);
    }
    if (bytes >= 4'096) {
      const auto place = topology.value().numa_place_of(block, bytes);
      EXPECT_TRUE(!place || *place == 0U);
    }
  }
  for (const auto& [block, bytes] : blocks) memory.release(block, bytes);
}

TEST(NumaMemory, ABlockThatCameBackIsGivenAgain) {
  const auto topology = base::Topology::synthetic("numa:2 core:1 pu:1").value();
  const auto memory = std::move(make_numa_memory(topology, 1)).value();
  EXPECT_EQ(memory->name(), "NUMA node 1");
  std::set<void*> first;
  for (int i = 0; i < 100; ++i) first.insert(memory->allocate(1'000));
  for (void* const block : first) memory->release(block, 1'000);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(first.contains(memory->allocate(990)));
  EXPECT_FALSE(first.contains(memory->allocate(990)));
}

}  // namespace
}  // namespace tandem::runtime::numa_memory_test
