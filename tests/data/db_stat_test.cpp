// Results of `crema db stat` and `crema db verify`.
#include "data/convert/db_stat.h"

#include <cmath>
#include <tuple>

#include "data/convert/db_verify.h"
#include "data/images/image.h"
#include "db_records.h"

namespace crema::tests {
namespace db_stat_test {

TEST(FindDatabase, KnowsTheKindByLooking) {
  const Folder folder;
  write_numbered(folder.file("l"), 3);
  write_numbered(folder.file("h"), 3, DataParameter::HDF5);
  const struct {
    std::string path;
    Backend backend;
  } rows[] = {
      {"l", DataParameter::LMDB},          {"l/", DataParameter::LMDB},
      {"l/data.mdb", DataParameter::LMDB}, {"h", DataParameter::HDF5},
      {"h/", DataParameter::HDF5},         {"h.txt", DataParameter::HDF5},
      {"h/0000.h5", DataParameter::HDF5},
#ifdef CREMA_LEVELDB
      {"v", DataParameter::LEVELDB},
#endif
  };
#ifdef CREMA_LEVELDB
  write_numbered(folder.file("v"), 3, DataParameter::LEVELDB);
#endif
  for (const auto& row : rows) {
    SCOPED_TRACE(row.path);
    const FoundDatabase found = find_database(folder.file(row.path));
    EXPECT_EQ(found.backend, row.backend);
    EXPECT_EQ(found.source->size(), 3);
    EXPECT_GT(found.bytes, 12);
    EXPECT_EQ(listed(folder.file(row.path)), "00000000:0:0 00000001:1:1 00000002:2:2");
  }
}

TEST(FindDatabase, SaysWhatIsThereInstead) {
  const Folder folder;
  folder.write("empty/readme", "");
  folder.write("lone/0000.h5", "");
  folder.write("picture.png", "");
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"missing", "missing: no such database"},
      {"empty", "empty: is no database: the folder has no data.mdb (LMDB), no CURRENT (LevelDB)"},
      {"lone", "lone: is a folder of HDF5 files, but their list, "},
      {"picture.png", "picture.png: is no database: expected a folder, a data.mdb, an HDF5 file"},
  };
  for (const auto& [path, part] : rows)
    expect_part(error_of([&] { find_database(folder.file(path)); }), part);
}

TEST(DatabaseFacts, CountShapesFormatsAndClasses) {
  const Folder folder;
  const std::string path = folder.file("x");
  const auto writer = create_database(path, DataParameter::LMDB);
  for (int i = 0; i < 9; ++i) writer->put(numbered_key(i, 8), numbered_datum(i, i % 3));
  Datum wide = numbered_datum(9, 7);
  wide.set_height(1);
  wide.set_width(4);
  writer->put("wide", wide);
  Datum real;
  real.set_channels(1);
  real.set_height(2);
  real.set_width(2);
  for (const float value : {1.5f, 2.5f, 0.0f, 0.0f}) real.add_float_data(value);
  for (const float label : {0.5f, 0.25f}) real.add_labels(label);
  writer->put("x", real);
  writer->finish();
  const auto source = open_lmdb(path);
  for (const int threads : {1, 3}) {
    const DatabaseFacts facts = facts_of_database(*source, true, threads);
    EXPECT_EQ(facts.records, 11);
    EXPECT_EQ(facts.formats, (std::map<std::string, int64_t>{{"bytes", 10}, {"real numbers", 1}}));
    EXPECT_EQ(facts.shapes,
              (std::map<std::vector<int64_t>, int64_t>{{{1, 1, 4}, 1}, {{1, 2, 2}, 10}}));
    EXPECT_EQ(facts.classes, (std::map<int64_t, int64_t>{{0, 3}, {1, 3}, {2, 3}, {7, 1}}));
    EXPECT_EQ(facts.labels_each, (std::map<int64_t, int64_t>{{2, 1}}));
    ASSERT_EQ(facts.channels.size(), 1u);
    // 3 * (0 + ... + 9) + 10 * 255 + 4 of 44 values.
    EXPECT_DOUBLE_EQ(facts.channels[0].mean(), 2689.0 / 44);
    const double squares = (3 * 285 + 10 * 255.0 * 255 + 1.5 * 1.5 + 2.5 * 2.5) / 44;
    EXPECT_NEAR(facts.channels[0].deviation(), std::sqrt(squares - std::pow(2689.0 / 44, 2)), 1e-9);
  }
}

