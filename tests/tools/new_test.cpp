// crema new: what it finds in folders and tables of all its forms, what it decides, and that the project it
// writes trains again.
#include <gtest/gtest.h>

#include <filesystem>

#include "tools/new_data.h"

namespace crema::tests {
namespace new_test {

TEST(New, LooksClosely) {
  NEEDS_PICTURES();
  const Folder folder;
  add_classes(folder, "p", 20);
  for (int i = 20; i < 70; ++i) folder.write(cat("p/upper/", i, ".png"), picture(1, i));
  folder.write("p/left/broken.png", "no picture");
  folder.write("p/left/cut.png", picture(0, 99).substr(0, 60));
  folder.write("p/left/copy.png", picture(0, 3));
  folder.write("p/upper/wrong.png", picture(0, 5));
  folder.write("p/upper/two\nlines.png", picture(1, 98));
  folder.write("p/__MACOSX/upper/._1.png", "from an archive");
  std::filesystem::create_symlink("circle", folder.file("p/circle"));
  const Outcome seen = run(folder, "crema new -dry_run p project");
  expect_parts(
      seen, {"p: 89 pictures in 2 classes: left 19, upper 70", "all of 24 x 24 pixels, in colour",
             "3 pictures cannot be read and are left out:", "left/broken.png: ", "left/cut.png: ",
             "upper/two\\nlines.png: its name has a line break",
             "2 pictures are equal to one in another class", "left/a 5, b.png = upper/wrong.png",
             "1 picture is there twice in one class", "71 for training and 18 for testing",
             "model: pictures", "stored as 24 x 24 pixels",
             "balance: classes are drawn equally often", "Nothing was written"});
  EXPECT_FALSE(folder.has("project"));
  const Outcome again = run(folder, "crema new -dry_run p project");
  EXPECT_EQ(seen.out, again.out);
}

TEST(New, WritesAProjectThatTrainsAgain) {
  NEEDS_PICTURES();
  const Folder folder;
  add_classes(folder, "p", 30);
  const Outcome made = run(folder, "crema new -iterations 60 -batch 8 p project");
  expect_parts(made, {"batch: 8, as you asked", "length: 60 iterations",
                      "learning rate: ", "Reached: accuracy 1", "The project is in project"});
  for (const char* name :
       {"net.prototxt", "solver.prototxt", "labels.txt", "data/pictures_train_lmdb/data.mdb",
        "runs/Pictures-1/snapshots/project_iter_60.caffemodel", "runs/lr_find.svg"})
    EXPECT_TRUE(folder.has(cat("project/", name))) << name;
  EXPECT_EQ(folder.read("project/labels.txt"), "left\nupper\n");
  const std::string page = folder.read("project/README.md");
  expect_part(page, "accuracy 1");
  expect_part(page, "crema train -solver solver.prototxt -run auto");
  // The commands of its page, after a change by hand.
  const Outcome used = run_shell(
      folder,
      "sed -i 's/num_output: 24/num_output: 20/' net.prototxt && $TOOLS/crema fmt -check . && "
      "$TOOLS/crema check -solver solver.prototxt && "
      "$TOOLS/crema train -solver solver.prototxt -run auto && "
      "weights=runs/Pictures-2/snapshots/project_iter_60.caffemodel && "
      "$TOOLS/crema test -model net.prototxt -weights $weights -epoch && "
      "$TOOLS/crema classify -model net.prototxt -weights $weights ../p/upper/3.png && "
      "$TOOLS/crema report runs/Pictures-2",
      "project");
  EXPECT_EQ(used.code, 0) << used.err;
  expect_part(used.out, "upper");
  // Nothing is overwritten, and the same seed gives the same project.
  const Outcome refused = run(folder, "crema new p project");
  EXPECT_EQ(refused.code, 1);
  expect_part(refused.errors().back(), "project: is there already, and is not overwritten");
  const Outcome twin = run(folder, "crema new -iterations 60 -batch 8 p twin/project");
  EXPECT_EQ(twin.code, 0) << twin.err;
  EXPECT_EQ(folder.read("twin/project/solver.prototxt"),
            folder.read("project/runs/Pictures-1/../../solver.prototxt"));
  EXPECT_EQ(folder.read("twin/project/data/train.txt"), folder.read("project/data/train.txt"));
}

TEST(New, FillsAnEmptyFolder) {
  NEEDS_PICTURES();
  const Folder folder;
  add_classes(folder, "p", 10);
  // Through a link, and from within.
  const Outcome made = run_shell(folder,
                                 "mkdir here && ln -s here link && cd link && "
                                 "$TOOLS/crema new -iterations 2 ../p . && ls && "
                                 "$TOOLS/crema check -solver solver.prototxt");
  expect_parts(made, {"The project is in .", "README.md"});
  EXPECT_EQ(folder.read("here/README.md").substr(0, 7), "# here\n");
}

TEST(New, SaysWhereItStopped) {
  NEEDS_PICTURES();
  const Folder folder;
  add_classes(folder, "p", 10);
  const Outcome stopped =
      run_shell(folder,
                "(until [ -d project/runs/Pictures-1/snapshots ]; do sleep 0.05; done; "
                "touch project/runs/Pictures-1/stop) & "
                "$TOOLS/crema new -iterations 200000 p project && cd project && "
                "eval \"$(grep -E '^    weights=' README.md)\" && ls $weights");
  expect_parts(stopped, {"Stopped at iteration ", " of 200000; ", "project_iter_"});
  // A mean of pictures is that of these, as the model's own is of others.
  const Outcome mean =
      run(folder, "crema new -model cifar10_quick -iterations 2 -batch 4 p with_mean");
  expect_parts(mean, {"Reached: accuracy"});
  EXPECT_TRUE(folder.has("with_mean/data/mean.binaryproto"));
}

TEST(New, DoesWhatTheUserSets) {
  const Folder folder;
  std::string rows = "a,b,class\n";
  for (int i = 0; i < 60; ++i) rows += cat(i % 7, ",", i % 11, ",", i % 2, "\n");
  folder.write("t.csv", rows);
  folder.write(
      "own/net.prototxt",
      "layer { name: 'd' type: 'Data' top: 'd' top: 'l' include { phase: TRAIN } data_param { "
      "source: 'x' "
      "batch_size: 8 } } layer { name: 'd' type: 'Data' top: 'd' top: 'l' include { phase: TEST } "
      "data_param { "
      "source: 'x' batch_size: 4 } } layer { name: 'ip' type: 'InnerProduct' bottom: 'd' top: 'ip' "
      "inner_product_param { num_output: 9 weight_filler { type: 'xavier' } } } layer { name: "
      "'loss' type: "
      "'SoftmaxWithLoss' bottom: 'ip' bottom: 'l' top: 'loss' }");
  // A net without a name, whose run has that of the solver; a length that five does not divide.
  const Outcome made =
      run(folder,
          "crema new -model own/net.prototxt -set max_iter=23 -set base_lr=0.004 t.csv project");
  expect_parts(made,
               {"length: 23 iterations", "learning rate: 0.004, as you asked", "Reached: loss"});
  expect_part(made.out, "batch: 4, so that an epoch has eight updates or more; a step needs ");
  // A field of a layer, and one with a text.
  const Outcome fields = run(folder,
                             "crema new -iterations 2 -set 'layer[ip].inner_product_param."
                             "weight_filler.type=msra' -set 'layer[d].data_param.prefetch=3' "
                             "-model own/net.prototxt t.csv fields");
  EXPECT_EQ(fields.code, 0) << fields.err;
  expect_part(folder.read("fields/net.prototxt"), "type: \"msra\"");
  expect_part(folder.read("fields/net.prototxt"), "prefetch: 3");
  EXPECT_TRUE(folder.has("project/runs/solver-1/snapshots/project_iter_23.caffemodel"));
  expect_part(folder.read("project/runs/solver-1/train.log"), "Iteration 23, Testing net (#0)");
  expect_part(folder.read("project/net.prototxt"), "num_output: 2");
}

TEST(New, FineTunesWhatFitsTheWeights) {
  NEEDS_PICTURES();
  const Folder folder;
  add_classes(folder, "p/train", 20, true);
  add_classes(folder, "p/val", 5, true);
  // A net of another number of classes, as people get weights from others.
  ASSERT_EQ(run_shell(folder,
                      "$TOOLS/crema train -set max_iter=1 -set snapshot_after_train=true -assume "
                      "data=4x1x24x24,label=4 "
                      "-set snapshot_prefix=./lenet -solver " CREMA_TEST_DATA
                      "/../models/lenet/solver.prototxt")
                .code,
            0);
  const Outcome made =
      run(folder, "crema new -iterations 20 -weights lenet_iter_1.caffemodel p project");
  expect_parts(made, {"all grey", "as the folders train and val divide them",
                      "model: lenet, because 4 of the 4 layers of lenet_iter_1.caffemodel are its",
                      "in grey"});
  expect_part(folder.read("project/net.prototxt"), "num_output: 2");
  expect_part(folder.read("project/README.md"), "-weights_mode=match");
}

struct TableRow {
  const char* name;
  const char* flags;
  const char* found;
  const char* result;
};

TEST(New, LearnsTables) {
  const Folder folder;
  std::string names = "a,b,species,c\n", numbers;
  for (int i = 0; i < 200; ++i) {
    const double x = i % 17, y = i % 5;
    names += cat(x * 100, ",", y, ",", x > 8 ? "large" : "small", ",", x * y, "\n");
    numbers += cat(x, ";", y, ";", x / 17 + 0.1 * y, "\n");
  }
  folder.write("names.csv", names);
  folder.write("numbers.csv", numbers);
  const TableRow rows[] = {
      {"names.csv", "", "the label is one of 2 classes: large 92, small 108", "accuracy 0.9"},
      {"numbers.csv", "-label 2", "the label is a number to predict", "loss 0.0"},
  };
  for (const TableRow& row : rows) {
    SCOPED_TRACE(row.name);
    const std::string project = cat("of_", row.name);
    expect_parts(
        run(folder, cat("crema new -iterations 300 ", row.flags, " ", row.name, " ", project)),
        {row.found, row.result});
    EXPECT_TRUE(folder.has(project + "/data/table_train_lmdb/data.mdb"));
    EXPECT_EQ(
        run_shell(
            folder,
            "PATH=$TOOLS:$PATH; eval \"$(grep -E '^    (weights=|crema extract)' README.md)\"",
            project)
            .code,
        0);
    EXPECT_TRUE(folder.has(project + "/scores.npy"));
  }
}

// 12 pictures with a box in each, in the form of a data set.
void add_boxes(const Folder& folder, const std::string& form) {
  std::string images, annotations;
  for (int i = 0; i < 12; ++i) {
    const std::string content = picture(i % 2, i, 100), name = cat("a ", i);
    const int kind = i % 2, left = 10 + i, top = 20;
    if (form == "voc") {
      folder.write(cat("voc/JPEGImages/", name, ".png"), content);
      folder.write(
          cat("voc/Annotations/", name, ".xml"),
          cat("<annotation><size><width>100</width><height>100</height></size><object><name>",
              kind ? "dog" : "cat", "</name><bndbox><xmin>", left, "</xmin><ymin>", top,
              "</ymin><xmax>", left + 50, "</xmax><ymax>70</ymax></bndbox></object></annotation>"));
    } else if (form == "yolo") {
      const char* const part = i < 9 ? "train" : "valid";
      folder.write(cat("yolo/", part, "/images/", name, ".png"), content);
      folder.write(cat("yolo/", part, "/labels/", name, ".txt"),
                   cat(kind, " 0.5 0.5 0.", left, " 0.5\n"));
    } else {
      folder.write(cat("coco/train2017/", name, ".png"), content);
      images += cat(i ? "," : "", "{\"id\":", i, ",\"file_name\":\"", name,
                    ".png\",\"width\":100,\"height\":100}");
      annotations += cat(i ? "," : "", "{\"image_id\":", i, ",\"category_id\":", kind + 3,
                         ",\"bbox\":[", left, ",", top, ",50,50],\"iscrowd\":0}");
    }
  }
  if (form == "yolo") folder.write("yolo/data.yaml", "nc: 2\nnames: ['cat', \"dog\"]\n");
  if (form == "coco")
    folder.write(
        "coco/annotations/instances_train2017.json",
        cat("{\"images\":[", images, "],\"annotations\":[", annotations,
            "],\"categories\":[{\"id\":3,\"name\":\"cat\"},{\"id\":4,\"name\":\"dog\"}]}"));
}

TEST(New, FitsTheBatchIntoMemory) {
  NEEDS_PICTURES();
  if (!memory_can_be_limited) GTEST_SKIP();
  const Folder folder;
  add_classes(folder, "p", 100);
  struct Row {
    const char *flags, *said;
  };
  const Row rows[] = {
      {"", ", because 16 need "},
      {"-batch 16", "-batch 16 need "},
  };
  for (const Row& row : rows) {
    const Outcome made =
        run_shell(folder, cat(limit_memory(2000), "$TOOLS/crema new -dry_run -model densenet ",
                              row.flags, " p project"));
    expect_part(made.out + made.err, row.said);
    EXPECT_EQ(made.code, *row.flags ? 1 : 0) << made.err;
  }
}

struct BoxRow {
  const char* form;
  const char* found;
  const char* divided;
};

TEST(New, FindsBoxesOfEachForm) {
  NEEDS_PICTURES();
  const Folder folder;
  const BoxRow rows[] = {
      {"voc", "voc: 12 pictures with boxes in Pascal VOC's form",
       "10 for training and 2 for testing, divided by chance"},
      {"yolo", "yolo: 12 pictures with boxes in YOLO's form",
       "9 for training and 3 for testing, as the data are divided"},
      {"coco", "coco: 12 pictures with boxes in COCO's form",
       "10 for training and 2 for testing, divided by chance"},
  };
  for (const BoxRow& row : rows) {
    SCOPED_TRACE(row.form);
    add_boxes(folder, row.form);
    expect_parts(run(folder, cat("crema new -dry_run ", row.form, " project")),
                 {row.found, row.divided, "12 boxes of 2 classes: cat 6, dog 6", "model: rfcn"});
  }
  // What archives and systems leave, and boxes of a picture that is not there.
  const std::string lone = folder.read("voc/Annotations/a 1.xml");
  for (const char* form : {"voc/Annotations/gone.xml", "voc/__MACOSX/Annotations/._a 1.xml",
                           "voc/Annotations/._a 1.xml", "voc/JPEGImages/Thumbs.db"})
    folder.write(form, lone);
  folder.write("coco/__MACOSX/annotations/._instances_train2017.json", "x");
  folder.write("coco/annotations/._instances_train2017.json", "x");
  folder.write("yolo/train/labels/gone.txt", "0 0.5 0.5 0.1 0.1\n");
  folder.write("yolo/__MACOSX/._data.yaml", "x");
  for (const BoxRow& row : rows) {
    SCOPED_TRACE(row.form);
    const Outcome seen = run(folder, cat("crema new -dry_run ", row.form, " project"));
    expect_parts(seen, {row.found, "12 boxes of 2 classes: cat 6, dog 6"});
    EXPECT_EQ(seen.out.find("1 file of boxes has no picture") != std::string::npos,
              std::string(row.form) != "coco")
        << seen.out;
  }
  const Outcome made = run(folder, "crema new -iterations 4 coco project");
  expect_parts(made, {"Reached: "});
  EXPECT_EQ(folder.read("project/labels.txt"), "background\ncat\ndog\n");
  EXPECT_TRUE(folder.has("project/labelmap.prototxt"));
  // The same pictures are no folders of classes.
  const Outcome other = run(folder, "crema new -dry_run -task masks coco other");
  EXPECT_EQ(other.code, 1);
  expect_part(other.errors().back(), "coco: no masks were found in it");
}

TEST(New, FindsMasks) {
  NEEDS_PICTURES();
  const Folder folder;
  for (int i = 0; i < 10; ++i) {
    folder.write(cat("m/images/", i, ".png"), picture(0, i, 70));
    Image mask{3, 70, 70, {}};
    for (int k = 0; k < 70 * 70; ++k) {
      const bool left = k % 70 < 35;
      for (const int value : {0, left ? 128 : 0, left ? 0 : 255})
        mask.pixels.push_back(static_cast<uint8_t>(value));
    }
    folder.write(cat("m/masks/", i, ".png"), encode_image(mask, "png"));
  }
  folder.write("m/masks/3.png", picture(0, 3, 60));
  const Outcome made = run(folder, "crema new -iterations 4 m project");
  expect_parts(made, {"m: 9 pictures with masks of 2 classes: #008000, #ff0000",
                      "1 picture cannot be read", "but its mask 60 x 60", "model: unet",
                      "stored as 64 x 64 pixels", "Reached: accuracy"});
  EXPECT_TRUE(folder.has("project/data/masks/train_0.png"));
}

}  // namespace new_test
}  // namespace crema::tests
