// Model and Trainer on a GPU, from several threads.
#include <thread>

#include "crema.h"
#include "device/device.h"
#include "solver/fixtures.h"

namespace crema::tests {
namespace on_gpu_test {

class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (usable_gpus() == 0) GTEST_SKIP() << gpu_problem();
  }
  std::string net() const {
    folder_.write("net.prototxt", R"(
      layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 4 dim: 3 dim: 9 dim: 9 } } }
      layer { name: "conv" type: "Convolution" bottom: "x" top: "conv"
        convolution_param { num_output: 16 kernel_size: 3 weight_filler { type: "xavier" } } }
      layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
      layer { name: "fc" type: "InnerProduct" bottom: "conv" top: "fc"
        inner_product_param { num_output: 5 weight_filler { type: "xavier" } } })");
    return folder_.file("net.prototxt");
  }
  std::string solver(const std::string& more) const {
    folder_.write("solver.prototxt",
                  cat("net_param {", kNet, "}\nbase_lr: 0.1 lr_policy: \"fixed\" random_seed: 3 ",
                      "snapshot_prefix: \"", folder_.file("small"), "\"\n", more));
    return folder_.file("solver.prototxt");
  }
  static std::vector<float> forward(Model& model) {
    std::vector<float> input(4 * 3 * 9 * 9);
    for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(i * 7 % 11) / 11;
    model.set_input("x", input);
    model.forward();
    return model.values("fc");
  }

  Folder folder_;
};

TEST_F(OnGpu, GivesWhatTheCpuGives) {
  Model cpu(net());
  const std::vector<float> wanted = forward(cpu);
  for (const auto& [precision, tolerance] : {std::pair("fp32", 1e-5), std::pair("tf32", 1e-2),
                                             std::pair("bf16", 0.1), std::pair("fp16", 1e-2)}) {
    Model gpu(net(), {.device = ComputeDevice::gpu(), .precision = precision});
    std::vector<float> found;
    std::thread([&] { found = forward(gpu); }).join();  // not the thread that made it
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], tolerance);
    expect_part(error_of([&] { gpu.view("fc"); }), "is on a GPU: copy it with values()");
    // The 16-bit copies of weights follow.
    for (const ParameterInfo& p : cpu.parameters()) {
      std::vector<float> weights = cpu.parameter(p.layer, p.index);
      for (float& weight : weights) weight = 0;
      gpu.set_parameter(p.layer, p.index, weights);
    }
    EXPECT_EQ(forward(gpu), std::vector<float>(wanted.size())) << precision;
  }
}

TEST_F(OnGpu, ASnapshotGoesOnAsIfNothingHadBeen) {
  const auto weights = [](const Trainer& trainer) {
    std::vector<std::vector<float>> all;
    for (const ParameterInfo& p : trainer.parameters())
      all.push_back(trainer.parameter(p.layer, p.index));
    return all;
  };
  const TrainerOptions options = {.device = ComputeDevice::gpu(), .deterministic = true};
  Trainer whole(solver("momentum: 0.9"), options), first(solver("momentum: 0.9"), options);
  whole.step(40);
  first.step(23);
  TrainerOptions resumed = options;
  resumed.snapshot = first.snapshot().state;
  Trainer second(solver("momentum: 0.9"), resumed);
  std::thread([&] { second.step(17); }).join();
  EXPECT_EQ(weights(second), weights(whole));
  EXPECT_EQ(second.loss(), whole.loss());
  EXPECT_EQ(second.learning_rate(), whole.learning_rate());
}

}  // namespace on_gpu_test
}  // namespace crema::tests
