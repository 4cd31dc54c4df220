// Pooling's loops for CPUs and GPUs and its plain body against loops over windows written out here.
#include "kernels/pool/pool.h"

#include <cfloat>

#include "kernels/pool/pool_nd.h"
#include "kernels/random_values.h"

namespace crema {
namespace pool_test {

struct Case {
  const char* name;
  Shape x, y;
  int64_t kernel[2], stride[2], pad[2];
};

const Case kCases[] = {
    {"k3 s2", {2, 37, 13, 12}, {2, 37, 6, 6}, {3, 3}, {2, 2}, {0, 0}},
    {"k3 s1 pad 1", {2, 16, 9, 8}, {2, 16, 9, 8}, {3, 3}, {1, 1}, {1, 1}},
    {"k3 s2 pad 1, more channels than a block",
     {1, 150, 9, 7},
     {1, 150, 5, 4},
     {3, 3},
     {2, 2},
     {1, 1}},
    {"few channels", {3, 5, 8, 9}, {3, 5, 4, 5}, {2, 2}, {2, 2}, {0, 0}},
    {"empty last windows", {2, 20, 6, 9}, {2, 20, 3, 4}, {2, 2}, {3, 3}, {0, 0}},
    {"not square", {2, 18, 8, 9}, {2, 18, 4, 6}, {2, 4}, {3, 2}, {1, 2}},
    {"window of more cells than a byte counts",
     {1, 17, 18, 17},
     {1, 17, 2, 1},
     {17, 17},
     {1, 1},
     {0, 0}},
    {"whole packs, k3 s2 pad 1", {2, 40, 9, 7}, {2, 40, 5, 4}, {3, 3}, {2, 2}, {1, 1}},
    {"whole packs, k2 s2", {2, 32, 9, 8}, {2, 32, 5, 4}, {2, 2}, {2, 2}, {0, 0}},
    {"many tiles", {2, 24, 40, 70}, {2, 24, 20, 35}, {3, 3}, {2, 2}, {0, 0}},
    {"many packs", {1, 136, 10, 11}, {1, 136, 10, 11}, {3, 3}, {1, 1}, {1, 1}},
    {"k5 s2", {1, 16, 11, 12}, {1, 16, 4, 5}, {5, 5}, {2, 2}, {0, 0}},
    {"global", {4, 64, 7, 7}, {4, 64, 1, 1}, {7, 7}, {1, 1}, {0, 0}},
};

struct Expected {
  std::vector<double> y, mask, dx;
};

// Small integers, so that there are ties.
std::vector<double> tied_values(int64_t count) {
  std::vector<double> values = random_values(count, 5);
  for (double& value : values) value = std::round(2 * value);
  return values;
}

Expected reference(const Case& c, bool max, bool relu_before, const std::vector<double>& x,
                   const std::vector<double>& dy) {
  Expected e{std::vector<double>(dy.size()), std::vector<double>(dy.size(), -1),
             std::vector<double>(x.size())};
  const int64_t height = c.x[2], width = c.x[3];
  for (int64_t o = 0; o < c.y.count(); ++o) {
    const int64_t plane = o / (c.y[2] * c.y[3]), oh = o / c.y[3] % c.y[2], ow = o % c.y[3];
    const int64_t top = oh * c.stride[0] - c.pad[0], left = ow * c.stride[1] - c.pad[1];
    const int64_t rows = std::min(top + c.kernel[0], height + c.pad[0]) - top;
    const int64_t columns = std::min(left + c.kernel[1], width + c.pad[1]) - left;
    const double divisor = rows > 0 && columns > 0 ? static_cast<double>(rows * columns) : 1;
    e.y[o] = max ? -FLT_MAX : 0;
    for (int64_t h = std::max<int64_t>(top, 0); h < std::min(top + c.kernel[0], height); ++h) {
      for (int64_t w = std::max<int64_t>(left, 0); w < std::min(left + c.kernel[1], width); ++w) {
        const int64_t i = (plane * height + h) * width + w;
        if (!max) {
          e.y[o] += x[i] / divisor;
          e.dx[i] += dy[o] / divisor;
        } else if (x[i] > e.y[o]) {
          e.y[o] = x[i];
          e.mask[o] = static_cast<double>(h * width + w);
        }
      }
    }
    if (e.mask[o] >= 0 && (!relu_before || e.y[o] > 0))
      e.dx[plane * height * width + static_cast<int64_t>(e.mask[o])] += dy[o];
  }
  return e;
}

void check(Device device, DType dtype, double tolerance) {
  Context context(device);
  for (const Case& c : kCases) {
    const std::vector<double> x = tied_values(c.x.count()), dy = random_values(c.y.count(), 6);
    for (const char* method : {"max", "max of a ReLU", "average"}) {
      const bool max = method[0] == 'm';
      PoolWindow window;
      window.method = max ? PoolMethod::max : PoolMethod::average;
      window.relu_before = max && std::string(method) != "max";
      const Expected want = reference(c, max, window.relu_before, x, dy);
      for (int i = 0; i < 2; ++i) {
        window.kernel[i + 1] = c.kernel[i];
        window.stride[i + 1] = c.stride[i];
        window.pad[i + 1] = c.pad[i];
      }
      for (Order order : {Order::row_major, Order::channels_last}) {
        for (const char* implementation : {"", "plain"}) {
          SCOPED_TRACE(cat(name_of(dtype), " ", c.name, " ", method,
                           order == Order::row_major ? " plain " : " channels_last ",
                           implementation));
          context.implementation = implementation;
          const Format format{order, nullptr};
          const Tensor tx = tensor_of(context, x, c.x, dtype, order),
                       tdy = tensor_of(context, dy, c.y, dtype, order);
          const Tensor y(context, c.y, dtype, format), mask(context, c.y, dtype, format);
          const Tensor dx(context, c.x, dtype, format);
          const Tensor index = max ? Tensor(context, c.y, window.index_dtype(), format) : Tensor();
          pool_forward(context, window, {}, tx, y, index, {});
          const std::vector<double> got = to_doubles(context, y);
          for (size_t i = 0; i < got.size(); ++i) {
            if (want.y[i] == -FLT_MAX && is_half(dtype)) {
              ASSERT_LT(got[i], -65504) << i;  // minus infinity there
            } else {
              ASSERT_NEAR(got[i], want.y[i], std::fabs(want.y[i]) * tolerance + tolerance) << i;
            }
          }
          pool_backward(context, window, tx, index, tdy, dx);
          expect_close(context, want.dx, dx, tolerance, "dx");
          if (!max || is_half(dtype)) continue;
          pool_forward(context, window, {}, tx, y, {}, mask);
          expect_close(context, want.mask, mask, 0, "mask");
        }
      }
    }
  }
}

TEST(Pool, AgreesWithLoopsOverWindows) { check(Device::cpu, DType::f32, 1e-6); }

TEST(Pool, AgreesWithLoopsOverWindowsOnTheGpu) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  check(Device::gpu, DType::f32, 1e-6);
  check(Device::gpu, DType::f16, 2e-3);
  check(Device::gpu, DType::bf16, 1.6e-2);
}

TEST(Pool, StochasticDrawsBySizeAndNotByOrder) {
  Context context(Device::cpu);
  const Shape shape{1, 2, 40, 40}, pooled{1, 2, 20, 20};
  std::vector<double> x(shape.count());
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = i % 2 == 0 ? 3 : 1;  // left columns weigh three quarters
  PoolWindow window;
  window.method = PoolMethod::stochastic;
  window.kernel[1] = window.kernel[2] = window.stride[1] = window.stride[2] = 2;
  std::vector<std::vector<double>> drawn;
  for (Order order : {Order::row_major, Order::channels_last}) {
    const Tensor y(context, pooled, DType::f32, {order, nullptr});
    pool_forward(context, window, {7, 3}, tensor_of(context, x, shape, DType::f32, order), y, {},
                 {});
    drawn.push_back(to_doubles(context, y));
  }
  EXPECT_EQ(drawn[0], drawn[1]);
  int64_t large = 0;
  for (double value : drawn[0]) large += value == 3;
  EXPECT_NEAR(static_cast<double>(large) / static_cast<double>(pooled.count()), 0.75, 0.05);
}

// 0 is for windows without cells; NaN and -inf are no maximum, but they have a mean.
void check_means_of_no_number(Device device) {
  Context context(device);
  const Shape shape{1, 4, 1, 4}, pooled{1, 4, 1, 3};
  std::vector<double> x;
  for (int c = 0; c < 4; ++c) x.insert(x.end(), {NAN, NAN, -INFINITY, -INFINITY});
  const PoolNd window{{1, 2}, {1, 2}, {0, 0}, {1, 1}};
  for (Order order : {Order::row_major, Order::channels_last}) {
    for (const char* implementation : {"", "plain"}) {
      context.implementation = implementation;
      const Tensor y(context, pooled, DType::f32, {order, nullptr});
      pool_nd_forward(context, window, true, tensor_of(context, x, shape, DType::f32, order), y, {},
                      {});
      const std::vector<double> got = to_doubles(context, y);
      for (int c = 0; c < 4; ++c) {
        EXPECT_TRUE(std::isnan(got[3 * c])) << got[3 * c] << " " << implementation;
        EXPECT_EQ(got[3 * c + 1], -INFINITY) << implementation;
        EXPECT_EQ(got[3 * c + 2], 0) << implementation;
      }
    }
  }
}

TEST(PoolNd, MeansOfNoNumber) { check_means_of_no_number(Device::cpu); }

TEST(PoolNd, MeansOfNoNumberOnTheGpu) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  check_means_of_no_number(Device::gpu);
}

}  // namespace pool_test
}  // namespace crema
