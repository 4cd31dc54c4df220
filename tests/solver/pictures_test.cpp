// Pictures: filters and mistakes of a net, their PNG files, and what readers do with them.
#include "solver/test/pictures.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/png.h"
#include "event_file.h"
#include "fixtures.h"
#include "solver/readers/mosaic.h"
#include "solver/readers/pictures_reader.h"

namespace crema::tests {
namespace pictures_test {

// Seven records of 3 x 2 x 2 in batches of three. The net answers 1, with a probability of
// 1 / (1 + exp(-3)); the label of record i is i % 3.
std::string net_over(const std::string& database, const std::string& scores) {
  return cat(R"(
  name: "net" layer { name: "data" type: "Data" top: "data" top: "label"
    transform_param { scale: 0.004 } data_param { source: ")",
             database, R"(" backend: LMDB batch_size: 3 } }
  layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 3
    weight_filler { type: "constant" value: 0 } bias_filler { type: "constant" value: 0 } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss"
    include { phase: TRAIN } }
)",
             scores);
}

const char* kAccuracy = R"(
  layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" include { phase: TEST } }
  layer { name: "accuracy" type: "Accuracy" bottom: "prob" bottom: "label" top: "accuracy"
    include { phase: TEST } })";

std::string seven_images(const Folder& folder) {
  return image_database(folder, 7, {3, 2, 2}, [](int64_t i) { return static_cast<int>(i % 3); });
}

class PictureEvents : public EventReader {
 public:
  void read(const Event& event) override {
    if (const auto* found = std::get_if<event::Pictures>(&event)) pictures.push_back(*found);
    if (const auto* found = std::get_if<event::TestResult>(&event)) tests.push_back(*found);
  }
  std::vector<event::Pictures> pictures;
  std::vector<event::TestResult> tests;
};

void answer_one(Net& net) {
  for (Parameter& parameter : net.parameters()) {
    if (parameter.index != 1) continue;
    const float bias[] = {0, 3, 0};
    from_floats(net.context(), bias, parameter.data);
  }
  net.parameters_changed();
}

TEST(Mistakes, ComeOnceEachWithTheTestsThatRunAnyway) {
  const Folder folder;
  const std::string net = net_over(seven_images(folder), kAccuracy);
  Context context(Device::cpu);
  PictureEvents events;
  SolverOptions options;
  options.pictures = true;
  options.readers = {&events};
  // Four batches of three are more than the seven records.
  Solver solver(context, solver_file("test_iter: 4 test_interval: 100 max_iter: 9 ", net), options);
  answer_one(solver.net());
  solver.test_all();
  solver.test_all();
  ASSERT_EQ(events.pictures.size(), 4u);
  for (const size_t test : {0, 1}) {
    const event::Pictures& filters = events.pictures[2 * test];
    EXPECT_EQ(filters.tag, "filters");
    EXPECT_EQ(filters.title, "First layer: ip, 3 filters of 2 × 2");
    ASSERT_EQ(filters.pictures.size(), 3u);
    EXPECT_EQ(filters.pictures[0].bytes, std::vector<uint8_t>(12, 0));
    const event::Pictures& mistakes = events.pictures[2 * test + 1];
    EXPECT_EQ(mistakes.tag, "mistakes");
    // Of 0 1 2 0 1 2 0, and of the seven that follow the twelve records of the first test.
    expect_part(mistakes.title, "Mistakes: 5 of 7 samples");
    ASSERT_EQ(mistakes.pictures.size(), 5u);
    std::set<std::vector<uint8_t>> different;
    for (const Picture& picture : mistakes.pictures) {
      EXPECT_TRUE(picture.caption == "0 > 1 91%" || picture.caption == "2 > 1 91%")
          << picture.caption;
      EXPECT_EQ(picture.channels, 3);
      EXPECT_EQ(picture.bytes.size(), 12u);
      different.insert(picture.bytes);
    }
    EXPECT_EQ(different.size(), 5u);
  }
}

