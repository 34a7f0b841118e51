// tests/fuzz/corpus_test.cpp: runs one target over its corpus, and over beginnings of its inputs.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/fuzz/target.hpp"

namespace {

void take(const std::string& input) {
  // In memory of its own, so that a sanitizer sees what is read beyond the end.
  const std::string exact(input.begin(), input.end());
  EXPECT_EQ(LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(exact.data()), exact.size()), 0);
}

#define CORPUS_TEST(target) TEST(FuzzCorpus, target)
CORPUS_TEST(FUZZ_TARGET) {
  std::size_t inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(FUZZ_CORPUS)) {
    SCOPED_TRACE(entry.path().filename().string());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string input(std::istreambuf_iterator<char>(file), {});
    take(input);
    for (std::size_t cut = 0; cut < 20; ++cut) take(input.substr(0, input.size() * cut / 20));
    ++inputs;
  }
  EXPECT_GT(inputs, 2u) << "no corpus at " << FUZZ_CORPUS;
  take("");
}

}  // namespace
