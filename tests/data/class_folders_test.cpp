// Databases of pictures in a folder for each class, or listed with several classes.
#include "data/convert/convert.h"
#include "data/databases/class_names.h"
#include "data/databases/hdf5/hdf5_file.h"
#include "data/databases/source.h"
#include "fixtures.h"

namespace crema::tests {
namespace class_folders_test {

struct Classes : Folder {
  Classes() {
    const std::string png = encode_image({1, 2, 2, std::vector<uint8_t>(4, 9)}, "png");
    for (const char* name : {"in/dog/b.png", "in/dog/a 1.PNG", "in/cat/deep/x.png", "in/cat/z.png",
                             "in/cat/.hidden.png", "in/.git/c.png", "in/k\u00e4fer/1.png"})
      write(name, png);
    write("in/dog/notes.txt", "none");
    write("in/top.png", png);
  }
};

std::vector<std::string> keys_and_labels(const std::string& path) {
  const std::unique_ptr<Source> source = open_lmdb(path);
  std::vector<std::string> all;
  for (int64_t i = 0; i < source->size(); ++i) {
    Datum datum;
    source->read(i, datum);
    all.push_back(cat(source->key(i), " ", datum.label()));
  }
  return all;
}

TEST(ClassFolders, GiveClassesTheirNumbersByName) {
  NEEDS_IMAGES();
  const Classes folder;
  for (const char* root : {"in", "in/"}) {
    SCOPED_TRACE(root);
    Lines log;
    const std::string database = cat("out", std::string(root).size(), "/db");
    folder.write(cat("out", std::string(root).size(), "/.here"), "");
    const ImagesetResult result =
        convert_class_folders(folder.file(root), folder.file(database), {}, log);
    EXPECT_EQ(result.written, 5);
    EXPECT_EQ(keys_and_labels(folder.file(database)),
              (std::vector<std::string>{"00000000_cat/deep/x.png 0", "00000001_cat/z.png 0",
                                        "00000002_dog/a 1.PNG 1", "00000003_dog/b.png 1",
                                        "00000004_k\u00e4fer/1.png 2"}));
    EXPECT_EQ(folder.read(cat("out", std::string(root).size(), "/labels.txt")),
              "cat\ndog\nk\u00e4fer\n");
    EXPECT_EQ(class_names_of_source(folder.file(database) + "/").names,
              (std::vector<std::string>{"cat", "dog", "k\u00e4fer"}));
    ImagesetOptions again;  // a database with names is replaced as one without
    again.to.format.overwrite = true;
    EXPECT_EQ(convert_class_folders(folder.file(root), folder.file(database), again, silent_log())
                  .written,
              5);
    ASSERT_EQ(log.warnings.size(), 2u);
    expect_part(log.warnings[0],
                "2 files of " + folder.file(root) + " are left out: not a picture");
    expect_part(log.warnings[1], "in the order of their classes: -shuffle mixes them");
  }
}

TEST(ClassFolders, SayWhatIsWrong) {
  NEEDS_IMAGES();
  const Classes folder;
  const auto problem = [&](const std::string& root) {
    return error_of([&] {
      convert_class_folders(folder.file(root), folder.file("db"), {.shuffle = true}, silent_log());
    });
  };
  expect_part(problem("none"), "none: is no folder; it should have a folder for each class");
  expect_part(problem("in/dog"),
              "in/dog: has no folder for any class; put the pictures of each class");
  folder.write("empty/cat/notes.txt", "");
  expect_part(problem("empty"), "empty: its 1 folders have no picture");
  // With one labels.txt all databases have the same numbers.
  folder.write("labels.txt", "cat\ndog\n");
  expect_part(problem("in"), "labels.txt: names other classes than");
  EXPECT_FALSE(folder.has("db"));
  folder.write("labels.txt", "cat\ndog\nk\u00e4fer\n");
  Lines log;
  std::filesystem::create_directory(folder.file("in/eel"));
  expect_part(problem("in"), "names other classes");
  ImagesetOptions options{.shuffle = true};
  options.to.format.overwrite = true;
  convert_class_folders(folder.file("in"), folder.file("db"), options, log);
  expect_part(log.warnings.at(0), "in/eel: has no picture, and so class 2 has none");
  expect_part(folder.read("labels.txt"), "eel\n");
}

TEST(Imageset, StoresSeveralLabels) {
  NEEDS_IMAGES();
  const Classes folder;
  folder.write("list.csv", "path,x,y\n\"dog/a 1.PNG\",1,0.5\ncat/z.png,2,-3\n");
  Lines log;
  convert_imageset(folder.file("in/"), folder.file("list.csv"), folder.file("db"), {}, log);
  EXPECT_TRUE(log.has("Each image has 2 labels, real numbers"));
  const auto source = open_lmdb(folder.file("db"));
  EXPECT_EQ(source->key(0), "00000000_dog/a 1.PNG");
  Datum datum;
  source->read(1, datum);
  EXPECT_FALSE(datum.has_label());
  ASSERT_EQ(datum.labels_size(), 2);
  EXPECT_EQ(datum.labels(1), -3);
  convert_imageset(folder.file("in/"), folder.file("list.csv"), folder.file("h5"),
                   {.to = DataParameter::HDF5}, silent_log());
  const Hdf5File file(folder.file("h5/0000.h5"));
  EXPECT_EQ(file.shape("label"), (Shape{2, 2}));
  EXPECT_EQ(file.floats("label"), (std::vector<float>{1, 0.5f, 2, -3}));
}

// With errors among them, and for every kind of record.
TEST(Imageset, DoesNotDependOnTheNumberOfThreads) {
  NEEDS_IMAGES();
  const Folder folder;
  std::string list;
  for (int i = 0; i < 60; ++i) {
    Image image{3, 8 + i % 7, 20, {}};
    for (int64_t k = 0; k < image.height * 60; ++k)
      image.pixels.push_back(static_cast<uint8_t>(i * k % 251));
    folder.write(cat(i, ".jpg"), i % 9 == 4 ? "broken" : encode_image(image, "jpg"));
    list += cat(i, ".jpg ", i % 5, "\n");
  }
  folder.write("list", list);
  struct Row {
    const char* name;
    ImagesetOptions options;
  };
  const Row rows[] = {
      {"raw", {}},
      {"resized", {.shuffle = true, .resize_height = 9, .resize_width = 14}},
      {"encoded", {.encoded = true}},
      {"as_png", {.encoded = true, .encode_type = "png"}},
  };
  for (const Row& row : rows) {
    std::string first;
    std::vector<std::string> said;
    for (const int threads : {1, 2, 5}) {
      SCOPED_TRACE(cat(row.name, " on ", threads));
      ImagesetOptions options = row.options;
      options.threads = threads;
      const std::string name = cat(row.name, threads);
      Lines log;
      EXPECT_EQ(convert_imageset(folder.path() + "/", folder.file("list"), folder.file(name),
                                 options, log)
                    .skipped,
                7);
      if (threads == 1) {
        first = folder.read(name + "/data.mdb");
        said = log.all;
      }
      EXPECT_TRUE(folder.read(name + "/data.mdb") == first);
      EXPECT_EQ(log.all, said);
    }
  }
}

}  // namespace class_folders_test
}  // namespace crema::tests
