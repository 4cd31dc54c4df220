// The table of the fuse pass, and the fusion that src/layers/fused/README.md shows.
#include "net/passes/fuse_patterns.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "net/graph/graph_builder.h"

namespace crema {
namespace fuse_patterns_test {

TEST(FusePatterns, EachLeadsToARegisteredType) {
  for (const FusePattern& pattern : fuse_patterns())
    EXPECT_TRUE(LayerRegistry::has(pattern.type())) << pattern.type();
}

std::vector<std::string> types(const char* relu, const std::vector<FusePattern>* patterns) {
  NetParameter net;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      cat(R"(layer { name: "in" type: "Input" top: "a" top: "b" input_param { shape { dim: 2 dim: 3 } } }
             layer { name: "sum" type: "Eltwise" bottom: "a" bottom: "b" top: "c" }
             layer { name: "relu" type: "ReLU" bottom: "c" top: "c" )",
          relu, "}"),
      &net));
  Context context(Device::cpu);
  GraphOptions graph_options;
  graph_options.training = true;
  PlanOptions options;
  options.backward = true;
  options.patterns = patterns;
  const Plan plan(context, build_graph(context, net, graph_options), options);
  std::vector<std::string> types;
  for (const PlanNode& node : plan.nodes) types.push_back(node.message.type());
  return types;
}

TEST(FusePatterns, ARowOfTheTableIsAllThatAFusionNeeds) {
  const std::vector<std::string> apart = {"Input", "Eltwise", "ReLU"},
                                 fused = {"Input", "Sum+ReLU"};
  const std::vector<FusePattern> shown = {
      {"Sum+ReLU", "", [](const FuseMatch& match) {
         return match.node("ReLU").message.relu_param().negative_slope() == 0;
       }}};
  EXPECT_EQ(types("", nullptr), apart);
  EXPECT_EQ(types("", &shown), fused);
  EXPECT_EQ(types("relu_param { negative_slope: 0.1 }", &shown), apart);
}

}  // namespace fuse_patterns_test
}  // namespace crema
