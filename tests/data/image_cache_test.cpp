// The cache of decoded images, alone and in every layer that has one.
#include "data/loader/image_cache.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "data/databases/database_writer.h"
#include "data/loader/loader.h"
#include "fixtures.h"
#include "jpegs.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema::tests {
namespace image_cache_test {

Image full_of(int value, int64_t bytes = 100) {
  return {1, 1, bytes,
          std::vector<uint8_t>(static_cast<size_t>(bytes), static_cast<uint8_t>(value))};
}

TEST(ImageCache, KeepsWhatCameFirst) {
  for (const bool on_disk : {false, true}) {
    Lines log;
    ImageCache cache({on_disk, 250, "", "pictures"}, log);
    for (int i = 0; i < 4; ++i) {
      cache.begin_sample(0);
      cache.keep(i, full_of(i), cat("label ", i));
    }
    Record record;
    std::string rest;
    for (int i = 0; i < 4; ++i) {
      cache.begin_sample(1);
      ASSERT_EQ(cache.find(i, record, rest), i < 2) << i;
      if (i >= 2) continue;
      EXPECT_EQ(rest, cat("label ", i));
      EXPECT_EQ(record.shape(), Shape({1, 1, 100}));
      EXPECT_EQ(std::vector<uint8_t>(record.bytes, record.bytes + 100), full_of(i).pixels);
      to_image(record);
      EXPECT_EQ(record.image.pixels, full_of(i).pixels);
    }
    EXPECT_FALSE(cache.grows());
    EXPECT_EQ(cache.bytes(), 200);
    EXPECT_EQ(log.all,
              std::vector<std::string>{cat(
                  "The cache is full: it has 2 images of pictures, 200 bytes ",
                  on_disk ? "on disk" : "in memory", "; the others are decoded in each epoch.")});
  }
}

TEST(ImageCache, SaysWhatItHasAfterTheFirstEpoch) {
  Lines log;
  ImageCache cache({false, 0, "", "pictures"}, log);
  // The first three belong to loaders that are created to continue in epoch 7.
  int64_t made = 0;
  for (const int epoch : {0, 0, 0, 7, 7, 7, 8, 8, 9, 9, 10}) {
    cache.begin_sample(epoch);
    EXPECT_EQ(log.all.empty(), epoch < 9);
    cache.keep(made++ < 3 ? 0 : made % 3, full_of(1, 1 << 20));
  }
  EXPECT_EQ(log.infos,
            std::vector<std::string>{"The cache has 3 images of pictures, 3.0 MiB in memory."});
  EXPECT_TRUE(cache.grows());
}

TEST(ImageCache, LivesWithoutADisk) {
  const Folder folder;
  Lines log;
  expect_part(error_of([&] {
                ImageCache({true, 0, folder.file("none"), "p"}, log);
              }),
              cat("cache: DISK: no temporary file can be made in ", folder.file("none"), ": "));
  ImageCache cache({true, 0, folder.path(), "pictures"}, log);
  EXPECT_TRUE(folder.names().empty());  // the file has no name
  {
    const FileSizeLimit full(150);
    for (int i = 0; i < 3; ++i) cache.keep(i, full_of(i));
  }
  cache.keep(3, full_of(3));
  Image image;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(cache.find(i, image), i == 0);
  EXPECT_TRUE(cache.find(0, image));
  EXPECT_EQ(image.pixels, full_of(0).pixels);
  ASSERT_EQ(log.all.size(), 1u);
  expect_part(log.warnings.at(0),
              "The cache grows no more, as its file cannot be written: File too large; it has 1 "
              "image of pictures, 100 bytes on disk.");
}

#ifdef CREMA_JPEG

// 14 pictures of 3 x 180 x 220: 1.6 MiB, more than the smallest limit.
struct Pictures {
  static constexpr int kCount = 14;
  Pictures() {
    const auto boxed = make_database(true), plain = make_database(false);
    std::string list, pairs;
    for (uint32_t i = 0; i < kCount; ++i) {
      const std::string jpeg = jpeg_of_kind(circles(3, 180, 220, i), kJpegKinds[2]);
      folder.write(cat(i, ".jpg"), jpeg);
      folder.write(cat(i, ".png"), encode_image(circles(1, 180, 220, i + 100), "png"));
      list += cat(i, ".jpg ", i, "\n");
      pairs += cat(i, ".jpg ", i, ".png\n");
      AnnotatedDatum record;
      record.mutable_datum()->set_encoded(true);
      record.mutable_datum()->set_data(jpeg);
      record.mutable_datum()->set_label(static_cast<int>(i));
      plain->put(numbered_key(i, 8), record.datum());
      record.set_type(AnnotatedDatum::BBOX);
      AnnotationGroup& group = *record.add_annotation_group();
      group.set_group_label(static_cast<int>(i % 5) + 1);
      NormalizedBBox& box = *group.add_annotation()->mutable_bbox();
      box.set_xmin(0.1f);
      box.set_ymin(0.2f);
      box.set_xmax(0.5f);
      box.set_ymax(0.3f + 0.04f * static_cast<float>(i));
      boxed->put(numbered_key(i, 8), record);
    }
    boxed->finish();
    plain->finish();
    folder.write("list", list);
    folder.write("pairs", pairs);
  }
  std::unique_ptr<DatabaseWriter> make_database(bool boxes) const {
    return create_database(folder.file(boxes ? "boxed" : "plain"), DataParameter::LMDB);
  }
  Folder folder;
};

struct Row {
  const char* layer;  // its type and fields; `cache` and `threads` go before the last bracket
  const char* transform;
  bool with_threads;
  bool small = false;  // all images together, below the least limit
};

const Row kRows[] = {
    {"type: \"Data\" data_param { source: \"plain\" backend: LMDB batch_size: 4 shuffle: true }",
     "crop_size: 100 mirror: true", true},
    {"type: \"Data\" data_param { source: \"plain\" backend: LMDB batch_size: 4 }",
     "crop_size: 90 force_gray: true augment { resized_crop { } flip { } }", true, true},
    {"type: \"ImageData\" image_data_param { source: \"list\" batch_size: 4 new_height: 170 "
     "new_width: 210 shuffle: true }",
     "crop_size: 160 mirror: true", true},
    {"type: \"ImageData\" image_data_param { source: \"list\" batch_size: 4 }",
     "crop_size: 99 mean_value: 3", true},
    {"type: \"ImageSegData\" image_data_param { source: \"pairs\" batch_size: 4 label_type: PIXEL "
     "}",
     "crop_size: 99 mirror: true", false},
    {"type: \"AnnotatedData\" data_param { source: \"boxed\" backend: LMDB batch_size: 4 }",
     "mirror: true resize_param { height: 60 width: 60 } augment { rotate { least: 1 most: 9 } }",
     true},
};

// Of three epochs.
std::vector<std::vector<float>> batches(const Pictures& pictures, const Row& row,
                                        const std::string& fields, Log& log) {
  std::string text = row.layer;
  text.insert(text.rfind('}'), fields);
  LayerParameter message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      cat("name: \"d\" top: \"data\" top: \"label\" transform_param { ", row.transform, " } ",
          text),
      &message))
      << text;
  Context context(Device::cpu);
  context.set_log(log);
  const std::unique_ptr<Layer> layer = make_layer(message, true, pictures.folder.path());
  layer->source()->open(context);
  layer->setup(context, {});
  std::vector<std::vector<float>> all;
  Forward pass;
  for (pass.pass = 0; pass.pass < 11; ++pass.pass) {
    layer->source()->reshapes(pass.pass);
    pass.top.clear();
    for (const Shape& shape : layer->infer({}).tops) pass.top.emplace_back(context, shape);
    layer->forward(context, pass);
    for (const Tensor& top : pass.top) all.push_back(to_floats(context, top));
  }
  return all;
}

