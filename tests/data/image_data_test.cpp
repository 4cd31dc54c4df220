// ImageData beyond the reference cases of transform_test.cpp.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <numeric>

#include "data/images/image.h"
#include "data/lists/image_list.h"
#include "fixtures.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema::tests {
namespace image_data_test {

// Grey images a.png, b.png, ...; image i is 3 x (4 + i) and full of 10 i.
struct Pictures {
  explicit Pictures(int count) {
    for (int i = 0; i < count; ++i) {
      Image image{1, 3, 4 + (i % 2), {}};
      image.pixels.assign(static_cast<size_t>(image.height * image.width),
                          static_cast<uint8_t>(10 * i));
      folder.write(name(i), encode_image(image, "png"));
      list += cat(name(i), " ", i, "\n");
    }
    folder.write("list.txt", list);
  }
  static std::string name(int i) { return cat(static_cast<char>('a' + i), ".png"); }

  std::unique_ptr<Layer> layer(const std::string& fields, Context& context, bool training = true,
                               const std::string& transform = "") const {
    LayerParameter message;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        cat("name: \"d\" type: \"ImageData\" top: \"data\" top: \"label\" transform_param { ",
            transform, " } image_data_param { source: \"list.txt\" ",
            fields.find("is_color") == std::string::npos ? "is_color: false " : "", fields, " }"),
        &message));
    std::unique_ptr<Layer> layer = make_layer(message, training, folder.path());
    layer->source()->open(context);
    layer->setup(context, {});
    return layer;
  }

  Folder folder;
  std::string list;
};

struct Tops {
  std::vector<float> data, label;
  Shape shape;
};

Tops batch_of(Layer& layer, Context& context, uint64_t number) {
  Forward pass;
  pass.pass = number;
  layer.source()->reshapes(number);
  for (const Shape& shape : layer.infer({}).tops) pass.top.emplace_back(context, shape);
  layer.forward(context, pass);
  return {to_floats(context, pass.top[0]), to_floats(context, pass.top[1]), pass.top[0].shape()};
}

TEST(ImageList, SplitsLabelsFromPathsWithBlanks) {
  const Folder folder;
  folder.write("list", "my cat 2.png 3 -1.5 1e2\r\n\n  b.png\t0 0 +7 \n");
  const std::vector<ListedImage> images = read_labelled_list(folder.file("list"));
  ASSERT_EQ(images.size(), 2u);
  EXPECT_EQ(images[0].path, "my cat 2.png");
  EXPECT_EQ(images[0].labels, (std::vector<float>{3, -1.5f, 100}));
  EXPECT_EQ(images[1].line, 3);
  EXPECT_EQ(images[1].path, "  b.png");  // as_listed() says whether the blanks are meant
  EXPECT_EQ(images[1].labels, (std::vector<float>{0, 0, 7}));
}

TEST(ImageList, NamesTheLineThatIsWrong) {
  const Folder folder;
  const auto problem = [&](const std::string& text) {
    folder.write("list", text);
    return error_of([&] { read_labelled_list(folder.file("list")); });
  };
  expect_part(problem(""), "list: names no image; a line is `path label`");
  expect_part(problem("a.png 1\nb.png\n"), "list:2: a line is `path label` with a number as label");
  expect_part(problem("5\n"), "list:1: a line is");
  expect_part(problem("a.png 1 2\nb.png 1\n"), "list:2: has 1 labels, but the first line has 2");
  folder.write("pairs", "a.png b.png\na.png\n");
  expect_part(error_of([&] { read_pair_list(folder.file("pairs")); }),
              "pairs:2: a line is `path path`");
}

