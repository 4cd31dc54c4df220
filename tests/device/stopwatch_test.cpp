#include "device/stopwatch.h"

#include <gtest/gtest.h>

#include <thread>

#include "device/memory.h"

namespace crema::tests {
namespace stopwatch_test {

TEST(Stopwatch, GivesALapBetweenTwoMarks) {
  Context context(Device::cpu);
  Stopwatch watch(context);
  watch.mark();
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
  watch.mark();
  watch.mark();
  const std::vector<double> laps = watch.laps();
  ASSERT_EQ(laps.size(), 2u);
  EXPECT_GE(laps[0], 3);
  EXPECT_LT(laps[1], laps[0]);
  watch.mark();
  EXPECT_TRUE(watch.laps().empty());  // the marks before are forgotten
}

TEST(Stopwatch, TimesTheWorkOfAGpu) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  Context context(Device::gpu);
  const Buffer large(context, size_t{256} << 20);
  Stopwatch watch(context);
  for (int round = 0; round < 2; ++round) {  // the second finds the events of the first
    watch.hold(5);
    watch.mark();
    zero_bytes(context, large.data(), Device::gpu, 1024);
    watch.mark();
    zero_bytes(context, large.data(), Device::gpu, large.bytes());
    watch.mark();
    const std::vector<double> laps = watch.laps();
    ASSERT_EQ(laps.size(), 2u);
    EXPECT_LT(laps[0], laps[1]);
    EXPECT_LT(laps[0], 1);  // the rest before the first mark does not count
  }
}

}  // namespace stopwatch_test
}  // namespace crema::tests
