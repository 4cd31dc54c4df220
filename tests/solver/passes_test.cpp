// -off switches change how fast a net trains and how much memory it needs, not the results: the
// losses of 30 iterations with each switch, and with all of them, against those with none.
#include <gtest/gtest.h>

#include <cmath>

#include "solver/fixtures.h"

namespace crema::tests {
namespace passes_test {

// One of every kind that a pass treats differently.
const char* kLayers = R"(
  layer { name: "c1" type: "Convolution" bottom: "x" top: "c1" convolution_param { num_output: 8 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
  layer { name: "r1" type: "ReLU" bottom: "c1" top: "c1" }
  layer { name: "n1" type: "LRN" bottom: "c1" top: "n1" lrn_param { local_size: 3 alpha: 0.1 } }
  layer { name: "c2" type: "Convolution" bottom: "n1" top: "c2" convolution_param { num_output: 8 kernel_size: 3 pad: 1 bias_term: false weight_filler { type: "xavier" } } }
  layer { name: "b2" type: "BatchNorm" bottom: "c2" top: "c2" batch_norm_param { moving_average_fraction: 0.9 } }
  layer { name: "s2" type: "Scale" bottom: "c2" top: "c2" scale_param { bias_term: true } }
  layer { name: "sum" type: "Eltwise" bottom: "c1" bottom: "c2" top: "sum" }
  layer { name: "r2" type: "ReLU" bottom: "sum" top: "sum" }
  layer { name: "p" type: "Pooling" bottom: "sum" top: "p" pooling_param { kernel_size: 3 stride: 2 } }
  layer { name: "rp" type: "ReLU" bottom: "p" top: "p" }
  layer { name: "q1" type: "Convolution" bottom: "p" top: "q1" convolution_param { num_output: 16 kernel_size: 1 bias_term: false weight_filler { type: "xavier" } } }
  layer { name: "bq1" type: "BatchNorm" bottom: "q1" top: "q1" batch_norm_param { moving_average_fraction: 0.9 } }
  layer { name: "sq1" type: "Scale" bottom: "q1" top: "q1" scale_param { bias_term: true } }
  layer { name: "q2" type: "Convolution" bottom: "p" top: "q2" convolution_param { num_output: 16 kernel_size: 3 pad: 1 bias_term: false weight_filler { type: "xavier" } } }
  layer { name: "bq2" type: "BatchNorm" bottom: "q2" top: "q2" batch_norm_param { moving_average_fraction: 0.9 } }
  layer { name: "sq2" type: "Scale" bottom: "q2" top: "q2" scale_param { bias_term: true } }
  layer { name: "q" type: "Eltwise" bottom: "q1" bottom: "q2" top: "q" }
  layer { name: "rq" type: "ReLU" bottom: "q" top: "q" }
  layer { name: "a" type: "Convolution" bottom: "q" top: "a" convolution_param { num_output: 8 kernel_size: 1 weight_filler { type: "xavier" } } }
  layer { name: "ba" type: "BatchNorm" bottom: "a" top: "a" }
  layer { name: "sa" type: "Scale" bottom: "a" top: "a" scale_param { bias_term: true } }
  layer { name: "ra" type: "ReLU" bottom: "a" top: "a" }
  layer { name: "a2" type: "Convolution" bottom: "a" top: "a2" convolution_param { num_output: 8 kernel_size: 1 weight_filler { type: "xavier" } } }
  layer { name: "ra2" type: "ReLU" bottom: "a2" top: "a2" }
  layer { name: "b" type: "Convolution" bottom: "p" top: "b" convolution_param { num_output: 8 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
  layer { name: "rb" type: "ReLU" bottom: "b" top: "b" relu_param { negative_slope: 0.1 } }
  layer { name: "cat" type: "Concat" bottom: "a2" bottom: "b" bottom: "p" bottom: "q" top: "cat" }
  layer { name: "c3" type: "Convolution" bottom: "cat" top: "c3" convolution_param { num_output: 16 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
  layer { name: "r3" type: "ReLU" bottom: "c3" top: "c3" }
  layer { name: "p3" type: "Pooling" bottom: "c3" top: "p3" pooling_param { kernel_size: 2 stride: 2 } }
  layer { name: "d3" type: "Dropout" bottom: "p3" top: "p3" dropout_param { dropout_ratio: 0.25 } }
  layer { name: "c4" type: "Convolution" bottom: "p3" top: "c4" convolution_param { num_output: 16 kernel_size: 3 pad: 1 bias_term: false weight_filler { type: "xavier" } } }
  layer { name: "b4" type: "BatchNorm" bottom: "c4" top: "c4" batch_norm_param { moving_average_fraction: 0.9 } }
  layer { name: "s4" type: "Scale" bottom: "c4" top: "c4" scale_param { bias_term: true } }
  layer { name: "r4" type: "ReLU" bottom: "c4" top: "c4" }
  layer { name: "p4" type: "Pooling" bottom: "c4" top: "p4" pooling_param { kernel_size: 2 stride: 2 } }
  layer { name: "h" type: "InnerProduct" bottom: "p4" top: "h" inner_product_param { num_output: 16 weight_filler { type: "xavier" } } }
  layer { name: "rh" type: "ReLU" bottom: "h" top: "h" }
  layer { name: "drop" type: "Dropout" bottom: "h" top: "h" }
  layer { name: "z" type: "InnerProduct" bottom: "h" top: "z" inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "z" bottom: "label" top: "loss" })";

struct Off {
  const char* name;
  bool fuse = false, format = false, memory = false, overlap = false, resident = false,
       capture = false;
  Recompute recompute = Recompute::cheap;
};

const Off kOffs[] = {
    {.name = "fuse", .fuse = true},
    {.name = "format", .format = true},
    {.name = "memory", .memory = true},
    {.name = "fuse and format", .fuse = true, .format = true},
    {.name = "fuse and memory", .fuse = true, .memory = true},
    {.name = "format and memory", .format = true, .memory = true},
    {.name = "overlap", .overlap = true},
    {.name = "recompute", .recompute = Recompute::off},
    {.name = "resident", .resident = true},
    {.name = "capture", .capture = true},
    {"all", true, true, true, true, true, true, Recompute::off},
};

struct Where {
  Device device;
  Precision precision;
  double tolerance;  // of the first losses, relative: training magnifies what rounding begins
};

const Where kWheres[] = {
    {Device::cpu, Precision::fp32, 2e-3}, {Device::gpu, Precision::fp32, 2e-3},
    {Device::gpu, Precision::tf32, 4e-2}, {Device::gpu, Precision::bf16, 1e-1},
    {Device::gpu, Precision::fp16, 1e-1},
};

std::vector<double> losses_of(const Where& where, const Off& off) {
  const Folder folder;
  const std::string data =
      image_database(folder, 64, {3, 12, 12}, [](int64_t i) { return static_cast<int>(i % 4); });
  const std::string net =
      cat(R"(layer { name: "data" type: "Data" top: "x" top: "label"
      data_param { batch_size: 16 backend: LMDB source: ")",
          data, R"(" } transform_param { scale: 0.01 mean_value: 128 } })", kLayers);
  Context context(where.device);
  context.resident = !off.resident;
  Losses losses;
  SolverOptions options;
  options.readers = {&losses};
  options.net.capture = !off.capture;
  options.net.precision = where.precision;
  options.net.fuse = !off.fuse;
  // 16 bits exist channels-last only.
  options.net.format = !off.format || is_half(where.precision);
  options.net.reuse_memory = !off.memory;
  options.net.overlap = !off.overlap;
  options.net.recompute = off.recompute;
  Solver solver(context,
                parse_solver_text(cat("net_param {", net, "} base_lr: 0.01 lr_policy: \"fixed\" ",
                                      "momentum: 0.9 display: 1 random_seed: 3"),
                                  "solver.prototxt"),
                options);
  solver.step(30);
  return losses.values;
}

class Switches : public testing::TestWithParam<Where> {};

TEST_P(Switches, KeepWhatIsLearned) {
  const Where& where = GetParam();
  if (where.device == Device::gpu && gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  const std::vector<double> all_on = losses_of(where, {});
  ASSERT_EQ(all_on.size(), 30u);
  EXPECT_LT(all_on.back(), 0.9 * all_on.front());
  for (const Off& off : kOffs) {
    SCOPED_TRACE(off.name);
    const std::vector<double> losses = losses_of(where, off);
    ASSERT_EQ(losses.size(), all_on.size());
    for (size_t i = 0; i < losses.size(); ++i)
      EXPECT_NEAR(losses[i], all_on[i],
                  where.tolerance * (1 + static_cast<double>(i) / 10) * std::abs(all_on[i]))
          << i;
  }
}

// The normalized "a" and "cat", whose bottoms are all kept, are recomputed.
TEST_P(Switches, RecomputeKeepsEveryBit) {
  const Where& where = GetParam();
  if (where.device == Device::gpu && gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  const Off kept{.name = "", .overlap = true, .recompute = Recompute::off},
      again{.name = "", .overlap = true, .recompute = Recompute::all};
  EXPECT_EQ(losses_of(where, kept), losses_of(where, again));
}

INSTANTIATE_TEST_SUITE_P(All, Switches, testing::ValuesIn(kWheres), [](const auto& info) {
  return cat(info.param.device == Device::gpu ? "gpu_" : "cpu_", name_of(info.param.precision));
});

}  // namespace passes_test
}  // namespace crema::tests
