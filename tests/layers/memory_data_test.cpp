// MemoryData: new data between passes, shuffle, transform_param.
#include "layers/data/memory_data.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "proto/layer.pb.h"
#include "ranks.h"
#include "support.h"

namespace crema::tests {
namespace memory_data_test {

using Values = std::vector<float>;

class Fed {
 public:
  Fed(const std::string& fields, const std::string& more = "", bool training = true)
      : context_(Device::cpu) {
    LayerParameter message;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        cat("name: \"m\" type: \"MemoryData\" top: \"data\" top: \"label\" memory_data_param { ",
            fields, " } ", more),
        &message));
    layer_ = make_layer(message, training);
    layer_->setup(context_, {});
    shapes_ = layer_->infer({}).tops;
    for (const Shape& shape : shapes_) pass_.top.emplace_back(context_, shape);
  }
  void set(const Values& images, const Values& labels) { memory_data(*layer_).set(images, labels); }
  Values forward(uint64_t number, int top = 0) {
    pass_.pass = number;
    EXPECT_FALSE(layer_->source()->reshapes(number));
    layer_->forward(context_, pass_);
    return to_floats(context_, pass_.top[top]);
  }
  const std::vector<Shape>& shapes() const { return shapes_; }
  Layer& layer() { return *layer_; }
  Context& context() { return context_; }

 private:
  Context context_;
  std::unique_ptr<Layer> layer_;
  std::vector<Shape> shapes_;
  Forward pass_;
};

constexpr const char* kNumbers = "batch_size: 2 channels: 1 height: 1 width: 1 ";

Values counting(int64_t count) {
  Values values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0.f);
  return values;
}

TEST(MemoryRows, NewDataAreThoseOfTheNextPass) {
  Fed fed(kNumbers);
  for (uint64_t pass = 0; pass < 20; ++pass) {
    const auto first = static_cast<float>(10 * pass);
    fed.set({first, first + 1, first + 2}, {first + 3, first + 4, first + 5});
    for (const uint64_t number : {pass, pass + 1, pass}) {
      const auto a = static_cast<float>(2 * number % 3),
                 b = static_cast<float>((2 * number + 1) % 3);
      EXPECT_EQ(fed.forward(number), (Values{first + a, first + b}));
      EXPECT_EQ(fed.forward(number, 1), (Values{first + 3 + a, first + 3 + b}));
    }
  }
  EXPECT_GE(fed.layer().source()->waited(), 0);
}

TEST(MemoryRows, AMistakeKeepsTheDataThatAreThere) {
  Fed fed(kNumbers);
  fed.set({1, 2}, {3, 4});
  expect_part(error_of([&] { fed.set({1, 2, 3}, {4, 5}); }), "2 labels with 3 values of images");
  EXPECT_EQ(fed.forward(0), (Values{1, 2}));
}

TEST(MemoryRows, ShuffleGivesEachSampleOnceAnEpoch) {
  Fed fed(cat(kNumbers, "shuffle: true"));
  fed.set(counting(8), counting(8));
  std::set<Values> orders;
  for (uint64_t epoch = 0; epoch < 5; ++epoch) {
    Values order;
    for (uint64_t batch = 0; batch < 4; ++batch) {
      const Values data = fed.forward(4 * epoch + batch);
      EXPECT_EQ(data, fed.forward(4 * epoch + batch, 1));
      order.insert(order.end(), data.begin(), data.end());
    }
    orders.insert(order);
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, counting(8));
  }
  EXPECT_EQ(orders.size(), 5u);
}

TEST(MemoryRows, RanksHaveTheirOwn) {
  Fed fed(kNumbers);
  Fed second(kNumbers);
  OnlyRank one(1, 2);
  second.context().set_world(&one);
  second.layer().setup(second.context(), {});
  fed.set(counting(3), counting(3));
  second.set(counting(3), counting(3));
  EXPECT_EQ(fed.forward(1), second.forward(1));
}

TEST(MemoryRows, AreTransformed) {
  const std::string size = "batch_size: 1 channels: 2 height: 3 width: 3";
  Fed fed(size, "transform_param { crop_size: 1 mean_value: 1 mean_value: 10 scale: 2 }", false);
  EXPECT_EQ(fed.shapes(), (std::vector<Shape>{{1, 2, 1, 1}, {1}}));
  fed.set(counting(18), {7});
  EXPECT_EQ(fed.forward(0), (Values{6, 6}));  // (4 - 1) * 2, (13 - 10) * 2
  Fed mirrored(size, "transform_param { mirror: true }");
  mirrored.set(counting(18), {7});
  std::set<float> first;
  for (uint64_t pass = 0; pass < 40; ++pass) first.insert(mirrored.forward(pass)[0]);
  EXPECT_EQ(first, (std::set<float>{0, 2}));
  expect_part(error_of([&] { Fed(size, "transform_param { crop_size: 4 }"); }),
              "too small for a crop of 4x4");
  Fed augmented(size, "transform_param { augment { flip { } } }");
  expect_part(error_of([&] { augmented.set(Values(18, 0.5f), {7}); }),
              "sample 0 of those handed over: its data hold the number 0.5");
}

TEST(MemoryRows, TransformNeedsImages) {
  LayerParameter message;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "name: \"m\" type: \"MemoryData\" top: \"data\" memory_data_param { dim: 2 dim: 3 } "
      "transform_param { scale: 2 }",
      &message));
  Context context(Device::cpu);
  const std::unique_ptr<Layer> layer = make_layer(message, true);
  expect_part(error_of([&] { layer->setup(context, {}); }), "but a sample is 3");
}

}  // namespace memory_data_test
}  // namespace crema::tests
