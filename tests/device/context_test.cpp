#include "device/context.h"

#include "support.h"

namespace crema::tests {
namespace context_test {

TEST(ContextTest, RandomNumbersDependOnWhoAndPass) {
  Context context(Device::cpu);
  const Random one = context.random(1, 0);
  EXPECT_EQ(one.word(0), context.random(1, 0).word(0));
  EXPECT_NE(one.word64(0), context.random(1, 1).word64(0));
  EXPECT_NE(one.word64(0), context.random(2, 0).word64(0));
  context.seed = 2;
  EXPECT_NE(one.word64(0), context.random(1, 0).word64(0));
}

TEST(ContextTest, LogIsSilentUntilOneIsSet) {
  Lines lines;
  Context context(Device::cpu);
  context.log().info("lost");
  context.set_log(lines);
  context.log().warning("kept");
  EXPECT_EQ(lines.all, std::vector<std::string>{"kept"});
}

TEST(ContextTest, CpuHasNothingToWaitFor) {
  const Context context(Device::cpu);
  EXPECT_EQ(context.device(), Device::cpu);
  context.synchronize();
}

TEST(ContextTest, AGpuThatIsNotThereIsAnError) {
  const int missing = gpu_count();
  expect_part(error_of([&] { const Context context(Device::gpu, missing); }), "GPU");
}

TEST(ContextTest, EachGpuOpens) {
  for (int ordinal = 0; ordinal < gpu_count(); ++ordinal) {
    const Context context(Device::gpu, ordinal);
    EXPECT_EQ(context.ordinal(), ordinal);
    context.synchronize();
  }
}

}  // namespace context_test
}  // namespace crema::tests
