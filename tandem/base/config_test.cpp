// tandem/base/config_test.cpp: which source overrides which, messages about mistakes, and random bytes.
#include "tandem/base/config.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::base::config_test {
namespace {

using testing::HasSubstr;

Registry example_registry() {
  Registry registry;
  registry.add({.name = "sched",
                .type = OptionType::choice,
                .default_value = "lws",
                .help = "scheduler",
                .choices = {"eager", "lws"}});
  registry.add({.name = "window",
                .type = OptionType::integer,
                .default_value = "4096",
                .help = "unfinished tasks",
                .minimum = 1});
  registry.add({.name = "bind", .type = OptionType::boolean, .default_value = "true", .help = "bind workers"});
  registry.add(
      {.name = "watchdog", .type = OptionType::duration, .default_value = "0", .help = "stuck after", .minimum = 0});
  registry.add({.name = "trace.folder", .type = OptionType::text, .default_value = "", .help = "where traces go"});
  registry.add({.name = "memory", .type = OptionType::bytes, .default_value = "1GiB", .help = "limit", .minimum = 0});
  registry.add({.name = "ratio",
                .type = OptionType::real,
                .default_value = "0.5",
                .help = "a part",
                .minimum = 0,
                .maximum = 1});
  return registry;
}

class ConfigTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::path(testing::TempDir()) /
            (std::string("tandem_") + testing::UnitTest::GetInstance()->current_test_info()->name() + ".toml");
  }
  void TearDown() override { std::filesystem::remove(path_); }

  void write_toml(const std::string& content) const { std::ofstream(path_) << content; }
  Result<Config> load(std::vector<std::string> arguments, Environment environment = {}) const {
    return Config::load(example_registry(),
                        {.arguments = std::move(arguments), .environment = std::move(environment), .toml = path_});
  }
  std::string message(std::vector<std::string> arguments, Environment environment = {}) const {
    const auto config = load(std::move(arguments), std::move(environment));
    return config ? "accepted" : config.error().message;
  }

  std::filesystem::path path_;
};

TEST_F(ConfigTest, AFileThatOthersCanChangeOrThatIsAnothersIsNoSource) {
  write_toml("window = 1\n");
  std::filesystem::permissions(path_, std::filesystem::perms::others_write, std::filesystem::perm_options::add);
  EXPECT_NE(message({}).find("every user may change it"), std::string::npos) << message({});
  std::filesystem::permissions(path_, std::filesystem::perms::others_write, std::filesystem::perm_options::remove);
  EXPECT_EQ(message({}), "accepted");
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  ASSERT_EQ(::chown(path_.c_str(), 65534, 65534), 0);
  EXPECT_NE(message({}).find("belongs to user 65534"), std::string::npos) << message({});
  // Neither is another user's link to a file of ours accepted.
  const auto ours = path_.string() + ".ours";
  ASSERT_EQ(::chown(path_.c_str(), 0, 0), 0);
  std::filesystem::rename(path_, ours);
  std::filesystem::create_symlink(ours, path_);
  EXPECT_EQ(message({}), "accepted");
  ASSERT_EQ(::lchown(path_.c_str(), 65534, 65534), 0);
  EXPECT_NE(message({}).find("belongs to user 65534"), std::string::npos) << message({});
  std::filesystem::remove(ours);
}

TEST_F(ConfigTest, APipeIsNoFileOfOptionsAndNobodyWaitsForIt) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_NE(message({}).find("is no ordinary file"), std::string::npos) << message({});
}

TEST_F(ConfigTest, DefaultsHoldWhenNothingIsSaid) {
  const Config config = load({}).value();
  EXPECT_EQ(config.get_string("sched"), "lws");
  EXPECT_EQ(config.get_int("window"), 4096);
  EXPECT_TRUE(config.get_bool("bind"));
  EXPECT_EQ(config.get_duration_ns("watchdog"), 0);
  EXPECT_EQ(config.get_bytes("memory"), 1 << 30);
  EXPECT_DOUBLE_EQ(config.get_double("ratio"), 0.5);
  EXPECT_EQ(config.origin("sched"), Origin::default_value);
}

TEST_F(ConfigTest, CommandLineOverridesEnvironmentOverridesFile) {
  write_toml("window = 1\nsched = \"eager\"\nratio = 0.25\n[trace]\nfolder = \"out\"\n");
  const Config config =
      load({"--tandem.window=3"}, {{"TANDEM_WINDOW", "2"}, {"TANDEM_RATIO", "0.75"}, {"HOME", "/"}}).value();
  EXPECT_EQ(config.get_int("window"), 3);
  EXPECT_EQ(config.origin("window"), Origin::command_line);
  EXPECT_DOUBLE_EQ(config.get_double("ratio"), 0.75);
  EXPECT_EQ(config.origin("ratio"), Origin::environment);
  EXPECT_EQ(config.get_string("sched"), "eager");
  EXPECT_EQ(config.get_string("trace.folder"), "out");
  EXPECT_EQ(config.entries()[0].where, path_.string() + ":2");
}

TEST_F(ConfigTest, TheProgramOverridesAll) {
  Config config = load({"--tandem.window=3"}).value();
  ASSERT_TRUE(config.set("window", "7"));
  EXPECT_EQ(config.get_int("window"), 7);
  EXPECT_EQ(config.origin("window"), Origin::program);
  EXPECT_FALSE(config.set("window", "none"));
  EXPECT_EQ(config.get_int("window"), 7);
}

