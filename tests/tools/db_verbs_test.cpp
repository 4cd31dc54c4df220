// `crema db` from the command line: its output, exit codes, and sheets of a net's input.
#include <gtest/gtest.h>

#include <algorithm>

#include "data/databases/database_writer.h"
#include "data/images/image.h"
#include "data/images/sheet.h"
#include "data/tar_files.h"
#include "tools/program.h"

#ifdef CREMA_OPENCV
#define NEEDS_IMAGES() static_cast<void>(0)
#else
#define NEEDS_IMAGES() GTEST_SKIP() << "built without OpenCV"
#endif

namespace crema::tests {
namespace db_verbs_test {

// x_lmdb: 24 grey pictures of 4 x 4 pixels, 8 of each class, one class after the other.
struct Numbers : Folder {
  Numbers() {
    const auto writer = create_lmdb(file("x_lmdb"));
    for (int i = 0; i < 24; ++i) writer->put(numbered_key(i, 8), datum(i));
    writer->finish();
  }
  static Datum datum(int number) {
    Datum datum;
    datum.set_channels(1);
    datum.set_height(4);
    datum.set_width(4);
    datum.set_data(std::string(16, static_cast<char>(10 * number)));
    datum.set_label(number / 8);
    return datum;
  }
};

TEST(DbVerbs, StatSaysWhatIsThere) {
  const Numbers folder;
  const Outcome stat = run(folder, "crema db stat -channel_mean x_lmdb");
  EXPECT_EQ(stat.code, 0) << stat.err;
  for (const char* part :
       {"x_lmdb: LMDB, 24 records, ", "type: Datum, stored as bytes\nshape: 1x4x4, of all\n",
        "labels: 3 classes, from 0 to 2\n  0  8  ####",
        "channel 0: mean 115, standard deviation 69"})
    expect_part(stat.out, part);
  expect_part(stat.err, "x_lmdb: the records are sorted by their label, from 0 to 2");
  EXPECT_EQ(run(folder, "crema db shuffle x_lmdb y_lmdb").code, 0);
  const Outcome shuffled = run(folder, "crema db stat y_lmdb");
  EXPECT_EQ(shuffled.code, 0);
  EXPECT_EQ(shuffled.err.find("sorted"), std::string::npos) << shuffled.err;
}

TEST(DbVerbs, VerifyExitsWithOneWhereRecordsAreDamaged) {
  const Numbers folder;
  const Outcome good = run(folder, "crema db verify x_lmdb");
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_EQ(good.out.size(), 64 + std::string("  x_lmdb\n").size());
  EXPECT_EQ(run(folder, "crema db copy x_lmdb copy").code, 0);
  EXPECT_EQ(run(folder, "crema db verify copy").out.substr(0, 64), good.out.substr(0, 64));

  EXPECT_EQ(run(folder, "crema db merge x_lmdb copy twice").code, 0);
  const Outcome twice = run(folder, "crema db verify twice");
  EXPECT_EQ(twice.code, 0);
  expect_part(twice.err, "twice: 24 of 48 records repeat an earlier one, 0 of them with another");
  EXPECT_EQ(run(folder, "crema db verify -strict twice").code, 1);

  const auto writer = create_lmdb(folder.file("bad"));
  Datum damaged = Numbers::datum(1);
  damaged.set_width(5);
  writer->put("a", Numbers::datum(0));
  writer->put("b", damaged);
  writer->finish();
  const Outcome bad = run(folder, "crema db verify bad");
  EXPECT_EQ(bad.code, 1);
  EXPECT_EQ(bad.out, "");
  ASSERT_EQ(bad.errors().size(), 2u) << bad.err;
  expect_part(bad.errors()[0], "bad, record 1 (key \"b\"): the Datum is damaged: its shape 1x4x5");
  EXPECT_EQ(bad.errors()[1], "bad: 1 of 2 records are damaged; convert the data again");
}

TEST(DbVerbs, WriteWhatIsAskedFor) {
  const Numbers folder;
  EXPECT_EQ(run(folder, "crema db copy -backend hdf5 -scale 0.1 x_lmdb h").code, 0);
  expect_part(run(folder, "crema db stat -channel_mean h").out, "channel 0: mean 11.5,");
  EXPECT_EQ(run(folder, "crema db split -split 0.75 x_lmdb x_lmdb").code, 0);
  expect_part(run(folder, "crema db stat x_train_lmdb").out, "LMDB, 18 records");
  EXPECT_EQ(run(folder, "crema db copy x_lmdb x_val_lmdb").code, 1);
  EXPECT_EQ(run(folder, "crema db copy -overwrite x_lmdb x_val_lmdb").code, 0);
  expect_part(run(folder, "crema db stat x_val_lmdb").out, "LMDB, 24 records");
  // Flags of other actions have no effect.
  EXPECT_EQ(run_shell(folder, "CREMA_FLAGS='-split 0.75' \"$TOOLS\"/crema db copy x_lmdb c").code,
            0);
  expect_part(run(folder, "crema db stat c").out, "LMDB, 24 records");
#ifdef CREMA_LEVELDB
  EXPECT_EQ(run(folder, "crema db copy -backend leveldb x_lmdb v").code, 0);
  // Another one of its kind.
  EXPECT_EQ(run(folder, "crema db shuffle v w").code, 0);
  expect_part(run(folder, "crema db stat w").out, "w: LevelDB, 24 records");
#endif
}

TEST(DbVerbs, RefuseWhatTheyCannotDo) {
  const Numbers folder;
  folder.write("net", "input: \"data\" input_dim: 1 input_dim: 1 input_dim: 4 input_dim: 4\n");
  const std::pair<std::string, std::string> rows[] = {
      {"pek x_lmdb", "`crema db` has no action \"pek\" (did you mean \"peek\"?); the actions are "},
      {"stat", "too few arguments (0); usage: crema db stat [-channel_mean] DB"},
      {"stat x_lmdb y", "unexpected argument: \"y\"; usage: crema db stat"},
      {"stat -overwrite x_lmdb", "`crema db stat` has no flag -overwrite; it takes -channel_mean"},
      {"stat missing", "missing: no such database"},
      {"split x_lmdb y", "-split is missing: the fraction for training, such as 0.9"},
      {"split -split 30 x_lmdb y", "-split 30 of 24 records leaves all for training"},
      {"copy -scale 2 x_lmdb y", "-scale: goes with -backend hdf5"},
      {"peek", "a database is needed, or -model NET.prototxt"},
      {"peek -phase TEST x_lmdb", "-phase: goes with -model NET.prototxt"},
      {"peek -batch -1 x_lmdb", "-batch -1: expected the number of pictures"},
      {"peek -model net", "net: has no layer that reads data in this phase"},
  };
  const std::vector<std::string> before = {"net", "x_lmdb"};
  for (const auto& [command, message] : rows) {
    const Outcome outcome = run(folder, "crema db " + command);
    EXPECT_EQ(outcome.code, 1) << command;
    ASSERT_EQ(outcome.errors().size(), 1u) << outcome.err;
    expect_part(outcome.errors()[0], message);
  }
  for (const std::string& name : folder.names())
    EXPECT_TRUE(name[0] == '.' || name == "net" || name == "x_lmdb") << name;
  EXPECT_EQ(run(folder, "crema help db").code, 0);
  const Outcome list = run(folder, "crema db");
  EXPECT_EQ(list.code, 1);
  expect_part(list.out, "  verify [-strict] DB\n      reads and decodes every record");
}

// The shade of the middle of the first picture of a sheet.
int first_shade(const Folder& folder, const std::string& sheet) {
  Image image;
  decode_image(folder.read(sheet), Color::gray, image);
  return image.pixels[static_cast<size_t>(40 * image.width + 40)];
}

TEST(DbVerbs, ReadTarFiles) {
  NEEDS_IMAGES();
  const Folder folder;
  const std::string picture =
      read_file(std::string(CREMA_TEST_DATA) + "/goldens/formats/images/img03.jpg");
  for (int i = 0; i < 2; ++i) {
    folder.write(cat("x-", i, ".tar"),
                 tar_record("a", picture, cat(i)) + tar_record("b", picture, "2") + tar_end());
  }
  const Outcome stat = run(folder, "crema db stat 'x-{0..1}.tar'");
  EXPECT_EQ(stat.code, 0) << stat.err;
  for (const char* part : {"x-{0..1}.tar: tar, 4 records, ", "type: Datum, stored as JPEG\n",
                           "labels: 3 classes, from 0 to 2\n"})
    expect_part(stat.out, part);
  EXPECT_EQ(run(folder, "crema db peek 'x-{0..1}.tar'").code, 0);
  EXPECT_EQ(run(folder, "crema db verify x-0.tar").code, 0);
  const Outcome copy = run(folder, "crema db copy 'x-{0..1}.tar' y");
  EXPECT_EQ(copy.code, 0) << copy.err;
  expect_part(run(folder, "crema db stat y").out, "y: LMDB, 4 records, ");
  const Outcome refused = run(folder, "crema db copy -backend tar x-0.tar z");
  EXPECT_EQ(refused.code, 1);
  expect_part(refused.err, "unknown database backend \"tar\"");
}

// Names belong to a database: files next to it do not count, those in it move with it.
TEST(DbVerbs, TakeTheNamesOfTheDatabase) {
  NEEDS_IMAGES();
  const Numbers folder;
  folder.write("labels.txt", "APPLE\nBANANA\n");
  const auto picture = [&](const std::string& command) {
    const Outcome outcome = run(folder, "crema db peek " + command);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return folder.read("peek.png");
  };
  const auto error = [&](const std::string& command) {
    const Outcome outcome = run(folder, "crema db " + command);
    EXPECT_EQ(outcome.code, 1) << command;
    return outcome.errors().empty() ? "" : outcome.errors()[0];
  };
  folder.write("numbers", "0\n1\n2\n");
  const std::string plain = picture("x_lmdb");
  EXPECT_EQ(plain, picture("-labels numbers x_lmdb"));
  folder.write("own", "ant\nbee\ncow\n");
  const std::string named = picture("-labels own x_lmdb");
  EXPECT_NE(named, plain);
  folder.write("x_lmdb.labels.txt", "ant\nbee\ncow\n");  // next to it, by its name
  EXPECT_EQ(picture("x_lmdb"), named);
  for (const char* command : {"copy x_lmdb y", "copy -backend hdf5 x_lmdb h", "shuffle y z",
                              "split -split 0.5 z two", "merge y z all"})
    EXPECT_EQ(run(folder, cat("crema db ", command)).code, 0) << command;
  for (const char* copy : {"y", "h", "z", "two_train", "two_val", "all"})
    EXPECT_EQ(folder.read(cat(copy, "/labels.txt")), "ant\nbee\ncow\n") << copy;
  EXPECT_EQ(picture("y"), named);
  expect_part(run(folder, "crema db stat z").out, "  ant 0  8  ####");
  folder.write("z/labels.txt", "ant\nbee\n");
  expect_part(error("merge y z more"), "z/labels.txt: names other classes than y/labels.txt");
  expect_part(error("peek z"), "z/labels.txt: names 2 classes, but there is a label 2");
  expect_part(error("stat z"), "z/labels.txt: names 2 classes, but there is a label 2");
  expect_part(error("peek -labels labels.txt y"), "labels.txt: names 2 classes, but there is a ");
}

TEST(DbVerbs, PeekDrawsRecordsAndBatches) {
  NEEDS_IMAGES();
  const Numbers folder;
  const Outcome records = run(folder, "crema db peek x_lmdb");
  EXPECT_EQ(records.code, 0) << records.err;
  EXPECT_EQ(records.messages().back(), "Wrote 24 pictures to peek.png, 1186 x 420 pixels");
  EXPECT_EQ(first_shade(folder, "peek.png"), 0);
  const std::string data =
      "layer { name: \"d\" type: \"Data\" top: \"data\" top: \"label\" transform_param { ";
  const std::string rest =
      " } data_param { source: \"x_lmdb\" backend: LMDB batch_size: 3 rand_skip: 0 } }\n";
  const std::string loss =
      "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"data\" top: \"ip\" "
      "inner_product_param { num_output: 3 } }\nlayer { name: \"loss\" type: \"SoftmaxWithLoss\" "
      "bottom: \"ip\" bottom: \"label\" }\n";
  folder.write("plain", data + rest + loss);
  folder.write("scaled", data + "scale: 0.01 mean_value: 100" + rest + loss);
  const auto writer = create_lmdb(folder.file("other"));
  for (int i = 4; i < 20; ++i) writer->put(numbered_key(i, 8), Numbers::datum(i));
  writer->finish();
  const auto vectors = create_lmdb(folder.file("vectors"));
  Datum vector;
  for (const float value : {-1.0f, 3.0f, 1.0f}) vector.add_float_data(value);
  vector.set_channels(3);
  vector.set_height(1);
  vector.set_width(1);
  vectors->put("a", vector);
  vectors->finish();
  const std::tuple<std::string, int, int> rows[] = {
      // A net's input, its pictures, and the shade of the first.
      {"-model plain", 3, 0},         {"-model scaled", 3, 0},
      {"-model scaled other", 3, 40}, {"-model scaled -batch 5 other", 5, 40},
      {"-batch 2 other", 2, 40},      {"vectors", 1, 0},
  };
  for (const auto& [command, count, shade] : rows) {
    SCOPED_TRACE(command);
    const Outcome outcome = run(folder, "crema db peek -output sheet.png " + command);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    expect_part(outcome.messages().back(), cat("Wrote ", count, " pictures to sheet.png"));
    EXPECT_EQ(first_shade(folder, "sheet.png"), shade);
  }
}

TEST(DbVerbs, PeekWritesTheSharesOfClasses) {
  NEEDS_IMAGES();
  const Numbers folder;
  const auto ink = [&](const std::string& augment) {
    folder.write("net", cat("layer { name: \"d\" type: \"Data\" top: \"data\" top: \"label\" ",
                            "transform_param { ", augment, " } data_param { source: \"x_lmdb\" ",
                            "backend: LMDB batch_size: 4 } }\n"));
    const Outcome outcome = run(folder, "crema db peek -model net");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    Image image;
    decode_image(folder.read("peek.png"), Color::gray, image);
    return std::count(image.pixels.begin(), image.pixels.end(), uint8_t{0});
  };
  // The same pictures, with "0 100%" below where there was "0".
  EXPECT_GT(ink("augment { mixup { probability: 0 } classes: 12 }"), ink("") + 4 * 20);
}

// How many pixels of a sheet have the colour of a class, or half of it.
int pixels_of_class(const Folder& folder, const std::string& sheet, int label, bool half) {
  Image image;
  decode_image(folder.read(sheet), Color::color, image);
  const auto ink = color_of_class(label);
  int count = 0;
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    bool same = true;
    for (size_t c = 0; c < 3; ++c)
      same &= image.pixels[i + c] == (half ? ink[2 - c] / 2 : ink[2 - c]);
    count += same;
  }
  return count;
}

TEST(DbVerbs, PeekDrawsBoxesAndMasks) {
  NEEDS_IMAGES();
  const Folder folder;
  AnnotatedDatum boxed;
  *boxed.mutable_datum() = Numbers::datum(0);
  boxed.set_type(AnnotatedDatum::BBOX);
  AnnotationGroup& group = *boxed.add_annotation_group();
  group.set_group_label(2);
  NormalizedBBox& box = *group.add_annotation()->mutable_bbox();
  box.set_xmin(0.25f);
  box.set_ymin(0.5f);
  box.set_xmax(0.75f);
  box.set_ymax(1);
  const auto writer = create_lmdb(folder.file("boxed"));
  writer->put("a", boxed);
  writer->finish();
  folder.write("boxes",
               "layer { name: \"d\" type: \"AnnotatedData\" top: \"data\" top: \"label\" "
               "data_param { source: \"boxed\" backend: LMDB batch_size: 1 } }\n");
  // Lines of two pixels around 56 x 56, and the ground of a digit above.
  std::vector<int> found;
  for (const std::string source : {"boxed", "-model boxes"}) {
    const Outcome outcome = run(folder, "crema db peek " + source);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    found.push_back(pixels_of_class(folder, "peek.png", 2, false));
  }
  EXPECT_GT(found[0], 4 * 2 * 53);
  EXPECT_LT(found[0], 4 * 2 * 58 + 9 * 11);
  EXPECT_EQ(found[0], found[1]);

  // Black, and in the right half class 3.
  const Image black{3, 4, 4, std::vector<uint8_t>(48)};
  Image labels{1, 4, 4, {}};
  for (int i = 0; i < 16; ++i) labels.pixels.push_back(i % 4 < 2 ? 0 : 3);
  folder.write("image.png", encode_image(black, "png"));
  folder.write("labels.png", encode_image(labels, "png"));
  folder.write("list", "image.png labels.png\n");
  folder.write("masks",
               "layer { name: \"d\" type: \"DenseImageData\" top: \"data\" top: \"label\" "
               "dense_image_data_param { source: \"list\" batch_size: 1 } }\n");
  const Outcome outcome = run(folder, "crema db peek -model masks");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(pixels_of_class(folder, "peek.png", 3, true), 112 * 112 / 2);
}

}  // namespace db_verbs_test
}  // namespace crema::tests
