// Sums of many tensors against loops written out here.
#include "kernels/pointwise/add.h"

#include "kernels/random_values.h"

namespace crema {
namespace add_test {

void check(Device device, DType dtype, double tolerance) {
  Context context(device);
  // 4096: whole packs; 1003: not.
  for (const int64_t elements : {4096, 1003, 100000}) {
    for (const size_t count : {1, 2, 3, 4, 5, 7, 8, 9, 20}) {
      SCOPED_TRACE(cat(name_of(dtype), " ", count, " times ", elements));
      std::vector<Tensor> parts;
      std::vector<double> want(static_cast<size_t>(elements));
      for (size_t n = 0; n < count; ++n) {
        parts.push_back(tensor_of(context, random_values(elements, n), {elements}, dtype));
        const std::vector<double> stored = to_doubles(context, parts.back());
        for (size_t i = 0; i < want.size(); ++i) want[i] += stored[i];
      }
      const Tensor sum(context, {elements}, dtype);
      add_up(context, parts, sum);
      expect_close(context, want, sum, tolerance, "sum");
      const std::vector<double> first = to_doubles(context, sum);
      add_up(context, parts, parts[0]);
      EXPECT_EQ(to_doubles(context, parts[0]), first) << "over the first part";
    }
  }
}

TEST(Add, OnTheCpu) {
  check(Device::cpu, DType::f32, 1e-6);
  check(Device::cpu, DType::f64, 1e-14);
}

TEST(Add, OnTheGpu) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  check(Device::gpu, DType::f32, 1e-6);
  check(Device::gpu, DType::f64, 1e-14);
  check(Device::gpu, DType::f16, 2e-3);  // 20 parts: three passes, rounded after each
  check(Device::gpu, DType::bf16, 1.2e-2);
}

TEST(Add, SixteenBitsIntoFloat) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  Context context(Device::gpu);
  const std::vector<double> x = random_values(1000, 1), y = random_values(1000, 2);
  const Tensor half = tensor_of(context, x, {1000}, DType::f16),
               sum = tensor_of(context, y, {1000});
  std::vector<double> want = to_doubles(context, half);
  for (size_t i = 0; i < want.size(); ++i) want[i] += y[i];
  add_to(context, half, sum);
  expect_close(context, want, sum, 1e-6, "sum");
}

}  // namespace add_test
}  // namespace crema
