#include <gtest/gtest.h>

#include <fstream>

#include "base/files.h"
#include "data/convert/convert.h"
#include "data/databases/database_writer.h"
#include "fixtures.h"

namespace crema::tests {
namespace convert_imageset_test {

constexpr Backend lmdb = DataParameter::LMDB;

std::vector<std::pair<std::string, std::string>> records(const std::string& path,
                                                         Backend backend = lmdb) {
  const std::unique_ptr<Source> source = open_database(path, backend);
  std::vector<std::pair<std::string, std::string>> all;
  Datum datum;
  for (int64_t i = 0; i < source->size(); ++i) {
    source->read(i, datum);
    all.emplace_back(source->key(i), datum.SerializeAsString());
  }
  return all;
}

TEST(Imageset, MakesTheReferenceDatabases) {
  NEEDS_IMAGES();
  const Folder folder;
  struct Case {
    const char* name;
    const char* list;
    ImagesetOptions options;
  };
  const std::vector<Case> cases = {
      {"raw", "list.txt", {}},
      {"gray", "list.txt", {.gray = true}},
      {"resized", "list.txt", {.resize_height = 9, .resize_width = 14}},
      {"encoded", "list_color.txt", {.encoded = true}},
      {"encoded_gray", "list_color.txt", {.gray = true, .encoded = true}},
      {"encoded_jpg", "list_color.txt", {.encoded = true, .encode_type = "jpg"}},
      {"encoded_mixed", "list.txt", {.encoded = true}},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    const ImagesetResult result =
        convert_imageset(formats() + "/images/", formats() + "/" + one.list, folder.file(one.name),
                         one.options, silent_log());
    EXPECT_EQ(result.skipped, 0);
    EXPECT_EQ(records(folder.file(one.name)), records(formats() + "/lmdb_" + one.name));
  }
#ifdef CREMA_LEVELDB
  for (const Case& one : cases) {
    const std::string name = cat("leveldb_", one.name);
    if (!file_exists(formats() + "/" + name)) continue;  // there are three of them
    SCOPED_TRACE(name);
    ImagesetOptions options = one.options;
    options.to = DataParameter::LEVELDB;
    convert_imageset(formats() + "/images/", formats() + "/" + one.list, folder.file(name), options,
                     silent_log());
    EXPECT_EQ(
        records(folder.file(name), DataParameter::LEVELDB),
        records(folder.copy_golden("formats/" + name, "golden_" + name), DataParameter::LEVELDB));
  }
#endif
}

TEST(Imageset, CountsWhatItCannotRead) {
  NEEDS_IMAGES();
  const Folder folder;
  Lines log;
  std::ofstream(folder.file("list.txt"))
      << "img00.png 7\r\nnothing.png 1\n\n../list.txt 2\nimg 09.png\t3\n";
  const ImagesetResult result =
      convert_imageset(formats() + "/images/", folder.file("list.txt"), folder.file("db"), {}, log);
  EXPECT_EQ(result.written, 2);
  EXPECT_EQ(result.skipped, 2);
  ASSERT_EQ(log.errors.size(), 2u);
  expect_part(log.errors[0],
              "Could not open or find file " + formats() + "/images/nothing.png: cannot open");
  expect_part(log.errors[1], "/images/../list.txt: its");
  EXPECT_EQ(log.all.back(),
            "2 of 4 images could not be read and are left out; -strict makes that an error.");
  EXPECT_EQ(log.infos, (std::vector<std::string>{"A total of 4 images.", "Processed 2 files."}));
  const auto made = records(folder.file("db"));
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(made[0].first, "00000000_img00.png");
  EXPECT_EQ(made[1].first, "00000003_img 09.png");

  const std::string message = error_of([&] {
    convert_imageset(formats() + "/images/", folder.file("list.txt"), folder.file("strict"),
                     {.strict = true}, log);
  });
  expect_part(message, "list.txt: 2 of 4 images could not be read; with -strict no database");
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"db", "list.txt"}));
}

