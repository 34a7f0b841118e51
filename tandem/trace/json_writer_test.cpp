// tandem/trace/json_writer_test.cpp: the output is JSON for any texts.
#include "tandem/trace/json_writer.hpp"

#include <cstdint>
#include <limits>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace tandem::trace::json_writer_test {
namespace {

TEST(JsonWriter, WritesMembersInTheirOrder) {
  JsonObject inner;
  inner.add("empty", std::vector<std::string>()).add("list", std::vector<std::string>{"a", "b"});
  JsonObject object;
  object.add("text", "x")
      .add("flag", true)
      .add("most", std::numeric_limits<std::uint64_t>::max())
      .add("least", -3)
      .add("half", 0.5);
  object.add("inner", inner).add("objects", std::vector<JsonObject>{inner, JsonObject()});
  EXPECT_EQ(object.text(),
            R"({"text": "x", "flag": true, "most": 18446744073709551615, "least": -3, "half": 0.5, )"
            R"("inner": {"empty": [], "list": ["a", "b"]}, "objects": [{"empty": [], "list": ["a", "b"]}, {}]})");
}

TEST(JsonWriter, EscapesWhatMustBe) {
  EXPECT_EQ(json_text("a\"b\\c\n\x01"), "\"a\\\"b\\\\c\\u000a\\u0001\"");
  EXPECT_EQ(json_text("gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80"),
            "\"gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80\"");
}

TEST(JsonWriter, ReplacesWhatIsNotUtf8) {
  for (const char* bad :
       {"\xFF", "\xC3", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF0\x9F\x98"}) {
    const auto parsed = nlohmann::json::parse(json_text(bad), nullptr, false);
    ASSERT_TRUE(parsed.is_string()) << json_text(bad);
    EXPECT_TRUE(parsed.get<std::string>().starts_with("\xEF\xBF\xBD"));
  }
}

TEST(JsonWriter, AnyBytesAreReadBackAsNlohmannReplacesThem) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 12, ' ');
    for (char& byte : bytes) byte = static_cast<char>(random());
    const auto parsed = nlohmann::json::parse(json_text(bytes), nullptr, false);
    ASSERT_TRUE(parsed.is_string()) << "round " << round;
    const auto own =
        nlohmann::json::parse(nlohmann::json(bytes).dump(-1, ' ', false, nlohmann::json::error_handler_t::ignore));
    std::string kept;
    const std::string& text = parsed.get_ref<const std::string&>();
    for (std::size_t i = 0; i < text.size();) {
      if (text.compare(i, 3, "\xEF\xBF\xBD") == 0) i += 3;
      else kept += text[i++];
    }
    EXPECT_EQ(kept, own.get<std::string>()) << "round " << round;
  }
}

}  // namespace
}  // namespace tandem::trace::json_writer_test
