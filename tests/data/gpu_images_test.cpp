// JPEGs decoded by the GPU give the batches that the loader gives, up to a few units.
#include "data/databases/gpu_images.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "data/databases/database_writer.h"
#include "jpegs.h"
#include "layers/layer.h"
#include "pictures.h"
#include "proto/layer.pb.h"
#include "support.h"

namespace crema::tests {
namespace gpu_images_test {
#ifdef CREMA_JPEG

using Files = std::vector<std::string>;

// `count` records with these files in rotation; their labels are their numbers.
void write_files(const std::string& path, const Files& files, int count) {
  const auto writer = create_lmdb(path);
  for (int i = 0; i < count; ++i) {
    Datum datum;
    datum.set_encoded(true);
    datum.set_data(files[static_cast<size_t>(i) % files.size()]);
    datum.set_label(i);
    writer->put(numbered_key(i, 8), datum);
  }
  writer->finish();
}

// `across`, `down`: pixels that share a colour.
std::string picture(int64_t height, int64_t width, int across, int down, bool progressive = false,
                    unsigned restart = 0) {
  return jpeg_of_kind(circles(3, height, width), {"", across, down, progressive, restart});
}
std::string sampled_420_jpeg() { return picture(33, 40, 2, 2); }
std::string sampled_444_jpeg() { return picture(40, 35, 1, 1); }
std::string sampled_422_jpeg() { return picture(34, 37, 2, 1); }
std::string progressive_jpeg() { return picture(36, 36, 2, 2, true); }
std::string gray_jpeg() { return jpeg_of_kind(circles(1, 33, 38), {""}); }

struct Case {
  const char* name;
  const char* transform;
  bool training, shuffle;
  Files files;
};

const Files kColors = {sampled_420_jpeg(), sampled_444_jpeg(), sampled_422_jpeg(),
                       progressive_jpeg(), with_exif(sampled_420_jpeg(), 6)};

const Case kCases[] = {
    {"sampled_420", "", true, false, {sampled_420_jpeg()}},
    {"sampled_444", "mirror: true", true, false, {sampled_444_jpeg()}},
    {"sampled_422", "scale: 0.5 mean_value: 100", true, true, {sampled_422_jpeg()}},
    {"sampled_440", "", true, false, {picture(31, 42, 1, 2)}},
    {"restarts", "", true, false, {picture(40, 50, 2, 2, false, 2)}},
    {"gray", "pad: 3 mirror: true", true, true, {gray_jpeg()}},
    {"sizes",
     "crop_size: 29 mirror: true mean_value: 1 mean_value: 2 mean_value: 3",
     true,
     true,
     {kColors.begin(), kColors.begin() + 4}},
    {"in_the_middle", "crop_size: 32", false, false, {kColors.begin(), kColors.begin() + 4}},
    {"as_color",
     "crop_size: 30 force_color: true",
     true,
     false,
     {gray_jpeg(), sampled_444_jpeg(), kColors[4]}},
    {"as_gray", "crop_size: 30 force_gray: true", true, true, kColors},
    {"gray_of_colors",
     "crop_size: 30 gray: BGR mean_value: 90",
     true,
     false,
     {sampled_444_jpeg(), progressive_jpeg()}},
    {"red_first",
     "crop_size: 28 color_order: RGB mirror: true",
     true,
     false,
     {kColors.begin(), kColors.begin() + 4}},
};

class DecodedByGpu : public testing::TestWithParam<Case> {};

// Decoders differ in how they round, and in how they spread colours between their samples.
void expect_near(const std::vector<float>& found, const std::vector<float>& wanted, float unit) {
  ASSERT_EQ(found.size(), wanted.size());
  double sum = 0, largest = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const double difference = std::abs(found[i] - wanted[i]);
    sum += difference;
    largest = std::max(largest, difference);
  }
  EXPECT_LT(sum / static_cast<double>(found.size()), 1.5 * unit);
  EXPECT_LT(largest, 24 * unit);
}

TEST_P(DecodedByGpu, BatchesAreNearlyTheLoaders) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  const Case& c = GetParam();
  const Folder folder;
  write_files(folder.file("db"), c.files, 23);
  TransformationParameter fields;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(c.transform, &fields));
  LoaderOptions options;
  options.batch_size = 7;
  options.shuffle = c.shuffle;
  options.skip = 2;
  options.workers = 3;
  options.random = {3, 4};
  Lines log;
  Context context(Device::gpu);
  context.set_log(log);
  const auto records = std::make_shared<Records>(open_lmdb(folder.file("db")),
                                                 Transform(fields, c.training, "", log));
  Loader loader(records, options);
  const auto images = GpuImages::decode_there(context, records, options);
  if (!images) GTEST_SKIP() << log.warnings.at(0);
  EXPECT_GT(images->bytes(), 0u);
  const Shape& sample = loader.sample_shape();
  const Shape shape{7, sample[0], sample[1], sample[2]};
  const Tensor data(context, shape), labels(context, Shape{7}),
      padded(context, shape, DType::f32, {Order::channels_last, nullptr, 8});
  for (const uint64_t pass : {0, 1, 2, 3, 4, 2, 3, 9, 10}) {
    SCOPED_TRACE(pass);
    const Batch& want = loader.batch(static_cast<int64_t>(pass));
    EXPECT_EQ(images->batch(context, pass, data, labels), want.epoch);
    EXPECT_EQ(to_floats(context, labels), want.labels);
    const std::vector<float> found = to_floats(context, data);
    expect_near(found, want.data, fields.scale());
    // The same batch once more, in another order.
    images->batch(context, pass, padded, Tensor());
    EXPECT_EQ(to_floats(context, padded), found);
  }
  EXPECT_EQ(log.warnings, std::vector<std::string>());
}

