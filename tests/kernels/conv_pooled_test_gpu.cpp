// Every way to run a convolution with its pooling, against the convolution of one float64 kernel.
// Which of the four positions of a pool window is the argmax is the kernel's choice as long as
// their sums are equal up to rounding; its gradients must then go to just these.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/conv/implicit_gemm/direct_conv.h"
#include "kernels/random_values.h"

namespace crema {
namespace conv_pooled_test_gpu {

struct Row {
  const char* name;
  Shape x;
  int64_t outputs, kernel, stride, pad;
  std::vector<int64_t> pooled;
  int64_t x_channels = 0;
};

const std::vector<Row> kRows = {
    {"LeNet's second", {3, 20, 12, 12}, 50, 5, 1, 0, {4, 4}},
    {"images padded to 8 channels", {2, 1, 28, 28}, 20, 5, 1, 0, {12, 12}, 8},
    {"odd sides", {4, 64, 15, 15}, 64, 3, 1, 0, {7, 7}},
    {"odd sides, cut", {2, 16, 13, 11}, 24, 3, 1, 1, {6, 5}},
    {"padded", {3, 32, 20, 18}, 32, 3, 1, 1, {10, 9}},
    {"strides", {2, 8, 23, 21}, 10, 3, 2, 1, {6, 6}},
    {"many images", {300, 4, 10, 10}, 6, 3, 1, 0, {4, 4}},
};

ConvCase case_of(const Row& row, DType dtype) {
  ConvCase c;
  c.x = row.x;
  c.w = {row.outputs, row.x[1], row.kernel, row.kernel};
  c.y = {row.x[0], row.outputs};
  for (int axis = 2; axis < 4; ++axis)
    c.y.push_back((row.x[axis] + 2 * row.pad - row.kernel) / row.stride + 1);
  c.stride = {row.stride, row.stride}, c.pad = {row.pad, row.pad}, c.dilation = {1, 1};
  c.bias = true;
  c.backward_data = c.backward_weights = true;
  c.dtype = dtype;
  return c;
}

// Tensors of a case on a context, with the same numbers everywhere.
struct Tensors {
  Tensor x, w, b, dy;
  Tensors(Context& context, const ConvCase& c, const Shape& y, DType dtype, const Format& images)
      : x(tensor_of_eighths(context, c.x, dtype, images, 1)),
        w(tensor_of_eighths(context, c.w, dtype, images, 2)),
        b(tensor_of_eighths(context, {c.w[0]}, dtype, {}, 3)),
        dy(tensor_of_eighths(context, y, dtype,
                             images.order == Order::row_major ? Format() : Format::channels_last(),
                             4)) {}
};

void expect_near(const std::vector<double>& got, const std::vector<double>& expected,
                 double tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size());
  double worst = 0, maximum = 1;
  for (size_t i = 0; i < got.size(); ++i) {
    const double difference = std::abs(got[i] - expected[i]);
    worst = difference <= worst ? worst : difference;  // a NaN is kept
    maximum = std::max(maximum, std::abs(expected[i]));
  }
  EXPECT_LE(worst, tolerance * maximum) << what;
}

class Check {
 public:
  Check(Context& context, const Row& row, DType dtype, bool relu, const DropoutMask& mask)
      : gpu_(context),
        c_(case_of(row, dtype)),
        y_{c_.y[0], c_.y[1], row.pooled[0], row.pooled[1]},
        mask_(mask),
        images_{Order::channels_last, nullptr, row.x_channels},
        what_(cat(row.name, " ", name_of(dtype), relu ? " relu" : "",
                  mask.threshold > 0 ? " dropout " : " ")),
        rounding_(dtype == DType::f16 ? 2e-3 : 1.6e-2),
        here_(gpu_, c_, y_, dtype, images_),
        argmax_(gpu_, Shape{y_.count()}, DType::u8) {
    const ConvCase exact = case_of(row, DType::f64);
    cpu_.implementation = "plain";
    conv_ = make_conv(cpu_, exact);
    there_.emplace(cpu_, exact, y_, DType::f64, Format());
    const Tensor y(cpu_, c_.y, DType::f64);
    conv_->forward(cpu_, there_->x, there_->w, there_->b, y, Tensor());
    sums_ = to_doubles(cpu_, y);
    c_.order = Order::channels_last;
    c_.x_channels = row.x_channels;
    c_.relu.on = relu;
    c_.pooled = row.pooled;
  }

