// If ranks share a batch, layers that draw random numbers use those of a sample's position in it: a
// batch of 6 against its parts.
#include <gtest/gtest.h>

#include <algorithm>

#include "layers/hand_row.h"
#include "ranks.h"

namespace crema::tests {
namespace batch_parts_test {

enum class Compares {
  tops_and_gradients,
  zero_tops,       // which values are zero: the others depend on the whole batch
  zero_gradients,  // likewise of bottoms
};

struct DrawingRow {
  const char* name;
  const char* text;
  std::vector<RowBottom> bottoms;
  Compares compares = Compares::tops_and_gradients;
  bool rounding_decides = false;  // where a gradient goes
};

void PrintTo(const DrawingRow& row, std::ostream* out) { *out << row.text; }

const DrawingRow kRows[] = {
    {"Dropout", "type: 'Dropout' dropout_param { dropout_ratio: 0.3 }", {{{6, 3, 4, 5}}}},
    {"DropoutOfOddChannels", "type: 'Dropout'", {{{6, 7, 3, 3}}}},
    {"DropoutOfVectors", "type: 'Dropout'", {{{6, 37}}}},
    {"SpatialDropout", "type: 'SpatialDropout'", {{{6, 5, 4, 3}}}},
    {"SpatialDropoutOfPacks", "type: 'SpatialDropout'", {{{6, 24, 2, 8}}}},
    {"SpatialDropoutOfVectors", "type: 'SpatialDropout'", {{{6, 9}}}},
    {"SeLuDropout", "type: 'SeLuDropout' selu_dropout_param { alpha: -1 }", {{{6, 5, 4, 3}}}},
    {"SeLuDropoutOfVectors", "type: 'SeLuDropout' selu_dropout_param { alpha: -1 }", {{{6, 13}}}},
    {"GuidedDropout",
     "type: 'GuidedDropout' guided_dropout_param { type: 'stochastic' sigmoid_scaler: 0.5 }",
     {{{6, 7, 2, 3}}, {{6, 7}}}},
    {"Noise", "type: 'Noise' noise_param { gaussian_std: 0.5 }", {{{6, 5, 4, 3}}}},
    {"NoiseOfVectors", "type: 'Noise' noise_param { uniform_range: 0.5 }", {{{6, 11}}}},
    {"StochasticPooling",
     "type: 'Pooling' pooling_param { pool: STOCHASTIC kernel_size: 2 stride: 2 }",
     {{{6, 3, 4, 6}, "uniform(0.1,1)"}}},
    {"StochasticPoolingOfVideos",
     "type: 'Pooling' pooling_param { pool: STOCHASTIC kernel_size: 2 stride: 2 }",
     {{{6, 3, 4, 4, 4}, "uniform(0.1,1)"}}},
    {"Spp",
     "type: 'SPP' spp_param { pyramid_height: 2 pool: STOCHASTIC }",
     {{{6, 3, 4, 4}, "uniform(0.1,1)"}}},
    {"MultiHeadAttention",
     "type: 'MultiHeadAttention' multi_head_attention_param { num_heads: 3 dropout_ratio: 0.3 "
     "weight_filler { type: 'xavier' } }",
     {{{6, 5, 6}}}},
    {"DenseBlock",
     "type: 'DenseBlock' denseblock_param { numTransition: 2 growthRate: 3 use_dropout: true "
     "dropout_amount: 0.4 Filter_Filler { type: 'msra' } }",
     {{{6, 3, 4, 4}}},
     Compares::zero_tops},
    {"DetectNetTransformation",
     "type: 'DetectNetTransformation' detectnet_groundtruth_param { stride: 2 image_size_x: 10 "
     "image_size_y: 8 } detectnet_augmentation_param { crop_prob: 1 shift_x: 3 shift_y: 2 "
     "flip_prob: 0.5 rotation_prob: 1 max_rotate_degree: 20 scale_prob: 1 scale_min: 0.7 "
     "scale_max: 1.4 hue_rotation_prob: 1 hue_rotation: 60 desaturation_prob: 1 "
     "desaturation_max: 0.9 }",
     {{{6, 3, 9, 12}, "uniform(0,255)"},
      {{6, 1, 2, 16}, "values(1,16,0,0,0,0,0,0,0,0,0,0,0,0,0,0,1,1,6,5,0,1,0,0,0,0,0,0,0,0,0,0)"}}},
    {"DetectionLoss",
     "type: 'DetectionLoss' detection_loss_param { cls_num: 2 field_h: 40 field_w: 40 "
     "downsample_rate: 8 sample_mode: 'random' }",
     {{{6, 6, 6, 8}}, {{6, 6, 6, 8}, "values(0)"}},
     Compares::zero_gradients},
    {"PooledConvolution",
     "type: 'Convolution+Pooling+Dropout' convolution_param { num_output: 10 kernel_size: 3 "
     "weight_filler { type: 'xavier' } } pooling_param { kernel_size: 2 stride: 2 } "
     "dropout_param { dropout_ratio: 0.5 }",
     {{{6, 8, 9, 9}}},
     {},
     true},
    {"InnerProduct",
     "type: 'InnerProduct+ReLU+Dropout' inner_product_param { num_output: 9 weight_filler { type: "
     "'xavier' } } dropout_param { dropout_ratio: 0.5 }",
     {{{6, 7}}}},
};

// The values of this part's samples out of the whole batch.
std::vector<double> part_of(const std::vector<double>& whole, const BatchShare& samples) {
  const auto each = static_cast<int64_t>(whole.size()) / samples.all;
  return {whole.begin() + samples.first * each,
          whole.begin() + (samples.first + samples.count) * each};
}

std::vector<bool> zeros_of(const std::vector<double>& values) {
  std::vector<bool> zeros;
  for (const double value : values) zeros.push_back(value == 0);
  return zeros;
}

// A GPU may add in another order for another size of the batch.
void expect_same(const std::vector<double>& want, const std::vector<double>& got,
                 const Setting& setting) {
  if (setting.device == Device::gpu) {
    expect_values(want, got, setting.precision == Precision::fp32 ? 1e-4 : 5e-2);
  } else {
    EXPECT_EQ(want, got);
  }
}

class BatchParts : public testing::TestWithParam<DrawingRow> {};

// parts: their samples follow each other.
void compare(const DrawingRow& drawing, const Setting& setting,
             const std::vector<BatchShare>& parts) {
  const Row row = row_of(drawing.text, drawing.bottoms);
  LayerRun whole(row, setting);
  const Start start = whole.make_start();
  const Outcome expected = setting.backward ? whole.backward(start) : whole.forward(start);
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    const BatchShare& samples = parts[rank];
    SCOPED_TRACE(cat("samples from ", samples.first, " to ", samples.first + samples.count));
    Row of_part = row;
    for (RowBottom& bottom : of_part.bottoms) bottom.shape[0] = samples.count;
    LayerRun part(of_part, setting);
    OnlyRank world(static_cast<int>(rank), static_cast<int>(parts.size()));
    part.context().set_world(&world);
    part.set_samples(samples);
    Start own = start;
    for (std::vector<double>& values : own.bottom) values = part_of(values, samples);
    for (std::vector<double>& values : own.top_diff) {
      if (drawing.compares != Compares::zero_gradients) values = part_of(values, samples);
    }
    const Outcome outcome = setting.backward ? part.backward(own) : part.forward(own);
    part.context().set_world(nullptr);
    ASSERT_EQ(outcome.top.size(), expected.top.size());
    for (size_t i = 0; i < outcome.top.size(); ++i) {
      if (drawing.compares == Compares::zero_gradients) continue;
      const std::vector<double> want = part_of(expected.top[i], samples);
      if (drawing.compares == Compares::zero_tops) {
        EXPECT_EQ(zeros_of(want), zeros_of(outcome.top[i])) << "top " << i;
      } else {
        expect_same(want, outcome.top[i], setting);
      }
    }
    for (size_t i = 0; i < outcome.bottom_diff.size(); ++i) {
      if (drawing.compares == Compares::zero_tops) continue;
      if (drawing.rounding_decides && setting.device == Device::gpu) continue;
      const std::vector<double> want = part_of(expected.bottom_diff[i], samples);
      if (drawing.compares == Compares::zero_gradients) {
        EXPECT_EQ(zeros_of(want), zeros_of(outcome.bottom_diff[i])) << "bottom " << i;
      } else {
        expect_same(want, outcome.bottom_diff[i], setting);
      }
    }
  }
}

TEST_P(BatchParts, DrawWhatTheWholeDraws) {
  const DrawingRow& drawing = GetParam();
  const std::vector<BatchShare> parts = {{0, 2, 6}, {2, 1, 6}, {3, 3, 6}};
  std::vector<Setting> settings;
  for (const Order order : {Order::row_major, Order::channels_last}) {
    for (const DType dtype : {DType::f64, DType::f32})
      settings.push_back({.dtype = dtype, .order = order});
    if (gpu_count() == 0) continue;
    for (const Precision precision : {Precision::fp32, Precision::bf16}) {
      settings.push_back({.device = Device::gpu,
                          .dtype = DType::f32,
                          .precision = precision,
                          .order = order,
                          .implementation = ""});
    }
  }
  for (Setting setting : settings) {
    const LayerRun probe(row_of(drawing.text, drawing.bottoms), {});
    const bool takes_any = probe.layer().traits().order_rule != OrderRule::row_major;
    if (setting.order == Order::channels_last && !takes_any) continue;
    setting.backward = probe.layer().differentiable(0);
    SCOPED_TRACE(setting.str());
    compare(drawing, setting, parts);
  }
}

// Regions are sampled from all images of a rank: not those of one rank, but each rank's own.
TEST(ProposalTargetOfRanks, SamplesOtherRegions) {
  const Row row = row_of(
      "type: 'ProposalTarget' top: 'rois' top: 'labels' top: 'targets' top: 'inside' top: "
      "'outside' "
      "top: 'matched' proposal_target_param { cls_num: 3 batch_size: 16 num_img_per_batch: 2 "
      "img_width: 200 img_height: 180 }",
      {{{4, 5}, "values(0,10,10,29,29,1,20,10,39,29)"},
       {{2, 7}, "values(0,10,12,29,30,1,0,1,0,0,50,50,2,1)"}});
  Setting setting;
  setting.backward = false;
  const auto regions = [&](const BatchShare& samples) {
    LayerRun run(row, setting);
    run.set_samples(samples);
    return run.forward(run.make_start()).top[0];
  };
  EXPECT_EQ(regions({0, 2, 6}), regions({}));
  EXPECT_NE(regions({2, 2, 6}), regions({}));
  EXPECT_NE(regions({2, 2, 6}), regions({4, 2, 6}));
}

// The values of a top of a DummyData.
std::vector<double> dummy_values(Communicator* world, int top) {
  const Row row = row_of(
      "type: 'DummyData' top: 'x' top: 'y' top: 'one' dummy_data_param { shape { dim: 7 dim: 3 } "
      "shape { dim: 7 dim: 2 } shape { dim: 1 dim: 3 } data_filler { type: 'gaussian' sparse: 4 } "
      "data_filler { type: 'positive_unitball' } data_filler { type: 'uniform' } }",
      {});
  Setting setting;
  setting.backward = false;
  setting.context = std::make_shared<Context>(Device::cpu);
  setting.context->set_world(world);
  LayerRun run(row, setting);
  return run.forward({}).top.at(static_cast<size_t>(top));
}

TEST(DummyDataOfRanks, IsPartOfTheWhole) {
  for (int top = 0; top < 2; ++top) {
    std::vector<double> together;
    for (int rank = 0; rank < 3; ++rank) {
      OnlyRank world(rank, 3);
      world.divides_batches = true;
      const std::vector<double> part = dummy_values(&world, top);
      together.insert(together.end(), part.begin(), part.end());
      EXPECT_EQ(dummy_values(&world, 2), dummy_values(nullptr, 2));
    }
    EXPECT_EQ(together, dummy_values(nullptr, top));
  }
}

TEST(DummyDataOfRanks, IsOtherDataWhereEachHasABatch) {
  OnlyRank first(0, 2), second(1, 2);
  const std::vector<double> alone = dummy_values(nullptr, 1), other = dummy_values(&second, 1);
  EXPECT_EQ(dummy_values(&first, 1), alone);
  EXPECT_EQ(other.size(), alone.size());
  EXPECT_NE(other, alone);
}

INSTANTIATE_TEST_SUITE_P(All, BatchParts, testing::ValuesIn(kRows),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace batch_parts_test
}  // namespace crema::tests
