// A loader's memory does not grow with the amount of data read.
#include <google/protobuf/text_format.h>
#include <unistd.h>

#include "data/databases/database_writer.h"
#include "fixtures.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema::tests {
namespace flat_memory_test {

constexpr int kRecords = 200, kBatchSize = 20, kEpoch = kRecords / kBatchSize;
constexpr int kSide = 200;  // 3 planes of it are 120 kB a record, 24 MB in all

// Bytes of this process that are in memory and belong to no file.
int64_t own_memory() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0, shared = 0;
  file >> all >> resident >> shared;
  return (resident - shared) * sysconf(_SC_PAGESIZE);
}

void write_large(const std::string& path, Backend kind) {
  const auto writer = create_database(path, kind);
  Datum datum;
  datum.set_channels(3);
  datum.set_height(kSide);
  datum.set_width(kSide);
  for (int i = 0; i < kRecords; ++i) {
    datum.set_data(std::string(3 * kSide * kSide, static_cast<char>(i)));
    writer->put(numbered_key(i, 8), datum);
  }
  writer->finish();
}

TEST(FlatMemory, EpochsTakeNone) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer keeps what is given back";
#endif
  for (const Backend kind : {DataParameter::LMDB, DataParameter::LEVELDB}) {
#ifndef CREMA_LEVELDB
    if (kind == DataParameter::LEVELDB) continue;
#endif
    SCOPED_TRACE(name_of(kind));
    const Folder folder;
    write_large(folder.file("db"), kind);
    LayerParameter message;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        cat("name: \"d\" type: \"Data\" top: \"data\" top: \"label\" data_param { source: \"",
            folder.file("db"), "\" backend: ", kind == DataParameter::LMDB ? "LMDB" : "LEVELDB",
            " batch_size: ", kBatchSize,
            " threads: 2 prefetch: 2 shuffle: true } transform_param { crop_size: 32 mirror: true "
            "}"),
        &message));
    Context context(Device::cpu);
    const std::unique_ptr<Layer> layer = make_layer(message, true, folder.path());
    layer->source()->open(context);
    layer->setup(context, {});
    Forward pass;
    for (const Shape& shape : layer->infer({}).tops) pass.top.emplace_back(context, shape);
    const auto epochs = [&](int count) {
      for (const uint64_t end = pass.pass + static_cast<uint64_t>(count) * kEpoch; pass.pass < end;
           ++pass.pass)
        layer->forward(context, pass);
    };
    epochs(2);
    const int64_t before = own_memory();
    epochs(8);
    // They read 192 MB.
    EXPECT_LT(own_memory() - before, int64_t{6} << 20);
  }
}

}  // namespace flat_memory_test
}  // namespace crema::tests
