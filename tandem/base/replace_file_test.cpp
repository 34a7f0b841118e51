// tandem/base/replace_file_test.cpp: a file has its old content or its new content.
#include "tandem/base/replace_file.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace tandem::base::replace_file_test {
namespace {

namespace fs = std::filesystem;

class ReplaceFile : public testing::Test {
 protected:
  ReplaceFile() {
    std::string name = (fs::temp_directory_path() / "tandem-replace-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) folder_ = name;
  }
  ~ReplaceFile() override {
    std::error_code error;
    fs::remove_all(folder_, error);
  }
  static std::string content_of(const fs::path& file) {
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
  }

  fs::path folder_;
};

TEST_F(ReplaceFile, MakesTheFileOrReplacesItsContent) {
  ASSERT_FALSE(folder_.empty());
  const fs::path file = folder_ / "facts.json";
  ASSERT_TRUE(replace_file(file, "first, the longer one"));
  EXPECT_EQ(content_of(file), "first, the longer one");
  ASSERT_TRUE(replace_file(file, std::string("two\0", 4)));
  EXPECT_EQ(content_of(file), std::string("two\0", 4));
  EXPECT_FALSE(fs::exists(unfinished(file)));
}

TEST_F(ReplaceFile, AReaderKeepsTheContentThatItOpened) {
  const fs::path file = folder_ / "facts.json";
  ASSERT_TRUE(replace_file(file, "old"));
  std::ifstream reader(file);
  ASSERT_TRUE(replace_file(file, "new"));
  std::string read;
  reader >> read;
  EXPECT_EQ(read, "old");
}

TEST_F(ReplaceFile, LeavesTheFileAloneWhenItCannotWriteBesideIt) {
  const fs::path file = folder_ / "facts.json";
  ASSERT_TRUE(replace_file(file, "old"));
  ASSERT_TRUE(fs::create_directory(unfinished(file)));
  const auto replaced = replace_file(file, "new");
  ASSERT_FALSE(replaced);
  EXPECT_EQ(replaced.error().code, ErrorCode::io);
  EXPECT_EQ(content_of(file), "old");
}

TEST_F(ReplaceFile, WritesThroughNoLinkThatLiesInItsPlace) {
  const fs::path file = folder_ / "facts.json", other = folder_ / "precious";
  std::ofstream(other) << "precious";
  fs::create_symlink(other, unfinished(file));
  fs::create_symlink(other, file);
  const auto replaced = replace_file(file, "new");
  ASSERT_TRUE(replaced) << replaced.error().message;
  EXPECT_EQ(content_of(file), "new");
  EXPECT_FALSE(fs::is_symlink(file));
  EXPECT_EQ(content_of(other), "precious");
}

TEST_F(ReplaceFile, SaysWhereAndWhyItCannotWrite) {
  const auto replaced = replace_file("/proc/self/none", "new");
  ASSERT_FALSE(replaced);
  EXPECT_NE(replaced.error().message.find("/proc/self/"), std::string::npos) << replaced.error().message;
}

TEST(Unfinished, IsAHiddenFileOfTheSameFolder) {
  EXPECT_EQ(unfinished("/a/b.json"), fs::path("/a/.b.json.new"));
  EXPECT_EQ(unfinished("b.json"), fs::path(".b.json.new"));
}

}  // namespace
}  // namespace tandem::base::replace_file_test
