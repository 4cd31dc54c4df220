#include "tensor/precision.h"

#include <gtest/gtest.h>

#include "support.h"

namespace crema::tests {
namespace precision_test {

TEST(PrecisionTest, NamesGoThereAndBack) {
  for (const char* name : {"fp32", "tf32", "bf16", "fp16"})
    EXPECT_STREQ(name_of(precision_named(name)), name);
  expect_part(error_of([] { precision_named("fp61"); }), "did you mean \"fp16\"?");
}

TEST(PrecisionTest, OnlyTheLastTwoStoreHalves) {
  EXPECT_EQ(storage_of(Precision::tf32, DType::f32), DType::f32);
  EXPECT_EQ(storage_of(Precision::fp32, DType::f64), DType::f64);
  EXPECT_EQ(storage_of(Precision::bf16, DType::f32), DType::bf16);
  EXPECT_EQ(storage_of(Precision::fp16, DType::f32), DType::f16);
}

}  // namespace precision_test
}  // namespace crema::tests
