// The jump by which functions of GPU libraries are called passes all arguments, also those on the
// stack, and the result. Needs neither CUDA nor a GPU.
#include <gtest/gtest.h>

#include "device/gpu_libraries.h"

#define CREMA_JUMPS(F) F(crema_test_blend) F(crema_test_count)
CREMA_JUMPS(CREMA_JUMP)
extern "C" double crema_test_blend(int, double, const char*, float, int64_t, int, int, int, int,
                                   int, double, double, double, double, double, double, double,
                                   double);
extern "C" int crema_test_count();

namespace crema::tests {
namespace gpu_jump_test {

double blend(int a, double b, const char* text, float c, int64_t d, int e, int f, int g, int h,
             int i, double j, double k, double l, double m, double n, double o, double p,
             double q) {
  return a + 2 * b + 3 * text[0] + 5 * c + 7 * static_cast<double>(d) + 11 * e + 13 * f + 17 * g +
         19 * h + 23 * i + 29 * j + 31 * k + 37 * l + 41 * m + 43 * n + 47 * o + 53 * p + 59 * q;
}

TEST(GpuJump, PassesArgumentsAndResults) {
  constexpr GpuFunction kNames[] = {CREMA_JUMPS(CREMA_FUNCTION)};
  EXPECT_STREQ(kNames[0].name, "crema_test_blend");
  *kNames[0].at = reinterpret_cast<void*>(&blend);
  EXPECT_EQ(crema_test_blend(1, 2, "x", 4, int64_t{5} << 33, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
                             17, 18),
            blend(1, 2, "x", 4, int64_t{5} << 33, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18));
  int (*const first)() = [] { return 1; };
  int (*const second)() = [] { return 2; };
  *kNames[1].at = reinterpret_cast<void*>(first);
  EXPECT_EQ(crema_test_count(), 1);
  *kNames[1].at = reinterpret_cast<void*>(second);
  EXPECT_EQ(crema_test_count(), 2);
}

}  // namespace gpu_jump_test
}  // namespace crema::tests
