// Plans for different shapes run the same layers: what a layer keeps for a plan belongs to that plan.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <thread>

#include "net/graph/graph_builder.h"
#include "net/net.h"
#include "net/plan/arena.h"
#include "net/plan/plan.h"
#include "support.h"

namespace crema::tests {
namespace shared_layers_test {

struct NetCase {
  const char* name;
  const char* inputs;  // the first axis, or the second of `steps`, is that of the samples
  const char* layers;
};

const NetCase kCases[] = {{"images", R"(
      layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 1 dim: 3 dim: 9 dim: 8 } } })",
                           R"(
      layer { name: "a" type: "Convolution" bottom: "x" top: "a" convolution_param { num_output: 8 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
      layer { name: "ra" type: "ReLU" bottom: "a" top: "a" }
      layer { name: "b" type: "Convolution" bottom: "x" top: "b" convolution_param { num_output: 8 kernel_size: 1 weight_filler { type: "xavier" } } }
      layer { name: "cat" type: "Concat" bottom: "a" bottom: "b" top: "cat" }
      layer { name: "norm" type: "BatchNorm" bottom: "cat" top: "norm" }
      layer { name: "pool" type: "Pooling" bottom: "norm" top: "pool" pooling_param { kernel_size: 2 stride: 2 } }
      layer { name: "lrn" type: "LRN" bottom: "pool" top: "lrn" lrn_param { local_size: 3 } }
      layer { name: "drop" type: "Dropout" bottom: "lrn" top: "lrn" }
      layer { name: "up" type: "Deconvolution" bottom: "lrn" top: "up" convolution_param { num_output: 4 kernel_size: 2 stride: 2 weight_filler { type: "xavier" } } }
      layer { name: "h" type: "InnerProduct" bottom: "up" top: "y" inner_product_param { num_output: 6 weight_filler { type: "xavier" } } })"},
                          {"sequences", R"(
      layer { name: "in" type: "Input" top: "steps" top: "cont" input_param { shape { dim: 4 dim: 1 dim: 5 } shape { dim: 4 dim: 1 } } })",
                           R"(
      layer { name: "lstm" type: "LSTM" bottom: "steps" bottom: "cont" top: "l" recurrent_param { num_output: 6 weight_filler { type: "xavier" } } }
      layer { name: "rnn" type: "RNN" bottom: "l" bottom: "cont" top: "r" recurrent_param { num_output: 6 weight_filler { type: "xavier" } } }
      layer { name: "att" type: "MultiHeadAttention" bottom: "r" top: "y" multi_head_attention_param { num_heads: 2 weight_filler { type: "xavier" } } })"}};

NetParameter net_of(const NetCase& c) {
  NetParameter net;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(cat(c.inputs, c.layers, R"(
      layer { name: "loss" type: "Reduction" bottom: "y" top: "loss" loss_weight: 1
              reduction_param { operation: SUMSQ } })"),
                                                            &net));
  return net;
}

// The net's graph for another number of samples, with its layers or with new ones.
Graph graph_for(Context& context, const Net& net, int64_t samples, bool own_layers) {
  Graph graph = net.graph();
  const auto make = [&](Node& node, const std::vector<Shape>& bottoms) {
    node.layer = make_layer(node.message, node.layer->training());
    node.layer->setup(context, bottoms);
  };
  for (Node& node : graph.nodes) {
    if (node.message.type() != "Input") continue;
    for (BlobShape& shape : *node.message.mutable_input_param()->mutable_shape())
      shape.set_dim(node.message.top(0) == "steps" ? 1 : 0, samples);
    make(node, {});
  }
  infer_shapes(graph);
  for (Node& node : graph.nodes) {
    std::vector<Shape> bottoms;
    for (const int value : node.bottoms) bottoms.push_back(graph.values[value].shape);
    if (own_layers && !bottoms.empty()) make(node, bottoms);
  }
  return graph;
}

