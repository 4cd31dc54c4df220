// Tar files as a source of records.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "damage.h"
#include "data/databases/database_writer.h"
#include "data/databases/records.h"
#include "data/loader/loader.h"
#include "fixtures.h"
#include "tar_files.h"

namespace crema::tests {
namespace tar_test {

void shell(const std::string& command) { ASSERT_EQ(std::system(command.c_str()), 0) << command; }

TEST(Tar, ReadsWhatTarWritesInEveryFormat) {
  const Folder folder;
  const std::string deep = std::string(60, 'd') + "/" + std::string(60, 'e'),
                    longer = std::string(200, 'f');
  folder.write("in/a/1.jpg", "one");
  folder.write("in/a/1.cls", "7\n");
  folder.write("in/a/2.x.PNG", "other ending");
  folder.write("in/a/2.PNG", std::string(3000, 'p'));
  folder.write("in/a/2.json", "{\"label\": [1, 2.5], \"text\": \"two\"}");
  folder.write("in/README.txt", "about");
  folder.write("in/" + deep + "/3.jpeg", "three");
  folder.write("in/" + deep + "/3.cls", "3");
  folder.write("in/z\xc3\xa4h.cls", "-4");
  folder.write("in/z\xc3\xa4h.webp", "four");
  const std::string plain = cat("a/1=7:one a/2=1,2.5:", std::string(3000, 'p'), " ", deep,
                                "/3=3:three z\xc3\xa4h=-4:four");
  for (const std::string format : {"v7", "ustar", "gnu", "pax", "oldgnu"}) {
    SCOPED_TRACE(format);
    std::string expected = plain;
    if (format == "v7") {  // has no room for long names
      std::filesystem::remove_all(folder.file("in/" + std::string(60, 'd')));
      expected = cat("a/1=7:one a/2=1,2.5:", std::string(3000, 'p'), " z\xc3\xa4h=-4:four");
    } else {
      folder.write("in/" + deep + "/3.jpeg", "three");
      folder.write("in/" + deep + "/3.cls", "3");
    }
    if (format == "gnu" || format == "pax") {
      folder.write("in/" + longer + ".cls", "5");
      folder.write("in/" + longer + ".bmp", "five");
      expected = cat("a/1=7:one a/2=1,2.5:", std::string(3000, 'p'), " ", deep, "/3=3:three ",
                     longer, "=5:five z\xc3\xa4h=-4:four");
    } else {
      std::filesystem::remove(folder.file("in/" + longer + ".cls"));
      std::filesystem::remove(folder.file("in/" + longer + ".bmp"));
    }
    shell(cat("cd '", folder.path(), "' && LC_ALL=C tar --sort=name --format=", format,
              " -cf x.tar -C in ."));
    EXPECT_EQ(records_of(folder.file("x.tar")), expected);
  }
}

std::string pax(const std::string& key, const std::string& value) {
  std::string line = " " + key + "=" + value + "\n";
  size_t length = line.size() + 1;
  while (cat(length).size() + line.size() != length) ++length;
  return cat(length) + line;
}

TEST(Tar, TakesNamesAndSizesFromExtensions) {
  const Folder folder;
  const std::string image(600, 'i');
  // Sizes in binary, and in a pax header alone.
  std::string big = tar_header("b.jpg", 0);
  big.replace(124, 12, std::string("\x80\0\0\0\0\0\0\0\0\0\x02\x58", 12));
  uint64_t sum = 8 * ' ';
  for (size_t i = 0; i < 512; ++i)
    if (i < 148 || i >= 156) sum += static_cast<unsigned char>(big[i]);
  char octal[8];
  std::snprintf(octal, sizeof(octal), "%06o", static_cast<unsigned>(sum));
  big.replace(148, 6, octal);
  folder.write("x.tar", tar_member("pax", pax("mtime", "1.5"), 'g') +
                            tar_member("pax", pax("path", "a.jpg") + pax("size", "600"), 'x') +
                            tar_header("cut", 0) + image + std::string(424, '\0') +
                            tar_member("././@LongLink", std::string("a.cls\0", 6), 'L') +
                            tar_member("././@LongLink", "else", 'K') + tar_member("cut", "1") +
                            big + image + std::string(424, '\0') + tar_member("b.cls", "2") +
                            tar_end());
  EXPECT_EQ(records_of(folder.file("x.tar")), "a=1:" + image + " b=2:" + image);
}

TEST(Tar, PassesOverWhatIsNoRecord) {
  const Folder folder;
  folder.write("x.tar", tar_member("./", "", '5') + tar_member("./._1.jpg", "mac") +
                            tar_member("__info__.json", "{\"label\": 1}") +
                            tar_member("facts.json", "{}") + tar_member("1.jpg", "one") +
                            tar_member("1.seg.png", "mask") + tar_member("1.txt", "caption") +
                            tar_member("1.json", "{\"label\": 5}") + tar_member("1.cls", "4") +
                            tar_member("pipe", "", '6') + tar_member("Makefile", "all:") +
                            tar_end() + std::string(8192, '\0'));
  EXPECT_EQ(records_of(folder.file("x.tar")), "1=4:one");
}

TEST(Tar, SaysWhatIsWrong) {
  const Folder folder;
  const std::string good = tar_record("1", "one", "1"), end = tar_end();
  std::string flipped = good + end;
  flipped[1024 + 3] ^= 1;
  const struct {
    std::string content, message;
  } rows[] = {
      {"", "is no tar file: it is empty"},
      {"#!/bin/sh\n", "is no tar file: it does not begin with a header"},
      {std::string("\x1f\x8b\x08\0\0", 5), "is compressed with gzip"},
      {"BZh91AY", "is compressed with bzip2"},
      {"\xfd"
       "7zXZ",
       "is compressed with xz"},
      {"\x28\xb5\x2f\xfd", "is compressed with zstd"},
      {end, "has no record: an image and its label next to it"},
      {good,
       "the tar file is cut off: it ends at byte 2048, but what should be there reaches to byte "
       "2560"},
      {good.substr(0, 1700), "ends at byte 1700, but what should be there reaches to byte 2560"},
      {(tar_member("1.cls", "1") + tar_member("1.jpg", std::string(9000, 'x'))).substr(0, 5000),
       "ends at byte 5000, but what should be there reaches to byte 10536"},
      {flipped, "is damaged at byte 1024: the bytes of the header add up to "},
      {good + end + good + end, "ends at byte 2048, but from byte 3072 on there is more"},
      {tar_member("1.jpg", "one") + end,
       "record \"1\" has an image, \"1.jpg\", but no label: 1.cls with a number, or 1.json"},
      {tar_member("1.jpg", "one") + tar_member("1.json", "{}") + end, "but no label"},
      {tar_member("a/1.cls", "1") + end, "record \"a/1\" has a label, \"a/1.cls\", but no image"},
      {tar_member("1.jpg", "1") + tar_member("2.jpg", "2") + tar_member("1.cls", "1") + end,
       "are next to each other"},
      {good + tar_record("2", "two", "2") + good + end, "record \"1\" comes twice"},
      {tar_member("1.jpg", "1") + tar_member("1.png", "1") + tar_member("1.cls", "1") + end,
       "record \"1\" has two images: \"1.jpg\" and \"1.png\""},
      {good + tar_member("2.cls", "2") + tar_member("2.CLS", "3") + end,
       "record \"2\" has the member \"2.CLS\" twice"},
      {tar_record("1", "", "1") + end, "member \"1.jpg\" is empty"},
      {tar_record("1", "one", "x") + end, "member \"1.cls\": found \"x\""},
      {tar_member("1.cls", std::string((1 << 20) + 1, '1')) + end,
       "member \"1.cls\" has 1.0 MiB; a label has at most 1.0 MiB"},
      {good + tar_member("2.jpg", "", '1') + end, "member \"2.jpg\" is a link to another file"},
      {good + tar_member("2.jpg", "", 'S') + end, "member \"2.jpg\" is stored as a sparse file"},
      {good + tar_member("x", "no line", 'x') + end,
       "damaged at byte 2560: the pax header has no line LENGTH KEY=VALUE here"},
      {good + tar_member("x", "999 path=a\n", 'x') + end, "no line LENGTH"},
      {good + tar_member("x", pax("size", "-1"), 'x') + end, "\"-1\" is no size"},
      {good + tar_member("x", pax("size", "18446744073709551615"), 'x') + tar_member("2.jpg", "") +
           end,
       "the tar file is cut off"},
      {good + tar_member("x", pax("path", "a"), 'x') + end, "the member that has it is missing"},
      {good + tar_header("x", 1 << 21, 'L') + std::string(1 << 21, 'n') + end,
       "a name of 2097152 bytes is too long"},
  };
  for (const auto& row : rows) {
    folder.write("x.tar", row.content);
    const std::string message = error_of([&] { records_of(folder.file("x.tar")); });
    expect_part(message, row.message);
    EXPECT_EQ(message.rfind(folder.file("x.tar") + ": ", 0), 0u) << message;
  }
}

TEST(Tar, NoticesWhatChangesUnderIt) {
  const Folder folder;
  folder.write("x.tar", tar_record("1", std::string(900, 'i'), "1") + tar_end());
  const std::string path = folder.file("x.tar");
  Datum datum;
  const std::unique_ptr<Source> replaced = open_tar(path), cut = open_tar(path);
  cut->read(0, datum);
  std::filesystem::resize_file(path, 1600);
  expect_part(error_of([&] { cut->read(0, datum); }),
              "x.tar ends at byte 1600, inside of the image");
  expect_part(error_of([&] { replaced->read(0, datum); }),
              "x.tar has 1600 bytes, but had 3584 when it was opened first");
}

TEST(Tar, DamagedFilesAreReadOrRefused) {
  const Folder folder;
  std::string content, keys;
  for (int i = 0; i < 40; ++i)
    content += tar_record(cat("a/", i), std::string(20 * i + 1, 'i'), cat(i));
  content += tar_end();
  int errors = 0;
  for (unsigned number = 0; number < 300; ++number) {
    folder.write("x.tar", damaged(content, number, 512, 2048));
    try {
      const std::unique_ptr<Source> source = open_tar(folder.file("x.tar"));
      EXPECT_LE(source->size(), 40);
      records_of(*source);
    } catch (const Error&) {
      ++errors;
    }
  }
  EXPECT_GT(errors, 100);
}

// More files than are kept open.
TEST(Tar, ReadsManyShardsOnThreads) {
  const Folder folder;
  constexpr int kShards = 300;
  for (int i = 0; i < kShards; ++i)
    folder.write(cat("t/", 1000 + i, ".tar"),
                 tar_record("r", cat("image ", i), cat(i)) + tar_end());
  const std::unique_ptr<Source> source = open_tar(folder.file("t"));
  ASSERT_EQ(source->size(), kShards);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      Datum datum;
      for (int i = 0; i < 2 * kShards; ++i) {
        const int index = (i * 7 + thread * 50) % kShards;
        source->read(index, datum);
        wrong += datum.label() != index || datum.data() != cat("image ", index);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// A net reads the same from tar files as from an LMDB.
TEST(Tar, GivesTheBatchesOfTheSameLmdb) {
  NEEDS_IMAGES();
  const Folder folder;
  const std::unique_ptr<Source> lmdb = open_lmdb(formats() + "/lmdb_encoded");
  std::string content;
  for (int64_t i = 0; i < lmdb->size(); ++i) {
    Datum datum;
    lmdb->read(i, datum);
    content += tar_member(cat(100 + i, ".png"), datum.data()) +
               tar_member(cat(100 + i, ".cls"), cat(datum.label()));
  }
  folder.write("x.tar", content + tar_end());
  LoaderOptions options;
  options.batch_size = 7;
  options.shuffle = true;
  options.random = {3, 4};
  TransformationParameter transform;
  transform.set_crop_size(5);
  transform.set_mirror(true);
  const auto samples = [&](std::shared_ptr<const Source> source) {
    return std::make_shared<Records>(std::move(source),
                                     Transform(transform, true, "", silent_log()));
  };
  Loader reference(samples(open_lmdb(formats() + "/lmdb_encoded")), options);
  for (const int workers : {1, 8}) {
    options.workers = workers;
    Loader loader(samples(open_tar(folder.file("x.tar"))), options);
    for (int64_t number = 0; number < 9; ++number) {
      const Batch& want = reference.batch(number);
      EXPECT_EQ(loader.batch(number).data, want.data);
      EXPECT_EQ(loader.batch(number).labels, want.labels);
    }
  }
}

}  // namespace tar_test
}  // namespace crema::tests
