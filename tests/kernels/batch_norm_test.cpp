// The joined BatchNorm kernel against the chain BatchNorm, Scale, sum, ReLU written out in float64,
// and its numerical limits.
#include "kernels/norm/batch_norm.h"

#include "kernels/random_values.h"

namespace crema {
namespace batch_norm_test {

struct Chain {
  std::vector<double> y, dx, dz, d_scale, d_shift, mean, variance;
};

// Everything in plain order (N, C, inner).
Chain chain(const Shape& shape, const std::vector<double>& x, const std::vector<double>& z,
            const std::vector<double>& scale, const std::vector<double>& shift,
            const std::vector<double>& dy, bool relu, double slope, double eps) {
  const int64_t channels = shape[1], inner = shape.count(2), count = shape.count(),
                each = count / channels;
  const auto channel = [&](int64_t i) { return i / inner % channels; };
  Chain r;
  r.mean.resize(channels);
  r.variance.resize(channels);
  for (int64_t i = 0; i < count; ++i) r.mean[channel(i)] += x[i] / each;
  for (int64_t i = 0; i < count; ++i)
    r.variance[channel(i)] += (x[i] - r.mean[channel(i)]) * (x[i] - r.mean[channel(i)]) / each;
  std::vector<double> hat(count), g(count), sum(channels), product(channels);
  r.y.resize(count);
  r.dx.resize(count);
  r.d_scale.resize(channels);
  r.d_shift.resize(channels);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t c = channel(i);
    hat[i] = (x[i] - r.mean[c]) / std::sqrt(r.variance[c] + eps);
    const double before = hat[i] * scale[c] + shift[c] + (z.empty() ? 0 : z[i]);
    r.y[i] = relu && before <= 0 ? slope * before : before;
    g[i] = relu && before <= 0 ? slope * dy[i] : dy[i];
    r.d_scale[c] += g[i] * hat[i];
    r.d_shift[c] += g[i];
    sum[c] += g[i] * scale[c] / each;
    product[c] += g[i] * scale[c] * hat[i] / each;
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t c = channel(i);
    r.dx[i] = (g[i] * scale[c] - sum[c] - hat[i] * product[c]) / std::sqrt(r.variance[c] + eps);
  }
  r.dz = g;
  return r;
}

struct Case {
  Shape shape;
  bool added, relu;
  float slope;
};

// (2, channels): of plain x and of its squares.
std::vector<double> sums_of(const Shape& shape, const std::vector<double>& x) {
  const int64_t channels = shape[1], inner = shape.count(2);
  std::vector<double> sums(2 * channels);
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t c = static_cast<int64_t>(i) / inner % channels;
    sums[c] += x[i];
    sums[channels + c] += x[i] * x[i];
  }
  return sums;
}

