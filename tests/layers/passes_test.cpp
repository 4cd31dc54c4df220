// Layers whose tops depend on the number of the pass: Dropout, DummyData, MemoryData.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "layers/data/memory_data.h"
#include "proto/layer.pb.h"

namespace crema {
namespace passes_test {

using Values = std::vector<float>;

// One layer without parameters, ready to run on the CPU.
class Runner {
 public:
  Runner(const std::string& text, const std::vector<Shape>& bottoms, int tops)
      : context_(Device::cpu) {
    LayerParameter message;
    require(google::protobuf::TextFormat::ParseFromString(text, &message), "cannot parse ", text);
    message.set_name("layer");
    for (int i = 0; i < tops; ++i) message.add_top(cat("top", i));
    layer_ = make_layer(message, true);
    layer_->setup(context_, bottoms);
    for (const Shape& shape : bottoms) pass_.bottom.emplace_back(context_, shape);
    for (const Shape& shape : layer_->infer(bottoms).tops) pass_.top.emplace_back(context_, shape);
    Preparation preparation;
    preparation.bottoms = bottoms;
    preparation.tops.resize(tops);
    prepared_ = layer_->prepare(context_, preparation);
    pass_.state = prepared_.state.get();
  }

  Layer& layer() { return *layer_; }
  Tensor bottom() const { return pass_.bottom[0]; }
  Tensor top() const { return pass_.top[0]; }
  void set_seed(uint64_t seed) { context_.seed = seed; }
  Values forward(uint64_t number, int top = 0) {
    pass_.pass = number;
    layer_->forward(context_, pass_);
    return to_floats(context_, pass_.top[top]);
  }

 private:
  Context context_;
  std::unique_ptr<Layer> layer_;
  Prepared prepared_;
  Forward pass_;
};

TEST(DropoutTest, DropsTheShareAndKeepsTheMean) {
  Runner runner("type: 'Dropout' dropout_param { dropout_ratio: 0.3 }", {{100, 403}}, 1);
  for (int64_t i = 0; i < runner.bottom().count(); ++i) runner.bottom().data<float>()[i] = 1;
  int dropped = 0;
  for (float value : runner.forward(0)) {
    if (value == 0) {
      ++dropped;
    } else {
      ASSERT_FLOAT_EQ(value, 1 / 0.7f);
    }
  }
  EXPECT_NEAR(dropped / 40300.0, 0.3, 5 * std::sqrt(0.21 / 40300));
}

TEST(DropoutTest, MaskIsAFunctionOfSeedAndPass) {
  Runner runner("type: 'Dropout'", {{10, 40}}, 1);
  for (int64_t i = 0; i < runner.bottom().count(); ++i) runner.bottom().data<float>()[i] = 1;
  const Values first = runner.forward(0);
  EXPECT_NE(runner.forward(1), first);
  EXPECT_EQ(runner.forward(0), first);
  runner.set_seed(2);
  EXPECT_NE(runner.forward(0), first);
}

TEST(DropoutTest, NeighboursAreIndependent) {
  Runner runner("type: 'Dropout'", {{4, 64, 25, 25}}, 1);
  for (int64_t i = 0; i < runner.bottom().count(); ++i) runner.bottom().data<float>()[i] = 1;
  const Values values = runner.forward(0);
  for (size_t distance :
       {1, 625, 625 * 16, 625 * 64}) {  // along a row, to the next channels, to the next image
    double product = 0;
    const size_t count = values.size() - distance;
    for (size_t i = 0; i < count; ++i) product += (values[i] - 1) * (values[i + distance] - 1);
    EXPECT_NEAR(product / static_cast<double>(count), 0, 5 / std::sqrt(count)) << distance;
  }
}

TEST(DummyDataTest, ConstantIsWrittenOnceAndTheRestAnew) {
  Runner runner(
      "type: 'DummyData' dummy_data_param { shape { dim: 5 } data_filler { value: 2 } "
      "data_filler { type: 'gaussian' } }",
      {}, 2);
  const Values random = runner.forward(0, 1);
  EXPECT_EQ(runner.forward(0), Values(5, 2));
  EXPECT_NE(runner.forward(1, 1), random);
  EXPECT_EQ(runner.forward(0, 1), random);
  runner.top().data<float>()[0] = 9;
  EXPECT_EQ(runner.forward(2)[0], 9);  // nobody wrote it again
}

class MemoryDataTest : public testing::Test {
 protected:
  Runner runner_{
      "type: 'MemoryData' memory_data_param { batch_size: 2 channels: 1 height: 1 width: 2 }",
      {},
      2};
};

TEST_F(MemoryDataTest, PassesWalkThroughTheImages) {
  memory_data(runner_.layer()).set({0, 1, 10, 11, 20, 21}, {5, 6, 7});
  EXPECT_EQ(runner_.forward(0), (Values{0, 1, 10, 11}));
  EXPECT_EQ(runner_.forward(0, 1), (Values{5, 6}));
  EXPECT_EQ(runner_.forward(1), (Values{20, 21, 0, 1}));
  EXPECT_EQ(runner_.forward(1, 1), (Values{7, 5}));
  EXPECT_EQ(runner_.forward(3), (Values{0, 1, 10, 11}));
}

TEST(MemoryDataOfAnyShape, NeedsNoLabels) {
  Runner runner("type: 'MemoryData' memory_data_param { dim: 1 dim: 3 }", {}, 1);
  memory_data(runner.layer()).set({0, 1, 2, 10, 11, 12}, {});
  EXPECT_EQ(runner.forward(1), (Values{10, 11, 12}));
  EXPECT_THROW(memory_data(runner.layer()).set({0, 1}, {}), Error);
}

TEST_F(MemoryDataTest, CountsMustFit) {
  EXPECT_THROW(memory_data(runner_.layer()).set({0, 1, 2}, {5}), Error);
  EXPECT_THROW(memory_data(runner_.layer()).set({}, {}), Error);
}

TEST_F(MemoryDataTest, OtherLayersHaveNoSuchData) {
  Runner other("type: 'Split'", {{1}}, 1);
  EXPECT_THROW(memory_data(other.layer()), Error);
}

}  // namespace passes_test
}  // namespace crema
