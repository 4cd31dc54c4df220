// Layers that run for a few samples at a time compute what they compute for the whole batch.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "net/net.h"
#include "net/plan/plan.h"
#include "support.h"

namespace crema::tests {
namespace micro_batches_test {

constexpr int64_t kSamples = 12;

struct NetRow {
  const char *name, *text;
  const char* steps;  // what the plan says, for a cache of 8000 bytes
};

const NetRow kRows[] = {
    {"chain", R"(
      layer { name: "c1" type: "Convolution" bottom: "x" top: "c1" convolution_param { num_output: 8 kernel_size: 3 weight_filler { type: "xavier" } } }
      layer { name: "r1" type: "ReLU" bottom: "c1" top: "c1" }
      layer { name: "p1" type: "Pooling" bottom: "c1" top: "p1" pooling_param { kernel_size: 2 stride: 2 } }
      layer { name: "n1" type: "LRN" bottom: "p1" top: "n1" lrn_param { local_size: 3 alpha: 0.1 } }
      layer { name: "i" type: "InnerProduct" bottom: "n1" top: "i" inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
      layer { name: "y" type: "Softmax" bottom: "i" top: "y" })",
     "run for 2 samples at a time"},
    {"views", R"(
      layer { name: "s" type: "Split" bottom: "x" top: "a" top: "b" }
      layer { name: "c1" type: "Convolution" bottom: "a" top: "c1" convolution_param { num_output: 3 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
      layer { name: "t" type: "TanH" bottom: "b" top: "t" }
      layer { name: "e" type: "Eltwise" bottom: "c1" bottom: "t" top: "e" }
      layer { name: "f" type: "Flatten" bottom: "e" top: "f" }
      layer { name: "y" type: "Sigmoid" bottom: "f" top: "y" })",
     "samples at a time"},
    {"branches", R"(
      layer { name: "a" type: "Convolution" bottom: "x" top: "a" convolution_param { num_output: 4 kernel_size: 1 weight_filler { type: "xavier" } } }
      layer { name: "d" type: "ConvolutionDepthwise" bottom: "a" top: "d" convolution_param { num_output: 4 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
      layer { name: "b" type: "BatchNorm" bottom: "a" top: "b" }
      layer { name: "p" type: "Pooling" bottom: "x" top: "p" pooling_param { kernel_size: 3 stride: 1 pad: 1 } }
      layer { name: "cat" type: "Concat" bottom: "d" bottom: "b" bottom: "p" top: "cat" }
      layer { name: "drop" type: "Dropout" bottom: "cat" top: "cat" }
      layer { name: "y" type: "Pooling" bottom: "cat" top: "y" pooling_param { pool: AVE global_pooling: true } })",
     "samples at a time"},
    // A gate for each channel of each sample.
    {"gates", R"(
      layer { name: "c" type: "Convolution" bottom: "x" top: "c" convolution_param { num_output: 12 kernel_size: 1 weight_filler { type: "xavier" } } }
      layer { name: "g" type: "Pooling" bottom: "c" top: "g" pooling_param { pool: AVE global_pooling: true } }
      layer { name: "gs" type: "Sigmoid" bottom: "g" top: "gs" }
      layer { name: "gf" type: "Flatten" bottom: "gs" top: "gf" }
      layer { name: "y" type: "Scale" bottom: "c" bottom: "gf" top: "y" scale_param { axis: 0 } })",
     "samples at a time"},
    // As many factors as samples, but for the channels: what reads them takes the whole batch.
    {"factors_for_all_samples", R"(
      layer { name: "c" type: "Convolution" bottom: "x" top: "c" convolution_param { num_output: 12 kernel_size: 1 weight_filler { type: "xavier" } } }
      layer { name: "d" type: "DummyData" top: "d" dummy_data_param { data_filler { value: 0.5 } shape { dim: 12 } } }
      layer { name: "s" type: "Scale" bottom: "c" bottom: "d" top: "s" scale_param { axis: 1 } }
      layer { name: "t" type: "TanH" bottom: "s" top: "y" })",
     "step "},
    // Statistics of the batch.
    {"statistics", R"(
      layer { name: "c" type: "Convolution" bottom: "x" top: "c" convolution_param { num_output: 6 kernel_size: 3 weight_filler { type: "xavier" } } }
      layer { name: "n" type: "BatchNorm" bottom: "c" top: "n" batch_norm_param { use_global_stats: false } }
      layer { name: "y" type: "ReLU" bottom: "n" top: "y" })",
     "step "},
    // Samples along another axis, and values of two samples.
    {"other_axes", R"(
      layer { name: "c" type: "Convolution" bottom: "x" top: "c" convolution_param { num_output: 6 kernel_size: 3 weight_filler { type: "xavier" } } }
      layer { name: "p" type: "Permute" bottom: "c" top: "p" permute_param { order: 1 order: 0 order: 2 order: 3 } }
      layer { name: "s" type: "Softmax" bottom: "p" top: "s" softmax_param { axis: 1 } }
      layer { name: "r" type: "Reshape" bottom: "s" top: "r" reshape_param { shape { dim: 12 dim: -1 } } }
      layer { name: "y" type: "Softmax" bottom: "r" top: "y" softmax_param { axis: 0 } })",
     "step "},
    {"an_output_in_the_middle", R"(
      layer { name: "c" type: "Convolution" bottom: "x" top: "c" convolution_param { num_output: 6 kernel_size: 3 weight_filler { type: "xavier" } } }
      layer { name: "m" type: "Pooling" bottom: "c" top: "m" pooling_param { kernel_size: 2 stride: 2 } }
      layer { name: "t" type: "TanH" bottom: "c" top: "t" }
      layer { name: "y" type: "Convolution" bottom: "t" top: "y" convolution_param { num_output: 4 kernel_size: 2 weight_filler { type: "xavier" } } })",
     "samples at a time"},
};

