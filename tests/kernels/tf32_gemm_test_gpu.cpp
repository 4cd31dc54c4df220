// Every choice of the implicit GEMM for tf32 against the plain convolution in float64. Numbers are small multiples of 1/8, which tf32 does not round.
#include <gtest/gtest.h>

#include "kernels/conv/implicit_gemm/tf32_gemm.h"
#include "kernels/conv_case.h"

namespace crema {
namespace tf32_gemm_test_gpu {

const std::vector<Row> kRows = {
    {"three channels", {3, 3, 17, 15}, 24, {7, 7}, {2, 2}, {3, 3}},
    {"LeNet's second", {3, 20, 12, 12}, 50, {5, 5}, {1, 1}, {0, 0}, {1, 1}, 1, true},
    {"all differ", {2, 9, 11, 14}, 17, {3, 2}, {2, 3}, {1, 0}, {1, 2}, 1, true},
    {"odd channels in groups", {2, 15, 9, 8}, 21, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 3},
    {"1 x 1 with strides", {3, 12, 7, 9}, 20, {1, 1}, {2, 3}, {0, 0}, {1, 1}, 1, true},
    {"many of all", {9, 68, 20, 21}, 132, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1, true},
    {"more images than blocks", {1500, 4, 6, 7}, 10, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1, true},
};

std::vector<double> positive(std::vector<double> values) {
  for (double& value : values) value = std::max(value, 0.);
  return values;
}

void check_choices(Context& context, const Row& row) {
  Context cpu(Device::cpu);
  cpu.implementation = "plain";
  const Result expected = run(cpu, case_of(row, DType::f64, true, false));
  ConvCase c = case_of(row, DType::f32, true, false);
  c.order = Order::channels_last;
  c.precision = Precision::tf32;
  std::string reason;
  ASSERT_TRUE(Tf32Gemm::supports(c, reason)) << reason;
  const Format last = Format::channels_last();
  const auto eighths = [&](const Shape& shape, uint64_t stream) {
    return tensor_of_eighths(context, shape, c.dtype, shape.axes() > 1 ? last : Format(), stream);
  };
  const Tensor x = eighths(c.x, 1), w = eighths(c.w, 2), b = eighths({c.w[0]}, 3),
               dy = eighths(c.y, 4), added = eighths(c.y, 5), dw = eighths(c.w, 6);
  const Tensor y(context, c.y, c.dtype, last), dx(context, c.x, c.dtype, last);
  std::vector<double> sum = to_doubles(context, added);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += expected.y[i];
  // What run() gave for a product's choices, into `out`.
  const auto check = [&](ConvCall call, const ConvCase& one, ProductTensors t, const Tensor& out,
                         const std::vector<double>& wanted, const char* what) {
    Tf32Gemm product(context, one, call);
    t.out = out.raw();
    const std::vector<double> before = to_doubles(context, out);
    for (size_t choice = 0; choice < product.choice_count(); ++choice) {
      from_doubles(context, before.data(), out);
      product.take(choice);
      product.run(context, t);
      expect_near(to_doubles(context, out), wanted, 1e-6,
                  cat(row.name, " ", what, " ", name_of(call), " ", product.choice_name(choice)));
    }
  };
  ConvCase with_relu = c, with_sum = c;
  with_relu.relu.on = with_sum.sum = with_sum.sum_relu.on = true;
  const ProductTensors forward = {.x = x.raw(), .w = w.raw(), .b = b.raw()};
  ProductTensors adding = forward;
  adding.added = added.raw();
  check(ConvCall::fprop, c, forward, y, expected.y, "alone");
  check(ConvCall::fprop, with_relu, forward, y, positive(expected.y), "ReLU");
  check(ConvCall::fprop, with_sum, adding, y, positive(sum), "sum");
  if (c.backward_data)
    check(ConvCall::dgrad, c, {.w = w.raw(), .dy = dy.raw()}, dx, expected.dx, "alone");
  check(ConvCall::wgrad, c, {.x = x.raw(), .dy = dy.raw()}, dw, expected.dw, "alone");
  from_doubles(context, expected.dw.data(), dw);
  check(ConvCall::wgrad, c, {.x = x.raw(), .dy = dy.raw(), .accumulate_w = true}, dw,
        expected.dw_added, "added");
}

TEST(Tf32Gemm, AgreesWithThePlainConvolution) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  Context context(Device::gpu);
  for (const Row& row : kRows) check_choices(context, row);
}

// Not cut off, as tensor cores would.
TEST(Tf32Gemm, RoundsToTheNearest) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  Context context(Device::gpu);
  ConvCase c = case_of({"", {1, 4, 3, 3}, 4, {3, 3}, {1, 1}, {0, 0}}, DType::f32, false, false);
  c.order = Order::channels_last;
  c.precision = Precision::tf32;
  const double number = 1 + std::ldexp(3, -12), rounded = 1 + std::ldexp(1, -10);
  const auto filled = [&](const Shape& shape, double value) {
    return tensor_of(context, std::vector<double>(static_cast<size_t>(shape.count()), value), shape,
                     c.dtype, c.order);
  };
  const Tensor x = filled(c.x, number), w = filled(c.w, 1), y = filled(c.y, 0);
  Tf32Gemm product(context, c, ConvCall::fprop);
  product.run(context, {.x = x.raw(), .w = w.raw(), .out = y.raw()});
  EXPECT_EQ(to_doubles(context, y), std::vector<double>(4, 36 * rounded));
}

TEST(Tf32Gemm, RefusesWhatItCannotServe) {
  const auto reason_for = [](const auto& change) {
    ConvCase c = case_of(kRows[3], DType::f32, true, true);
    c.order = Order::channels_last;
    c.precision = Precision::tf32;
    std::string reason;
    EXPECT_TRUE(Tf32Gemm::supports(c, reason)) << reason;
    change(c);
    EXPECT_FALSE(Tf32Gemm::supports(c, reason));
    return reason;
  };
  EXPECT_EQ(reason_for([](ConvCase& c) { c.precision = Precision::fp32; }), "for tf32 only");
  EXPECT_EQ(reason_for([](ConvCase& c) {
              c.groups = 15, c.w = {15, 1, 3, 3};
            }),
            "groups of fewer than four outputs");
  EXPECT_EQ(reason_for([](ConvCase& c) { c.relu.slope = 0.1f; }), "a ReLU with a slope");
  EXPECT_EQ(reason_for([](ConvCase& c) { c.order = Order::row_major; }),
            "for channels-last images of one or two axes only");
}

}  // namespace tf32_gemm_test_gpu
}  // namespace crema
