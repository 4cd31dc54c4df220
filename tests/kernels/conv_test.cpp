// Every implementation of the convolution against the plain one in float64, and that one against a
// loop written out here.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/conv/im2col.h"
#include "kernels/move/reorder.h"

namespace crema {
namespace conv_test {

struct Row {
  const char* name;
  Shape x;
  int64_t outputs;
  std::vector<int64_t> kernel, stride, pad, dilation;
  int64_t groups = 1;
  float relu_slope = -1;  // below 0: no ReLU
};

const std::vector<Row> kRows = {
    {"k3", {2, 3, 7, 8}, 4, {3, 3}, {1, 1}, {0, 0}, {1, 1}},
    {"k3 pad relu", {3, 16, 9, 8}, 32, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1, 0},
    {"leaky", {2, 5, 6, 7}, 20, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1, 0.1f},
    {"k5 s2 pad2", {2, 20, 11, 12}, 50, {5, 5}, {2, 2}, {2, 2}, {1, 1}},
    {"one channel", {4, 1, 28, 28}, 20, {5, 5}, {1, 1}, {0, 0}, {1, 1}},
    {"three channels s4", {2, 3, 35, 35}, 24, {11, 11}, {4, 4}, {0, 0}, {1, 1}},
    {"k7 s2", {2, 3, 23, 22}, 16, {7, 7}, {2, 2}, {3, 3}, {1, 1}},
    {"1x1", {2, 24, 9, 7}, 40, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
    {"1x1 s2", {2, 24, 9, 7}, 17, {1, 1}, {2, 2}, {0, 0}, {1, 1}},
    {"1x1 pad", {2, 3, 5, 6}, 3, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {"dilation", {2, 8, 13, 14}, 16, {3, 3}, {1, 2}, {2, 1}, {2, 3}},
    {"even kernel", {2, 3, 6, 6}, 4, {4, 4}, {1, 1}, {2, 2}, {1, 1}},
    {"mixed", {2, 4, 9, 10}, 6, {2, 3}, {2, 1}, {0, 2}, {1, 1}},
    {"large same", {2, 64, 16, 16}, 128, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {"large same in groups", {2, 128, 16, 16}, 128, {3, 3}, {1, 1}, {2, 1}, {2, 1}, 2},
    {"large 1x1", {2, 80, 16, 16}, 130, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
    {"groups of 2", {2, 32, 7, 6}, 64, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 2},
    {"odd groups", {3, 6, 6, 8}, 9, {2, 2}, {1, 1}, {0, 0}, {1, 1}, 3, 0},
    {"depthwise", {2, 24, 9, 9}, 24, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 24},
    {"depthwise twice", {2, 4, 8, 7}, 8, {3, 3}, {2, 2}, {0, 0}, {1, 1}, 4},
    {"1-D", {3, 4, 12}, 6, {3}, {2}, {1}, {2}, 2},
    {"3-D", {2, 4, 5, 6, 7}, 16, {2, 3, 2}, {1, 2, 2}, {0, 1, 1}, {2, 1, 1}, 2},
    {"4-D", {1, 2, 3, 4, 3, 4}, 2, {2, 2, 2, 2}, {1, 1, 1, 1}, {0, 0, 1, 0}, {1, 1, 1, 1}},
    {"one image of one point", {1, 5, 1, 1}, 7, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
};

ConvCase case_of(const Row& row, Order order, DType dtype) {
  ConvCase c;
  c.x = row.x;
  c.w = Shape{row.outputs, row.x[1] / row.groups};
  c.y = Shape{row.x[0], row.outputs};
  for (size_t axis = 0; axis < row.kernel.size(); ++axis) {
    const int64_t extent = row.dilation[axis] * (row.kernel[axis] - 1) + 1;
    c.w.push_back(row.kernel[axis]);
    c.y.push_back(
        (row.x[static_cast<int>(axis) + 2] + 2 * row.pad[axis] - extent) / row.stride[axis] + 1);
  }
  c.stride = row.stride;
  c.pad = row.pad;
  c.dilation = row.dilation;
  c.groups = row.groups;
  c.bias = true;
  c.relu = {row.relu_slope >= 0, row.relu_slope};
  c.order = order;
  c.backward_data = c.backward_weights = true;
  c.dtype = dtype;
  return c;
}

std::vector<double> noise(int64_t count, uint64_t stream) {
  const Random random{1, stream};
  std::vector<double> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = random.normal(i);
  return values;
}

Tensor filled(Context& context, const Shape& shape, DType dtype, const Format& format,
              uint64_t stream) {
  const Tensor tensor(context, shape, dtype, format);
  from_doubles(context, noise(shape.count(), stream).data(), tensor);
  return tensor;
}

// Everything a Conv computes, in plain order.
struct Result {
  std::vector<double> y, dx, dw, db, dw_added, db_added;
};

Result compute(Context& context, const ConvCase& c, std::unique_ptr<LinearKernel> conv = nullptr) {
  if (!conv) conv = make_conv(context, c);
  const Format activations{c.order, nullptr}, weights = conv->weights_format();
  const Tensor x = filled(context, c.x, c.dtype, activations, 1),
               w = filled(context, c.w, c.dtype, weights, 2);
  const Tensor b = filled(context, {c.w[0]}, c.dtype, {}, 3),
               dy = filled(context, c.y, c.dtype, activations, 4);
  const Tensor y(context, c.y, c.dtype, activations),
      dx = filled(context, c.x, c.dtype, activations, 5);
  const Tensor dw = filled(context, c.w, c.dtype, weights, 6),
               db = filled(context, {c.w[0]}, c.dtype, {}, 7);
  const Tensor workspace(context, {static_cast<int64_t>(conv->workspace())}, DType::u8);
  Result r;
  conv->forward(context, x, w, b, y, workspace);
  r.y = to_doubles(context, y);
  conv->backward_data(context, dy, w, dx, workspace);
  r.dx = to_doubles(context, dx);
  const auto backward_weights = [&](bool accumulate) {
    const FusedGradients fused =
        begin_backward(context, conv->features(), dy, Tensor(), {}, db, accumulate, true);
    conv->backward_weights(context, x, dy, dw, fused.db, accumulate, accumulate, workspace);
  };
  backward_weights(false);
  r.dw = to_doubles(context, dw);
  r.db = to_doubles(context, db);
  backward_weights(true);
  r.dw_added = to_doubles(context, dw);
  r.db_added = to_doubles(context, db);
  conv->backward_weights(context, x, dy, dw, Tensor(), true, true, workspace);  // no db wanted
  return r;
}

double biggest(const std::vector<double>& values) {
  double maximum = 0;
  for (double v : values) maximum = std::max(maximum, std::abs(v));
  return maximum;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& expected,
                 double tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size());
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double difference = std::abs(got[i] - expected[i]);
    worst = difference <= worst ? worst : difference;  // a NaN is kept
  }
  EXPECT_LE(worst, tolerance * (1 + biggest(expected))) << what;
}

void expect_same(const Result& got, const Result& expected, double tolerance,
                 const std::string& what) {
  expect_near(got.y, expected.y, tolerance, what + ": y");
  expect_near(got.dx, expected.dx, tolerance, what + ": dx");
  expect_near(got.dw, expected.dw, tolerance, what + ": dw");
  expect_near(got.db, expected.db, tolerance, what + ": db");
  expect_near(got.dw_added, expected.dw_added, tolerance, what + ": dw added");
  expect_near(got.db_added, expected.db_added, tolerance, what + ": db added");
}

Result reference(const Row& row) {
  Context context(Device::cpu);
  context.implementation = "plain";
  return compute(context, case_of(row, Order::row_major, DType::f64));
}

struct Choice {
  const char* implementation;
  DType dtype;
};

void check_device(Device device, const std::vector<Choice>& choices) {
  for (const Row& row : kRows) {
    const Result expected = reference(row);
    for (const auto& [implementation, dtype] : choices) {
      for (const Order order : {Order::row_major, Order::channels_last}) {
        Context context(device);
        context.implementation = implementation;
        const std::string what =
            cat(row.name, ", ", implementation, ", order ", static_cast<int>(order), ", ",
                name_of(dtype), " on the ", name_of(device));
        expect_same(compute(context, case_of(row, order, dtype)), expected,
                    dtype == DType::f32 ? 1e-5 : 1e-12, what);
      }
    }
  }
}

TEST(Conv, AgreesOnTheCpu) {
  check_device(Device::cpu, {{"onednn", DType::f32},
                             {"im2col", DType::f32},
                             {"im2col", DType::f64},
                             {"plain", DType::f32},
                             {"plain", DType::f64}});
}

TEST(Conv, AgreesOnTheGpu) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  check_device(Device::gpu, {{"cudnn", DType::f32},
                             {"im2col", DType::f32},
                             {"im2col", DType::f64},
                             {"plain", DType::f32},
                             {"plain", DType::f64}});
}

// im2col for GPUs is one source for both devices: all images together, and one by one.
TEST(Conv, BatchedIm2colAgrees) {
  int made = 0;
  for (const Row& row : kRows) {
    const Result expected = reference(row);
    for (const Order order : {Order::row_major, Order::channels_last}) {
      for (const DType dtype : {DType::f32, DType::f64}) {
        for (const size_t limit : {size_t{1} << 30, size_t{1}}) {
          Context context(Device::cpu);
          const ConvCase c = case_of(row, order, dtype);
          std::string reason;
          std::unique_ptr<LinearKernel> conv = make_conv_im2col_batched(c, reason, limit);
          const bool depthwise = row.groups > 1 && row.groups == row.x[1];
          ASSERT_EQ(conv == nullptr, depthwise) << row.name << ": " << reason;
          if (depthwise) continue;
          ++made;
          expect_same(compute(context, c, std::move(conv)), expected,
                      dtype == DType::f32 ? 1e-5 : 1e-12,
                      cat(row.name, ", order ", static_cast<int>(order), ", ", name_of(dtype),
                          ", limit ", limit));
        }
      }
    }
  }
  EXPECT_EQ(made, 22 * 8);
}

TEST(Conv, BatchedIm2colTakesManyImagesAtOnceWithinItsLimit) {
  const Row row = {"", {64, 8, 16, 16}, 16, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
  for (const Order order : {Order::row_major, Order::channels_last}) {
    const ConvCase c = case_of(row, order, DType::f32);
    const size_t image = 16 * 16 * 9 * 8 * sizeof(float), part = 16 * 9 * 8 * sizeof(float);
    const size_t each = image + (order == Order::row_major ? part : 0);
    std::string reason;
    const auto bytes = [&](size_t limit) {
      return make_conv_im2col_batched(c, reason, limit)->workspace();
    };
    EXPECT_EQ(bytes(size_t{1} << 30), 64 * each);
    EXPECT_EQ(bytes(10 * each), 10 * each);
    EXPECT_EQ(bytes(1), each);
  }
  const ConvCase vast = case_of({"", {1, 64, 1 << 12, 1 << 12}, 2, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
                                Order::row_major, DType::f32);
  std::string reason;
  EXPECT_EQ(make_conv_im2col_batched(vast, reason), nullptr);
  EXPECT_EQ(reason, "an image of 2^31 elements and more, or patches of it");
}

// The definition, as in the header.
TEST(Conv, PlainIsTheDefinition) {
  const Row row = {"", {2, 4, 6, 7}, 6, {3, 2}, {2, 1}, {1, 1}, {1, 2}, 2};
  const ConvCase c = case_of(row, Order::row_major, DType::f64);
  const std::vector<double> x = noise(c.x.count(), 1), w = noise(c.w.count(), 2),
                            b = noise(c.w[0], 3);
  std::vector<double> y(c.y.count());
  int64_t at = 0;
  for (int64_t n = 0; n < c.y[0]; ++n) {
    for (int64_t o = 0; o < c.y[1]; ++o) {
      for (int64_t i = 0; i < c.y[2]; ++i) {
        for (int64_t j = 0; j < c.y[3]; ++j, ++at) {
          y[at] = b[o];
          for (int64_t k = 0; k < c.w.count(1); ++k) {
            const int64_t q = k % c.w[3], p = k / c.w[3] % c.w[2],
                          channel = k / c.w.count(2) + o / 3 * 2;
            const int64_t row_in = i * 2 - 1 + p, column = j - 1 + q * 2;
            if (row_in < 0 || row_in >= c.x[2] || column < 0 || column >= c.x[3]) continue;
            y[at] += w[o * c.w.count(1) + k] *
                     x[((n * c.x[1] + channel) * c.x[2] + row_in) * c.x[3] + column];
          }
        }
      }
    }
  }
  expect_near(reference(row).y, y, 1e-13, "y");
}

// <dy, conv(x)> = <dx, x> = <dw, w>: the gradients are the transposes of the forward pass.
TEST(Conv, PlainGradientsAreTransposes) {
  for (Row row : kRows) {
    row.relu_slope = -1;
    const ConvCase c = case_of(row, Order::row_major, DType::f64);
    const Result r = reference(row);
    const std::vector<double> x = noise(c.x.count(), 1), w = noise(c.w.count(), 2),
                              b = noise(c.w[0], 3), dy = noise(c.y.count(), 4);
    double forward = 0, by_x = 0, by_w = 0;
    for (size_t i = 0; i < dy.size(); ++i) {
      const int64_t channel = static_cast<int64_t>(i) / c.y.count(2) % c.y[1];
      forward += dy[i] * (r.y[i] - b[channel]);
    }
    for (size_t i = 0; i < x.size(); ++i) by_x += r.dx[i] * x[i];
    for (size_t i = 0; i < w.size(); ++i) by_w += r.dw[i] * w[i];
    EXPECT_NEAR(by_x, forward, 1e-9 * (1 + std::abs(forward))) << row.name;
    EXPECT_NEAR(by_w, forward, 1e-9 * (1 + std::abs(forward))) << row.name;
  }
}

// oneDNN divides by zero when it rounds this many up to whole blocks.
TEST(Conv, MoreChannelsThan32BitsCount) {
  Context context(Device::cpu);
  const Row row = {"", {1, int64_t{1} << 31, 6, 6}, 3, {3, 3}, {1, 1}, {0, 0}, {1, 1}};
  ConvCase c = case_of(row, Order::channels_last, DType::f32);
  c.backward_data = true;
  EXPECT_NE(make_conv(context, c), nullptr);
}

// Weights whose format another net decided.
TEST(Conv, TakesWeightsInAnyFormat) {
  for (const Row& row : kRows) {
    const Result expected = reference(row);
    for (const char* owner : {"onednn", "im2col"}) {
      for (const char* implementation : {"onednn", "im2col", "plain"}) {
        Context context(Device::cpu);
        context.implementation = owner;
        ConvCase c = case_of(row, Order::channels_last, DType::f32);
        c.weights_format = make_conv(context, c)->weights_format();
        c.order = Order::row_major;
        context.implementation = implementation;
        EXPECT_TRUE(same_layout(make_conv(context, c)->weights_format(), *c.weights_format, c.w));
        expect_same(compute(context, c), expected, 1e-5,
                    cat(row.name, ", ", implementation, " with weights of ", owner));
      }
    }
  }
}

// A library that counts in 32 bits would divide by zero, or access memory out of bounds, or
// generate code for minutes; our kernels work. Nothing here allocates memory.
TEST(Conv, SizesForNoLibraryGoToOurOwnBodies) {
  const std::vector<Row> rows = {
      {"wide", {1, 3, 16, int64_t{1} << 28}, 2, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {"wider", {1, 1, 1, int64_t{1} << 30}, 2, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {"slow to generate", {1, 3, 3, int64_t{1} << 24}, 2, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {"large images", {1, 64, 1 << 12, 1 << 12}, 2, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
      {"large outputs", {1, 2, 1 << 12, 1 << 12}, 64, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
      {"many images", {int64_t{1} << 32, 1, 1, 1}, 2, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
      {"large weights", {1, 1 << 15, 4, 4}, 1 << 14, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {"weights of blocks", {1, 1, 4, 4}, 1 << 27, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
      {"depthwise", {1, 16, 3, int64_t{1} << 24}, 16, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 16}};
  for (const Row& row : rows) {
    for (const Order order : {Order::row_major, Order::channels_last}) {
      SCOPED_TRACE(row.name);
      Context context(Device::cpu);
      make_conv(context, case_of(row, order, DType::f32));
      ASSERT_EQ(context.chosen.size(), 1U);
      EXPECT_EQ(context.chosen[0], "im2col");
    }
  }
}

}  // namespace conv_test
}  // namespace crema