TEST(Imageset, ShufflesTheSameWayEveryTime) {
  NEEDS_IMAGES();
  const Folder folder;
  for (const char* name : {"one", "two"}) {
    convert_imageset(formats() + "/images/", formats() + "/list.txt", folder.file(name),
                     {.shuffle = true}, silent_log());
  }
  const auto one = records(folder.file("one"));
  EXPECT_EQ(one, records(folder.file("two")));
  EXPECT_EQ(one.size(), 20u);
  EXPECT_NE(one, records(formats() + "/lmdb_raw"));
}

TEST(Imageset, SaysWhatIsWrong) {
  NEEDS_IMAGES();
  const Folder folder;
  const auto convert = [&](const std::string& list, const ImagesetOptions& options) {
    folder.write("list.txt", list);
    return error_of([&] {
      convert_imageset(formats() + "/images/", folder.file("list.txt"), folder.file("db"), options,
                       silent_log());
    });
  };
  expect_part(convert("img00.png\n", {}), "list.txt:1: a line is `path label`");
  expect_part(convert("img00.png 1\nimg01.png cat\n", {}), "list.txt:2: a line is `path label`");
  expect_part(convert("img00.png 1 2\nimg01.png 1\n", {}),
              "list.txt:2: has 1 labels, but the first");
  for (const char* label : {"2147483648", "-2147483649", "3000000000"}) {
    expect_part(convert(cat("img00.png 1\nimg01.png ", label, "\n"), {}),
                cat("list.txt:2: the label ", label, " is beyond the integers of 32 bits"));
  }
  for (const char* label : {"inf", "nan", "0x10"}) {
    expect_part(convert(cat("img00.png 1\nimg01.png ", label, "\n"), {}),
                "list.txt:2: a line is `path label` with a number as label");
  }
  expect_part(convert("", {}), "names no image");
  expect_part(convert("none.png 1\n", {}), "not one of its 1 images can be read");
  expect_part(convert("img00.png 1\nvar/v0.png 1\n", {.check_size = true}),
              "but the first image is 3x12x10");
  expect_part(convert("img00.png 1\n", {.resize_height = 50000, .resize_width = 50000}),
              "ask for images of 50000 x 50000 pixels; at most 268435456 are stored");
  expect_part(convert("img00.png 1\n", {.min_dim = 50000}), "not one of its 1 images");
  expect_part(convert("img00.png 1\n", {.max_pixels = 100}), "not one of its 1 images");
  expect_part(convert("img00.png 1\n", {.max_pixels = 0}), "-max_pixels 0: must be from 1 to");
  EXPECT_FALSE(file_exists(folder.file("db")));
  EXPECT_EQ(folder.names(), std::vector<std::string>{"list.txt"});
  std::filesystem::create_directory(folder.file("db"));
  expect_part(convert("img00.png 1\n", {}), "db: exists already");
}

// Of 4 x 4 places; in the second file two bytes are missing, a part of the picture in the third.
TEST(Imageset, LeavesOutCutJpegs) {
  NEEDS_IMAGES();
  const Folder folder;
  Image image{1, 64, 48, {}};
  for (int i = 0; i < 64 * 48; ++i) image.pixels.push_back(static_cast<uint8_t>(i * i % 251));
  const std::string jpeg = encode_image(image, "jpg");
  folder.write("whole.jpg", jpeg + "rubbish");
  folder.write("no_end.jpg", jpeg.substr(0, jpeg.size() - 2));
  folder.write("half.jpg", jpeg.substr(0, jpeg.size() / 2));
  folder.write("list", "whole.jpg 1\nno_end.jpg 2\nhalf.jpg 3\n");
  Lines log;
  const ImagesetResult result = convert_imageset(folder.path() + "/", folder.file("list"),
                                                 folder.file("db"), {.encoded = true}, log);
  EXPECT_EQ(result.written, 1);
  ASSERT_EQ(log.errors.size(), 2u);
  expect_part(log.errors[0], folder.file("no_end.jpg") + ": the JPEG file is cut short");
  expect_part(log.errors[1], folder.file("half.jpg") + ": the JPEG file is cut short");
}

