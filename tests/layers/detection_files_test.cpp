// Files of DetectionOutput for VOC, COCO and ILSVRC.
#include "layers/detection/detection_files.h"

#include <gtest/gtest.h>

#include "support.h"

namespace crema::tests {
namespace detection_files_test {

class DetectionFilesTest : public testing::Test {
 protected:
  DetectionFilesTest() {
    folder_.write("labels.prototxt",
                  "item { name: 'none' label: 0 display_name: 'background' }\n"
                  "item { name: '17' label: 1 display_name: 'cat' }\n"
                  "item { name: 'dog' label: 2 display_name: 'dog' }\n");
    folder_.write("sizes.txt", "img1 100 200\n2 50 50\nimg3 10 10\n");
  }

  SaveOutputParameter parameter(const std::string& format) {
    SaveOutputParameter p;
    p.set_output_directory(folder_.file("found/here"));
    p.set_output_name_prefix("det_");
    p.set_output_format(format);
    p.set_label_map_file("labels.prototxt");
    p.set_name_size_file("sizes.txt");
    p.set_num_test_image(2);
    return p;
  }

  // Two images; the second has a box that goes beyond the border.
  void write(const SaveOutputParameter& p) {
    DetectionFiles files(p, folder_.path(), 3, 0);
    files.add({{0, 1, 0.75f, {0.1f, 0.2f, 0.5f, 0.6f}}, {0, 2, 0.5f, {0, 0, 1, 1}}});
    EXPECT_FALSE(folder_.has("found/here/det_dog.txt"));
    files.add({{1, 1, 0.25f, {-0.5f, 0.5f, 0.5f, 1.5f}}});
  }

  std::string read(const std::string& name) { return folder_.read("found/here/" + name); }

  Folder folder_;
};

TEST_F(DetectionFilesTest, Voc) {
  write(parameter("VOC"));
  EXPECT_EQ(read("det_17.txt"), "img1 0.75 20 20 100 60\n2 0.25 0 25 25 50\n");
  EXPECT_EQ(read("det_dog.txt"), "img1 0.5 0 0 200 100\n");
  EXPECT_FALSE(folder_.has("found/here/det_none.txt"));
}

TEST_F(DetectionFilesTest, Coco) {
  write(parameter("COCO"));
  EXPECT_EQ(read("det_.json"),
            "[\n"
            "  {\"image_id\": \"img1\", \"category_id\": 17, \"bbox\": [20, 20, 80, 40], "
            "\"score\": 0.75},\n"
            "  {\"image_id\": \"img1\", \"category_id\": \"dog\", \"bbox\": [0, 0, 200, 100], "
            "\"score\": 0.5},\n"
            "  {\"image_id\": 2, \"category_id\": 17, \"bbox\": [0, 25, 25, 25], "
            "\"score\": 0.25}\n"
            "]\n");
}

TEST_F(DetectionFilesTest, Ilsvrc) {
  write(parameter("ILSVRC"));
  EXPECT_EQ(read("det_.txt"),
            "img1 1 0.75 20 20 100 60\nimg1 2 0.5 0 0 200 100\n2 1 0.25 0 25 25 50\n");
}

TEST_F(DetectionFilesTest, TheNextTestStartsAgain) {
  const SaveOutputParameter p = parameter("ILSVRC");
  DetectionFiles files(p, folder_.path(), 3, 0);
  for (int test = 0; test < 2; ++test) {
    files.add({{0, 1, 0.5f, {0, 0, 1, 1}}});
    files.add({});
    EXPECT_EQ(read("det_.txt"), "img1 1 0.5 0 0 200 100\n");
  }
}

TEST_F(DetectionFilesTest, Errors) {
  const auto message = [&](const SaveOutputParameter& p) {
    return error_of([&] { DetectionFiles(p, folder_.path(), 3, 0); });
  };
  SaveOutputParameter p = parameter("XML");
  expect_part(message(p), "output_format \"XML\" is not supported: VOC, COCO and ILSVRC are");
  p = parameter("VOC");
  p.set_num_test_image(4);
  expect_part(message(p), "num_test_image is 4, but name_size_file has 3 images");
  folder_.write("labels.prototxt", "item { name: 'a' label: 1 }\nitem { name: 'b' label: 1 }");
  expect_part(message(parameter("VOC")), "label 1 is there twice, as \"a\" and \"b\"");
  folder_.write("labels.prototxt", "itm { }");
  expect_part(message(parameter("VOC")), "labels.prototxt:1:");
  folder_.write("sizes.txt", "img1 100 200\nimg2 x 3\n");
  folder_.write("labels.prototxt", "item { name: 'a' label: 1 }");
  expect_part(message(parameter("VOC")), "line 2 is not \"name height width\"");
}

void expect_box(const Box& box, const Box& wanted) {
  EXPECT_NEAR(box.x1, wanted.x1, 1e-4);
  EXPECT_NEAR(box.y1, wanted.y1, 1e-4);
  EXPECT_NEAR(box.x2, wanted.x2, 1e-4);
  EXPECT_NEAR(box.y2, wanted.y2, 1e-4);
}

// An image of 100 rows and 200 columns, resized in three ways.
TEST(InPixels, UndoesResizing) {
  expect_box(in_pixels({0.25f, 0.5f, 0.75f, 2}, 100, 200, nullptr), {50, 50, 150, 100});
  ResizeParameter resize;
  resize.set_height(300);
  resize.set_width(300);
  resize.set_resize_mode(ResizeParameter::FIT_LARGE_SIZE_AND_PAD);  // rows 75 to 225 are the image
  expect_box(in_pixels({0, 0.25f, 0.5f, 0.5f}, 100, 200, &resize), {0, 0, 100, 50});
  expect_box(in_pixels({0.25f, 0, 0.5f, 0.75f}, 200, 100, &resize), {0, 0, 50, 150});
  resize.set_resize_mode(ResizeParameter::FIT_SMALL_SIZE);
  expect_box(in_pixels({0.5f, 0.5f, 1, 1}, 100, 200, &resize), {100, 50, 200, 100});
  resize.set_height_scale(80);
  resize.set_width_scale(400);
  expect_box(in_pixels({0.25f, 0.5f, 1, 1}, 100, 200, &resize), {100, 40, 200, 80});
}

}  // namespace detection_files_test
}  // namespace crema::tests
