// tools/trace/check_test_support.hpp: shared by tests of `tandem trace check`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "tools/trace/check.hpp"

namespace tandem::tools::test {

inline TraceCheck checked(const std::filesystem::path& folder) {
  auto run = trace::TraceReader::open(folder);
  EXPECT_TRUE(run.ok()) << run.error().message;
  return run.ok() ? check(*run.value()) : TraceCheck{};
}

inline std::uint64_t counted(const TraceCheck& result, const std::string& account, const std::string& what) {
  for (const Account& one : result.accounts)
    if (one.name == account)
      for (const auto& [name, count] : one.counts)
        if (name == what) return count;
  ADD_FAILURE() << account << " has no count of what is " << what;
  return 0;
}

}  // namespace tandem::tools::test
