// Every implementation of gemm against a loop written out here.
#include "kernels/gemm/gemm.h"

#include <gtest/gtest.h>

#include <cmath>

namespace crema {
namespace gemm_test {

struct Row {
  int64_t m, n, k;
  int64_t batch = 1;
};

// Around the sizes of tiles and blocks, and the shapes with a special body.
const std::vector<Row> kRows = {{1, 1, 1},       {1, 10, 64},   {3, 5, 7},    {12, 32, 256},
                                {13, 33, 257},   {16, 70, 300}, {33, 40, 65}, {64, 10, 500},
                                {200, 130, 300}, {7, 1100, 90}, {500, 9, 20}, {5, 6, 4, 3},
                                {20, 33, 40, 5}};

template <typename T>
std::vector<T> noise(int64_t count, uint64_t stream) {
  const Random random{1, stream};
  std::vector<T> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<T>(random.normal(i));
  return values;
}

template <typename T>
void check(Device device, const char* implementation) {
  Context context(device), cpu(Device::cpu);
  context.implementation = implementation;
  const DType dtype = dtype_of<T>::value;
  for (const Row& row : kRows) {
    for (int way = 0; way < 16; ++way) {
      Gemm g;
      g.m = row.m;
      g.n = row.n;
      g.k = row.k;
      g.batch = row.batch;
      g.transpose_a = way & 1;
      g.transpose_b = way & 2;
      if (way & 4) g.alpha = 0.5f, g.beta = 2;
      const int64_t rows_a = g.transpose_a ? g.k : g.m, columns_a = g.transpose_a ? g.m : g.k;
      const int64_t rows_b = g.transpose_b ? g.n : g.k, columns_b = g.transpose_b ? g.k : g.n;
      const int64_t gap = way & 8 ? 3 : 0;  // rows that do not follow each other
      const int64_t lda = columns_a + gap, ldb = columns_b + gap, ldc = g.n + gap;
      if (gap > 0) g.lda = lda, g.ldb = ldb, g.ldc = ldc;
      g.batch_stride_a = rows_a * lda;
      g.batch_stride_b = rows_b * ldb;
      g.batch_stride_c = g.m * ldc;

      const std::vector<T> a = noise<T>(g.batch * g.batch_stride_a, 1),
                           b = noise<T>(g.batch * g.batch_stride_b, 2);
      std::vector<T> c = noise<T>(g.batch * g.batch_stride_c, 3);
      // Without beta the old content must not be read.
      if (g.beta == 0) std::fill(c.begin(), c.end(), std::numeric_limits<T>::quiet_NaN());
      const auto upload = [&](const std::vector<T>& values) {
        const Tensor tensor(context, {static_cast<int64_t>(values.size())}, dtype);
        copy_bytes(context, tensor.raw(), device, values.data(), Device::cpu, tensor.bytes());
        return tensor;
      };
      const Tensor x = upload(a), y = upload(b), z = upload(c);
      gemm(context, g, x.data<T>(), y.data<T>(), z.data<T>());
      std::vector<T> got(c.size());
      copy_bytes(context, got.data(), Device::cpu, z.raw(), device, z.bytes());

      double worst = 0;
      bool gaps_kept = true;
      for (int64_t batch = 0; batch < g.batch; ++batch) {
        for (int64_t i = 0; i < g.m; ++i) {
          for (int64_t j = 0; j < ldc; ++j) {
            const int64_t at = batch * g.batch_stride_c + i * ldc + j;
            if (j >= g.n) {
              gaps_kept = gaps_kept && (got[at] == c[at] || std::isnan(c[at]));
              continue;
            }
            double sum = 0;
            for (int64_t k = 0; k < g.k; ++k) {
              sum +=
                  static_cast<double>(
                      a[batch * g.batch_stride_a + (g.transpose_a ? k * lda + i : i * lda + k)]) *
                  b[batch * g.batch_stride_b + (g.transpose_b ? j * ldb + k : k * ldb + j)];
            }
            const double expected = g.alpha * sum + (g.beta == 0 ? 0 : g.beta * c[at]);
            const double difference = std::abs(expected - got[at]);
            worst = difference <= worst ? worst : difference;
          }
        }
      }
      const double tolerance =
          (dtype == DType::f32 ? 2e-6 : 1e-14) * (4 + static_cast<double>(g.k));
      EXPECT_LE(worst, tolerance) << implementation << " " << name_of(dtype) << " " << g.m << "x"
                                  << g.n << "x" << g.k << ", way " << way;
      EXPECT_TRUE(gaps_kept);
    }
  }
}

TEST(Gemm, AgreesOnTheCpu) {
  for (const char* implementation : {"", "onednn", "plain"}) {
    check<float>(Device::cpu, implementation);
    check<double>(Device::cpu, implementation);
  }
}

TEST(Gemm, AgreesOnTheGpu) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  for (const char* implementation : {"cublas", "plain"}) {
    check<float>(Device::gpu, implementation);
    check<double>(Device::gpu, implementation);
  }
}

TEST(Gemm, ProductsOfNothing) {
  Context context(Device::cpu);
  for (const char* implementation : {"", "plain"}) {
    context.implementation = implementation;
    float a = 1, b = 1, c = 3;
    gemm(context, {.m = 0, .n = 1, .k = 1}, &a, &b, &c);
    EXPECT_EQ(c, 3);
    gemm(context, {.m = 1, .n = 1, .k = 0, .beta = 2}, &a, &b, &c);
    EXPECT_EQ(c, 6);
    gemm(context, {.m = 1, .n = 1, .k = 0}, &a, &b, &c);
    EXPECT_EQ(c, 0);
  }
}

}  // namespace gemm_test
}  // namespace crema
