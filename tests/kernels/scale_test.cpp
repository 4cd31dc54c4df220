// Kernels of Scale and Bias: one value per channel, in every view of a tensor.
#include "kernels/pointwise/channel.h"
#include "kernels/random_values.h"

namespace crema {
namespace scale_test {

const ChannelView kViews[] = {
    {1, 4, 37, 50}, {1, 333, 64, 1}, {1, 1000, 3, 1}, {1, 1037, 10, 1}, {5, 70, 20, 1},
    {5, 9, 20, 6},  {1, 1, 1, 9000}, {1, 1, 700, 1},  {1, 3, 2, 5000},  {1, 20000, 5, 1},
};

struct Sums {
  std::vector<double> y, dx, all;
};

Sums reference(const ChannelView& v, const std::vector<double>& x, const std::vector<double>& dy,
               const std::vector<double>& factor, const std::vector<double>& shift) {
  Sums s{std::vector<double>(x.size()), std::vector<double>(x.size()),
         std::vector<double>(2 * v.values())};
  for (int64_t i = 0; i < v.count(); ++i) {
    const int64_t c = i / v.inner % v.channels + i / (v.inner * v.channels * v.outer) * v.channels;
    s.y[i] = x[i] * factor[c] + shift[c];
    s.dx[i] = dy[i] * factor[c];
    s.all[c] += dy[i];
    s.all[v.values() + c] += dy[i] * x[i];
  }
  return s;
}

TEST(Scale, EveryView) {
  Context context(Device::cpu);
  for (const ChannelView& v : kViews) {
    SCOPED_TRACE(cat(v.groups, " x ", v.outer, " x ", v.channels, " x ", v.inner));
    const std::vector<double> x = random_values(v.count(), 1, 1),
                              dy = random_values(v.count(), 2, 1);
    const std::vector<double> factor = random_values(v.values(), 3),
                              shift = random_values(v.values(), 4);
    const Sums want = reference(v, x, dy, factor, shift);
    const Shape shape{v.count()}, values{v.values()};
    const Tensor tx = tensor_of(context, x, shape), tdy = tensor_of(context, dy, shape);
    ChannelAffine affine;
    affine.factor = tensor_of(context, factor, values);
    affine.shift = tensor_of(context, shift, values);
    const Tensor y(context, shape);
    channel_affine(context, v, affine, tx, y);
    expect_close(context, want.y, y, 1e-6, "y");

    ChannelTerm gradient;
    gradient.dy = tdy;
    gradient.x = tx;
    std::vector<double> sums(2 * v.values());
    channel_sums(context, v, gradient, {}, sums.data(), nullptr);
    expect_close(context, want.all, Tensor::wrap(sums.data(), Shape{2 * v.values()}, DType::f64),
                 1e-5, "sums");
    const Tensor ds = tensor_of(context, std::vector<double>(v.values(), 1), values);
    store_sums(context, sums.data(), ds, true);
    std::vector<double> added(want.all.begin(), want.all.begin() + v.values());
    for (double& value : added) value += 1;
    expect_close(context, added, ds, 1e-5, "sums added to what was there");

    gradient.factor = affine.factor;
    gradient.x = {};
    channel_gradient(context, v, gradient, {}, {}, tdy);  // in the memory of dy
    expect_close(context, want.dx, tdy, 1e-6, "dx");
  }
}

}  // namespace scale_test
}  // namespace crema