TEST(Imageset, SaysOnceThatPicturesAreCutToEightBits) {
  NEEDS_IMAGES();
  const Folder folder;
  for (const char* name : {"a.pgm", "b.pgm"})
    folder.write(name, std::string("P5\n2 1\n65535\n\xAB\xCD\x12\x34", 18));
  folder.write("list", "a.pgm 1\nb.pgm 2\n");
  Lines log;
  convert_imageset(folder.path() + "/", folder.file("list"), folder.file("db"), {.gray = true},
                   log);
  ASSERT_EQ(log.warnings.size(), 1u);
  expect_part(log.warnings[0], folder.file("a.pgm") +
                                   ": has 16 bits a channel, of which 8 are kept (so it is with 1 "
                                   "other); -as_stored keeps all");
  Datum datum;
  open_lmdb(folder.file("db"))->read(0, datum);
  EXPECT_EQ(datum.data(), "\xAB\x12");
}

// Labels are stored to the last digit, though no blob could hold some of them; images are found
// with blanks in front of their names; and a byte order mark from Windows is not part of the path.
TEST(Imageset, KeepsLabelsAndPathsAsTheyAre) {
  NEEDS_IMAGES();
  const Folder folder;
  const std::string png = encode_image({1, 2, 2, std::vector<uint8_t>(4)}, "png");
  folder.write("a.png", png);
  folder.write(" b.png", png);
  folder.write("list",
               "\xEF\xBB\xBF"
               "a.png 16777217\n b.png 2147483647\n  a.png -2147483648\na.png 7.0\n");
  const ImagesetResult result = convert_imageset(folder.path() + "/", folder.file("list"),
                                                 folder.file("db"), {}, silent_log());
  EXPECT_EQ(result.written, 4);
  const auto source = open_lmdb(folder.file("db"));
  Datum datum;
  const int labels[] = {16777217, 2147483647, INT32_MIN, 7};
  const char* const keys[] = {"00000000_a.png", "00000001_ b.png", "00000002_a.png",
                              "00000003_a.png"};
  for (int i = 0; i < 4; ++i) {
    source->read(i, datum);
    EXPECT_EQ(datum.label(), labels[i]);
    EXPECT_EQ(source->key(i), keys[i]);
  }
}

// A full disk, played by the process's limit on the sizes of files.
TEST(Imageset, FailedWritesLeaveNothing) {
  NEEDS_IMAGES();
  const Folder folder;
  Image image{3, 100, 100, {}};
  for (int i = 0; i < 30000; ++i) image.pixels.push_back(static_cast<uint8_t>(i * i % 251));
  folder.write("a.png", encode_image(image, "png"));
  std::string list;
  for (int i = 0; i < 100; ++i) list += cat("a.png ", i, "\n");
  folder.write("list", list);
  for (const Backend backend : {lmdb, DataParameter::LEVELDB}) {
#ifndef CREMA_LEVELDB
    if (backend != lmdb) continue;
#endif
    for (const rlim_t bytes : {1, 5000, 100000, 1000000}) {
      SCOPED_TRACE(cat(name_of(backend), " of ", bytes, " bytes"));
      Lines log;
      const std::string message = error_of([&] {
        const FileSizeLimit limit(bytes);
        convert_imageset(folder.path() + "/", folder.file("list"), folder.file("db"),
                         {.to = backend}, log);
      });
      expect_part(message, folder.file("db") + ": cannot");
      EXPECT_EQ(log.errors, std::vector<std::string>());
      EXPECT_EQ(folder.names(), (std::vector<std::string>{"a.png", "list"}));
    }
  }
}

}  // namespace convert_imageset_test
}  // namespace crema::tests
