#include "data/loader/loader.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <set>

#include "data/databases/database_writer.h"
#include "data/databases/hdf5/hdf5_file.h"
#include "data/databases/records.h"
#include "data/loader/permutation.h"
#include "fixtures.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema::tests {
namespace loader_test {

// Record i is 1 x 4 x 4, full of i, with the label i.
class Numbers : public Source {
 public:
  explicit Numbers(int64_t count) : Source("numbers"), count_(count) {}
  int64_t size() const override { return count_; }
  std::string key(int64_t index) const override { return numbered_key(index, 8); }
  void read(int64_t index, google::protobuf::Message& record) const override {
    Datum& datum = static_cast<Datum&>(record);
    require(index != broken, "it is broken");
    // Threads overtake each other.
    if (index % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    datum.Clear();
    datum.set_channels(1);
    datum.set_height(index == odd ? 5 : 4);
    datum.set_width(4);
    datum.set_data(std::string(static_cast<size_t>(datum.height()) * 4, static_cast<char>(index)));
    datum.set_label(static_cast<int>(index));
  }
  int64_t broken = -1, odd = -1;

 private:
  int64_t count_;
};

std::shared_ptr<const Dataset> samples(std::shared_ptr<const Source> source,
                                       const std::string& transform = "") {
  TransformationParameter message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(transform, &message));
  return std::make_shared<Records>(std::move(source), Transform(message, true, "", silent_log()));
}

LoaderOptions options(int64_t batch, int workers = 1) {
  LoaderOptions made;
  made.batch_size = batch;
  made.workers = workers;
  made.random = {5, 9};
  return made;
}

std::vector<float> labels(Loader& loader, int64_t batch) { return loader.batch(batch).labels; }

TEST(Loader, WalksRoundInOrder) {
  Loader loader(samples(std::make_shared<Numbers>(5)), options(3));
  EXPECT_EQ(loader.sample_shape(), Shape({1, 4, 4}));
  EXPECT_EQ(labels(loader, 0), (std::vector<float>{0, 1, 2}));
  EXPECT_EQ(loader.batch(0).epoch, 0);
  EXPECT_EQ(labels(loader, 1), (std::vector<float>{3, 4, 0}));
  EXPECT_EQ(loader.batch(1).epoch, 1);
  EXPECT_EQ(labels(loader, 2), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(loader.batch(2).data[16], 2);
}

TEST(Loader, NumberOfThreadsAndJumpsChangeNothing) {
  LoaderOptions plain = options(10);
  plain.shuffle = true;
  const auto source = std::make_shared<Numbers>(37);
  const std::string text = "crop_size: 3 mirror: true scale: 0.5 mean_value: 3";
  Loader reference(samples(source, text), plain);
  std::vector<Batch> batches;
  for (int64_t i = 0; i < 30; ++i) batches.push_back(reference.batch(i));
  EXPECT_GT(reference.waited(), 0);
  for (const int workers : {1, 2, 5}) {
    for (const int prefetch : {0, 1, 8}) {
      LoaderOptions varied = plain;
      varied.workers = workers;
      varied.prefetch = prefetch;
      Loader loader(samples(source, text), varied);
      for (const int64_t number : {7, 8, 9, 9, 2, 3, 29, 28, 0, 1, 2, 3, 4, 5, 6, 7}) {
        const Batch& batch = loader.batch(number);
        EXPECT_EQ(batch.number, number);
        EXPECT_EQ(batch.data, batches[number].data);
        EXPECT_EQ(batch.labels, batches[number].labels);
        EXPECT_EQ(batch.epoch, batches[number].epoch);
      }
    }
  }
}

TEST(Loader, ShufflesEachEpochAnew) {
  LoaderOptions shuffled = options(25);
  shuffled.shuffle = true;
  Loader loader(samples(std::make_shared<Numbers>(25)), shuffled);
  std::vector<float> sorted(25);
  std::iota(sorted.begin(), sorted.end(), 0.f);
  std::vector<float> previous = sorted;
  for (int64_t epoch = 0; epoch < 4; ++epoch) {
    std::vector<float> order = labels(loader, epoch);
    EXPECT_NE(order, previous);
    previous = order;
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, sorted);
  }
}

TEST(Loader, RanksShareBatches) {
  std::vector<std::vector<float>> parts;
  for (const auto& [first, count] : {std::pair(0, 1), std::pair(1, 2)}) {
    LoaderOptions shared = options(count);
    shared.batch_of_ranks = 3;
    shared.first_in_batch = first;
    shared.skip = 1;
    Loader loader(samples(std::make_shared<Numbers>(5)), shared);
    for (int64_t batch = 0; batch < 2; ++batch) parts.push_back(labels(loader, batch));
  }
  EXPECT_EQ(parts, (std::vector<std::vector<float>>{{1}, {4}, {2, 3}, {0, 1}}));
}

TEST(Loader, ErrorsComeWithTheirBatch) {
  const auto source = std::make_shared<Numbers>(20);
  source->broken = 11;
  source->odd = 17;
  Loader loader(samples(source), options(5, 3));
  EXPECT_EQ(labels(loader, 1), (std::vector<float>{5, 6, 7, 8, 9}));
  const std::string broken = error_of([&] { loader.batch(2); });
  EXPECT_EQ(broken, "numbers, record 11 (key \"00000011\"): it is broken");
  const std::string odd = error_of([&] { loader.batch(3); });
  expect_part(
      odd,
      "numbers, record 17 (key \"00000017\"): its shape 1x5x4 is not 1x4x4, that of numbers, "
      "record 0 (key \"00000000\")");
  expect_part(odd, "crop_size");
  EXPECT_EQ(labels(loader, 4), (std::vector<float>{0, 1, 2, 3, 4}));
  Loader cropping(samples(source, "crop_size: 4"), options(5));
  EXPECT_EQ(labels(cropping, 3), (std::vector<float>{15, 16, 17, 18, 19}));

  const auto bad_start = std::make_shared<Numbers>(20);
  bad_start->broken = 0;
  expect_part(error_of([&] { Loader(samples(bad_start), options(5)); }),
              "record 0 (key \"00000000\"): it is broken");
}

TEST(Loader, EndsWhileItsThreadsWork) {
  for (int i = 0; i < 20; ++i) {
    Loader loader(samples(std::make_shared<Numbers>(1000)), options(50, 3));
    if (i % 2 == 0) loader.batch(i);
  }
}

TEST(Permutation, IsOne) {
  for (const int64_t count : {1, 2, 3, 4, 5, 8, 9, 100, 1000, 4097}) {
    std::set<int64_t> seen;
    int64_t fixed = 0;
    const Permutation order(count, Random{3, static_cast<uint64_t>(count)});
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = order(i);
      EXPECT_GE(at, 0);
      EXPECT_LT(at, count);
      seen.insert(at);
      fixed += at == i;
    }
    EXPECT_EQ(static_cast<int64_t>(seen.size()), count);
    if (count >= 100) {
      EXPECT_LT(fixed, 10);
    }
  }
}

