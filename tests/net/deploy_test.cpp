// What becomes of nets that are trained when they are made ready for use.
#include "net/deploy/deploy.h"

#include <cstring>

#include "net/graph/filter.h"
#include "net/prototxt/prototxt.h"
#include "support.h"

namespace crema::tests {
namespace deploy_test {

DeployedNet deployed(const std::string& text, DeployOptions options, Log& log = silent_log()) {
  const NetFile file = parse_net_text(text, "net.prototxt");
  NetState state;
  state.set_phase(TEST);
  std::vector<int> kept;
  const NetParameter net = filter_net(file.net, state, silent_log(), &kept);
  options.where = [&](int layer) { return file.where(kept[layer]); };
  return deploy(net, options, log);
}

// A line for each layer: "name Type bottom bottom > top".
std::string outline(const NetParameter& net) {
  std::string lines;
  for (const LayerParameter& layer : net.layer()) {
    lines += layer.name() + " " + layer.type();
    for (const std::string& bottom : layer.bottom()) lines += " " + bottom;
    if (layer.top_size() > 0) lines += " >";
    for (const std::string& top : layer.top()) lines += " " + top;
    if (layer.type() == "Input") {
      for (const int64_t extent : layer.input_param().shape(0).dim()) lines += cat(" ", extent);
    }
    lines += "\n";
  }
  return lines;
}

constexpr const char* kData =
    "layer { name: 'data' type: 'Input' top: 'x' top: 'label' input_param { shape { dim: 8 dim: 3 "
    "dim: 6 dim: 6 } shape { dim: 8 } } }\n";

// The text of such lines, with a loss_weight after "w=" and the name of a parameter after "p=".
std::string layers(const std::string& lines) {
  std::string text;
  for (const std::string& line : split(lines, '\n')) {
    const std::vector<std::string> words = split(line, ' ');
    if (words.size() < 2) continue;
    text += cat("layer { name: '", words[0], "' type: '", words[1], "'");
    bool tops = false;
    for (size_t i = 2; i < words.size(); ++i) {
      if (words[i] == ">") {
        tops = true;
      } else if (starts_with(words[i], "w=")) {
        text += " loss_weight: " + words[i].substr(2);
      } else if (starts_with(words[i], "p=")) {
        text += " param { name: '" + words[i].substr(2) + "' lr_mult: 2 }";
      } else {
        text += cat(tops ? " top: '" : " bottom: '", words[i], "'");
      }
    }
    if (words[1] == "InnerProduct")
      text +=
          " inner_product_param { num_output: 4 bias_term: false weight_filler { type: "
          "'xavier' } }";
    text += " }\n";
  }
  return text;
}

struct Row {
  const char* what;
  const char* layers;  // after kData, for layers()
  const char* left;    // outline(), without "data Input > x 1 3 6 6"
};

const Row kRows[] = {
    {"a classifier",
     "ip InnerProduct x > ip\nacc Accuracy ip label > acc\n"
     "loss SoftmaxWithLoss ip label > loss",
     "ip InnerProduct x > ip\nprob Softmax ip > prob\n"},
    {"a loss without a top", "ip InnerProduct x > ip\nloss SoftmaxWithLoss ip label",
     "ip InnerProduct x > ip\nprob Softmax ip > prob\n"},
    {"a name that is taken", "prob InnerProduct x > prob\nloss SoftmaxWithLoss prob label > loss",
     "prob InnerProduct x > prob\nprob_2 Softmax prob > prob_2\n"},
    {"a second top with the probabilities",
     "ip InnerProduct x > ip\nloss SoftmaxWithLoss ip label > loss p",
     "ip InnerProduct x > ip\nprob Softmax ip > p\n"},
    {"a Softmax that is there",
     "ip InnerProduct x > ip\np Softmax ip > p\n"
     "acc Accuracy p label > acc\nloss SoftmaxWithLoss ip label > loss",
     "ip InnerProduct x > ip\np Softmax ip > p\n"},
    {"sigmoids", "ip InnerProduct x > ip\nloss SigmoidCrossEntropyLoss ip label > loss",
     "ip InnerProduct x > ip\nprob Sigmoid ip > prob\n"},
    {"an autoencoder",
     "flat Flatten x > flat\nip InnerProduct flat > ip\n"
     "loss SigmoidCrossEntropyLoss ip flat > loss\ns Sigmoid ip > s\n"
     "l2 EuclideanLoss s flat > l2 w=0",
     "flat Flatten x > flat\nip InnerProduct flat > ip\ns Sigmoid ip > s\n"},
    {"a regression, after a Dropout",
     "ip InnerProduct x > ip\ndrop Dropout ip > ip\n"
     "loss EuclideanLoss ip label > loss",
     "ip InnerProduct x > ip\n"},
    {"a Dropout before something that stays",
     "ip InnerProduct x > ip\ndrop Dropout ip > ip\nloss SoftmaxWithLoss ip label > loss",
     "ip InnerProduct x > ip\ndrop Dropout ip > ip\nprob Softmax ip > prob\n"},
    {"a layer that only shows values, and one that only learns with labels",
     "ip InnerProduct x > ip\ndebug Debug ip label > seen\n"
     "margin LabelSpecificAdd seen label > m\nloss SoftmaxWithLoss m label > loss",
     "ip InnerProduct x > ip\nprob Softmax ip > prob\n"},
    {"scores that only a metric reads", "ip InnerProduct x > ip\nacc Accuracy ip label > acc",
     "ip InnerProduct x > ip\n"},
    {"an auxiliary head",
     "a InnerProduct x > a\naux InnerProduct a > aux\naux_relu ReLU aux > aux\n"
     "aux_loss SoftmaxWithLoss aux label > aux_loss w=0.3\naux_acc Accuracy aux label > aux_acc\n"
     "b InnerProduct a > b\nloss SoftmaxWithLoss b label > loss",
     "a InnerProduct x > a\nb InnerProduct a > b\nprob Softmax b > prob\n"},
    {"heads of the same weight",
     "a InnerProduct x > a\nla SoftmaxWithLoss a label > la\nb InnerProduct x > b\n"
     "lb SoftmaxWithLoss b label > lb",
     "a InnerProduct x > a\na_prob Softmax a > a_prob\nb InnerProduct x > b\n"
     "b_prob Softmax b > b_prob\n"},
    {"heads with labels of their own, one of a smaller weight",
     "kinds Slice label > one two\na InnerProduct x > a\nla SoftmaxWithLoss a one > la\n"
     "b InnerProduct x > b\nlb SoftmaxWithLoss b two > lb w=0.5",
     "a InnerProduct x > a\na_prob Softmax a > a_prob\nb InnerProduct x > b\n"
     "b_prob Softmax b > b_prob\n"},
    {"layers on labels, and a loss of several layers",
     "target Power label > target\nip InnerProduct x > ip\nd Eltwise ip target > d\n"
     "sum Reduction d > sum w=1",
     "ip InnerProduct x > ip\n"},
    {"a Silence",
     "ip InnerProduct x > ip\nother InnerProduct ip > other\nq Silence other label\n"
     "cut Slice ip > c d\nq2 Silence d\nloss SoftmaxWithLoss c label > loss",
     "ip InnerProduct x > ip\ncut Slice ip > c d\nq2 Silence d\nprob Softmax c > prob\n"},
    {"a layer with a top that Silence reads, and one that is a result",
     "ip InnerProduct x > ip\ncut Slice ip > c d\nq Silence c\n",
     "ip InnerProduct x > ip\ncut Slice ip > c d\nq Silence c\n"},
    {"a margin on the labelled class",
     "ip InnerProduct x > ip\nm LabelSpecificAdd ip label > m\nscale Power m > scaled\n"
     "loss SoftmaxWithLoss scaled label > loss",
     "ip InnerProduct x > ip\nscale Power ip > scaled\nprob Softmax scaled > prob\n"},
    {"a layer that cannot do without labels",
     "f InnerProduct x > f\nm MarginInnerProduct f label > m\n"
     "loss SoftmaxWithLoss m label > loss",
     "f InnerProduct x > f\n"},
    {"a shape that data give",
     "ip InnerProduct x > ip\nc Crop ip x > c\n"
     "loss SoftmaxWithLoss c label > loss",
     "ip InnerProduct x > ip\nc Crop ip x > c\nprob Softmax c > prob\n"},
    {"twins",
     "pair Slice x > a b c\nf InnerProduct a > f p=w\nf2 InnerProduct b > f2 p=w\n"
     "loss ContrastiveLoss f f2 label > loss",
     "a Input > a 1 1 6 6\nf InnerProduct a > f\n"},
    {"branches that share nothing",
     "pair Slice x > a b c\nf InnerProduct a > f p=w\nf2 InnerProduct b > f2 p=v\n"
     "loss ContrastiveLoss f f2 label > loss",
     "pair Slice x > a b c\nf InnerProduct a > f\nf2 InnerProduct b > f2\n"},
    {"results that nobody reads",
     "ip InnerProduct x > ip\nmore Power ip > more\n"
     "loss SoftmaxWithLoss ip label > loss",
     "ip InnerProduct x > ip\nmore Power ip > more\nprob Softmax ip > prob\n"},
    {"Boltzmann machines", "a RBM x > e h\nb RBM h > e2 h2",
     "a InnerProduct x > h\na_sigmoid Sigmoid h > h\n"
     "b InnerProduct h > h2\nb_sigmoid Sigmoid h2 > h2\n"},
    {"a classifier of a Boltzmann machine's hidden units",
     "m RBM x > e h\nip InnerProduct h > ip\nloss SoftmaxWithLoss ip label > loss",
     "m InnerProduct x > h\nm_sigmoid Sigmoid h > h\nip InnerProduct h > ip\n"
     "prob Softmax ip > prob\n"},
    {"a Boltzmann machine beside a classifier",
     "ip InnerProduct x > ip\nm RBM ip > e h\nloss SoftmaxWithLoss ip label > loss",
     "ip InnerProduct x > ip\nprob Softmax ip > prob\n"},
    {"no parameters at all", "flat Flatten x > flat\nloss SoftmaxWithLoss flat label > loss",
     "flat Flatten x > flat\nprob Softmax flat > prob\n"},
};

TEST(Deploy, KeepsWhatLeadsToResults) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.what);
    const std::string left = outline(deployed(kData + layers(row.layers), {}).net);
    const std::string input = std::strstr(row.left, "Input") ? "" : "x Input > x 1 3 6 6\n";
    EXPECT_EQ(left, input + row.left);
  }
}

