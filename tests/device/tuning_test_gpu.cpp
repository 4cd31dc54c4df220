// The file of what tuning found, between processes, which needs no GPU, and how work is timed.
#include <gtest/gtest.h>

#include "cache_folder.h"
#include "device/gpu.h"
#include "device/memory.h"
#include "device/tuning.h"

namespace crema {
namespace tuning_test_gpu {

using tests::CacheFolder;

TEST(Tuning, AnswersAreThereTheNextTime) {
  const CacheFolder folder;
  Tuning first;
  first.open("H 200/9.19");
  EXPECT_FALSE(first.find("product 1x2"));
  EXPECT_FALSE(first.remember("product 1x2", "a b"));
  EXPECT_EQ(first.find("product 1x2"), "a b");
  Tuning second;
  second.open("H 200/9.19");
  EXPECT_EQ(second.find("product 1x2"), "a b");
  second.mode = TuneMode::off;
  EXPECT_FALSE(second.find("product 1x2"));
  Tuning other_card;
  other_card.open("H 200/9.20");
  EXPECT_FALSE(other_card.find("product 1x2"));
  EXPECT_EQ(folder.read("crema/tune-H_200_9.19.tsv"), "product 1x2\ta b\n");
}

TEST(Tuning, TheFirstOfTwoAtTheSameTimeAnswersForBoth) {
  const CacheFolder folder;
  Tuning first, second;
  first.open("card");
  second.open("card");
  EXPECT_FALSE(first.remember("x", "of the first"));
  EXPECT_FALSE(second.remember("y", "of the second"));
  EXPECT_EQ(second.remember("x", "of the second"), "of the first");
  EXPECT_EQ(second.find("x"), "of the first");
  EXPECT_EQ(first.remember("y", "of the first"), "of the second");
  EXPECT_EQ(folder.read("crema/tune-card.tsv"), "x\tof the first\ny\tof the second\n");
}

TEST(Tuning, AnAnswerOfNoUseIsReplaced) {
  const CacheFolder folder;
  folder.write("crema/tune-card.tsv", "x\ta plan that is gone\nno answer\ny\tcut o");
  Tuning tuning;
  tuning.open("card");
  EXPECT_EQ(tuning.find("x"), "a plan that is gone");
  EXPECT_FALSE(tuning.find("y"));
  EXPECT_FALSE(tuning.remember("x", "a plan"));
  EXPECT_EQ(tuning.find("x"), "a plan");
  Tuning next;
  next.open("card");
  EXPECT_EQ(next.find("x"), "a plan");
}

TEST(Tuning, GoesOnWithoutAFile) {
  const CacheFolder folder;
  folder.write("crema", "no folder");
  Tuning tuning;
  tuning.open("card");
  EXPECT_FALSE(tuning.remember("x", "a"));
  EXPECT_EQ(tuning.find("x"), "a");
}

TEST(Tuning, TimesWorkWithoutGaps) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  Context context(Device::gpu);
  const Buffer memory(context, size_t{32} << 20);
  Tuning& tuning = context.gpu().tuning;
  int runs = 0;
  const auto work = [&] {
    ++runs;
    check_cuda(cudaMemsetAsync(memory.data(), 0, memory.bytes(), context.gpu().stream), "clearing");
  };
  const double once = tuning.time(context, work);
  runs = 0;
  EXPECT_GT(tuning.time_repeated(context, work, once / 1000), 0);
  EXPECT_EQ(runs, 2);  // hopeless
  runs = 0;
  const double repeated = tuning.time_repeated(context, work);
  EXPECT_GT(repeated, 0);
  EXPECT_LT(repeated, 2 * once);
  EXPECT_GT(runs, 3);
}

}  // namespace tuning_test_gpu
}  // namespace crema
