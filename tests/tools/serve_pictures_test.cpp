// `crema serve`: boxes and masks of pictures.
#include "tools/served.h"

namespace crema::tests {
namespace serve_pictures_test {

using namespace served;

// A layer with weights and a bias, one for each output.
void add_layer(const std::string& name, const std::string& type, std::vector<int64_t> shape,
               const std::vector<float>& weights, const std::vector<float>& bias,
               NetParameter* net) {
  LayerParameter& layer = *net->add_layer();
  layer.set_name(name);
  layer.set_type(type);
  BlobProto& first = *layer.add_blobs();
  for (const int64_t size : shape) first.mutable_shape()->add_dim(size);
  for (const float weight : weights) first.add_data(weight);
  BlobProto& second = *layer.add_blobs();
  second.mutable_shape()->add_dim(shape[0]);
  for (const float value : bias) second.add_data(value);
}

class ServePictures : public Serve {
 protected:
  void SetUp() override {
    write_detector("detector", "data", 4);
    folder_.write("seen/detector/labels.txt", "background\ncat\ndog\n");
    write_detector("facts", "im_info", 3);
    write_segmenter("mask", "");
    folder_.write("seen/mask/labels.txt", "background\n\"fox\"\n");
    write_segmenter("argmax",
                    "layer { name: \"best\" type: \"ArgMax\" bottom: \"y\" top: \"best\" "
                    "argmax_param { axis: 1 } }\n");
    write_segmenter("both",
                    "layer { name: \"fc\" type: \"InnerProduct\" bottom: \"data\" top: \"fc\" "
                    "inner_product_param { num_output: 2 } }\n");
    folder_.write("picture.pgm", picture_);
  }

  // One box around the middle, a quarter of the picture's width to a half beyond its right. The first two
  // values of `scored` are its scores as class 1 and 2, times 1/4 and 1/8.
  void write_detector(const std::string& name, const std::string& scored, int64_t values) {
    const std::string fc = "type: \"InnerProduct\" bottom: \"";
    folder_.write(
        cat("seen/", name, "/net.prototxt"),
        input_layer("data", "dim: 1 dim: 1 dim: 2 dim: 2") +
            (scored == "data" ? "" : input_layer(scored, "dim: 1 dim: 3")) +
            "layer { name: \"pool\" type: \"Pooling\" bottom: \"data\" top: \"pool\" pooling_param "
            "{ "
            "global_pooling: true } }\n"
            "layer { name: \"prior\" type: \"PriorBox\" bottom: \"pool\" bottom: \"data\" top: "
            "\"prior\" prior_box_param { min_size: 1 variance: 1 } }\n"
            "layer { name: \"loc\" " +
            fc +
            "data\" top: \"loc\" inner_product_param { num_output: 4 } }\nlayer { name: \"conf\" " +
            fc + scored +
            "\" top: \"conf\" inner_product_param { num_output: 3 } }\n"
            "layer { name: \"out\" type: \"DetectionOutput\" bottom: \"loc\" bottom: \"conf\" "
            "bottom: "
            "\"prior\" top: \"out\" detection_output_param { num_classes: 3 code_type: CENTER_SIZE "
            "nms_param { nms_threshold: 0.5 } confidence_threshold: 0.01 } }\n");
    NetParameter net;
    add_layer("loc", "InnerProduct", {4, 4}, std::vector<float>(16), {1, 0, 0, 0}, &net);
    std::vector<float> weights(static_cast<size_t>(3 * values));
    weights[values] = 0.25F;
    weights[2 * values + 1] = 0.125F;
    add_layer("conf", "InnerProduct", {3, values}, weights, {0, 0, 0}, &net);
    folder_.write(cat("seen/", name, "/net.caffemodel"), net.SerializeAsString());
  }

  // Class 1 for values above 2.5.
  void write_segmenter(const std::string& name, const std::string& more) {
    folder_.write(cat("seen/", name, "/net.prototxt"),
                  input_layer("data", "dim: 1 dim: 1 dim: 2 dim: 2") +
                      "layer { name: \"y\" type: \"Convolution\" bottom: \"data\" top: \"y\" "
                      "convolution_param { num_output: 2 kernel_size: 1 } }\n" +
                      more);
    NetParameter net;
    add_layer("y", "Convolution", {2, 1, 1, 1}, {0, 1}, {2.5, 0}, &net);
    add_layer("fc", "InnerProduct", {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}, {0, 0}, &net);
    folder_.write(cat("seen/", name, "/net.caffemodel"), net.SerializeAsString());
  }