TEST(ImageList, TakesLabelsThatABlobHolds) {
  const Folder folder;
  struct Row {
    const char* label;
    float value;
    const char* error;
  };
  const Row rows[] = {
      {"16777216", 16777216, nullptr},
      {"-16777216", -16777216, nullptr},
      {"33554432", 33554432, nullptr},
      {"0.1", 0.1f, nullptr},
      {"16777217.0", 16777216, nullptr},  // a real number: rounded, as all are
      {"16777217", 0, "list:2: the label 16777217 cannot be kept"},
      {"-16777217", 0, "list:2: the label -16777217 cannot be kept"},
      {"3000000000", 0, "list:2: the label 3000000000 is beyond the integers of 32 bits"},
      {"99999999999999999999", 0, "beyond the integers of 32 bits"},
      {"1e39", 0, "list:2: the label 1e39 is beyond the numbers of a float32"},
      {"1e999", 0, "list:2: the label 1e999 is beyond"},
      {"inf", 0, "list:2: a line is `path label`"},
      {"nan", 0, "list:2: a line is `path label`"},
      {"-inf", 0, "list:2: a line is `path label`"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.label);
    folder.write("list", cat("a.png 1\nb.png ", row.label, "\n"));
    if (row.error) {
      expect_part(error_of([&] { read_labelled_list(folder.file("list")); }), row.error);
    } else {
      EXPECT_EQ(read_labelled_list(folder.file("list"))[1].labels[0], row.value);
    }
  }
}

TEST(ImageList, SkipsAByteOrderMark) {
  const Folder folder;
  folder.write("list",
               "\xEF\xBB\xBF"
               "a.png 1\n");
  folder.write("pairs",
               "\xEF\xBB\xBF"
               "a.png b.png\n");
  EXPECT_EQ(read_labelled_list(folder.file("list"))[0].path, "a.png");
  EXPECT_EQ(read_class_list(folder.file("list"))[0].path, "a.png");
  EXPECT_EQ(read_path_list(folder.file("list"))[0].path, "a.png");
  EXPECT_EQ(read_pair_list(folder.file("pairs"))[0].path, "a.png");
}

// As Caffe, which takes everything before the last blank of a line as the path.
TEST(ImageList, FindsPathsWithBlanksInFront) {
  const Folder folder;
  folder.write(" spaced.png", "");
  folder.write("bare.png", "");
  const std::string root = folder.path() + "/";
  EXPECT_EQ(as_listed(" spaced.png", root, ""), " spaced.png");
  EXPECT_EQ(as_listed("  bare.png", root, ""), "bare.png");
  EXPECT_EQ(as_listed(" spaced.png", "", folder.path()), " spaced.png");
  EXPECT_EQ(as_listed(" none.png", root, ""), "none.png");
}

TEST(ImageData, ShufflesEachEpochAndResumesWhereItWas) {
  NEEDS_IMAGES();
  const Pictures pictures(7);
  Context context(Device::cpu);
  const std::string fields = "batch_size: 7 shuffle: true new_height: 4 new_width: 4 rand_skip: 5";
  const std::string transform = "crop_size: 3 mirror: true scale: 0.1";
  const auto layer = pictures.layer(fields, context, true, transform);
  std::vector<Tops> batches;
  for (uint64_t pass = 0; pass < 6; ++pass) {
    batches.push_back(batch_of(*layer, context, pass));
    const Tops& batch = batches.back();
    EXPECT_EQ(batch.shape, (Shape{7, 1, 3, 3}));
    for (int i = 0; i < 7; ++i) EXPECT_FLOAT_EQ(batch.data[i * 9], batch.label[i]);
  }
  EXPECT_NE(batches[0].label, batches[1].label);
  const auto resumed = pictures.layer(fields, context, true, transform);
  for (const uint64_t pass : {4, 5}) {
    const Tops batch = batch_of(*resumed, context, pass);
    EXPECT_EQ(batch.data, batches[pass].data);
    EXPECT_EQ(batch.label, batches[pass].label);
  }
}

