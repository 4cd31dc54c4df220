// Model: pictures as inputs, and names of classes.
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "crema.h"
#include "support.h"

namespace crema::tests {
namespace model_pictures_test {

// A net that gives its input: 2 samples of 1 or 3 planes.
std::string net_text(int planes, int height, int width) {
  return cat(
      "name: \"same\" layer { name: \"data\" type: \"Input\" top: \"data\" input_param { shape { "
      "dim: 2 dim: ",
      planes, " dim: ", height, " dim: ", width,
      " } } } layer { name: \"same\" type: \"Power\" bottom: \"data\" top: \"same\" }\n");
}

std::vector<uint8_t> counted(int count) {
  std::vector<uint8_t> bytes(static_cast<size_t>(count));
  std::iota(bytes.begin(), bytes.end(), uint8_t{10});
  return bytes;
}

std::vector<float> first_sample(const Model& model) {
  const std::vector<float> all = model.values("same");
  return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2)};
}

TEST(ModelPictures, OrdersColoursSubtractsAndScales) {
  const Folder folder;
  folder.write("net.prototxt", net_text(3, 1, 2));
  // Two pixels with the bytes 10 11 12 and 13 14 15.
  const std::vector<uint8_t> bytes = counted(6);
  struct Row {
    PictureFormat format;
    PictureOptions options;
    std::vector<float> want;  // planes
  };
  for (const Row& row : {
           Row{PictureFormat::bgr, {}, {10, 13, 11, 14, 12, 15}},
           Row{PictureFormat::rgb, {}, {12, 15, 11, 14, 10, 13}},
           Row{PictureFormat::rgb, {.rgb = true}, {10, 13, 11, 14, 12, 15}},
           Row{PictureFormat::bgr, {.mean = "1,2,3", .scale = 2.f}, {18, 24, 18, 24, 18, 24}},
       }) {
    Model model(folder.file("net.prototxt"), {.pictures = row.options});
    model.set_picture("data", PictureView{2, 1, row.format, bytes}, 0);
    model.set_picture("data", PictureView{2, 1, row.format, bytes}, 1);
    model.forward();
    EXPECT_EQ(first_sample(model), row.want);
  }
}

TEST(ModelPictures, MakesGreyAndColour) {
  const Folder folder;
  folder.write("grey.prototxt", net_text(1, 1, 1));
  folder.write("colour.prototxt", net_text(3, 1, 1));
  const std::vector<uint8_t> red = {200, 0, 0}, grey = {77};
  Model to_grey(folder.file("grey.prototxt"));
  to_grey.set_picture("data", PictureView{1, 1, PictureFormat::rgb, red});
  to_grey.forward();
  EXPECT_EQ(first_sample(to_grey), (std::vector<float>{60}));  // 0.299 * 200, as a byte
  Model to_colour(folder.file("colour.prototxt"));
  to_colour.set_picture("data", PictureView{1, 1, PictureFormat::grey, grey});
  to_colour.forward();
  EXPECT_EQ(first_sample(to_colour), (std::vector<float>{77, 77, 77}));
}

TEST(ModelPictures, ReadsFilesAndResizes) {
#ifndef CREMA_OPENCV
  GTEST_SKIP() << "built without OpenCV";
#endif
  const Folder folder;
  folder.write("net.prototxt", net_text(1, 2, 3));
  folder.write("picture.pgm", "P5\n3 2\n255\n" + std::string("\1\2\3\4\5\6"));
  folder.write("large.pgm", "P5\n6 4\n255\n" + std::string(24, '\x50'));
  Model model(folder.file("net.prototxt"), {.pictures = {.resize = "3x2"}});
  model.set_picture("data", folder.file("picture.pgm"), 0);
  model.set_picture("data", folder.file("large.pgm"), 1);
  model.forward();
  EXPECT_EQ(model.values("same"), (std::vector<float>{1, 2, 3, 4, 5, 6, 80, 80, 80, 80, 80, 80}));
  // Without a word about them, pictures get the size of the input.
  Model by_default(folder.file("net.prototxt"));
  for (const int sample : {0, 1}) by_default.set_picture("data", folder.file("large.pgm"), sample);
  by_default.forward();
  EXPECT_EQ(by_default.values("same"), std::vector<float>(12, 80));
  // From memory, in several threads.
  const Model::PictureReader reader = by_default.picture_reader("data");
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      EXPECT_EQ(reader(folder.read("picture.pgm")), (std::vector<float>{1, 2, 3, 4, 5, 6}));
      EXPECT_EQ(reader(folder.read("large.pgm")), std::vector<float>(6, 80));
      EXPECT_NE(error_of([&] { reader("no picture"); }), "");
    });
  }
  threads.clear();
  expect_part(error_of([&] { by_default.picture_reader("date"); }), "has no input \"date\"");
  folder.write("not.pgm", "no picture");
  expect_part(error_of([&] { model.set_picture("data", folder.file("not.pgm")); }), "not.pgm");
}

