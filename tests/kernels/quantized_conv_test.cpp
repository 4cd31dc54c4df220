// Convolutions of integers against those of rounded float32.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/conv/dense.h"
#include "kernels/conv/quantized/bytes.h"
#include "kernels/move/reorder.h"
#include "kernels/random_values.h"

namespace crema {
namespace quantized_conv_test {

// Steps that follow the weights are those that would be given.
TEST(QuantizedConv, FollowsItsWeights) {
  Context context(Device::cpu);
  DenseCase c;
  c.rows = 3, c.inputs = 40, c.outputs = 2;
  c.bias = false;
  const Tensor x = tensor_of_eighths(context, {3, 40}, DType::f32, {}, 1),
               w = tensor_of_eighths(context, {2, 40}, DType::f32, {}, 2);
  QuantizedWeights given;
  for (int row = 0; row < 2; ++row) {
    float most = 0;
    for (int i = 0; i < 40; ++i) most = std::max(most, std::abs(w.data<float>()[row * 40 + i]));
    given.steps.push_back(most / 127);
  }
  std::vector<std::vector<float>> results;
  for (const QuantizedWeights& weights : {given, QuantizedWeights{}}) {
    c.quantization = LinearQuantization{{}, {}, weights};
    const std::unique_ptr<LinearKernel> kernel = make_dense(context, c);
    const Tensor y(context, {3, 2}),
        workspace(context, {static_cast<int64_t>(kernel->workspace())}, DType::u8);
    kernel->forward(context, x, w, {}, y, workspace);
    results.push_back(to_floats(context, y));
  }
  EXPECT_EQ(results[0], results[1]);
}

// Backward rounds as the forward pass before it, whose steps it takes; without one it finds them.
TEST(QuantizedConv, BackwardHasTheStepsOfTheLastForward) {
  Context context(Device::cpu);
  DenseCase c;
  c.rows = 3, c.inputs = 40, c.outputs = 2;
  c.bias = false;
  c.backward_data = true;
  c.quantization = LinearQuantization{{}, {}, QuantizedWeights{}};
  const Tensor x = tensor_of_eighths(context, {3, 40}, DType::f32, {}, 1),
               w = tensor_of_eighths(context, {2, 40}, DType::f32, {}, 2),
               other = tensor_of_eighths(context, {2, 40}, DType::f32, {}, 3),
               dy = tensor_of_eighths(context, {3, 2}, DType::f32, {}, 4);
  other.data<float>()[5] = 9;
  std::vector<std::vector<float>> results;
  for (const std::vector<Tensor>& passes : std::vector<std::vector<Tensor>>{{}, {w}, {other, w}}) {
    const std::unique_ptr<LinearKernel> kernel = make_dense(context, c);
    const Tensor y(context, {3, 2}), dx(context, {3, 40}),
        workspace(context, {static_cast<int64_t>(kernel->workspace())}, DType::u8);
    for (const Tensor& weights : passes) kernel->forward(context, x, weights, {}, y, workspace);
    kernel->backward_data(context, {dy}, w, dx, workspace);
    results.push_back(to_floats(context, dx));
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

struct Row {
  const char* name;
  Shape x, w;
  int64_t groups = 1;
  std::vector<int64_t> stride, pad, dilation;
  bool has_sign = false, bias = true, relu = false, sum = false;
  float slope = 0;
};

const std::vector<Row> kRows = {
    {"3x3", {2, 16, 9, 10}, {32, 16, 3, 3}, 1, {1, 1}, {1, 1}, {1, 1}},
    {"with signs", {2, 16, 9, 10}, {32, 16, 3, 3}, 1, {1, 1}, {1, 1}, {1, 1}, true},
    {"odd channels, a ReLU",
     {1, 13, 7, 6},
     {19, 13, 3, 3},
     1,
     {2, 2},
     {1, 1},
     {1, 1},
     true,
     true,
     true},
    {"an image's channels", {2, 3, 12, 12}, {8, 3, 5, 5}, 1, {2, 2}, {2, 2}, {1, 1}, true},
    {"1x1, no bias", {3, 64, 5, 4}, {24, 64, 1, 1}, 1, {1, 1}, {0, 0}, {1, 1}, false, false},
    {"a sum and a ReLU",
     {1, 32, 8, 8},
     {32, 32, 3, 3},
     1,
     {1, 1},
     {1, 1},
     {1, 1},
     false,
     true,
     true,
     true},
    {"a slope",
     {1, 32, 8, 8},
     {32, 32, 3, 3},
     1,
     {1, 1},
     {1, 1},
     {1, 1},
     true,
     true,
     true,
     false,
     0.1f},
    {"groups", {2, 32, 6, 6}, {64, 16, 3, 3}, 2, {1, 1}, {1, 1}, {1, 1}},
    {"depthwise", {2, 32, 9, 9}, {32, 1, 3, 3}, 32, {1, 1}, {1, 1}, {1, 1}},
    {"depthwise with signs", {2, 24, 9, 9}, {24, 1, 3, 3}, 24, {2, 2}, {1, 1}, {1, 1}, true},
    {"dilation", {1, 16, 12, 12}, {16, 16, 3, 3}, 1, {1, 1}, {2, 2}, {2, 2}},
    {"a fully connected layer", {5, 100, 1}, {30, 100, 1}, 1, {1}, {0}, {1}, false, true, true},
    {"one row", {1, 800, 1}, {10, 800, 1}, 1, {1}, {0}, {1}, true},
};

ConvCase case_of(const Row& row) {
  ConvCase c;
  c.x = row.x;
  c.w = row.w;
  c.y = {row.x[0], row.w[0]};
  for (size_t axis = 0; axis < row.stride.size(); ++axis) {
    const int at = static_cast<int>(axis) + 2;
    c.y.push_back((row.x[at] + 2 * row.pad[axis] - row.dilation[axis] * (row.w[at] - 1) - 1) /
                      row.stride[axis] +
                  1);
  }
  c.stride = row.stride;
  c.pad = row.pad;
  c.dilation = row.dilation;
  c.groups = row.groups;
  c.bias = row.bias;
  (row.sum ? c.sum_relu : c.relu) = {row.relu, row.slope};
  c.sum = row.sum;
  c.order = Order::channels_last;
  c.packs_weights = true;
  LinearQuantization q;
  q.x = row.has_sign ? QuantizedValues{0.03f, -128, 127} : QuantizedValues{0.015f, 0, 255};
  q.w = QuantizedWeights{};
  for (int64_t i = 0; i < row.w[0]; ++i) q.w->steps.push_back(0.01f + 0.001f * (i % 7));
  c.quantization = q;
  return c;
}

// What a kernel made for the case computes. Operands are numbers that `exact_in` has.
std::vector<double> run(Context& context, const ConvCase& c, LinearKernel& conv,
                        DType exact_in = DType::f32) {
  Context cpu(Device::cpu);
  const auto random = [&](const Shape& shape, uint64_t stream, DType dtype,
                          const Format& format = {}) {
    const Tensor rounded = tensor_of(cpu, random_values(shape.count(), stream), shape, exact_in);
    const Tensor tensor(context, shape, dtype, format);
    from_doubles(context, to_doubles(cpu, rounded).data(), tensor);
    return tensor;
  };
  const Format order{c.order, nullptr};
  const Tensor x = random(c.x, 1, c.dtype, order), rows = random(c.w, 2, DType::f32),
               added = random(c.y, 4, c.dtype, order),
               b = c.bias ? random({c.w[0]}, 3, c.dtype) : Tensor();
  Tensor w;
  if (const size_t packed = conv.packed_form().bytes; packed > 0) {
    w = Tensor(context, {static_cast<int64_t>(packed)}, DType::u8);
    conv.pack(context, rows, w);
  } else {
    w = random(c.w, 2, c.dtype, conv.weights_format());
  }
  const Tensor y(context, c.y, c.dtype, order),
      workspace(context, {static_cast<int64_t>(conv.workspace())}, DType::u8);
  if (c.sum) {
    conv.forward_with_sum(context, x, w, b, added, c.sum_relu, y, workspace);
  } else {
    conv.forward(context, x, w, b, y, workspace);
  }
  return to_doubles(context, y);
}

void expect_like(const std::vector<double>& want, const std::vector<double>& got,
                 double tolerance = 2e-6) {
  ASSERT_EQ(want.size(), got.size());
  double largest = 0;
  for (const double value : want) largest = std::max(largest, std::fabs(value));
  for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(want[i], got[i], tolerance * largest) << i;
}

TEST(QuantizedConv, ComputesWithRoundedValues) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    Context context(Device::cpu);
    context.implementation = "plain";
    const ConvCase c = case_of(row);
    const std::unique_ptr<LinearKernel> plain = make_conv(context, c);
    const std::vector<double> want = run(context, c, *plain);
    // The same without packed weights, as in training.
    ConvCase unpacked = c;
    unpacked.packs_weights = false;
    expect_like(want, run(context, unpacked, *make_conv(context, unpacked)));
    std::string reason;
    Context fast(Device::cpu);
    const auto integers = quantized_conv_kernels.make_named("onednn_int8", fast, c, reason);
    if (!integers) {
      std::printf("%s: no integers: %s\n", row.name, reason.c_str());
      continue;
    }
    expect_like(want, run(fast, c, *integers));
  }
}

// Every implementation there, in every type and order, against the CPU's.
TEST(QuantizedConv, ComputesOnAGpu) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  struct Numbers {
    DType dtype;
    Order order;
    Precision precision;
    double tolerance;
  };
  int integers = 0;
  for (const Row& row : kRows) {
    for (const Numbers& numbers :
         {Numbers{DType::f32, Order::channels_last, Precision::fp32, 2e-6},
          Numbers{DType::f32, Order::row_major, Precision::fp32, 2e-6},
          Numbers{DType::f16, Order::channels_last, Precision::fp16, 2e-3},
          Numbers{DType::bf16, Order::channels_last, Precision::bf16, 1.6e-2}}) {
      ConvCase c = case_of(row);
      Context context(Device::cpu);
      context.implementation = "plain";
      const std::vector<double> want = run(context, c, *make_conv(context, c), numbers.dtype);
      c.dtype = numbers.dtype, c.order = numbers.order, c.precision = numbers.precision;
      for (const char* name : {"plain", "int8_gemm"}) {
        SCOPED_TRACE(cat(row.name, ", ", name_of(numbers.dtype), ", ", name));
        Context gpu(Device::gpu);
        std::string reason;
        const auto kernel = quantized_conv_kernels.make_named(name, gpu, c, reason);
        if (!kernel) {
          const bool is_image = row.x[1] < 8;
          EXPECT_EQ(reason, is_image
                                ? "of images with few channels, convolutions in 16 bits are faster"
                                : "groups of fewer than 8 channels");
          continue;
        }
        integers += kernel->packed_form().bytes > 0 && std::string(name) == "int8_gemm";
        expect_like(want, run(gpu, c, *kernel, numbers.dtype), numbers.tolerance);
      }
    }
  }
  EXPECT_EQ(integers, 4 * 11 - 2);  // all but depthwise convolutions, and images in 16 bits
}

// Runs the kernel with x as integers, and y as integers if it writes those.
struct BytesAndValues {
  std::vector<double> y;
  std::vector<int> bytes;
};
BytesAndValues run_on_bytes(Context& context, const ConvCase& c, LinearKernel& conv) {
  Context cpu(Device::cpu);
  const std::vector<double> values = random_values(c.x.count(), 1);
  const Format order{c.order, nullptr};
  const QuantizedValues& q = *c.quantization->x;
  const Tensor x = tensor_of(cpu, values, c.x, DType::f32), ordered(cpu, c.x, DType::f32, order),
               bytes(cpu, c.x, DType::u8, order);
  reorder(cpu, x, ordered);
  for (int64_t i = 0; i < c.x.count(); ++i)
    bytes.data<int8_t>()[i] = byte_of(ordered.data<float>()[i], q.step, q.low, q.high);
  const auto on_device = [&](const Tensor& from) {
    const Tensor to(context, from.shape(), from.dtype(), from.format());
    copy_bytes(context, to.raw(), context.device(), from.raw(), Device::cpu, from.bytes());
    return to;
  };
  const auto random = [&](const Shape& shape, uint64_t stream, DType dtype, const Format& format) {
    const Tensor tensor(context, shape, dtype, format);
    from_doubles(context, random_values(shape.count(), stream).data(), tensor);
    return tensor;
  };
  Tensor w(context, {static_cast<int64_t>(conv.packed_form().bytes)}, DType::u8);
  if (w.count() > 0) {
    conv.pack(context, random(c.w, 2, DType::f32, {}), w);
  } else {
    w = random(c.w, 2, c.dtype, conv.weights_format());
  }
  const bool writes = conv.features().y_bytes;
  LinearOperands t{.x_bytes = on_device(bytes),
                   .w = w,
                   .b = c.bias ? random({c.w[0]}, 3, c.dtype, {}) : Tensor(),
                   .added = c.sum ? random(c.y, 4, c.dtype, order) : Tensor(),
                   .y = writes && c.only_y_bytes ? Tensor() : Tensor(context, c.y, c.dtype, order),
                   .y_bytes = writes ? Tensor(context, c.y, DType::u8, order) : Tensor()};
  conv.forward_with_bytes(context, t,
                          Tensor(context, {static_cast<int64_t>(conv.workspace())}, DType::u8));
  BytesAndValues result;
  if (t.y) result.y = to_doubles(context, t.y);
  if (!t.y_bytes) return result;
  const Tensor on_host(cpu, c.y, DType::u8, order), rows(cpu, c.y, DType::f32, order);
  copy_bytes(context, on_host.raw(), Device::cpu, t.y_bytes.raw(), context.device(),
             on_host.bytes());
  for (int64_t i = 0; i < c.y.count(); ++i)
    rows.data<float>()[i] =
        c.y_bytes->low < 0 ? on_host.data<int8_t>()[i] : on_host.data<uint8_t>()[i];
  for (const double value : to_doubles(cpu, rows)) result.bytes.push_back(static_cast<int>(value));
  return result;
}

// With integers that arrive and leave as bytes the results are the same.
TEST(QuantizedConv, PassesBytesOn) {
  int writers = 0;
  for (const Device device : {Device::cpu, Device::gpu}) {
    if (device == Device::gpu && gpu_count() == 0) continue;
    for (const Row& row : kRows) {
      ConvCase c = case_of(row);
      Context cpu(Device::cpu), context(device);
      cpu.implementation = "plain";
      const std::vector<double> want = run(cpu, c, *make_conv(cpu, c));
      c.x_bytes = true;
      for (const QuantizedValues& values :
           {QuantizedValues{0.02f, 0, 255}, QuantizedValues{0.07f, -128, 127}}) {
        c.y_bytes = values;
        for (const bool only : {false, true}) {
          c.only_y_bytes = only;
          for (const char* name : {"plain", "onednn_int8", "int8_gemm"}) {
            SCOPED_TRACE(cat(row.name, ", ", name, only ? ", only bytes" : ""));
            std::string reason;
            const auto kernel = quantized_conv_kernels.make_named(name, context, c, reason);
            if (!kernel) continue;
            const BytesAndValues got = run_on_bytes(context, c, *kernel);
            EXPECT_EQ(got.y.empty(), only && kernel->features().y_bytes);
            if (!got.y.empty()) expect_like(want, got.y);
            if (got.bytes.empty()) continue;
            ++writers;
            int others = 0;
            for (size_t i = 0; i < want.size(); ++i) {
              const int n = static_cast<int>(std::clamp<double>(
                  std::nearbyint(want[i] / values.step), values.low, values.high));
              ASSERT_NEAR(got.bytes[i], n, 1);
              others += got.bytes[i] != n;
            }
            EXPECT_LE(others, 1 + static_cast<int>(want.size() / 1000));
          }
        }
      }
    }
  }
  if (writers == 0) GTEST_SKIP() << "no kernel of integers here";
}

// Rounding what a kernel reads changes its results, so the comparison above would not pass without it.
TEST(QuantizedConv, DiffersFromFloats) {
  Context context(Device::cpu);
  context.implementation = "plain";
  ConvCase c = case_of(kRows[1]);
  const std::vector<double> rounded = run(context, c, *make_conv(context, c));
  c.quantization.reset();
  c.packs_weights = false;
  const std::vector<double> exact = run(context, c, *make_conv(context, c));
  double most = 0;
  for (size_t i = 0; i < exact.size(); ++i) most = std::max(most, std::fabs(exact[i] - rounded[i]));
  EXPECT_GT(most, 0.01);
}

}  // namespace quantized_conv_test
}  // namespace crema
