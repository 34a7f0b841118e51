// tests/comm_modules/modules_test.cpp: modules that are there, that are not, and that are not what they seem.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "exchange.hpp"
#include "tandem/comm/transport/load_module.hpp"
#include "tests/comm_processes/team.hpp"

namespace tandem::comm::modules_test {
namespace {

using comm_processes::Member;
using comm_processes::Team;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Why an endpoint of a job of one rank cannot be opened; empty when it can.
std::string refusal(const EndpointOptions& options) {
  base::Log log(base::LogLevel::error);
  auto opened = Endpoint::open(Job{}, options, log);
  return opened ? "" : opened.error().message;
}

/// The libraries that this process has loaded, among other mappings.
std::string mappings() {
  std::ostringstream text;
  text << std::ifstream("/proc/self/maps").rdbuf();
  return text.str();
}

TEST(CommModules, ProgramsThatDoNotAskForATransportDoNotLoadItsLibraries) {
  EXPECT_EQ(refusal({.transports = {"tcp"}}), "");
  EXPECT_THAT(mappings(), AllOf(HasSubstr("libc.so"), Not(HasSubstr("libucp")), Not(HasSubstr("libucs")),
                                Not(HasSubstr("libmpi"))));
}

TEST(CommModules, AModuleThatIsNotThereIsAnErrorWithThePackageToInstall) {
  const std::string folder = testing::TempDir();
  EXPECT_THAT(
      refusal({.transports = {"ucx"}, .modules = folder}),
      AllOf(HasSubstr(folder), HasSubstr("libtandem_comm_ucx.so"), HasSubstr("libucx-dev"), HasSubstr("comm.modules")));
  EXPECT_THAT(refusal({.transports = {"mpi"}, .modules = folder}),
              AllOf(HasSubstr("libtandem_comm_mpi.so"), HasSubstr("libopenmpi-dev")));
}

TEST(CommModules, AModuleOfAnotherVersionIsRefusedWithBothVersionsNamed) {
  EXPECT_THAT(
      refusal({.transports = {"ucx"}, .modules = OLD_MODULES}),
      AllOf(HasSubstr(OLD_MODULES), HasSubstr("Tandem 0.0.7"), HasSubstr(std::string("Tandem ") + internal::kVersion)));
}

TEST(CommModules, AFileThatIsNoModuleIsRefused) {
  EXPECT_THAT(refusal({.transports = {"mpi"}, .modules = OLD_MODULES}), HasSubstr("is no transport of Tandem"));
}

TEST(CommModules, AllTransportsAreNamedWhenOneIsUnknown) {
  EXPECT_THAT(refusal({.transports = {"ucs"}}),
              AllOf(HasSubstr("shm, tcp, ucx and mpi"), HasSubstr("did you mean ucx?")));
}

TEST(CommModules, RanksSpeakOverUcxFromItsModule) {
  if (!UCX_MODULE) GTEST_SKIP() << "built without UCX (libucx-dev)";
  setenv("UCX_NET_DEVICES", "lo", 0);  // other interfaces may come and go while the test runs
  for (const std::string folder : {"", MODULES}) {
    Team team(3, {.transports = {"ucx"}, .modules = folder}, [](Member& member) {
      const std::string wrong = exchange(member.endpoint(), "ucx");
      member.expect(wrong.empty(), wrong);
    });
    EXPECT_EQ(team.finish(), "");
  }
}

}  // namespace
}  // namespace tandem::comm::modules_test