  const std::string picture_ = std::string("P5\n2 2\n255\n\2\1\3\4");
};

#ifdef CREMA_OPENCV
Json box(int index, const std::string& name, float score, const std::vector<float>& sides,
         const std::string& color) {
  return {{"index", index},  {"name", name},      {"score", score},     {"left", sides[0]},
          {"top", sides[1]}, {"right", sides[2]}, {"bottom", sides[3]}, {"color", color}};
}

TEST_F(ServePictures, FindsBoxes) {
  start("seen");
  const std::vector<float> sides = {.75, .25, 1, .75};
  const Json cat = box(1, "cat", .5, sides, "#00b9f0"), dog = box(2, "dog", .125, sides, "#aa9f00");
  const std::string path = "/v2/models/detector/detect";
  EXPECT_EQ(post(path, picture_).json(), (Json{{"model_name", "detector"}, {"boxes", {cat, dog}}}));
  EXPECT_EQ(post(path + "?score=0.4", picture_).json()["boxes"], Json({cat}));
  EXPECT_EQ(post(path + "?score=0.6", picture_).json()["boxes"], Json::array());
  // Height and width of the input are the scores, and boxes count in its pixels.
  const std::vector<float> halves = {.375, .125, .625, .375};
  EXPECT_EQ(post("/v2/models/facts/detect", picture_).json()["boxes"],
            Json({box(1, "", .5, halves, "#00b9f0"), box(2, "", .25, halves, "#aa9f00")}));
}

// The boxes of each picture are those of its own scores; a picture without any shares passes, too.
TEST_F(ServePictures, DividesTheBoxesOfABatch) {
  start("seen -batch 8 -batch_delay 50");
  constexpr int kClients = 8, kRequests = 20;
  std::vector<std::jthread> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&, i] {
      const std::string picture =
          cat("P5\n2 2\n255\n", static_cast<char>(i), static_cast<char>(2 * (i % 3)), "aa");
      Socket client(port_);
      for (int k = 0; k < kRequests; ++k) {
        ASSERT_TRUE(client.send(post_text("/v2/models/detector/detect", picture)));
        const Response answer = response_in(client.receive());
        ASSERT_EQ(answer.status, 200) << answer.body;
        std::map<std::string, float> want, found;
        if (i > 0) want["cat"] = static_cast<float>(i) / 4;
        if (i % 3 > 0) want["dog"] = static_cast<float>(i % 3) / 4;
        const Json boxes = answer.json()["boxes"];
        for (const Json& box : boxes) found[box["name"]] = box["score"];
        EXPECT_EQ(found, want) << i;
      }
    });
  }
  clients.clear();
  std::smatch match;
  const std::string metrics = get("/metrics").body;
  ASSERT_TRUE(std::regex_search(
      metrics, match, std::regex("crema_batch_samples_count\\{model=\"detector\"\\} (\\d+)")));
  EXPECT_LT(std::stoi(match[1]), kClients * kRequests / 2);
}

TEST_F(ServePictures, GivesMasks) {
  start("seen");
  Json want = {{"model_name", "mask"},
               {"width", 2},
               {"height", 2},
               {"classes",
                {{{"index", 0}, {"name", "background"}, {"pixels", 2}, {"color", "#f00073"}},
                 {{"index", 1}, {"name", "\"fox\""}, {"pixels", 2}, {"color", "#00b9f0"}}}},
               {"runs", {0, 2, 1, 2}}};
  EXPECT_EQ(post("/v2/models/mask/segment", picture_).json(), want);
  want["model_name"] = "argmax";
  for (Json& one : want["classes"]) one["name"] = "";
  EXPECT_EQ(post("/v2/models/argmax/segment", picture_).json(), want);
}
#endif

