// The converters of images as scripts call them: exit codes, last lines, full disks, and wrong
// inputs.
#include <gtest/gtest.h>

#include "data/images/image.h"
#include "tools/program.h"

#ifdef CREMA_OPENCV
#define NEEDS_IMAGES() static_cast<void>(0)
#else
#define NEEDS_IMAGES() GTEST_SKIP() << "built without OpenCV"
#endif

namespace crema::tests {
namespace convert_verbs_test {

// a.png; broken.jpg, which is none; and lists of both, one and none of them.
struct Pictures : Folder {
  Pictures() {
    Image image{3, 60, 60, {}};
    for (int i = 0; i < 60 * 60 * 3; ++i) image.pixels.push_back(static_cast<uint8_t>(i * i % 251));
    write("a.png", encode_image(image, "png"));
    write("broken.jpg", "no picture");
    write("both", "a.png 1\nbroken.jpg 2\n");
    write("one", "a.png 1\n");
    write("none", "broken.jpg 2\nmissing.png 3\n");
    write("boxes.xml",
          "<annotation><size><width>60</width><height>60</height></size><object><name>cat</name>"
          "<bndbox><xmin>6</xmin><ymin>6</ymin><xmax>30</xmax><ymax>30</ymax></bndbox></object>"
          "</annotation>");
    write("boxed", "a.png boxes.xml\nbroken.jpg boxes.xml\n");
    write("map", "item { name: \"cat\" label: 1 }");
  }
};

TEST(ConvertVerbs, LeaveOutWhatCannotBeReadAndSaySo) {
  NEEDS_IMAGES();
  const Pictures folder;
  const std::string count =
      "1 of 2 images could not be read and are left out; -strict makes that an error.";
  const Outcome some = run(folder, "convert_imageset '' both db");
  EXPECT_EQ(some.code, 0) << some.err;
  EXPECT_EQ(some.messages().back(), count);
  EXPECT_TRUE(folder.has("db/data.mdb"));
  const Outcome strict = run(folder, "convert_imageset -strict '' both strict_db");
  EXPECT_EQ(strict.code, 1);
  expect_part(strict.errors().back(), "both: 1 of 2 images could not be read; with -strict");
  EXPECT_FALSE(folder.has("strict_db"));
  const Outcome none = run(folder, "convert_imageset '' none none_db");
  EXPECT_EQ(none.code, 1);
  expect_part(none.errors().back(), "none: not one of its 2 images can be read");
  EXPECT_FALSE(folder.has("none_db"));
  // As SSD's create_annoset.py calls it.
  const std::string annoset =
      "convert_annoset --anno_type=detection --label_type=xml --label_map_file=map "
      "--check_label=True --min_dim=0 --max_dim=0 --resize_height=0 --resize_width=0 "
      "--backend=lmdb --shuffle=False --check_size=False --encode_type=png --encoded=True "
      "--gray=False ./ boxed ";
  const Outcome boxes = run(folder, annoset + "boxes_db");
  EXPECT_EQ(boxes.code, 0) << boxes.err;
  EXPECT_EQ(boxes.messages().back(), count);
  EXPECT_EQ(run(folder, annoset + "strict_db -strict").code, 1);
}

// SSD's flags and those of other formats; the second run finds the same map.
TEST(ConvertVerbs, LabelMapsAndBoxesOfOtherFormats) {
  NEEDS_IMAGES();
  const Pictures folder;
  folder.write("names", "cat 1 the_cat\n");
  folder.write("a.txt", "0 .5 .5 .25 .25\n");
  folder.write("yolo", "a.png\n");
  folder.write(
      "coco.json",
      "{\"images\": [{\"id\": 1, \"file_name\": \"a.png\", \"width\": 60, \"height\": 60}], "
      "\"annotations\": [], \"categories\": [{\"id\": 1, \"name\": \"cat\"}]}");
  struct Row {
    const char* command;
    int code;
    const char* said;
  };
  const Row rows[] = {
      {"create_label_map --delimiter=' ' --include_background=true names new_map", 0,
       "new_map: 2 labels"},
      {"create_label_map --include_background names new_map", 0, "is there already, with the same"},
      {"create_label_map names new_map", 1, "exists and has other labels; -overwrite replaces it"},
      {"create_label_map -overwrite -anno_format coco coco.json new_map", 0, "new_map: 1 labels"},
      {"create_label_map -anno_format voc ./ boxed voc_map", 0, "voc_map: 1 labels"},
      {"create_label_map -anno_format voc boxed voc_map", 1, "takes ROOT_FOLDER/ LIST MAP"},
      {"convert_annoset -anno_format yolo -label_map_file map ./ yolo yolo_db", 0,
       "Processed 1 files"},
      {"convert_annoset -anno_format coco -label_map_file map ./ coco.json coco_db", 0,
       "Processed 1 files"},
      {"convert_annoset -anno_format cocoo -label_map_file map ./ coco.json db", 1,
       "there are voc, coco and yolo (did you mean \"coco\"?)"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.command);
    const Outcome outcome = run(folder, row.command);
    EXPECT_EQ(outcome.code, row.code);
    expect_part(outcome.err, row.said);
  }
}

// The program decides whether such a limit's signal kills it, so the shell sets the limit.
TEST(ConvertVerbs, AFullDiskIsOneError) {
  NEEDS_IMAGES();
  const Pictures folder;
  std::string list;
  for (int i = 0; i < 20; ++i) list += cat("a.png ", i, "\n");
  folder.write("many", list);
  for (const std::string backend : {"lmdb", "leveldb", "hdf5"}) {
#ifndef CREMA_LEVELDB
    if (backend == "leveldb") continue;
#endif
    // 64 KiB; nothing in the log's folder may grow larger either.
    const Outcome full = run_shell(
        folder,
        cat("ulimit -f 128; \"$TOOLS\"/convert_imageset -backend ", backend, " '' many db"));
    EXPECT_EQ(full.code, 1) << full.err;
    ASSERT_EQ(full.errors().size(), 1u) << full.err;
    expect_part(full.errors()[0],
                backend == "hdf5" ? "db/0000.h5: cannot write: " : "db: cannot write the L");
    EXPECT_FALSE(folder.has("db"));
    for (const std::string& name : folder.names()) EXPECT_FALSE(starts_with(name, "db.")) << name;
  }
}

TEST(ConvertVerbs, SplitIntoTrainingAndValidation) {
  NEEDS_IMAGES();
  const Pictures folder;
  std::string list;
  for (int i = 0; i < 20; ++i) {
    folder.write(cat(i, ".png"), folder.read("a.png"));
    list += cat(i, ".png ", i % 2, "\n");
  }
  folder.write("many", list);
  const Outcome split = run(folder, "convert_imageset -split 0.9 '' many pets_lmdb");
  EXPECT_EQ(split.code, 0) << split.err;
  EXPECT_TRUE(folder.has("pets_train_lmdb/data.mdb"));
  EXPECT_TRUE(folder.has("pets_val_lmdb/data.mdb"));
  expect_part(split.err, "Class 1: 9 for training, 1 for validation");
  const Outcome again = run(folder, "convert_imageset -split 18 '' many pets_lmdb");
  EXPECT_EQ(again.code, 1);
  expect_part(again.errors().back(), "pets_train_lmdb: exists already; -overwrite replaces it");
  const std::string before = folder.read("pets_val_lmdb/data.mdb");
  EXPECT_EQ(run(folder, "convert_imageset -overwrite -split 18 '' many pets_lmdb").code, 0);
  EXPECT_EQ(folder.read("pets_val_lmdb/data.mdb"), before);
  EXPECT_EQ(run(folder, "convert_imageset -overwrite -seed 2 -split 18 '' many pets_lmdb").code, 0);
  EXPECT_NE(folder.read("pets_val_lmdb/data.mdb"), before);
  for (const char* wrong : {"0.9x", "nan", "1.5", "-3", "20", "0.01"}) {
    const Outcome outcome = run(folder, cat("convert_imageset -split=", wrong, " '' many other"));
    EXPECT_EQ(outcome.code, 1);
    ASSERT_EQ(outcome.errors().size(), 1u) << outcome.err;
    expect_part(outcome.errors()[0], cat("-split ", wrong));
    EXPECT_FALSE(folder.has("other_train"));
  }
}

// Pictures of three classes as HDF5, and a net that reads them.
TEST(ConvertVerbs, Hdf5IsTrainedFrom) {
  NEEDS_IMAGES();
  const Folder folder;
  std::string list;
  for (int c = 0; c < 3; ++c) {
    Image image{3, 5, 4, {}};
    for (int i = 0; i < 60; ++i) image.pixels.push_back(static_cast<uint8_t>(i % 3 == c ? 250 : 5));
    folder.write(cat(c, ".png"), encode_image(image, "png"));
    for (int i = 0; i < 10; ++i) list += cat(c, ".png ", c, "\n");
  }
  folder.write("list", list);
  const Outcome convert = run(
      folder,
      "convert_imageset -backend hdf5 -split 0.8 -hdf5_rows 9 -hdf5_compress 4 -scale 0.00390625 "
      "'' list pets");
  EXPECT_EQ(convert.code, 0) << convert.err;
  EXPECT_EQ(folder.read("pets_val.txt"), "pets_val/0000.h5\n");
  EXPECT_TRUE(folder.has("pets_train/0002.h5"));
  const auto source = [](const std::string& phase, const std::string& set) {
    return cat(
        "layer { name: \"d\" type: \"HDF5Data\" top: \"data\" top: \"label\" include { phase: ",
        phase, " } hdf5_data_param { source: \"", set, ".txt\" batch_size: 6 } } ");
  };
  folder.write(
      "net.prototxt",
      source("TRAIN", "pets_train") + source("TEST", "pets_val") +
          "layer { name: \"i\" type: \"InnerProduct\" bottom: \"data\" top: \"i\" "
          "inner_product_param { num_output: 3 weight_filler { type: \"xavier\" } } } "
          "layer { name: \"l\" type: \"SoftmaxWithLoss\" bottom: \"i\" bottom: \"label\" top: "
          "\"l\" } layer { name: \"a\" type: \"Accuracy\" bottom: \"i\" bottom: \"label\" top: "
          "\"a\" include { phase: TEST } }");
  folder.write("solver.prototxt",
               "net: \"net.prototxt\" base_lr: 0.1 lr_policy: \"fixed\" max_iter: 60 test_iter: 1 "
               "test_interval: 60 snapshot_after_train: false snapshot_prefix: \"net\"");
  const Outcome train = run(folder, "train -solver solver.prototxt");
  EXPECT_EQ(train.code, 0) << train.err;
  expect_part(train.messages().back() + train.err, "Test net output #0: a = 1");
}

// From class folders to a class's name, and from a table to a net with two labels.
TEST(ConvertVerbs, NeedNoListForClassFolders) {
  NEEDS_IMAGES();
  const Pictures folder;
  folder.write("in/cat/1.png", folder.read("a.png"));
  folder.write("in/dog/2.png", folder.read("a.png"));
  const Outcome outcome = run(folder, "convert_imageset -shuffle -threads 2 in/ pets_lmdb");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_part(outcome.err, "The names of the 2 classes go into ./labels.txt");
  EXPECT_EQ(outcome.messages().back(), "Processed 2 files.");
  EXPECT_EQ(folder.read("labels.txt"), "cat\ndog\n");
  EXPECT_TRUE(folder.has("pets_lmdb/data.mdb"));
  EXPECT_EQ(run(folder, "convert_imageset in/").code, 1);
}

TEST(ConvertVerbs, TablesWithSeveralLabelsAreTrainedFrom) {
  const Folder folder;
  std::string table = "x,y,double,half\n";
  for (int i = 0; i < 20; ++i)
    table += cat(i % 5, ",", i % 3, ",", i % 5 * 2, ",", i % 3 * 0.5, "\n");
  folder.write("t.csv", table);
  const Outcome convert = run(folder, "convert_csv -label double,half -split 0.8 t.csv t_lmdb");
  EXPECT_EQ(convert.code, 0) << convert.err;
  EXPECT_EQ(convert.messages().back(), "Processed 20 rows.");
  folder.write(
      "net.prototxt",
      "layer { name: \"d\" type: \"Data\" top: \"data\" top: \"label\" data_param { source: "
      "\"t_train_lmdb\" backend: LMDB batch_size: 4 } } "
      "layer { name: \"i\" type: \"InnerProduct\" bottom: \"data\" top: \"i\" "
      "inner_product_param { num_output: 2 } } "
      "layer { name: \"l\" type: \"EuclideanLoss\" bottom: \"i\" bottom: \"label\" top: "
      "\"l\" }");
  folder.write(
      "solver.prototxt",
      "net: \"net.prototxt\" base_lr: 0.05 lr_policy: \"fixed\" max_iter: 300 display: 299 "
      "snapshot_after_train: false snapshot_prefix: \"net\"");
  const Outcome train = run(folder, "train -solver solver.prototxt");
  EXPECT_EQ(train.code, 0) << train.err;
  const size_t at = train.err.rfind("loss = ");
  ASSERT_NE(at, std::string::npos) << train.err;
  EXPECT_LT(std::stod(train.err.substr(at + 7)), 1e-3);
  const Outcome bad = run(folder, "convert_csv -shape 1x2x t.csv other");
  EXPECT_EQ(bad.code, 1);
  expect_part(bad.errors().at(0), "-shape 1x2x: expected the number of values, or channels x");
}

// One of two that write the same database at the same time has it, the other says so.
TEST(ConvertVerbs, OfTwoWritersOneWins) {
  NEEDS_IMAGES();
  const Pictures folder;
  std::string list;
  for (int i = 0; i < 300; ++i) list += "a.png 1\n";
  folder.write("many", list);
  for (const std::string backend : {"lmdb", "leveldb", "hdf5"}) {
#ifndef CREMA_LEVELDB
    if (backend == "leveldb") continue;
#endif
    SCOPED_TRACE(backend);
    const std::string convert =
        cat("\"$TOOLS\"/convert_imageset -backend ", backend, " '' many ", backend, " 2>");
    const Outcome outcome = run_shell(
        folder, cat(convert, "one & ", convert, "two; echo $? >code2; wait $!; echo $? >code1"));
    EXPECT_EQ(outcome.code, 0);
    const std::string codes = folder.read("code1") + folder.read("code2");
    EXPECT_TRUE(codes == "0\n1\n" || codes == "1\n0\n") << codes;
    expect_part(folder.read(folder.read("code1") == "1\n" ? "one" : "two"), backend + ": ");
    EXPECT_EQ(run(folder, cat("crema db verify ", backend)).code, 0);
    for (const std::string& name : folder.names())
      EXPECT_FALSE(starts_with(name, backend + ".") && name != "hdf5.txt") << name;
  }
}

// Each is one message that names the file, and nothing is made.
TEST(ConvertVerbs, EmptyFilesAreNamed) {
  NEEDS_IMAGES();
  const Pictures folder;
  for (const char* name : {"empty", "in/data_batch_1.bin", "db/data.mdb", "x.h5", "empty.csv"})
    folder.write(name, "");
  folder.write("empties", "empty 1\n");
  folder.write("boxes", "a.png empty\n");
  const std::pair<const char*, const char*> rows[] = {
      {"convert_imageset '' empty made", "empty: names no image"},
      {"convert_imageset '' empties made", "empties: not one of its 1 images can be read"},
      {"convert_imageset -strict '' empties made", "empties: not one of its 1 images can be read"},
      {"convert_mnist_data empty empty made", "empty: "},
      {"convert_mnist_siamese_data empty empty made", "empty: "},
      {"convert_cifar_data in . lmdb", "in/data_batch_1.bin: "},
      {"convert_csv -label 0 empty.csv made", "empty.csv: "},
      {"convert_annoset -label_map_file empty '' boxes made", "empty: "},
      {"convert_annoset -label_map_file map '' boxes made", "boxes: not one of its 1 images can"},
      {"convert_annoset -anno_format coco -label_map_file map '' empty made", "empty"},
      {"create_label_map empty made", "empty: "},
      {"create_label_map -anno_format coco empty made", "empty"},
      {"compute_image_mean db made", "db: "},
      {"compute_image_mean x.h5 made", "x.h5: "},
      {"crema db stat db", "db: "},
      {"crema db copy db made", "db: "},
  };
  run(folder, "crema help");  // leaves its output there
  const std::vector<std::string> before = folder.names();
  for (const auto& [command, message] : rows) {
    SCOPED_TRACE(command);
    const Outcome outcome = run(folder, command);
    EXPECT_EQ(outcome.code, 1);
    ASSERT_FALSE(outcome.errors().empty()) << outcome.err;
    expect_part(outcome.errors().back(), message);
    EXPECT_EQ(folder.names(), before);
  }
}

TEST(ConvertVerbs, SayWhichFlagsDoNotGoTogether) {
  const Folder folder;
  folder.write("list", "a.png 1\n");
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"convert_imageset -scale 2 '' list db", "-scale: goes with -backend hdf5"},
      {"convert_mnist_data -hdf5_rows 2 a b db", "-hdf5_rows: goes with -backend hdf5"},
      {"convert_cifar_data -hdf5_compress 2 a b leveldb", "records of leveldb are kept"},
      {"convert_cifar_data -backend lmdb a b hdf5", "hdf5 and -backend lmdb: give one of them"},
      {"convert_imageset -backend hdf5 -encoded '' list db", "-encoded: HDF5Data reads values"},
      {"convert_imageset -backend hdf6 '' list db", "did you mean \"hdf5\"?"},
      {"convert_imageset -as_stored -encoded '' list db", "-as_stored: encoded files keep all"},
      {"convert_imageset -as_stored -gray '' list db", "-as_stored and -gray: give one of them"},
      {"convert_imageset -threads 2000 '' list db", "-threads 2000: must be from 1 to 1024"},
  };
  for (const auto& [command, message] : rows) {
    SCOPED_TRACE(command);
    const Outcome outcome = run(folder, command);
    EXPECT_EQ(outcome.code, 1);
    ASSERT_EQ(outcome.errors().size(), 1u) << outcome.err;
    expect_part(outcome.errors()[0], message);
    EXPECT_FALSE(folder.has("db"));
  }
}