TEST(ModelPictures, NamesTheBestClasses) {
  const Folder folder;
  folder.write("labels.txt", "cat\ndog\nfox\n");
  folder.write("net.prototxt",
               "layer { name: \"data\" type: \"Input\" top: \"data\" input_param { shape { dim: 2 "
               "dim: 3 } } }\n"
               "layer { name: \"prob\" type: \"Softmax\" bottom: \"data\" top: \"prob\" }\n");
  Model model(folder.file("net.prototxt"), {.pictures = {.labels = folder.file("labels.txt")}});
  model.set_input("data", std::vector<float>{0, 2, 1, 5, 0, 0});
  model.forward();
  const std::vector<ClassScore> first = model.best(2), second = model.best(9, 1);
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0].name, "dog");
  EXPECT_EQ(first[1].name, "fox");
  EXPECT_NEAR(first[0].score, 0.665f, 1e-3);
  ASSERT_EQ(second.size(), 3u);
  EXPECT_EQ(second[0].name, "cat");
  EXPECT_EQ(second[1].index, 1);  // the first of equal scores
  EXPECT_EQ(model.class_names(3), (std::vector<std::string>{"cat", "dog", "fox"}));
  expect_part(error_of([&] { model.class_names(2); }), "names 3 classes, but the net has 2");
  EXPECT_EQ(model.outputs()[0].layer_type, "Softmax");
  expect_part(error_of([&] { model.best(0); }), "best(0): expected a positive number of classes");
  expect_part(error_of([&] { model.best(1, 2); }), "there is no sample 2; the batch has 2");
  expect_part(error_of([&] { model.best(1, 0, "pro"); }), "pro");
}

TEST(ModelPictures, SaysWhatDoesNotFit) {
  const Folder folder;
  folder.write("net.prototxt", net_text(3, 1, 2));
  const std::vector<uint8_t> bytes = counted(5);
  Model model(folder.file("net.prototxt"));
  expect_part(error_of([&] {
                model.set_picture("data", PictureView{2, 1, PictureFormat::rgb, bytes});
              }),
              "a picture of 2x1 pixels with 3 channels has 6 bytes, not 5");
  expect_part(error_of([&] {
                model.set_picture("data", PictureView{0, 1, PictureFormat::rgb, bytes});
              }),
              "a picture of 0x1 pixels: expected positive numbers");
  expect_part(error_of([&] {
                model.set_picture("date", PictureView{2, 1, PictureFormat::rgb, bytes});
              }),
              "date");
  expect_part(error_of([&] {
                model.set_picture("data", PictureView{2, 1, PictureFormat::rgb, bytes}, 2);
              }),
              "the input \"data\" has no sample 2; it has 2");
  expect_part(error_of([&] { model.set_picture("data", folder.file("none.png")); }), "none.png");
  expect_part(error_of([&] {
                Model(folder.file("net.prototxt"), {.pictures = {.resize = "3"}})
                    .set_picture("data", PictureView{2, 1, PictureFormat::rgb, counted(6)});
              }),
              "pictures.resize 3: expected width x height in pixels, such as 256x256");
}

}  // namespace model_pictures_test
}  // namespace crema::tests
