// Mean images: on any number of threads, of any kind of database. transform_test.cpp compares with
// Caffe's results.
#include "data/convert/compute_mean.h"

#include <cmath>

#include "data/images/image.h"
#include "db_records.h"

namespace crema::tests {
namespace compute_mean_test {

// Record i of a database whose kinds of records change: encoded pictures, planes of bytes, and
// numbers, whose sum depends on its order.
Datum changing(int i) {
  Datum datum;
  datum.set_channels(3);
  datum.set_height(2);
  datum.set_width(5);
  for (int k = 0; k < 30; ++k) {
    if (i % 3 == 0) {
      datum.add_float_data(std::exp(static_cast<float>((i * 7 + k) % 40 - 20)));
    } else {
      datum.mutable_data()->push_back(static_cast<char>((i * i + 31 * k) % 256));
    }
  }
#ifdef CREMA_OPENCV
  if (i % 3 == 1) {
    Image image{3, 2, 5, {datum.data().begin(), datum.data().end()}};
    datum.set_data(encode_image(image, "png"));
    datum.set_encoded(true);
  }
#endif
  return datum;
}

std::string write_changing(const std::string& path, int count) {
  const auto writer = create_database(path, DataParameter::LMDB);
  for (int i = 0; i < count; ++i) writer->put(numbered_key(i, 8), changing(i));
  writer->finish();
  return path;
}

TEST(ComputeMean, DoesNotDependOnThreads) {
  const Folder folder;
  // Blocks have 32 records: less than one, one, and some with a rest.
  for (const int count : {5, 32, 333}) {
    SCOPED_TRACE(count);
    const auto source = open_lmdb(write_changing(folder.file(cat("x", count)), count));
    const Mean one = compute_mean(*source, 1, silent_log());
    EXPECT_EQ(one.shape, (Shape{3, 2, 5}));
    for (const int threads : {2, 3, 8})
      EXPECT_EQ(compute_mean(*source, threads, silent_log()).values, one.values) << threads;
    std::vector<double> sums(30);
    for (int i = 0; i < count; ++i) {
      Record record;
      record.datum = changing(i);
      decode(record, Color::as_stored);
      for (int k = 0; k < 30; ++k) {
        const int at = record.interleaved ? k % 10 * 3 + k / 10 : k;
        sums[static_cast<size_t>(k)] +=
            record.bytes ? record.bytes[at] : static_cast<double>(record.values[at]);
      }
    }
    for (size_t k = 0; k < 30; ++k)
      EXPECT_FLOAT_EQ(one.values[k], static_cast<float>(sums[k] / count)) << k;
  }
}

TEST(ComputeMean, TakesAnyKindOfDatabase) {
  const Folder folder;
  std::vector<Backend> kinds = {DataParameter::LMDB, DataParameter::HDF5};
#ifdef CREMA_LEVELDB
  kinds.push_back(DataParameter::LEVELDB);
#endif
  for (const Backend kind : kinds) {
    SCOPED_TRACE(name_of(kind));
    const FoundDatabase database =
        find_database(write_numbered(folder.file(cat("x", kind)), 40, kind));
    Lines log;
    const Mean mean = compute_mean(*database.source, 2, log);
    EXPECT_EQ(mean.values, (std::vector<float>{19.5, 19.5, 19.5, 255}));
    EXPECT_EQ(log.infos, (std::vector<std::string>{"Starting iteration", "Processed 40 files."}));
  }
  // Pictures with boxes.
  {
    const auto writer = create_lmdb(folder.file("boxes"));
    for (int i = 0; i < 3; ++i) {
      AnnotatedDatum record;
      *record.mutable_datum() = numbered_datum(i, 0);
      record.add_annotation_group()->set_group_label(3);
      writer->put(numbered_key(i, 8), record);
    }
    writer->finish();
  }
  EXPECT_EQ(compute_mean(*open_lmdb(folder.file("boxes")), 2, silent_log()).values,
            (std::vector<float>{1, 1, 1, 255}));
}

TEST(ComputeMean, NamesTheFirstRecordThatIsWrong) {
  const Folder folder;
  {
    const auto writer = create_lmdb(folder.file("x"));
    for (int i = 0; i < 100; ++i) {
      Datum datum = numbered_datum(i, 0);
      if (i == 40 || i == 90) datum.set_width(3);
      if (i == 60) datum.set_data("1234567"), datum.set_width(7), datum.set_height(1);
      writer->put(numbered_key(i, 8), datum);
    }
    writer->finish();
    SparseDatum sparse;
    sparse.set_size(5);
    sparse.add_data(1);
    sparse.add_indices(2);
    const auto vectors = create_lmdb(folder.file("sparse"));
    vectors->put("a", sparse);
    vectors->finish();
  }
  const auto problem = [&](const std::string& name, int threads) {
    return error_of([&] { compute_mean(*open_lmdb(folder.file(name)), threads, silent_log()); });
  };
  for (const int threads : {1, 2, 8}) {
    expect_part(problem("x", threads),
                "x, record 40 (key \"00000040\"): the Datum is damaged: its shape 1x2x3 asks for");
  }
  expect_part(problem("sparse", 2), "sparse: holds sparse vectors; a mean image is made of images");
}

}  // namespace compute_mean_test
}  // namespace crema::tests
