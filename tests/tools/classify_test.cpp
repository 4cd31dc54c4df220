// classify: one answer from wherever an image comes, names, errors.
#include <gtest/gtest.h>

#include <regex>

#include "tools/classified.h"

#ifdef CREMA_OPENCV
#define NEEDS_IMAGES() static_cast<void>(0)
#else
#define NEEDS_IMAGES() GTEST_SKIP() << "built without OpenCV"
#endif

namespace crema::tests {
namespace classify_test {

// Six grey images of 2 x 3 as files, in an LMDB and in a LevelDB, and a net that was trained on
// them.
void make_trained_net(const Folder& folder) {
  std::string images("\0\0\x08\x03\0\0\0\x06\0\0\0\x02\0\0\0\x03", 16),
      labels("\0\0\x08\x01\0\0\0\x06", 8), list, near;
  for (int i = 0; i < 6; ++i) {
    std::string pixels;
    for (int k = 6 * i; k < 6 * i + 6; ++k) pixels += static_cast<char>(k * k * 7 % 251);
    images += pixels;
    labels += static_cast<char>(i % 2);
    folder.write(cat("pictures/", i < 3 ? "a/" : "b/", i, ".pgm"), "P5\n3 2\n255\n" + pixels);
    list += cat("pictures/", i < 3 ? "a/" : "b/", i, ".pgm ", i % 2, "\n");
    near += cat(i < 3 ? "a/" : "b/", i, ".pgm\n");
  }
  folder.write("images", images);
  folder.write("labels", labels);
  folder.write("list.txt", list);
  folder.write("pictures/near.txt", near);
  ASSERT_EQ(run(folder, "convert_mnist_data images labels lmdb").code, 0);
#ifdef CREMA_LEVELDB
  ASSERT_EQ(run(folder, "convert_mnist_data -backend leveldb images labels leveldb").code, 0);
#endif
  folder.write("net.prototxt",
               "layer { name: \"data\" type: \"Data\" top: \"data\" top: \"label\" transform_param "
               "{ scale: 0.01 } data_param { source: \"lmdb\" batch_size: 3 backend: LMDB } }\n" +
                   trunk(3, 2) + kClassLoss);
  train_two_iterations(folder, "net.prototxt");
}

constexpr const char* kClassify = "classify -model net.prototxt -weights net_iter_2.caffemodel ";

TEST(Classify, GivesOneAnswerForFilesListsFoldersAndDatabases) {
  const Folder folder;
  make_trained_net(folder);
  const Outcome test =
      run(folder, "test -model net.prototxt -weights net_iter_2.caffemodel -iterations 2");
  std::string accuracy;
  for (const std::string& line : test.messages())
    if (starts_with(line, "accuracy = ")) accuracy = line;
  ASSERT_NE(accuracy, "");

  const auto csv_of = [&](const std::string& arguments) {
    const Outcome outcome = run(folder, cat(kClassify, arguments, " -output out.csv"));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_LE(outcome.messages().size(), 12u) << outcome.err;  // not how the net is made
    if (arguments.find("pictures") == std::string::npos) expect_part(outcome.err, accuracy + " (");
    return rows_of(folder.read("out.csv"));
  };
  const std::vector<Classified> reference = csv_of("lmdb");
  expect_part(run(folder, cat(kClassify, "-v 1 lmdb")).err, "] Creating Layer ");
  ASSERT_EQ(reference.size(), 6u);
  EXPECT_EQ(reference[1].path, "lmdb:00000001");
  std::vector<std::string> all = {"-batch 4 lmdb"};
#ifdef CREMA_LEVELDB
  all.emplace_back("leveldb");
#endif
#ifdef CREMA_OPENCV
  all.insert(all.end(),
             {"list.txt", "pictures/near.txt", "pictures", "-batch 1 pictures/a pictures/b",
              "pictures/a/0.pgm pictures/a/1.pgm pictures/a/2.pgm pictures/b"});
#endif
  for (const std::string& arguments : all) {
    SCOPED_TRACE(arguments);
    const std::vector<Classified> rows = csv_of(arguments);
    ASSERT_EQ(rows.size(), reference.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(rows[i].best, reference[i].best);
      for (const auto& [number, score] : reference[i].scores)
        EXPECT_NEAR(rows[i].scores.at(number), score, 1e-6);
      const bool labelled = arguments.find("pictures") == std::string::npos;
      EXPECT_EQ(rows[i].label, labelled ? std::to_string(i % 2) : "");
    }
  }
}

TEST(Classify, NamesClassesAndPrintsTheBest) {
  const Folder folder;
  make_trained_net(folder);
  const auto first_line = [&](const std::string& flags) {
    const Outcome outcome = run(folder, kClassify + flags + " lmdb");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return split(outcome.out, '\n')[0];
  };
  ASSERT_EQ(run(folder, std::string(kClassify) + "-output out.csv lmdb").code, 0);
  const Classified row = rows_of(folder.read("out.csv"))[0];
  char score[32];
  std::snprintf(score, sizeof score, "%.4f", row.scores.at(row.best));
  const std::string start = cat("lmdb:00000000  ", score, " ");
  EXPECT_EQ(first_line("-top 1"), cat(start, row.best));
  folder.write("names", "n01 zero, one\nn02 \"two\"\n\nn03\n\n");
  EXPECT_EQ(run(folder, std::string(kClassify) + "-labels names lmdb").errors(),
            std::vector<std::string>{"names: names 4 classes, but the net has 3; expected one name "
                                     "a line, the first for class 0"});
  const std::vector<std::string> names = {"n01 zero, one", "n02 \"two\"", "n03"};
  folder.write("names", join(names, "\r\n") + "\n\n");
  EXPECT_EQ(first_line("-top 1 -labels names"), cat(start, '"', names[row.best], '"'));
  EXPECT_EQ(split(first_line("-labels names"), '.').size(), 4u) << "three scores";
  ASSERT_EQ(run(folder, std::string(kClassify) + "-labels names -output out.csv lmdb").code, 0);
  const std::string csv = folder.read("out.csv");
  EXPECT_TRUE(
      starts_with(csv, "path,class1,name1,score1,class2,name2,score2,class3,name3,score3,label\n"));
  expect_part(csv, ",0,\"n01 zero, one\",0.");
  expect_part(csv, ",1,\"n02 \"\"two\"\"\",0.");

  // Unrelated names, next to the net.
  folder.write("labels.txt", "apple\nbanana\ncherry\n");
  EXPECT_EQ(first_line("-top 1"), cat(start, row.best));
  // Those of the net's training database, also for the deploy net.
  folder.write("lmdb/labels.txt", "cat\ndog\nowl\n");
  const std::string named =
      cat(start, "\"", std::vector<std::string>{"cat", "dog", "owl"}[row.best], "\"");
  EXPECT_EQ(first_line("-top 1"), named);
  ASSERT_EQ(run(folder, "deploy -model net.prototxt -output use.prototxt").code, 0);
  const Outcome used =
      run(folder, "classify -model use.prototxt -weights net_iter_2.caffemodel -top 1 lmdb");
  EXPECT_EQ(split(used.out, '\n')[0], named) << used.err;
  expect_part(used.err, "The class names come from lmdb/labels.txt");
  folder.write("lmdb/labels.txt", "cat\ndog\n");
  EXPECT_EQ(
      run(folder, std::string(kClassify) + "lmdb").errors(),
      std::vector<std::string>{"lmdb/labels.txt: names 2 classes, but the net has 3; expected "
                               "one name a line, the first for class 0"});
}

// A foreign deploy file has no image preparation.
TEST(Classify, SaysWhatItAssumes) {
  const Folder folder;
  make_trained_net(folder);
  ASSERT_EQ(run(folder, "deploy -model net.prototxt -output use.prototxt").code, 0);
  const std::string classify = "classify -weights net_iter_2.caffemodel -top 1 lmdb -model ";
  const Outcome told = run(folder, classify + "use.prototxt");
  EXPECT_EQ(told.err.find("assumed"), std::string::npos) << told.err;
  folder.write("bare.prototxt",
               std::regex_replace(folder.read("use.prototxt"), std::regex("#.*\n"), ""));
  const Outcome bare = run(folder, classify + "bare.prototxt");
  expect_part(bare.err,
              "bare.prototxt: does not say how to prepare images; assuming data: 6x1x2x3, from "
              "images of 3x2 pixels; values from 0 to 255. -mean, -scale");
  EXPECT_NE(bare.out, told.out);
  EXPECT_EQ(run(folder, classify + "bare.prototxt -scale 0.01").out, told.out);
  EXPECT_EQ(run(folder, classify + "use.prototxt -scale 1").out, bare.out) << "flags win";
}

TEST(Classify, GoesOnBehindAnImageThatItCannotRead) {
  NEEDS_IMAGES();
  const Folder folder;
  make_trained_net(folder);
  folder.write("pictures/a/broken.png", "not a picture");
  const Outcome many = run(folder, std::string(kClassify) + "-batch 3 pictures gone.jpg");
  EXPECT_EQ(many.code, 1);
  ASSERT_EQ(many.errors().size(), 2u) << many.err;
  EXPECT_TRUE(starts_with(many.errors()[0], "pictures/a/broken.png: ")) << many.errors()[0];
  EXPECT_TRUE(starts_with(many.errors()[1], "gone.jpg: ")) << many.errors()[1];
  EXPECT_EQ(split(many.out, '\n').size(), 7u) << many.out;
  EXPECT_EQ(many.messages().back(), "Classified 6 of 8 images");
  const Outcome one = run(folder, std::string(kClassify) + "-output out.csv pictures/a/broken.png");
  EXPECT_EQ(one.code, 1);
  EXPECT_EQ(one.errors().size(), 1u) << one.err;
  EXPECT_EQ(one.out, "");
  EXPECT_FALSE(folder.has("out.csv"));
}

TEST(Classify, SaysWhatIsWrong) {
  const Folder folder;
  make_trained_net(folder);
  folder.write("empty/readme", "nothing");
  folder.write("several.prototxt",
               folder.read("net.prototxt") +
                   "layer { name: \"ip2\" type: \"InnerProduct\" bottom: \"pool\" top: \"ip2\" "
                   "inner_product_param { num_output: 2 weight_filler { type: \"xavier\" } } }\n"
                   "layer { name: \"sigmoid\" type: \"Sigmoid\" bottom: \"ip2\" top: \"many\" }\n");
  folder.write("maps.prototxt",
               "layer { name: \"in\" type: \"Input\" top: \"data\" input_param { shape { dim: 1 "
               "dim: 1 dim: 5 dim: 5 } } }\n"
               "layer { name: \"conv\" type: \"Convolution\" bottom: \"data\" top: \"conv\" "
               "convolution_param { num_output: 4 kernel_size: 2 } }\n");
  folder.write("vector.prototxt",
               "layer { name: \"in\" type: \"Input\" top: \"data\" input_param { shape { dim: 1 "
               "dim: 5 } } }\n"
               "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"data\" top: \"ip\" "
               "inner_product_param { num_output: 4 } }\n");
  folder.write("wrong.txt", "pictures/a/0.pgm 3\n");
  const std::string weights = " -weights net_iter_2.caffemodel ";
  struct Wrong {
    std::string arguments;
    const char* message;
  };
  std::vector<Wrong> rows = {
      {"-model net.prototxt lmdb", "weights are needed: -weights FILE.caffemodel"},
      {weights + "lmdb", "a net is needed: -model NET.prototxt"},
      {"-model net.prototxt -weights net_iter_2.caffemodel", "too few arguments (0)"},
      {"-model net.prototxt" + weights + "-top 0 lmdb", "-top 0: expected a positive number"},
      {"-model net.prototxt" + weights + "-batch -1 lmdb", "-batch -1: expected a positive number"},
      {"-model net.prototxt" + weights + "-resize 3 lmdb",
       "-resize 3: expected width x height in pixels, such as 256x256"},
      {"-model net.prototxt" + weights + "-resize 2x2 lmdb",
       "images of 2x2 pixels: the image is 1x2x2: too small for a crop of 2x3"},
      {"-model net.prototxt" + weights + "-mean 1,x lmdb", "-mean 1,x: expected numbers"},
      {"-model net.prototxt" + weights + "-mean gone.binaryproto lmdb", "gone.binaryproto"},
      {"-model net.prototxt" + weights + "-mean 1,2 lmdb", "there are 2 mean_value"},
      {"-model net.prototxt" + weights + "empty", "empty: is neither a database"},
      {"-model net.prototxt" + weights + "gone.txt", "gone.txt"},
      {"-model net.prototxt" + weights + "-blob cnv lmdb",
       "has no blob \"cnv\" (did you mean \"conv\"?)"},
      {"-model net.prototxt" + weights + "-blob conv lmdb",
       "-blob conv: its shape is 6x4x1x2; expected 6 rows of scores, one for each image"},
      {"-model several.prototxt" + weights + "lmdb",
       "the net has several outputs with a row of scores for each image: "},
      {"-model maps.prototxt" + weights + "lmdb",
       "the net has no output with a row of scores for each image: conv (6x4x4x4); name the blob"},
      {"-model vector.prototxt" + weights + "lmdb",
       "vector.prototxt:1:1: the input \"data\" is 6x5, not images"},
  };
#ifdef CREMA_OPENCV
  rows.push_back({"-model net.prototxt" + weights + "wrong.txt",
                  "pictures/a/0.pgm: the label 3 is not a class; classes go from 0 to 2"});
#endif
  for (const Wrong& row : rows) {
    const Outcome outcome = run(folder, "classify " + row.arguments);
    EXPECT_EQ(outcome.code, 1) << row.arguments;
    EXPECT_EQ(outcome.out, "") << row.arguments;
    ASSERT_EQ(outcome.errors().size(), 1u) << row.arguments << "\n" << outcome.err;
    expect_part(outcome.errors()[0], row.message);
  }
  const Outcome named = run(folder, "classify -model several.prototxt -weights_mode match" +
                                        weights + "-blob ip -top 1 lmdb");
  EXPECT_EQ(named.code, 0) << named.err;
  EXPECT_EQ(split(named.out, '\n').size(), 7u);
}

}  // namespace classify_test
}  // namespace crema::tests