TEST(Deploy, WritesWhatAPersonWould) {
  const DeployedNet net = deployed(R"(name: "net"
layer { name: "d" type: "ImageData" top: "x" top: "label"
  transform_param { crop_size: 8 scale: 0.5 mean_value: 104 mean_value: 117.5 mean_value: 123 mirror: true }
  image_data_param { source: "list.txt" batch_size: 32 new_height: 9 new_width: 9 } }
layer { name: "c" type: "Convolution" bottom: "x" top: "c" param { lr_mult: 1 decay_mult: 0 } param { name: "b" lr_mult: 2 }
  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "msra" } bias_filler { value: 1 } } }
layer { name: "n" type: "LRN" bottom: "c" top: "n" lrn_param { local_size: 3 alpha: 0.25 beta: 0.75 norm_region: WITHIN_CHANNEL k: 2 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "n" bottom: "label" top: "loss" loss_weight: 2 include { phase: TEST }
  propagate_down: true propagate_down: false softmax_param { axis: -1 } loss_param { ignore_label: 3 } }
)",
                                   {});
  EXPECT_EQ(text_of(net),
            R"(# crema: input {
# crema:   name: "x"
# crema:   channels: BGR
# crema:   resize_height: 9
# crema:   resize_width: 9
# crema:   transform_param {
# crema:     scale: 0.5
# crema:     crop_size: 8
# crema:     mean_value: 104
# crema:     mean_value: 117.5
# crema:     mean_value: 123
# crema:   }
# crema: }
name: "net"
layer {
  name: "x"
  type: "Input"
  top: "x"
  input_param { shape { dim: 1 dim: 3 dim: 8 dim: 8 } }
}
layer {
  name: "c"
  type: "Convolution"
  bottom: "x"
  top: "c"
  param {}
  param { name: "b" }
  convolution_param { num_output: 4 kernel_size: 3 }
}
layer {
  name: "n"
  type: "LRN"
  bottom: "c"
  top: "n"
  lrn_param {
    local_size: 3
    alpha: 0.25
    beta: 0.75
    norm_region: WITHIN_CHANNEL
    k: 2
  }
}
layer {
  name: "prob"
  type: "Softmax"
  bottom: "n"
  top: "prob"
  softmax_param { axis: -1 }
}
)");
  EXPECT_EQ(net.origins, std::vector<int>({0, 1, 2, 3}));
  EXPECT_EQ(net.inputs, std::vector<std::string>{
                            "x: 1x3x8x8, planes B, G, R, from images of 9x9 pixels, the middle of "
                            "each image; minus 104, 117.5, 123, then times 0.5"});
  EXPECT_EQ(parse_net_text(text_of(net), "deploy.prototxt").preparation.SerializeAsString(),
            net.preparation.SerializeAsString());
  EXPECT_EQ(parse_net_text(text_of(net), "deploy.prototxt").net.SerializeAsString(),
            net.net.SerializeAsString());
}

