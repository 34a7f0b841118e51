// tandem/model/tasks/size_model_test.cpp: known sizes by their history, others by the law, within bounded memory.
#include "tandem/model/tasks/size_model.hpp"

#include <gtest/gtest.h>

#include "tandem/model/tasks/random_durations.hpp"

namespace tandem::model::size_model_test {
namespace {

double truth(double bytes) { return 1e-3 * bytes * std::sqrt(bytes) + 300; }

SizeModel learnt(RandomDurations& random) {
  SizeModel model;
  for (int round = 0; round < 10; ++round)
    for (std::uint64_t bytes = 1000; bytes < 1'000'000; bytes *= 3)
      model.add(bytes, random.around(truth(static_cast<double>(bytes)), 0.03));
  return model;
}

TEST(SizeModel, AMeasuredSizeHasItsHistory) {
  RandomDurations random(1);
  SizeModel model = learnt(random);
  model.add(5000, 77);
  for (int i = 0; i < 3; ++i) model.add(5000, 77);
  EXPECT_EQ(model.estimate(5000).mean_ns, 77);  // not as the law says
  EXPECT_EQ(model.estimate(5000).samples, 4U);
}

TEST(SizeModel, OtherSizesFollowTheLaw) {
  RandomDurations random(2);
  SizeModel model = learnt(random);
  for (const std::uint64_t bytes : {2000UL, 50'000UL, 2'000'000UL}) {
    const Estimate estimate = model.estimate(bytes);
    EXPECT_TRUE(estimate.known) << bytes;
    EXPECT_NEAR(estimate.mean_ns / truth(static_cast<double>(bytes)), 1, 0.08) << bytes;
  }
  model.add(50'000, 1);  // one duration decides nothing yet
  EXPECT_NEAR(model.estimate(50'000).mean_ns / truth(50'000), 1, 0.08);
}

TEST(SizeModel, TheLawFollowsAChangeOfSpeed) {
  RandomDurations random(3);
  SizeModel model = learnt(random);
  const double before = model.estimate(50'000).mean_ns;
  for (int round = 0; round < 50; ++round)
    for (std::uint64_t bytes = 1000; bytes < 1'000'000; bytes *= 3)
      model.add(bytes, random.around(2 * truth(static_cast<double>(bytes)), 0.03));
  EXPECT_NEAR(model.estimate(50'000).mean_ns / before, 2, 0.15);
}

TEST(SizeModel, ManySizesTakeBoundedMemory) {
  SizeModel model;
  for (int i = 0; i < 4; ++i) model.add(1, 10);
  for (std::uint64_t bytes = 2; bytes < 1000; ++bytes) {
    model.add(bytes, 10);
    model.add(1, 10);  // stays, since it is used
  }
  EXPECT_EQ(model.entries().size(), SizeModel::kSizes);
  EXPECT_NE(model.find(1), nullptr);
  EXPECT_NE(model.find(999), nullptr);
  EXPECT_EQ(model.find(2), nullptr);
}

TEST(SizeModel, ShapesOfEqualBytesAreApart) {
  SizeModel model;
  for (int i = 0; i < 10; ++i) {
    model.add({11, 4096}, 100);
    model.add({22, 4096}, 900);
  }
  EXPECT_EQ(model.estimate({11, 0}).mean_ns, 100);  // a shape that is known needs no bytes
  EXPECT_EQ(model.estimate({22, 4096}).mean_ns, 900);
  EXPECT_FALSE(model.estimate({33, 0}).known);
}

TEST(SizeModel, NewsAreThoseSinceTheyWereForgotten) {
  SizeModel file, program;
  program.add(100, 5);
  EXPECT_TRUE(program.has_news());
  file.add_news_of(program);
  EXPECT_EQ(file.find(100)->samples(), 1U);
  program.forget_news();
  EXPECT_FALSE(program.has_news());
  file.add_news_of(program);
  EXPECT_EQ(file.find(100)->samples(), 1U);
}

}  // namespace
}  // namespace tandem::model::size_model_test
