// tandem/base/toml_file_test.cpp: TOML becomes a flat list with lines; anything else is refused with its line.
#include "tandem/base/toml_file.hpp"

#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace tandem::base::toml_file_test {
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

void expect_refused(std::string_view document, const std::string& where) {
  const auto values = parse_toml(document, "t.toml");
  ASSERT_FALSE(values) << document;
  EXPECT_EQ(values.error().code, ErrorCode::malformed);
  EXPECT_EQ(values.error().message.rfind("t.toml:" + where + ": ", 0), 0U) << values.error().message;
}

TEST(TomlFile, WhatIsNoTextIsRefusedWithItsLine) {
  for (const std::string_view document :
       {"\n\xE9 = 1", "\na = \"\xC3\"", "\na = \"\xED\xA0\x80\"", "\n# \xC0\x80", "\na = \"\x01\"", "\n#\x7F"})
    expect_refused(document, "2");
  expect_refused(std::string_view("\na = \0 1", 8), "2");
}

TEST(TomlFile, WhatIsNoLineOfTomlIsRefused) {
  for (const char* document : {"a",
                               "a =",
                               "= 1",
                               "a = # 1",
                               "a = 1 2",
                               "a = \"x",
                               "a = 'x",
                               "a = \"\\x\"",
                               "a = \"\\uD800\"",
                               "a = \"\\U00110000\"",
                               "a = \"\\u12\"",
                               "a = \"",
                               "a = \"\\",
                               "a. = 1",
                               "a.b. = 1",
                               "\xC3\xA9 = 1",
                               "a = \xC3\xA9",
                               "[",
                               "[]",
                               "[a",
                               "[a] 1",
                               "[a]]",
                               "[[a]]",
                               "a = {b = 1}",
                               "a = \"\"\"x\"\"\"",
                               "a = '''x'''",
                               "a = 12:30:00",
                               "a = 1979-05-27T07:32:00Z"})
    expect_refused(document, "1");
}

TEST(TomlFile, NumbersAreThoseOfToml) {
  const std::pair<const char*, const char*> good[] = {{"+7", "7"},
                                                      {"-0", "0"},
                                                      {"1_000", "1000"},
                                                      {"0xfF", "255"},
                                                      {"0o17", "15"},
                                                      {"0b101", "5"},
                                                      {"-1.5", "-1.5"},
                                                      {"1e3", "1000"},
                                                      {"1.5E+2", "150"},
                                                      {"6.25e-2", "0.0625"},
                                                      {"-inf", "-inf"},
                                                      {"false", "false"},
                                                      {"9223372036854775807", "9223372036854775807"}};
  for (const auto& [written, read] : good) {
    const auto values = parse_toml(std::string("a = ") + written + " # why", "t.toml");
    ASSERT_TRUE(values) << written << ": " << values.error().message;
    EXPECT_EQ(values.value()[0].text, read) << written;
  }
  for (const char* written : {"07",     "1_",   "_1",      "1__0",  "0x",
                              "0xg",    "0x-1", "-0x1",    "1.",    ".5",
                              "1.e2",   "1e",   "1e+-2",   "1e999", "9223372036854775808",
                              "++1",    "1-2",  "2-\"x\"", "True",  "infinity",
                              "nan(1)", "0x1p3"})
    expect_refused(std::string("a = ") + written, "1");
}

TEST(TomlFile, ANameHasOneValueAndATableOneHeader) {
  expect_refused("a = 1\na = 2", "2");
  expect_refused("[a]\nb = 1\n[c]\n[a]", "4");
  expect_refused("a.b = 1\n[a]\nb = 2", "3");
}

TEST(TomlFile, StringsAndCommentsMayHoldAnyCharacter) {
  const auto values = parse_toml(
      "\xEF\xBB\xBF# \xC3\xA9\r\nfolder = \"\xC3\xA9\\\\\\\"'#\" # \xF0\x9F\x98\x80\r\n[ x . \"\xC3\xA9\" ]\n\tother = "
      "'\xE2\x82\xAC\\'\n"
      "escaped='' # empty\n\"e\" = \"\\t\\u00e9\\U0001F600\"",
      "t.toml");
  ASSERT_TRUE(values) << values.error().message;
  ASSERT_EQ(values.value().size(), 4U);
  EXPECT_EQ(values.value()[0].text, "\xC3\xA9\\\"'#");
  EXPECT_EQ(values.value()[1].name, "x.\xC3\xA9.other");
  EXPECT_EQ(values.value()[1].text, "\xE2\x82\xAC\\");
  EXPECT_EQ(values.value()[2].text, "");
  EXPECT_EQ(values.value()[3].text, "\t\xC3\xA9\xF0\x9F\x98\x80");
}

TEST(TomlFile, QuotedStringsAreReadBack) {
  std::string all = "\xC3\xA9\xF0\x9F\x98\x80";
  for (char c = 0; c < 0x7F; ++c) all += c;
  all += '\x7F';
  const auto values = parse_toml(
      "a = " + toml_quoted(all) + "\nb = " + toml_quoted("x\xFFy\xE2\x82") + "\nc = " + toml_quoted(""), "t.toml");
  ASSERT_TRUE(values) << values.error().message;
  EXPECT_EQ(values.value()[0].text, all);
  EXPECT_EQ(values.value()[1].text, "x\xEF\xBF\xBDy\xEF\xBF\xBD\xEF\xBF\xBD") << "no UTF-8";
  EXPECT_EQ(values.value()[2].text, "");
}

TEST(TomlFile, AMissingFileIsAnIoError) {
  const auto values = read_toml("/nonexistent/tandem.toml");
  ASSERT_FALSE(values);
  EXPECT_EQ(values.error().code, ErrorCode::io);
}

}  // namespace
}  // namespace tandem::base::toml_file_test
