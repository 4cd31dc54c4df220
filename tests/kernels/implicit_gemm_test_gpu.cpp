// Every choice of the products that gather their operands or read them from shared memory, and of
// those of plain matrices, against the plain convolution in float64. Numbers are small multiples of 1/8, which are exact in 16 bits.
#include <gtest/gtest.h>

#include "cache_folder.h"
#include "kernels/conv/implicit_gemm/direct_conv.h"
#include "kernels/conv/implicit_gemm/implicit_gemm.h"
#include "kernels/random_values.h"

namespace crema {
namespace implicit_gemm_test_gpu {

struct Row {
  const char* name;
  Shape x;
  int64_t outputs;
  std::vector<int64_t> kernel, stride, pad, dilation;
  int64_t groups = 1;
  int64_t x_channels = 0;
};

const std::vector<Row> kRows = {
    {"LeNet's second", {3, 20, 12, 12}, 50, {5, 5}, {1, 1}, {0, 0}, {1, 1}},
    {"images, padded to 4 channels", {3, 3, 17, 15}, 24, {7, 7}, {2, 2}, {3, 3}, {1, 1}, 1, 4},
    {"one channel padded to 8", {2, 1, 9, 9}, 6, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1, 8},
    {"strides, pads and dilations differ", {2, 8, 11, 14}, 16, {3, 2}, {2, 3}, {1, 0}, {1, 2}},
    {"groups", {2, 24, 8, 8}, 36, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 2},
    {"1 x 1", {4, 64, 6, 6}, 72, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
    {"one axis", {2, 6, 40}, 10, {5}, {2}, {2}, {1}},
    {"more images than blocks", {1500, 4, 6, 7}, 10, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {"an even number of taps", {3, 10, 9, 9}, 26, {2, 2}, {1, 1}, {1, 1}, {1, 1}},
    {"1 x 1 in groups", {3, 24, 7, 6}, 36, {1, 1}, {1, 1}, {0, 0}, {1, 1}, 2},
    {"1 x 1 with strides", {3, 12, 7, 9}, 20, {1, 1}, {2, 3}, {0, 0}, {1, 1}},
    {"fully connected", {70, 330, 1}, 90, {1}, {1}, {0}, {1}},
    {"one row", {1, 30, 1}, 10, {1}, {1}, {0}, {1}},
    {"17 rows", {17, 800, 1}, 100, {1}, {1}, {0}, {1}},
    {"100 rows", {100, 800, 1}, 500, {1}, {1}, {0}, {1}},
    {"few outputs", {32, 2304, 1}, 10, {1}, {1}, {0}, {1}},
    {"more rows than inputs", {515, 34, 1}, 66, {1}, {1}, {0}, {1}},
};

ConvCase case_of(const Row& row, DType dtype, bool relu) {
  ConvCase c;
  c.x = row.x;
  c.w = {row.outputs, row.x[1] / row.groups};
  c.y = {row.x[0], row.outputs};
  for (size_t i = 0; i < row.kernel.size(); ++i) {
    c.w.push_back(row.kernel[i]);
    const int64_t window = row.dilation[i] * (row.kernel[i] - 1) + 1;
    c.y.push_back((row.x[static_cast<int>(i) + 2] + 2 * row.pad[i] - window) / row.stride[i] + 1);
  }
  c.stride = row.stride, c.pad = row.pad, c.dilation = row.dilation;
  c.groups = row.groups;
  c.bias = true;
  c.relu.on = relu;
  c.backward_data = c.backward_weights = true;
  c.dtype = dtype;
  return c;
}

struct Result {
  std::vector<double> y, dx, dw, db;
};

Result reference(const Row& row, bool relu) {
  Context context(Device::cpu);
  context.implementation = "plain";
  const ConvCase c = case_of(row, DType::f64, relu);
  const auto conv = make_conv(context, c);
  const Tensor x = tensor_of_eighths(context, c.x, c.dtype, {}, 1),
               w = tensor_of_eighths(context, c.w, c.dtype, {}, 2),
               b = tensor_of_eighths(context, {row.outputs}, c.dtype, {}, 3),
               dy = tensor_of_eighths(context, c.y, c.dtype, {}, 4),
               y = tensor_of_eighths(context, c.y, c.dtype, {}, 5);
  const Tensor out(context, c.y, c.dtype), dx(context, c.x, c.dtype), dw(context, c.w, c.dtype),
      db(context, {row.outputs}, c.dtype);
  const Tensor none(context, {static_cast<int64_t>(conv->workspace())}, DType::u8);
  conv->forward(context, x, w, b, out, none);
  begin_backward(context, conv->features(), dy, relu ? y : Tensor(), {}, db, false, true);
  conv->backward_data(context, dy, w, dx, none);
  conv->backward_weights(context, x, dy, dw, Tensor(), false, false, none);
  return {to_doubles(context, out), to_doubles(context, dx), to_doubles(context, dw),
          to_doubles(context, db)};
}

void expect_near(const Tensor& got, Context& context, const std::vector<double>& expected,
                 double tolerance, const std::string& what) {
  const std::vector<double> values = to_doubles(context, got);
  ASSERT_EQ(values.size(), expected.size());
  double worst = 0, maximum = 1;
  for (size_t i = 0; i < values.size(); ++i) {
    const double difference = std::abs(values[i] - expected[i]);
    worst = difference <= worst ? worst : difference;  // a NaN is kept
    maximum = std::max(maximum, std::abs(expected[i]));
  }
  EXPECT_LE(worst, tolerance * maximum) << what;
}

// Calls body(product, name) for all products of a call, with each of their choices.
template <typename Body>
void for_choices(Context& context, const ConvCase& c, ConvCall call, const Body& body) {
  ImplicitGemm gathered(context, c, call);
  DirectConv direct(context, c, call);
  for (ConvProduct* product :
       {static_cast<ConvProduct*>(&gathered), static_cast<ConvProduct*>(&direct)}) {
    for (size_t choice = 0; choice < product->choice_count(); ++choice) {
      product->take(choice);
      body(*product,
           cat(name_of(call), product == &direct ? " direct " : " ", product->choice_name(choice)));
    }
  }
}

void check(Context& context, const Row& row, DType dtype, bool relu) {
  const Result expected = reference(row, relu);
  ConvCase c = case_of(row, dtype, relu);
  c.order = Order::channels_last;
  c.x_channels = row.x_channels;
  const Format images{Order::channels_last, nullptr, row.x_channels};
  const Format last = Format::channels_last();
  const Tensor x = tensor_of_eighths(context, c.x, dtype, images, 1),
               w = tensor_of_eighths(context, c.w, dtype, images, 2),
               b = tensor_of_eighths(context, {row.outputs}, dtype, {}, 3),
               dy = tensor_of_eighths(context, c.y, dtype, last, 4),
               y = tensor_of_eighths(context, c.y, dtype, last, 5);
  ProductTensors t;
  t.x = x.raw(), t.w = w.raw(), t.b = b.raw(), t.dy = dy.raw(), t.y = relu ? y.raw() : nullptr;
  const double rounding = dtype == DType::f16 ? 1e-3 : 8e-3;
  std::string reason;
  ASSERT_TRUE(supports_products(c, reason)) << reason;
  const std::pair<ConvCall, bool> products[] = {{ConvCall::fprop, true},
                                                {ConvCall::dgrad, true},
                                                {ConvCall::wgrad, true},
                                                {ConvCall::wgrad, false}};
  for (const auto& [role, repeatable] : products) {
    if (role == ConvCall::dgrad && row.x_channels > 0) continue;  // images need no gradient
    context.repeatable = repeatable;
    for_choices(context, c, role,
                [&, role = role](const ConvProduct& product, const std::string& choice) {
                  const std::string what =
                      cat(row.name, " ", name_of(dtype), relu ? " relu " : " ", choice);
                  if (role == ConvCall::fprop) {
                    const Tensor out(context, c.y, dtype, last);
                    t.out = out.raw();
                    product.run(context, t);
                    expect_near(out, context, expected.y, rounding, what);
                  } else if (role == ConvCall::dgrad) {
                    const Tensor dx(context, c.x, dtype, images);
                    t.out = dx.raw();
                    product.run(context, t);
                    expect_near(dx, context, expected.dx, rounding, what);
                  } else {
                    const Tensor dw(context, c.w, DType::f32, images),
                        db(context, {row.outputs}, DType::f32);
                    t.out = dw.raw();
                    t.db = db.data<float>();
                    product.run(context, t);
                    expect_near(dw, context, expected.dw, 1e-5, what + " dw");
                    expect_near(db, context, expected.db, 1e-5, what + " db");
                    t.accumulate_w = t.accumulate_b = true;
                    product.run(context, t);
                    t.accumulate_w = t.accumulate_b = false;
                    std::vector<double> twice = expected.dw;
                    for (double& value : twice) value *= 2;
                    expect_near(dw, context, twice, 1e-5, what + " dw added");
                    t.db = nullptr;
                    product.run(context, t);
                    expect_near(dw, context, expected.dw, 1e-5, what + " dw alone");
                  }
                });
  }
}

TEST(ImplicitGemm, AgreesWithThePlainConvolution) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  Context context(Device::gpu);
  for (const Row& row : kRows) {
    for (const DType dtype : {DType::f16, DType::bf16}) {
      for (const bool relu : {false, true}) check(context, row, dtype, relu);
    }
  }
}

// A fully connected layer with ReLU and dropout: it drops the same as dropout(), backward
// multiplies by its factor, and each choice gives the same bits again.
void check_dropping(Context& context, int64_t rows, int64_t inputs, int64_t outputs, bool bias,
                    const BatchShare& samples = {}) {
  const Row row{"dropping", {rows, inputs, 1}, outputs, {1}, {1}, {0}, {1}};
  ConvCase c = case_of(row, DType::bf16, true);
  c.order = Order::channels_last;
  c.bias = bias;
  const DropoutMask mask{{{7, 9}}, 1u << 30, 4.f / 3, samples};
  Context cpu(Device::cpu);
  const auto value = [&](Context& of, const Shape& shape, DType dtype, uint64_t stream) {
    return tensor_of_eighths(of, shape, dtype, Format::channels_last(), stream);
  };
  const Tensor x = value(context, c.x, c.dtype, 1), w = value(context, c.w, c.dtype, 2),
               b = value(context, {outputs}, c.dtype, 3);
  const std::vector<double> xs = to_doubles(context, x), ws = to_doubles(context, w),
                            bs = to_doubles(context, b);
  std::vector<double> sums(static_cast<size_t>(rows * outputs));
  for (int64_t p = 0; p < rows; ++p) {
    for (int64_t o = 0; o < outputs; ++o) {
      double sum = bias ? bs[o] : 0;
      for (int64_t k = 0; k < inputs; ++k) sum += xs[p * inputs + k] * ws[o * inputs + k];
      sums[p * outputs + o] = std::max(sum, 0.0);
    }
  }
  const Tensor dropped = tensor_of(cpu, sums, {rows, outputs}, DType::f64);
  dropout(cpu, mask, dropped, dropped);
  const std::vector<double> expected = to_doubles(cpu, dropped);
  ProductTensors t;
  t.x = x.raw(), t.w = w.raw(), t.b = bias ? b.raw() : nullptr, t.dropout = mask;
  for_choices(context, c, ConvCall::fprop,
              [&](const ConvProduct& product, const std::string& choice) {
                const std::string what = cat(rows, "x", inputs, " to ", outputs, " ", choice);
                const Tensor y(context, c.y, c.dtype, Format::channels_last()),
                    again(context, c.y, c.dtype, Format::channels_last());
                t.out = y.raw();
                product.run(context, t);
                expect_near(y, context, expected, 8e-3, what);
                t.out = again.raw();
                product.run(context, t);
                EXPECT_EQ(to_doubles(context, y), to_doubles(context, again)) << what;
              });
}

// dx and dw of dy that goes through ReLU and dropout, against those of a dy that has gone.
void check_factor(Context& context, int64_t rows, int64_t inputs, int64_t outputs) {
  const Row row{"factor", {rows, inputs, 1}, outputs, {1}, {1}, {0}, {1}};
  const Result expected = reference(row, true);
  ConvCase c = case_of(row, DType::bf16, true);
  c.order = Order::channels_last;
  const Format last = Format::channels_last();
  const Tensor x = tensor_of_eighths(context, c.x, c.dtype, last, 1),
               w = tensor_of_eighths(context, c.w, c.dtype, last, 2),
               dy = tensor_of_eighths(context, c.y, c.dtype, last, 4),
               y = tensor_of_eighths(context, c.y, c.dtype, last, 5);
  const auto doubled = [](std::vector<double> values) {
    for (double& value : values) value *= 2;
    return values;
  };
  ProductTensors t;
  t.x = x.raw(), t.w = w.raw(), t.dy = dy.raw(), t.y = y.raw(), t.gradient_factor = 2;
  for_choices(context, c, ConvCall::dgrad,
              [&](const ConvProduct& product, const std::string& choice) {
                const Tensor dx(context, c.x, c.dtype, last);
                t.out = dx.raw();
                product.run(context, t);
                expect_near(dx, context, doubled(expected.dx), 8e-3, choice);
              });
  for_choices(context, c, ConvCall::wgrad,
              [&](const ConvProduct& product, const std::string& choice) {
                const Tensor dw(context, c.w, DType::f32, last), db(context, {outputs}, DType::f32);
                t.out = dw.raw(), t.db = db.data<float>();
                product.run(context, t);
                expect_near(dw, context, doubled(expected.dw), 1e-5, choice);
                expect_near(db, context, doubled(expected.db), 1e-5, choice + " db");
              });
}

TEST(ImplicitGemm, ServesFullyConnectedLayersWithDropout) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  Context context(Device::gpu);
  check_dropping(context, 32, 2304, 512, true);
  check_dropping(context, 17, 800, 10, false);
  check_dropping(context, 1, 30, 2, true);
  // A rank's part of a batch, which begins inside of a draw.
  check_dropping(context, 17, 800, 10, true, {3, 1, 7});
  check_dropping(context, 5, 64, 34, true, {2, 5, 9});
  check_factor(context, 32, 2304, 512);
  check_factor(context, 17, 30, 100);
}

TEST(ImplicitGemm, RefusesWhatItCannotServe) {
  std::string reason;
  ConvCase c = case_of(kRows[0], DType::f16, true);
  EXPECT_FALSE(supports_products(c, reason));  // plain order
  c.order = Order::channels_last;
  EXPECT_TRUE(supports_products(c, reason));
  c.relu.slope = 0.1f;
  EXPECT_FALSE(supports_products(c, reason));
  EXPECT_EQ(reason, "a ReLU with a slope");
  c = case_of(kRows[0], DType::f32, true);
  c.order = Order::channels_last;
  EXPECT_FALSE(supports_products(c, reason));
  c = case_of({"2^32 weights", {1, 65536, 1}, 65536, {1}, {1}, {0}, {1}}, DType::f16, true);
  c.order = Order::channels_last;
  EXPECT_FALSE(supports_products(c, reason));
  EXPECT_EQ(reason, "more than 2^31 elements");
}

// Twenty choices, of which number 12, not one of the sample, is fastest.
struct Counted final : ConvProduct {
  size_t choice_count() const override { return 20; }
  std::string choice_name(size_t choice) const override { return cat(choice); }
  void launch(Context&, const ProductTensors&, size_t choice) const override {
    ran.push_back(choice);
  }
  mutable std::vector<size_t> ran;
};

TEST(ConvProduct, GivesUpWhereItIsHopeless) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  const tests::CacheFolder folder;
  Context context(Device::gpu);
  // How many choices were timed, and the one taken, when each takes so long.
  const auto tuned = [&](double milliseconds, double to_beat) {
    Counted product;
    product.take(3);
    const auto time = [&](double) {
      product.run(context, {});
      return product.ran.back() == 12 ? milliseconds / 2 : milliseconds;
    };
    product.tune(context, cat("a product of ", milliseconds, " against ", to_beat), time, to_beat);
    const size_t count = product.ran.size();
    product.run(context, {});
    return std::pair(count, product.ran.back());
  };
  EXPECT_EQ(tuned(1, 1e30), std::pair(size_t{20}, size_t{12}));
  EXPECT_EQ(tuned(1, 0.9), std::pair(size_t{20}, size_t{12}));
  EXPECT_EQ(tuned(4, 0.9), std::pair(size_t{6}, size_t{3}));
}

}  // namespace implicit_gemm_test_gpu
}  // namespace crema
