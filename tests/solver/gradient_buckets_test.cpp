// Which parts of the gradient arena are summed together, and after which node.
#include "solver/ranks/gradient_buckets.h"

#include <google/protobuf/text_format.h>

#include <map>

#include "support.h"

namespace crema::tests {
namespace gradient_buckets_test {

std::string text_of(const std::vector<GradientBucket>& buckets) {
  std::string text;
  for (const GradientBucket& bucket : buckets) {
    text += cat(text.empty() ? "" : " ", bucket.first, "+", bucket.count, "@", bucket.node);
  }
  return text;
}

struct Row {
  const char* what;
  std::vector<GradientRange> ranges;
  int64_t first, others;
  const char* buckets;  // first+count@node, in order
  int64_t last = 1 << 20;
};

TEST(GradientBuckets, Rows) {
  const Row rows[] = {
      {"nothing", {}, 16, 32, ""},
      {"nothing learns", {{0, 16, -1}, {16, 16, -1}}, 16, 32, ""},
      {"one small parameter", {{0, 10, 3}}, 16, 32, "0+16@3"},
      {"from the end, the first small",
       {{0, 32, 1}, {32, 32, 2}, {64, 16, 3}},
       16,
       32,
       "64+16@3 32+32@2 0+32@1"},
      {"final when the last of its parameters is",
       {{0, 16, 1}, {16, 16, 2}, {32, 16, 3}},
       16,
       32,
       "32+16@3 0+32@1"},
      {"a large one is split, its rest joins the next",
       {{0, 16, 1}, {16, 80, 2}},
       16,
       32,
       "80+16@2 48+32@2 16+32@2 0+16@1"},
      {"split where no bucket was open", {{0, 112, 5}}, 16, 32, "96+16@5 64+32@5 32+32@5 0+32@5"},
      {"padding is covered", {{0, 3, 1}, {16, 5, 2}}, 64, 64, "0+32@1"},
      {"pieces begin at multiples of 16",
       {{0, 1, 1}, {16, 57, 2}},
       16,
       48,
       "64+16@2 16+48@2 0+16@1"},
      {"statistics inside a bucket are covered",
       {{0, 16, 1}, {16, 8, -1}, {32, 16, 2}},
       256,
       256,
       "0+48@1"},
      {"frozen layers at the ends are omitted",
       {{0, 512, -1}, {512, 16, 1}, {528, 512, -1}},
       256,
       256,
       "512+16@1"},
      {"a large frozen layer between separates buckets",
       {{0, 16, 1}, {16, 512, -1}, {528, 16, 2}},
       256,
       256,
       "528+16@2 0+16@1"},
      {"a gap that does not fit is omitted",
       {{0, 16, 1}, {16, 16, -1}, {32, 112, 2}},
       128,
       128,
       "32+112@2 0+16@1"},
      {"a shared parameter waits for its first reader",
       {{0, 16, 4}, {16, 16, 0}, {32, 16, 6}},
       16,
       16,
       "32+16@6 0+16@4 16+16@0"},
      {"without elements", {{0, 16, 1}, {16, 0, 2}, {16, 16, 3}}, 64, 64, "0+32@1"},
      {"the last is small",
       {{0, 16, 1}, {16, 16, 2}, {32, 16, 3}, {48, 16, 4}},
       256,
       256,
       "32+32@3 0+32@1",
       40},
      {"no small parameter at the start", {{0, 64, 1}, {64, 16, 2}}, 256, 256, "0+80@1", 40},
      {"all are the last", {{0, 16, 1}, {16, 16, -1}, {32, 16, 2}}, 256, 256, "0+48@1", 32},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(text_of(gradient_buckets(row.ranges, {row.first, row.others, row.last})), row.buckets)
        << row.what;
  }
}

TEST(GradientBuckets, SizesAreWholeVectors) {
  EXPECT_EQ(error_of([] {
              gradient_buckets({}, {16, 40});
            }),
            "buckets of 16 and 40 elements: expected multiples of 16");
  EXPECT_EQ(error_of([] {
              gradient_buckets({{8, 16, 1}}, {16, 32});
            }),
            "a gradient begins at element 8: expected a multiple of 16");
}

constexpr const char* kNet = R"(
  layer { name: "in" type: "DummyData" top: "x" top: "y"
    dummy_data_param { shape { dim: 2 dim: 3 dim: 8 dim: 8 } shape { dim: 2 }
                       data_filler { type: "gaussian" } data_filler { value: 1 } } }
  layer { name: "a" type: "Convolution" bottom: "x" top: "a" param { name: "shared" } param { name: "bias" }
    convolution_param { num_output: 3 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
  layer { name: "norm" type: "BatchNorm" bottom: "a" top: "norm" }
  layer { name: "scale" type: "Scale" bottom: "norm" top: "scale" scale_param { bias_term: true } }
  layer { name: "b" type: "Convolution" bottom: "scale" top: "b" param { name: "shared" } param { name: "bias" }
    convolution_param { num_output: 3 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
  layer { name: "frozen" type: "Convolution" bottom: "b" top: "c" param { lr_mult: 0 } param { lr_mult: 0 }
    convolution_param { num_output: 4 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
  layer { name: "large" type: "InnerProduct" bottom: "c" top: "d"
    inner_product_param { num_output: 100 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "d" bottom: "y" top: "loss" })";

// Gradients in a final bucket must not change any more, and everything that backward writes must be
// in a bucket.
TEST(GradientBuckets, FinalWhenTheNetSaysSo) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    NetParameter text;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(kNet, &text));
    Context context(Device::cpu);
    NetOptions options;
    options.dtype = dtype;
    options.state.set_phase(TRAIN);
    Net net(context, text, options);
    net.forward(0);
    const std::vector<GradientBucket> buckets = gradient_buckets(net, {4 << 10, 16 << 10});
    ASSERT_GT(buckets.size(), 4u);

    const auto values_of = [&](const GradientBucket& bucket) {
      const std::vector<double> all = to_doubles(context, net.diff_arena());
      return std::vector<double>(all.begin() + bucket.first,
                                 all.begin() + bucket.first + bucket.count);
    };
    std::map<size_t, std::vector<double>> when_final;
    std::vector<size_t> order;
    net.backward(false, {}, {}, [&](int node) {
      for (size_t i = 0; i < buckets.size(); ++i) {
        if (when_final.count(i) > 0 || buckets[i].node != node) continue;
        when_final[i] = values_of(buckets[i]);
        order.push_back(i);
      }
    });
    EXPECT_EQ(order.size(), buckets.size());
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
    std::vector<int> times_covered(net.diff_arena().count());
    for (size_t i = 0; i < buckets.size(); ++i) {
      EXPECT_EQ(when_final[i], values_of(buckets[i])) << text_of({buckets[i]});
      for (int64_t at = 0; at < buckets[i].count; ++at) ++times_covered[buckets[i].first + at];
    }
    for (size_t i = 0; i < net.parameters().size(); ++i) {
      const Parameter& parameter = net.parameters()[i];
      for (int64_t at = 0; at < parameter.diff.elements(); ++at) {
        const int times = times_covered[net.parameter_offset(static_cast<int>(i)) + at];
        EXPECT_LE(times, 1);
        const bool wanted = parameter.learned && parameter.lr_mult != 0;
        EXPECT_GE(times, wanted ? 1 : 0) << parameter.layer << " " << at;
      }
    }
    // The bucket of the first convolution waits for it, although a later layer uses its weights.
    EXPECT_EQ(net.parameters()[0].layer, "a");
    EXPECT_EQ(buckets.back().node, net.final_nodes()[0]);
    EXPECT_EQ(buckets.back().first, 0);
  }
}

}  // namespace gradient_buckets_test
}  // namespace crema::tests
