#include "data/convert/convert.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "base/files.h"
#include "data/databases/database_writer.h"
#include "fixtures.h"

namespace crema::tests {
namespace convert_test {

constexpr Backend lmdb = DataParameter::LMDB;

std::string idx(uint32_t magic, const std::vector<uint32_t>& extents, const std::string& values) {
  std::string content;
  const auto put = [&](uint32_t number) {
    for (int shift = 24; shift >= 0; shift -= 8)
      content.push_back(static_cast<char>(number >> shift));
  };
  put(magic);
  for (const uint32_t extent : extents) put(extent);
  return content + values;
}

TEST(Convert, MnistRoundTrip) {
  const Folder folder;
  std::string pixels, labels;
  for (int i = 0; i < 3 * 6; ++i) pixels.push_back(static_cast<char>(i * 15));
  labels = {7, 0, static_cast<char>(200)};
  folder.write("images", idx(2051, {3, 2, 3}, pixels));
  folder.write("labels", idx(2049, {3}, labels));
  for (const Backend backend : {lmdb, DataParameter::LEVELDB}) {
#ifndef CREMA_LEVELDB
    if (backend != lmdb) continue;
#endif
    Lines log;
    const std::string path = folder.file(name_of(backend));
    convert_mnist(folder.file("images"), folder.file("labels"), path + "/", backend, log);
    EXPECT_EQ(log.infos, (std::vector<std::string>{"A total of 3 items.", "Rows: 2 Cols: 3",
                                                   "Processed 3 files."}));
    const std::unique_ptr<Source> source = open_database(path, backend);
    ASSERT_EQ(source->size(), 3);
    EXPECT_EQ(source->key(2), "00000002");
    Datum datum;
    source->read(2, datum);
    EXPECT_EQ(datum.label(), 200);
    EXPECT_EQ(datum.data(), pixels.substr(12));
    EXPECT_EQ(datum.height(), 2);
    EXPECT_EQ(datum.width(), 3);
    EXPECT_FALSE(datum.has_encoded());
  }
  const auto wrong = [&](const std::string& images, const std::string& classes) {
    folder.write("images", images);
    folder.write("labels", classes);
    return error_of([&] {
      convert_mnist(folder.file("images"), folder.file("labels"), folder.file("db"), lmdb,
                    silent_log());
    });
  };
  expect_part(wrong("\x1f\x8bxx", ""), "gunzip");
  expect_part(wrong(idx(2049, {3}, labels), ""), "is not an IDX file of images");
  expect_part(wrong(idx(2051, {3, 2, 3}, pixels), idx(2051, {3}, labels)),
              "is not an IDX file of labels");
  expect_part(wrong(idx(2051, {3, 2, 3}, pixels + "x"), idx(2049, {3}, labels)),
              "promises 18 bytes of images, but there are 19");
  expect_part(wrong(idx(2051, {3, 2, 3}, pixels), idx(2049, {2}, "ab")), "holds 3 images, but");
  EXPECT_FALSE(file_exists(folder.file("db")));
}

TEST(Convert, MnistPairsSayWhetherTheirClassesAreEqual) {
  const Folder folder;
  // Image i has two pixels of value i; its class is i % 3.
  constexpr int kImages = 60;
  std::string pixels, labels;
  for (int i = 0; i < kImages; ++i) {
    pixels.append(2, static_cast<char>(i));
    labels.push_back(static_cast<char>(i % 3));
  }
  folder.write("images", idx(2051, {kImages, 1, 2}, pixels));
  folder.write("labels", idx(2049, {kImages}, labels));
  const auto convert = [&](const std::string& name) {
    convert_mnist_pairs(folder.file("images"), folder.file("labels"), folder.file(name), lmdb,
                        silent_log());
    const std::unique_ptr<Source> source = open_database(folder.file(name), lmdb);
    std::vector<Datum> records(static_cast<size_t>(source->size()));
    for (int64_t i = 0; i < source->size(); ++i) source->read(i, records[i]);
    return records;
  };
  const std::vector<Datum> records = convert("pairs"), again = convert("again");
  ASSERT_EQ(records.size(), size_t{kImages});
  int equal = 0, itself = 0;
  for (int i = 0; i < kImages; ++i) {
    const Datum& datum = records[i];
    EXPECT_EQ(datum.channels(), 2);
    EXPECT_EQ(datum.height(), 1);
    EXPECT_EQ(datum.width(), 2);
    const std::string& data = datum.data();
    ASSERT_EQ(data.size(), 4u);
    EXPECT_EQ(data[0], data[1]);
    EXPECT_EQ(data[2], data[3]);
    EXPECT_EQ(datum.label(), data[0] % 3 == data[2] % 3 ? 1 : 0);
    equal += datum.label();
    itself += data[0] == data[2];
    EXPECT_EQ(data, again[i].data());
  }
  EXPECT_GT(equal, kImages / 6);
  EXPECT_LT(equal, kImages / 2);
  EXPECT_LT(itself, kImages / 6);
}

TEST(Convert, CifarRoundTrip) {
  const Folder folder;
  std::filesystem::create_directory(folder.file("in"));
  std::filesystem::create_directory(folder.file("out"));
  const auto record = [](int label, int seed) {
    std::string text(1, static_cast<char>(label));
    for (int i = 0; i < 3072; ++i) text.push_back(static_cast<char>(i * seed));
    return text;
  };
  for (int batch = 1; batch <= 5; ++batch) {
    std::ofstream(folder.file(cat("in/data_batch_", batch, ".bin")))
        << record(batch, 3) << record(9, batch);
  }
  Lines log;
  expect_part(error_of([&] { convert_cifar(folder.file("in"), folder.file("out"), lmdb, log); }),
              "test_batch.bin: cannot open");
  EXPECT_TRUE(std::filesystem::is_empty(folder.file("out")));
  folder.write("in/test_batch.bin", record(4, 5));
  convert_cifar(folder.file("in"), folder.file("out"), lmdb, log);
  const std::unique_ptr<Source> train = open_lmdb(folder.file("out/cifar10_train_lmdb"));
  ASSERT_EQ(train->size(), 10);
  EXPECT_EQ(train->key(9), "00009");
  Datum datum;
  train->read(7, datum);
  EXPECT_EQ(datum.label(), 9);
  EXPECT_EQ(datum.data(), record(9, 4).substr(1));
  EXPECT_EQ(datum.channels(), 3);
  EXPECT_EQ(open_lmdb(folder.file("out/cifar10_test_lmdb"))->size(), 1);
  expect_part(error_of([&] { convert_cifar(folder.file("in"), folder.file("out"), lmdb, log); }),
              "cifar10_test_lmdb: exists already");
  folder.write("in/data_batch_2.bin", "short");
  std::filesystem::create_directory(folder.file("out2"));
  expect_part(error_of([&] { convert_cifar(folder.file("in"), folder.file("out2"), lmdb, log); }),
              "is not a CIFAR-10 binary file");
  EXPECT_TRUE(std::filesystem::is_empty(folder.file("out2")));
}

TEST(DatabaseWriter, GrowsAndReplacesLeftovers) {
  const Folder folder;
  const pid_t child = fork();
  if (child == 0) {
    const std::unique_ptr<DatabaseWriter> writer = create_database(folder.file("db"), lmdb);
    raise(SIGKILL);
  }
  waitpid(child, nullptr, 0);
  ASSERT_EQ(folder.names().size(), 1u);
  const std::unique_ptr<DatabaseWriter> writer = create_database(folder.file("db"), lmdb);
  Datum datum;
  datum.set_channels(1);
  datum.set_height(1024);
  datum.set_width(1024);
  // 40 MB: more than the first map, and more than the second.
  for (int i = 0; i < 40; ++i) {
    datum.set_data(std::string(1 << 20, static_cast<char>(i)));
    writer->put(numbered_key(i, 4), datum);
    EXPECT_FALSE(file_exists(folder.file("db")));
  }
  writer->finish();
  EXPECT_EQ(folder.names(), std::vector<std::string>{"db"});
  const std::unique_ptr<Source> source = open_lmdb(folder.file("db"));
  ASSERT_EQ(source->size(), 40);
  source->read(39, datum);
  EXPECT_EQ(datum.data(), std::string(1 << 20, static_cast<char>(39)));

  std::filesystem::create_directory(folder.file("other.tmp"));
  folder.write("other.tmp/letter.txt", "precious");
  create_database(folder.file("other"), lmdb)->finish();
  EXPECT_TRUE(file_exists(folder.file("other.tmp/letter.txt")));
  expect_part(error_of([&] { create_database(folder.file("a/b"), lmdb); }),
              "a/b: cannot write: No such file");
  const std::string long_key(600, 'k');
  expect_part(error_of([&] { create_database(folder.file("keys"), lmdb)->put(long_key, datum); }),
              "at most 511");
}

TEST(Backends, AreFoundByName) {
  EXPECT_EQ(backend_named("LMDB"), lmdb);
  EXPECT_EQ(backend_named("leveldb"), DataParameter::LEVELDB);
  expect_part(error_of([&] { backend_named("lmbd"); }), "did you mean \"lmdb\"?");
}

}  // namespace convert_test
}  // namespace crema::tests