TEST_F(ConfigTest, AnOverrideBeatsTheProgram) {
  auto loaded = load({"--tandem.window=5"}, {{"TANDEM_OVERRIDE", "sched=eager  window=3"}, {"TANDEM_WINDOW", "4"}});
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  Config& config = loaded.value();
  EXPECT_TRUE(config.set("window", "7"));
  EXPECT_FALSE(config.set("window", "none"));
  EXPECT_EQ(config.get_int("window"), 3);
  EXPECT_EQ(config.get_string("sched"), "eager");
  EXPECT_EQ(name_of(config.origin("sched")), "override");
  EXPECT_THAT(message({}, {{"TANDEM_OVERRIDE", "sched"}}), HasSubstr("TANDEM_OVERRIDE: sched: write NAME=VALUE"));
  EXPECT_THAT(message({}, {{"TANDEM_OVERRIDE", "sched=nonsense"}}), HasSubstr("TANDEM_OVERRIDE"));
  EXPECT_THAT(message({}, {{"TANDEM_OVERRIDE", "schde=lws"}}), HasSubstr("schde"));
}

TEST_F(ConfigTest, OnlyOurArgumentsAreConsumedAndNoneAfterTwoDashes) {
  std::vector<std::string> words{"prog", "--tandem.window=3", "-n", "5", "--tandem.bind", "--", "--tandem.window=9"};
  const Config config = load(words).value();
  EXPECT_EQ(config.get_int("window"), 3);
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int argc = remove_arguments(static_cast<int>(words.size()), argv.data(), config.consumed_arguments());
  ASSERT_EQ(argc, 5);
  EXPECT_STREQ(argv[0], "prog");
  EXPECT_STREQ(argv[1], "-n");
  EXPECT_STREQ(argv[3], "--");
  EXPECT_STREQ(argv[4], "--tandem.window=9");
  EXPECT_EQ(argv[5], nullptr);
}

TEST_F(ConfigTest, AnUnknownNameIsAnErrorThatSuggestsTheNearest) {
  EXPECT_EQ(message({"--tandem.shed=lws"}), "--tandem.shed is no option of Tandem; did you mean --tandem.sched?");
  EXPECT_EQ(message({}, {{"TANDEM_SHCED", "lws"}}),
            "environment variable TANDEM_SHCED is no option of Tandem; did you mean TANDEM_SCHED?");
  EXPECT_EQ(message({"--tandem.colour=red"}),
            "--tandem.colour is no option of Tandem; `tandem config` lists the options");
  write_toml("bind = false\nwidnow = 3\n");
  EXPECT_EQ(message({}), path_.string() + ":2: there is no option 'widnow'; did you mean window?");
}

TEST_F(ConfigTest, AMalformedValueIsAnErrorThatNamesThePlaceAndWhatIsAccepted) {
  EXPECT_EQ(message({"--tandem.window=0"}),
            "--tandem.window: option window cannot be '0'; accepted: an integer, at least 1");
  EXPECT_EQ(message({}, {{"TANDEM_RATIO", "2"}}),
            "TANDEM_RATIO: option ratio cannot be '2'; accepted: a number, from 0 to 1");
  EXPECT_EQ(message({"--tandem.window"}),
            "--tandem.window needs a value: write --tandem.window=VALUE; accepted: an integer, at least 1");
}

TEST_F(ConfigTest, ReservedVariablesAreLeftAlone) {
  const auto config =
      Config::load(example_registry(), {.environment = {{"TANDEM_RANK", "3"}}, .reserved_variables = {"TANDEM_RANK"}});
  EXPECT_TRUE(config);
}

TEST_F(ConfigTest, VariablesThatSayWhereAPackageIsAreNoOptions) {
  EXPECT_EQ(
      message(
          {},
          {{"TANDEM_ROOT", "/opt/tandem"}, {"TANDEM_HOME", "/opt"}, {"TANDEM_DIR", "/opt"}, {"TANDEM_VERSION", "0.1"}}),
      "accepted");
}

TEST_F(ConfigTest, AFileThatMustExistAndDoesNotIsAnError) {
  EXPECT_TRUE(load({}));
  const auto config = Config::load(example_registry(), {.toml = "/nonexistent.toml", .toml_must_exist = true});
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, ErrorCode::io);
}

/// Random edits of plausible texts, so that the deeper branches are reached too. Each round is accepted or gets a
/// message.
TEST_F(ConfigTest, RandomBytesAreAcceptedOrRefusedButNeverCrash) {
  const char* given = std::getenv("CONFIG_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::printf("seed %llu (repeat with CONFIG_TEST_SEED)\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
  const std::vector<std::string> seeds{"--tandem.window=12",
                                       "--tandem.watchdog=1.5ms",
                                       "--tandem.memory=64KiB",
                                       "sched = \"lws\"\n",
                                       "[trace]\nfolder = 'x'\nratio = 1e-3\n",
                                       "a = [1, {b = 2}]\n",
                                       "--tandem.bind",
                                       ""};
  const auto mutated = [&] {
    std::string text = seeds[below(seeds.size())];
    for (std::size_t edits = below(6); edits > 0; --edits) {
      const auto place = static_cast<std::ptrdiff_t>(below(text.size() + 1));
      const char byte = static_cast<char>(below(256));
      if (below(3) == 0 && place < std::ssize(text)) text.erase(text.begin() + place);
      else text.insert(text.begin() + place, byte);
    }
    return text;
  };
  for (int round = 0; round < 1000; ++round) {
    write_toml(mutated());
    const auto config =
        load({mutated(), mutated()}, {{"TANDEM_" + mutated(), mutated()}, {"TANDEM_MEMORY", mutated()}});
    EXPECT_TRUE(config || !config.error().message.empty());
  }
}

}  // namespace
}  // namespace tandem::base::config_test
