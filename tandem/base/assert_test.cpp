// tandem/base/assert_test.cpp: which assertions are checked when.
#include "tandem/base/assert.hpp"

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace tandem::base::assert_test {
namespace {

/// What an audit looks at; counts its looks.
struct Audited {
  int looks = 0;
  bool is_sound(bool sound) {
    ++looks;
    return sound;
  }
};

TEST(Asserts, AuditsLookOnlyIfTheProgramWasStartedSo) {
  Audited audited;
  TANDEM_AUDIT_ASSERT(audited.is_sound(true));
  EXPECT_EQ(audited.looks, audits ? 1 : 0);
}

TEST(AssertsDeathTest, AnAuditThatFailsEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process of its own, which reads the variable anew
  const char* const before = std::getenv("TANDEM_AUDIT");
  const std::string saved = before != nullptr ? before : "";
  setenv("TANDEM_AUDIT", "1", 1);
  EXPECT_DEATH(TANDEM_AUDIT_ASSERT(Audited().is_sound(false)), "assertion failed at .*assert_test.cpp.*is_sound");
  if (before != nullptr) setenv("TANDEM_AUDIT", saved.c_str(), 1);
  else unsetenv("TANDEM_AUDIT");
}

}  // namespace
}  // namespace tandem::base::assert_test