struct ShapeRow {
  const char* source;  // of x
  const char* assume;
  int batch;
  const char* input;  // of outline(); or, with a colon, a part of the error
};

const ShapeRow kShapes[] = {
    {"type: 'MemoryData' memory_data_param { batch_size: 5 channels: 2 height: 3 width: 4 }", "", 0,
     "x Input > x 1 2 3 4"},
    {"type: 'MemoryData' memory_data_param { batch_size: 5 channels: 2 height: 3 width: 4 }", "", 7,
     "x Input > x 7 2 3 4"},
    {"type: 'Data' data_param { source: 'no' batch_size: 5 } transform_param { crop_size: 9 }", "",
     0, "x Input > x 1 3 9 9"},
    {"type: 'Data' data_param { source: 'no' batch_size: 5 } transform_param { crop_size: 9 }",
     "x=2x1x4x4", 0, "x Input > x 2 1 4 4"},
    {"type: 'Data' data_param { source: 'no' batch_size: 5 }", "x=2x1x4x4", 3,
     "x Input > x 3 1 4 4"},
    {"type: 'Data' data_param { source: 'no' batch_size: 5 }", "default", 0,
     "x Input > x 1 3 227 227"},
    {"type: 'Data' data_param { source: 'no' batch_size: 5 }", "", 0,
     "net.prototxt:1:1: layer \"d\" (Data): the shape of the input \"x\" is not known, as its "
     "source cannot be read (no: no such database) and its fields state no size; name it, for "
     "example -assume x=SHAPE (with numbers such as 1x3x224x224 for SHAPE)"},
    {"type: 'Python' python_param { module: 'm' layer: 'L' }", "label=1x2", 0,
     "is not known, as its source cannot be read (it is a Python layer) and its fields state no "
     "size; name it, for example -assume label=1x2,x="},
    {"type: 'Input' input_param { shape { dim: 5 dim: 3 } shape { dim: 6 } }", "", 0,
     "x Input > x 5 3"},
    {"type: 'Input' input_param { shape { dim: 5 dim: 3 } shape { dim: 5 } }", "", 0,
     "x Input > x 1 3"},
    {"type: 'Input' input_param { shape { dim: 5 dim: 3 } shape { dim: 6 } }", "", 2,
     "x Input > x 2 3"},
    {"type: 'DummyData' dummy_data_param { shape { dim: 5 dim: 3 } shape { dim: 5 } }", "", 0,
     "x Input > x 1 3"},
    {"type: 'Input' input_param { shape { dim: 5 dim: 3 } }", "z=1x2", 0,
     "-assume: no data layer has a top \"z\" (did you mean \"x\"?); the tops are x, label"},
};