TEST(DatabaseFacts, KnowEncodedImagesBoxesAndSparseVectors) {
  NEEDS_IMAGES();
  const Folder folder;
  const Image image{3, 4, 5, std::vector<uint8_t>(60, 9)};
  AnnotatedDatum boxed;
  boxed.mutable_datum()->set_data(encode_image(image, "jpg"));
  boxed.mutable_datum()->set_encoded(true);
  AnnotationGroup& group = *boxed.add_annotation_group();
  group.set_group_label(4);
  group.add_annotation();
  group.add_annotation();
  SparseDatum sparse;
  sparse.set_size(100);
  sparse.add_indices(7);
  sparse.add_data(1);
  sparse.set_label(2);
  Datum png;
  png.set_data(encode_image(image, "png"));
  png.set_encoded(true);
  const auto facts_of = [&](const std::string& name, const google::protobuf::Message& record) {
    const auto writer = create_lmdb(folder.file(name));
    writer->put("a", record);
    writer->finish();
    return facts_of_database(*open_lmdb(folder.file(name)), false, 1);
  };
  const DatabaseFacts boxes = facts_of("b", boxed), vectors = facts_of("v", sparse),
                      pngs = facts_of("p", png);
  EXPECT_EQ(boxes.kind, RecordKind::annotated);
  EXPECT_EQ(boxes.formats.begin()->first, "JPEG");
  EXPECT_EQ(boxes.box_classes, (std::map<int64_t, int64_t>{{4, 2}}));
  EXPECT_EQ(boxes.boxes_each, (std::map<int64_t, int64_t>{{2, 1}}));
  EXPECT_EQ(vectors.kind, RecordKind::sparse);
  EXPECT_EQ(vectors.shapes.begin()->first, std::vector<int64_t>{100});
  EXPECT_EQ(vectors.classes, (std::map<int64_t, int64_t>{{2, 1}}));
  EXPECT_EQ(pngs.formats.begin()->first, "PNG");
  for (const DatabaseFacts* facts : {&boxes, &pngs})
    EXPECT_EQ(facts->shapes.begin()->first, (std::vector<int64_t>{3, 4, 5}));
}

TEST(DatabaseFacts, FindRecordsInTheOrderOfTheirClasses) {
  const struct {
    const char* name;
    std::vector<int> labels;  // ten records of each
    bool sorted;
  } rows[] = {{"sorted", {0, 1, 2}, true},
              {"mixed", {1, 0, 2}, false},
              {"one class", {1, 1, 1}, false},
              {"few", {0}, false}};
  const Folder folder;
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const auto writer = create_lmdb(folder.file(row.name));
    for (size_t i = 0; i < row.labels.size() * 10; ++i) {
      writer->put(numbered_key(static_cast<int64_t>(i), 8),
                  numbered_datum(static_cast<int>(i), row.labels[i / 10]));
    }
    writer->finish();
    EXPECT_EQ(facts_of_database(*open_lmdb(folder.file(row.name)), false, 2).sorted, row.sorted);
  }
}

