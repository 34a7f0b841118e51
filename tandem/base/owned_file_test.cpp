// tandem/base/owned_file_test.cpp: links, pipes, second names and files of other users are refused.
#include "tandem/base/owned_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::base::owned_file_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr uid_t kNobody = 65534;

class OwnedFiles : public testing::Test {
 protected:
  OwnedFiles() {
    std::string name = (fs::temp_directory_path() / "tandem-owned-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) path_ = name;
    fs::create_directory(path_ / "folder");
    std::ofstream(path_ / "precious") << "precious";
  }
  ~OwnedFiles() override {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  static std::string content_of(const fs::path& file) {
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
  }
  fs::path inside(const std::string& name) const { return path_ / "folder" / name; }
  OwnedFolder folder(Owners owners = Owners::self) const {
    auto opened = OwnedFolder::open(path_ / "folder", owners);
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    return std::move(opened).value();
  }
  /// Gives the file to another user.
  static bool give_away(const fs::path& file) { return ::lchown(file.c_str(), kNobody, kNobody) == 0; }
  void expect_untouched() const { EXPECT_EQ(content_of(path_ / "precious"), "precious"); }

  fs::path path_;
};

TEST_F(OwnedFiles, AreReadWrittenCutAndListed) {
  const OwnedFolder own = folder();
  const auto made = own.file("a", O_RDWR | O_CREAT);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_TRUE(made.value().write_at(0, "0123456789", 10));
  EXPECT_TRUE(made.value().resize(4));
  EXPECT_EQ(made.value().bytes(), 4u);
  EXPECT_EQ(made.value().owner(), ::geteuid());
  EXPECT_TRUE(made.value().is_at(inside("a")));
  EXPECT_FALSE(made.value().is_at(path_ / "precious"));
  const auto read = own.file("a", O_RDONLY);
  EXPECT_EQ(read.value().text(4).value(), "0123");
  EXPECT_EQ(read.value().text(3).error().code, ErrorCode::malformed);
  EXPECT_TRUE(own.make_folder("b").ok());
  EXPECT_TRUE(own.make_folder("b").ok());
  auto names = own.names().value();
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(own.has("a"));
  EXPECT_TRUE(own.remove("a").ok());
  EXPECT_TRUE(own.remove("a").ok());
  EXPECT_FALSE(own.has("a"));
  EXPECT_EQ(own.file("a", O_RDONLY).error().code, ErrorCode::not_found);
  EXPECT_EQ(own.folder("c").error().code, ErrorCode::not_found);
  EXPECT_EQ(OwnedFolder::open(inside("c"), Owners::self).error().code, ErrorCode::not_found);
  EXPECT_EQ(OwnedFile::open(inside("c"), Owners::self).error().code, ErrorCode::not_found);
}

TEST_F(OwnedFiles, ReadingBehindTheEndOfAFileThatWasCutFailsWithoutASignal) {
  std::ofstream(inside("a")) << std::string(100'000, 'x');
  const auto file = folder().file("a", O_RDONLY);
  ASSERT_EQ(::truncate(inside("a").c_str(), 10), 0);
  char bytes[100];
  EXPECT_FALSE(file.value().read_at(50'000, bytes, sizeof bytes));
  EXPECT_FALSE(file.value().read_at(0, bytes, sizeof bytes));
  EXPECT_TRUE(file.value().read_at(0, bytes, 10));
}

TEST_F(OwnedFiles, LinksAreNeverFollowed) {
  const OwnedFolder own = folder();
  fs::create_symlink(path_ / "precious", inside("link"));
  fs::create_symlink(path_ / "folder", inside("there"));
  fs::create_symlink(path_ / "not-made", inside("dangling"));
  for (const int flags : {O_RDONLY, O_RDWR | O_CREAT, O_WRONLY | O_CREAT | O_APPEND}) {
    const auto file = own.file("link", flags);
    ASSERT_FALSE(file.ok());
    EXPECT_THAT(file.error().message, HasSubstr("it is a symbolic link"));
    EXPECT_FALSE(own.file("dangling", flags).ok());
  }
  EXPECT_FALSE(own.folder("there").ok());
  EXPECT_FALSE(own.make_folder("there").ok());
  EXPECT_FALSE(fs::exists(path_ / "not-made"));
  EXPECT_EQ(own.target_of("link").value(), path_ / "precious");
  EXPECT_EQ(own.target_of("none").error().code, ErrorCode::not_found);
  EXPECT_TRUE(own.remove("link").ok());
  EXPECT_TRUE(fs::exists(path_ / "precious"));
  expect_untouched();
}

TEST_F(OwnedFiles, ANewFileTakesThePlaceOfALinkAndOfASecondName) {
  const OwnedFolder own = folder();
  fs::create_symlink(path_ / "precious", inside("link"));
  fs::create_hard_link(path_ / "precious", inside("second"));
  for (const char* name : {"link", "second"}) {
    const auto made = own.new_file(name);
    ASSERT_TRUE(made.ok()) << made.error().message;
    EXPECT_TRUE(made.value().write_at(0, "new", 3));
    EXPECT_EQ(content_of(inside(name)), "new");
  }
  fs::create_symlink(path_ / "precious", inside(draft_name("a")));
  EXPECT_TRUE(own.replace("a", "new").ok());
  EXPECT_EQ(content_of(inside("a")), "new");
  EXPECT_FALSE(fs::is_symlink(inside("a")));
  expect_untouched();
}

TEST_F(OwnedFiles, AFileWithASecondNameIsReadAndNotWritten) {
  fs::create_hard_link(path_ / "precious", inside("second"));
  EXPECT_TRUE(folder().file("second", O_RDONLY).ok());
  EXPECT_THAT(folder().file("second", O_RDWR).error().message, HasSubstr("a second name"));
  expect_untouched();
}

TEST_F(OwnedFiles, PipesAndFoldersAreRefusedAndNobodyWaitsForAPipe) {
  ASSERT_EQ(::mkfifo(inside("pipe").c_str(), 0600), 0);
  fs::create_directory(inside("folder"));
  EXPECT_THAT(folder().file("pipe", O_RDONLY).error().message, HasSubstr("is no ordinary file"));
  EXPECT_FALSE(folder().file("pipe", O_WRONLY).ok());
  EXPECT_THAT(folder().file("folder", O_RDONLY).error().message, HasSubstr("is no ordinary file"));
  EXPECT_FALSE(OwnedFile::open(inside("pipe"), Owners::anyone).ok());
  EXPECT_FALSE(OwnedFile::open("/dev/zero", Owners::anyone).ok());
}

TEST_F(OwnedFiles, AFolderStaysTheOneThatWasCheckedWhenItsPathChanges) {
  const OwnedFolder own = folder();
  fs::rename(path_ / "folder", path_ / "moved");
  fs::create_directory(path_ / "other");
  fs::create_symlink(path_ / "other", path_ / "folder");
  EXPECT_TRUE(own.replace("a", "new").ok());
  EXPECT_TRUE(fs::exists(path_ / "moved" / "a"));
  EXPECT_FALSE(fs::exists(path_ / "other" / "a"));
}

TEST_F(OwnedFiles, OfAnotherUserAreRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  std::ofstream(inside("a")) << "options";
  ASSERT_TRUE(give_away(inside("a")));
  const OwnedFolder own = folder();
  for (const int flags : {O_RDONLY, O_RDWR | O_CREAT, O_WRONLY | O_CREAT | O_APPEND}) {
    const auto file = own.file("a", flags);
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.error().code, ErrorCode::io);
    EXPECT_THAT(file.error().message, HasSubstr("belongs to user 65534"));
  }
  EXPECT_FALSE(OwnedFile::open(inside("a"), Owners::self).ok());
  EXPECT_FALSE(OwnedFile::open(inside("a"), Owners::self_or_root).ok());
  EXPECT_TRUE(OwnedFile::open(inside("a"), Owners::anyone).ok());
  ASSERT_TRUE(give_away(path_ / "folder"));
  EXPECT_FALSE(OwnedFolder::open(path_ / "folder", Owners::self).ok());
  EXPECT_FALSE(OwnedFolder::open(path_ / "folder", Owners::self_or_root).ok());
  EXPECT_TRUE(OwnedFolder::open(path_ / "folder", Owners::anyone).ok());
}

TEST_F(OwnedFiles, ALinkOfAnotherUserToAFileOfOursIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  fs::create_symlink(path_ / "precious", path_ / "link");
  EXPECT_TRUE(OwnedFile::open(path_ / "link", Owners::self).ok());
  ASSERT_TRUE(give_away(path_ / "link"));
  EXPECT_FALSE(OwnedFile::open(path_ / "link", Owners::self).ok());
}

TEST(Owners, AreAccepted) {
  const uid_t self = ::geteuid(), other = self + 1;
  EXPECT_TRUE(accepts(Owners::self, self));
  EXPECT_FALSE(accepts(Owners::self, other));
  EXPECT_TRUE(accepts(Owners::self_or_root, 0));
  EXPECT_FALSE(accepts(Owners::self_or_root, other));
  EXPECT_TRUE(accepts(Owners::anyone, other));
}

}  // namespace
}  // namespace tandem::base::owned_file_test
