// tandem/base/utf8_test.cpp: every text becomes UTF-8, and UTF-8 does not change.
#include "tandem/base/utf8.hpp"

#include <random>
#include <string>

#include <gtest/gtest.h>

namespace tandem::base::utf8_test {
namespace {

TEST(Utf8, StaysAsItIs) {
  for (const std::string text : {"", "plain",
                                 "gr\xC3\xBC\xC3\x9F"
                                 "e",
                                 "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xF4\x8F\xBF\xBF", "\xED\x9F\xBF"})
    EXPECT_EQ(as_utf8(text), text);
}

TEST(Utf8, OtherBytesAreReplacedOneByOne) {
  EXPECT_EQ(as_utf8("a\xFFz"), "a\xEF\xBF\xBDz");
  EXPECT_EQ(as_utf8("\xC3"), "\xEF\xBF\xBD") << "cut off";
  EXPECT_EQ(as_utf8("\xC0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD") << "longer than needed";
  EXPECT_EQ(as_utf8("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD") << "a surrogate";
  EXPECT_EQ(as_utf8("\xF4\x90\x80\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD") << "beyond Unicode";
}

TEST(Utf8, WhateverGoesInIsUtf8Afterwards) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 2'000; ++trial) {
    std::string text;
    for (auto i = random() % 12; i > 0; --i)
      text += static_cast<char>(random() % 3 == 0 ? random() % 128 : 0x80 + random() % 128);
    const std::string valid = as_utf8(text);
    std::size_t at = 0;
    while (at < valid.size()) {
      const std::size_t length = utf8_length(std::string_view(valid).substr(at));
      ASSERT_NE(length, 0U) << trial;
      at += length;
    }
    EXPECT_EQ(as_utf8(valid), valid);
  }
}

}  // namespace
}  // namespace tandem::base::utf8_test