// signs, parts: uses them if the kernel takes them. given: the sums of x.
void check_against_chain(Device device, bool signs, bool parts, bool given = false) {
  Context context(device);
  const Case cases[] = {{{8, 64, 14, 13}, true, true, 0},    {{8, 3, 40, 41}, false, true, 0},
                        {{16, 10, 9, 9}, true, true, 0.25f}, {{4, 130, 5, 5}, false, false, 0},
                        {{300, 7, 1, 1}, false, true, 0},    {{2, 1, 70, 71}, true, true, 0},
                        {{4, 128, 5, 5}, false, true, 0},    {{4, 12, 5, 5}, true, false, 0}};
  for (const Case& c : cases) {
    const int64_t count = c.shape.count(), channels = c.shape[1];
    const std::vector<double> x = random_values(count, 1, 3, 2), dy = random_values(count, 2);
    const std::vector<double> z = c.added ? random_values(count, 3) : std::vector<double>();
    const std::vector<double> scale = random_values(channels, 4, 1, 0.3),
                              shift = random_values(channels, 5);
    const Chain want = chain(c.shape, x, z, scale, shift, dy, c.relu, c.slope, 1e-3f);
    for (Order order : {Order::row_major, Order::channels_last}) {
      SCOPED_TRACE(cat(c.shape.brief(), " order ", static_cast<int>(order), signs ? " signs" : "",
                       parts ? " parts" : ""));
      const Format format{order, nullptr};
      const auto put = [&](const std::vector<double>& values) {
        return tensor_of(context, values, c.shape, DType::f32, order);
      };
      const auto fresh = [&] { return Tensor(context, c.shape, DType::f32, format); };
      BatchNormCase k;
      k.view = ChannelView::of(c.shape, format);
      k.eps = 1e-3f;
      k.fraction = 0.5f;
      k.added = c.added;
      k.relu = c.relu;
      k.slope = c.slope;
      const Shape per_channel{channels};
      const BatchNormParameters p{tensor_of(context, std::vector<double>(channels, 2), per_channel),
                                  tensor_of(context, std::vector<double>(channels, 4), per_channel),
                                  tensor_of(context, {1}, Shape{1}),
                                  tensor_of(context, scale, per_channel),
                                  tensor_of(context, shift, per_channel)};
      const Tensor tx = put(x), y = fresh(), dx = fresh();
      BatchNormSaved saved{Tensor(context, per_channel), Tensor(context, per_channel), {}};
      const bool packs = batch_norm_takes_packs(context, k, DType::f32);
      if (signs && packs && c.added && c.relu)
        saved.signs = Tensor(context, {count / 4}, DType::u8);
      const Tensor workspace(
          context, Shape{static_cast<int64_t>(batch_norm_workspace(context, k.view))}, DType::u8);
      const Tensor sums = given ? tensor_of(context, sums_of(c.shape, x), {2, channels}) : Tensor();
      batch_norm_forward(context, k, p, tx, c.added ? put(z) : Tensor(), sums, y, saved, workspace);
      expect_close(context, want.y, y, 3e-6, "y");

      std::vector<double> stored_mean = want.mean, stored_variance = want.variance;
      const double each = static_cast<double>(count / channels);
      for (double& value : stored_mean) value += 0.5 * 2;
      for (double& value : stored_variance) value = value * each / (each - 1) + 0.5 * 4;
      expect_close(context, stored_mean, p.stored_mean, 1e-6, "stored mean");
      expect_close(context, stored_variance, p.stored_variance, 2e-6, "stored variance");
      expect_close(context, {1.5}, p.stored_factor, 1e-6, "stored factor");

      BatchNormGradients gradients{dx, c.added ? fresh() : Tensor(), Tensor(context, per_channel),
                                   Tensor(context, per_channel)};
      // Forward's y is not read if its signs are available.
      std::vector<double> first = dy, second = dy;
      const bool halves = parts && packs && c.relu && (saved.signs || !c.added);
      for (size_t i = 0; halves && i < dy.size(); ++i) {
        first[i] = 2 * dy[i];
        second[i] = -dy[i];
      }
      batch_norm_backward(context, k, p, tx, saved.signs ? Tensor() : y, put(first),
                          halves ? put(second) : Tensor(), saved, gradients, workspace);
      expect_close(context, want.dx, dx, 5e-6, "dx");
      if (c.added) expect_close(context, want.dz, gradients.d_added, 1e-6, "dz");
      expect_close(context, want.d_scale, gradients.d_scale, 1e-5, "d_scale");
      expect_close(context, want.d_shift, gradients.d_shift, 1e-5, "d_shift");
    }
  }
}

TEST(BatchNorm, JoinedEqualsTheChain) { check_against_chain(Device::cpu, false, false); }

TEST(BatchNorm, JoinedEqualsTheChainOnTheGpu) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  for (const bool signs : {false, true}) {
    for (const bool parts : {false, true}) check_against_chain(Device::gpu, signs, parts);
    check_against_chain(Device::gpu, signs, false, true);
  }
}

