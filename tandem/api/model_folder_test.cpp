// tandem/api/model_folder_test.cpp: files of models that several programs write, and that were damaged.
#include "tandem/api/model_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/configure.hpp"
#include "tandem/base/file_descriptor.hpp"

namespace tandem::model_folder_test {
namespace {

namespace fs = std::filesystem;
using model::CodeletModels;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ModelFiles : public testing::Test {
 protected:
  ModelFiles() {
    std::string name = (fs::temp_directory_path() / "tandem-models-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) folder_ = fs::path(name) / "host";
  }
  ~ModelFiles() override {
    std::error_code error;
    fs::remove_all(folder_.parent_path(), error);
  }
  static CodeletModels learnt(const std::string& codelet, int samples, double ns = 1e5) {
    CodeletModels models{.codelet = codelet, .kinds = {}};
    for (int i = 0; i < samples; ++i) models.kinds[{}].add(4096, ns);
    return models;
  }
  std::vector<std::string> save(const CodeletModels& models) {
    const auto saved = folder().save({&models, 1});
    EXPECT_TRUE(saved.ok()) << saved.error().message;
    return saved.ok() ? saved.value() : std::vector<std::string>();
  }
  std::uint64_t samples_of(const std::string& codelet) {
    const auto read = folder().read(folder().file_of(codelet));
    EXPECT_TRUE(read.ok()) << read.error().message;
    if (!read.ok() || !read.value()) return 0;
    const auto& kinds = read.value()->kinds;
    return kinds.empty() ? 0 : kinds.begin()->second.find(4096)->samples();
  }
  static std::string content_of(const fs::path& file) {
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
  }
  ModelFolder folder(const std::string& machine = "this one") const { return {folder_, machine}; }
  fs::path folder_;
};

TEST_F(ModelFiles, NothingIsWrittenThroughLinks) {
  const fs::path precious = folder_.parent_path() / "precious";
  std::ofstream(precious) << "precious";
  fs::create_directories(folder_);
  fs::create_symlink(precious, folder().file_of("a"));
  fs::create_symlink(precious, folder_ / ("." + folder().file_of("a").filename().string() + ".new"));
  save(learnt("a", 3));
  EXPECT_EQ(samples_of("a"), 3u);
  fs::remove(folder_ / ".lock");
  fs::create_symlink(precious, folder_ / ".lock");
  const CodeletModels models = learnt("b", 3);
  EXPECT_FALSE(folder().save({&models, 1}).ok());
  EXPECT_EQ(content_of(precious), "precious");
}

TEST_F(ModelFiles, NothingIsWrittenIntoAnotherUsersFolder) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  fs::create_directories(folder_);
  ASSERT_EQ(::chown(folder_.c_str(), 65534, 65534), 0);
  const CodeletModels models = learnt("a", 3);
  const auto saved = folder().save({&models, 1});
  ASSERT_FALSE(saved.ok());
  EXPECT_THAT(saved.error().message, HasSubstr("belongs to user 65534"));
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(ModelFiles, APlaceIsFoundForEachMachine) {
  base::Registry registry;
  register_options(registry);
  base::Config config(registry);
  char host[256];
  ASSERT_EQ(gethostname(host, sizeof host), 0);
  const auto place = [&](const base::Environment& environment) { return ModelFolder::place(config, environment); };
  EXPECT_EQ(place({{"HOME", "/home/ada"}}).value(), fs::path("/home/ada/.cache/tandem/models") / host);
  EXPECT_EQ(place({{"HOME", "/home/ada"}, {"XDG_CACHE_HOME", "/scratch"}}).value(),
            fs::path("/scratch/tandem/models") / host);
  EXPECT_THAT(place({}).error().message, HasSubstr("set option model.folder"));
  ASSERT_TRUE(config.set("model.folder", "here").ok());
  EXPECT_EQ(place({}).value(), "here");
}

TEST_F(ModelFiles, EachCodeletHasItsFile) {
  EXPECT_TRUE(folder().read_all().value().empty()) << "no folder yet";
  save(learnt("b", 5));
  save(learnt("../a/b", 5));
  save(learnt("", 5));
  save(learnt(std::string(1000, 'x'), 5));
  save(learnt(std::string(1000, 'x') + "y", 5));
  const auto files = folder().read_all();
  ASSERT_TRUE(files.ok());
  std::vector<std::string> codelets;
  for (const auto& file : files.value()) {
    EXPECT_EQ(file.path.parent_path(), folder_);
    if (file.models.ok()) codelets.push_back(file.models.value().codelet.substr(0, 8));
  }
  EXPECT_THAT(codelets, ElementsAre("../a/b", "b", "xxxxxxxx", "xxxxxxxx"));  // a codelet without a name has no file
  EXPECT_FALSE(fs::exists(folder_.parent_path() / "a"));
}

TEST_F(ModelFiles, WhatIsSavedIsAddedToWhatOthersSavedMeanwhile) {
  save(learnt("gemm", 10));
  CodeletModels first = *folder().read(folder().file_of("gemm")).value(), second = first;
  first.kinds[{}].add(4096, 1e5);
  second.kinds[{}].add(4096, 1e5);
  second.kinds[{}].add(4096, 1e5);
  save(first);
  save(second);
  EXPECT_EQ(samples_of("gemm"), 13U);
}

TEST_F(ModelFiles, SeveralProgramsWriteOneFileAtOnce) {
  constexpr int kPrograms = 4, kSaves = 25;
  std::vector<pid_t> programs;
  for (int program = 0; program < kPrograms; ++program) {
    const pid_t process = fork();
    ASSERT_GE(process, 0);
    if (process == 0) {
      bool good = true;
      for (int i = 0; i < kSaves; ++i) {
        const CodeletModels news = learnt("gemm", 1);
        good = folder().save({&news, 1}).ok() && good;
      }
      _exit(good ? 0 : 1);
    }
    programs.push_back(process);
  }
  unsigned reads = 0;
  for (std::size_t ended = 0; ended < programs.size();) {
    int status = 0;
    const auto read = folder().read(folder().file_of("gemm"));
    EXPECT_TRUE(read.ok()) << read.error().message;  // it is complete whenever it is read
    ++reads;
    if (waitpid(programs[ended], &status, WNOHANG) == 0) continue;
    EXPECT_EQ(status, 0);
    ++ended;
  }
  EXPECT_EQ(samples_of("gemm"), 100U);
  EXPECT_GT(reads, 3U);
}

TEST_F(ModelFiles, ADamagedFileGoesAsideWithAMessage) {
  save(learnt("gemm", 10));
  const fs::path file = folder().file_of("gemm");
  const std::string text = content_of(file);
  for (const std::string& damaged :
       {text.substr(0, text.size() / 2), std::string(), std::string(5000, '\0'), text + "x"}) {
    std::ofstream(file, std::ios::binary) << damaged;
    EXPECT_THAT(folder().read(file).error().message, HasSubstr("gemm.toml"));
    EXPECT_THAT(save(learnt("gemm", 3)), ElementsAre(HasSubstr("put aside as gemm.toml.refused")));
    EXPECT_EQ(content_of(file.string() + ".refused"), damaged);
    EXPECT_EQ(samples_of("gemm"), 3U);
  }
}

TEST_F(ModelFiles, AFileOfAnotherMachineIsRefused) {
  save(learnt("gemm", 10));
  const ModelFolder other = folder("another one");
  const auto files = other.read_all();
  ASSERT_EQ(files.value().size(), 1U);
  EXPECT_THAT(files.value()[0].models.error().message,
              HasSubstr("is of another machine ('this one', and this one is 'another one')"));
  const CodeletModels news = learnt("gemm", 2);
  EXPECT_THAT(other.save({&news, 1}).value(), ElementsAre(HasSubstr("put aside")));
  EXPECT_TRUE(other.read(other.file_of("gemm")).value().has_value());
}

TEST_F(ModelFiles, PowersAreAFileOfTheirOwnWhichRunsAddTo) {
  EXPECT_TRUE(folder().read_powers().value().is_empty());
  EXPECT_THAT(folder().save_powers({}).value(), IsEmpty());
  EXPECT_FALSE(fs::exists(folder_)) << "nothing was measured";
  model::PowerTable measured;
  measured.idle["cpu"] = {40, 1, 10};
  measured.kernels[{"cpu", "gemm"}] = {10, 1, 10};
  EXPECT_THAT(folder().save_powers(measured).value(), IsEmpty());
  measured.kernels[{"cpu", "gemm"}] = {20, 1, 10};
  EXPECT_THAT(folder().save_powers(measured).value(), IsEmpty());
  const model::PowerTable sum = folder().read_powers().value();
  EXPECT_NEAR(sum.kernels.at({"cpu", "gemm"}).watts, 18, 1e-6) << "what was stored counts with twice its error";
  EXPECT_NEAR(sum.kernels.at({"cpu", "gemm"}).seconds, 20, 1e-6);
  EXPECT_TRUE(folder().read_all().value().empty()) << "it is no file of durations";
  EXPECT_THAT(folder("another one").read_powers().error().message, HasSubstr("is of another machine"));
  std::ofstream(folder_ / "powers.watts") << "format = 1\n";
  EXPECT_THAT(folder().save_powers(measured).value(), ElementsAre(HasSubstr("put aside as powers.watts.refused")));
  EXPECT_EQ(folder().read_powers().value().kernels.at({"cpu", "gemm"}).watts, 20);
  EXPECT_THAT(folder().prune({}).value(), ElementsAre(folder_ / "powers.watts.refused"));
}

TEST_F(ModelFiles, WhatIsNoFileIsRefusedAndNotWaitedFor) {
  fs::create_directories(folder_);
  ASSERT_EQ(mkfifo(folder().file_of("pipe").c_str(), 0600), 0);
  fs::create_directory(folder().file_of("folder"));
  const auto files = folder().read_all();
  ASSERT_TRUE(files.ok());
  ASSERT_EQ(files.value().size(), 2U);
  for (const auto& file : files.value()) EXPECT_THAT(file.models.error().message, HasSubstr("is no file of models"));
}

TEST_F(ModelFiles, AFolderThatCannotBeMadeIsAnError) {
  std::ofstream(folder_.parent_path() / "file") << "x";
  const CodeletModels news = learnt("gemm", 1);
  const auto saved = ModelFolder(folder_.parent_path() / "file" / "host", "m").save({&news, 1});
  ASSERT_FALSE(saved.ok());
  EXPECT_THAT(saved.error().message, HasSubstr("cannot be made"));
}

TEST_F(ModelFiles, AStoppedWriterIsNotWaitedForForEver) {
  save(learnt("gemm", 1));
  base::FileDescriptor stopped(open((folder_ / ".lock").c_str(), O_RDWR));
  ASSERT_EQ(flock(stopped.get(), LOCK_EX), 0);
  const CodeletModels news = learnt("gemm", 1);
  const auto saved = ModelFolder(folder_, "this one", std::chrono::milliseconds(50)).save({&news, 1});
  ASSERT_FALSE(saved.ok());
  EXPECT_THAT(saved.error().message, HasSubstr("is one stopped?"));
  stopped.close();
  save(news);
  EXPECT_EQ(samples_of("gemm"), 2U);
}

TEST_F(ModelFiles, PruningRemovesWhatIsOfNoUse) {
  EXPECT_THAT(folder().prune({}).value(), IsEmpty());
  save(learnt("good", 1));
  save(learnt("old", 1));
  std::ofstream(folder().file_of("bad")) << "x";
  std::ofstream(folder_ / ".good.toml.new") << "x";
  std::ofstream(folder_ / "worse.toml.refused") << "x";
  std::ofstream(folder_ / "notes.txt") << "of the user";
  const auto names = [](const std::vector<fs::path>& files) {
    std::vector<std::string> result;
    for (const fs::path& file : files) result.push_back(file.filename().string());
    return result;
  };
  EXPECT_THAT(names(folder().prune({}).value()), ElementsAre(".good.toml.new", "bad.toml", "worse.toml.refused"));
  fs::last_write_time(folder().file_of("old"), fs::file_time_type::clock::now() - std::chrono::hours(48));
  EXPECT_THAT(names(folder().prune(std::chrono::hours(24)).value()), ElementsAre("old.toml"));
  EXPECT_THAT(names(folder().prune({}, "good").value()), ElementsAre("good.toml"));
  EXPECT_TRUE(fs::exists(folder_ / "notes.txt"));
}

}  // namespace
}  // namespace tandem::model_folder_test