struct Opened {
  Context context{Device::cpu};
  std::unique_ptr<Net> net;

  Opened(const char* text, size_t cache_bytes) {
    NetParameter message;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        cat("layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: ", kSamples,
            " dim: 3 dim: 9 dim: 8 } } }", text),
        &message));
    NetOptions options;
    options.state.set_phase(TEST);
    options.micro_batches = cache_bytes > 0;
    options.cache_bytes = cache_bytes;
    net = std::make_unique<Net>(context, message, options);
    for (const Parameter& p : net->parameters()) {
      std::vector<float> values = to_floats(context, p.data);
      for (size_t i = 0; i < values.size(); ++i) {
        if (!p.learned) values[i] = 0.5f + 0.1f * static_cast<float>(i % 7);
      }
      from_floats(context, values.data(), p.data);
    }
    net->parameters_changed();
  }

  std::vector<std::vector<float>> outputs(uint64_t stream) {
    std::vector<float> values(static_cast<size_t>(net->input("x").count()));
    const Random random{5, stream};
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(random.normal(i));
    net->set_input("x", values.data());
    net->forward(stream);
    std::vector<std::vector<float>> found;
    for (const Net::Output& output : net->outputs())
      found.push_back(to_floats(context, output.value));
    return found;
  }
};

class MicroBatches : public testing::TestWithParam<NetRow> {};

TEST_P(MicroBatches, ComputeWhatTheBatchComputes) {
  Opened whole(GetParam().text, 0);
  expect_part(whole.net->dump_plan(), "micro_batches off");
  for (const size_t cache_bytes : {1000, 4000, 8000, 20000, 1000000}) {
    SCOPED_TRACE(cache_bytes);
    Opened divided(GetParam().text, cache_bytes);
    if (cache_bytes == 8000) expect_part(divided.net->dump_plan(), GetParam().steps);
    if (cache_bytes == 1000000) expect_part(divided.net->dump_plan(), "micro_batches off");
    for (uint64_t pass = 0; pass < 3; ++pass) {
      const auto expected = whole.outputs(pass), found = divided.outputs(pass);
      ASSERT_EQ(found.size(), expected.size());
      for (size_t k = 0; k < found.size(); ++k) {
        ASSERT_EQ(found[k].size(), expected[k].size());
        for (size_t i = 0; i < found[k].size(); ++i)
          ASSERT_NEAR(found[k][i], expected[k][i], 2e-6 + 2e-5 * std::abs(expected[k][i]))
              << i << "\n"
              << divided.net->dump_plan();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, MicroBatches, testing::ValuesIn(kRows),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(MicroBatches, SaveMemoryAndAreNotShown) {
  Opened whole(kRows[0].text, 0), divided(kRows[0].text, 8000);
  EXPECT_LT(divided.net->memory().arena(), whole.net->memory().arena());
  EXPECT_TRUE(whole.net->has_blob("p1"));
  EXPECT_FALSE(divided.net->has_blob("p1"));
  EXPECT_TRUE(divided.net->has_blob("y"));
}

TEST(MicroBatches, AreForPlansWithoutGradients) {
  NetParameter message;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      cat("layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 12 dim: 3 dim: 9 "
          "dim: 8 } } }",
          kRows[0].text),
      &message));
  Context context(Device::cpu);
  NetOptions options;
  options.cache_bytes = 1000;
  options.state.set_phase(TRAIN);
  expect_part(Net(context, message, options).dump_plan(), "micro_batches off");
  options.state.set_phase(TEST);
  options.backward = true;
  expect_part(Net(context, message, options).dump_plan(), "micro_batches off");
}

}  // namespace micro_batches_test
}  // namespace crema::tests
