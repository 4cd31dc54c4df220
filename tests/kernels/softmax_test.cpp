// Softmax and its cross-entropy: row by row, by blocks and plain, against float64; and messages
// about bad labels.
#include "base/error.h"
#include "kernels/random_values.h"
#include "kernels/softmax/attention.h"
#include "kernels/softmax/softmax_loss.h"

namespace crema {
namespace softmax_test {

const SoftmaxView kViews[] = {{64, 10, 1}, {64, 1000, 1}, {130, 21, 1}, {3, 21, 777},
                              {5, 100, 7}, {1, 6, 1},     {7, 64, 1}};

// (outer, classes, inner) in memory order.
int64_t at(const SoftmaxView& v, int64_t position, int64_t k) {
  return (position / v.inner * v.classes + k) * v.inner + position % v.inner;
}

std::vector<double> probabilities(const SoftmaxView& v, const std::vector<double>& x) {
  std::vector<double> p(x.size());
  for (int64_t position = 0; position < v.positions(); ++position) {
    double sum = 0;
    for (int64_t k = 0; k < v.classes; ++k) sum += std::exp(x[at(v, position, k)]);
    for (int64_t k = 0; k < v.classes; ++k)
      p[at(v, position, k)] = std::exp(x[at(v, position, k)]) / sum;
  }
  return p;
}

TEST(Softmax, ForwardAndBackward) {
  Context context(Device::cpu);
  for (const SoftmaxView& v : kViews) {
    const int64_t count = v.positions() * v.classes;
    const std::vector<double> x = random_values(count, 1, 0, 3), dy = random_values(count, 2),
                              p = probabilities(v, x);
    std::vector<double> dx(count);
    for (int64_t position = 0; position < v.positions(); ++position) {
      double dot = 0;
      for (int64_t k = 0; k < v.classes; ++k) dot += p[at(v, position, k)] * dy[at(v, position, k)];
      for (int64_t k = 0; k < v.classes; ++k)
        dx[at(v, position, k)] = p[at(v, position, k)] * (dy[at(v, position, k)] - dot);
    }
    for (const char* implementation : {"", "plain"}) {
      SCOPED_TRACE(cat(v.outer, " x ", v.classes, " x ", v.inner, " ", implementation));
      context.implementation = implementation;
      const Tensor y = tensor_of(context, x, Shape{count}),
                   gradient = tensor_of(context, dy, Shape{count});
      softmax_forward(context, v, y, y);  // in place
      expect_close(context, p, y, 3e-6, "y");
      softmax_backward(context, v, y, gradient, gradient);
      expect_close(context, dx, gradient, 3e-6, "dx");
    }
  }
}

// Scores far below those of a mask.
void check_low_scores(Device device) {
  Context context(device);
  AttentionRows rows;
  rows.count = 2;
  rows.keys = 3;
  const Tensor weights = tensor_of(context, {-2e30, -3e30, -2e30, -1e38, 0, -1e38}, {2, 3});
  attention_weights<float>(context, rows, weights.data<float>(), nullptr);
  expect_close(context, {0.5, 0, 0.5, 0, 1, 0}, weights, 1e-6, "weights");
}

TEST(Attention, LowScores) { check_low_scores(Device::cpu); }

TEST(Attention, LowScoresOnTheGpu) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  check_low_scores(Device::gpu);
}

TEST(SoftmaxLoss, ForwardAndBackward) {
  Context context(Device::cpu);
  for (const SoftmaxView& v : kViews) {
    const int64_t count = v.positions() * v.classes;
    const std::vector<double> x = random_values(count, 1, 0, 3), p = probabilities(v, x);
    std::vector<double> labels(v.positions()), dx(count);
    double loss = 0, valid = 0;
    for (int64_t position = 0; position < v.positions(); ++position) {
      const int64_t label = position * 7 % v.classes;
      labels[position] = static_cast<double>(label);
      if (label == 3) continue;
      valid += 1;
      loss -= std::log(p[at(v, position, label)]);
      for (int64_t k = 0; k < v.classes; ++k)
        dx[at(v, position, k)] = 2.5 * (p[at(v, position, k)] - (k == label));
    }
    for (double& value : dx) value /= valid;
    SoftmaxLossCase c;
    c.view = v;
    c.ignore_label = 3;
    for (const char* implementation : {"", "plain"}) {
      SCOPED_TRACE(cat(v.outer, " x ", v.classes, " x ", v.inner, " ", implementation));
      context.implementation = implementation;
      const Tensor tx = tensor_of(context, x, Shape{count}),
                   label = tensor_of(context, labels, Shape{v.positions()});
      const Tensor out(context, Shape{}), probability(context, Shape{count}),
          gradient(context, Shape{count});
      const SoftmaxLossSaved saved{
          Tensor(context, Shape{3, v.positions()}), Tensor(context, Shape{2}), {}};
      softmax_loss_forward(context, c, tx, label, out, saved, probability);
      expect_close(context, {loss / valid}, out, 3e-6, "loss");
      expect_close(context, p, probability, 3e-6, "probability");
      softmax_loss_backward(context, c, tx, label, saved, tensor_of(context, {2.5}, Shape{}),
                            gradient);
      expect_close(context, dx, gradient, 3e-6, "dx");
    }
  }
}

std::string complaint(const std::vector<double>& labels, int64_t images, int64_t inner) {
  Context context(Device::cpu);
  SoftmaxLossCase c;
  c.view = {images, 4, inner};
  c.images = images;
  const int64_t positions = c.view.positions();
  const SoftmaxLossSaved saved{Tensor(context, Shape{3, positions}), Tensor(context, Shape{2}), {}};
  try {
    softmax_loss_forward(context, c, Tensor(context, Shape{4 * positions}),
                         tensor_of(context, labels, Shape{positions}), Tensor(context, Shape{}),
                         saved, {});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(SoftmaxLoss, NamesABadLabel) {
  EXPECT_EQ(complaint({0, 3, 2}, 3, 1), "");
  EXPECT_NE(complaint({0, 4, 5}, 3, 1)
                .find("label 4 of image 1 of the batch is not a class: there are 4 scores"),
            std::string::npos);
  EXPECT_NE(complaint({0, 1, -1}, 3, 1).find("ignore_label: -1"), std::string::npos);
  EXPECT_NE(complaint({0, 1, 1, 9}, 2, 2).find("label 9 of image 1 of the batch, position 1"),
            std::string::npos);
  EXPECT_NE(complaint({0, 2.25, 1}, 3, 1).find("label 2.25 of image 1"), std::string::npos);
  EXPECT_NE(complaint({NAN, 1, 1}, 3, 1).find("label nan of image 0"), std::string::npos);
}

}  // namespace softmax_test
}  // namespace crema
