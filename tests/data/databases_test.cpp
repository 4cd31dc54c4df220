#include <gtest/gtest.h>
#include <hdf5.h>
#include <sys/stat.h>

#include <fstream>

#include "base/files.h"
#include "data/databases/database_writer.h"
#include "data/databases/source.h"
#include "data/images/record.h"
#include "fixtures.h"

namespace crema::tests {
namespace databases_test {

struct Stored {
  std::string key, bytes;
  int label = 0, channels = 0, height = 0, width = 0, encoded = 0;
};

std::vector<Stored> stored_records(const std::string& path) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  EXPECT_GE(file, 0) << path;
  std::vector<Stored> records;
  while (true) {
    char group[8];
    std::snprintf(group, sizeof(group), "%02zu", records.size());
    if (H5Lexists(file, group, H5P_DEFAULT) <= 0) break;
    const auto number = [&](const char* name) {
      const hid_t attribute = H5Aopen_by_name(file, group, name, H5P_DEFAULT, H5P_DEFAULT);
      int value = 0;
      H5Aread(attribute, H5T_NATIVE_INT, &value);
      H5Aclose(attribute);
      return value;
    };
    Stored record;
    const hid_t attribute = H5Aopen_by_name(file, group, "key", H5P_DEFAULT, H5P_DEFAULT);
    const hid_t type = H5Aget_type(attribute);
    record.key.resize(H5Tget_size(type));
    H5Aread(attribute, type, record.key.data());
    record.key.resize(record.key.find_last_not_of('\0') + 1);
    H5Tclose(type);
    H5Aclose(attribute);
    record.label = number("label");
    record.channels = number("channels");
    record.height = number("height");
    record.width = number("width");
    record.encoded = number("encoded");
    const hid_t data = H5Dopen2(file, (std::string(group) + "/bytes").c_str(), H5P_DEFAULT);
    const hid_t space = H5Dget_space(data);
    record.bytes.resize(H5Sget_simple_extent_npoints(space));
    H5Dread(data, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, record.bytes.data());
    H5Sclose(space);
    H5Dclose(data);
    records.push_back(std::move(record));
  }
  H5Fclose(file);
  return records;
}

void expect_content(const Source& source, const std::vector<Stored>& records) {
  ASSERT_GT(records.size(), 0u);
  ASSERT_EQ(source.size(), static_cast<int64_t>(records.size()));
  for (size_t i = 0; i < records.size(); ++i) {
    SCOPED_TRACE(i);
    Datum datum;
    source.read(static_cast<int64_t>(i), datum);
    EXPECT_EQ(source.key(static_cast<int64_t>(i)), records[i].key);
    EXPECT_EQ(datum.label(), records[i].label);
    EXPECT_EQ(datum.channels(), records[i].channels);
    EXPECT_EQ(datum.height(), records[i].height);
    EXPECT_EQ(datum.width(), records[i].width);
    EXPECT_EQ(datum.encoded(), records[i].encoded != 0);
    EXPECT_EQ(datum.data(), records[i].bytes);
  }
}

TEST(Databases, LmdbHoldsTheReferenceRecords) {
  for (const char* name :
       {"raw", "gray", "resized", "encoded", "encoded_gray", "encoded_jpg", "encoded_mixed"}) {
    SCOPED_TRACE(name);
    const std::unique_ptr<Source> source =
        open_database(formats() + "/lmdb_" + name, DataParameter::LMDB);
    expect_content(*source, stored_records(formats() + "/content_lmdb_" + name + ".h5"));
  }
}

#ifdef CREMA_LEVELDB
TEST(Databases, LeveldbHoldsTheReferenceRecords) {
  for (const std::string name : {"raw", "gray", "encoded", "fresh"}) {
    SCOPED_TRACE(name);
    const std::unique_ptr<Source> source =
        open_database(formats() + "/leveldb_" + name, DataParameter::LEVELDB);
    const std::string content = name == "fresh" ? "raw" : name;
    expect_content(*source, stored_records(formats() + "/content_leveldb_" + content + ".h5"));
  }
}

TEST(Databases, LeveldbLearnsItsSizeOnTheWay) {
  const std::unique_ptr<Source> source = open_leveldb(formats() + "/leveldb_raw");
  EXPECT_EQ(source->record_index(3).index, 3);
  EXPECT_EQ(source->record_index(19).epoch, 0);
  EXPECT_EQ(source->record_index(20).epoch, 1);
  EXPECT_EQ(source->record_index(20).index, 0);
  EXPECT_EQ(source->record_index(47).epoch, 2);
  EXPECT_EQ(source->record_index(47).index, 7);
  EXPECT_EQ(source->size(), 20);
}

TEST(Databases, LeveldbCanBeOpenTwiceAndReadOnlyAndStaysAsItIs) {
  const Folder folder;
  for (const std::string name : {"raw", "fresh"}) {
    SCOPED_TRACE(name);
    const std::string path = folder.copy_golden("formats/leveldb_" + name, name);
    const std::map<std::string, std::string> before = contents(path);
    ASSERT_EQ(chmod(path.c_str(), 0555), 0);
    {
      const std::unique_ptr<Source> first = open_leveldb(path);
      { EXPECT_EQ(open_leveldb(path)->size(), 20); }
      Datum datum;
      first->read(19, datum);
      EXPECT_EQ(datum.label(), 3);
    }
    chmod(path.c_str(), 0755);
    EXPECT_EQ(contents(path), before);
  }
}

TEST(Databases, LeveldbIsWrittenAsTables) {
  const Folder folder;
  const std::string path = folder.file("l");
  const std::unique_ptr<DatabaseWriter> writer = create_database(path, DataParameter::LEVELDB);
  for (int i = 0; i < 2500; ++i) {
    Datum datum;
    datum.set_label(i);
    writer->put(numbered_key(i, 5), datum);
  }
  writer->finish();
  int tables = 0;
  for (const auto& [name, bytes] : contents(path)) {
    if (name.ends_with(".log")) {
      EXPECT_LT(bytes.size(), 100u) << name;
    }
    tables += name.ends_with(".ldb");
  }
  EXPECT_GE(tables, 1);
  const std::unique_ptr<Source> source = open_leveldb(path);
  EXPECT_EQ(source->size(), 2500);
  Datum datum;
  source->read(2499, datum);
  EXPECT_EQ(datum.label(), 2499);
}
#endif

TEST(Databases, LmdbCanBeOpenTwiceAndReadOnly) {
  const Folder folder;
  const std::string path = folder.copy_golden("formats/lmdb_raw", "lmdb_raw");
  ASSERT_EQ(chmod((path + "/data.mdb").c_str(), 0444), 0);
  ASSERT_EQ(chmod(path.c_str(), 0555), 0);
  const std::unique_ptr<Source> first = open_lmdb(path);
  { const std::unique_ptr<Source> second = open_lmdb(path); }
  Datum datum;
  first->read(19, datum);
  EXPECT_EQ(datum.label(), 3);
  EXPECT_FALSE(file_exists(path + "/lock.mdb"));
  chmod(path.c_str(), 0755);
}

TEST(Databases, SayWhatIsWrong) {
  const Folder folder;
  const auto lmdb = [&](const std::string& path) {
    return error_of([&] { open_database(path, DataParameter::LMDB); });
  };
  const auto leveldb = [&](const std::string& path) {
    return error_of([&] { open_database(path, DataParameter::LEVELDB); });
  };
  expect_part(lmdb(folder.file("nothing")), "no such database");
  expect_part(lmdb(folder.file("nothing")), folder.file("nothing"));
  expect_part(leveldb(folder.file("nothing")), "no such database");

  std::filesystem::create_directory(folder.file("hollow"));
  expect_part(lmdb(folder.file("hollow")), "there is no data.mdb");
#ifdef CREMA_LEVELDB
  expect_part(leveldb(folder.file("hollow")), "there is no file CURRENT");
#endif
  EXPECT_TRUE(std::filesystem::is_empty(folder.file("hollow")));

  std::filesystem::create_directory(folder.file("garbage"));
  folder.write("garbage/data.mdb", std::string(100000, 'x'));
  expect_part(lmdb(folder.file("garbage")), "is not an LMDB");
  folder.write("garbage/data.mdb", "");
  expect_part(lmdb(folder.file("garbage")), "is empty");
  folder.write("text", "hello");
  expect_part(lmdb(folder.file("text")), "is not an LMDB");
#ifdef CREMA_LEVELDB
  expect_part(leveldb(folder.file("text")), "is not a LevelDB");
#endif

  expect_part(lmdb(formats() + "/leveldb_raw"), "write `backend: LEVELDB`");
  expect_part(leveldb(formats() + "/lmdb_raw"), "write `backend: LMDB`");
  expect_part(error_of([&] { open_database(folder.file("text"), DataParameter::HDF5); }),
              "HDF5Data");

  const std::string cut = folder.copy_golden("formats/lmdb_raw", "lmdb_raw");
  std::filesystem::resize_file(cut + "/data.mdb", 12288);
  expect_part(lmdb(cut), "is cut off");

#ifdef CREMA_LEVELDB
  std::filesystem::create_directory(folder.file("broken"));
  folder.write("broken/CURRENT", "MANIFEST-000009\n");
  expect_part(leveldb(folder.file("broken")), "cannot open the LevelDB");
#endif
}

TEST(Databases, EmptyOnesAreRefused) {
  const Folder folder;
  create_database(folder.file("l"), DataParameter::LMDB)->finish();
  expect_part(error_of([&] { open_lmdb(folder.file("l")); }), "holds no record");
#ifdef CREMA_LEVELDB
  create_database(folder.file("v"), DataParameter::LEVELDB)->finish();
  expect_part(error_of([&] { open_leveldb(folder.file("v")); }), "holds no record");
#endif
}

TEST(Records, DamageIsNoticed) {
  Record record;
  const auto reason = [&] { return error_of([&] { decode(record, Color::as_stored); }); };
  expect_part(reason(), "holds no sample");
  record.datum.set_channels(3);
  record.datum.set_height(2);
  record.datum.set_width(2);
  expect_part(reason(), "asks for 12 values, but it holds 0");
  record.datum.set_data("short");
  expect_part(reason(), "asks for 12 bytes, but it holds 5");
  record.datum.set_height(2000000000);
  expect_part(reason(), "is damaged");
}

TEST(Records, FilesThatAreNoImagesAreNoticed) {
  NEEDS_IMAGES();
  Record record;
  const auto reason = [&] { return error_of([&] { decode(record, Color::as_stored); }); };
  record.datum.set_encoded(true);
  expect_part(reason(), "not an image");
  record.datum.set_data("short");
  expect_part(reason(), "not an image");
}

TEST(Records, FloatValuesArePossible) {
  Record record;
  record.datum.set_channels(1);
  record.datum.set_height(1);
  record.datum.set_width(2);
  record.datum.add_float_data(0.5f);
  record.datum.add_float_data(-3);
  record.datum.set_label(4);
  decode(record, Color::color);
  EXPECT_EQ(record.shape(), Shape({1, 1, 2}));
  EXPECT_EQ(record.values[1], -3);
  EXPECT_EQ(record.bytes, nullptr);
  EXPECT_EQ(record.label, 4);
}

}  // namespace databases_test
}  // namespace crema::tests
