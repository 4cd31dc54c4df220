// transform_param { augment } in the layers that read data: labels follow, and neither threads nor
// the start of a run change anything.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <set>

#include "data/databases/database_writer.h"
#include "data/databases/records.h"
#include "data/loader/loader.h"
#include "fixtures.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema::tests {
namespace augmented_sources_test {

const std::string kAll =
    "crop_size: 12 augment { resized_crop { probability: 0.5 } flip {} rotate {} shear {} "
    "perspective {} rand_augment {} color {} gray {} blur {} noise {} cutout {} ";

struct Files {
  Files() {
    const auto writer = create_lmdb(folder.file("db"));
    const Random random{5, 1};
    for (int i = 0; i < 11; ++i) {
      Datum datum;
      datum.set_channels(3);
      datum.set_height(16);
      datum.set_width(14);
      datum.set_label(i);
      for (int k = 0; k < 3 * 16 * 14; ++k)
        datum.mutable_data()->push_back(static_cast<char>(random.word(i * 1000 + k)));
      writer->put(numbered_key(i, 8), datum);
    }
    writer->finish();
  }

  std::unique_ptr<Layer> layer(const std::string& text, Context& context,
                               bool training = true) const {
    LayerParameter message;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "name: \"d\" top: \"data\" top: \"label\" " + text, &message))
        << text;
    std::unique_ptr<Layer> layer = make_layer(message, training, folder.path());
    if (DataSource* const source = layer->source()) source->open(context);
    layer->setup(context, {});
    return layer;
  }
  std::string problem(const std::string& text) const {
    return error_of([&] {
      Context context(Device::cpu);
      layer(text, context);
    });
  }

  Folder folder;
};

using Blobs = std::vector<std::vector<float>>;

Blobs batch_of(Layer& layer, Context& context, uint64_t number) {
  Forward pass;
  pass.pass = number;
  layer.source()->reshapes(number);
  for (const Shape& shape : layer.infer({}).tops) pass.top.emplace_back(context, shape);
  layer.forward(context, pass);
  Blobs blobs;
  for (const Tensor& top : pass.top) blobs.push_back(to_floats(context, top));
  return blobs;
}

std::string data_layer(const std::string& transform, int threads = 1) {
  return cat(
      "type: \"Data\" data_param { source: \"db\" backend: LMDB batch_size: 4 shuffle: true "
      "threads: ",
      threads, " } transform_param { ", transform, " }");
}

TEST(AugmentedSources, NeitherThreadsNorResumingChangeAnything) {
  const Files files;
  Context context(Device::cpu);
#ifdef CREMA_OPENCV
  const std::string all = kAll + "jpeg {} }";
#else
  const std::string all = kAll + "}";
#endif
  const auto one = files.layer(data_layer(all, 1), context);
  std::vector<Blobs> expected;
  for (uint64_t pass = 0; pass < 8; ++pass) expected.push_back(batch_of(*one, context, pass));
  for (const int threads : {2, 8}) {
    const auto several = files.layer(data_layer(all, threads), context);
    for (uint64_t pass = 0; pass < 8; ++pass)
      EXPECT_EQ(batch_of(*several, context, pass), expected[pass]) << threads << " " << pass;
    const auto resumed = files.layer(data_layer(all, threads), context);
    EXPECT_EQ(batch_of(*resumed, context, 5), expected[5]);
  }
  // Two epochs make different samples of one record.
  const auto in_order = files.layer(
      "type: \"Data\" data_param { source: \"db\" backend: LMDB batch_size: 11 } transform_param { "
      "augment { noise { probability: 1 least: 3 } } }",
      context);
  EXPECT_NE(batch_of(*in_order, context, 0)[0], batch_of(*in_order, context, 1)[0]);
}

TEST(AugmentedSources, TestsShowTheImagesAsTheyAre) {
  const Files files;
  Context context(Device::cpu);
  const auto plain = files.layer(data_layer("crop_size: 12"), context, false);
  const auto augmented = files.layer(data_layer(kAll + "}"), context, false);
  for (uint64_t pass = 0; pass < 3; ++pass)
    EXPECT_EQ(batch_of(*augmented, context, pass), batch_of(*plain, context, pass));
}

TEST(AugmentedSources, ChangingImagesTakesThreads) {
  const Files files;
  const auto decodes = [&](const std::string& text, bool training) {
    TransformationParameter fields;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &fields));
    return Records(open_lmdb(files.folder.file("db")),
                   Transform(fields, training, "", silent_log()))
        .decodes();
  };
  EXPECT_TRUE(decodes("augment { blur {} }", true));
  EXPECT_FALSE(decodes("augment { blur {} }", false));
  EXPECT_TRUE(decodes("augment { mixup {} classes: 11 }", true));
  EXPECT_FALSE(decodes("augment { mixup {} classes: 11 }", false));
  EXPECT_FALSE(decodes("", true));
}

