// Values that backward has written again: which they are, how long they live, and that nothing is
// learned differently.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <map>

#include "device/memory_account.h"
#include "net/graph/graph_builder.h"
#include "net/net.h"
#include "net/plan/plan.h"
#include "support.h"

namespace crema::tests {
namespace recompute_test {

std::string convolution(const std::string& name, const std::string& bottom, int outputs) {
  return cat("layer { name: '", name, "' type: 'Convolution' bottom: '", bottom, "' top: '", name,
             "' convolution_param { num_output: ", outputs,
             " kernel_size: 1 bias_term: false weight_filler { type: 'xavier' } } }\n");
}

// In place, joined with a ReLU; `sum`: a blob that is added before it.
std::string normalized(const std::string& blob, const std::string& sum = "") {
  std::string text =
      cat("layer { name: 'norm_", blob, "' type: 'BatchNorm' bottom: '", blob, "' top: '", blob,
          "' }\nlayer { name: 'scale_", blob, "' type: 'Scale' bottom: '", blob, "' top: '", blob,
          "' scale_param { bias_term: true } }\n");
  std::string last = blob;
  if (!sum.empty()) {
    last = "sum_" + blob;
    text += cat("layer { name: '", last, "' type: 'Eltwise' bottom: '", sum, "' bottom: '", blob,
                "' top: '", last, "' }\n");
  }
  return text + cat("layer { name: 'relu_", blob, "' type: 'ReLU' bottom: '", last, "' top: '",
                    last, "' }\n");
}

// Two residual blocks: a, sum_c and sum_e are read by convolutions; b and d within the blocks. Then
// `more` convolutions, none of whose results can be recomputed.
NetParameter blocks(int batch, int side, int more = 0) {
  NetParameter net;
  std::string last = "sum_e", convolutions;
  for (int i = 0; i < more; ++i) {
    const std::string name = cat("more", i);
    convolutions += convolution(name, last, 8);
    last = name;
  }
  const std::string text =
      cat("name: 'blocks' layer { name: 'in' type: 'DummyData' top: 'x' top: 'label' "
          "dummy_data_param { shape { dim: ",
          batch, " dim: 4 dim: ", side, " dim: ", side, " } shape { dim: ", batch,
          " } data_filler { type: 'gaussian' } data_filler { value: 1 } } }\n") +
      convolution("a", "x", 8) + normalized("a") + convolution("b", "a", 8) + normalized("b") +
      convolution("c", "b", 8) + normalized("c", "a") + convolution("d", "sum_c", 8) +
      normalized("d") + convolution("e", "d", 8) + normalized("e", "sum_c") + convolutions +
      convolution("f", last, 2) +
      "layer { name: 'mean' type: 'Pooling' bottom: 'f' top: 'mean' pooling_param { pool: AVE "
      "global_pooling: true } }\n"
      "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'mean' bottom: 'label' top: 'loss' }";
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &net));
  return net;
}

NetOptions options_for(Recompute recompute) {
  NetOptions options;
  options.state.set_phase(TRAIN);
  options.recompute = recompute;
  return options;
}

Plan plan_of(int batch, int side, Recompute recompute, int more = 0) {
  Context context(Device::cpu);
  GraphOptions graph_options;
  graph_options.training = true;
  const Graph graph = build_graph(context, blocks(batch, side, more), graph_options);
  PlanOptions options;
  options.backward = true;
  options.recompute = recompute;
  return Plan(context, graph, options);
}

std::vector<std::string> written_recomputed(const Plan& plan) {
  std::vector<std::string> names;
  for (const PlanNode& node : plan.nodes) {
    for (int id : node.tops) {
      if (plan.values[id].recomputed()) names.push_back(plan.values[id].blob);
    }
  }
  return names;
}