TEST(ConvertVerbs, ListsAndNetsMayComeFromACommand) {
  NEEDS_IMAGES();
  const Pictures folder;
  const auto bash = [&](const std::string& script) {
    return run_shell(folder, "bash -c '" + script + "'");
  };
  EXPECT_EQ(bash("\"$TOOLS\"/convert_imageset \"\" <(cat one) first").code, 0);
  EXPECT_EQ(bash("cat one | \"$TOOLS\"/convert_imageset \"\" /dev/stdin second").code, 0);
  EXPECT_EQ(bash("\"$TOOLS\"/convert_imageset \"\" /dev/stdin third < one").code, 0);
  EXPECT_EQ(bash("cat one | \"$TOOLS\"/convert_imageset \"\" - fourth").code, 0);
  EXPECT_TRUE(folder.has("first/data.mdb") && folder.has("second/data.mdb") &&
              folder.has("third/data.mdb") && folder.has("fourth/data.mdb"));
  const Outcome wrong = bash("echo a.png | \"$TOOLS\"/convert_imageset \"\" - fifth");
  EXPECT_EQ(wrong.code, 1);
  expect_part(wrong.errors().at(0), "-:1: a line is `path label`");
  folder.write("net.prototxt",
               "layer { name: \"x\" type: \"DummyData\" top: \"x\" dummy_data_param { shape { dim: "
               "2 } } } layer { name: \"l\" type: \"Reduction\" bottom: \"x\" top: \"l\" "
               "loss_weight: 1 }");
  folder.write("solver.prototxt",
               "net: \"net.prototxt\" base_lr: 0.1 lr_policy: \"fixed\" max_iter: 1 "
               "snapshot_after_train: false snapshot_prefix: \"net\"");
  const Outcome train = bash("\"$TOOLS\"/train -solver <(cat solver.prototxt)");
  EXPECT_EQ(train.code, 0) << train.err;
  // One that has a name may never be written to.
  ASSERT_EQ(bash("mkfifo fifo").code, 0);
  for (const char* command :
       {"train -solver fifo", "summary -model fifo", "convert_imageset \"\" fifo db",
        "extract_features fifo net.prototxt x db 1 lmdb"}) {
    const Outcome outcome = bash(cat("timeout 20 \"$TOOLS\"/", command));
    EXPECT_EQ(outcome.code, 1) << command;
    ASSERT_EQ(outcome.errors().size(), 1u) << outcome.err;
    expect_part(outcome.errors()[0], "fifo: is a FIFO, not a regular file");
  }
  const Outcome device = run(folder, "summary -model /dev/urandom");
  EXPECT_EQ(device.code, 1);
  expect_part(device.errors().back(), "/dev/urandom: is a device, not a regular file");
}

// Caffe's siamese example reads a LevelDB; without that library, or by choice, it is another kind.
TEST(ConvertVerbs, PairsOfDigitsGoIntoAnyKindOfDatabase) {
  const Folder folder;
  const auto number = [](char value) { return std::string(3, '\0') + value; };
  folder.write("images",
               std::string("\0\0\x08\x03", 4) + number(2) + number(1) + number(2) + "abcd");
  folder.write("labels", std::string("\0\0\x08\x01", 4) + number(2) + std::string("\x05\x06"));
  for (const auto& [flags, file] : {std::pair{"", "db/CURRENT"},
                                    {"-backend lmdb", "db/data.mdb"},
                                    {"-backend hdf5 -scale 0.5", "db.txt"}}) {
#ifndef CREMA_LEVELDB
    if (!*flags) continue;
#endif
    SCOPED_TRACE(flags);
    const Folder own;
    for (const char* name : {"images", "labels"}) own.write(name, folder.read(name));
    const Outcome outcome =
        run(own, cat("convert_mnist_siamese_data ", flags, " images labels db"));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(own.has(file));
  }
}

}  // namespace convert_verbs_test
}  // namespace crema::tests