TEST(AugmentedSources, BoxesOfAnnotatedDataFollow) {
  const Files files;
  // Black, with a white rectangle of 20 x 16 pixels in 64 x 48.
  AnnotatedDatum record;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "type: BBOX datum { channels: 1 height: 48 width: 64 } annotation_group { group_label: 4 "
      "annotation { bbox { xmin: 0.25 ymin: 0.25 xmax: 0.5625 ymax: 0.5833333 } } }",
      &record));
  for (int i = 0; i < 48 * 64; ++i) {
    const int x = i % 64, y = i / 64;
    const bool inside = x >= 16 && x < 36 && y >= 12 && y < 28;
    record.mutable_datum()->mutable_data()->push_back(inside ? '\xff' : '\0');
  }
  {
    const auto writer = create_lmdb(files.folder.file("boxes"));
    writer->put("a", record);
    writer->finish();
  }
  Context context(Device::cpu);
  const auto layer = files.layer(
      "type: \"AnnotatedData\" data_param { source: \"boxes\" backend: LMDB batch_size: 1 } "
      "transform_param { crop_size: 40 mirror: true augment { resized_crop { least_area: 0.5 } "
      "flip {} rotate {} shear {} perspective { most: 0.1 } } }",
      context);
  int found = 0;
  for (uint64_t pass = 0; pass < 60; ++pass) {
    const Blobs tops = batch_of(*layer, context, pass);
    int left = 40, top = 40, right = 0, bottom = 0;
    for (int i = 0; i < 1600; ++i) {
      if (tops[0][i] < 128) continue;
      left = std::min(left, i % 40);
      right = std::max(right, i % 40 + 1);
      top = std::min(top, i / 40);
      bottom = std::max(bottom, i / 40 + 1);
    }
    const bool inside = left > 0 && top > 0 && right < 40 && bottom < 40;
    if (!inside) continue;
    ++found;
    const int sides[] = {left, top, right, bottom};
    ASSERT_EQ(tops[1][1], 4);
    for (int i = 0; i < 4; ++i) EXPECT_NEAR(tops[1][3 + i] * 40, sides[i], 1.5) << pass;
  }
  EXPECT_GT(found, 20);
}

TEST(AugmentedSources, LabelImagesFollow) {
  NEEDS_IMAGES();
  const Files files;
  Image image{1, 20, 30, {}}, labels = image;
  for (int i = 0; i < 600; ++i) {
    image.pixels.push_back(i % 30 < 15 ? 200 : 100);
    labels.pixels.push_back(i % 30 < 15 ? 2 : 1);
  }
  files.folder.write("a.png", encode_image(image, "png"));
  files.folder.write("a_label.png", encode_image(labels, "png"));
  files.folder.write("list.txt", "a.png a_label.png\n");
  Context context(Device::cpu);
  const std::string changes =
      "augment { flip { vertical: 0.5 } rotate { probability: 1 least: 5 } shear {} perspective {} "
      "} crop_size: 18 mirror: true ";
  const std::pair<std::string, std::string> layers[] = {
      {"ImageSegData", "image_data_param { source: \"list.txt\" is_color: false }"},
      {"DenseImageData", "dense_image_data_param { source: \"list.txt\" is_color: false }"},
      {"ImageLabelmapData", "image_data_param { source: \"list.txt\" is_color: false }"},
      {"SegData", "seg_data_param { source: \"list.txt\" }"}};
  for (const auto& [type, parameter] : layers) {
    const auto layer = files.layer(
        cat("type: \"", type, "\" transform_param { ", changes, " } ", parameter), context);
    bool two = false, empty = false;
    for (uint64_t pass = 0; pass < 20; ++pass) {
      const Blobs tops = batch_of(*layer, context, pass);
      int unlike = 0;
      for (int i = 0; i < 18 * 18; ++i) {
        const float pixel = tops[0][i], label = tops[1][i];
        // Edge maps have no separate label for the outside.
        const float as_label = type == "ImageLabelmapData" ? 0
                               : pixel > 150               ? 2
                               : pixel > 50                ? 1
                                                           : 255;
        unlike += as_label != label;
        two |= label == 2;
        empty |= label == 255;
      }
      EXPECT_LT(unlike, 8) << type << pass;
    }
    EXPECT_EQ(two && empty, type != "ImageLabelmapData") << type;
  }
}