  void run() {
    const std::pair<ConvCall, bool> products[] = {{ConvCall::fprop, true},
                                                  {ConvCall::dgrad, true},
                                                  {ConvCall::wgrad, true},
                                                  {ConvCall::wgrad, false}};
    for (const auto& [role, repeatable] : products) {
      gpu_.repeatable = repeatable;
      // Images need no gradient; one through strides is not served.
      if (role == ConvCall::dgrad && (c_.x_channels > 0 || c_.stride[0] > 1)) continue;
      DirectConv product(gpu_, c_, role);
      ASSERT_GT(product.choice_count(), 0u) << what_;
      for (size_t choice = 0; choice < product.choice_count(); ++choice) {
        product.take(choice);
        name_ = cat(what_, name_of(role), " ", product.choice_name(choice));
        if (role == ConvCall::fprop) {
          forward(product);
        } else {
          backward(product, role);
        }
        if (testing::Test::HasFailure()) return;
      }
    }
  }

 private:
  void forward(const DirectConv& product) {
    const Tensor y(gpu_, y_, c_.dtype, Format::channels_last());
    ProductTensors t;
    t.x = here_.x.raw(), t.w = here_.w.raw(), t.b = here_.b.raw(), t.out = y.raw();
    t.argmax = argmax_.data<uint8_t>();
    t.dropout = mask_;
    product.run(gpu_, t);
    const std::vector<double> got = to_doubles(gpu_, y);
    positions_.resize(y_.count());
    copy_bytes(gpu_, positions_.data(), Device::cpu, argmax_.raw(), Device::gpu, positions_.size());
    const DropoutLayout layout = DropoutLayout::of(y_, mask_.samples);
    double maximum = 1;
    for (const double& sum : sums_) maximum = std::max(maximum, std::abs(sum));
    const double near = rounding_ * maximum;
    int64_t wrong = 0;
    for_pool_windows([&](int64_t at, int64_t image, int64_t channel, int64_t pool_window) {
      double largest = -1e300;
      for (int position = 0; position < 4; ++position) {
        const int64_t from = sum_at(image, channel, pool_window, position);
        if (from >= 0) largest = std::max(largest, sums_[from]);
      }
      const uint8_t position = positions_[argmax_at(image, channel, pool_window)];
      const bool stays = mask_.keeps(mask_.random.get(), layout, image, channel, pool_window);
      bool good;
      if (!stays) {
        good = position == 255 && got[at] == 0;
      } else if (position == 255) {
        good = c_.relu.on && largest <= near && got[at] == 0;
      } else {
        const int64_t from = sum_at(image, channel, pool_window, position);
        good = position < 4 && from >= 0 && sums_[from] >= largest - near &&
               std::abs(got[at] - largest * mask_.factor) <= near * mask_.factor;
      }
      wrong += !good;
    });
    EXPECT_EQ(wrong, 0) << name_ << " of " << y_.count();
  }

