// Every source of samples: batches depend neither on the number of threads nor on where a run
// begins, and ranks share each batch.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "data/databases/database_writer.h"
#include "data/images/image.h"
#include "fixtures.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"
#include "ranks.h"
#include "tar_files.h"

namespace crema::tests {
namespace source_order_test {

constexpr int kRecords = 23, kBatch = 4;

struct SourceRow {
  const char* name;
  const char* text;  // of the layer; THREADS is replaced
  bool pictures = true;
};

const SourceRow kSources[] = {
    {"Lmdb",
     "type: \"Data\" data_param { source: \"lmdb\" backend: LMDB batch_size: 4 shuffle: true "
     "threads: "
     "THREADS } transform_param { crop_size: 6 mirror: true augment { noise {} } }",
     false},
    {"LmdbInOrder",
     "type: \"Data\" data_param { source: \"lmdb\" backend: LMDB batch_size: 4 threads: THREADS } "
     "transform_param { crop_size: 6 mirror: true }",
     false},
    {"LmdbOfJpegs",
     "type: \"Data\" data_param { source: \"jpegs\" backend: LMDB batch_size: 4 shuffle: true "
     "threads: THREADS } transform_param { crop_size: 6 mirror: true mean_value: 3 }"},
#ifdef CREMA_LEVELDB
    {"Leveldb",
     "type: \"Data\" data_param { source: \"leveldb\" backend: LEVELDB batch_size: 4 shuffle: true "
     "threads: THREADS } transform_param { crop_size: 6 mirror: true }",
     false},
    {"LeveldbInOrder",
     "type: \"Data\" data_param { source: \"leveldb\" backend: LEVELDB batch_size: 4 threads: "
     "THREADS } transform_param { crop_size: 6 mirror: true }",
     false},
#endif
    {"Hdf5",
     "type: \"HDF5Data\" hdf5_data_param { source: \"hdf5.txt\" batch_size: 4 shuffle: true "
     "threads: "
     "THREADS } transform_param { crop_size: 6 mirror: true }",
     false},
    {"TarOfJpegs",
     "type: \"Data\" data_param { source: \"jpegs.tar\" backend: TAR batch_size: 4 shuffle: true "
     "threads: THREADS } transform_param { crop_size: 6 mirror: true }"},
    {"ImageData",
     "type: \"ImageData\" image_data_param { source: \"list\" batch_size: 4 shuffle: true threads: "
     "THREADS } transform_param { crop_size: 6 mirror: true augment { rotate {} color {} } }"},
    {"AnnotatedData",
     "type: \"AnnotatedData\" data_param { source: \"boxes\" backend: LMDB batch_size: 4 shuffle: "
     "true "
     "threads: THREADS } transform_param { mirror: true resize_param { height: 9 width: 7 } "
     "distort_param { brightness_prob: 0.5 brightness_delta: 32 } }"},
};

// The bytes of a picture of 10 x 8 pixels, plane after plane.
std::string pixels_of(int i) {
  std::string pixels;
  for (uint64_t k = 0; k < 240; ++k)
    pixels.push_back(static_cast<char>(Random{5, 1}.word(static_cast<uint64_t>(i) * 1000 + k)));
  return pixels;
}

struct SourceFiles : Folder {
  SourceFiles() {
    write_datums("lmdb", DataParameter::LMDB, false);
    write_datums("hdf5", DataParameter::HDF5, false);
#ifdef CREMA_LEVELDB
    write_datums("leveldb", DataParameter::LEVELDB, false);
#endif
#ifdef CREMA_OPENCV
    write_datums("jpegs", DataParameter::LMDB, true);
    write_boxes();
    std::string list, tar;
    for (int i = 0; i < kRecords; ++i) {
      write(cat(i, ".jpg"), jpeg_of_record(i));
      list += cat(path(), "/", i, ".jpg ", i, "\n");
      tar += tar_record(cat(i), jpeg_of_record(i), cat(i));
    }
    write("list", list);
    write("jpegs.tar", tar + tar_end());
#endif
  }

  static std::string jpeg_of_record(int i) {
    const std::string pixels = pixels_of(i);
    return encode_image({3, 10, 8, {pixels.begin(), pixels.end()}}, "jpg");
  }

  static Datum datum_of(int i, bool encoded) {
    Datum datum;
    datum.set_channels(3);
    datum.set_height(10);
    datum.set_width(8);
    datum.set_label(i);
    datum.set_data(encoded ? jpeg_of_record(i) : pixels_of(i));
    if (encoded) datum.set_encoded(true);
    return datum;
  }

  void write_datums(const std::string& name, Backend backend, bool encoded) const {
    DatabaseFormat format(backend);
    format.rows = 10;  // of an HDF5 file
    const auto writer = create_database(file(name), format);
    for (int i = 0; i < kRecords; ++i) writer->put(numbered_key(i, 8), datum_of(i, encoded));
    writer->finish();
  }