TEST(AugmentedSources, WindowsChangeInPlace) {
  NEEDS_IMAGES();
  const Files files;
  files.folder.write("a.png", encode_image({1, 9, 10, std::vector<uint8_t>(90, 100)}, "png"));
  files.folder.write("windows.txt", "# 0\na.png\n1\n9\n10\n1\n5 0.9 0 0 7 7\n");
  const auto windows = [&](const std::string& changes) {
    return cat(
        "type: \"WindowData\" window_data_param { source: \"windows.txt\" batch_size: 1 "
        "fg_fraction: 1 } transform_param { crop_size: 8 augment { ",
        changes, " } }");
  };
  Context context(Device::cpu);
  const auto layer = files.layer(windows("cutout { probability: 1 size: 0.5 }"), context);
  const std::vector<float> data = batch_of(*layer, context, 0)[0];
  EXPECT_GE(std::count(data.begin(), data.end(), 0.f), 4);
  EXPECT_GE(std::count(data.begin(), data.end(), 100.f), 48);
  expect_part(files.problem(windows("flip {}")), "what a window shows is listed");
}

TEST(AugmentedSources, RefuseWhatLabelsCannotFollow) {
  NEEDS_IMAGES();
  const Files files;
  files.folder.write("a.png", encode_image({3, 8, 8, std::vector<uint8_t>(192, 9)}, "png"));
  files.folder.write("boxes.txt", "a.png a.txt\n");
  files.folder.write("a.txt", "1 1 4 4 2\n");
  files.folder.write("numbers.txt", "a.png 0.5 3\n");
  const auto boxes = [](const std::string& changes) {
    return cat("type: \"BboxData\" bbox_data_param { source: \"boxes.txt\" } transform_param { ",
               changes, " }");
  };
  const auto numbers = [](const std::string& changes) {
    return cat(
        "type: \"ImageFloatData\" image_data_param { source: \"numbers.txt\" } "
        "image_float_data_param { label_dim: 2 } transform_param { ",
        changes, " }");
  };
  for (const auto& layer : {boxes("augment { rotate {} }"), numbers("augment { rotate {} }")})
    expect_part(files.problem(layer), "do not follow");
  Context context(Device::cpu);
  for (const auto& layer : {boxes("augment { blur {} }"), numbers("augment { blur {} }")})
    EXPECT_EQ(batch_of(*files.layer(layer, context), context, 0)[0].size(), 192u);
  expect_part(files.problem("type: \"ImageGtData\" image_gt_data_param { source: \"numbers.txt\" "
                            "batch_size: 1 downsample_rate: 8 } transform_param { augment {} }"),
              "takes no augment");
  expect_part(files.problem("type: \"DetectNetTransformation\" transform_param { augment {} }"),
              "detectnet_augmentation_param says how images");
  expect_part(files.problem(boxes("augment { rand_augment {} }")), "do not follow");
  expect_part(files.problem(data_layer("augment { resized_crop {} }")), "there is no crop_size");
}

TEST(AugmentedSources, FramesOfAClipChangeAlike) {
  NEEDS_IMAGES();
  const Files files;
  Image frame{3, 14, 14, {}};
  for (uint64_t i = 0; i < 588; ++i)
    frame.pixels.push_back(static_cast<uint8_t>(Random{1, 2}.word(i)));
  for (const char* name : {"clip/000001.jpg", "clip/000002.jpg"})
    files.folder.write(name, encode_image(frame, "png"));
  files.folder.write("list.txt", "clip 1 3\n");
  const auto clips = [](const std::string& fields, const std::string& transform) {
    return cat("type: \"VideoData\" video_data_param { source: \"list.txt\" batch_size: 1 ", fields,
               " } transform_param { ", transform, " }");
  };
  Context context(Device::cpu);
  const auto layer = files.layer(clips("use_image: true new_length: 2", kAll + "}"), context);
  std::set<float> seen;
  for (uint64_t pass = 0; pass < 10; ++pass) {
    const std::vector<float> data = batch_of(*layer, context, pass)[0];
    ASSERT_EQ(data.size(), 3u * 2 * 144);
    for (int c = 0; c < 3; ++c) {
      const auto first = data.begin() + static_cast<std::ptrdiff_t>(c) * 288;
      EXPECT_TRUE(std::equal(first, first + 144, first + 144)) << pass;
    }
    seen.insert(data[77]);
  }
  EXPECT_GT(seen.size(), 5u);
  expect_part(files.problem(clips("new_length: 2 modality: FLOW", "augment { flip {} }")),
              "optical flow");
}

TEST(AugmentedSources, CompressAsJpeg) {
  NEEDS_IMAGES();
  const Files files;
  Context context(Device::cpu);
  const auto differences = [&](int quality) {
    const Blobs plain = batch_of(*files.layer(data_layer(""), context), context, 0),
                changed = batch_of(
                    *files.layer(data_layer(cat("augment { jpeg { probability: 1 least: ", quality,
                                                " most: ", quality, " } }")),
                                 context),
                    context, 0);
    double sum = 0;
    for (size_t i = 0; i < plain[0].size(); ++i) sum += std::abs(plain[0][i] - changed[0][i]);
    return sum;
  };
  EXPECT_GT(differences(20), differences(90));
  EXPECT_GT(differences(90), 0);
}

}  // namespace augmented_sources_test
}  // namespace crema::tests
