// tandem/base/file_descriptor_test.cpp: each descriptor is closed once, by its last owner.
#include "tandem/base/file_descriptor.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tandem/base/shortage.hpp"

namespace tandem::base::file_descriptor_test {
namespace {

bool is_open(int number) { return ::fcntl(number, F_GETFD) >= 0; }

FileDescriptor open_null() { return FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

TEST(FileDescriptor, OwnsNothingAtFirstOrAfterAFailedCall) {
  EXPECT_FALSE(FileDescriptor());
  const FileDescriptor failed(::open("/dev/null/none", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(failed);
  EXPECT_EQ(failed.get(), -1);
}

TEST(FileDescriptor, ClosesAtTheEndOfItsLife) {
  int number = -1;
  {
    const FileDescriptor file = open_null();
    ASSERT_TRUE(file);
    number = file.get();
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(FileDescriptor, MovingPassesTheDescriptorOn) {
  FileDescriptor first = open_null();
  const int number = first.get();
  FileDescriptor second(std::move(first));
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): a moved-from owner is empty by contract
  EXPECT_EQ(second.get(), number);
  EXPECT_TRUE(is_open(number));
}

TEST(FileDescriptor, AssignmentClosesWhatItReplaces) {
  FileDescriptor kept = open_null();
  FileDescriptor replaced = open_null();
  const int old = replaced.get();
  const int number = kept.get();
  replaced = std::move(kept);
  EXPECT_FALSE(is_open(old));
  EXPECT_EQ(replaced.get(), number);
  FileDescriptor& itself = replaced;
  replaced = std::move(itself);
  EXPECT_TRUE(is_open(number));
}

TEST(FileDescriptor, CloseKeepsErrnoAndMayBeRepeated) {
  FileDescriptor file = open_null();
  const int number = file.get();
  errno = EAGAIN;
  file.close();
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_FALSE(is_open(number));
  file.close();
  EXPECT_FALSE(file);
}

TEST(FileDescriptor, TheLimitOfAProcessIsRaised) {
  const pid_t child = fork();
  if (child == 0) {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 64;
    setrlimit(RLIMIT_NOFILE, &limit);
    raise_descriptor_limit();
    getrlimit(RLIMIT_NOFILE, &limit);
    _exit(limit.rlim_cur == limit.rlim_max ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Shortage, LastsWhenThereIsNoneForItsWholePatience) {
  Shortage shortage(100);
  EXPECT_FALSE(shortage.lasts(1000));
  EXPECT_FALSE(shortage.lasts(1099));
  EXPECT_TRUE(shortage.lasts(1100));
  shortage.end();
  EXPECT_FALSE(shortage.lasts(2000));
}

TEST(Shortage, OneDescriptorIsSetAsideForAMoment) {
  set_spare_descriptor_aside();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(open_null().get());
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(open_null());
    with_spare_descriptor([] { EXPECT_TRUE(open_null()); });
  }
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST(SystemErrorText, NamesTheLimitAndTheRemedyWhenDescriptorsHaveRunOut) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const std::string text = system_error_text(EMFILE);
  EXPECT_NE(text.find("may have " + std::to_string(limit.rlim_cur) + " file descriptors"), std::string::npos) << text;
  EXPECT_NE(text.find("ulimit -n"), std::string::npos) << text;
  EXPECT_NE(system_error_text(ENFILE).find("fs.file-max"), std::string::npos);
  EXPECT_EQ(system_error_text(ECONNREFUSED), "Connection refused");
}

}  // namespace
}  // namespace tandem::base::file_descriptor_test
