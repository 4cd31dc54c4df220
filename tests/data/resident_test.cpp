// A database in a GPU's memory gives the batches that the loader gives.
#include "data/databases/resident.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "data/databases/database_writer.h"
#include "support.h"

namespace crema::tests {
namespace resident_test {

struct Case {
  const char* name;
  const char* transform;
  bool training, shuffle;
  int64_t skip;
  bool whole_epochs = false;
};

const Case kCases[] = {
    {"plain", "", true, false, 0},
    {"scaled", "scale: 0.25 mean_value: 7", true, false, 3},
    {"cropped", "crop_size: 4 mirror: true mean_value: 1 mean_value: 2 mean_value: 3", true, true,
     0},
    {"in_the_middle", "crop_size: 3 mirror: true", false, false, 0},
    {"shuffled", "mirror: true", true, true, 11},
    {"padded", "pad: 2 mean_value: 7", true, false, 0},
    {"padded_cropped", "pad: 2 crop_size: 5 mirror: true mean_value: 7", true, true, 5},
    {"reflected", "pad: 3 pad_mode: REFLECT crop_size: 6 mirror: true mirror_alternates: true",
     true, true, 0},
    {"gray", "gray: RGB", true, false, 0},
    {"gray_scaled", "gray: BGR mean_value: 127.5 scale: 0.00392157", true, true, 5},
    {"whole_epochs", "crop_size: 4 mean_value: 7", false, false, 0, true},
    {"shuffled_epochs", "mirror: true", false, true, 0, true},
    {"gray_cropped",
     "gray: BGR crop_size: 4 mirror: true mean_value: 1 mean_value: 2 mean_value: 3", true, true,
     0},
};

class Resident : public testing::TestWithParam<Case> {};

TEST_P(Resident, BatchesAreTheLoaders) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  const Case& c = GetParam();
  Folder folder;
  const std::string path = folder.file("db");
  {
    const auto writer = create_lmdb(path);
    const Random random{5, 1};
    for (int i = 0; i < 23; ++i) {
      Datum datum;
      datum.set_channels(3);
      datum.set_height(6);
      datum.set_width(5);
      datum.set_label(i % 10);
      for (int k = 0; k < 90; ++k)
        datum.mutable_data()->push_back(static_cast<char>(random.word(i * 90 + k)));
      writer->put(numbered_key(i, 8), datum);
    }
    writer->finish();
  }
  const std::shared_ptr<const Source> source = open_lmdb(path);
  TransformationParameter fields;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(c.transform, &fields));
  LoaderOptions options;
  options.batch_size = 7;
  options.shuffle = c.shuffle;
  options.skip = c.skip;
  options.whole_epochs = c.whole_epochs;
  options.random = {3, 4};
  Lines log;
  const auto records = std::make_shared<Records>(source, Transform(fields, c.training, "", log));
  Loader loader(records, options);
  Context context(Device::gpu);
  const auto resident = ResidentData::load(context, *records, options, 1 << 20);
  ASSERT_TRUE(resident);
  EXPECT_FALSE(ResidentData::load(context, *records, options, 100));
  TransformationParameter augmented = fields;
  augmented.mutable_augment()->mutable_flip();
  const Records changing(source, Transform(augmented, true, "", log));
  EXPECT_FALSE(ResidentData::load(context, changing, options, 1 << 20));
  const Shape& sample = loader.sample_shape();
  for (uint64_t pass = 0; pass < 9; ++pass) {
    const Batch& want = loader.batch(static_cast<int64_t>(pass));
    const Shape shape{want.samples, sample[0], sample[1], sample[2]};
    const Tensor data(context, shape), labels(context, Shape{want.samples}),
        padded(context, shape, DType::f32, {Order::channels_last, nullptr, 8}),
        half(context, shape, DType::bf16, Format::channels_last());
    resident->batch(context, pass, nullptr, data, labels);
    EXPECT_EQ(to_floats(context, data), want.data) << "pass " << pass;
    EXPECT_EQ(to_floats(context, labels), want.labels) << "pass " << pass;
    resident->batch(context, pass, nullptr, padded, Tensor());
    EXPECT_EQ(to_floats(context, padded), want.data) << "pass " << pass;
    resident->batch(context, pass, nullptr, half, Tensor());
    std::vector<float> rounded = want.data;
    for (float& value : rounded) value = static_cast<float>(BFloat16(value));
    EXPECT_EQ(to_floats(context, half), rounded) << "pass " << pass;
    EXPECT_EQ(resident->epoch(pass), want.epoch) << "pass " << pass;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Resident, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace resident_test
}  // namespace crema::tests
