// Convolutions on a GPU against the plain one in float64. Numbers are small multiples of 1/8, which
// are exact in 16 bits.
#pragma once

#include <gtest/gtest.h>

#include "kernels/conv/conv.h"
#include "kernels/random_values.h"
#include "tensor/part.h"

namespace crema {

struct Row {
  const char* name;
  Shape x;
  int64_t outputs;
  std::vector<int64_t> kernel, stride, pad;
  std::vector<int64_t> dilation = {1, 1};
  int64_t groups = 1;
  bool data_gradient = false;  // also without groups
};

inline ConvCase case_of(const Row& row, DType dtype, bool bias, bool relu) {
  ConvCase c;
  c.x = row.x;
  c.w = {row.outputs, row.x[1] / row.groups, row.kernel[0], row.kernel[1]};
  c.y = {row.x[0], row.outputs};
  for (int i = 0; i < 2; ++i) {
    const int64_t window = row.dilation[i] * (row.kernel[i] - 1) + 1;
    c.y.push_back((row.x[i + 2] + 2 * row.pad[i] - window) / row.stride[i] + 1);
  }
  c.stride = row.stride, c.pad = row.pad, c.dilation = row.dilation;
  c.groups = row.groups;
  c.bias = bias, c.relu.on = relu;
  c.backward_data = row.groups > 1 || row.data_gradient;
  c.backward_weights = true;
  c.dtype = dtype;
  if (!is_half(dtype)) return c;
  c.order = Order::channels_last;
  // As the layer requests them.
  const bool wide = dtype == DType::bf16 && c.stride == std::vector<int64_t>{1, 1};
  if (row.groups == 1 && row.x[1] < 4) c.x_channels = wide ? 8 : 4;
  return c;
}

struct Result {
  bool adds = false;
  std::vector<double> y, dx, dw, db, dw_added, db_added, dx_fused, dw_fused, db_fused,
      dw_fused_added, db_fused_added;
};

// As the layer calls it.
inline Result run(Context& context, const ConvCase& c) {
  const std::unique_ptr<LinearKernel> conv = make_conv(context, c);
  const bool half = is_half(c.dtype);
  const Format images{c.order, nullptr, c.x_channels}, tops{c.order, nullptr},
      weights = conv->weights_format();
  const DType real = half ? DType::f32 : c.dtype;
  const Tensor x = tensor_of_eighths(context, c.x, c.dtype, images, 1),
               w = tensor_of_eighths(context, c.w, c.dtype, weights, 2),
               b = tensor_of_eighths(context, {c.w[0]}, c.dtype, {}, 3),
               dy = tensor_of_eighths(context, c.y, c.dtype, tops, 4),
               sign = tensor_of_eighths(context, c.y, c.dtype, tops, 5);
  const Tensor y(context, c.y, c.dtype, tops), dx(context, c.x, c.dtype, images),
      dw = tensor_of_eighths(context, c.w, real, weights, 6),
      db = tensor_of_eighths(context, {c.w[0]}, real, {}, 7),
      workspace = tensor_of_eighths(context, {static_cast<int64_t>(conv->workspace() / 4 + 1)},
                                    DType::f32, {}, 8);
  const Tensor bytes = part_of(workspace, 0, {static_cast<int64_t>(workspace.bytes())}, DType::u8);
  Result r;
  r.adds = conv->features().atomic_wgrad;
  conv->forward(context, x, w, c.bias ? b : Tensor(), y, bytes);
  r.y = to_doubles(context, y);
  FusedGradients fused;
  const auto begin = [&](bool accumulate) {
    fused = begin_backward(context, conv->features(), dy, c.relu.on ? sign : Tensor(), {},
                           c.bias ? db : Tensor(), accumulate, true);
    return fused.relu ? OutputGradient(dy, sign) : OutputGradient(dy);
  };
  const OutputGradient g = begin(false);
  if (c.backward_data) conv->backward_data(context, g, w, dx, bytes);
  r.dx = to_doubles(context, dx);
  conv->backward_weights(context, x, g, dw, fused.db, false, false, bytes);
  r.dw = to_doubles(context, dw), r.db = to_doubles(context, db);
  conv->backward_weights(context, x, begin(true), dw, fused.db, true, true, bytes);
  r.dw_added = to_doubles(context, dw), r.db_added = to_doubles(context, db);
  if (c.backward_data) {
    conv->backward_both(context, x, begin(false), w, dx, dw, fused.db, false, false, bytes);
    r.dx_fused = to_doubles(context, dx);
    r.dw_fused = to_doubles(context, dw), r.db_fused = to_doubles(context, db);
    conv->backward_both(context, x, begin(true), w, dx, dw, fused.db, true, true, bytes);
    r.dw_fused_added = to_doubles(context, dw), r.db_fused_added = to_doubles(context, db);
  }
  return r;
}

inline void expect_near(const std::vector<double>& got, const std::vector<double>& expected,
                        double tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  double worst = 0, maximum = 1;
  for (size_t i = 0; i < got.size(); ++i) {
    const double difference = std::abs(got[i] - expected[i]);
    worst = difference <= worst ? worst : difference;  // a NaN is kept
    maximum = std::max(maximum, std::abs(expected[i]));
  }
  EXPECT_LE(worst, tolerance * maximum) << what;
}

inline void check(const std::vector<Row>& rows, const std::vector<const char*>& implementations,
                  bool repeatable = true) {
  for (const Row& row : rows) {
    for (const bool bias : {false, true}) {
      for (const bool relu : {false, true}) {
        Context cpu(Device::cpu);
        cpu.implementation = "plain";
        const Result expected = run(cpu, case_of(row, DType::f64, bias, relu));
        for (const char* implementation : implementations) {
          for (const DType dtype : {DType::f16, DType::bf16}) {
            Context context(Device::gpu);
            context.implementation = implementation;
            context.repeatable = repeatable;
            const Result got = run(context, case_of(row, dtype, bias, relu));
            ASSERT_FALSE(context.chosen.empty());
            EXPECT_EQ(context.chosen[0], implementation);
            const double rounding = dtype == DType::f16 ? 1e-3 : 8e-3;
            const std::string what =
                cat(row.name, ", ", implementation, ", ", name_of(dtype), bias ? ", bias" : "",
                    relu ? ", relu" : "", repeatable ? "" : ", in any order");
            EXPECT_FALSE(repeatable && got.adds) << what;
            expect_near(got.y, expected.y, rounding, what + ": y");
            expect_near(got.dx, expected.dx, rounding, what + ": dx");
            expect_near(got.dw, expected.dw, rounding, what + ": dw");
            expect_near(got.db, expected.db, rounding, what + ": db");
            expect_near(got.dw_added, expected.dw_added, rounding, what + ": dw added");
            expect_near(got.db_added, expected.db_added, rounding, what + ": db added");
            expect_near(got.dx_fused, expected.dx_fused, rounding, what + ": dx joined");
            expect_near(got.dw_fused, expected.dw_fused, rounding, what + ": dw joined");
            expect_near(got.db_fused, expected.db_fused, rounding, what + ": db joined");
            expect_near(got.dw_fused_added, expected.dw_fused_added, rounding,
                        what + ": dw joined and added");
            expect_near(got.db_fused_added, expected.db_fused_added, rounding,
                        what + ": db joined and added");
          }
        }
      }
    }
  }
}

}  // namespace crema
