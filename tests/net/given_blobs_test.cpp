// `blobs` of a prototxt: the first values of a layer's parameters, in every form that files have.
#include "net/graph/given_blobs.h"

#include "net/deploy/deploy.h"
#include "net/graph/filter.h"
#include "net/net_text.h"
#include "net/prototxt/prototxt.h"
#include "net/surgery/surgery.h"
#include "net/weights/weights.h"
#include "support.h"

namespace crema::tests {
namespace given_blobs_test {

std::unique_ptr<Net> net_of(Context& context, const std::string& text, Net* share = nullptr) {
  const NetFile file = parse_net_text(text, "net.prototxt");
  NetOptions options;
  options.state = net_state(share ? TEST : TRAIN, file.net, {});
  options.share = share;
  options.where = [&](int layer) { return file.where(layer); };
  return std::make_unique<Net>(context, file.net, options);
}

// The values of all parameters: "1 2, 3".
std::string values(Net& net) {
  std::vector<std::string> all;
  for (const Parameter& parameter : net.parameters()) {
    std::vector<std::string> words;
    for (const float value : to_floats(net.context(), parameter.data)) words.push_back(cat(value));
    all.push_back(join(words, " "));
  }
  return join(all, ", ");
}

constexpr const char* kInput =
    "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 2 dim: 1 dim: 1 } "
    "} }\n";
// An InnerProduct of one output, whose parameters are 1x2 and 1.
std::string product(const std::string& blobs) {
  return cat(kInput, "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'ip' ",
             "inner_product_param { num_output: 1 weight_filler { type: 'nothing' } }\n", blobs,
             " }");
}

// As text, the values of a large layer would take a minute.
TEST(GivenBlobs, AreNotInTheLogOfTheNet) {
  Context context(Device::cpu);
  Lines log;
  context.set_log(log);
  const auto net = net_of(
      context, product("blobs { shape { dim: [1, 2] } data: [0.25, 0.5] } blobs { data: 0 }"));
  EXPECT_EQ(values(*net).substr(0, 8), "0.25 0.5");
  const std::string text = join(log.all, "\n");
  expect_part(text, "num_output: 1");
  EXPECT_EQ(text.find("0.25"), std::string::npos);
}

struct Row {
  const char *what, *layers, *wanted;
};

const Row kRows[] = {
    {"a convolution",
     "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c' convolution_param { num_output: 1 "
     "kernel_size: 1 bias_term: false } blobs { shape { dim: [1, 2, 1, 1] } data: [0.25, 0.5] } }",
     "0.25 0.5"},
    {"a PReLU",
     "layer { type: 'PReLU' bottom: 'x' top: 'x' blobs { shape { dim: 2 } data: [3, 4] } }", "3 4"},
    {"a Scale",
     "layer { type: 'Scale' bottom: 'x' top: 'x' scale_param { bias_term: true } blobs { shape { "
     "dim: 2 } data: [3, 4] } blobs { shape { dim: 2 } data: [5, 6] } }",
     "3 4, 5 6"},
    {"a BatchNorm",
     "layer { type: 'BatchNorm' bottom: 'x' top: 'x' blobs { shape { dim: 2 } data: [3, 4] } blobs "
     "{ shape { dim: 2 } data: [5, 6] } blobs { shape { dim: 1 } data: 2 } }",
     "3 4, 5 6, 2"},
    {"a Parameter",
     "layer { type: 'Parameter' top: 'p' parameter_param { shape { dim: 3 } } blobs { shape { dim: "
     "3 } data: [7, 8, 9] } }",
     "7 8 9"},
    {"doubles, and gradients, which do not count",
     "layer { type: 'PReLU' bottom: 'x' top: 'x' blobs { shape { dim: 2 } double_data: [3, 4.5] "
     "double_diff: [1, 1] } }",
     "3 4.5"},
    {"no shape", "layer { type: 'PReLU' bottom: 'x' top: 'x' blobs { data: 3 data: 4 } }", "3 4"},
    {"a scalar",
     "layer { type: 'Scale' bottom: 'x' top: 'x' scale_param { num_axes: 0 } blobs { shape { } "
     "data: 3 } }",
     "3"},
    {"four axes",
     "layer { type: 'PReLU' bottom: 'x' top: 'x' blobs { num: 1 channels: 1 height: 1 "
     "width: 2 data: [3, 4] } }",
     "3 4"},
    {"a shared parameter: the values of its owner",
     "layer { name: 'a' type: 'PReLU' bottom: 'x' top: 'a' param { name: 'p' } blobs { shape { "
     "dim: "
     "2 } data: [3, 4] } }"
     "layer { name: 'b' type: 'PReLU' bottom: 'x' top: 'b' param { name: 'p' } blobs { shape { "
     "dim: "
     "2 } data: [5, 6] } }",
     "3 4"},
};

TEST(GivenBlobs, AreTheFirstValues) {
  Context context(Device::cpu);
  for (const Row& row : kRows) {
    EXPECT_EQ(values(*net_of(context, cat(kInput, row.layers))), row.wanted) << row.what;
  }
}

TEST(GivenBlobs, OfOldGenerations) {
  Context context(Device::cpu);
  const std::string blobs =
      "blobs { num: 1 channels: 1 height: 1 width: 2 data: [3, 4] } "
      "blobs { num: 1 channels: 1 height: 1 width: 1 data: 5 }";
  const std::string input = "input: 'x' input_dim: [2, 2, 1, 1] ";
  EXPECT_EQ(values(*net_of(context, cat(input,
                                        "layers { name: 'ip' type: INNER_PRODUCT bottom: 'x' top: "
                                        "'y' inner_product_param { num_output: 1 } ",
                                        blobs, " }"))),
            "3 4, 5");
  EXPECT_EQ(values(*net_of(context, cat(input,
                                        "layers { layer { name: 'ip' type: 'innerproduct' "
                                        "num_output: 1 ",
                                        blobs, " } bottom: 'x' top: 'y' }"))),
            "3 4, 5");
}

const Row kErrors[] = {
    {"too few blobs", "blobs { shape { dim: [1, 2] } data: [1, 2] }",
     "net.prototxt:2:1: layer \"ip\": blobs is given 1 time, but type InnerProduct has 2 "
     "parameters here"},
    {"another shape", "blobs { shape { dim: [2, 1] } data: [1, 2] } blobs { data: 3 }",
     "net.prototxt:2:1: layer \"ip\": blobs 0 has the shape 2x1, but parameter 0 of this layer has "
     "the shape 1x2"},
    {"another count", "blobs { data: [1, 2] } blobs { data: [3, 4] }",
     "net.prototxt:2:1: layer \"ip\": blobs 1 has 2 values, but parameter 1 of this layer has the "
     "shape 1"},
    {"missing values", "blobs { shape { dim: [1, 2] } data: 1 } blobs { data: 3 }",
     "net.prototxt:3:1: layer \"ip\": blobs 0 has the shape 1x2, which takes 2 values, but data "
     "gives 1"},
    {"an axis is missing", "blobs { data: [1, 2] } blobs { num: 1 channels: 1 width: 1 data: 3 }",
     "net.prototxt:3:24: layer \"ip\": blobs 1 has the shape 1x1x0x1, but each extent must be"},
    {"two kinds", "blobs { data: 1 double_data: 2 } blobs { data: 3 }",
     "net.prototxt:3:1: layer \"ip\": blobs 0 has 1 values of data and 1 of double_data"},
};

TEST(GivenBlobs, MustFit) {
  Context context(Device::cpu);
  for (const Row& row : kErrors) {
    expect_part(error_of([&] { net_of(context, product(row.layers)); }), row.wanted);
  }
  expect_part(
      error_of([&] {
        net_of(context, cat(kInput,
                            "layer { name: 'r' type: 'ReLU' bottom: 'x' top: 'y' "
                            "blobs { data: 1 } }"));
      }),
      "net.prototxt:2:1: layer \"r\": blobs is given 1 time, but type ReLU has 0 parameters");
}

TEST(GivenBlobs, GiveWayToWeightsAndAreThoseOfTheTestNet) {
  Context context(Device::cpu);
  const Folder folder;
  const std::string text =
      product("blobs { shape { dim: [1, 2] } data: [1, 2] } blobs { shape { dim: 1 } data: 3 }");
  const auto net = net_of(context, text);
  const auto test = net_of(context, text, net.get());
  EXPECT_EQ(values(*test), "1 2, 3");
  save_caffemodel(*net_of(context, product("blobs { data: [5, 6] } blobs { data: 7 }")),
                  folder.file("w.caffemodel"));
  load_weights(*net, folder.file("w.caffemodel"));
  EXPECT_EQ(values(*net), "5 6, 7");
  EXPECT_EQ(values(*test), "5 6, 7");
}

// These fields in nets that are written.
TEST(GivenBlobs, AreInDeployedNetsAndBecomeThoseOfConvolutions) {
  Context context(Device::cpu);
  for (const bool turned : {false, true}) {
    const NetFile file = parse_net_text(
        cat("layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: [1, 1, 2, 2] } } "
            "} layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'ip' inner_product_param { "
            "num_output: 2 bias_term: false transpose: ",
            turned ? "true" : "false", " } blobs { shape { dim: [",
            turned ? "4, 2] } data: [1, 5, 2, 6, 3, 7, 4, 8] } }"
                   : "2, 4] } data: [1, 2, 3, 4, 5, 6, 7, 8] } }"),
        "net.prototxt");
    const DeployedNet deployed = deploy(file.net, {}, silent_log());
    NetOptions options;
    options.state = net_state(TEST, deployed.net, {});
    Net given(context, deployed.net, options);
    const Surgery surgery =
        make_fully_convolutional(deployed.net, given.graph(), [](int) { return "net"; });
    Net made(context, surgery.net, options);
    EXPECT_EQ(made.parameters()[0].shape, (Shape{2, 1, 2, 2}));
    EXPECT_EQ(values(made), "1 2 3 4 5 6 7 8");
  }
}

TEST(GivenBlobs, AreWrittenAsLists) {
  Context context(Device::cpu);
  std::vector<std::string> numbers;
  for (int i = 0; i < 20; ++i) numbers.push_back(cat(i + 0.5));
  const std::string list = cat("data: [", join(numbers, ", "), "]");
  const NetFile file =
      parse_net_text(cat("layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: [2, "
                         "20] } } } layer "
                         "{ type: 'PReLU' bottom: 'x' top: 'x' blobs { shape { dim: 20 } ",
                         list, " } }"),
                     "net.prototxt");
  const std::string text = net_text(file.net);
  expect_part(text, list + "\n");
  EXPECT_EQ(values(*net_of(context, text)), join(numbers, " "));
}

}  // namespace given_blobs_test
}  // namespace crema::tests
