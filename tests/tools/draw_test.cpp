// `crema draw`: the content of a net's picture, that any name in it is only a name, and the result
// without data.
#include <gtest/gtest.h>

#include <regex>

#include "tools/program.h"

namespace crema::tests {
namespace draw_test {

constexpr const char* kNet = R"(name: "small"
layer { name: "data" type: "DummyData" top: "data" top: "label"
  dummy_data_param { shape { dim: 4 dim: 3 dim: 9 dim: 8 } shape { dim: 4 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 6 kernel_size: 3 stride: 2 pad: 1 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool" pooling_param { kernel_size: 2 } }
layer { name: "ip" type: "InnerProduct" bottom: "pool" top: "ip"
  inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)";

// The texts that the picture shows, without tooltips.
std::vector<std::string> texts_of(const std::string& svg) {
  static const std::regex text("<text [^>]*>([^<]*)</text>");
  std::vector<std::string> texts;
  for (std::sregex_iterator at(svg.begin(), svg.end(), text), end; at != end; ++at)
    texts.push_back((*at)[1]);
  return texts;
}

// Without the whole picture in the message.
void expect_shown(const std::string& svg, const std::string& part) {
  EXPECT_NE(svg.find(part), std::string::npos) << part;
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Elements nest, attributes are quoted, and nothing is an element or a reference that the program
// does not write.
void expect_well_formed(const std::string& svg) {
  static const std::regex markup(
      R"re(<(/?)([a-z]+)((?: [a-zA-Z-]+="[^"<]*")*)(/?)>|&(?:amp|lt|gt|quot|#39);|[^<&])re");
  std::vector<std::string> open;
  size_t at = 0;
  for (std::sregex_iterator part(svg.begin(), svg.end(), markup), end; part != end; ++part) {
    ASSERT_EQ(static_cast<size_t>(part->position()), at) << svg.substr(at, 60);
    at += part->length();
    const std::string element = (*part)[2];
    if (element.empty()) continue;
    const bool known = element == "svg" || element == "g" || element == "title" ||
                       element == "style" || element == "rect" || element == "path" ||
                       element == "text";
    EXPECT_TRUE(known) << element;
    if ((*part)[1].length() > 0) {
      ASSERT_FALSE(open.empty());
      ASSERT_EQ(open.back(), element);
      open.pop_back();
    } else if ((*part)[4].length() == 0) {
      open.push_back(element);
    }
  }
  EXPECT_EQ(at, svg.size());
  EXPECT_TRUE(open.empty());
}

TEST(Draw, ShowsNamesShapesNumbersAndFusedLayers) {
  const Folder folder;
  folder.write("net.prototxt", kNet);
  const Outcome outcome = run(folder, "crema draw net.prototxt");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_well_formed(outcome.out);
  const std::vector<std::string> texts = texts_of(outcome.out);
  for (const char* expected :
       {"small, phase TRAIN", "data", "DummyData", "data 4x3x9x8, label 4", "conv", "Convolution",
        "6 outputs, 3x3, stride 2, pad 1", "relu", "ReLU", "4x6x5x4",
        // 6 * 3 * 9 weights and 6 biases; 480 outputs of 27 multiply-adds, two operations each.
        "168 parameters · 25.9 k operations", "max, 2x2", "ip", "4x5", "← label", "scalar",
        "computed in one step"})
    EXPECT_TRUE(std::find(texts.begin(), texts.end(), expected) != texts.end()) << expected;
  EXPECT_EQ(count_of(outcome.out, "class=\"box\""), 5u) << "the ReLU is in the convolution's";
  // Two lines fewer than bottoms: the ReLU's is inside its box, the label comes without.
  EXPECT_EQ(count_of(outcome.out, "class=\"line\""), 4u);

  const Outcome apart = run(folder, "crema draw net.prototxt -off fuse");
  EXPECT_EQ(count_of(apart.out, "class=\"fused\""), 0u);
  const Outcome batch = run(folder, "crema draw net.prototxt -phase TEST -set name=other");
  expect_shown(batch.out, "<title>other, phase TEST</title>");
}

TEST(Draw, SummaryCountsTheSame) {
  const Folder folder;
  folder.write("net.prototxt", kNet);
  const Outcome outcome = run(folder, "crema summary -model net.prototxt");
  static const std::regex head("layer +type +tops +parameters +FLOPs +memory\n"),
      row("\nconv +Convolution +conv 4x6x5x4 +168 +25,920 +");
  EXPECT_TRUE(std::regex_search(outcome.out, head)) << outcome.out;
  EXPECT_TRUE(std::regex_search(outcome.out, row)) << outcome.out;
  // Of the convolution and of 4 x 5 outputs of 72.
  expect_part(outcome.out, "14,400 multiply-adds in a forward pass, two FLOPs each");
}

TEST(Draw, ANameIsOnlyAName) {
  const Folder folder;
  std::string net = kNet;
  const std::string nasty = R"(\"/><script>alert('x')</script>&amp;\n]]>\357\277\277)";
  net = std::regex_replace(net, std::regex("name: \"conv\""), "name: \"" + nasty + "\"");
  net = std::regex_replace(net, std::regex("name: \"small\""), "name: \"<b>" + nasty + "\"");
  net = std::regex_replace(net, std::regex("\"label\""), "\"<i>\"");
  folder.write("net.prototxt", net);
  const Outcome outcome = run(folder, "crema draw net.prototxt -output 'a \"b\" <c>.svg'");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string svg = folder.read("a \"b\" <c>.svg");
  expect_well_formed(svg);
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  expect_shown(
      svg,
      "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;amp;\\n]]&gt;\xef\xbf\xbd: Convolution");
}

TEST(Draw, BlocksThatRepeatAreFramed) {
  const Folder folder;
  folder.write("net.prototxt", R"(layer { name: "x" type: "Input" top: "b0"
    input_param { shape { dim: 1 dim: 8 dim: 6 dim: 6 } } }
repeat $i = 1..3 {
  layer { name: "unit$i/a" type: "Convolution" bottom: "b${i - 1}" top: "a$i"
    convolution_param { num_output: 4 kernel_size: 1 } }
  layer { name: "unit$i/b" type: "Convolution" bottom: "a$i" top: "c$i"
    convolution_param { num_output: 8 kernel_size: 3 pad: 1 } }
  layer { name: "unit$i/sum" type: "Eltwise" bottom: "b${i - 1}" bottom: "c$i" top: "b$i" }
}
)");
  const Outcome outcome = run(folder, "crema draw net.prototxt");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* name : {"unit1 · block A 1 of 3", "unit2 · block A 2 of 3",
                           "unit3 · block A 3 of 3", "net.prototxt, phase TRAIN"})
    expect_shown(outcome.out, std::string(">") + name + "<");
}

struct Undrawn {
  const char* name;
  std::vector<std::pair<std::string, std::string>> changes;
  int code;
  const char* says;   // on stderr
  const char* shows;  // in the picture
  const char* hides;  // not in the picture
};

class DrawWithout : public testing::TestWithParam<Undrawn> {};

const char* const kShapes =
    R"(dummy_data_param { shape { dim: 4 dim: 3 dim: 9 dim: 8 } shape { dim: 4 } })";

const Undrawn kWithout[] = {
    {"DataThatAreNotThere",
     {{"DummyData", "Data"},
      {kShapes,
       "data_param { source: \"none\" backend: LMDB batch_size: 7 } "
       "transform_param { crop_size: 20 }"}},
     0,
     "Assuming data 7x3x20x20, label 7 instead of layer data (Data), as net.prototxt:2:1: layer "
     "\"data\": none",
     ">7x6x10x10<",
     "without shapes"},
    {"DataOfUnknownShape",
     {{"DummyData", "Data"},
      {kShapes, "data_param { source: \"none\" backend: LMDB batch_size: 7 }"}},
     0,
     "Drawn without shapes; -assume can set them: net.prototxt:2:1: layer \"data\": none",
     ">6 outputs, 3x3, stride 2, pad 1<",
     "operations"},
    {"ATypeThatIsNotKnown",
     {{"\"ReLU\"", "\"MyReLU\""}},
     0,
     "because layers of these types do not run here: MyReLU",
     ">MyReLU<",
     "operations"},
    {"APythonLayer",
     {{"\"ReLU\"", "\"Python\" python_param { module: \"m\" layer: \"L\" }"}},
     0,
     "because layers of these types do not run here: Python",
     ">Python<",
     "operations"},
    // Not a matter of data: as every verb says it.
    {"AWrongNet", {{"num_output: 5", ""}}, 1, "net.prototxt:8:1: layer \"ip\"", "", ""},
    {"ABlobThatNobodyMakes", {{"bottom: \"pool\"", "bottom: \"pol\""}}, 1, "pol", "", ""},
};

TEST_P(DrawWithout, SaysWhatItDoes) {
  const Undrawn& row = GetParam();
  const Folder folder;
  std::string net = kNet;
  for (const auto& [from, to] : row.changes) {
    ASSERT_NE(net.find(from), std::string::npos) << from;
    net.replace(net.find(from), from.size(), to);
  }
  folder.write("net.prototxt", net);
  const Outcome outcome = run(folder, "crema draw net.prototxt -output net.svg");
  EXPECT_EQ(outcome.code, row.code) << outcome.err;
  expect_part(outcome.err, row.says);
  ASSERT_EQ(folder.has("net.svg"), row.code == 0);
  if (row.code != 0) return;
  const std::string svg = folder.read("net.svg");
  expect_well_formed(svg);
  expect_shown(svg, row.shows);
  EXPECT_EQ(svg.find(row.hides), std::string::npos) << row.hides;
}

INSTANTIATE_TEST_SUITE_P(Draw, DrawWithout, testing::ValuesIn(kWithout),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace draw_test
}  // namespace crema::tests
