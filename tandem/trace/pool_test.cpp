// tandem/trace/pool_test.cpp: where the buffers of a trace lie.
#include "tandem/trace/pool.hpp"

#include <sys/stat.h>

#include <vector>

#include <gtest/gtest.h>

#include "tandem/trace/read/test_support.hpp"

namespace tandem::trace::pool_test {
namespace {

struct Bound {
  std::byte* memory;
  std::size_t bytes;
  unsigned node;
};

TEST(BufferPool, EachNumaNodesPartIsBoundBeforeItIsThereAndServesItsActorsFirst) {
  const test::TempFolder folder;
  struct Hook {
    std::vector<Bound> bound;
    std::vector<std::int64_t> blocks;  ///< of the file, when a part was bound
    std::filesystem::path folder;
  } hook;
  hook.folder = folder.path();
  BufferPool::Options options{.buffer_bytes = 8192, .count = 5, .live_folder = folder.path(), .numa_nodes = 2};
  options.context = &hook;
  options.bind = [](void* memory, std::size_t bytes, unsigned node, void* context) {
    Hook& into = *static_cast<Hook*>(context);
    into.bound.push_back({static_cast<std::byte*>(memory), bytes, node});
    for (const auto& file : std::filesystem::directory_iterator(into.folder)) {
      struct stat facts{};
      ASSERT_EQ(::stat(file.path().c_str(), &facts), 0);
      into.blocks.push_back(facts.st_blocks);
    }
  };
  auto made = BufferPool::make(options);
  ASSERT_TRUE(made.ok()) << made.error().message;
  BufferPool& pool = *made.value();
  ASSERT_EQ(hook.bound.size(), 2u);
  EXPECT_EQ(hook.bound[0].node, 0u);
  EXPECT_EQ(hook.bound[0].bytes, 3 * options.buffer_bytes);
  EXPECT_EQ(hook.bound[1].node, 1u);
  EXPECT_EQ(hook.bound[1].bytes, 2 * options.buffer_bytes);
  EXPECT_EQ(hook.bound[1].memory, hook.bound[0].memory + hook.bound[0].bytes);
  EXPECT_EQ(hook.blocks, (std::vector<std::int64_t>{0, 0})) << "memory was there before anybody said where";

  const auto node_of = [&](const Buffer* buffer) {
    return buffer->memory >= hook.bound[1].memory ? 1u : 0u;
  };
  std::vector<unsigned> nodes;
  for (int i = 0; i < 5; ++i) {
    Buffer* const buffer = pool.take(1);
    ASSERT_NE(buffer, nullptr);
    nodes.push_back(node_of(buffer));
  }
  EXPECT_EQ(nodes, (std::vector<unsigned>{1, 1, 0, 0, 0}))
      << "an actor takes from its own node first, then from others";
  EXPECT_EQ(pool.take(0), nullptr);
}

TEST(BufferPool, AFolderWithoutRoomIsSaidSo) {
  const auto refused = BufferPool::make({.count = 4, .live_folder = "/nowhere/at/all"});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("/nowhere/at/all"), std::string::npos);
}

}  // namespace
}  // namespace tandem::trace::pool_test
