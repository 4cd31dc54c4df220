// HDF5Data through the loader: order, files larger than memory, threads, ranks, transform_param.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "data/databases/database_writer.h"
#include "data/databases/hdf5/hdf5_dataset.h"
#include "data/databases/hdf5/hdf5_writer.h"
#include "data/loader/block_order.h"
#include "data/loader/loader.h"
#include "fixtures.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema::tests {
namespace hdf5_loader_test {

// Row r of "data" is 2 values of r, of "label" r. Chunked: with chunks of many rows.
void write_rows(const std::string& path, int64_t first, int64_t rows, bool chunked = false) {
  std::vector<float> data, label;
  for (int64_t row = first; row < first + rows; ++row) {
    data.insert(data.end(), 2, static_cast<float>(row));
    label.push_back(static_cast<float>(row));
  }
  Hdf5Writer file(path);
  if (chunked) {
    file.chunked_floats("data", {rows, 2}, 1, data.data());
  } else {
    file.floats("data", {rows, 2}, data.data());
  }
  file.floats("label", {rows}, label.data());
  file.commit();
}

std::unique_ptr<Layer> layer_of(const Folder& folder, const std::string& text, Context& context,
                                bool training = true, bool whole_epochs = false) {
  LayerParameter message;
  EXPECT_TRUE(
      google::protobuf::TextFormat::ParseFromString("name: \"d\" top: \"data\" " + text, &message));
  std::unique_ptr<Layer> layer = make_layer(message, training, folder.path());
  if (whole_epochs) layer->source()->read_whole_epochs();
  layer->source()->open(context);
  layer->setup(context, {});
  return layer;
}

std::vector<std::vector<float>> tops_of(Layer& layer, Context& context, uint64_t number) {
  Forward pass;
  const Prepared prepared = layer.prepare(context, {});
  pass.state = prepared.state.get();
  pass.pass = number;
  layer.source()->reshapes(number);
  for (const Shape& shape : layer.infer({}).tops) pass.top.emplace_back(context, shape);
  layer.forward(context, pass);
  std::vector<std::vector<float>> tops;
  for (const Tensor& top : pass.top) tops.push_back(to_floats(context, top));
  return tops;
}

TEST(BlockOrder, IsAPermutationInWindows) {
  const struct {
    int64_t count, block, window;
  } cases[] = {{1, 1, 1}, {10, 3, 2}, {9, 3, 2}, {2, 5, 1}, {100, 7, 4}, {1000, 10, 3}, {64, 1, 8}};
  for (const auto& of : cases) {
    SCOPED_TRACE(cat(of.count, " in blocks of ", of.block, ", ", of.window, " in a window"));
    std::set<std::vector<int64_t>> orders;
    for (uint64_t stream = 0; stream < 10; ++stream) {
      const BlockOrder order(of.count, of.block, of.window, Random{2, stream});
      std::vector<int64_t> rows;
      for (int64_t i = 0; i < of.count; ++i) rows.push_back(order(i));
      orders.insert(rows);
      EXPECT_EQ(std::set<int64_t>(rows.begin(), rows.end()).size(), rows.size());
      EXPECT_GE(*std::min_element(rows.begin(), rows.end()), 0);
      EXPECT_LT(*std::max_element(rows.begin(), rows.end()), of.count);
      // A block is in one window, so all of its rows are within the window's length.
      std::map<int64_t, std::pair<int64_t, int64_t>> places;
      for (int64_t i = 0; i < of.count; ++i) {
        const auto [place, is_new] = places.try_emplace(rows[i] / of.block, i, i);
        place->second.second = i;
      }
      for (const auto& [block, place] : places)
        EXPECT_LT(place.second - place.first, of.block * of.window) << "block " << block;
    }
    if (of.count >= 10) {
      EXPECT_EQ(orders.size(), 10u);
    }
  }
}

// As before files larger than memory could be read: old runs continue unchanged.
TEST(Hdf5Loader, OrderOfFilesThatFitStays) {
  const Folder folder;
  write_rows(folder.file("a.h5"), 0, 3);
  write_rows(folder.file("b.h5"), 3, 4);
  write_rows(folder.file("c.h5"), 7, 5);
  folder.write("list", "a.h5\nb.h5\nc.h5\n");
  Context context(Device::cpu);
  context.seed = 6;
  const auto layer = layer_of(folder,
                              "top: \"label\" type: \"HDF5Data\" hdf5_data_param { source: "
                              "\"list\" batch_size: 7 shuffle: true }",
                              context);
  EXPECT_EQ(layer->source()->records(), 12);
  const std::vector<float> expected[] = {{0, 1, 2, 11, 8, 10, 9},
                                         {7, 5, 3, 6, 4, 8, 10},
                                         {11, 7, 9, 5, 4, 6, 3},
                                         {2, 0, 1, 1, 0, 2, 5}};
  for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(tops_of(*layer, context, i)[1], expected[i]) << i;
}

// Ten times as much as may be in memory, in two files: one contiguous, one in compressed chunks.
struct Large {
  static constexpr int64_t kRows = 3000, kMost = 3 * kRows / 10;
  Large() {
    write_rows(folder.file("a.h5"), 0, 1900);
    write_rows(folder.file("b.h5"), 1900, kRows - 1900, true);
    folder.write("list", "a.h5\nb.h5\n");
  }
  std::shared_ptr<Hdf5Source> source() const {
    return std::make_shared<Hdf5Source>(folder.file("list"),
                                        std::vector<std::string>{"data", "label"}, kMost);
  }
  std::unique_ptr<Loader> loader(const std::shared_ptr<Hdf5Source>& of, bool shuffle, int workers,
                                 int rank = 0, int ranks = 1) const {
    LoaderOptions options;
    options.batch_size = 30;
    options.batch_of_ranks = 30 * ranks;
    options.first_in_batch = 30 * rank;
    options.shuffle = shuffle;
    options.workers = workers;
    options.random = {4, 7};
    return std::make_unique<Loader>(std::make_shared<Hdf5Dataset>(of, nullptr), options);
  }
  Folder folder;
};

TEST(Hdf5Loader, FilesLargerThanMemoryAreReadInBlocks) {
  const Large large;
  for (const bool shuffle : {false, true}) {
    const std::shared_ptr<Hdf5Source> source = large.source();
    const auto loader = large.loader(source, shuffle, 3);
    std::set<std::vector<float>> orders;
    for (int epoch = 0; epoch < 3; ++epoch) {
      std::vector<float> rows;
      for (int batch = 0; batch < 100; ++batch) {
        const Batch& made = loader->batch(epoch * 100 + batch);
        EXPECT_LE(source->values_in_memory(), Large::kMost);
        for (size_t i = 0; i < made.labels.size(); ++i) {
          ASSERT_EQ(made.data[2 * i], made.labels[i]);
          ASSERT_EQ(made.data[2 * i + 1], made.labels[i]);
        }
        rows.insert(rows.end(), made.labels.begin(), made.labels.end());
      }
      std::vector<float> sorted(Large::kRows);
      std::iota(sorted.begin(), sorted.end(), 0.f);
      EXPECT_EQ(rows == sorted, !shuffle);
      orders.insert(rows);
      std::sort(rows.begin(), rows.end());
      EXPECT_EQ(rows, sorted);
    }
    EXPECT_EQ(orders.size(), shuffle ? 3u : 1u);
  }
}

TEST(Hdf5Loader, NumberOfThreadsAndJumpsChangeNothing) {
  const Large large;
  const auto reference = large.loader(large.source(), true, 1);
  std::vector<Batch> batches;
  for (int64_t i = 0; i < 120; ++i) batches.push_back(reference->batch(i));
  for (const int workers : {1, 2, 8}) {
    const auto loader = large.loader(large.source(), true, workers);
    for (const int64_t number : {55, 56, 57, 58, 99, 100, 101, 7, 8, 9, 119, 0, 1, 2, 3}) {
      EXPECT_EQ(loader->batch(number).data, batches[number].data) << workers << ", " << number;
      EXPECT_EQ(loader->batch(number).labels, batches[number].labels);
    }
  }
}

TEST(Hdf5Loader, TwoRanksSeeEachRowOnce) {
  const Large large;
  std::vector<int> seen(Large::kRows);
  for (const int rank : {0, 1}) {
    const auto loader = large.loader(large.source(), true, 2, rank, 2);
    for (int64_t batch = 0; batch < 50; ++batch)
      for (const float row : loader->batch(batch).labels) ++seen[static_cast<size_t>(row)];
  }
  EXPECT_EQ(seen, std::vector<int>(Large::kRows, 1));
}

TEST(Hdf5Loader, AnyNumberOfTopsHasAnyShapes) {
  const Folder folder;
  const int64_t rows = 5;
  std::vector<float> values(rows * 6);
  std::iota(values.begin(), values.end(), 0.f);
  Hdf5Writer file(folder.file("a.h5"));
  file.floats("data", {rows, 1, 2}, values.data());
  file.floats("boxes", {rows, 2, 3}, values.data());
  file.floats("weight", {rows}, values.data());
  file.doubles("last", {rows, 1}, std::vector<double>{5, 6, 7, 8, 9}.data());
  file.commit();
  folder.write("list", "a.h5\n");
  Context context(Device::cpu);
  const std::string text = "type: \"HDF5Data\" hdf5_data_param { source: \"list\" batch_size: 2 } ";
  const auto all = layer_of(folder, text + "top: \"boxes\" top: \"weight\" top: \"last\"", context);
  EXPECT_EQ(all->infer({}).tops, (std::vector<Shape>{{2, 1, 2}, {2, 2, 3}, {2}, {2, 1}}));
  EXPECT_EQ(tops_of(*all, context, 2),
            (std::vector<std::vector<float>>{
                {8, 9, 0, 1}, {24, 25, 26, 27, 28, 29, 0, 1, 2, 3, 4, 5}, {4, 0}, {9, 5}}));
  // The last batch of an epoch is smaller.
  const auto whole =
      layer_of(folder, text + "top: \"boxes\" top: \"weight\"", context, false, true);
  EXPECT_EQ(tops_of(*whole, context, 2),
            (std::vector<std::vector<float>>{{8, 9}, {24, 25, 26, 27, 28, 29}, {4}}));
  EXPECT_EQ(tops_of(*whole, context, 3)[2], (std::vector<float>{0, 1}));
  EXPECT_EQ(tops_of(*layer_of(folder, text, context), context, 1),
            (std::vector<std::vector<float>>{{4, 5, 6, 7}}));
  EXPECT_EQ(layer_of(folder, text + "top: \"boxes\"", context)->infer({}).tops,
            (std::vector<Shape>{{2, 1, 2}, {2, 2, 3}}));
}

// The same records as an LMDB and as HDF5 files: 2 channels of 6 rows and 5 columns.
struct Both {
  explicit Both(int channels = 2) {
    for (const Backend backend : {DataParameter::LMDB, DataParameter::HDF5}) {
      const auto writer = create_database(folder.file(name_of(backend)), backend);
      const Random random{3, 3};
      for (int i = 0; i < 11; ++i) {
        Datum datum;
        datum.set_channels(channels);
        datum.set_height(6);
        datum.set_width(5);
        datum.set_label(i);
        for (int k = 0; k < 30 * channels; ++k)
          datum.mutable_data()->push_back(static_cast<char>(random.word(100 * i + k)));
        writer->put(numbered_key(i, 4), datum);
      }
      writer->finish();
    }
  }
  void expect_equal(const std::string& transform, bool training) const {
    SCOPED_TRACE(transform);
    Context context(Device::cpu);
    const std::string more = " transform_param { " + transform + " } top: \"label\" ";
    const auto from_lmdb = layer_of(folder,
                                    "type: \"Data\" data_param { source: \"lmdb\" backend: LMDB "
                                    "batch_size: 4 }" +
                                        more,
                                    context, training),
               from_hdf5 = layer_of(folder,
                                    "type: \"HDF5Data\" hdf5_data_param { source: \"hdf5.txt\" "
                                    "batch_size: 4 threads: 2 prefetch: 1 }" +
                                        more,
                                    context, training);
    EXPECT_EQ(from_lmdb->infer({}).tops, from_hdf5->infer({}).tops);
    for (uint64_t pass = 0; pass < 6; ++pass)
      EXPECT_EQ(tops_of(*from_hdf5, context, pass), tops_of(*from_lmdb, context, pass));
  }
  Folder folder;
};

TEST(Hdf5Loader, TransformsAsADataLayerDoes) {
  const Both both;
  for (const char* transform :
       {"scale: 0.5", "crop_size: 4 mirror: true mean_value: 3 mean_value: 5 scale: 0.25",
        "pad: 1 crop_size: 5 mirror: true", "augment { mixup { } cutmix { } classes: 11 }"}) {
    both.expect_equal(transform, true);
    both.expect_equal(transform, false);
  }
}

TEST(Hdf5Loader, AugmentsAsADataLayerDoes) {
  NEEDS_IMAGES();
  const Both both(3);
  for (const char* transform :
       {"crop_size: 4 augment { rotate { } cutout { } }", "augment { color { } flip { } }",
        "resize_param { height: 9 width: 8 } crop_size: 7"})
    both.expect_equal(transform, true);
}

TEST(Hdf5Loader, SaysWhatIsWrong) {
  const Folder folder;
  write_rows(folder.file("a.h5"), 0, 3);
  const std::vector<float> values(3 * 12, 0.5f);
  Hdf5Writer file(folder.file("b.h5"));
  file.floats("data", {3, 3, 2, 2}, values.data());
  file.commit();
  Context context(Device::cpu);
  const auto layer = [&](const std::string& name, const std::string& transform) {
    return layer_of(folder,
                    "type: \"HDF5Data\" hdf5_data_param { source: \"" + name +
                        "\" batch_size: 2 } transform_param { " + transform + " }",
                    context);
  };
  expect_part(error_of([&] { layer("a.h5", "scale: 2"); }),
              "transform_param changes channels, rows and columns, but a sample is 2");
  expect_part(error_of([&] { layer("b.h5", "crop_size: 3"); }), "too small for a crop of 3x3");
  expect_part(error_of([&] { layer("b.h5", "augment { flip { } }"); }),
              folder.file("b.h5") +
                  ", row 0: its data hold the number 0.5, but what "
                  "transform_param changes");
}

// Errors in a file name the row that was to be read.
TEST(Hdf5Loader, NamesTheRowThatCannotBeRead) {
  const Folder folder;
  folder.write("list", "a.h5\n");
  const auto error = [&](int64_t most_values, const std::function<void()>& spoil) {
    write_rows(folder.file("a.h5"), 0, 1000);
    const auto source = std::make_shared<Hdf5Source>(
        folder.file("list"), std::vector<std::string>{"data", "label"}, most_values);
    spoil();
    LoaderOptions options;
    options.batch_size = 100;
    Loader loader(std::make_shared<Hdf5Dataset>(source, nullptr), options);
    return error_of([&] {
      for (int i = 0; i < 10; ++i) loader.batch(i);
    });
  };
  const std::string file = folder.file("a.h5");
  expect_part(error(100000, [&] { write_rows(file, 0, 900); }),
              file + ", row 0: dataset \"data\" has changed while it was used");
  expect_part(error(100000, [&] { std::filesystem::resize_file(file, 6000); }),
              file + ", row 0: is not an HDF5 file, or it is damaged or cut short");
  expect_part(error(100000, [&] { std::filesystem::remove(file); }),
              file + ", row 0: no such file");
  // In blocks, the rows before it can be read.
  const auto write_inexact = [&] {
    std::vector<uint64_t> label(1000, 1);
    label[500] = (1 << 24) + 1;
    const std::vector<float> data(2000);
    Hdf5Writer writer(file);
    writer.floats("data", {1000, 2}, data.data());
    writer.integers("label", label);
    writer.commit();
  };
  const std::string inexact = ": dataset \"label\" holds the integer 16777217";
  expect_part(error(100000, write_inexact), file + ", row 0" + inexact);
  expect_part(error(600, write_inexact), file + ", row 492" + inexact);
}

}  // namespace hdf5_loader_test
}  // namespace crema::tests
