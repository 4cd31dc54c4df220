#include "net/plan/arena.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "net/graph/graph_builder.h"
#include "net/net.h"
#include "net/plan/plan.h"
#include "support.h"

namespace crema {
namespace arena_test {

std::vector<Lifetime> random_pieces(uint64_t seed, int count) {
  const Random random{seed, 0};
  std::vector<Lifetime> pieces;
  for (int i = 0; i < count; ++i) {
    const int first = static_cast<int>(random.word(3 * i) % 50);
    pieces.push_back({random.word(3 * i + 1) % 5000, first,
                      first + static_cast<int>(random.word(3 * i + 2) % 10), 0});
  }
  return pieces;
}

TEST(Arena, PiecesAliveTogetherDoNotOverlap) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<Lifetime> pieces = random_pieces(seed, 100);
    const size_t total = assign_offsets(pieces);
    for (size_t a = 0; a < pieces.size(); ++a) {
      EXPECT_EQ(pieces[a].offset % 256, 0u);
      EXPECT_LE(pieces[a].offset + pieces[a].bytes, total);
      for (size_t b = 0; b < a; ++b) {
        const bool together =
            pieces[a].first <= pieces[b].last && pieces[b].first <= pieces[a].last;
        const bool overlap = pieces[a].offset < pieces[b].offset + pieces[b].bytes &&
                             pieces[b].offset < pieces[a].offset + pieces[a].bytes;
        EXPECT_FALSE(together && overlap && pieces[a].bytes > 0 && pieces[b].bytes > 0)
            << a << " and " << b;
      }
    }
  }
}

TEST(Arena, ReusesMemoryOfThePast) {
  std::vector<Lifetime> pieces = {{1024, 0, 1, 0}, {1024, 2, 3, 0}, {512, 4, 5, 0}};
  EXPECT_EQ(assign_offsets(pieces), 1024u);
}

TEST(Arena, GrowsForTheLargestPlan) {
  Context context(Device::cpu);
  ArenaPool pool;
  pool.reserve(100);
  const Buffer* first = pool.buffer(context).get();
  pool.reserve(50);
  EXPECT_EQ(pool.buffer(context).get(), first);
  pool.reserve(1000);
  EXPECT_EQ(pool.buffer(context)->bytes(), 1000u);
}

// Convolutions and products with a ReLU, whose outputs backward reads, and a loss that a layer reads.
NetParameter with_relus(int batch, int channels, int side) {
  const auto layer = [](const char* name, const char* bottom, const std::string& rest) {
    return cat("layer { name: '", name, "' bottom: '", bottom, "' top: '", name, "' ", rest,
               " }\n");
  };
  const auto relu = [](const char* blob) {
    return cat("layer { name: 'relu_", blob, "' type: 'ReLU' bottom: '", blob, "' top: '", blob,
               "' }\n");
  };
  const std::string convolution =
      cat("type: 'Convolution' convolution_param { num_output: ", channels,
          " kernel_size: 5 pad: 2 weight_filler { type: 'xavier' } }");
  const std::string lrn = "type: 'LRN' lrn_param { local_size: 3 }";
  NetParameter net;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      cat("layer { name: 'in' type: 'DummyData' top: 'x' top: 'label' dummy_data_param {"
          "  data_filler { type: 'gaussian' std: 1 } data_filler { type: 'constant' value: 3 }"
          "  shape { dim: ",
          batch, " dim: ", channels, " dim: ", side, " dim: ", side, " } shape { dim: ", batch,
          " } } }\n", layer("c1", "x", convolution), relu("c1"), layer("n1", "c1", lrn),
          layer("c2", "n1", convolution), relu("c2"), layer("n2", "c2", lrn),
          layer("c3", "n2", convolution), relu("c3"), layer("n3", "c3", lrn),
          layer("ip1", "n3",
                "type: 'InnerProduct' inner_product_param { num_output: 32 weight_filler { type: "
                "'xavier' } }"),
          relu("ip1"),
          layer("ip2", "ip1",
                "type: 'InnerProduct' inner_product_param { num_output: 10 weight_filler { type: "
                "'xavier' } }"),
          layer("loss", "ip2", "type: 'SoftmaxWithLoss' bottom: 'label' loss_weight: 1"),
          layer("twice", "loss", "type: 'Power' power_param { scale: 2 }"),
          layer("last", "x", "type: 'Silence'")),
      &net));
  net.mutable_layer(net.layer_size() - 1)->clear_top();
  return net;
}

TEST(SideStreams, ReadAndWriteWhatNothingElseOverwrites) {
  Context context(Device::cpu);
  GraphOptions training;
  training.training = true;
  const Graph graph = build_graph(context, with_relus(2, 4, 6), training);
  PlanOptions options;
  options.backward = options.overlap = true;
  const Plan plan(context, graph, options);
  const int last = plan.step_count() - 1;
  int tops = 0;
  for (const PlanNode& node : plan.nodes) {
    if (!node.backward || node.parameters.empty()) continue;
    SCOPED_TRACE(node.message.name());
    for (int id : node.tops) {
      const PlanValue& top = plan.values[id];
      EXPECT_EQ(plan.storages[top.diff_storage].last, last);
      if (!node.reads.top && !node.layer->is_loss()) continue;
      EXPECT_EQ(plan.storages[top.storage].last, last);
      ++tops;
    }
    for (int id : node.bottoms) EXPECT_EQ(plan.storages[plan.values[id].storage].last, last);
    for (int storage : node.storages.saved) EXPECT_EQ(plan.storages[storage].last, last);
  }
  EXPECT_GE(tops, 4);
}

TEST(SideStreams, KeepTheBitsOnAGpu) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  const NetParameter net = with_relus(100, 32, 16);
  for (const Precision precision : {Precision::fp16, Precision::bf16, Precision::tf32}) {
    std::vector<double> expected;
    for (const bool overlap : {false, true, true, true}) {
      Context context(Device::gpu);
      context.repeatable = true;
      context.tune(TuneMode::off);
      NetOptions options;
      options.state.set_phase(TRAIN);
      options.precision = precision;
      options.overlap = overlap;
      Net trained(context, net, options);
      std::vector<double> found;
      for (uint64_t pass = 0; pass < 5; ++pass) {
        trained.forward(pass);
        trained.backward();
        EXPECT_EQ(to_doubles(context, trained.blob("twice"))[0], 2 * trained.loss());
        found.push_back(trained.loss());
        for (const Parameter& p : trained.parameters())
          for (const double value : to_doubles(context, p.diff)) found.push_back(value);
      }
      for (const double value : found) ASSERT_TRUE(std::isfinite(value));
      if (expected.empty()) expected = found;
      EXPECT_TRUE(found == expected) << name_of(precision) << ", overlap " << overlap;
    }
  }
}

}  // namespace arena_test
}  // namespace crema