TEST(ImageCache, ChangesNoBatch) {
  NEEDS_IMAGES();
  const Pictures pictures;
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.layer);
    const std::vector<std::vector<float>> expected = batches(pictures, row, "", silent_log());
    for (const char* cache : {"cache: RAM", "cache: true", "cache: DISK",
                              "cache: RAM cache_limit: 1", "cache: DISK cache_limit: 1"}) {
      for (const int threads : {1, 2, 8}) {
        if (threads > 1 && !row.with_threads) continue;
        const std::string fields =
            cat(" ", cache, row.with_threads ? cat(" threads: ", threads) : "", " ");
        SCOPED_TRACE(fields);
        Lines log;
        EXPECT_EQ(batches(pictures, row, fields, log), expected);
        int said = 0;
        for (const std::string& line : log.infos) {
          if (!starts_with(line, "The cache ")) continue;
          ++said;
          expect_part(line, fields.find("limit") == std::string::npos || row.small
                                ? "The cache has "
                                : "The cache is full: it has ");
        }
        EXPECT_EQ(said, 1);
      }
    }
  }
}

#endif

TEST(ImageCache, IsNotForRawRecords) {
  Lines log;
  Context context(Device::cpu);
  context.set_log(log);
  LayerParameter message;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "name: \"d\" type: \"Data\" top: \"data\" "
      "data_param { source: \"lmdb_raw\" backend: LMDB batch_size: 8 cache: RAM }",
      &message));
  const std::unique_ptr<Layer> layer = make_layer(message, true, formats());
  layer->source()->open(context);
  layer->setup(context, {});
  EXPECT_TRUE(
      log.has(cat("The records of ", formats(), "/lmdb_raw are not encoded: they need no cache.")));
}

}  // namespace image_cache_test
}  // namespace crema::tests
