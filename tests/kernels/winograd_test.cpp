// Winograd's convolution against the plain one.
#include <gtest/gtest.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "kernels/conv/conv.h"
#include "kernels/random_values.h"

namespace crema {
namespace winograd_test {

struct Row {
  const char* name;
  Shape x;
  int64_t outputs;
  std::vector<int64_t> pad;
  bool bias = true, relu = false, sum = false;
  float slope = 0;
};

const std::vector<Row> kRows = {
    {"whole tiles", {1, 32, 16, 16}, 32, {1, 1}},
    {"edges, channels that fill no vector", {2, 37, 15, 18}, 43, {1, 1}, true, true},
    {"no pad, no bias", {3, 64, 14, 10}, 24, {0, 0}, false},
    {"pads differ, a slope", {2, 32, 11, 13}, 48, {2, 0}, true, true, false, 0.1f},
    {"a sum and a ReLU", {1, 64, 20, 20}, 64, {1, 1}, true, true, true},
    {"a sum alone", {2, 32, 12, 12}, 32, {1, 1}, false, false, true},
    {"several pieces, the last smaller", {5, 64, 30, 30}, 64, {1, 1}, true, true},
};

ConvCase case_of(const Row& row) {
  ConvCase c;
  c.x = row.x;
  c.w = {row.outputs, row.x[1], 3, 3};
  c.y = {row.x[0], row.outputs, row.x[2] + 2 * row.pad[0] - 2, row.x[3] + 2 * row.pad[1] - 2};
  c.stride = c.dilation = {1, 1};
  c.pad = row.pad;
  c.bias = row.bias;
  (row.sum ? c.sum_relu : c.relu) = {row.relu, row.slope};
  c.sum = row.sum;
  c.order = Order::channels_last;
  c.dtype = DType::f32;
  c.packs_weights = true;
  return c;
}

std::vector<double> run(Context& context, const ConvCase& c, LinearKernel& conv) {
  const Format last = Format::channels_last();
  const Tensor x = tensor_of_eighths(context, c.x, c.dtype, last, 1),
               rows = tensor_of_eighths(context, c.w, c.dtype, {}, 2),
               b = tensor_of_eighths(context, {c.w[0]}, c.dtype, {}, 3),
               added = tensor_of_eighths(context, c.y, c.dtype, last, 4);
  Tensor w;
  const size_t packed = conv.packed_form().bytes;
  if (packed > 0) {
    w = Tensor(context, {static_cast<int64_t>(packed)}, DType::u8);
    conv.pack(context, rows, w);
  } else {
    w = tensor_of_eighths(context, c.w, c.dtype, conv.weights_format(), 2);
  }
  const Tensor y(context, c.y, c.dtype, last),
      workspace(context, {static_cast<int64_t>(conv.workspace())}, DType::u8);
  const Tensor bias = c.bias ? b : Tensor();
  if (c.sum) {
    conv.forward_with_sum(context, x, w, bias, added, c.sum_relu, y, workspace);
  } else {
    conv.forward(context, x, w, bias, y, workspace);
  }
  return to_doubles(context, y);
}

std::unique_ptr<LinearKernel> made(Context& context, const ConvCase& c, std::string& reason) {
  return conv_kernels.make_named("winograd", context, c, reason);
}

TEST(Winograd, AgreesWithThePlainConvolution) {
  Context context(Device::cpu);
  for (const Row& row : kRows) {
    const ConvCase c = case_of(row);
    std::string reason;
    const auto conv = made(context, c, reason);
    if (!conv && reason.find("build") != std::string::npos) GTEST_SKIP() << reason;
    ASSERT_NE(conv, nullptr) << row.name << ": " << reason;
    const auto plain = conv_kernels.make_named("plain", context, c, reason);
    const std::vector<double> expected = run(context, c, *plain), got = run(context, c, *conv);
    double largest = 0, worst = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      largest = std::max(largest, std::abs(expected[i]));
      worst = std::max(worst, std::abs(got[i] - expected[i]));
    }
    EXPECT_LE(worst, 1e-5 * largest) << row.name;
  }
}

#ifdef _OPENMP
TEST(Winograd, GivesTheSameBitsOnAnyNumberOfThreads) {
  Context context(Device::cpu);
  std::string reason;
  if (!made(context, case_of(kRows[0]), reason)) GTEST_SKIP() << reason;
  const int before = omp_get_max_threads();
  for (const Row& row : kRows) {
    std::vector<std::vector<double>> results;
    for (const int threads : {1, 2, 5}) {
      omp_set_num_threads(threads);
      results.push_back(run(context, case_of(row), *made(context, case_of(row), reason)));
    }
    EXPECT_EQ(results[0], results[1]) << row.name;
    EXPECT_EQ(results[0], results[2]) << row.name;
  }
  omp_set_num_threads(before);
}
#endif

TEST(Winograd, LeavesTheRestToOthers) {
  Context context(Device::cpu);
  const auto reason_for = [&](const auto& change) {
    ConvCase c = case_of(kRows[0]);
    change(c);
    std::string reason;
    EXPECT_EQ(made(context, c, reason), nullptr);
    return reason;
  };
  std::string reason;
  if (!made(context, case_of(kRows[0]), reason)) GTEST_SKIP() << reason;
  EXPECT_EQ(reason_for([](ConvCase& c) { c.packs_weights = false; }),
            "for plans without gradients only");
  EXPECT_EQ(reason_for([](ConvCase& c) { c.backward_data = true; }),
            "for plans without gradients only");
  EXPECT_EQ(reason_for([](ConvCase& c) { c.order = Order::row_major; }),
            "for channels-last images in float32 only");
  EXPECT_EQ(reason_for([](ConvCase& c) { c.stride = {1, 2}; }), "for dense windows of 3 x 3 only");
  EXPECT_EQ(reason_for([](ConvCase& c) {
              c.x = {1, 16, 16, 16}, c.w = {16, 16, 3, 3};
            }),
            "few channels or results");
  EXPECT_EQ(reason_for([](ConvCase& c) {
              c.x = {1, 32, 8, 8}, c.y = {1, 32, 8, 8};
            }),
            "few channels or results");
}

}  // namespace winograd_test
}  // namespace crema
