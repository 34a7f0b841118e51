// tools/json/json_test.cpp: JSON values keep the order of members, compare by value, and survive their own text.
#include "tools/json/json.hpp"

#include <gtest/gtest.h>

namespace tandem::tools::json_test {
namespace {

TEST(Json, PairsOfATextAndAValueAreAnObject) {
  const Json json{{"n", 4},      {"list", {1, 2}},  {"nested", {{"x", 0.5}}},
                  {"text", "a"}, {"none", nullptr}, {"yes", true}};
  EXPECT_EQ(json.dump(), R"({"n":4,"list":[1,2],"nested":{"x":0.5},"text":"a","none":null,"yes":true})");
  EXPECT_EQ(Json({1, "a"}).dump(), R"([1,"a"])");
  EXPECT_EQ(Json(std::vector<double>{1, 2}).dump(), "[1.0,2.0]");
}

TEST(Json, SurvivesItsText) {
  const std::string text = R"({"z":[],"a":{},"i":-3,"u":18446744073709551615,"d":1.5,"s":"\n\"","b":false,"n":null})";
  const auto json = Json::parse(text);
  ASSERT_TRUE(json);
  EXPECT_EQ(json->dump(), text);
  EXPECT_EQ(Json::parse(json->dump(2)), json);
}

TEST(Json, ExactNumbersAreTextsWhereReadersWouldRound) {
  EXPECT_EQ(Json::exact(9007199254740991).dump(), "9007199254740991");
  EXPECT_EQ(Json::exact(9007199254740992).dump(), R"("9007199254740992")");
  EXPECT_EQ(Json::exact(~std::uint64_t{0}).dump(), R"("18446744073709551615")");
}

TEST(Json, WhatIsNoJsonIsNothing) {
  EXPECT_FALSE(Json::parse("{"));
  EXPECT_FALSE(Json::parse(""));
}

TEST(Json, BytesThatAreNoUtf8AreReplaced) { EXPECT_EQ(Json("a\xff").dump(), "\"a\xEF\xBF\xBD\""); }

TEST(Json, AMemberThatIsMissingIsFoundNowhere) {
  EXPECT_EQ(Json(3).find("x"), nullptr);
  EXPECT_EQ(Json{}.find("x"), nullptr);
  EXPECT_FALSE(Json::object().contains("x"));
}

TEST(Json, UpdateReplacesMembersAndAddsOthers) {
  Json json{{"a", 1}, {"b", 2}};
  json.update({{"b", 3}, {"c", 4}});
  EXPECT_EQ(json.dump(), R"({"a":1,"b":3,"c":4})");
}

TEST(Json, AnArrayGrowsAndIsWalked) {
  Json json;
  json.push_back(1);
  json.push_back(2u);
  double sum = 0;
  for (const Json& element : json) sum += element.number();
  EXPECT_EQ(sum, 3);
  EXPECT_EQ(json.numbers(), (std::vector<double>{1, 2}));
}

}  // namespace
}  // namespace tandem::tools::json_test
