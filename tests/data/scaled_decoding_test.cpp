// JPEGs that become smaller anyway, decoded at a half, a quarter or an eighth of their size.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "data/convert/convert.h"
#include "fixtures.h"
#include "jpegs.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

#ifdef CREMA_JPEG

namespace crema::tests {
namespace scaled_decoding_test {

// Mean and largest of the differences, which a few levels of smooth pictures with edges cause.
template <typename Values>
double mean_difference(const Values& a, const Values& b) {
  EXPECT_EQ(a.size(), b.size());
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
  return sum / static_cast<double>(a.size());
}

TEST(ScaledDecoding, IsAsLargeAsItMustBe) {
  struct Row {
    int64_t height, width, least_height, least_width;
    int shrink;
  };
  const Row rows[] = {
      {375, 500, 256, 256, 1}, {375, 500, 187, 250, 2},   {375, 500, 188, 250, 1},
      {375, 500, 93, 125, 4},  {375, 500, 46, 62, 8},     {375, 500, 1, 1, 8},
      {375, 500, 40, 100, 4},  {3000, 4000, 256, 256, 8}, {20, 16, 20, 16, 1},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(cat(row.height, "x", row.width, " to ", row.least_height, "x", row.least_width));
    EXPECT_EQ(largest_shrink({3, row.height, row.width}, row.least_height, row.least_width),
              row.shrink);
  }
}

TEST(ScaledDecoding, ShrinksEveryKind) {
  for (const JpegKind& kind : kJpegKinds) {
    const std::string file = jpeg_of_kind(circles(3, 101, 75), kind);
    for (const int shrink : {2, 4, 8}) {
      SCOPED_TRACE(cat(kind.name, " by ", shrink));
      Image image;
      const ImageFound found = decode_needed(
          file, Color::color, [&](const ImageExtents&) { return ImageNeed{shrink}; }, image);
      EXPECT_EQ(found.shrink, shrink);
      EXPECT_EQ(found.extents.height, 101);
      EXPECT_EQ(image.height, (101 + shrink - 1) / shrink);
      EXPECT_EQ(image.width, (75 + shrink - 1) / shrink);
      EXPECT_EQ(image.pixels.size(), static_cast<size_t>(image.height * image.width * 3));
    }
  }
}

std::vector<float> batch(const Folder& folder, const std::string& fields,
                         const std::string& transform, int64_t number = 0) {
  LayerParameter message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      cat("name: \"d\" type: \"ImageData\" top: \"data\" top: \"label\" transform_param { ",
          transform, " } image_data_param { source: \"list\" batch_size: 4 ", fields, " }"),
      &message));
  Context context(Device::cpu);
  const std::unique_ptr<Layer> layer = make_layer(message, true, folder.path());
  layer->source()->open(context);
  layer->setup(context, {});
  Forward pass;
  pass.pass = static_cast<uint64_t>(number);
  for (const Shape& shape : layer->infer({}).tops) pass.top.emplace_back(context, shape);
  layer->forward(context, pass);
  return to_floats(context, pass.top[0]);
}

TEST(ScaledDecoding, GivesNearlyTheSameBatches) {
  NEEDS_IMAGES();
  const Folder folder;
  std::string list;
  for (uint32_t i = 0; i < 4; ++i) {
    folder.write(cat(i, ".jpg"), jpeg_of_kind(circles(3, 300, 401, i), kJpegKinds[i]));
    list += cat(i, ".jpg ", i, "\n");
  }
  folder.write("list", list);
  struct Row {
    const char *fields, *transform;
    bool differs;
  };
  const Row rows[] = {
      {"new_height: 60 new_width: 80", "mirror: true", true},
      {"new_height: 150 new_width: 200", "", true},
      {"new_height: 151 new_width: 200", "", false},  // more than a half of the height
      {"short_side: 70", "crop_size: 64", true},
      {"",
       "crop_size: 64 augment { resized_crop { least_area: 0.5 } flip { } rotate { least: 5 } }",
       true},
      {"", "crop_size: 280 augment { resized_crop { least_area: 0.5 } }", false},
      {"", "crop_size: 64 mirror: true", false},
      {"", "crop_size: 64 bgr2rgb: true augment { resized_crop { } }", false},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(cat(row.fields, " ", row.transform));
    const std::vector<float> plain = batch(folder, row.fields, row.transform),
                             scaled = batch(folder, row.fields,
                                            cat("scaled_decoding: true ", row.transform));
    EXPECT_EQ(plain != scaled, row.differs);
    EXPECT_LT(mean_difference(plain, scaled), 6);
  }
}

TEST(ScaledDecoding, OfConvertImageset) {
  NEEDS_IMAGES();
  const Folder folder;
  folder.write("a.jpg", jpeg_of_kind(circles(3, 300, 401), kJpegKinds[2]));
  folder.write("b.png", encode_image(circles(3, 300, 401, 2), "png"));
  folder.write("list", "a.jpg 0\nb.png 1\n");
  ImagesetOptions options;
  options.resize_height = 60;
  options.resize_width = 80;
  const auto data = [&](const char* database, int64_t index) {
    Datum datum;
    open_lmdb(folder.file(database))->read(index, datum);
    EXPECT_EQ(datum.height(), 60);
    EXPECT_EQ(datum.width(), 80);
    std::vector<int> values;
    for (const char value : datum.data()) values.push_back(static_cast<uint8_t>(value));
    return values;
  };
  convert_imageset(folder.path() + "/", folder.file("list"), folder.file("plain"), options,
                   silent_log());
  options.scaled_decoding = true;
  convert_imageset(folder.path() + "/", folder.file("list"), folder.file("scaled"), options,
                   silent_log());
  EXPECT_NE(data("plain", 0), data("scaled", 0));
  EXPECT_LT(mean_difference(data("plain", 0), data("scaled", 0)), 6);
  EXPECT_EQ(data("plain", 1), data("scaled", 1));
  options.resize_width = 0;
  expect_part(error_of([&] {
                convert_imageset(folder.path() + "/", folder.file("list"), folder.file("none"),
                                 options, silent_log());
              }),
              "-scaled_decoding: goes with -resize_height and -resize_width");
}

}  // namespace scaled_decoding_test
}  // namespace crema::tests

#endif
