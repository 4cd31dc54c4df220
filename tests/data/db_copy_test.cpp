// `crema db copy`, `shuffle`, `merge` and `split`: databases made from others.
#include "data/convert/db_copy.h"

#include <algorithm>
#include <set>

#include "data/databases/hdf5/hdf5_file.h"
#include "data/images/image.h"
#include "db_records.h"

namespace crema::tests {
namespace db_copy_test {

std::vector<std::shared_ptr<const Source>> sources(const std::vector<std::string>& paths) {
  std::vector<std::shared_ptr<const Source>> found;
  for (const std::string& path : paths) found.push_back(find_database(path).source);
  return found;
}

int64_t copied(const std::vector<std::string>& from, const std::string& to,
               const ConvertOptions& options = {}, bool shuffle = false) {
  return copy_records(sources(from), to, shuffle, options, silent_log());
}

TEST(DbCopy, KeepsKeysAndRecordsInEveryKind) {
  const Folder folder;
  std::vector<Backend> kinds = {DataParameter::LMDB, DataParameter::HDF5};
#ifdef CREMA_LEVELDB
  kinds.push_back(DataParameter::LEVELDB);
#endif
  for (const Backend from : kinds) {
    const std::string path = write_numbered(folder.file(cat("from", from)), 5, from);
    const std::string before = listed(path);
    EXPECT_EQ(before, "00000000:0:0 00000001:1:1 00000002:2:2 00000003:3:0 00000004:4:1");
    for (const Backend to : kinds) {
      SCOPED_TRACE(cat(name_of(from), " to ", name_of(to)));
      const std::string copy = folder.file(cat("copy", from, "_", to));
      EXPECT_EQ(copied({path}, copy, to), 5);
      EXPECT_EQ(find_database(copy).backend, to);
      EXPECT_EQ(listed(copy), before);
    }
  }
}

TEST(DbCopy, KeepsWhatItDoesNotKnow) {
  const Folder folder;
  AnnotatedDatum record;
  *record.mutable_datum() = numbered_datum(1, 2);
  record.mutable_datum()->add_labels(0.5f);
  record.add_annotation_group()->set_group_label(3);
  record.GetReflection()->MutableUnknownFields(&record)->AddVarint(77, 5);
  {
    const auto writer = create_lmdb(folder.file("x"));
    writer->put("a", record);
    writer->finish();
  }
  copied({folder.file("x")}, folder.file("y"));
  AnnotatedDatum read;
  open_lmdb(folder.file("y"))->read(0, read);
  EXPECT_EQ(read.SerializeAsString(), record.SerializeAsString());
}

TEST(DbCopy, DecodesImagesForHdf5) {
  NEEDS_IMAGES();
  const Folder folder;
  Image image{3, 1, 2, {1, 2, 3, 4, 5, 6}};
  Datum datum;
  datum.set_data(encode_image(image, "png"));
  datum.set_encoded(true);
  datum.set_label(8);
  {
    const auto writer = create_lmdb(folder.file("x"));
    writer->put("a", datum);
    writer->finish();
  }
  copied({folder.file("x")}, folder.file("y"), DataParameter::HDF5);
  const Hdf5File file(folder.file("y/0000.h5"));
  EXPECT_EQ(file.shape("data"), Shape({1, 3, 1, 2}));
  EXPECT_EQ(file.floats("data"), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(file.floats("label"), std::vector<float>{8});
}

// If names cannot be exchanged the old database has another name for a moment.
TEST(DbCopy, FinishesAReplacementThatWasKilled) {
  const Folder folder;
  const std::string from = write_numbered(folder.file("x"), 3), to = folder.file("y");
  ConvertOptions replace;
  replace.format.overwrite = true;
  copied({from}, to, replace, false);
  const std::string whole = listed(to);
  std::filesystem::rename(to, to + ".replaced");
  expect_part(error_of([&] { listed(to); }),
              "y: no such database; " + to + ".replaced is the old one");
  // Without -overwrite it is there again.
  EXPECT_ANY_THROW(copied({from}, to, ConvertOptions(), false));
  EXPECT_EQ(listed(to), whole);
  // Killed after the new one was in place.
  std::filesystem::copy(to, to + ".replaced");
  copied({from}, to, replace, false);
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"x", "y"}));
  // Not ours.
  folder.write("y.replaced/notes.txt", "mine");
  copied({from}, to, replace, false);
  EXPECT_TRUE(folder.has("y.replaced/notes.txt"));
}