  // With the argmax of the last forward.
  void backward(const DirectConv& product, ConvCall role) {
    std::vector<double> unfolded(c_.y.count());
    const std::vector<double> dy = to_doubles(cpu_, there_->dy);
    for_pool_windows([&](int64_t at, int64_t image, int64_t channel, int64_t pool_window) {
      const uint8_t position = positions_[argmax_at(image, channel, pool_window)];
      if (position < 4)
        unfolded[sum_at(image, channel, pool_window, position)] = dy[at] * mask_.factor;
    });
    const Tensor g(cpu_, c_.y, DType::f64);
    from_doubles(cpu_, unfolded.data(), g);
    ProductTensors t;
    t.x = here_.x.raw(), t.w = here_.w.raw(), t.dy = here_.dy.raw();
    t.argmax = argmax_.data<uint8_t>();
    t.gradient_factor = mask_.factor;
    if (role == ConvCall::dgrad) {
      const Tensor want(cpu_, c_.x, DType::f64), dx(gpu_, c_.x, c_.dtype, images_);
      conv_->backward_data(cpu_, g, there_->w, want, Tensor());
      t.out = dx.raw();
      product.run(gpu_, t);
      return expect_near(to_doubles(gpu_, dx), to_doubles(cpu_, want), rounding_, name_);
    }
    const Tensor want(cpu_, c_.w, DType::f64), want_b(cpu_, {c_.w[0]}, DType::f64);
    begin_backward(cpu_, conv_->features(), g, Tensor(), {}, want_b, false, true);
    conv_->backward_weights(cpu_, there_->x, g, want, Tensor(), false, false, Tensor());
    const Tensor dw(gpu_, c_.w, DType::f32, images_), db(gpu_, {c_.w[0]}, DType::f32);
    t.out = dw.raw();
    t.db = db.data<float>();
    product.run(gpu_, t);
    expect_near(to_doubles(gpu_, dw), to_doubles(cpu_, want), 1e-5, name_ + " dw");
    expect_near(to_doubles(gpu_, db), to_doubles(cpu_, want_b), 1e-5, name_ + " db");
  }

  template <typename Body>
  void for_pool_windows(const Body& body) const {
    const int64_t pool_windows = y_[2] * y_[3];
    for (int64_t at = 0; at < y_.count(); ++at)
      body(at, at / pool_windows / y_[1], at / pool_windows % y_[1], at % pool_windows);
  }
  // In `argmax`, which is channels-last.
  int64_t argmax_at(int64_t image, int64_t channel, int64_t pool_window) const {
    return (image * y_[2] * y_[3] + pool_window) * y_[1] + channel;
  }
  // In the convolution's plain output; negative: outside.
  int64_t sum_at(int64_t image, int64_t channel, int64_t pool_window, int position) const {
    const int64_t row = pool_window / y_[3] * 2 + position / 2,
                  column = pool_window % y_[3] * 2 + position % 2;
    if (row >= c_.y[2] || column >= c_.y[3]) return -1;
    return ((image * c_.y[1] + channel) * c_.y[2] + row) * c_.y[3] + column;
  }

  Context& gpu_;
  Context cpu_{Device::cpu};
  ConvCase c_;
  Shape y_;
  DropoutMask mask_;
  Format images_;
  std::string what_, name_;
  double rounding_;
  Tensors here_;
  Tensor argmax_;
  std::unique_ptr<LinearKernel> conv_;
  std::optional<Tensors> there_;
  std::vector<double> sums_;
  std::vector<uint8_t> positions_;
};

TEST(PooledConv, KeepsTheLargestAndGivesThemTheGradient) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  Context context(Device::gpu);
  const DropoutMask none, some{{{7, 9}, 0, nullptr}, uint32_t{1} << 30, 4.f / 3};
  DropoutMask of_part = some;
  of_part.samples = {3, 1, 7};  // three batches of other ranks come before
  for (const Row& row : kRows) {
    for (const DType dtype : {DType::f16, DType::bf16}) {
      Check(context, row, dtype, true, dtype == DType::f16 ? some : of_part).run();
      if (HasFailure()) return;
      Check(context, row, dtype, row.outputs % 4 == 0, none).run();
      if (HasFailure()) return;
    }
  }
}

}  // namespace conv_pooled_test_gpu
}  // namespace crema
