// Every update rule and what goes with it over 20 iterations: the losses fall, a GPU follows the
// CPU, and iterations that are recorded as CUDA graphs give the same as kernels launched one by
// one.
#include <gtest/gtest.h>

#include <cmath>

#include "solver/fixtures.h"

namespace crema::tests {
namespace rules_test {

// A convolution, so that weights have different orders, and learnable data.
const char* const kLearnable = R"(
  name: "learnable"
  layer { name: "data" type: "DummyData" top: "x" dummy_data_param { shape { dim: 8 dim: 3 dim: 6 dim: 6 }
    data_filler { type: "gaussian" std: 1 } } }
  layer { name: "goal" type: "Convolution" bottom: "x" top: "goal" param { lr_mult: 0 } param { lr_mult: 0 }
    convolution_param { num_output: 4 kernel_size: 3 pad: 1 weight_filler { type: "gaussian" std: 0.3 }
      bias_filler { type: "gaussian" std: 0.5 } } }
  layer { name: "conv" type: "Convolution" bottom: "x" top: "h" param { lr_mult: 1 } param { lr_mult: 2 decay_mult: 0 }
    convolution_param { num_output: 10 kernel_size: 3 pad: 1 stride: 1 weight_filler { type: "xavier" } } }
  layer { name: "relu" type: "ReLU" bottom: "h" top: "h" }
  layer { name: "out" type: "Convolution" bottom: "h" top: "z"
    convolution_param { num_output: 4 kernel_size: 1 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "z" bottom: "goal" top: "loss" loss_weight: 0.05 }
)";

struct Trained {
  std::vector<double> losses;
  std::vector<float> weights;
};

Trained train(Device device, const std::string& text, bool capture, int64_t at_once) {
  Context context(device);
  Losses losses;
  SolverOptions options;
  options.net.capture = capture;
  options.readers = {&losses};
  const std::string policy =
      text.find("lr_policy") == std::string::npos ? "lr_policy: \"fixed\" " : "";
  Solver solver(context,
                parse_solver_text(cat("net_param {", kLearnable, "} random_seed: 3 max_iter: 20 ",
                                      "display: ", at_once == 1 ? 1 : 0, " ", policy, text),
                                  "solver.prototxt"),
                options);
  for (int64_t done = 0; done < 20; done += at_once) solver.step(at_once);
  return {losses.values, parameters_of(solver)};
}

class Rules : public testing::TestWithParam<const char*> {};

TEST_P(Rules, LossesFall) {
  const Trained run = train(Device::cpu, GetParam(), true, 1);
  ASSERT_EQ(run.losses.size(), 20u);
  EXPECT_LT(run.losses.back(), 0.95 * run.losses.front());
}

TEST_P(Rules, AGpuFollowsTheCpu) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  const Trained cpu = train(Device::cpu, GetParam(), true, 1),
                gpu = train(Device::gpu, GetParam(), true, 1);
  for (size_t i = 0; i < cpu.losses.size(); ++i)
    EXPECT_NEAR(gpu.losses[i], cpu.losses[i], 2e-3 * cpu.losses[i]) << i;
}

TEST_P(Rules, RecordedIterationsAreTheSame) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  const Trained one_by_one = train(Device::gpu, GetParam(), false, 1);
  EXPECT_EQ(train(Device::gpu, GetParam(), true, 1).weights, one_by_one.weights);
  EXPECT_EQ(train(Device::gpu, GetParam(), true, 20).weights, one_by_one.weights);
}

INSTANTIATE_TEST_SUITE_P(
    All, Rules,
    testing::Values(
        "type: \"SGD\" base_lr: 0.05 momentum: 0.5",
        "type: \"Nesterov\" base_lr: 0.05 momentum: 0.5", "type: \"AdaGrad\" base_lr: 0.05",
        "type: \"RMSProp\" base_lr: 0.01",
        "type: \"AdaDelta\" base_lr: 1 momentum: 0.9 delta: 1e-4",
        "type: \"Adam\" base_lr: 0.02 momentum: 0.9",
        "type: \"ADAMW\" base_lr: 0.02 adamw_decay: 0.01",
        "type: \"Adam\" base_lr: 0.02 momentum: 0.9 amsgrad: true",
        "type: \"Adam\" base_lr: 0.02 momentum: 0.9 rectified: true",
        "type: \"AdamW\" base_lr: 0.02 weight_decay: 0.1",
        "type: \"AdamW\" base_lr: 0.02 adabelief: true lookahead: true lookahead_steps: 3",
        "base_lr: 0.05 momentum: 0.5 grad_centralization: true lookahead: true ema_decay: 0.9",
        "type: \"LAMB\" base_lr: 0.02 weight_decay: 0.01",
        "type: \"Lion\" base_lr: 0.01 weight_decay: 0.01",
        "type: \"Muon\" base_lr: 0.05 weight_decay: 0.01",
        "base_lr: 0.05 momentum: 0.5 regularization_type: \"decoupled\" weight_decay: 0.01 "
        "ema_decay: 0.9",
        "base_lr: 1 momentum: 0.5 larc: true larc_eta: 0.1",
        "base_lr: 0.1 momentum: 0.5 larc: true larc_eta: 0.1 larc_policy: \"clip\" larc_turbo: "
        "true",
        "base_lr: 1 local_lr_auto: true local_gw_ratio: 0.05 weight_decay: 0.01",
        "base_lr: 0.1 clip_gradients: 5 clip_gradients_blob: 2 clip_gradients_layer: 2.5 "
        "clip_gradients_value: 0.5",
        "base_lr: 0.1 lr_policy: \"plateau\" gamma: 0.7 plateau_winsize: 1 plateau_winsize: 1 "
        "plateau_winsize: 1 average_loss: 3",
        "base_lr: 0.05 momentum: 0.3 lr_policy: \"onecycle\" momentum_policy: \"poly\" "
        "max_momentum: 0.6",
        "base_lr: 0.05 lr_policy: \"cosine\" warmup_iter: 4 momentum_policy: \"opt\" max_momentum: "
        "0.5 "
        "weight_decay: 0.01 weight_decay_policy: \"poly\" max_weight_decay: 0.05"));

}  // namespace rules_test
}  // namespace crema::tests