// The fillers are removed, with the variables that only they used.
TEST(Deploy, KeepsTheBlobsThatFillersImply) {
  const DeployedNet made = deployed(
      cat(kData,
          "layer { name: 'b' type: 'BatchNorm' bottom: 'x' top: 'b' batch_norm_param { "
          "bias_filler { value: 1 } } }\n"
          "layer { name: 's' type: 'BN' bottom: 'b' top: 's' bn_param { scale_filler { value: 1 } "
          "} }\n"
          "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 's' bottom: 'label' }"),
      {});
  EXPECT_FALSE(made.net.layer(1).batch_norm_param().has_bias_filler());
  EXPECT_TRUE(made.net.layer(1).batch_norm_param().scale_bias());
  EXPECT_FALSE(made.net.layer(2).bn_param().has_scale_filler());
  EXPECT_TRUE(made.net.layer(2).bn_param().has_bn_mode());
}

TEST(Deploy, FindsShapes) {
  for (const ShapeRow& row : kShapes) {
    SCOPED_TRACE(row.source);
    DeployOptions options;
    options.assume = row.assume;
    options.batch = row.batch;
    const std::string text =
        cat("layer { name: 'd' top: 'x' top: 'label' ", row.source, " }\n",
            layers("ip InnerProduct x > ip\nloss SoftmaxWithLoss ip label > loss"));
    if (starts_with(row.input, "x Input")) {
      expect_part(outline(deployed(text, options).net), row.input);
    } else {
      expect_part(error_of([&] { deployed(text, options); }), row.input);
    }
  }
}