TEST(ImageData, BatchesOfOneFollowTheSizeOfEachImage) {
  NEEDS_IMAGES();
  const Pictures pictures(3);
  Context context(Device::cpu);
  const auto layer = pictures.layer("", context, false);
  EXPECT_EQ(layer->source()->records(), 3);
  EXPECT_EQ(batch_of(*layer, context, 0).shape, (Shape{1, 1, 3, 4}));
  EXPECT_EQ(batch_of(*layer, context, 1).shape, (Shape{1, 1, 3, 5}));
  const Tops third = batch_of(*layer, context, 5);
  EXPECT_EQ(third.shape, (Shape{1, 1, 3, 4}));
  EXPECT_EQ(third.data[0], 20);
}

TEST(ImageData, GivesSeveralLabelsOfALine) {
  NEEDS_IMAGES();
  const Pictures pictures(2);
  pictures.folder.write("list.txt", "a.png 0.5 2 3\nb.png -1 5 6\n");
  Context context(Device::cpu);
  const auto layer = pictures.layer("batch_size: 3 short_side: 6", context, false, "crop_size: 6");
  EXPECT_EQ(layer->infer({}).tops, (std::vector<Shape>{{3, 1, 6, 6}, {3, 3}}));
  EXPECT_EQ(batch_of(*layer, context, 0).label,
            (std::vector<float>{0.5f, 2, 3, -1, 5, 6, 0.5f, 2, 3}));
}

TEST(ImageData, ReadsInColorUnlessToldOtherwise) {
  NEEDS_IMAGES();
  const Pictures pictures(1);
  Context context(Device::cpu);
  EXPECT_EQ(pictures.layer("is_color: true", context)->infer({}).tops[0], (Shape{1, 3, 3, 4}));
  EXPECT_EQ(pictures.layer("is_color: true images_in_color: false", context)->infer({}).tops[0],
            (Shape{1, 1, 3, 4}));
}

TEST(ImageData, NamesTheLineOfAnImageThatIsNone) {
  NEEDS_IMAGES();
  const Pictures pictures(2);
  Context context(Device::cpu);
  const auto first_batch = [&](const std::string& list) {
    pictures.folder.write("list.txt", list);
    return error_of([&] {
      const auto layer = pictures.layer("batch_size: 2", context);
      batch_of(*layer, context, 0);
    });
  };
  expect_part(first_batch("a.png 0\nnone.png 1\n"), "list.txt:2: none.png: cannot open");
  expect_part(first_batch("a.png 0\nlist.txt 1\n"), "list.txt: its 19 bytes are not an image");
  std::string jpeg = encode_image({1, 3, 4, std::vector<uint8_t>(12)}, "jpg");
  jpeg.resize(jpeg.size() - 9);
  pictures.folder.write("cut.jpg", jpeg);
  expect_part(first_batch("a.png 0\ncut.jpg 1\n"), "cut.jpg: the JPEG file is cut short");
  pictures.folder.write("huge.pgm", "P5\n30000 30000\n255\n");
  expect_part(first_batch("a.png 0\nhuge.pgm 1\n"),
              "huge.pgm: the image has 30000 x 30000 pixels; at most 268435456");
  expect_part(first_batch("a.png 0\n\nb.png 1\n"),
              "list.txt:3: its shape 1x3x5 is not 1x3x4, that");
  expect_part(first_batch("a.png 0\nb.png 1\n"), "give new_height and new_width");
  expect_part(first_batch("b.png\n"), "list.txt:1: a line is `path label`");
}

TEST(ImageData, AsksForWhatIsMissing) {
  const Folder folder;
  Context context(Device::cpu);
  const auto setting = [&](const std::string& fields) {
    LayerParameter message;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        cat("type: \"ImageData\" top: \"data\" image_data_param { ", fields, " }"), &message));
    return error_of([&] { make_layer(message, true, folder.path())->setup(context, {}); });
  };
  expect_part(setting(""), "needs a `source`");
  expect_part(setting("source: \"none.txt\""), "none.txt: cannot open");
  expect_part(setting("source: \"none.txt\" new_width: 3"), "only one of new_height and new_width");
  expect_part(setting("source: \"none.txt\" batch_size: 0"), "batch_size");
}

}  // namespace image_data_test
}  // namespace crema::tests