TEST(Mistakes, KeepTheSurest) {
  const Folder folder;
  // The scores are the first three values of an image, so that confidences differ.
  const std::string net = net_over(seven_images(folder), kAccuracy);
  Context context(Device::cpu);
  NetFile file = parse_net_text(net, "net.prototxt");
  NetOptions options;
  options.state.set_phase(TEST);
  options.keep_blobs = true;
  Net made(context, file.net, options);
  std::vector<float> weights(36);
  for (int row = 0; row < 3; ++row) weights[12 * row + row] = 2;
  from_floats(context, weights.data(), made.parameters()[0].data);
  made.parameters_changed();
  Mistakes all(made, 100), some(made, 2), swapped(made, 100, true);
  for (int pass = 0; pass < 5; ++pass) {
    made.forward(pass);
    all.add();
    some.add();
    swapped.add();
  }
  EXPECT_EQ(all.tested(), 7);
  EXPECT_EQ(all.wrong(), static_cast<int64_t>(all.samples().size()));
  EXPECT_EQ(some.wrong(), all.wrong());
  ASSERT_GT(all.samples().size(), 2u);
  ASSERT_EQ(some.samples().size(), 2u);
  for (size_t i = 0; i < all.samples().size(); ++i) {
    EXPECT_NE(all.samples()[i].label, all.samples()[i].predicted);
    const std::vector<uint8_t>& bgr = all.samples()[i].picture.bytes;
    const std::vector<uint8_t>& rgb = swapped.samples().at(i).picture.bytes;
    EXPECT_EQ(rgb, (std::vector<uint8_t>{bgr[2], bgr[1], bgr[0], bgr[5], bgr[4], bgr[3], bgr[8],
                                         bgr[7], bgr[6], bgr[11], bgr[10], bgr[9]}));
    if (i > 0) {
      EXPECT_LE(all.samples()[i].confidence, all.samples()[i - 1].confidence);
    }
    if (i < 2) {
      EXPECT_EQ(all.samples()[i].picture.bytes, some.samples()[i].picture.bytes);
    }
  }
}

struct PossibleRow {
  const char* what;
  const char* layers;
  bool possible;
};

TEST(Mistakes, NeedImagesLabelsAndScoresOfASample) {
  const PossibleRow rows[] = {
      {"accuracy", kAccuracy, true},
      {"a loss",
       R"(layer { name: "l" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "l" })",
       true},
      {"nothing compares", "", false},
      {"labels from a layer", R"(
        layer { name: "made" type: "ReLU" bottom: "label" top: "made" }
        layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "made" top: "accuracy" })",
       false},
      {"a distance",
       R"(layer { name: "l" type: "EuclideanLoss" bottom: "ip" bottom: "ip" top: "l" })", false},
      {"scores that are overwritten", R"(
        layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy" }
        layer { name: "relu" type: "ReLU" bottom: "ip" top: "ip" })",
       false},
  };
  const Folder folder;
  const std::string database = seven_images(folder);
  Context context(Device::cpu);
  for (const PossibleRow& row : rows) {
    SCOPED_TRACE(row.what);
    NetOptions options;
    options.state.set_phase(TEST);
    const Net net(context, parse_net_text(net_over(database, row.layers), "net.prototxt").net,
                  options);
    EXPECT_EQ(Mistakes::values(net.graph()).size(), row.possible ? 3u : 0u);
  }
}

// A test that is looked at gives the values that it gives anyway.
TEST(Pictures, ChangeNothingAndAreSentOnRequestOnly) {
  const Folder folder;
  const std::string net = net_over(seven_images(folder), kAccuracy);
  std::vector<float> values[2], weights[2];
  for (const bool asked : {false, true}) {
    Context context(Device::cpu);
    PictureEvents events;
    SolverOptions options;
    options.pictures = asked;
    options.readers = {&events};
    Solver solver(context,
                  solver_file("test_iter: 2 test_interval: 2 max_iter: 6 random_seed: 1 "
                              "snapshot_after_train: false ",
                              net),
                  options);
    solver.solve();
    for (const event::TestResult& test : events.tests)
      values[asked].push_back(test.outputs[0].value);
    weights[asked] = parameters_of(solver);
    EXPECT_EQ(events.pictures.size(), asked ? 8u : 0u);
  }
  EXPECT_EQ(values[0].size(), 4u);
  EXPECT_EQ(values[0], values[1]);
  EXPECT_EQ(weights[0], weights[1]);
}

