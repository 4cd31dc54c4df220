// Records written as HDF5 files, which HDF5Data reads.
#include <hdf5.h>

#include "data/databases/database_writer.h"
#include "data/databases/hdf5/hdf5_file.h"
#include "data/databases/hdf5/hdf5_source.h"
#include "fixtures.h"

namespace crema::tests {
namespace hdf5_records_test {

DatabaseFormat format_of(int64_t rows, int compression = 0, float scale = 1) {
  DatabaseFormat format(DataParameter::HDF5);
  format.rows = rows;
  format.compression = compression;
  format.scale = scale;
  return format;
}

// Two channels of one row and three columns; record i begins with the byte 10 i.
Datum record(int i) {
  Datum datum;
  datum.set_channels(2);
  datum.set_height(1);
  datum.set_width(3);
  datum.set_label(i % 4);
  for (int k = 0; k < 6; ++k) datum.mutable_data()->push_back(static_cast<char>(10 * i + k));
  return datum;
}

void write(const std::string& path, const DatabaseFormat& format, int count) {
  const auto writer = create_database(path, format);
  for (int i = 0; i < count; ++i) writer->put(numbered_key(i, 8), record(i));
  writer->finish();
}

TEST(Hdf5Records, AreReadByHdf5Data) {
  const Folder folder;
  for (const int compression : {0, 6}) {
    SCOPED_TRACE(compression);
    const std::string name = cat("set", compression);
    write(folder.file(name), format_of(4, compression, 0.5f), 10);
    EXPECT_EQ(folder.read(name + ".txt"),
              cat(name, "/0000.h5\n", name, "/0001.h5\n", name, "/0002.h5\n"));
    const Hdf5File last(folder.file(name + "/0002.h5"));
    EXPECT_EQ(last.shape("data"), (Shape{2, 2, 1, 3}));
    EXPECT_EQ(last.shape("label"), (Shape{2}));
    Hdf5Source source(folder.file(name + ".txt"), {"data", "label"});
    ASSERT_EQ(source.rows(), 10);
    for (int i = 0; i < 10; ++i) {
      const Hdf5Source::Row row = source.locate(i);
      EXPECT_EQ(source.at(row, 1)[0], static_cast<float>(i % 4));
      for (int k = 0; k < 6; ++k)
        EXPECT_EQ(source.at(row, 0)[k], static_cast<float>(10 * i + k) * 0.5f) << i;
    }
  }
}

// Name, type and number of axes of everything in a file, as HDF5's library sees it.
std::vector<std::string> datasets_of(const std::string& path) {
  std::vector<std::string> found;
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  const auto add = [](hid_t group, const char* name, const H5L_info_t*, void* found) -> herr_t {
    const hid_t data = H5Dopen2(group, name, H5P_DEFAULT), type = H5Dget_type(data),
                space = H5Dget_space(data);
    static_cast<std::vector<std::string>*>(found)->push_back(
        cat(name, H5Tequal(type, H5T_IEEE_F32LE) > 0 ? ": float32, " : ": other, ",
            H5Sget_simple_extent_ndims(space), " axes"));
    H5Sclose(space);
    H5Tclose(type);
    H5Dclose(data);
    return 0;
  };
  EXPECT_GE(H5Literate(file, H5_INDEX_NAME, H5_ITER_INC, nullptr, add, &found), 0) << path;
  H5Fclose(file);
  return found;
}

// Caffe's own file comes from HDF5Output, which gives labels four axes; Caffe's examples, and what
// people write for HDF5Data, have one.
TEST(Hdf5Records, HaveTheNamesAndTypesOfTheReference) {
  const Folder folder;
  write(folder.file("x"), format_of(100), 3);
  EXPECT_EQ(datasets_of(formats() + "/hdf5_output.h5"),
            (std::vector<std::string>{"data: float32, 4 axes", "label: float32, 4 axes"}));
  EXPECT_EQ(datasets_of(folder.file("x/0000.h5")),
            (std::vector<std::string>{"data: float32, 4 axes", "label: float32, 1 axes"}));
}

TEST(Hdf5Records, AreSmallerWithGzip) {
  const Folder folder;
  const auto size_of = [&](const std::string& name, int compression) {
    write(folder.file(name), format_of(10000, compression), 25);
    const auto writer = create_database(folder.file(name + "_large"), format_of(9, compression));
    Datum datum;
    datum.set_channels(1);
    datum.set_height(300);
    datum.set_width(300);
    for (int i = 0; i < 300 * 300; ++i) datum.mutable_data()->push_back(static_cast<char>(i / 300));
    for (int i = 0; i < 20; ++i) writer->put(numbered_key(i, 8), datum);
    writer->finish();
    const Hdf5File file(folder.file(name + "_large/0000.h5"));
    EXPECT_EQ(file.floats("data")[9 * 90000 - 1], 299 % 256);
    return folder.read(name + "_large/0000.h5").size();
  };
  EXPECT_LT(size_of("packed", 9) * 50, size_of("plain", 0));
}

TEST(Hdf5Records, MayBeFloatsWithoutLabels) {
  const Folder folder;
  const auto writer = create_database(folder.file("x"), format_of(10));
  Datum datum;
  datum.set_channels(2);
  datum.set_height(1);
  datum.set_width(1);
  datum.add_float_data(0.25f);
  datum.add_float_data(-3);
  writer->put("a", datum);
  writer->finish();
  const Hdf5File file(folder.file("x/0000.h5"));
  EXPECT_EQ(file.floats("data"), (std::vector<float>{0.25f, -3}));
  EXPECT_FALSE(file.has("label"));
}

TEST(Hdf5Records, SayWhatIsWrong) {
  const Folder folder;
  const auto put = [&](const std::function<void(DatabaseWriter&)>& second) {
    return error_of([&] {
      const auto writer = create_database(folder.file("x"), format_of(10));
      writer->put("first", record(0));
      second(*writer);
      writer->finish();
    });
  };
  Datum other = record(1);
  other.set_height(3);
  other.set_width(1);
  expect_part(put([&](DatabaseWriter& writer) { writer.put("b", other); }),
              "x: record \"b\" is 2x3x1, but the first one is 2x1x3; all must have one shape");
  Datum encoded;
  encoded.set_encoded(true);
  expect_part(put([&](DatabaseWriter& writer) { writer.put("b", encoded); }),
              "record \"b\" is an encoded image, but HDF5Data reads values");
  Datum damaged = record(1);
  damaged.set_width(4);
  expect_part(put([&](DatabaseWriter& writer) { writer.put("b", damaged); }),
              "record \"b\" cannot be written: the Datum is damaged");
  Datum large = record(1);
  large.set_label((1 << 24) + 1);
  expect_part(put([&](DatabaseWriter& writer) { writer.put("b", large); }),
              "the label 16777217 cannot be kept");
  expect_part(put([&](DatabaseWriter& writer) { writer.put("b", AnnotatedDatum()); }),
              "hold no boxes");
  EXPECT_TRUE(folder.names().empty());
  const auto open = [&](const std::string& name, const DatabaseFormat& format) {
    return error_of([&] { create_database(folder.file(name), format); });
  };
  expect_part(open("x.h5", format_of(1)), "give a name without .h5");
  expect_part(open("x", format_of(0)), "at least 1 row, not 0");
  expect_part(open("x", format_of(1, 10)), "the level of compression is 10");
  folder.write("list.txt", "a.png 1\n");
  expect_part(open("list", format_of(1)), "list.txt: exists already");
  DatabaseFormat replacing = format_of(1);
  replacing.overwrite = true;
  expect_part(open("list", replacing), "list.txt: is no list of HDF5 files, so it is not replaced");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"list.txt"});
}

