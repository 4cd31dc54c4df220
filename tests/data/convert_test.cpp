#include "data/convert/convert.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "base/files.h"
#include "data/databases/class_names.h"
#include "data/databases/database_writer.h"
#include "data/databases/hdf5/hdf5_source.h"
#include "fixtures.h"
#include "pickles.h"

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
  ConvertOptions named = lmdb;
  named.format.classes = {"zero", "one"};
  expect_part(error_of([&] {
                convert_mnist(folder.file("images"), folder.file("labels"), folder.file("named"),
                              named, silent_log());
              }),
              "label 7 of image 0, but there are 2 names of classes, for labels 0 to 1");
  named.format.classes.assign(201, "x");
  for (size_t i = 0; i < named.format.classes.size(); ++i)
    named.format.classes[i] = cat("class ", i);
  convert_mnist(folder.file("images"), folder.file("labels"), folder.file("named"), named,
                silent_log());
  EXPECT_EQ(class_names_of_source(folder.file("named")).names, named.format.classes);
  EXPECT_TRUE(class_names_of_source(folder.file(name_of(lmdb))).empty());
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
              "cifar10_train_lmdb: exists already; -overwrite replaces it");
  folder.write("in/data_batch_2.bin", "short");
  std::filesystem::create_directory(folder.file("out2"));
  expect_part(error_of([&] { convert_cifar(folder.file("in"), folder.file("out2"), lmdb, log); }),
              "is not a CIFAR-10 binary file");
  EXPECT_TRUE(std::filesystem::is_empty(folder.file("out2")));
}

// Images of a pickled CIFAR: image i is full of 10 i, its label `labels[i]`.
std::string pickled(const std::string& key, const std::vector<int>& labels,
                    const std::string& other_key = "other") {
  std::string pixels;
  for (size_t i = 0; i < labels.size(); ++i) pixels.append(3072, static_cast<char>(10 * i));
  std::vector<int> others;
  for (const int label : labels) others.push_back(label / 5);
  return python2_dict({{"batch_label", python2_text("training batch 1 of 5")},
                       {key, python2_list(labels)},
                       {other_key, python2_list(others)},
                       {"data", python2_array(static_cast<int>(labels.size()), 3072, pixels)}});
}

std::vector<int> labels_in(const std::string& path) {
  const std::unique_ptr<Source> source = open_lmdb(path);
  std::vector<int> labels;
  Datum datum;
  for (int64_t i = 0; i < source->size(); ++i) {
    source->read(i, datum);
    labels.push_back(datum.label());
  }
  return labels;
}

TEST(Convert, PickledCifar) {
  const Folder folder;
  std::filesystem::create_directory(folder.file("out"));
  for (int batch = 1; batch <= 5; ++batch)
    folder.write(cat("in/data_batch_", batch), pickled("labels", {batch, 0, 9}));
  Lines log;
  const auto convert = [&](const ConvertOptions& options) {
    convert_cifar(folder.file("in"), folder.file("out"), options, log);
  };
  expect_part(error_of([&] { convert(lmdb); }), "test_batch: cannot open");
  folder.write("in/test_batch", pickled("labels", {7}));
  convert(lmdb);
  EXPECT_EQ(labels_in(folder.file("out/cifar10_train_lmdb")),
            (std::vector<int>{1, 0, 9, 2, 0, 9, 3, 0, 9, 4, 0, 9, 5, 0, 9}));
  EXPECT_EQ(labels_in(folder.file("out/cifar10_test_lmdb")), std::vector<int>{7});
  Datum datum;
  open_lmdb(folder.file("out/cifar10_train_lmdb"))->read(4, datum);
  EXPECT_EQ(datum.data(), std::string(3072, 10));
  ConvertOptions split = DataParameter::HDF5;
  split.split = 0.8;
  split.format.rows = 7;
  convert(split);
  EXPECT_EQ(folder.read("out/cifar10_train_hdf5.txt"),
            "cifar10_train_hdf5/0000.h5\ncifar10_train_hdf5/0001.h5\n");
  EXPECT_EQ(Hdf5Source(folder.file("out/cifar10_train_hdf5.txt"), {"data", "label"}).rows(), 12);
  EXPECT_EQ(Hdf5Source(folder.file("out/cifar10_val_hdf5.txt"), {"data", "label"}).rows(), 3);
  EXPECT_EQ(Hdf5Source(folder.file("out/cifar10_test_hdf5.txt"), {"data", "label"}).rows(), 1);
  EXPECT_TRUE(log.has("Class 0: 4 for training, 1 for validation"));
}

TEST(Convert, Cifar100HasFineAndCoarseLabels) {
  const Folder folder;
  std::string binary;
  for (int i = 0; i < 4; ++i) {
    binary += static_cast<char>(i);          // coarse
    binary += static_cast<char>(5 * i + 3);  // fine
    binary.append(3072, static_cast<char>(10 * i));
  }
  const std::string pickle = pickled("fine_labels", {3, 8, 13, 18}, "coarse_labels");
  for (const std::string ending : {".bin", ""}) {
    const std::string& content = ending.empty() ? pickle : binary;
    folder.write("in" + ending + "/train" + ending, content);
    folder.write("in" + ending + "/test" + ending, content);
    for (const bool coarse : {false, true}) {
      SCOPED_TRACE(cat(ending, " ", coarse));
      const std::string out = cat("out", ending, coarse);
      std::filesystem::create_directory(folder.file(out));
      convert_cifar(folder.file("in" + ending), folder.file(out), lmdb, silent_log(), coarse);
      for (const char* name : {"/cifar100_train_lmdb", "/cifar100_test_lmdb"}) {
        EXPECT_EQ(labels_in(folder.file(out + name)),
                  coarse ? (std::vector<int>{0, 1, 2, 3}) : (std::vector<int>{3, 8, 13, 18}));
        Datum datum;
        open_lmdb(folder.file(out + name))->read(3, datum);
        EXPECT_EQ(datum.data(), std::string(3072, 30));
      }
    }
  }
}

TEST(Convert, SaysWhatIsWrongWithCifar) {
  const Folder folder;
  std::filesystem::create_directory(folder.file("in"));
  const auto problem = [&](bool coarse = false) {
    return error_of(
        [&] { convert_cifar(folder.file("in"), folder.path(), lmdb, silent_log(), coarse); });
  };
  expect_part(problem(), "in: holds no CIFAR; expected data_batch_1.bin or");
  const auto train = [&](const std::string& content) {
    folder.write("in/train", content);
    return problem();
  };
  expect_part(train(pickled("labels", {3})), "train: has no \"fine_labels\"");
  expect_part(train(pickled("fine_labels", {3, 100})),
              "train: the label of an image is 100; cifar100 has the classes 0 to 99");
  expect_part(train(python2_dict({{"fine_labels", python2_list({1, 2})},
                                  {"data", python2_array(1, 3072, std::string(3072, 'x'))}})),
              "train: \"data\" is 1x3072, but the 2 \"fine_labels\" need 2x3072");
  folder.write("in/train.bin", std::string(3073, 'x'));
  expect_part(problem(), "train.bin: is not a CIFAR-100 binary file");
  folder.write("in/data_batch_1", "");
  folder.write("in/data_batch_1.bin", std::string(3073, 10));
  expect_part(problem(),
              "data_batch_1.bin: the label of an image is 10; cifar10 has the classes 0");
  expect_part(problem(true), "holds CIFAR-10, which has no coarse labels");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"in"});
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
