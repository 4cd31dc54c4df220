// A training net opened for inference computes the same as in training.
#include "crema.h"
#include "crema/dropout_net.h"
#include "support.h"

namespace crema::tests {
namespace deploy_model_test {

TEST(DeployedModel, ComputesTheSameWithTrainedWeights) {
  const Folder folder;
  folder.write("net.prototxt", kDropoutNet);
  folder.write("solver.prototxt", cat("net: \"", folder.file("net.prototxt"),
                                      "\" base_lr: 0.1 lr_policy: \"fixed\" max_iter: 5 "
                                      "random_seed: 3 snapshot_prefix: \"",
                                      folder.file("trained"), "\""));
  std::vector<float> images(4 * 36);
  for (size_t i = 0; i < images.size(); ++i) images[i] = static_cast<float>(i * i % 17) / 17;
  const std::vector<float> labels = {0, 2, 1, 2};
  Trainer trainer(folder.file("solver.prototxt"));
  trainer.set_input("data", images);
  trainer.set_input("label", labels);
  trainer.step(5);
  const std::string weights = trainer.snapshot().weights;

  Model judged(folder.file("net.prototxt"), {.weights = {weights}});
  judged.set_input("data", images);
  judged.set_input("label", labels);
  judged.forward();

  Model used(folder.file("net.prototxt"), {.weights = {weights}, .deploy = true, .batch = 4});
  ASSERT_EQ(used.inputs().size(), 1u);
  ASSERT_EQ(used.outputs().size(), 1u);
  used.set_input("data", images);
  used.forward();
  EXPECT_EQ(used.values("prob"), judged.values("prob"));

  Model single(folder.file("net.prototxt"), {.weights = {weights}, .deploy = true});
  EXPECT_EQ(single.inputs()[0].shape, std::vector<int64_t>({1, 1, 6, 6}));
}

TEST(DeployedModel, NamesTheOptionThatHelps) {
  const Folder folder;
  folder.write("net.prototxt",
               "layer { name: \"d\" type: \"Data\" top: \"x\" top: \"label\" data_param { source: "
               "\"nothing\" batch_size: 4 } }\n"
               "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"x\" top: \"ip\" "
               "inner_product_param { num_output: 3 axis: 9 } }\n");
  const std::string file = folder.file("net.prototxt");
  expect_part(error_of([&] { Model(file, {.deploy = true}); }),
              "for example assume = \"x=SHAPE\" (with");
  expect_part(error_of([&] { Model(file, {.deploy = true, .assume = "y=1x2"}); }),
              "assume: no data layer has a top \"y\"");
  expect_part(error_of([&] { Model(file, {.assume = "x=1x2"}); }), "opened with deploy");
  // Layers keep their places in the file.
  expect_part(error_of([&] { Model(file, {.deploy = true, .assume = "x=1x2"}); }),
              "net.prototxt:2:1: layer \"ip\": ");
}

}  // namespace deploy_model_test
}  // namespace crema::tests