TEST(Hdf5Records, AFullDiskLeavesNothing) {
  const Folder folder;
  for (const rlim_t bytes : {1, 3000}) {
    expect_part(error_of([&] {
                  const FileSizeLimit limit(bytes);
                  write(folder.file("x"), format_of(100), 250);
                }),
                folder.file("x/0000.h5") + ": cannot write: ");
    EXPECT_TRUE(folder.names().empty());
  }
}

TEST(Overwriting, ReplacesDatabasesAlone) {
  const Folder folder;
  const auto format = [](Backend backend, bool overwrite) {
    DatabaseFormat made(backend);
    made.overwrite = overwrite;
    return made;
  };
  for (const Backend backend : {DataParameter::LMDB, DataParameter::LEVELDB, DataParameter::HDF5}) {
#ifndef CREMA_LEVELDB
    if (backend == DataParameter::LEVELDB) continue;
#endif
    SCOPED_TRACE(name_of(backend));
    const std::string path = folder.file("db");
    for (const int count : {3, 5}) {
      write(path, format(backend, true), count);
      if (backend == DataParameter::HDF5) {
        EXPECT_EQ(Hdf5Source(path + ".txt", {"data"}).rows(), count);
      } else {
        EXPECT_EQ(open_database(path, backend)->size(), count);
      }
    }
    expect_part(error_of([&] { create_database(path, format(backend, false)); }),
                "db: exists already");
    // A failure keeps the old one, and nothing else.
    const std::vector<std::string> before = folder.names();
    {
      const auto unfinished = create_database(path, format(backend, true));
      unfinished->put("a", record(0));
    }
    EXPECT_EQ(folder.names(), before);
  }
  folder.write("folder/0000.h5", "");
  folder.write("folder/letter.txt", "precious");
  folder.write("file", "precious");
  std::filesystem::create_directory(folder.file("empty"));
  for (const char* name : {"folder", "file", "empty"}) {
    expect_part(
        error_of([&] { create_database(folder.file(name), format(DataParameter::LMDB, true)); }),
        cat(name, ": is no database, so it is not replaced"));
  }
  EXPECT_EQ(folder.read("folder/letter.txt"), "precious");
}

}  // namespace hdf5_records_test
}  // namespace crema::tests