class PlanRun {
 public:
  PlanRun(Context& context, Graph graph, bool backward)
      : context_(context), graph_(std::move(graph)), plan_(context, graph_, options(backward)) {
    arena_.reserve(plan_.arena_bytes);
    plan_.bind(context_, arena_.buffer(context_), graph_.parameters);
    for (const PlanNode& node : plan_.nodes) {
      if (node.message.type() != "Input") continue;
      for (const int id : node.tops) {
        std::vector<float> values;
        for (int64_t i = 0; i < plan_.value(id).count(); ++i)
          values.push_back(
              plan_.values[id].blob == "cont" ? 1.f : 0.1f * static_cast<float>(i % 17) - 0.7f);
        from_floats(context_, values.data(), plan_.value(id));
      }
    }
  }

  // The loss and, with backward, the gradients of all parameters.
  std::vector<std::vector<float>> run(uint64_t pass) {
    for (PlanNode& node : plan_.nodes) {
      node.arguments.forward.pass = node.arguments.backward.pass = pass;
      if (!node.layer->traits().is_view) node.layer->forward(context_, node.arguments.forward);
    }
    std::vector<std::vector<float>> results;
    for (const int id : plan_.outputs) results.push_back(to_floats(context_, plan_.value(id)));
    if (!plan_.options.backward) return results;
    for (const int parameter : plan_.cleared) zero(context_, graph_.parameters[parameter].diff);
    for (auto node = plan_.nodes.rbegin(); node != plan_.nodes.rend(); ++node) {
      Backward& arguments = node->arguments.backward;
      arguments.accumulate.assign(node->arguments.accumulate.begin(),
                                  node->arguments.accumulate.end());
      if (node->backward && !node->layer->traits().is_view)
        node->layer->backward(context_, arguments);
    }
    for (const Parameter& parameter : graph_.parameters)
      if (parameter.learned) results.push_back(to_floats(context_, parameter.diff));
    return results;
  }

  std::vector<const Layer*> layers() const {
    std::vector<const Layer*> all;
    for (const PlanNode& node : plan_.nodes)
      if (!node.bottoms.empty()) all.push_back(node.layer.get());
    return all;
  }

 private:
  static PlanOptions options(bool backward) {
    PlanOptions options;
    options.backward = backward;
    options.fuse = options.format = false;  // the plans' layers are those of the graph, all of them
    return options;
  }

  Context& context_;
  Graph graph_;
  Plan plan_;
  ArenaPool arena_;
};

TEST(SharedLayersTest, PlansForDifferentShapesRunAlternately) {
  for (const NetCase& c : kCases) {
    SCOPED_TRACE(c.name);
    Context context(Device::cpu);
    NetOptions options;
    options.state.set_phase(TRAIN);
    const Net net(context, net_of(c), options);
    PlanRun small(context, graph_for(context, net, 2, false), true),
        large(context, graph_for(context, net, 5, false), true);
    ASSERT_EQ(small.layers(), large.layers());
    PlanRun own_small(context, graph_for(context, net, 2, true), true),
        own_large(context, graph_for(context, net, 5, true), true);
    for (uint64_t pass = 0; pass < 3; ++pass) {
      EXPECT_EQ(small.run(pass), own_small.run(pass)) << "pass " << pass;
      EXPECT_EQ(large.run(pass), own_large.run(pass)) << "pass " << pass;
    }
  }
}

TEST(SharedLayersTest, ThreadsRunOneSetOfLayersAndWeights) {
  for (const NetCase& c : kCases) {
    SCOPED_TRACE(c.name);
    constexpr int kThreads = 3;
    Context context(Device::cpu);
    NetOptions options;
    options.state.set_phase(TEST);
    const Net net(context, net_of(c), options);
    std::vector<std::vector<std::vector<float>>> wanted, got(kThreads);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
      wanted.push_back(PlanRun(context, graph_for(context, net, 1 + i, true), false).run(0));
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        Context own(Device::cpu);
        PlanRun plan(own, graph_for(own, net, 1 + i, false), false);
        for (int pass = 0; pass < 20; ++pass) plan.run(1);
        got[i] = PlanRun(own, graph_for(own, net, 1 + i, false), false).run(0);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wanted, got);
  }
}

}  // namespace shared_layers_test
}  // namespace crema::tests