  // A box around all of each picture, which no change of it takes away.
  void write_boxes() const {
    const auto writer = create_lmdb(file("boxes"));
    for (int i = 0; i < kRecords; ++i) {
      AnnotatedDatum record;
      *record.mutable_datum() = datum_of(i, true);
      record.set_type(AnnotatedDatum::BBOX);
      AnnotationGroup& group = *record.add_annotation_group();
      group.set_group_label(i);
      NormalizedBBox& box = *group.add_annotation()->mutable_bbox();
      box.set_xmax(1);
      box.set_ymax(1);
      writer->put(numbered_key(i, 8), record);
    }
    writer->finish();
  }
};

struct SourceBatch {
  std::vector<float> data, labels;
  bool operator==(const SourceBatch& other) const {
    return data == other.data && labels == other.labels;
  }
};

// A layer, and the net's part in it.
class Reader {
 public:
  Reader(const Folder& folder, const SourceRow& row, int threads, Communicator* world = nullptr)
      : context_(Device::cpu) {
    context_.seed = 7;
    context_.set_world(world);
    std::string text = cat("name: \"d\" top: \"data\" top: \"label\" ", row.text);
    text.replace(text.find("THREADS"), 7, cat(threads));
    LayerParameter message;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
    layer_ = make_layer(message, true, folder.path());
    layer_->source()->open(context_);
    layer_->setup(context_, {});
  }

  SourceBatch batch(uint64_t number) {
    Forward pass;
    const Prepared prepared = layer_->prepare(context_, {});
    pass.state = prepared.state.get();
    pass.pass = number;
    layer_->source()->reshapes(number);
    for (const Shape& shape : layer_->infer({}).tops) pass.top.emplace_back(context_, shape);
    layer_->forward(context_, pass);
    return {to_floats(context_, pass.top[0]), to_floats(context_, pass.top[1])};
  }

  // The record behind each sample: its label, or the class of its box.
  static std::vector<int> records(const std::vector<float>& labels) {
    std::vector<int> found;
    if (labels.size() <= kBatch) {
      found.assign(labels.begin(), labels.end());
    } else {
      for (size_t i = 0; i < labels.size(); i += 8) {
        if (labels[i] >= 0) found.push_back(static_cast<int>(labels[i + 1]));
      }
    }
    return found;
  }

 private:
  Context context_;
  std::unique_ptr<Layer> layer_;
};

class SourceOrder : public testing::TestWithParam<SourceRow> {
 protected:
  static void SetUpTestSuite() { files_ = std::make_unique<SourceFiles>(); }
  static void TearDownTestSuite() { files_.reset(); }
  void SetUp() override {
#ifndef CREMA_OPENCV
    if (GetParam().pictures) GTEST_SKIP() << "built without OpenCV";
#endif
  }
  static std::unique_ptr<SourceFiles> files_;
};

std::unique_ptr<SourceFiles> SourceOrder::files_;

TEST_P(SourceOrder, NeitherThreadsNorTheBeginningChangeBatches) {
  constexpr uint64_t kBatches = 13;  // two epochs and a part
  std::vector<SourceBatch> expected;
  Reader one(*files_, GetParam(), 1);
  for (uint64_t number = 0; number < kBatches; ++number) expected.push_back(one.batch(number));
  for (size_t i = 1; i < expected.size(); ++i) EXPECT_NE(expected[i].data, expected[0].data) << i;
  for (const int threads : {2, 8}) {
    SCOPED_TRACE(cat(threads, " threads"));
    Reader several(*files_, GetParam(), threads);
    for (uint64_t number = 0; number < kBatches; ++number)
      EXPECT_EQ(several.batch(number), expected[number]) << number;
  }
  // Resumed in the middle of the first, second and third epoch.
  for (const uint64_t begin : {3, 8, 12}) {
    SCOPED_TRACE(cat("from ", begin));
    Reader resumed(*files_, GetParam(), 2);
    for (uint64_t number = begin; number < kBatches; ++number)
      EXPECT_EQ(resumed.batch(number), expected[number]) << number;
  }
}

// Batches of all ranks, one after the other, are those of a rank that is alone: with batch_size for
// each, and with one divided into parts of 1, 1 and 2 samples.
TEST_P(SourceOrder, RanksShareBatches) {
  constexpr int kEpochs = 2, kSamples = kEpochs * kRecords / kBatch * kBatch;
  std::vector<float> data;
  std::vector<int> records;
  const auto append = [](const SourceBatch& batch, std::vector<float>* data,
                         std::vector<int>* records) {
    data->insert(data->end(), batch.data.begin(), batch.data.end());
    for (const int record : Reader::records(batch.labels)) records->push_back(record);
  };
  Reader alone(*files_, GetParam(), 1);
  for (uint64_t number = 0; number < kSamples / kBatch; ++number)
    append(alone.batch(number), &data, &records);
  ASSERT_EQ(records.size(), size_t{kSamples});

  for (const auto& [ranks, divides] : {std::pair(2, false), std::pair(3, true)}) {
    SCOPED_TRACE(divides ? "one batch" : "a batch each");
    std::vector<std::unique_ptr<OnlyRank>> worlds;
    std::vector<std::unique_ptr<Reader>> readers;
    for (int rank = 0; rank < ranks; ++rank) {
      worlds.push_back(std::make_unique<OnlyRank>(rank, ranks));
      worlds.back()->divides_batches = divides;
      readers.push_back(std::make_unique<Reader>(*files_, GetParam(), 2, worlds.back().get()));
    }
    std::vector<float> shared_data;
    std::vector<int> shared;
    for (uint64_t number = 0; shared.size() < records.size(); ++number) {
      for (const auto& reader : readers) append(reader->batch(number), &shared_data, &shared);
    }
    shared.resize(records.size());
    shared_data.resize(data.size());
    EXPECT_EQ(shared, records);
    EXPECT_EQ(shared_data, data);
  }

  std::vector<int> once(kRecords);
  std::iota(once.begin(), once.end(), 0);
  records.resize(kRecords);
  std::sort(records.begin(), records.end());
  EXPECT_EQ(records, once);
}

INSTANTIATE_TEST_SUITE_P(All, SourceOrder, testing::ValuesIn(kSources),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace source_order_test
}  // namespace crema::tests
