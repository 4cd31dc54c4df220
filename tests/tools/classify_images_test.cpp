// classify prepares images as the data layers of nets do: its scores are those that `crema test`
// computes from them.
#include <gtest/gtest.h>

#include "tools/classified.h"

#ifdef CREMA_OPENCV
#define NEEDS_IMAGES() static_cast<void>(0)
#else
#define NEEDS_IMAGES() GTEST_SKIP() << "built without OpenCV"
#endif

namespace crema::tests {
namespace classify_images_test {

constexpr const char* kFormats = CREMA_TEST_DATA "/goldens/formats/";

// Every class of every image, as `crema test` prints them of blob "prob".
std::vector<double> tested(const Outcome& outcome) {
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  std::vector<double> values;
  for (const std::string& line : outcome.messages()) {
    const size_t at = line.find(", prob = ");
    if (at != std::string::npos) values.push_back(std::stod(line.substr(at + 9)));
  }
  return values;
}

constexpr const char* kProb =
    "layer { name: \"prob\" type: \"Softmax\" bottom: \"ip\" top: \"prob\" }\n";

std::string data(const std::string& source, const std::string& transform) {
  return cat(
      "layer { name: \"data\" type: \"Data\" top: \"data\" top: \"label\" transform_param { ",
      transform, " } data_param { backend: LMDB batch_size: 4 source: \"", kFormats, source,
      "\" } }\n");
}

std::string files(const std::string& reading, const std::string& transform) {
  return cat(
      "layer { name: \"data\" type: \"ImageData\" top: \"data\" top: \"label\" "
      "transform_param { ",
      transform, " } image_data_param { batch_size: 4 root_folder: \"", kFormats,
      "images/\" source: \"", kFormats, "list.txt\" ", reading, " } }\n");
}

struct Prepared {
  const char* name;
  std::string layer;  // whose samples `test` computes with
  std::string other;  // of the net that classifies; "": the same, "deploy": none
  std::string arguments;
  size_t images = 20;
};

// The same weights take images of every size.
void make_trained_colour_net(const Folder& folder, const std::string& transform) {
  folder.write("train.prototxt", files("", transform) + trunk(14, 3) + kClassLoss);
  train_two_iterations(folder, "train.prototxt");
  std::string absolute;
  for (const std::string& line : split(read_file(kFormats + std::string("list.txt")), '\n')) {
    if (!line.empty()) absolute += cat(kFormats, "images/", line, "\n");
  }
  folder.write("absolute.txt", absolute);
}

void expect_scores_of_test(const Folder& folder, const Prepared& row) {
  SCOPED_TRACE(row.name);
  folder.write("test.prototxt", row.layer + trunk(14, 3) + kProb);
  const std::vector<double> expected =
      tested(run(folder, "test -model test.prototxt -weights net_iter_2.caffemodel -iterations 5"));
  ASSERT_EQ(expected.size(), 20u * 14);
  const bool deployed = row.other == "deploy";
  folder.write("net.prototxt",
               (row.other.empty() || deployed ? row.layer : row.other) + trunk(14, 3) + kClassLoss);
  if (deployed) {
    ASSERT_EQ(run(folder, "deploy -model net.prototxt -output deploy.prototxt").code, 0);
  }
  const Outcome outcome =
      run(folder, cat("classify -model ", deployed ? "deploy" : "net",
                      ".prototxt -weights net_iter_2.caffemodel -batch 7 -top 14 -output out.csv",
                      row.arguments));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<Classified> rows = rows_of(folder.read("out.csv"));
  ASSERT_EQ(rows.size(), row.images);
  int among_five = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    ASSERT_EQ(rows[i].scores.size(), 14u);
    const double of_label = rows[i].scores.at(std::stoi(rows[i].label));
    int reaching = 0;
    for (const auto& [number, score] : rows[i].scores) reaching += score >= of_label;
    among_five += reaching <= 5;
    for (const auto& [number, score] : rows[i].scores)
      EXPECT_NEAR(score, expected[i * 14 + number], 1e-5) << rows[i].path << ", " << number;
  }
  expect_part(outcome.err, cat("top-5 accuracy = ", static_cast<double>(among_five) / rows.size(),
                               " (", among_five, " of ", rows.size(), ")"));
}

TEST(ClassifyImages, PreparesImagesAsTheDataLayerDoes) {
  NEEDS_IMAGES();
  const Folder folder;
  const std::string list = std::string(" ") + kFormats + "list.txt";
  make_trained_colour_net(folder, "scale: 0.004");
  const std::string means = "mean_value: 104 mean_value: 117 mean_value: 123 ";
  for (const Prepared& row : {
           Prepared{"whole records", data("lmdb_raw", "scale: 0.01"), "", " absolute.txt"},
           Prepared{"records", data("lmdb_raw", "scale: 0.01 crop_size: 7 mirror: false"), "",
                    std::string(" ") + kFormats + "lmdb_raw"},
           Prepared{"crop, means, scale", data("lmdb_raw", means + "scale: 0.02 crop_size: 7"), "",
                    " absolute.txt"},
           Prepared{"mean file, crop",
                    data("lmdb_raw", cat("scale: 0.02 crop_size: 7 mean_file: \"", kFormats,
                                         "mean.binaryproto\"")),
                    "", " absolute.txt"},
           Prepared{"encoded records", data("lmdb_encoded_jpg", "scale: 0.02 crop_size: 7"), "",
                    std::string(" ") + kFormats + "lmdb_encoded_jpg", 18},
           Prepared{"lists of the net", files("", "scale: 0.01 crop_size: 8"), "", list},
           Prepared{"resized", files("new_height: 9 new_width: 15", means + "crop_size: 7"), "",
                    list},
           Prepared{"short side", files("short_side: 9", "scale: 0.01 crop_size: 8"), "", list},
           Prepared{"red first", files("", "scale: 0.01 bgr2rgb: true " + means), "", list},
           Prepared{"-rgb", files("", "scale: 0.01 bgr2rgb: true " + means),
                    data("lmdb_raw", "scale: 0.01 " + means), " -rgb absolute.txt"},
           Prepared{"flags over the net",
                    files("new_height: 9 new_width: 8", "scale: 0.01 crop_size: 7 " + means),
                    files("", "scale: 3 crop_size: 7 mean_value: 1"),
                    " -scale 0.01 -mean 104,117,123 -resize 8x9" + list},
           Prepared{"deploy", files("new_height: 9 new_width: 8", "scale: 0.01 mean_value: 9"),
                    "deploy", " absolute.txt"},
           Prepared{"deploy, resize", files("new_height: 12 new_width: 9", "crop_size: 8"),
                    "deploy", " absolute.txt"},
           Prepared{"deploy, short side", files("short_side: 9", "scale: 0.01 crop_size: 8"),
                    "deploy", " absolute.txt"},
           Prepared{"deploy, red first", files("", "scale: 0.01 bgr2rgb: true " + means), "deploy",
                    " absolute.txt"},
           Prepared{"deploy, records", data("lmdb_raw", "scale: 0.01 crop_size: 7 mirror: false"),
                    "deploy", std::string(" ") + kFormats + "lmdb_raw"},
           Prepared{"deploy, their size", data("lmdb_raw", means + "scale: 0.02 crop_size: 7"),
                    "deploy", " absolute.txt"},
           Prepared{
               "deploy, mean file",
               data("lmdb_raw", cat("crop_size: 8 mean_file: \"", kFormats, "mean.binaryproto\"")),
               "deploy", " absolute.txt"},
       }) {
    expect_scores_of_test(folder, row);
  }
}

// Three channels become a grey one: the field says in which order the net's records have them.
TEST(ClassifyImages, PreparesGreyImages) {
  NEEDS_IMAGES();
  const Folder folder;
  const std::string list = std::string(" ") + kFormats + "list.txt";
  make_trained_colour_net(folder, "scale: 0.004 gray: BGR");
  for (const Prepared& row :
       {Prepared{"list", files("", "scale: 0.01 gray: BGR crop_size: 7"), "", list},
        Prepared{"red first", files("", "scale: 0.01 gray: RGB bgr2rgb: true"), "", list},
        Prepared{"records", data("lmdb_raw", "scale: 0.01 gray: RGB"), "",
                 std::string(" ") + kFormats + "lmdb_raw"},
        Prepared{"files for records that are red first",
                 files("", "scale: 0.01 gray: BGR mean_value: 104 mean_value: 117 mean_value: 123"),
                 data("lmdb_raw",
                      "scale: 0.01 gray: RGB mean_value: 123 mean_value: 117 mean_value: 104"),
                 " absolute.txt"},
        Prepared{"deploy", files("", "scale: 0.01 gray: RGB bgr2rgb: true crop_size: 7"), "deploy",
                 " absolute.txt"}}) {
    expect_scores_of_test(folder, row);
  }
}

}  // namespace classify_images_test
}  // namespace crema::tests
