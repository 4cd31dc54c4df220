// AnnotatedData: boxes follow the changes of the images.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <set>

#include "data/databases/database_writer.h"
#include "data/images/image.h"
#include "data/transforms/augment.h"
#include "fixtures.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema::tests {
namespace annotated_data_test {

template <typename Message>
Message parsed(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

// An image of one channel, raw, whose pixels are 10 y + x + base, with boxes.
AnnotatedDatum annotated(int height, int width, int base, const std::string& boxes) {
  auto record = parsed<AnnotatedDatum>(boxes);
  Datum& datum = *record.mutable_datum();
  datum.set_channels(1);
  datum.set_height(height);
  datum.set_width(width);
  datum.set_label(3);
  for (int i = 0; i < height * width; ++i)
    datum.mutable_data()->push_back(static_cast<char>(base + 10 * (i / width) + i % width));
  return record;
}

std::string box(float xmin, float ymin, float xmax, float ymax, int instance = 0,
                bool difficult = false) {
  return cat("annotation { instance_id: ", instance, " bbox { xmin: ", xmin, " ymin: ", ymin,
             " xmax: ", xmax, " ymax: ", ymax, " difficult: ", difficult ? "true" : "false",
             " } } ");
}

struct Database {
  explicit Database(const std::vector<AnnotatedDatum>& records) {
    const auto writer = create_database(folder.file("db"), DataParameter::LMDB);
    for (size_t i = 0; i < records.size(); ++i)
      writer->put(numbered_key(static_cast<int64_t>(i), 8), records[i]);
    writer->finish();
  }
  std::unique_ptr<Layer> layer(const std::string& fields, Context& context, bool training = true,
                               int batch = 1) const {
    auto message = parsed<LayerParameter>(
        cat("name: \"d\" type: \"AnnotatedData\" top: \"data\" top: \"label\" data_param { source: "
            "\"db\" backend: LMDB batch_size: ",
            batch, " } ", fields));
    std::unique_ptr<Layer> layer = make_layer(message, training, folder.path());
    layer->source()->open(context);
    layer->setup(context, {});
    return layer;
  }
  Folder folder;
};

struct Tops {
  std::vector<float> data, label;
  Shape shape, label_shape;
};

Tops batch_of(Layer& layer, Context& context, uint64_t number) {
  Forward pass;
  pass.pass = number;
  layer.source()->reshapes(number);
  for (const Shape& shape : layer.infer({}).tops) pass.top.emplace_back(context, shape);
  layer.forward(context, pass);
  return {to_floats(context, pass.top[0]), to_floats(context, pass.top[1]), pass.top[0].shape(),
          pass.top[1].shape()};
}

// Rows of the label that are objects.
std::vector<std::vector<float>> rows(const Tops& tops) {
  std::vector<std::vector<float>> found;
  for (size_t i = 0; i < tops.label.size(); i += 8) {
    if (tops.label[i] >= 0) found.push_back({&tops.label[i], &tops.label[i] + 8});
  }
  return found;
}

const std::string kTwo = cat("type: BBOX annotation_group { group_label: 4 ",
                             box(0.25, 0, 0.5, 0.5), box(0.5, 0.5, 1, 1, 1, true),
                             "} annotation_group { group_label: 2 ", box(0, 0, 1, 0.25), "}");

TEST(AnnotatedData, GivesARowAnObject) {
  const Database database(
      {annotated(4, 8, 0, kTwo), annotated(4, 8, 100, "type: BBOX"),
       annotated(4, 8, 50,
                 cat("type: BBOX annotation_group { group_label: 1 ", box(0, 0, 0.5, 1), "}"))});
  Context context(Device::cpu);
  const auto layer = database.layer("transform_param { mean_value: 1 scale: 2 }", context, true, 3);
  const Tops first = batch_of(*layer, context, 0);
  EXPECT_EQ(first.shape, (Shape{3, 1, 4, 8}));
  EXPECT_EQ(first.data[32 + 9], (100 + 11 - 1) * 2);
  EXPECT_EQ(first.label_shape, (Shape{1, 1, 8, 8}));
  EXPECT_EQ(rows(first), (std::vector<std::vector<float>>{{0, 4, 0, 0.25, 0, 0.5, 0.5, 0},
                                                          {0, 4, 1, 0.5, 0.5, 1, 1, 1},
                                                          {0, 2, 0, 0, 0, 1, 0.25, 0},
                                                          {2, 1, 0, 0, 0, 0.5, 1, 0}}));
  EXPECT_FALSE(layer->source()->reshapes(1));
  EXPECT_EQ(rows(batch_of(*layer, context, 5)), rows(first));
  // Without a top for them, labels change no shape.
  const auto message = parsed<LayerParameter>(
      "type: \"AnnotatedData\" top: \"data\" data_param { source: \"db\" backend: LMDB batch_size: "
      "3 }");
  const auto images = make_layer(message, true, database.folder.path());
  images->source()->open(context);
  images->setup(context, {});
  EXPECT_FALSE(images->source()->reshapes(0));
  // A batch without objects has a row of -1.
  const auto single = database.layer("", context, true, 1);
  EXPECT_EQ(batch_of(*single, context, 1).label, std::vector<float>(8, -1));
}

TEST(AnnotatedData, GivesClassesWhereThereAreNoBoxes) {
  const Database database({annotated(4, 8, 0, ""), annotated(4, 8, 100, "")});
  Context context(Device::cpu);
  const Tops tops = batch_of(*database.layer("", context, true, 2), context, 0);
  EXPECT_EQ(tops.label_shape, (Shape{2}));
  EXPECT_EQ(tops.label, (std::vector<float>{3, 3}));
}

TEST(AnnotatedData, MirrorsBoxesWithTheImage) {
  const Database database({annotated(4, 8, 0, kTwo)});
  Context context(Device::cpu);
  const auto layer = database.layer("transform_param { mirror: true }", context);
  std::set<bool> seen;
  for (uint64_t pass = 0; pass < 20; ++pass) {
    const Tops tops = batch_of(*layer, context, pass);
    const bool mirrored = tops.data[0] == 7;
    seen.insert(mirrored);
    EXPECT_EQ(rows(tops)[0], mirrored ? (std::vector<float>{0, 4, 0, 0.5, 0, 0.75, 0.5, 0})
                                      : (std::vector<float>{0, 4, 0, 0.25, 0, 0.5, 0.5, 0}));
  }
  EXPECT_EQ(seen.size(), 2u);
}

TEST(AnnotatedData, DrawsARegionThatFulfilsTheConstraint) {
  NEEDS_IMAGES();
  // One object in the middle of 10 x 10 pixels.
  const Database database({annotated(
      10, 10, 0,
      cat("type: BBOX annotation_group { group_label: 4 ", box(0.4, 0.4, 0.6, 0.6), "}"))});
  Context context(Device::cpu);
  const auto layer = database.layer(
      "annotated_data_param { batch_sampler { max_sample: 1 max_trials: 200 sampler { min_scale: "
      "0.3 max_scale: 0.9 min_aspect_ratio: 0.5 max_aspect_ratio: 2 } sample_constraint { "
      "min_object_coverage: 1 } } } transform_param { resize_param { height: 20 width: 20 "
      "interp_mode: NEAREST } emit_constraint { emit_type: CENTER } }",
      context);
  std::set<std::vector<float>> seen;
  for (uint64_t pass = 0; pass < 20; ++pass) {
    const Tops tops = batch_of(*layer, context, pass);
    ASSERT_EQ(tops.shape, (Shape{1, 1, 20, 20}));
    ASSERT_EQ(rows(tops).size(), 1u);
    const std::vector<float> row = rows(tops)[0];
    seen.insert(row);
    // The middle of the box shows the middle of the image: 10 y + x of pixel (4.5 +- 1.5).
    const auto middle = [](float a, float b) { return static_cast<int>((a + b) / 2 * 20); };
    const int value =
        static_cast<int>(tops.data[middle(row[4], row[6]) * 20 + middle(row[3], row[5])]);
    EXPECT_NEAR(value / 10, 4.5, 1.5);
    EXPECT_NEAR(value % 10, 4.5, 1.5);
  }
  EXPECT_GT(seen.size(), 10u);
  const Tops again = batch_of(*layer, context, 3);
  const Tops resumed = batch_of(
      *database.layer(
          "annotated_data_param { batch_sampler { max_sample: 1 max_trials: 200 sampler { "
          "min_scale: 0.3 max_scale: 0.9 min_aspect_ratio: 0.5 max_aspect_ratio: 2 } "
          "sample_constraint { min_object_coverage: 1 } } } transform_param { resize_param { "
          "height: 20 width: 20 interp_mode: NEAREST } emit_constraint { emit_type: CENTER } }",
          context),
      context, 3);
  EXPECT_EQ(again.data, resumed.data);
  EXPECT_EQ(again.label, resumed.label);
}

TEST(AnnotatedData, PadsToTheSizeAndMovesTheBoxes) {
  NEEDS_IMAGES();
  const Database database({annotated(4, 8, 0, kTwo)});
  Context context(Device::cpu);
  const auto layer = database.layer(
      "transform_param { resize_param { height: 8 width: 8 resize_mode: FIT_LARGE_SIZE_AND_PAD "
      "pad_value: 77 } }",
      context);
  const Tops tops = batch_of(*layer, context, 0);
  EXPECT_EQ(tops.shape, (Shape{1, 1, 8, 8}));
  EXPECT_EQ(tops.data[0], 77);
  EXPECT_EQ(tops.data[2 * 8 + 3], 3);
  EXPECT_EQ(tops.data[6 * 8], 77);
  EXPECT_EQ(rows(tops)[0], (std::vector<float>{0, 4, 0, 0.25, 0.25, 0.5, 0.5, 0}));
  EXPECT_EQ(rows(tops)[1], (std::vector<float>{0, 4, 1, 0.5, 0.5, 1, 0.75, 1}));
}

TEST(AnnotatedData, PlacesTheImageOnALargerOne) {
  const Database database({annotated(4, 8, 0, kTwo)});
  Context context(Device::cpu);
  const auto layer = database.layer(
      "transform_param { mean_value: 200 expand_param { prob: 1 max_expand_ratio: 4 } }", context);
  for (uint64_t pass = 0; pass < 10; ++pass) {
    const Tops tops = batch_of(*layer, context, pass);
    const int64_t height = tops.shape[2], width = tops.shape[3];
    const std::vector<float> row = rows(tops)[0];
    EXPECT_NEAR((row[5] - row[3]) * static_cast<float>(width), 2, 1e-3);
    EXPECT_NEAR((row[6] - row[4]) * static_cast<float>(height), 2, 1e-3);
    // The upper left pixel of the box has the value 2; the area around it is the mean.
    const auto x = std::lround(row[3] * static_cast<float>(width)),
               y = std::lround(row[4] * static_cast<float>(height));
    EXPECT_EQ(tops.data[y * width + x], 2 - 200);
    if (height > 8) {
      EXPECT_TRUE(tops.data[0] == 0 || tops.data.back() == 0);
    }
  }
}

TEST(AnnotatedData, ImagesGrowWithinBounds) {
  const Database database({annotated(4, 8, 0, kTwo)});
  Context context(Device::cpu);
  for (const char* ratio : {"0.5", "65536", "1e30", "inf", "nan"}) {
    const std::string expand =
        cat("transform_param { expand_param { prob: 1 max_expand_ratio: ", ratio, " } }");
    expect_part(error_of([&] { database.layer(expand, context); }),
                "an image grows by a factor from 1 to 1000");
  }
}

TEST(Regions, OverlapsAndConstraints) {
  const Region unit, half{0, 0, 0.5, 1};
  EXPECT_FLOAT_EQ(overlap(unit, half), 0.5f);
  EXPECT_FLOAT_EQ(coverage(half, unit), 1);
  EXPECT_FLOAT_EQ(coverage(unit, half), 0.5f);
  EXPECT_EQ(overlap(half, {0.5, 0, 1, 1}), 0);
  const std::vector<Object> objects = {{{0.4f, 0, 0.8f, 1}, 1, 0, false},
                                       {{0.3f, 0, 0.6f, 0.5f}, 2, 0, true}};
  const std::vector<Object> all = crop_objects(objects, half, nullptr);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_FLOAT_EQ(all[0].box.xmin, 0.8f);
  EXPECT_FLOAT_EQ(all[0].box.xmax, 1);
  EXPECT_FLOAT_EQ(all[1].box.ymax, 0.5f);
  EXPECT_TRUE(all[1].difficult);
  const auto center = parsed<EmitConstraint>("emit_type: CENTER");
  EXPECT_EQ(crop_objects(objects, half, &center).at(0).label, 2);
  const auto maximum = parsed<EmitConstraint>("emit_type: MIN_OVERLAP emit_overlap: 0.3");
  EXPECT_EQ(crop_objects(objects, half, &maximum).size(), 1u);
  const auto minimum = parsed<EmitConstraint>("emit_type: MIN_OVERLAP emit_overlap: 0.2");
  EXPECT_EQ(crop_objects(objects, half, &minimum).size(), 2u);
}

TEST(Augmentation, DistortsColors) {
  NEEDS_IMAGES();
  const Image gray{3, 1, 2, {100, 100, 100, 10, 200, 30}};
  const auto distorted = [&](const std::string& text) {
    const Augmentation augmentation(
        parsed<TransformationParameter>("distort_param { " + text + " }"));
    Image image = gray;
    Rng rng({1, 2});
    augmentation.apply(image, rng);
    return image.pixels;
  };
  EXPECT_EQ(distorted(""), gray.pixels);
  EXPECT_EQ(distorted("contrast_prob: 1 contrast_lower: 0.5 contrast_upper: 0.5"),
            (std::vector<uint8_t>{50, 50, 50, 5, 100, 15}));
  EXPECT_EQ(distorted("saturation_prob: 1 saturation_lower: 0 saturation_upper: 0"),
            (std::vector<uint8_t>{100, 100, 100, 200, 200, 200}));
  const std::vector<uint8_t> bright = distorted("brightness_prob: 1 brightness_delta: 32");
  EXPECT_NE(bright, gray.pixels);
  EXPECT_EQ(bright[0] - 100, bright[4] - 200);
}

TEST(Augmentation, ResizesAndCropsAtRandom) {
  NEEDS_IMAGES();
  const auto sizes = [](const std::string& text) {
    const Augmentation augmentation(parsed<TransformationParameter>(text));
    std::set<std::pair<int64_t, int64_t>> seen;
    for (uint64_t i = 0; i < 200; ++i) {
      Image image{1, 20, 40, std::vector<uint8_t>(800)};
      Rng rng({1, i});
      augmentation.apply(image, rng);
      EXPECT_EQ(static_cast<int64_t>(image.pixels.size()), image.height * image.width);
      seen.insert({image.height, image.width});
    }
    return seen;
  };
  using Sizes = std::set<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(sizes("random_resize_param { min_size: 10 max_size: 12 }"),
            (Sizes{{10, 20}, {11, 22}, {12, 24}}));
  EXPECT_EQ(sizes("img_rand_resize_lower: 5 img_rand_resize_upper: 6"), (Sizes{{5, 10}, {6, 12}}));
  EXPECT_EQ(sizes("resize_param { height: 10 width: 10 resize_mode: FIT_SMALL_SIZE }"),
            (Sizes{{10, 20}}));
  EXPECT_EQ(sizes("random_aspect_ratio_param { min_area_ratio: 0.1 max_area_ratio: 0.5 "
                  "aspect_ratio_change: 1.5 resize_param { height: 7 width: 9 } }"),
            (Sizes{{7, 9}}));
  EXPECT_GT(
      sizes("random_aspect_ratio_param { min_area_ratio: 0.1 aspect_ratio_change: 1.5 }").size(),
      50u);
}

TEST(AnnotatedData, SaysWhatIsWrong) {
  const Database database({annotated(4, 8, 0, kTwo), annotated(5, 8, 0, kTwo)});
  Context context(Device::cpu);
  const auto setting = [&](const std::string& fields) {
    return error_of([&] { database.layer(fields, context); });
  };
  expect_part(setting("annotated_data_param { batch_sampler { sampler { min_scale: 0.5 max_scale: "
                      "0.3 } } }"),
              "draws scales from 0.5 to 0.3");
  expect_part(setting("annotated_data_param { batch_sampler { sampler { min_aspect_ratio: 0 } } }"),
              "draws aspect ratios from 0 to 1");
  expect_part(setting("transform_param { resize_param { height: 3 } }"),
              "resize_param needs a height and a width above 0, not 3 and 0");
  expect_part(setting("transform_param { random_resize_param { min_size: 3 max_size: 2 } }"),
              "from 3 to 2");
  const auto layer = database.layer("", context, true, 2);
  expect_part(error_of([&] { batch_of(*layer, context, 0); }),
              "record 1 (key \"00000001\"): its shape 1x5x8 is not 1x4x8");
  const Folder folder;
  {
    const auto writer = create_database(folder.file("db"), DataParameter::LMDB);
    Datum plain;
    plain.set_channels(1);
    plain.set_data("a");
    writer->put("a", plain);
    writer->finish();
  }
  const auto message = parsed<LayerParameter>(
      "type: \"AnnotatedData\" top: \"data\" data_param { source: \"db\" backend: LMDB batch_size: "
      "1 }");
  const auto plain = make_layer(message, true, folder.path());
  plain->source()->open(context);
  expect_part(error_of([&] { plain->setup(context, {}); }),
              "its records are of type Datum, which a layer of type Data reads; a layer of type "
              "AnnotatedData reads AnnotatedDatum");
}

}  // namespace annotated_data_test
}  // namespace crema::tests
