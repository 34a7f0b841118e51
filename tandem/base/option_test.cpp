// tandem/base/option_test.cpp: each type accepts what it describes, and explains what it refuses.
#include "tandem/base/option.hpp"

#include <gtest/gtest.h>

namespace tandem::base::option_test {
namespace {

TEST(Option, EachTypeReadsItsValues) {
  const Option flag{.name = "f", .type = OptionType::boolean, .default_value = "no", .help = ""};
  for (const char* yes : {"true", "yes", "on", "1"}) EXPECT_TRUE(std::get<bool>(flag.parse(yes).value()));
  for (const char* no : {"false", "no", "off", "0"}) EXPECT_FALSE(std::get<bool>(flag.parse(no).value()));
  const Option integer{.name = "i", .type = OptionType::integer, .default_value = "0", .help = ""};
  EXPECT_EQ(std::get<std::int64_t>(integer.parse("-9223372036854775808").value()),
            std::numeric_limits<std::int64_t>::min());
  const Option real{.name = "r", .type = OptionType::real, .default_value = "0", .help = ""};
  EXPECT_DOUBLE_EQ(std::get<double>(real.parse("2.5e-3").value()), 2.5e-3);
  const Option duration{.name = "d", .type = OptionType::duration, .default_value = "0", .help = ""};
  EXPECT_EQ(std::get<std::int64_t>(duration.parse("60us").value()), 60'000);
  const Option bytes{.name = "b", .type = OptionType::bytes, .default_value = "0", .help = ""};
  EXPECT_EQ(std::get<std::int64_t>(bytes.parse("1KiB").value()), 1024);
}

TEST(Option, ANumberWithMoreAfterItIsRefused) {
  const Option integer{.name = "i", .type = OptionType::integer, .default_value = "0", .help = ""};
  for (const char* text : {"", "12x", "1.5", " 3", "0x10", "9223372036854775808"})
    EXPECT_FALSE(integer.parse(text)) << text;
  const Option real{.name = "r", .type = OptionType::real, .default_value = "0", .help = ""};
  for (const char* text : {"", "inf", "nan", "1.0.0", "1e999"}) EXPECT_FALSE(real.parse(text)) << text;
}

TEST(Option, ARefusalNamesOptionTextAndRange) {
  const Option window{
      .name = "window", .type = OptionType::integer, .default_value = "16", .help = "", .minimum = 1, .maximum = 64};
  EXPECT_EQ(window.parse("0").error().message, "option window cannot be '0'; accepted: an integer, from 1 to 64");
  const Option wait{
      .name = "wait", .type = OptionType::duration, .default_value = "1s", .help = "", .minimum = 1'000'000};
  EXPECT_EQ(
      wait.parse("1us").error().message,
      "option wait cannot be '1us'; accepted: a duration with its unit, such as 60us, 1.5ms or 10s, at least 1ms");
}

TEST(Option, ARefusedChoiceNamesTheNearestOne) {
  const Option sched{.name = "sched",
                     .type = OptionType::choice,
                     .default_value = "lws",
                     .help = "",
                     .choices = {"eager", "prio", "lws"}};
  EXPECT_EQ(sched.parse("eagre").error().message,
            "option sched cannot be 'eagre' (did you mean 'eager'?); accepted: one of eager, prio, lws");
}

TEST(Option, ValuesAreWrittenSoThatTheyAreReadBack) {
  const Option wait{.name = "wait", .type = OptionType::duration, .default_value = "1500us", .help = ""};
  EXPECT_EQ(wait.format(wait.parse("1.5ms").value()), "1500us");
  const Option real{.name = "r", .type = OptionType::real, .default_value = "0", .help = ""};
  EXPECT_EQ(real.format(real.parse("0.1").value()), "0.1");
}

TEST(Option, EnvironmentNameIsUpperCaseWithUnderscores) {
  EXPECT_EQ((Option{.name = "trace.folder_2"}).environment_name(), "TANDEM_TRACE_FOLDER_2");
}

TEST(RegistryDeathTest, RefusesWhatAProgrammerGotWrong) {
  Registry registry;
  registry.add({.name = "a.b", .type = OptionType::text, .default_value = "", .help = ""});
  EXPECT_DEATH(registry.add({.name = "a.b"}), "assertion failed");
  EXPECT_DEATH(registry.add({.name = "a_b"}), "assertion failed");  // its environment variable is taken
  EXPECT_DEATH(registry.add({.name = "Upper"}), "assertion failed");
  EXPECT_DEATH(registry.add({.name = "n", .type = OptionType::integer, .default_value = "many"}), "assertion failed");
}

}  // namespace
}  // namespace tandem::base::option_test