INSTANTIATE_TEST_SUITE_P(All, DecodedByGpu, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

// Decoded on the CPU, or never encoded: the values are the loader's.
struct Bytes {
  const char* name;
  const char* transform;
  bool training;
  Files files;  // none: raw records of one size
};

const Bytes kBytes[] = {
    {"raw", "mirror: true scale: 0.5 mean_value: 100", true, {}},
    {"raw_cropped",
     "crop_size: 21 mirror: true mean_value: 1 mean_value: 2 mean_value: 3",
     true,
     {}},
    {"raw_padded", "pad: 4 crop_size: 26 pad_mode: REFLECT", true, {}},
    {"raw_gray", "gray: RGB crop_size: 20", false, {}},
    {"raw_changed", "augment { flip { } rotate { } color { } } crop_size: 20", true, {}},
    {"jpeg_parts",
     "crop_size: 17 mirror: true mean_value: 9",
     true,
     {kColors.begin(), kColors.begin() + 4}},
    {"jpeg_padded",
     "pad: 3 crop_size: 37 mirror: true",
     true,
     {kColors.begin(), kColors.begin() + 4}},
    {"jpeg_reflected",
     "pad: 3 pad_mode: REFLECT crop_size: 37",
     true,
     {kColors.begin(), kColors.begin() + 4}},
    {"jpeg_changed", "augment { resized_crop { } flip { } } crop_size: 24", true, kColors},
    {"jpeg_gray", "force_gray: true crop_size: 16", false, kColors},
};

class BroughtToGpu : public testing::TestWithParam<Bytes> {};

TEST_P(BroughtToGpu, BatchesAreTheLoaders) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  const Bytes& c = GetParam();
  const Folder folder;
  if (!c.files.empty()) {
    write_files(folder.file("db"), c.files, 23);
  } else {
    const auto writer = create_lmdb(folder.file("db"));
    for (int i = 0; i < 23; ++i) {
      Datum datum;
      datum.set_channels(3);
      datum.set_height(24);
      datum.set_width(27);
      for (int k = 0; k < 3 * 24 * 27; ++k)
        datum.mutable_data()->push_back(static_cast<char>(31 * i + 7 * k + k / 27));
      datum.set_label(i);
      writer->put(numbered_key(i, 8), datum);
    }
    writer->finish();
  }
  TransformationParameter fields;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(c.transform, &fields));
  LoaderOptions options;
  options.batch_size = 7;
  options.shuffle = true;
  options.workers = 3;
  options.random = {3, 4};
  Lines log;
  Context context(Device::gpu);
  const auto records = std::make_shared<Records>(open_lmdb(folder.file("db")),
                                                 Transform(fields, c.training, "", log));
  Loader loader(records, options);
  const auto images = GpuImages::of_bytes(context, records, options);
  ASSERT_TRUE(images);
  const Shape& sample = loader.sample_shape();
  const Shape shape{7, sample[0], sample[1], sample[2]};
  const Tensor data(context, shape), labels(context, Shape{7});
  for (const uint64_t pass : {0, 1, 2, 3, 4, 2, 3, 9, 10}) {
    SCOPED_TRACE(pass);
    const Batch& want = loader.batch(static_cast<int64_t>(pass));
    EXPECT_EQ(images->batch(context, pass, data, labels), want.epoch);
    EXPECT_EQ(to_floats(context, labels), want.labels);
    EXPECT_EQ(to_floats(context, data), want.data);
  }
}