TEST(Deploy, SaysWhatIsWrong) {
  DeployOptions usual;
  usual.assume = "default";
  expect_part(error_of([&] {
                deployed(
                    "layer { name: 'd' type: 'HDF5Data' top: 'x' top: 'y' hdf5_data_param { "
                    "source: 'no' batch_size: 5 } }\n" +
                        layers("a Eltwise x y > a\nip InnerProduct a > ip"),
                    usual);
              }),
              "the input \"y\" is not known, as its source cannot be read and its fields state");
  expect_part(error_of([] { deployed(kData + layers("ip InnerProduct y > ip"), {}); }),
              "net.prototxt:2:1: layer \"ip\": no layer above makes the bottom \"y\"");
  expect_part(error_of([] { deployed(kData + layers("q Silence x label"), {}); }),
              "net.prototxt:1:1: the net has no result");
}

TEST(Deploy, MadeUpNumbersStayBesideData) {
  const std::string noise =
      "layer { name: 'n' type: 'DummyData' top: 'n' dummy_data_param { shape { dim: 8 dim: 4 } } "
      "}\n";
  const std::string rest = layers(
      "ip InnerProduct x > ip\nsum Eltwise ip n > sum\nout InnerProduct sum > out\n"
      "loss SoftmaxWithLoss out label > loss");
  EXPECT_EQ(outline(deployed(kData + noise + rest, {}).net),
            "x Input > x 1 3 6 6\nn DummyData > n\nip InnerProduct x > ip\nsum Eltwise ip n > sum\n"
            "out InnerProduct sum > out\nprob Softmax out > prob\n");
  // With labels only they act as data.
  const std::string labels =
      "layer { name: 'l' type: 'Input' top: 'label' input_param { shape { dim: 8 } } }\n";
  EXPECT_EQ(outline(deployed(noise + labels +
                                 layers("ip InnerProduct n > ip\n"
                                        "loss SoftmaxWithLoss ip label > loss"),
                             {})
                        .net),
            "n Input > n 1 4\nip InnerProduct n > ip\nprob Softmax ip > prob\n");
}

// Sequences keep their length, and generated values next to data get their batch.
TEST(Deploy, KeepsStepsOfTimeAndFollowsTheBatch) {
  const std::string text =
      "layer { name: 'l' type: 'Input' top: 'x' top: 'label' input_param { shape { dim: 5 dim: 2 "
      "dim: 3 } shape { dim: 5 dim: 2 } } }\n"
      "layer { name: 'c' type: 'DummyData' top: 'cont' dummy_data_param { shape { dim: 5 dim: 2 } "
      "} "
      "}\n";
  const auto first = [](const NetParameter& net) {
    return cat(net.layer(0).input_param().shape(0).dim(0), " ",
               net.layer(1).dummy_data_param().shape(0).dim(0));
  };
  const std::string ends = "ip InnerProduct y > ip\nloss SoftmaxWithLoss ip label > loss";
  EXPECT_EQ(first(deployed(text + layers("y LSTM x cont > y\n" + ends), {}).net), "5 5");
  EXPECT_EQ(first(deployed(text + layers("y BatchReindex x cont > y\n" + ends), {}).net), "1 1");
}

}  // namespace deploy_test
}  // namespace crema::tests
