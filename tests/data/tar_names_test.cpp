// Names of tar files, and labels in them.
#include <gtest/gtest.h>

#include "data/databases/find_database.h"
#include "data/databases/tar/tar_labels.h"
#include "data/databases/tar/tar_shards.h"
#include "fixtures.h"
#include "tar_files.h"

namespace crema::tests {
namespace tar_names_test {

TEST(TarNames, FindsShardsByEveryKindOfName) {
  const Folder folder;
  for (int i = 8; i < 12; ++i) {
    folder.write(cat("t/s-", i < 10 ? "0" : "", i, ".tar"),
                 tar_record("r", cat("i", i), cat(i)) + tar_end());
  }
  folder.write("list.txt", "t/s-11.tar\n\n t/s-08.tar \r\n");
  folder.write("braced.txt", "t/s-{08..09}.tar\n");
  folder.write("t.list", "t/s-10.tar");
  const std::pair<const char*, const char*> rows[] = {
      {"t/s-09.tar", "r=9:i9"},
      {"t", "s-08.tar/r=8:i8 s-09.tar/r=9:i9 s-10.tar/r=10:i10 s-11.tar/r=11:i11"},
      {"list.txt", "t/s-11.tar/r=11:i11 t/s-08.tar/r=8:i8"},
      {"braced.txt", "s-08.tar/r=8:i8 s-09.tar/r=9:i9"},
      {"t.list", "t/s-10.tar/r=10:i10"},
      {"t/s-{09..11}.tar", "s-09.tar/r=9:i9 s-10.tar/r=10:i10 s-11.tar/r=11:i11"},
      {"t/s-{11,08}.tar", "s-11.tar/r=11:i11 s-08.tar/r=8:i8"},
  };
  for (const auto& [name, expected] : rows) {
    SCOPED_TRACE(name);
    EXPECT_EQ(records_of(folder.file(name)), expected);
    if (std::string(name) == "t.list") continue;  // its name says nothing
    const FoundDatabase found = find_database(folder.file(name));
    EXPECT_EQ(found.backend, DataParameter::TAR);
    EXPECT_EQ(records_of(*found.source), expected);
    EXPECT_EQ(found.bytes, found.source->size() * 3072);
  }
  EXPECT_EQ(find_source("t/s-{09..11}.tar", folder.path()), folder.file("t/s-{09..11}.tar"));
  EXPECT_EQ(find_source("no-{09..11}.tar", folder.path()), "no-{09..11}.tar");
}

TEST(TarNames, ExpandsBraces) {
  const std::pair<const char*, const char*> rows[] = {
      {"a", "a"},
      {"a{0..2}", "a0 a1 a2"},
      {"{08..10}.tar", "08.tar 09.tar 10.tar"},
      {"{8..10}", "8 9 10"},
      {"{0..010}", "000 001 002 003 004 005 006 007 008 009 010"},
      {"{a,b}-{0..1}!", "a-0! a-1! b-0! b-1!"},
      {"{a}/{,b}", "{a}/ {a}/b"},
      {"a{b", "a{b"},
  };
  for (const auto& [text, expected] : rows) EXPECT_EQ(join(expand_braces(text), " "), expected);
  const std::pair<const char*, const char*> wrong[] = {
      {"{0..x}", "found `{0..x}` where a range of whole numbers was expected"},
      {"{3..1}", "the range {3..1} ends before it begins"},
      {"{0..99999999999}", "is longer than 1000000"},
      {"{0..99999}{0..99999}", "expands to more than 1000000 files"},
  };
  for (const auto& [text, part] : wrong) expect_part(error_of([&] { expand_braces(text); }), part);
}

std::string text_of(const TarLabel& label) {
  std::vector<std::string> several;
  for (const float number : label.several) several.push_back(cat(number));
  return several.empty() ? cat(label.number) : "[" + join(several, " ") + "]";
}

TEST(TarNames, ReadsLabels) {
  struct {
    const char *text, *result;
    bool json;
  } rows[] = {
      {"3", "3", false},
      {" 17\r\n", "17", false},
      {"-2", "-2", false},
      {"1 2,3\n4", "[1 2 3 4]", false},
      {"0.5", "[0.5]", false},
      {"1e3", "1000", false},
      {"4294967296", "[4.29497e+09]", false},
      {"4294967297", "the label 4294967297 cannot be kept", false},
      {"1e300", "the label 1e+300 is none", false},
      {"inf", "the label inf is none", false},
      {"", "is empty", false},
      {"cat", "found \"cat\" where the number of the class was expected", false},
      {"3\xff", "found \"3\\377\" where", false},
      {"{\"label\": 3}", "3", true},
      {"{\"label\": [0, 1]}", "[0 1]", true},
      {"{\"label\": [7]}", "7", true},
      {"{\"cls\": 3}", "none", true},
      {"[3]", "none", true},
      {"{\"label\": \"cat\"}", "\"label\" holds string; expected a number", true},
      {"{\"label\": []}", "\"label\" is an empty list", true},
      {"{\"label\": 3", "is not JSON", true},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.text);
    std::string result;
    try {
      if (row.json) {
        const std::optional<TarLabel> label = label_of_json(row.text);
        result = label ? text_of(*label) : "none";
      } else {
        result = text_of(label_of_cls(row.text));
      }
      EXPECT_EQ(result, row.result);
    } catch (const Error& error) {
      expect_part(error.what(), row.result);
    }
  }
}

TEST(TarNames, SaysWhatIsThereInstead) {
  const Folder folder;
  folder.write("packed/a.tar.gz", "");
  folder.write("none/readme", "");
  folder.write("list.txt", "gone.jpg\n");
  folder.write("twice.txt", "a.tar\na.tar\n");
  folder.write("empty.txt", "\n");
  folder.write("l/data.mdb", "");
  folder.write("v/CURRENT", "");
  folder.write("t/a.tar", tar_end());
  const struct {
    const char* path;
    Backend backend;
    const char* message;
  } rows[] = {
      {"packed", DataParameter::TAR, "has no .tar file, but a.tar.gz, which is compressed"},
      {"none", DataParameter::TAR, "none: has no .tar file"},
      {"list.txt", DataParameter::TAR, "gone.jpg\", which is no file"},
      {"twice.txt", DataParameter::TAR, "a.tar twice"},
      {"empty.txt", DataParameter::TAR, "names no tar file"},
      {"l", DataParameter::TAR, "is an LMDB; write `backend: LMDB`"},
      {"v", DataParameter::TAR, "is a LevelDB; write `backend: LEVELDB`"},
      {"t", DataParameter::LMDB, "is not an LMDB, but tar files; write `backend: TAR`"},
      {"t/a.tar", DataParameter::LEVELDB, "is not a LevelDB, but tar files; write `backend: TAR`"},
      {"t-{0..3}.tar", DataParameter::LMDB, "names with braces are for tar files"},
      {"t-{0..3}.tar", DataParameter::TAR, "t-0.tar: cannot open"},
      {"gone.tar", DataParameter::TAR, "gone.tar: no such database"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.path);
    expect_part(error_of([&] { open_database(folder.file(row.path), row.backend); }), row.message);
  }
}

}  // namespace tar_names_test
}  // namespace crema::tests
