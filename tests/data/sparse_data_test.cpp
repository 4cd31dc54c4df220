// SparseData: vectors from a database whose records omit zeros.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "data/databases/database_writer.h"
#include "fixtures.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema::tests {
namespace sparse_data_test {

template <typename Message>
Message parsed(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

struct Database {
  explicit Database(const std::vector<std::string>& records) {
    const auto writer = create_database(folder.file("db"), DataParameter::LMDB);
    for (size_t i = 0; i < records.size(); ++i)
      writer->put(numbered_key(static_cast<int64_t>(i), 8), parsed<SparseDatum>(records[i]));
    writer->finish();
  }
  // All batches together, data and labels.
  std::pair<std::vector<float>, std::vector<float>> read(int batch, int batches,
                                                         const std::string& more = "") const {
    auto message = parsed<LayerParameter>(
        cat("name: \"d\" type: \"SparseData\" top: \"data\" top: \"label\" sparse_data_param { "
            "source: \"db\" backend: LMDB batch_size: ",
            batch, " } ", more));
    Context context(Device::cpu);
    std::unique_ptr<Layer> layer = make_layer(message, true, folder.path());
    layer->source()->open(context);
    layer->setup(context, {});
    std::vector<float> data, labels;
    for (int i = 0; i < batches; ++i) {
      Forward pass;
      pass.pass = static_cast<uint64_t>(i);
      for (const Shape& shape : layer->infer({}).tops) pass.top.emplace_back(context, shape);
      layer->forward(context, pass);
      for (const float value : to_floats(context, pass.top[0])) data.push_back(value);
      for (const float value : to_floats(context, pass.top[1])) labels.push_back(value);
    }
    return {data, labels};
  }
  Folder folder;
};

TEST(SparseData, FillsWhatARecordLeavesOut) {
  const Database database({"size: 5 nnz: 2 indices: 1 indices: 4 data: 0.5 data: -2 label: 3",
                           "size: 5 nnz: 0 label: 1", "size: 5 indices: 0 data: 7 label: 2"});
  const auto [data, labels] = database.read(2, 2);
  EXPECT_EQ(data,
            (std::vector<float>{0, 0.5, 0, 0, -2, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0.5, 0, 0, -2}));
  EXPECT_EQ(labels, (std::vector<float>{3, 1, 2, 3}));
}

// The fork's numbers: size 1, nnz 2, indices 3 and data 5 (packed), label 4.
TEST(SparseData, ReadsTheForksBytes) {
  SparseDatum record;
  ASSERT_TRUE(record.ParseFromString(
      std::string("\x08\x05\x10\x01\x1a\x01\x03\x20\x02\x2a\x04\x00\x00\x80\x3f", 15)));
  EXPECT_EQ(record.size(), 5);
  EXPECT_EQ(record.nnz(), 1);
  EXPECT_EQ(record.indices(0), 3);
  EXPECT_EQ(record.label(), 2);
  EXPECT_EQ(record.data(0), 1);
}

TEST(SparseData, SaysWhatIsWrong) {
  const auto message = [](const std::vector<std::string>& records) {
    const Database database(records);
    return error_of([&] { database.read(2, 1); });
  };
  expect_part(
      message({"label: 1"}),
      "its records are of type Datum, which a layer of type Data reads; a layer of type SparseData "
      "reads SparseDatum");
  expect_part(message({"size: 2", "size: 3"}), "its size is 3, but that of the first record 2");
  expect_part(message({"size: 2", "size: 2 indices: 2 data: 1"}),
              "value 0 has the index 2, but indices are from 0 to 1");
  expect_part(message({"size: 2", "size: 2 label: 16777217"}),
              "record 1 (key \"00000001\"): the label 16777217 cannot be kept");
  expect_part(message({"size: 2", "size: 2 nnz: 2 indices: 1 data: 1"}),
              "it says 2 values, but has 1 values at 1 indices");
}

}  // namespace sparse_data_test
}  // namespace crema::tests