TEST(Verify, NamesEachDamagedRecordAndWhy) {
  NEEDS_IMAGES();
  const Folder folder;
  const std::string path = folder.file("x");
  Datum shape = numbered_datum(1, 0), text = shape, cut = shape, nothing;
  shape.set_width(3);
  text.set_encoded(true);
  Image image{3, 40, 40, {}};
  for (int i = 0; i < 4800; ++i) image.pixels.push_back(static_cast<uint8_t>(i * i % 251));
  const std::string jpeg = encode_image(image, "jpg");
  cut.set_encoded(true);
  cut.set_data(jpeg.substr(0, jpeg.size() / 2));
  nothing.set_label(1);
  SparseDatum sparse;
  sparse.set_size(3);
  sparse.add_indices(1);
  sparse.add_data(1);
  const std::vector<std::pair<const google::protobuf::Message*, std::string>> rows = {
      {&shape, "its shape 1x2x3 asks for 6 bytes, but it holds 4"},
      {&text, "its 4 bytes are not an image that can be decoded"},
      {&cut, "the JPEG file is cut short"},
      {&nothing, "holds nothing"},
      {&sparse, "it is no Datum, as the others are"},
  };
  const auto writer = create_lmdb(path);
  const Datum good = numbered_datum(7, 0);
  writer->put("0", good);
  for (size_t i = 0; i < rows.size(); ++i) writer->put(cat(i + 1), *rows[i].first);
  writer->finish();
  Lines log;
  const Verified found = verify_database(*open_lmdb(path), 2, log);
  EXPECT_EQ(found.records, 6);
  EXPECT_EQ(found.damaged, 5);
  EXPECT_EQ(found.checksum, "");
  ASSERT_EQ(log.errors.size(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    expect_part(log.errors[i], cat("x, record ", i + 1, " (key \"", i + 1, "\"): "));
    expect_part(log.errors[i], rows[i].second);
  }
  expect_part(error_of([&] { facts_of_database(*open_lmdb(path), true, 2); }),
              "x, record 1 (key \"1\"): the Datum is damaged");
}

TEST(Verify, FindsRepeatedRecords) {
  const Folder folder;
  const std::string path = folder.file("x");
  const auto writer = create_lmdb(path);
  for (const auto& [key, number, label] : std::vector<std::tuple<std::string, int, int>>{
           {"a", 1, 0}, {"b", 2, 0}, {"c", 1, 0}, {"d", 1, 5}, {"e", 2, 0}, {"f", 3, 0}})
    writer->put(key, numbered_datum(number, label));
  writer->finish();
  Lines log;
  const Verified found = verify_database(*open_lmdb(path), 2, log);
  EXPECT_EQ(found.damaged, 0);
  EXPECT_EQ(found.repeated, 3);
  EXPECT_EQ(found.contradicting, 1);
  EXPECT_EQ(log.warnings, (std::vector<std::string>{
                              path + ", record 2 (key \"c\"): repeats record 0 (key \"a\")",
                              path + ", record 3 (key \"d\"): repeats record 0 (key \"a\"), but "
                                     "with another label",
                              path + ", record 4 (key \"e\"): repeats record 1 (key \"b\")"}));
}

TEST(Verify, ChecksumsTellContentKeysAndOrderApart) {
  const Folder folder;
  const auto checksum = [&](const std::string& path, int threads = 2) {
    Lines log;
    return verify_database(*find_database(path).source, threads, log).checksum;
  };
  const std::string one = write_numbered(folder.file("one"), 20);
  // As Python's hashlib has it of "SHA256-OF-RECORD  KEY\n" for each record, in the wire format.
  EXPECT_EQ(checksum(one), "eee69b016a0f1807f47b6a1b93e4b06bc292697002eb2a85ed69c36c2b9f7de6");
  EXPECT_EQ(checksum(one, 1), checksum(one, 4));
  EXPECT_EQ(checksum(write_numbered(folder.file("again"), 20)), checksum(one));
#ifdef CREMA_LEVELDB
  EXPECT_EQ(checksum(write_numbered(folder.file("v"), 20, DataParameter::LEVELDB)), checksum(one));
#endif
  EXPECT_NE(checksum(write_numbered(folder.file("keys"), 20, DataParameter::LMDB, "k")),
            checksum(one));
  EXPECT_NE(checksum(write_numbered(folder.file("other"), 20, DataParameter::LMDB, "", 1)),
            checksum(one));
  EXPECT_NE(checksum(write_numbered(folder.file("more"), 21)), checksum(one));
}

}  // namespace db_stat_test
}  // namespace crema::tests