TEST(Pictures, ArePngFiles) {
  Picture grey{3, 2, 1, {0, 50, 100, 150, 200, 255}, ""};
  Picture colour{1, 2, 3, {255, 0, 0, 1, 2, 3}, ""};
  Picture large{300, 200, 3, std::vector<uint8_t>(180000, 7), ""};
  for (const Picture& picture : {grey, colour, large}) {
    const Picture read = picture_of_png(png_of(picture));
    EXPECT_EQ(read.width, picture.width);
    EXPECT_EQ(read.height, picture.height);
    EXPECT_EQ(read.channels, picture.channels);
    EXPECT_EQ(read.bytes, picture.bytes);
  }
  EXPECT_LT(png_of(large).size(), 5000u);
  expect_part(picture_address(grey), "data:image/png;base64,iVBORw0KGgo");
  grey.bytes.pop_back();
  expect_part(error_of([&] { png_of(grey); }), "a picture of 3 x 2 x 1 has 5 bytes");
}

TEST(Pictures, AreEnlargedSideBySide) {
  const Picture red{32, 32, 3, std::vector<uint8_t>(3072, 9), ""};
  Picture grey{32, 32, 1, std::vector<uint8_t>(1024, 77), ""};
  const Picture one = mosaic_of({red, grey, grey});
  // Twice as large each, in two columns, with four pixels around them.
  EXPECT_EQ(one.width, 2 * (64 + 4) + 4);
  EXPECT_EQ(one.height, 2 * (64 + 4) + 4);
  EXPECT_EQ(one.channels, 3);
  const auto at = [](const Picture& of, int x, int y) {
    return of.bytes.at((static_cast<size_t>(y) * of.width + x) * of.channels);
  };
  EXPECT_EQ(at(one, 0, 0), 170);
  EXPECT_EQ(at(one, 4, 4), 9);
  EXPECT_EQ(at(one, 67, 67), 9);
  EXPECT_EQ(at(one, 68, 67), 170);
  EXPECT_EQ(at(one, 72, 4), 77);
  EXPECT_EQ(at(one, 4, 72), 77);
  EXPECT_EQ(at(one, 72, 72), 170) << "there is no fourth";
  grey.caption = "1";
  const Picture captioned = mosaic_of({grey});
  EXPECT_EQ(captioned.channels, 1);
  EXPECT_EQ(captioned.height, 4 + 64 + 4 + 14 + 4);
  EXPECT_EQ(at(captioned, 6, 72), 0) << "the top of a 1";
  EXPECT_EQ(at(captioned, 4, 72), 170);
  const Picture none = mosaic_of({});
  EXPECT_EQ(none.bytes.size(), static_cast<size_t>(none.width) * none.height);
}

TEST(Pictures, TheLastOfEachKindAreInAFile) {
  const Folder folder;
  Lines log;
  PicturesReader reader(log, folder.file("run/pictures"));
  const Picture dot{1, 1, 1, {9}, "<3 > 5>\xff"};
  for (const int64_t iteration : {1, 2}) {
    reader.read(event::Pictures{iteration, "mistakes", "a \"title\"", {dot, dot}});
    reader.read(event::Pictures{iteration, "filters", "b", {}});
  }
  const auto mistakes = nlohmann::json::parse(folder.read("run/pictures/mistakes.json"));
  EXPECT_EQ(mistakes.at("iteration"), 2);
  EXPECT_EQ(mistakes.at("title"), "a \"title\"");
  ASSERT_EQ(mistakes.at("pictures").size(), 2u);
  EXPECT_EQ(mistakes["pictures"][1].at("src"), picture_address(dot));
  EXPECT_EQ(mistakes["pictures"][1].at("caption"), "<3 > 5>\\377");
  EXPECT_EQ(nlohmann::json::parse(folder.read("run/pictures/filters.json")).at("pictures").size(),
            0u);
  EXPECT_EQ(log.all.size(), 0u);
}

}  // namespace pictures_test
}  // namespace crema::tests