// Rows have the number of the sample in their request.
TEST_F(ServePictures, GivesTheBoxesOfSeveralSamples) {
  start("seen");
  expect_part(get("/v2/models/detector").body,
              R"({"name":"out","datatype":"FP32","shape":[1,1,-1,7]})");
  const auto rows = [&](const std::vector<float>& firsts) {
    std::vector<float> values;
    for (const float first : firsts) values.insert(values.end(), {first, 0, 0, 0});
    const Json input = {{"name", "data"},
                        {"datatype", "FP32"},
                        {"shape", {firsts.size(), 1, 2, 2}},
                        {"data", values}};
    const Json output =
        post("/v2/models/detector/infer", Json{{"inputs", {input}}}.dump()).json()["outputs"][0];
    EXPECT_EQ(output["shape"][2].get<size_t>() * 7, output["data"].size());
    return output["data"].get<std::vector<float>>();
  };
  EXPECT_EQ(rows({4, 0, 2}),
            (std::vector<float>{0, 1, 1, .75, .25, 1.25, .75, 2, 1, .5, .75, .25, 1.25, .75}));
  EXPECT_EQ(rows({0, 0, 0}), (std::vector<float>{0,  -1, -1, -1, -1, -1, -1, 1,  -1, -1, -1,
                                                 -1, -1, -1, 2,  -1, -1, -1, -1, -1, -1}));
}

// Two samples that exchange values, with boxes that the trial's values do not show.
TEST_F(ServePictures, ComputesOneRequestAtATimeWhereSamplesMeet) {
  write_detector("meet", "data", 4);
  std::string net = folder_.read("seen/meet/net.prototxt");
  net.replace(net.find("bottom: \"conf\""), 14, "bottom: \"across\"");
  net.insert(net.find("layer { name: \"out\""),
             "layer { name: \"across\" type: \"Softmax\" bottom: \"conf\" top: \"across\" "
             "softmax_param { axis: 0 } }\n");
  folder_.write("seen/meet/net.prototxt", net);
  start("seen");
  const std::string log = folder_.read(".stderr");
  expect_part(log, "detector: takes data Nx1x2x2; computes batches of 1, 2, 4, 8");
  expect_part(log, "facts: takes data Nx1x2x2, im_info Nx3; computes batches of");
  expect_part(log, "meet: takes data 1x1x2x2; computes one request at a time");
}

TEST_F(ServePictures, RefusesWhatIsNoPictureForTheModel) {
  start("seen");
  const std::string page = get("/").body;
  for (const char* part : {"<option data-action=\"detect\">detector</option>",
                           "<option data-action=\"segment\">mask</option>",
                           "<option data-action=\"classify\">both</option>"})
    expect_part(page, part);
  for (const std::string path : {"/v2/models/detector/detect", "/v2/models/mask/segment"}) {
    for (const auto& [body, status] : std::vector<std::pair<std::string, int>>{
             {"", 400},
             {"no picture", 400},
             {picture_.substr(0, 12), 400},
             {"P5\n60000 60000\n255\n", 413},
             {std::string("\xff\xd8\xff\xe0\0\x10JFIF", 10), 400},
             {std::string("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\2\0\0\0\2\x8\2\0\0\0", 29), 400}}) {
      const Response answer = post(path, body);
      EXPECT_EQ(answer.status, status) << path << " " << body << answer.body;
      EXPECT_TRUE(answer.json().contains("error")) << answer.body;
    }
  }
  expect_part(post("/v2/models/detector/segment", picture_).json()["error"],
              "gives boxes, not a mask; post pictures to /v2/models/detector/detect");
  expect_part(post("/v2/models/detector/detect?score=x", picture_).json()["error"],
              "score is \"x\"; expected a number from 0 up");
}

TEST_F(ServePictures, RefusesNamesThatAreNotThoseOfTheMask) {
  folder_.write("seen/mask/labels.txt", "background\nfox\ndog\n");
  const Outcome outcome = run(folder_, "crema serve seen");
  EXPECT_EQ(outcome.code, 1);
  expect_part(outcome.err, "labels.txt: names 3 classes, but the net has 2");
}

}  // namespace serve_pictures_test
}  // namespace crema::tests