// Scale and shift of each channel instead of y, with the sums of x and without.
TEST(BatchNorm, AffineGivesTheSameTopOnTheGpu) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  Context context(Device::gpu);
  const Shape shape{8, 64, 9, 7}, per_channel{64};
  // Values that float16 can represent.
  std::vector<double> x = random_values(shape.count(), 1, 3, 2);
  for (double& value : x) value = std::round(value * 64) / 64;
  const std::vector<double> scale = random_values(64, 4, 1, 0.3), shift = random_values(64, 5);
  const std::vector<double> none(shape.count());
  const Chain want = chain(shape, x, {}, scale, shift, none, true, 0, 1e-5f);
  const Tensor tx = tensor_of(context, x, shape, DType::f16, Order::channels_last);
  for (const bool given : {false, true}) {
    BatchNormCase k;
    k.view = ChannelView::of(shape, {Order::channels_last, nullptr});
    k.relu = true;
    const BatchNormParameters p{Tensor(context, per_channel), Tensor(context, per_channel),
                                Tensor(context, {1}), tensor_of(context, scale, per_channel),
                                tensor_of(context, shift, per_channel)};
    const BatchNormSaved saved{Tensor(context, per_channel), Tensor(context, per_channel), {}};
    const Tensor affine(context, {2, 64}, DType::f16),
        sums = given ? tensor_of(context, sums_of(shape, x), {2, 64}) : Tensor(),
        workspace(context, {static_cast<int64_t>(batch_norm_workspace(context, k.view))},
                  DType::u8);
    batch_norm_affine(context, k, p, tx, sums, affine, saved, workspace);
    expect_close(context, want.mean, saved.mean, 1e-6, "mean");
    const std::vector<double> numbers = to_doubles(context, affine);
    for (size_t i = 0; i < x.size(); ++i) {
      const int64_t channel = static_cast<int64_t>(i) / shape.count(2) % 64;
      const double y = std::max(x[i] * numbers[channel] + numbers[64 + channel], 0.);
      ASSERT_NEAR(y, want.y[i], 8e-3) << i;
    }
  }
}

// With an empty batch the gradients of scale and shift are 0, and added if they accumulate.
void check_empty_batch(Device device) {
  Context context(device);
  const Shape shape{0, 16, 3, 3}, per_channel{16};
  for (const Order order : {Order::row_major, Order::channels_last}) {
    BatchNormCase k;
    k.view = ChannelView::of(shape, {order, nullptr});
    const Tensor empty(context, shape, DType::f32, {order, nullptr});
    const std::vector<double> ones(16, 1), zeros(16);
    const auto per = [&] { return tensor_of(context, ones, per_channel); };
    const BatchNormParameters p{{}, {}, {}, per(), per()};
    const BatchNormSaved saved{per(), per(), {}};
    const Tensor workspace(
        context, Shape{static_cast<int64_t>(batch_norm_workspace(context, k.view))}, DType::u8);
    batch_norm_forward(context, k, p, empty, {}, {}, empty, saved, workspace);
    BatchNormGradients gradients{empty, {}, per(), per()};
    gradients.accumulate_shift = true;
    batch_norm_backward(context, k, p, empty, empty, empty, {}, saved, gradients, workspace);
    expect_close(context, zeros, gradients.d_scale, 0, "d_scale");
    expect_close(context, ones, gradients.d_shift, 0, "d_shift");
  }
}

TEST(BatchNorm, EmptyBatch) { check_empty_batch(Device::cpu); }

TEST(BatchNorm, EmptyBatchOnTheGpu) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  check_empty_batch(Device::gpu);
}

// A mean a thousand deviations from zero must not cost the variance its digits.
TEST(BatchNorm, StatisticsSurviveALargeMean) {
  Context context(Device::cpu);
  const Shape shape{16, 24, 20, 20};
  const std::vector<double> x = random_values(shape.count(), 9, 1000, 1);
  for (Order order : {Order::row_major, Order::channels_last}) {
    BatchNormCase k;
    k.view = ChannelView::of(shape, {order, nullptr});
    const Tensor tx = tensor_of(context, x, shape, DType::f32, order),
                 y(context, shape, DType::f32, {order, nullptr});
    const BatchNormParameters p{
        Tensor(context, {24}), Tensor(context, {24}), Tensor(context, {1}), {}, {}};
    const BatchNormSaved saved{Tensor(context, {24}), Tensor(context, {24}), {}};
    const Tensor workspace(
        context, Shape{static_cast<int64_t>(batch_norm_workspace(context, k.view))}, DType::u8);
    batch_norm_forward(context, k, p, tx, {}, {}, y, saved, workspace);
    const std::vector<double> none(shape.count()), ones(24, 1), zeros(24);
    const Chain want = chain(shape, x, {}, ones, zeros, none, false, 0, 1e-5f);
    std::vector<double> deviation = want.variance;
    for (double& value : deviation) value = 1 / std::sqrt(value + 1e-5f);
    expect_close(context, deviation, saved.inverse, 1e-5, "1 / deviation");
    expect_close(context, want.mean, saved.mean, 1e-7, "mean");
    expect_close(context, want.y, y, 1e-4, "y");
  }
}

}  // namespace batch_norm_test
}  // namespace crema
