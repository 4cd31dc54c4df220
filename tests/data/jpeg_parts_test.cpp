// Parts of JPEGs, and JPEGs decoded at a half of their size or less.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "data/databases/records.h"
#include "data/loader/loader.h"
#include "data/transforms/mean.h"
#include "fixtures.h"
#include "jpegs.h"
#include "pictures.h"

#ifdef CREMA_JPEG

namespace crema::tests {
namespace jpeg_parts_test {

TransformationParameter parameter(const std::string& text) {
  TransformationParameter message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

// The borders of an image and of its blocks.
std::vector<int64_t> places(int64_t count) {
  std::vector<int64_t> all;
  for (const int64_t at : {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32}) {
    if (at < count - 2) all.push_back(at);
  }
  for (const int64_t at : {count - 2, count - 1}) {
    if (at >= 0) all.push_back(at);
  }
  return all;
}

Image part_of(const std::string& file, Color color, const ImagePart& part) {
  Image image;
  const ImageFound found = decode_needed(
      file, color,
      [&](const ImageExtents&) {
        return ImageNeed{1, part};
      },
      image);
  EXPECT_EQ(found.part.height, part.height);
  EXPECT_EQ(found.part.width, part.width);
  return image;
}

TEST(JpegParts, HaveTheValuesOfTheWholeImage) {
  constexpr int64_t kSizes[][2] = {{37, 61}, {48, 64}, {5, 7}, {70, 33}};
  for (const JpegKind& kind : kJpegKinds) {
    for (const int64_t channels : {3, 1}) {
      for (const auto& [height, width] : kSizes) {
        const std::string file = jpeg_of_kind(circles(channels, height, width), kind);
        for (const Color color : {Color::color, Color::gray, Color::as_stored}) {
          SCOPED_TRACE(cat(kind.name, ", ", channels, "x", height, "x", width, ", colour ",
                           static_cast<int>(color)));
          Image whole;
          decode_image(file, color, whole);
          for (const int64_t rows : {int64_t{1}, height / 2, height}) {
            for (const int64_t columns : {int64_t{1}, width / 2, width}) {
              for (const int64_t top : places(height - rows + 1)) {
                for (const int64_t left : places(width - columns + 1)) {
                  const Image part = part_of(file, color, {top, left, rows, columns});
                  ASSERT_EQ(part.pixels, cut_image(whole, top, left, rows, columns).pixels)
                      << rows << "x" << columns << " at " << top << ", " << left;
                }
              }
            }
          }
        }
      }
    }
  }
}

TEST(JpegParts, OfDamagedFilesAreWhatTheWholeImageShows) {
  uint32_t seed = 7;
  int damaged = 0;
  for (const JpegKind& kind : kJpegKinds) {
    const std::string intact = jpeg_of_kind(circles(3, 50, 60), kind);
    for (int i = 0; i < 40; ++i) {
      std::string file = intact;
      for (int changes = 0; changes < 3; ++changes) {
        seed = seed * 1664525 + 1013904223;
        // Behind the headers.
        const size_t at = 700 + (seed >> 8) % (file.size() - 702);
        file[at] = static_cast<char>(seed >> 3);
      }
      Image whole;
      try {
        decode_image(file, Color::color, whole);
      } catch (const Error&) {
        continue;
      }
      ++damaged;
      for (const auto& [top, left] : {std::pair{0, 0}, {11, 7}, {30, 33}}) {
        Image part;
        decode_needed(
            file, Color::color,
            [&, top = top, left = left](const ImageExtents&) {
              return ImageNeed{1, {top, left, 20, 27}};
            },
            part);
        ASSERT_EQ(part.pixels, cut_image(whole, top, left, 20, 27).pixels) << kind.name << i;
      }
    }
  }
  EXPECT_GT(damaged, 200);
}

// The area below a part is not read; a file without its end is refused, as always.
TEST(JpegParts, WhatIsBelowMayBeDamaged) {
  std::string file = jpeg_of_kind(circles(3, 64, 64), kJpegKinds[0]);
  const std::string intact = file;
  file.resize(file.size() / 2);
  file += "\xFF\xD9";
  Image whole;
  decode_image(intact, Color::color, whole);
  EXPECT_EQ(part_of(file, Color::color, {0, 8, 16, 24}).pixels,
            cut_image(whole, 0, 8, 16, 24).pixels);
  Image image;
  const auto need = [](const ImageExtents&) { return ImageNeed{1, {0, 0, 8, 8}}; };
  expect_part(error_of([&] { decode_needed(intact.substr(0, 2000), Color::color, need, image); }),
              "the JPEG file is cut short");
}

// Images without parts are decoded whole.
TEST(JpegParts, OfOtherFilesAreAll) {
  NEEDS_IMAGES();
  const Image grey = quarters();
  struct Row {
    const char* name;
    std::string file;
    Color color;
    int64_t height, width;
  };
  const Row rows[] = {
      {"PNG", encode_image(grey, "png"), Color::color, 16, 32},
      {"four inks", cmyk_jpeg(), Color::color, 8, 8},
      {"turned", with_exif(encode_image(grey, "jpg"), 6), Color::color, 32, 16},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    Image whole, image;
    decode_image(row.file, row.color, whole);
    const ImageFound found = decode_needed(
        row.file, row.color,
        [](const ImageExtents&) {
          return ImageNeed{1, {2, 1, 3, 4}};
        },
        image);
    EXPECT_EQ(found.part.height, row.height);
    EXPECT_EQ(found.part.width, row.width);
    EXPECT_EQ(image.pixels, whole.pixels);
  }
  // A camera's remark does not matter to a net that reads images as they are stored.
  EXPECT_EQ(part_of(rows[2].file, Color::as_stored, {2, 1, 3, 4}).height, 3);
}

// Images as files, or as planes of bytes.
class Pictures : public Source {
 public:
  Pictures(const std::vector<std::string>& files, bool encoded) : Source("pictures") {
    for (const std::string& file : files) {
      Datum datum;
      datum.set_label(static_cast<int>(records_.size()));
      if (encoded) {
        datum.set_encoded(true);
        datum.set_data(file);
      } else {
        Image image;
        decode_image(file, Color::as_stored, image);
        datum.set_channels(static_cast<int>(image.channels));
        datum.set_height(static_cast<int>(image.height));
        datum.set_width(static_cast<int>(image.width));
        for (int64_t c = 0; c < image.channels; ++c) {
          for (int64_t i = 0; i < image.height * image.width; ++i)
            datum.mutable_data()->push_back(
                static_cast<char>(image.pixels[static_cast<size_t>(i * image.channels + c)]));
        }
      }
      records_.push_back(datum);
    }
  }
  int64_t size() const override { return static_cast<int64_t>(records_.size()); }
  std::string key(int64_t index) const override { return std::to_string(index); }
  void read(int64_t index, google::protobuf::Message& record) const override {
    record.CopyFrom(records_[static_cast<size_t>(index)]);
  }

 private:
  std::vector<Datum> records_;
};

std::vector<float> batches(const Source* source, const std::string& transform, bool training) {
  LoaderOptions options;
  options.batch_size = 4;
  options.random = {3, 4};
  Loader loader(
      std::make_shared<Records>(std::shared_ptr<const Source>(source),
                                Transform(parameter(transform), training, "", silent_log())),
      options);
  std::vector<float> all;
  for (int64_t number = 0; number < 6; ++number) {
    const std::vector<float>& data = loader.batch(number).data;
    all.insert(all.end(), data.begin(), data.end());
  }
  return all;
}

TEST(JpegParts, GiveTheBatchesThatRawRecordsGive) {
  const Folder folder;
  std::vector<std::string> files;
  for (uint32_t i = 0; i < 4; ++i)
    files.push_back(jpeg_of_kind(circles(3, 40, 52, i), kJpegKinds[2]));
  Mean mean{{3, 40, 52}, {}};
  for (int i = 0; i < 3 * 40 * 52; ++i) mean.values.push_back(static_cast<float>(i % 97));
  write_mean(mean, folder.file("mean.binaryproto"));
  const std::string mean_file = cat("mean_file: \"", folder.file("mean.binaryproto"), "\" ");
  const std::string texts[] = {
      "crop_size: 17",
      "crop_size: 17 mirror: true mean_value: 3 mean_value: 4 mean_value: 5",
      "crop_h: 40 crop_w: 9 scale: 0.5",
      "crop_h: 9 crop_w: 52 mean_value: 7",
      "crop_size: 32 pad: 4 mirror: true",
      "crop_size: 32 pad: 8 pad_mode: REFLECT",
      "crop_size: 5 pad: 12 pad_mode: REFLECT",
      "crop_size: 3 pad: 12 mean_value: 2",
      "crop_size: 20 gray: BGR mirror: true",
      "crop_size: 40 pad: 1 gray: BGR",
      "mirror: true",
      "crop_size: 16 is_flow: true mirror: true mean_value: 9",
      mean_file + "crop_size: 17 mirror: true",
      mean_file + "crop_h: 40 crop_w: 11",
      mean_file + "crop_h: 11 crop_w: 52 scale: 2",
      mean_file + "crop_size: 41 pad: 3 mirror: true",
  };
  for (const bool training : {true, false}) {
    for (const std::string& text : texts) {
      SCOPED_TRACE(text);
      EXPECT_EQ(batches(new Pictures(files, true), text, training),
                batches(new Pictures(files, false), text, training));
    }
  }
}

}  // namespace jpeg_parts_test
}  // namespace crema::tests

#endif