INSTANTIATE_TEST_SUITE_P(All, BroughtToGpu, testing::ValuesIn(kBytes),
                         [](const auto& info) { return info.param.name; });

std::unique_ptr<Layer> data_layer(Context& context, const std::string& text) {
  LayerParameter message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "name: \"d\" top: \"data\" top: \"label\" " + text, &message));
  std::unique_ptr<Layer> layer = make_layer(message, true, "");
  layer->source()->open(context);
  layer->setup(context, {});
  return layer;
}

std::vector<float> batch_of(Layer& layer, Context& context, uint64_t number) {
  Forward pass;
  pass.pass = number;
  layer.source()->reshapes(number);
  for (const Shape& shape : layer.infer({}).tops) pass.top.emplace_back(context, shape);
  layer.forward(context, pass);
  return to_floats(context, pass.top[0]);
}

std::string source_of(const Folder& folder, const std::string& more = "") {
  return "type: \"Data\" data_param { source: \"" + folder.file("db") +
         "\" backend: LMDB batch_size: 5 " + more + "} ";
}

TEST(DecoderGpu, IsOnlyAWishOnACpu) {
  const Folder folder;
  write_files(folder.file("db"), {sampled_420_jpeg()}, 9);
  Lines log;
  Context context(Device::cpu);
  context.set_log(log);
  const auto wishing = data_layer(
      context, source_of(folder) + "transform_param { decoder: GPU crop_size: 20 mirror: true }");
  EXPECT_EQ(log.warnings, std::vector<std::string>{
                              "decoder: GPU: images are decoded on the CPU: the net runs there"});
  const auto plain =
      data_layer(context, source_of(folder) + "transform_param { crop_size: 20 mirror: true }");
  EXPECT_EQ(log.warnings.size(), 1u);
  for (uint64_t number = 0; number < 4; ++number)
    EXPECT_EQ(batch_of(*wishing, context, number), batch_of(*plain, context, number));
}

TEST(DecoderGpu, IsALayersUntilItsMemoryIsNeeded) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  const Folder folder;
  write_files(folder.file("db"), kColors, 9);
  Lines log;
  Context context(Device::gpu);
  context.set_log(log);
  const auto layer = data_layer(
      context, source_of(folder) + "transform_param { decoder: GPU crop_size: 20 mirror: true }");
  if (layer->source()->resident_bytes() == 0) GTEST_SKIP() << log.warnings.at(0);
  EXPECT_TRUE(layer->traits().works_on_host && layer->traits().makes_any_format);
  const std::vector<float> found = batch_of(*layer, context, 3);
  layer->source()->release_resident();
  EXPECT_EQ(layer->source()->resident_bytes(), 0u);
  EXPECT_FALSE(layer->traits().makes_any_format);
  expect_near(found, batch_of(*layer, context, 3), 1);
}

TEST(DecoderGpu, IsRefusedWithWhatOnlyTheCpuComputes) {
  const Folder folder;
  write_files(folder.file("db"), {sampled_420_jpeg()}, 2);
  struct Row {
    const char *transform, *data, *message;
  };
  const Row rows[] = {
      {"augment { flip { } }", "", "decoder: GPU, but also augment"},
#ifdef CREMA_OPENCV
      {"resize_param { height: 9 width: 9 }", "", "decoder: GPU, but also changes images"},
      {"distort_param { brightness_prob: 1 }", "", "decoder: GPU, but also changes images"},
#endif
      {"", "cache: RAM ", "decoder: GPU, but data_param has cache"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.message);
    Context context(Device::cpu);
    expect_part(error_of([&] {
                  data_layer(context, source_of(folder, row.data) +
                                          "transform_param { decoder: GPU " + row.transform + "}");
                }),
                row.message);
  }
  Context context(Device::cpu);
  folder.write("list.txt", "a.jpg 1\n");
  folder.write("a.jpg", sampled_420_jpeg());
  expect_part(error_of([&] {
                data_layer(context, "type: \"ImageData\" image_data_param { source: \"" +
                                        folder.file("list.txt") + "\" root_folder: \"" +
                                        folder.path() +
                                        "/\" batch_size: 1 } transform_param { decoder: GPU }");
              }),
              "only for Data layers");
}

#endif
}  // namespace gpu_images_test
}  // namespace crema::tests
