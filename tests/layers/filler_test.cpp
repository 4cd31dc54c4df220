#include "layers/filler.h"

#include <gtest/gtest.h>

#include <cmath>

#include "proto/filler.pb.h"
#include "support.h"

namespace crema::tests {
namespace filler_test {

FillerParameter filler(const std::string& type) {
  FillerParameter parameter;
  parameter.set_type(type);
  return parameter;
}

std::vector<float> filled(const FillerParameter& parameter, const Shape& shape,
                          uint64_t stream = 1) {
  Context context(Device::cpu);
  const Tensor tensor(context, shape);
  fill(context, parameter, {3, stream}, tensor);
  return to_floats(context, tensor);
}

double mean(const std::vector<float>& values) {
  double sum = 0;
  for (float value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double deviation(const std::vector<float>& values) {
  const double centre = mean(values);
  double sum = 0;
  for (float value : values) sum += (value - centre) * (value - centre);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

std::string message_of(const FillerParameter& parameter, const Shape& shape) {
  return error_of([&] { filled(parameter, shape); });
}

TEST(FillerTest, Constant) {
  FillerParameter parameter;  // "constant" is the default
  EXPECT_EQ(filled(parameter, Shape{3}), (std::vector<float>{0, 0, 0}));
  parameter.set_value(1.5f);
  EXPECT_EQ(filled(parameter, Shape()), (std::vector<float>{1.5f}));
}

TEST(FillerTest, Uniform) {
  FillerParameter parameter = filler("uniform");
  parameter.set_min(-1);
  parameter.set_max(3);
  const std::vector<float> values = filled(parameter, Shape{100, 200});
  EXPECT_NEAR(mean(values), 1, 0.05);
  EXPECT_NEAR(deviation(values), 4 / std::sqrt(12), 0.03);
  for (float value : values) ASSERT_TRUE(value >= -1 && value < 3);
  parameter.set_max(-2);
  expect_part(message_of(parameter, Shape{2}), "min -1 is above max -2");
}

TEST(FillerTest, Gaussian) {
  FillerParameter parameter = filler("gaussian");
  parameter.set_mean(2);
  parameter.set_std(0.1f);
  const std::vector<float> values = filled(parameter, Shape{100, 200});
  EXPECT_NEAR(mean(values), 2, 0.004);
  EXPECT_NEAR(deviation(values), 0.1, 0.003);
}

TEST(FillerTest, SparseGaussianKeepsAboutThatManyInputs) {
  FillerParameter parameter = filler("gaussian");
  parameter.set_sparse(15);
  const std::vector<float> values =
      filled(parameter, Shape{100, 200});  // each value stays with 15 / 100
  int kept = 0;
  for (float value : values) kept += value != 0;
  EXPECT_NEAR(kept, 3000, 260);
}

TEST(FillerTest, OnlyGaussianIsSparse) {
  FillerParameter parameter = filler("xavier");
  parameter.set_sparse(15);
  expect_part(message_of(parameter, Shape{2, 2}), "cannot be sparse");
}

TEST(FillerTest, PositiveUnitball) {
  const std::vector<float> values = filled(filler("positive_unitball"), Shape{4, 5, 6});
  for (int row = 0; row < 4; ++row) {
    double sum = 0;
    for (int i = 0; i < 30; ++i) {
      ASSERT_GE(values[row * 30 + i], 0);
      sum += values[row * 30 + i];
    }
    EXPECT_NEAR(sum, 1, 1e-6);
  }
}

// Weights of 40 outputs and 10 inputs with 5x5 kernels: 250 connections lead into a unit, 1000 out
// of one.
double connections(FillerParameter::VarianceNorm norm) {
  return norm == FillerParameter::FAN_IN ? 250 : norm == FillerParameter::FAN_OUT ? 1000 : 625;
}

TEST(FillerTest, XavierAndMsraScaleWithTheConnections) {
  for (const auto norm :
       {FillerParameter::FAN_IN, FillerParameter::FAN_OUT, FillerParameter::AVERAGE}) {
    FillerParameter xavier = filler("xavier"), msra = filler("msra");
    xavier.set_variance_norm(norm);
    msra.set_variance_norm(norm);
    const double n = connections(norm);
    const std::vector<float> x = filled(xavier, Shape{40, 10, 5, 5}),
                             m = filled(msra, Shape{40, 10, 5, 5});
    EXPECT_NEAR(deviation(x), std::sqrt(1 / n), 0.03 * std::sqrt(1 / n));
    EXPECT_NEAR(deviation(m), std::sqrt(2 / n), 0.03 * std::sqrt(2 / n));
    for (float value : x) ASSERT_LE(std::fabs(value), std::sqrt(3 / n) * 1.0001);
  }
}

TEST(FillerTest, Bilinear) {
  const std::vector<float> even = filled(filler("bilinear"), Shape{1, 2, 4, 4});
  const std::vector<float> tent = {0.25f, 0.75f, 0.75f, 0.25f};
  for (int i = 0; i < 32; ++i) EXPECT_FLOAT_EQ(even[i], tent[i % 4] * tent[i / 4 % 4]);
  const std::vector<float> odd = filled(filler("bilinear"), Shape{1, 1, 3, 3});
  EXPECT_FLOAT_EQ(odd[4], 1);
  EXPECT_FLOAT_EQ(odd[0], 0.25f);
  expect_part(message_of(filler("bilinear"), Shape{1, 1, 3, 4}), "square kernels");
  expect_part(message_of(filler("bilinear"), Shape{3, 3}), "4 axes");
}

TEST(FillerTest, Diagonal) {
  FillerParameter parameter = filler("diagonal");
  parameter.add_diagonal(2);
  EXPECT_EQ(filled(parameter, Shape{1, 1, 2, 2}), (std::vector<float>{2, 0, 0, 2}));
  expect_part(message_of(parameter, Shape{2, 3}), "fills square matrices, this blob is 2x3");
  parameter.add_diagonal(3);
  EXPECT_EQ(filled(parameter, Shape{2, 2}), (std::vector<float>{2, 0, 0, 3}));
  expect_part(message_of(parameter, Shape{3, 3}), "has 2 values of `diagonal`; give one, or 3");
}

TEST(FillerTest, DiracRepeatsTheInputs) {
  const std::vector<float> values = filled(filler("dirac"), Shape{4, 2, 3, 3});
  for (int i = 0; i < 36; ++i) EXPECT_EQ(values[i], i == 4 || i == 31 ? 1 : 0) << i;
  double largest = 0;
  for (int i = 36; i < 72; ++i) largest = std::max<double>(largest, std::fabs(values[i]));
  EXPECT_LE(largest, 1 / std::sqrt(18));
  EXPECT_GT(largest, 0.5 / std::sqrt(18));
  expect_part(message_of(filler("dirac"), Shape{2, 3}), "fills the weights of convolutions");
}

TEST(FillerTest, WhiteningOfWhiteData) {
  EXPECT_EQ(filled(filler("whitening"), Shape{2, 1, 1, 2}), (std::vector<float>{1, 0, -1, 0}));
  expect_part(message_of(filler("whitening"), Shape{4}), "fills weights, not biases");
}

TEST(FillerTest, ValuesDependOnTheStreamAndNotOnTheFormat) {
  const FillerParameter parameter = filler("gaussian");
  const Shape shape{2, 3, 4, 5};
  EXPECT_EQ(filled(parameter, shape), filled(parameter, shape));
  EXPECT_NE(filled(parameter, shape, 1), filled(parameter, shape, 2));
  Context context(Device::cpu);
  const Tensor last(context, shape, DType::f64, Format::channels_last());
  fill(context, parameter, {3, 1}, last);
  EXPECT_EQ(to_floats(context, last), filled(parameter, shape));
}

TEST(FillerTest, UnknownTypeNamesTheNearest) {
  expect_part(message_of(filler("xaiver"), Shape{2}), "did you mean \"xavier\"?");
  expect_part(message_of(filler("kaiming_normal"), Shape{2}), "did you mean \"msra\"?");
  expect_part(message_of(filler("zzz"), Shape{2}), "bilinear, constant, diagonal, dirac, gaussian");
}

}  // namespace filler_test
}  // namespace crema::tests
