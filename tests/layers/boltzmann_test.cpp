// RBM: contrastive divergence against values computed with NumPy, against the exact gradient of the
// likelihood of a machine whose states can be enumerated, and in parts, as ranks compute it.
#include <gtest/gtest.h>

#include <cmath>

#include "layers/hand_row.h"

namespace crema {
namespace boltzmann_test {

const std::vector<std::vector<double>> kParameters = {
    {0.5, -1, 2, 1.5, 0.25, -0.75}, {0.1, -0.2}, {-0.5, 0.25, 1}};

TEST(Boltzmann, MeanFieldGivesTheDifferenceOfTheStatistics) {
  const Row row = row_of(
      "type: 'RBM' top: 'error' top: 'h' rbm_param { num_output: 2 cd_steps: 2 sampling: NONE }",
      {{{2, 3}}});
  LayerRun run(row, {});
  Start start = run.make_start();
  start.bottom = {{1, 0, 0.5, 0, 1, 1}};
  start.parameter = kParameters;
  start.top_diff = {{0.5}, {}};
  const Outcome outcome = run.backward(start);
  expect_values({0.555907138}, outcome.top[0]);
  expect_values({0.8320183851, 0.7160597938, 0.7502601056, 0.3318122278}, outcome.top[1]);
  expect_values(
      {0.0875209564, -0.0211403952, 0.1027895034, 0.0114299665, 0.0242885429, 0.0816510915},
      outcome.parameter_diff[0]);
  expect_values({0.0380081867, 0.017418779}, outcome.parameter_diff[1]);
  expect_values({0.0907981351, -0.0580799232, 0.0797706232}, outcome.parameter_diff[2]);
}

TEST(Boltzmann, GaussianVisibleUnitsTakeTheirInputs) {
  const Row row = row_of("type: 'RBM' rbm_param { num_output: 2 visible: GAUSSIAN sampling: NONE }",
                         {{{2, 3}}});
  LayerRun run(row, {});
  Start start = run.make_start();
  start.bottom = {{1.5, -2, 0.5, 0, 1, -1}};
  start.parameter = kParameters;
  start.top_diff = {{1}};
  const Outcome outcome = run.backward(start);
  expect_values({4.5266633807}, outcome.top[0]);
  expect_values(
      {0.0467922926, 0.8264649087, 1.1955606256, -0.1871544445, 0.4184678564, 0.7949918093},
      outcome.parameter_diff[0]);
  expect_values({0.3658938632, -0.2422654923}, outcome.parameter_diff[1]);
  expect_values({0.0983458653, 0.4160941508, 1.7360589382}, outcome.parameter_diff[2]);
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// <h v>, <h> and <v> of the machine with kParameters.
struct Statistics {
  std::vector<double> w = std::vector<double>(6), b = std::vector<double>(2),
                      a = std::vector<double>(3);
  void add(double probability, const std::vector<double>& v, const std::vector<double>& h) {
    for (int j = 0; j < 2; ++j) {
      for (int i = 0; i < 3; ++i) w[j * 3 + i] += probability * h[j] * v[i];
      b[j] += probability * h[j];
    }
    for (int i = 0; i < 3; ++i) a[i] += probability * v[i];
  }
};

Statistics of_data(const std::vector<double>& data) {
  Statistics result;
  for (size_t at = 0; at < data.size(); at += 3) {
    const std::vector<double> v(data.begin() + at, data.begin() + at + 3);
    std::vector<double> h = kParameters[1];
    for (int j = 0; j < 2; ++j) {
      for (int i = 0; i < 3; ++i) h[j] += kParameters[0][j * 3 + i] * v[i];
      h[j] = sigmoid(h[j]);
    }
    result.add(3.0 / static_cast<double>(data.size()), v, h);
  }
  return result;
}

// Over all states of the hidden units; given them, the visible ones are independent.
Statistics of_model(bool gaussian) {
  Statistics sums;
  double total = 0;
  for (int state = 0; state < 4; ++state) {
    const std::vector<double> h = {state & 1 ? 1.0 : 0.0, state & 2 ? 1.0 : 0.0};
    std::vector<double> v = kParameters[2];
    double log_weight = h[0] * kParameters[1][0] + h[1] * kParameters[1][1];
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 2; ++j) v[i] += kParameters[0][j * 3 + i] * h[j];
      log_weight += gaussian ? v[i] * v[i] / 2 : std::log1p(std::exp(v[i]));
      if (!gaussian) v[i] = sigmoid(v[i]);
    }
    sums.add(std::exp(log_weight), v, h);
    total += std::exp(log_weight);
  }
  for (std::vector<double>* values : {&sums.w, &sums.b, &sums.a}) {
    for (double& value : *values) value /= total;
  }
  return sums;
}

std::vector<double> difference(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> result;
  for (size_t i = 0; i < a.size(); ++i) result.push_back(a[i] - b[i]);
  return result;
}

// Many steps of many chains sample the model's expectation: the gradient is that of the negative
// mean log-likelihood. Each of 4,000 chains is another sample, so four standard deviations of their
// mean are about 0.03, and of a Gaussian unit's 0.1.
TEST(Boltzmann, LongChainsGiveTheGradientOfTheLikelihood) {
  const std::vector<double> data = {1, 0, 1, 0, 1, 1};
  for (const bool persistent : {true, false}) {
    for (const bool gaussian : {true, false}) {
      SCOPED_TRACE(cat(persistent ? "persistent " : "", gaussian ? "Gaussian" : "binary"));
      const int samples = persistent ? 2 : 4000;
      const Row row = row_of(
          cat("type: 'RBM' rbm_param { num_output: 2 sampling: ALL cd_steps: 20 ",
              persistent ? "persistent_chains: 4000 " : "", gaussian ? "visible: GAUSSIAN }" : "}"),
          {{{samples, 3}}});
      LayerRun run(row, {});
      Start start = run.make_start();
      for (size_t i = 0; i < start.bottom[0].size(); ++i) start.bottom[0][i] = data[i % 6];
      for (size_t k = 0; k < 3; ++k) start.parameter[k] = kParameters[k];
      start.top_diff = {{1}};
      const Outcome outcome = run.backward(start);
      const Statistics model = of_model(gaussian), given = of_data(data);
      const double distance = gaussian ? 0.1 : 0.03;
      expect_values(difference(model.w, given.w), outcome.parameter_diff[0], distance);
      expect_values(difference(model.b, given.b), outcome.parameter_diff[1], distance);
      expect_values(difference(model.a, given.a), outcome.parameter_diff[2], distance);
    }
  }
}

void add(const std::vector<double>& values, std::vector<double>* sums) {
  sums->resize(values.size());
  for (size_t i = 0; i < values.size(); ++i) (*sums)[i] += values[i];
}

// Three ranks share a batch: their gradients add up to that of the whole, and so do their chains,
// whose mean over the ranks continues.
TEST(Boltzmann, PartsOfABatchAddUp) {
  for (const char* more : {"cd_steps: 2 sampling: ALL", "visible: GAUSSIAN sampling: ALL",
                           "persistent_chains: 7 cd_steps: 2", "persistent_chains: 2"}) {
    SCOPED_TRACE(more);
    const std::string text = cat("type: 'RBM' rbm_param { num_output: 4 ", more,
                                 " weight_filler { type: 'gaussian' std: 1 } }");
    const Row row = row_of(text, {{{6, 5}, "uniform(0,1)"}});
    LayerRun whole(row, {});
    Start start = whole.make_start();
    const bool chains = start.parameter.size() > 3;
    if (chains) {
      for (size_t i = 0; i < start.parameter[3].size(); ++i) start.parameter[3][i] = i % 3 == 0;
    }
    for (int pass = 0; pass < 2; ++pass) {
      const Outcome expected = whole.backward(start);
      std::vector<std::vector<double>> sums(3);
      std::vector<double> states;
      for (const BatchShare& samples : {BatchShare{0, 2, 6}, {2, 1, 6}, {3, 3, 6}}) {
        Row of_part = row;
        of_part.bottoms[0].shape[0] = samples.count;
        LayerRun part(of_part, {});
        part.set_samples(samples);
        Start own = start;
        own.bottom[0] = {start.bottom[0].begin() + samples.first * 5,
                         start.bottom[0].begin() + (samples.first + samples.count) * 5};
        own.top_diff[0][0] *= static_cast<double>(samples.count) / 6;
        const Outcome outcome = part.backward(own);
        for (size_t k = 0; k < 3; ++k) add(outcome.parameter_diff[k], &sums[k]);
        if (chains) add(outcome.parameter_after[3], &states);
      }
      for (size_t k = 0; k < 3; ++k) expect_values(expected.parameter_diff[k], sums[k], 1e-12);
      if (!chains) break;
      EXPECT_EQ(expected.parameter_after[3], states);
      EXPECT_NE(expected.parameter_after[3], start.parameter[3]);
      start.parameter[3] = states;
      for (double& state : start.parameter[3]) state /= 3;
    }
  }
}

}  // namespace boltzmann_test
}  // namespace crema
