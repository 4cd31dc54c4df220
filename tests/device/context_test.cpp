#include "device/context.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"

namespace crema {
namespace {

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
  struct Lines : Log {
    void write(Severity, const std::source_location&, std::string_view line) override {
      all.emplace_back(line);
    }
    std::vector<std::string> all;
  } lines;
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
  try {
    const Context context(Device::gpu, missing);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("GPU"), std::string::npos) << error.what();
  }
}

TEST(ContextTest, EachGpuOpens) {
  for (int ordinal = 0; ordinal < gpu_count(); ++ordinal) {
    const Context context(Device::gpu, ordinal);
    EXPECT_EQ(context.ordinal(), ordinal);
    context.synchronize();
  }
}

}  // namespace
}  // namespace crema