TEST(Recompute, ChoosesWhatCanBeWrittenFromWhatIsKept) {
  // sum_c is not written again, because d and with it sum_e would have to come from it; its own
  // second bottom, a, is.
  EXPECT_EQ(written_recomputed(plan_of(2, 4, Recompute::all)),
            (std::vector<std::string>{"a", "b", "d", "sum_e"}));
  EXPECT_TRUE(written_recomputed(plan_of(2, 4, Recompute::off)).empty());
  // Too small to be worth a launch.
  EXPECT_TRUE(written_recomputed(plan_of(2, 4, Recompute::cheap)).empty());
}

TEST(Recompute, CheapIsAShareOfTheTraffic) {
  // Values of 16 MiB: all of them could go, but each costs two such pieces of traffic, and a
  // convolution moves five.
  for (const auto& [more, count] : {std::pair{0, 0u}, {6, 1u}, {18, 2u}})
    EXPECT_EQ(written_recomputed(plan_of(8, 256, Recompute::cheap, more)).size(), count) << more;
}

TEST(Recompute, ValuesLiveOnlyWhereTheyAreRead) {
  const Plan plan = plan_of(2, 4, Recompute::all);
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlanNode& node = plan.nodes[i];
    if (node.message.top_size() == 0 || node.message.top(0) != "b" ||
        node.message.type() == "Convolution")
      continue;
    // Its only reader is the step that follows.
    const PlanValue& value = plan.values[node.tops[0]];
    const int reader = static_cast<int>(i) + 1;
    EXPECT_EQ(plan.storages[value.storage].last, plan.forward_step(reader));
    EXPECT_EQ(plan.storages[value.recomputed_storage].first, plan.backward_step(reader));
    EXPECT_EQ(plan.storages[value.recomputed_storage].last, plan.backward_step(reader));
    ASSERT_EQ(plan.nodes[reader].recomputations.size(), 1u);
    EXPECT_EQ(plan.nodes[reader].recomputations[0].node, static_cast<int>(i));
    // Its source is available.
    EXPECT_GE(plan.storages[plan.values[node.bottoms[0]].storage].last, plan.backward_step(reader));
    return;
  }
  FAIL() << "no step writes b";
}

TEST(Recompute, LearnsTheSameBits) {
  const auto run = [](Recompute recompute) {
    Context context(Device::cpu);
    Net net(context, blocks(4, 6), options_for(recompute));
    for (int pass = 0; pass < 3; ++pass) {
      net.forward(static_cast<uint64_t>(pass));
      net.backward(pass > 0);
    }
    std::map<std::string, std::vector<double>> numbers;
    for (const Parameter& p : net.parameters()) {
      numbers[cat(p.layer, p.index)] = to_doubles(context, p.data);  // running averages, too
      if (p.learned) numbers[cat(p.layer, p.index, " diff")] = to_doubles(context, p.diff);
    }
    return numbers;
  };
  EXPECT_EQ(run(Recompute::off), run(Recompute::all));
}

TEST(Recompute, StandsInWhereMemoryIsScarce) {
  Context context(Device::cpu);
  const size_t kept = Net(context, blocks(64, 8), options_for(Recompute::off)).memory().total();
  const size_t recomputed =
      Net(context, blocks(64, 8), options_for(Recompute::all)).memory().total();
  EXPECT_LE(recomputed, kept - 2 * 64 * 8 * 64 * sizeof(float));
  Context scarce(Device::cpu);
  scarce.memory()->limit((recomputed + kept) / 2, "-gpu_memory 1MB");
  Net net(scarce, blocks(64, 8), options_for(Recompute::cheap));
  EXPECT_EQ(net.memory().total(), recomputed);
  expect_part(net.dump_plan(), "recompute all: 4 values, ");
  // The batch that a refusal names counts on it.
  scarce.memory()->limit(recomputed * 2, "-gpu_memory 1MB");
  const std::string message =
      error_of([&] { Net(scarce, blocks(1000, 8), options_for(Recompute::cheap)); });
  const size_t at = message.find("batch of ", message.find("are allowed"));
  ASSERT_NE(at, std::string::npos) << message;
  const int fits = std::stoi(message.substr(at + 9));
  Net(scarce, blocks(fits, 8), options_for(Recompute::cheap));
}

}  // namespace recompute_test
}  // namespace crema::tests