TEST(DbShuffle, GivesNumbersAndDependsOnTheSeedAlone) {
  const Folder folder;
  const std::string from = write_numbered(folder.file("x"), 60);
  const auto shuffled = [&](const std::string& source, uint64_t seed) {
    ConvertOptions options;
    options.seed = seed;
    options.format.overwrite = true;
    copied({source}, folder.file("y"), options, true);
    return listed(folder.file("y"));
  };
  const std::string one = shuffled(from, 1);
  EXPECT_EQ(shuffled(from, 1), one);
  EXPECT_NE(shuffled(from, 2), one);
  std::set<std::string> records;
  int rises = 0, before = -1, position = 0;
  for (const std::string& record : split(one, ' ')) {
    // The number and the old key.
    EXPECT_EQ(record.substr(0, 9), numbered_key(position++, 8) + "_");
    records.insert(record.substr(9));
    const int value = std::stoi(split(record, ':')[1]);
    rises += value > before;
    before = value;
  }
  EXPECT_EQ(records.size(), 60u);
  EXPECT_EQ(*records.begin(), "00000000:0:0");
  EXPECT_GT(rises, 15);
  EXPECT_LT(rises, 45);
  // The next one does not grow the keys.
  shuffled(from, 1);
  copied({folder.file("y")}, folder.file("z"), ConvertOptions(), true);
  EXPECT_EQ(split(listed(folder.file("z")), ':')[0].size(), 17u);
}

TEST(DbMerge, KeepsKeysUnlessTwoAreEqual) {
  const Folder folder;
  const std::string a = write_numbered(folder.file("a"), 2),
                    b = write_numbered(folder.file("b"), 2, DataParameter::LMDB, "b", 10),
                    c = write_numbered(folder.file("c"), 2, DataParameter::LMDB, "", 20);
  EXPECT_EQ(copied({b, a}, folder.file("ba")), 4);
  EXPECT_EQ(listed(folder.file("ba")), "00000000:0:0 00000001:1:1 b00000000:10:0 b00000001:11:1");
  Lines log;
  copy_records(sources({c, a}), folder.file("ca"), false, {}, log);
  EXPECT_EQ(listed(folder.file("ca")),
            "00000000_00000000:20:0 00000001_00000001:21:1 00000002_00000000:0:0 "
            "00000003_00000001:1:1");
  expect_part(log.infos[0], "The key \"00000000\" is in two of the databases");
}

TEST(DbMerge, RefusesRecordsOfTwoTypes) {
  const Folder folder;
  const std::string a = write_numbered(folder.file("a"), 2), b = folder.file("b");
  AnnotatedDatum record;
  *record.mutable_datum() = numbered_datum(1, 2);
  const auto writer = create_lmdb(b);
  writer->put("a", record);
  writer->finish();
  expect_part(error_of([&] {
                copied({a, b}, folder.file("ab"));
              }),
              "b: its records are of type AnnotatedDatum, but those of ");
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"a", "b"}));
}

TEST(DbSplit, GivesEachPartItsShareOfEveryClass) {
  const Folder folder;
  const std::string from = write_numbered(folder.file("x_lmdb"), 30);
  ConvertOptions options;
  options.split = 0.8;
  copied({from}, from, options);
  std::set<std::string> all;
  const std::pair<std::string, int> parts[] = {{"x_train_lmdb", 8}, {"x_val_lmdb", 2}};
  for (const auto& [part, each] : parts) {
    int classes[3] = {};
    for (const std::string& record : split(listed(folder.file(part)), ' ')) {
      ++classes[record.back() - '0'];
      all.insert(record.substr(9));
    }
    for (const int count : classes) EXPECT_EQ(count, each) << part;
  }
  EXPECT_EQ(all.size(), 30u);
}

TEST(DbCopy, LeavesNothingHalfWritten) {
  const Folder folder;
  const std::string from = folder.file("x"), there = write_numbered(folder.file("there"), 2);
  {
    const auto writer = create_lmdb(from);
    writer->put("a", numbered_datum(1, 0));
    Datum nothing;
    nothing.set_label(1);
    writer->put("b", nothing);
    writer->finish();
  }
  const std::string before = listed(there);
  ConvertOptions replace;
  replace.format.overwrite = true;
  expect_part(error_of([&] { copied({from}, there, replace); }),
              "x, record 1 (key \"b\"): it is no Datum, as the others are, or holds nothing");
  expect_part(error_of([&] { copied({there}, there); }), "there: exists already; -overwrite");
  EXPECT_EQ(listed(there), before);
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"there", "x"}));
  // In its own place.
  copied({there}, there, replace, true);
  EXPECT_NE(listed(there), before);
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"there", "x"}));
}

}  // namespace db_copy_test
}  // namespace crema::tests
