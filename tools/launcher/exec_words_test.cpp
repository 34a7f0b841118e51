// tools/launcher/exec_words_test.cpp: texts for exec().
#include "tools/launcher/exec_words.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

namespace tandem::tools::exec_words_test {
namespace {

TEST(ExecWords, TheEnvironmentIsOursWithWhatIsAddedInItsPlace) {
  setenv("TANDEM_TEST_KEPT", "a=b", 1);
  setenv("TANDEM_TEST_CHANGED", "old", 1);
  const std::pair<std::string, std::string> added[] = {{"TANDEM_TEST_CHANGED", "new"}, {"TANDEM_TEST_FRESH", ""}};
  const std::vector<std::string> entries = environment_with(added);
  EXPECT_THAT(entries,
              testing::IsSupersetOf({"TANDEM_TEST_KEPT=a=b", "TANDEM_TEST_CHANGED=new", "TANDEM_TEST_FRESH="}));
  EXPECT_THAT(entries, testing::Not(testing::Contains("TANDEM_TEST_CHANGED=old")));
}

TEST(ExecWords, PointersEndWithNull) {
  std::vector<std::string> words{"ls", "-l"};
  const std::vector<char*> pointers = pointers_to(words);
  EXPECT_THAT(pointers, testing::ElementsAre(testing::StrEq("ls"), testing::StrEq("-l"), testing::IsNull()));
}

}  // namespace
}  // namespace tandem::tools::exec_words_test