TEST(Permutation, EveryPlaceIsEquallyLikely) {
  // 6 elements, 6000 orders: each lands on each place about 1000 times (standard deviation 29).
  std::vector<int> counts(36, 0);
  for (uint64_t stream = 0; stream < 6000; ++stream) {
    const Permutation order(6, Random{1, stream});
    for (int i = 0; i < 6; ++i) ++counts[i * 6 + order(i)];
  }
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);
}

std::unique_ptr<Layer> data_layer(const std::string& text, bool training, Context& context) {
  LayerParameter message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "name: \"d\" type: \"Data\" top: \"data\" " + text, &message));
  std::unique_ptr<Layer> layer = make_layer(message, training, formats());
  layer->source()->open(context);
  layer->setup(context, {});
  return layer;
}

TEST(DataLayer, LogsAsCaffeDoes) {
  Lines log;
  Context context(Device::cpu);
  context.set_log(log);
  const std::string text = "data_param { source: \"lmdb_raw\" backend: LMDB batch_size: 8 }";
  const std::unique_ptr<Layer> layer =
      data_layer(text + "transform_param { force_gray: true }", true, context);
  Forward pass;
  for (const Shape& shape : layer->infer({}).tops) pass.top.emplace_back(context, shape);
  for (pass.pass = 0; pass.pass < 6; ++pass.pass) layer->forward(context, pass);
  EXPECT_EQ(log.infos, (std::vector<std::string>{"Opened lmdb " + formats() + "/lmdb_raw",
                                                 "output data size: 8,3,12,10",
                                                 "Restarting data prefetching from start.",
                                                 "Restarting data prefetching from start."}));
  EXPECT_EQ(log.warnings,
            (std::vector<std::string>{"force_color and force_gray only for encoded datum"}));
}

