// tandem/comm/bootstrap/secret_test.cpp: secrets in files, texts and descriptors, and proofs of knowing them.
#include "tandem/base/file_descriptor.hpp"
#include "tandem/comm/bootstrap/secret.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/comm/bootstrap/secret_descriptor.hpp"

namespace tandem::comm::internal::secret_test {
namespace {

using base::ErrorCode;
using testing::HasSubstr;

class SecretFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "tandem_secret_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path write(const std::string& content, mode_t mode) {
    const auto file = folder_ / "given";
    std::ofstream(file) << content;
    chmod(file.c_str(), mode);
    return file;
  }
  std::filesystem::path folder_;
};

TEST_F(SecretFile, IsMadeOnceByTheFirstProcess) {
  const auto folder = folder_ / ".tandem";
  std::vector<std::thread> threads;
  std::vector<JobSecret> secrets(16);
  for (JobSecret& secret : secrets)
    threads.emplace_back([&] {
      const auto made = user_secret(folder);
      ASSERT_TRUE(made) << made.error().message;
      secret = made.value();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set<JobSecret>(secrets.begin(), secrets.end()).size(), 1u);
  struct stat status {};
  ASSERT_EQ(stat((folder / "secret").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ASSERT_EQ(stat(folder.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1) << "a draft was left behind";
}

TEST_F(SecretFile, IsNotMadeInAnotherUsersFolder) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  const auto folder = folder_ / ".tandem";
  std::filesystem::create_directory(folder);
  ASSERT_EQ(chown(folder.c_str(), 65534, 65534), 0);
  const auto made = user_secret(folder);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("belongs to user 65534"));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST_F(SecretFile, ThatOthersCanReadIsRefused) {
  for (const mode_t mode : {0640u, 0604u, 0644u, 0660u}) {
    const auto secret = secret_of_file(write("a secret of enough characters\n", mode));
    ASSERT_FALSE(secret);
    EXPECT_EQ(secret.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(secret.error().message, HasSubstr("may be read by others"));
  }
  EXPECT_TRUE(secret_of_file(write("a secret of enough characters\n", 0600)));
  EXPECT_TRUE(secret_of_file(write("a secret of enough characters\n", 0400)));
}

TEST_F(SecretFile, ThatIsNoOrdinaryFileOrMissingIsRefused) {
  EXPECT_THAT(secret_of_file(folder_).error().message, HasSubstr("is no ordinary file"));
  EXPECT_EQ(secret_of_file(folder_ / "none").error().code, ErrorCode::not_found);
  const auto pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(secret_of_file(pipe)) << "and does not hang";
}

TEST_F(SecretFile, ThatIsTooShortIsRefusedWithoutQuotingIt) {
  const auto secret = secret_of_file(write("hunter2", 0600));
  ASSERT_FALSE(secret);
  EXPECT_THAT(secret.error().message, HasSubstr("7 characters"));
  EXPECT_THAT(secret.error().message, testing::Not(HasSubstr("hunter2")));
}

TEST(BootstrapSecret, BlanksAroundATextDoNotCount) {
  const auto secret = secret_of_text("0123456789abcdef", "x");
  EXPECT_EQ(secret.value(), secret_of_text("  0123456789abcdef\n", "x").value());
  EXPECT_NE(secret.value(), secret_of_text("0123456789abcdeF", "x").value());
}

TEST(BootstrapSecret, ADescriptorIsMadeUnderALowLimitToo) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 60;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  const auto descriptor = make_secret_descriptor("the secret");
  low.rlim_cur = 3;  // the standard streams
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  const auto none = make_secret_descriptor("the secret");
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(descriptor) << descriptor.error().message;
  EXPECT_GE(descriptor.value().get(), 30);
  EXPECT_EQ(read_secret_descriptor(descriptor.value().get()).value(), "the secret");
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("may have 3 file descriptors"));
}

TEST(BootstrapSecret, ADescriptorCanBeReadManyTimesAndOthersAreRefused) {
  const auto descriptor = make_secret_descriptor("the secret");
  ASSERT_TRUE(descriptor);
  const int number = descriptor.value().get();
  EXPECT_GE(number, 100);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(read_secret_descriptor(number).value(), "the secret");
  EXPECT_NE(write(number, "x", 1), 1) << "it is sealed";
  EXPECT_THAT(read_secret_descriptor(9999).error().message, HasSubstr("--secret-in-environment"));
  const base::FileDescriptor other(open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(read_secret_descriptor(other.get()));
}

}  // namespace
}  // namespace tandem::comm::internal::secret_test
