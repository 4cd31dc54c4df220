// Local response normalization: loops that vectorise against the formula in float64.
#include "kernels/norm/lrn.h"

#include "kernels/random_values.h"
#include "tensor/part.h"

namespace crema {
namespace lrn_test {

struct Reference {
  std::vector<double> y, dx;
};

Reference reference(const LrnWindow& window, const Shape& s, const std::vector<double>& x,
                    const std::vector<double>& dy) {
  const int64_t channels = s[1], height = s[2], width = s[3], half = window.size / 2;
  // Calls visit(neighbor) for the neighborhood of i.
  const auto around = [&](int64_t i, const auto& visit) {
    const int64_t w = i % width, h = i / width % height, c = i / (width * height) % channels;
    for (int64_t a = -half; a <= half; ++a) {
      if (window.across_channels) {
        if (c + a >= 0 && c + a < channels) visit(i + a * width * height);
        continue;
      }
      for (int64_t b = -half; b <= half; ++b) {
        if (h + a >= 0 && h + a < height && w + b >= 0 && w + b < width) visit(i + a * width + b);
      }
    }
  };
  const int64_t count = s.count();
  std::vector<double> scale(count, window.k);
  Reference r{std::vector<double>(count), std::vector<double>(count)};
  for (int64_t i = 0; i < count; ++i) {
    around(i, [&](int64_t k) { scale[i] += window.alpha * x[k] * x[k]; });
    r.y[i] = x[i] * std::pow(scale[i], -window.beta);
  }
  for (int64_t i = 0; i < count; ++i) {
    double sum = 0;
    around(i, [&](int64_t k) { sum += dy[k] * r.y[k] / scale[k]; });
    r.dx[i] =
        dy[i] * std::pow(scale[i], -window.beta) - 2 * window.alpha * window.beta * x[i] * sum;
  }
  return r;
}

TEST(Lrn, AgreesWithTheFormula) {
  Context context(Device::cpu);
  struct Case {
    LrnWindow window;
    Shape shape;
  };
  const Case cases[] = {
      {{true, 5, 0.2, 0.75, 1}, {3, 96, 7, 6}},    {{true, 5, 0.2, 0.75, 2}, {2, 33, 11, 9}},
      {{true, 3, 0.2, 0.75, 1}, {2, 64, 5, 5}},    {{true, 9, 0.2, 0.75, 1}, {2, 21, 9, 9}},
      {{true, 5, 0.2, 0.6, 1}, {2, 20, 5, 5}},     {{true, 5, 0.2, 0.75, 1}, {2, 3, 9, 9}},
      {{false, 3, 0.2, 0.75, 1}, {3, 32, 16, 15}}, {{false, 5, 0.2, 0.75, 1}, {2, 5, 9, 20}},
      {{false, 7, 0.2, 0.5, 1}, {2, 6, 9, 8}},     {{false, 9, 0.2, 0.75, 1}, {2, 3, 4, 3}},
  };
  for (const Case& c : cases) {
    const std::vector<double> x = random_values(c.shape.count(), 1),
                              dy = random_values(c.shape.count(), 2);
    const Reference want = reference(c.window, c.shape, x, dy);
    for (Order order : {Order::row_major, Order::channels_last}) {
      for (const char* implementation : {"", "plain"}) {
        SCOPED_TRACE(cat(c.shape.brief(), " size ", c.window.size, " order ",
                         static_cast<int>(order), " ", implementation));
        context.implementation = implementation;
        const Tensor tx = tensor_of(context, x, c.shape, DType::f32, order);
        const Tensor y(context, c.shape, DType::f32, {order, nullptr}),
            dx(context, c.shape, DType::f32, {order, nullptr});
        const int64_t bytes =
            static_cast<int64_t>(lrn_workspace(context, c.window, c.shape, DType::f32));
        const Tensor workspace(context, Shape{bytes}, DType::u8);
        lrn_forward(context, c.window, tx, y);
        expect_close(context, want.y, y, 2e-6, "y");
        lrn_backward(context, c.window, tx, tensor_of(context, dy, c.shape, DType::f32, order), dx,
                     workspace);
        expect_close(context, want.dx, dx, 4e-6, "dx");
      }
    }
  }
}

// Gradients that begin in the middle of a pack of 16 bytes.
TEST(Lrn, OffsetGradientOnTheGpu) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  Context context(Device::gpu);
  const LrnWindow window{true, 5, 0.2, 0.75, 1};
  const Shape shape{2, 32, 5, 3};
  const int64_t count = shape.count();
  const std::vector<double> x = random_values(count, 1), dy = random_values(count, 2);
  const Format format{Order::channels_last, nullptr};
  const Tensor memory(context, {count + 4}),
      tx = tensor_of(context, x, shape, DType::f32, Order::channels_last);
  for (const size_t offset : {0, 1, 2}) {
    const Tensor gradient = part_of(memory, offset * sizeof(float), shape, DType::f32, format),
                 dx(context, shape, DType::f32, format);
    from_doubles(context, dy.data(), gradient);
    const int64_t bytes = static_cast<int64_t>(lrn_workspace(context, window, shape, DType::f32));
    lrn_backward(context, window, tx, gradient, dx, Tensor(context, Shape{bytes}, DType::u8));
    expect_close(context, reference(window, shape, x, dy).dx, dx, 4e-6, "dx");
  }
}

}  // namespace lrn_test
}  // namespace crema