TEST(DataLayer, FillsDoublePrecisionAndSingleTops) {
  Context context(Device::cpu);
  const std::unique_ptr<Layer> layer =
      data_layer("data_param { source: \"lmdb_raw\" backend: LMDB batch_size: 2 }", false, context);
  ASSERT_EQ(layer->infer({}).tops.size(), 1u);
  Forward real, wide;
  real.top.emplace_back(context, layer->infer({}).tops[0]);
  wide.top.emplace_back(context, layer->infer({}).tops[0], DType::f64);
  real.pass = wide.pass = 3;
  layer->forward(context, real);
  layer->forward(context, wide);
  EXPECT_EQ(to_floats(context, real.top[0]), to_floats(context, wide.top[0]));
}

TEST(DataLayer, SeedDecidesAndRandSkipShifts) {
  const std::string text =
      "data_param { source: \"lmdb_raw\" backend: LMDB batch_size: 20 rand_skip: 10 } "
      "transform_param { crop_size: 4 mirror: true }";
  const auto first_batch = [&](uint64_t seed) {
    Context context(Device::cpu);
    context.seed = seed;
    const std::unique_ptr<Layer> layer = data_layer(text, true, context);
    Forward pass;
    pass.top.emplace_back(context, layer->infer({}).tops[0]);
    layer->forward(context, pass);
    return to_floats(context, pass.top[0]);
  };
  EXPECT_EQ(first_batch(4), first_batch(4));
  EXPECT_NE(first_batch(4), first_batch(5));
}

TEST(DataLayer, AsksForWhatIsMissing) {
  Context context(Device::cpu);
  expect_part(error_of([&] {
                data_layer("data_param { source: \"lmdb_raw\" backend: LMDB }", true, context);
              }),
              "batch_size");
  expect_part(
      error_of([&] { data_layer("data_param { batch_size: 2 backend: LMDB }", true, context); }),
      "source");
  expect_part(error_of([&] {
                data_layer("data_param { source: \"none\" batch_size: 2 backend: LMDB }", true,
                           context);
              }),
              "none: no such database");
}

TEST(DataLayer, ResizesPlainAndEncodedImages) {
  NEEDS_IMAGES();
  Context context(Device::cpu);
  for (const std::string database : {"lmdb_raw", "lmdb_encoded"}) {
    const std::unique_ptr<Layer> layer =
        data_layer("data_param { source: \"" + database +
                       "\" backend: LMDB batch_size: 3 } transform_param { resize_param { height: "
                       "24 width: 20 "
                       "interp_mode: NEAREST } }",
                   false, context);
    Forward pass;
    pass.top.emplace_back(context, layer->infer({}).tops[0]);
    ASSERT_EQ(pass.top[0].shape(), (Shape{3, 3, 24, 20}));
    layer->forward(context, pass);
    const std::vector<float> resized = to_floats(context, pass.top[0]);
    const std::vector<float> plain =
        Hdf5File(formats() + "/transform_lmdb_plain.h5").floats("data/0");
    for (int y = 0; y < 24; ++y) {
      for (int x = 0; x < 20; ++x) EXPECT_EQ(resized[y * 20 + x], plain[y / 2 * 10 + x / 2]);
    }
  }
}

