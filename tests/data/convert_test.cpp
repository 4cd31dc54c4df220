#include "data/convert.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/files.h"
#include "data/database_writer.h"
#include "fixtures.h"

namespace crema::tests {
namespace {

constexpr Backend lmdb = DataParameter::LMDB;

std::vector<std::pair<std::string, std::string>> records(const std::string& path,
                                                         Backend backend = lmdb) {
  const std::unique_ptr<Source> source = open_database(path, backend);
  std::vector<std::pair<std::string, std::string>> all;
  Datum datum;
  for (int64_t i = 0; i < source->size(); ++i) {
    source->read(i, datum);
    all.emplace_back(source->key(i), datum.SerializeAsString());
  }
  return all;
}

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

TEST(Convert, ImagesetMakesTheReferenceDatabases) {
  NEEDS_IMAGES();
  const Folder folder;
  struct Case {
    const char* name;
    const char* list;
    ImagesetOptions options;
  };
  const std::vector<Case> cases = {
      {"raw", "list.txt", {}},
      {"gray", "list.txt", {.gray = true}},
      {"resized", "list.txt", {.resize_height = 9, .resize_width = 14}},
      {"encoded", "list_color.txt", {.encoded = true}},
      {"encoded_gray", "list_color.txt", {.gray = true, .encoded = true}},
      {"encoded_jpg", "list_color.txt", {.encoded = true, .encode_type = "jpg"}},
      {"encoded_mixed", "list.txt", {.encoded = true}},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    const ImagesetResult result =
        convert_imageset(formats() + "/images/", formats() + "/" + one.list, folder.file(one.name),
                         one.options, silent_log());
    EXPECT_EQ(result.skipped, 0);
    EXPECT_EQ(records(folder.file(one.name)), records(formats() + "/lmdb_" + one.name));
  }
#ifdef CREMA_LEVELDB
  convert_imageset(formats() + "/images/", formats() + "/list.txt", folder.file("leveldb"),
                   {.backend = DataParameter::LEVELDB}, silent_log());
  EXPECT_EQ(records(folder.file("leveldb"), DataParameter::LEVELDB),
            records(formats() + "/lmdb_raw"));
#endif
}

TEST(Convert, ImagesetCountsWhatItCannotRead) {
  NEEDS_IMAGES();
  const Folder folder;
  Lines log;
  std::ofstream(folder.file("list.txt"))
      << "img00.png 7\r\nnothing.png 1\n\n../list.txt 2\nimg 09.png\t3\n";
  const ImagesetResult result =
      convert_imageset(formats() + "/images/", folder.file("list.txt"), folder.file("db"), {}, log);
  EXPECT_EQ(result.written, 2);
  EXPECT_EQ(result.skipped, 2);
  ASSERT_EQ(log.errors.size(), 3u);
  expect_part(log.errors[0],
              "Could not open or find file " + formats() + "/images/nothing.png: cannot open");
  expect_part(log.errors[1], "/images/../list.txt: its");
  EXPECT_EQ(log.errors[2], "2 of 4 images could not be read and are left out.");
  EXPECT_EQ(log.infos, (std::vector<std::string>{"A total of 4 images.", "Processed 2 files."}));
  const auto made = records(folder.file("db"));
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(made[0].first, "00000000_img00.png");
  EXPECT_EQ(made[1].first, "00000003_img 09.png");
}

TEST(Convert, ImagesetShufflesTheSameWayEveryTime) {
  NEEDS_IMAGES();
  const Folder folder;
  for (const char* name : {"one", "two"}) {
    convert_imageset(formats() + "/images/", formats() + "/list.txt", folder.file(name),
                     {.shuffle = true}, silent_log());
  }
  const auto one = records(folder.file("one"));
  EXPECT_EQ(one, records(folder.file("two")));
  EXPECT_EQ(one.size(), 20u);
  EXPECT_NE(one, records(formats() + "/lmdb_raw"));
}

TEST(Convert, ImagesetSaysWhatIsWrong) {
  NEEDS_IMAGES();
  const Folder folder;
  const auto convert = [&](const std::string& list, const ImagesetOptions& options) {
    folder.write("list.txt", list);
    return error_of([&] {
      convert_imageset(formats() + "/images/", folder.file("list.txt"), folder.file("db"), options,
                       silent_log());
    });
  };
  expect_part(convert("img00.png\n", {}), "list.txt:1: a line is `path label`");
  expect_part(convert("img00.png 1\nimg01.png cat\n", {}), "list.txt:2: a line is `path label`");
  expect_part(convert("", {}), "names no image");
  expect_part(convert("none.png 1\n", {}), "not one of its 1 images can be read");
  expect_part(convert("img00.png 1\nvar/v0.png 1\n", {.check_size = true}),
              "but the first image is 3x12x10");
  EXPECT_FALSE(file_exists(folder.file("db")));
  EXPECT_FALSE(file_exists(folder.file("db.tmp")));
  std::filesystem::create_directory(folder.file("db"));
  expect_part(convert("img00.png 1\n", {}), "db: exists already");
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
  std::filesystem::create_directory(folder.file("db.tmp"));
  folder.write("db.tmp/data.mdb", "left by a run that was killed");
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
  const std::unique_ptr<Source> source = open_lmdb(folder.file("db"));
  ASSERT_EQ(source->size(), 40);
  source->read(39, datum);
  EXPECT_EQ(datum.data(), std::string(1 << 20, static_cast<char>(39)));

  std::filesystem::create_directory(folder.file("other.tmp"));
  folder.write("other.tmp/letter.txt", "precious");
  expect_part(error_of([&] { create_database(folder.file("other"), lmdb); }), "is in the way");
  EXPECT_TRUE(file_exists(folder.file("other.tmp/letter.txt")));
  expect_part(error_of([&] { create_database(folder.file("a/b"), lmdb); }), "cannot be created");
  const std::string long_key(600, 'k');
  expect_part(error_of([&] { create_database(folder.file("keys"), lmdb)->put(long_key, datum); }),
              "at most 511");
}

TEST(Backends, AreFoundByName) {
  EXPECT_EQ(backend_named("LMDB"), lmdb);
  EXPECT_EQ(backend_named("leveldb"), DataParameter::LEVELDB);
  expect_part(error_of([&] { backend_named("lmbd"); }), "did you mean \"lmdb\"?");
}

constexpr const char* kVoc = R"(<?xml version="1.0"?>
<!-- made by hand -->
<annotation verified="yes"><filename>a</filename>
  <size><width>10</width><height>12</height><depth>3</depth></size>
  <object><name>cat</name><part><name>head</name><bndbox><xmin>9</xmin></bndbox></part>
    <difficult>1</difficult>
    <bndbox><xmin>1</xmin><ymin>3</ymin><xmax>5</xmax><ymax>6</ymax></bndbox></object>
  <object><name>dog</name><bndbox><xmin>0</xmin><ymin>0</ymin><xmax>10</xmax><ymax>12</ymax>
    </bndbox></object>
  <object><name>cat</name><bndbox><xmin>2.5</xmin><ymin>0</ymin><xmax>5</xmax><ymax>12</ymax>
    </bndbox></object><segmented/>
</annotation>
)";
constexpr const char* kLabelMap =
    "item { name: \"none\" label: 0 } item { name: \"cat\" label: 8 } item { name: \"dog\" label: "
    "3 }";

TEST(Convert, AnnosetStoresBoxesByClass) {
  NEEDS_IMAGES();
  const Folder folder;
  folder.write("a.xml", kVoc);
  folder.write("map", kLabelMap);
  std::filesystem::copy(formats() + "/images/img00.png", folder.file("a.png"));
  folder.write("list", "a.png a.xml\n");
  const ImagesetResult result =
      convert_annoset(folder.path() + "/", folder.file("list"), folder.file("map"),
                      folder.file("db"), {.encoded = true}, silent_log());
  EXPECT_EQ(result.written, 1);
  const auto source = open_lmdb(folder.file("db"));
  EXPECT_EQ(source->key(0), "00000000_a.png");
  AnnotatedDatum record;
  source->read(0, record);
  EXPECT_EQ(record.type(), AnnotatedDatum::BBOX);
  EXPECT_EQ(record.datum().data(), folder.read("a.png"));
  ASSERT_EQ(record.annotation_group_size(), 2);
  EXPECT_EQ(record.annotation_group(0).group_label(), 8);
  EXPECT_EQ(record.annotation_group(1).group_label(), 3);
  ASSERT_EQ(record.annotation_group(0).annotation_size(), 2);
  const NormalizedBBox& first = record.annotation_group(0).annotation(0).bbox();
  EXPECT_EQ(first.xmin(), 0.1f);
  EXPECT_EQ(first.ymin(), 0.25f);
  EXPECT_EQ(first.xmax(), 0.5f);
  EXPECT_EQ(first.ymax(), 0.5f);
  EXPECT_TRUE(first.difficult());
  EXPECT_EQ(record.annotation_group(0).annotation(1).instance_id(), 1);
  EXPECT_EQ(record.annotation_group(0).annotation(1).bbox().xmin(), 0.25f);
}

TEST(Convert, AnnosetSaysWhatIsWrong) {
  NEEDS_IMAGES();
  const Folder folder;
  std::filesystem::copy(formats() + "/images/img00.png", folder.file("a.png"));
  folder.write("good.xml", kVoc);
  folder.write("list", "a.png a.xml\na.png good.xml\n");
  const auto first_error = [&](const std::string& from, const std::string& to) {
    std::string text = kVoc;
    text.replace(text.find(from), from.size(), to);
    folder.write("a.xml", text);
    folder.write("map", kLabelMap);
    std::filesystem::remove_all(folder.file("db"));
    Lines log;
    EXPECT_EQ(convert_annoset(folder.path() + "/", folder.file("list"), folder.file("map"),
                              folder.file("db"), {}, log)
                  .skipped,
              1);
    return log.errors.at(0);
  };
  expect_part(first_error("cat", "cap"),
              "a.xml: the label map has no \"cap\" (did you mean \"cat\"?)");
  expect_part(first_error("</object>", "</objet>"), "a.xml:7: `</object>` was expected");
  expect_part(first_error("</annotation>", ""), "the file ends where a <tag> was expected");
  expect_part(first_error("<size>", "<sizes>"), "`</sizes>` was expected");
  expect_part(first_error("<width>10", "<width>"), "<size> needs a number as <width>, not ``");
  folder.write("map", "item: 3");
  expect_part(error_of([&] {
                convert_annoset("", folder.file("list"), folder.file("map"), folder.file("db2"), {},
                                silent_log());
              }),
              "map: is not a label map");
}

}  // namespace
}  // namespace crema::tests
