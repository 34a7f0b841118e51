// tandem/base/toml_file_test.cpp: TOML becomes a flat list with lines; what is not TOML is refused with its line.
#include "tandem/base/toml_file.hpp"

#include <gtest/gtest.h>

namespace tandem::base {
namespace {

TEST(TomlFile, TablesBecomeDottedNamesInTheOrderOfTheFile) {
  const auto values = parse_toml("workers = 2\nbind = true\n\n[trace]\nfolder = \"out\"\nrate = 0.5\n", "t.toml");
  ASSERT_TRUE(values) << values.error().message;
  ASSERT_EQ(values.value().size(), 4U);
  EXPECT_EQ(values.value()[0].name, "workers");
  EXPECT_EQ(values.value()[0].text, "2");
  EXPECT_EQ(values.value()[1].text, "true");
  EXPECT_EQ(values.value()[2].name, "trace.folder");
  EXPECT_EQ(values.value()[2].line, 5U);
  EXPECT_EQ(values.value()[3].text, "0.5");
}

TEST(TomlFile, AnErrorNamesFileAndLine) {
  const auto values = parse_toml("workers = 2\nsched = lws\n", "t.toml");
  ASSERT_FALSE(values);
  EXPECT_EQ(values.error().code, ErrorCode::malformed);
  EXPECT_EQ(values.error().message.rfind("t.toml:2: ", 0), 0U) << values.error().message;
}

TEST(TomlFile, ArraysAndDatesAreRefused) {
  for (const char* document : {"a = [1, 2]", "a = 2024-01-01", "[[a]]\nb = 1"}) {
    const auto values = parse_toml(document, "t.toml");
    ASSERT_FALSE(values) << document;
    EXPECT_EQ(values.error().code, ErrorCode::malformed);
  }
}

TEST(TomlFile, AMissingFileIsAnIoError) {
  const auto values = read_toml("/nonexistent/tandem.toml");
  ASSERT_FALSE(values);
  EXPECT_EQ(values.error().code, ErrorCode::io);
}

}  // namespace
}  // namespace tandem::base