TEST(DataLayer, RefusesMixedSizes) {
  NEEDS_IMAGES();
  Context context(Device::cpu);
  const std::unique_ptr<Layer> mixed = data_layer(
      "data_param { source: \"lmdb_encoded_mixed\" backend: LMDB batch_size: 20 }", true, context);
  Forward pass;
  pass.top.emplace_back(context, mixed->infer({}).tops[0]);
  expect_part(error_of([&] { mixed->forward(context, pass); }),
              "record 13 (key \"00000013_img13.png\"): its shape 1x12x10");
}

// Two images of different sizes whose values are their numbers.
void write_two_sizes(const std::string& folder, int channels_of_second) {
  const std::unique_ptr<DatabaseWriter> writer = create_database(folder, DataParameter::LMDB);
  for (int i = 0; i < 2; ++i) {
    Datum datum;
    datum.set_channels(i == 0 ? 1 : channels_of_second);
    datum.set_height(3 + i);
    datum.set_width(5 - i);
    datum.set_data(std::string(datum.channels() * datum.height() * datum.width(), char(1 + i)));
    writer->put(i == 0 ? "a" : "b", datum);
  }
  writer->finish();
}

std::string batches_of_one(const std::string& folder) {
  return "data_param { source: \"" + folder + "\" backend: LMDB batch_size: 1 }";
}

TEST(DataLayer, BatchesOfOneFollowTheSizeOfEachImage) {
  const Folder folder;
  write_two_sizes(folder.file("db"), 1);
  Context context(Device::cpu);
  const std::unique_ptr<Layer> layer = data_layer(batches_of_one(folder.file("db")), true, context);
  for (uint64_t number = 0; number < 5; ++number) {
    EXPECT_EQ(layer->source()->reshapes(number), number > 0);
    Forward pass;
    pass.pass = number;
    const int64_t second = static_cast<int64_t>(number % 2);
    pass.top.emplace_back(context, layer->infer({}).tops[0]);
    EXPECT_EQ(pass.top[0].shape(), (Shape{1, 1, 3 + second, 5 - second}));
    layer->forward(context, pass);
    for (float value : to_floats(context, pass.top[0]))
      EXPECT_EQ(value, static_cast<float>(1 + second));
  }
}

TEST(DataLayer, BatchesOfOneHaveOneNumberOfChannels) {
  const Folder folder;
  write_two_sizes(folder.file("db"), 3);
  Context context(Device::cpu);
  const std::unique_ptr<Layer> layer = data_layer(batches_of_one(folder.file("db")), true, context);
  EXPECT_FALSE(layer->source()->reshapes(0));
  expect_part(error_of([&] { layer->source()->reshapes(1); }),
              "all samples one number of channels");
}

TEST(DataLayer, NamesADamagedRecord) {
  const Folder folder;
  {
    const std::unique_ptr<DatabaseWriter> writer =
        create_database(folder.file("db"), DataParameter::LMDB);
    Datum datum;
    datum.set_channels(1);
    datum.set_height(2);
    datum.set_width(2);
    datum.set_data("abcd");
    writer->put("a", datum);
    datum.set_data("abc");
    writer->put("b", datum);
    writer->finish();
  }
  Context context(Device::cpu);
  const std::unique_ptr<Layer> layer =
      data_layer("data_param { source: \"" + folder.file("db") + "\" backend: LMDB batch_size: 2 }",
                 true, context);
  Forward pass;
  pass.top.emplace_back(context, layer->infer({}).tops[0]);
  expect_part(error_of([&] { layer->forward(context, pass); }),
              folder.file("db") + ", record 1 (key \"b\"): the Datum is damaged");
}

}  // namespace loader_test
}  // namespace crema::tests
