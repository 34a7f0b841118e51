// tandem/model/contention/machine_file_test.cpp: files are read as they were written, and faults are named.
#include "tandem/model/contention/machine_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tandem/model/contention/platforms.hpp"

namespace tandem::model::contention::machine_file_test {
namespace {

using testing::HasSubstr;

StoredMachine henri() {
  StoredMachine stored{
      .machine = soften(find_platform("henri")->machine), .cores = 17, .processor = "Intel(R) Xeon(R) Gold 6140 \"x\""};
  stored.machine.network_mb_s = {11481.1, 11459.6};
  stored.machine.core_gflop_s = 35.5;
  stored.machine.local.softness = 0.125;
  stored.machine.between[1] = {0.5, 0.75};
  return stored;
}

std::string message_of(const std::string& text) {
  const auto parsed = parse_machine(text, "contention.toml");
  return parsed.ok() ? "no error" : parsed.error().message;
}

std::string with(std::string text, const std::string& what, const std::string& instead) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), instead);
}

TEST(MachineFile, IsReadBack) {
  const auto parsed = parse_machine(to_text(henri()), "contention.toml");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  const StoredMachine &stored = parsed.value(), expected = henri();
  EXPECT_EQ(stored.cores, 17U);
  EXPECT_EQ(stored.processor, "Intel(R) Xeon(R) Gold 6140 x") << "quotes would have to be escaped";
  EXPECT_EQ(stored.machine.local.bus, expected.machine.local.bus);
  EXPECT_EQ(stored.machine.remote.bus, expected.machine.remote.bus);
  EXPECT_EQ(stored.machine.local.softness, 0.125);
  EXPECT_EQ(stored.machine.network_mb_s, expected.machine.network_mb_s);
  EXPECT_EQ(stored.machine.core_gflop_s, 35.5);
  EXPECT_EQ(stored.machine.between[1].computation, 0.5);
  EXPECT_EQ(stored.machine.between[1].communication, 0.75);
  EXPECT_EQ(to_text(stored), to_text(parse_machine(to_text(stored), "again").value()));
}

TEST(MachineFile, SaysWhatIsWrong) {
  const std::string text = to_text(henri());
  EXPECT_THAT(message_of(with(text, "alpha = 0.915", "alpha = 1.5")), HasSubstr("alpha"));
  EXPECT_THAT(message_of(with(text, "alpha = 0.915", "alpha = true")), HasSubstr("local.alpha is no number"));
  EXPECT_THAT(message_of(with(text, "alpha = 0.915\n", "")), HasSubstr("local.alpha is missing"));
  EXPECT_THAT(message_of(with(text, "cores = 17", "cores = 1.5")), HasSubstr("cores is no count"));
  EXPECT_THAT(message_of(with(text, "cores = 17", "cores = 0")), HasSubstr("cores is 0"));
  EXPECT_THAT(message_of(with(text, "nodes = 2", "nodes = 1000000")),
              HasSubstr("nodes is 1000000, and at most 1024 can be"));
  EXPECT_THAT(message_of(with(text, "nodes = 2", "nodes = 2\nsockets = 2")),
              HasSubstr("line 10 has sockets, which is not known"));
  EXPECT_THAT(message_of(with(text, "format = 1", "format = 2")), HasSubstr("format 2"));
  EXPECT_THAT(message_of(""), HasSubstr("is no file of memory contention"));
  EXPECT_THAT(message_of("["), HasSubstr("contention.toml"));
  for (std::size_t length = 0; length + 1 < text.size(); length += 7)
    EXPECT_NE(message_of(text.substr(0, length)), "no error") << length;
}

}  // namespace
}  // namespace tandem::model::contention::machine_file_test
