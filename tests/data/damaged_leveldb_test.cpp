#include <gtest/gtest.h>

#include "damage.h"
#include "data/databases/database_writer.h"
#include "data/databases/source.h"
#include "fixtures.h"

#ifdef CREMA_LEVELDB
#include <leveldb/db.h>

namespace crema::tests {
namespace damaged_leveldb_test {

constexpr int kRecords = 2000;

Datum record(int i) {
  Datum datum;
  datum.set_label(i);
  datum.set_data(std::string(10 + i % 300, static_cast<char>(i)));
  return datum;
}

// Everything in the log, as Caffe leaves databases of up to 256 MB.
void write_log(const std::string& path) {
  leveldb::Options options;
  options.create_if_missing = true;
  options.write_buffer_size = 256 << 20;
  leveldb::DB* opened = nullptr;
  ASSERT_TRUE(leveldb::DB::Open(options, path, &opened).ok());
  const std::unique_ptr<leveldb::DB> database(opened);
  for (int i = 0; i < kRecords; ++i)
    database->Put({}, numbered_key(i, 8), record(i).SerializeAsString());
}

void write_tables(const std::string& path) {
  const std::unique_ptr<DatabaseWriter> writer = create_database(path, DataParameter::LEVELDB);
  for (int i = 0; i < kRecords; ++i) writer->put(numbered_key(i, 8), record(i));
  writer->finish();
}

// Reads the records; false if that is an error.
bool is_readable(const std::string& path, std::string* reason) {
  try {
    const std::unique_ptr<Source> source = open_leveldb(path);
    EXPECT_EQ(source->size(), kRecords);
    for (int i = 0; i < source->size(); ++i) {
      Datum datum;
      source->read(i, datum);
      EXPECT_EQ(datum.label(), i);
      EXPECT_EQ(source->key(i), numbered_key(i, 8));
    }
    return true;
  } catch (const Error& error) {
    *reason = error.what();
    return false;
  }
}

// LevelDB would allocate memory for it, and wait for ever if there is none.
TEST(DamagedLeveldb, ATableMayClaimABlockOfAnySize) {
  const Folder folder;
  const std::string path = folder.file("tables");
  write_tables(path);
  constexpr size_t kFooter = 48;
  // Offset and length of two blocks: of none, and of 2^31, 2^62 and 2^64 - 1 bytes.
  for (const std::string& length :
       {std::string("\x80\x80\x80\x80\x08"), std::string("\x80\x80\x80\x80\x80\x80\x80\x80\x40"),
        std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")}) {
    int tables = 0;
    for (const auto& [name, bytes] : contents(path)) {
      if (!name.ends_with(".ldb")) continue;
      std::string wrong = bytes;
      wrong.replace(wrong.size() - kFooter, 3 + length.size(), std::string(3, '\0') + length);
      write_file_atomically(path + "/" + name, wrong);
      std::string reason;
      EXPECT_FALSE(is_readable(path, &reason));
      expect_part(reason, "a table whose blocks are not inside of it");
      write_file_atomically(path + "/" + name, bytes);
      ++tables;
    }
    EXPECT_GT(tables, 0);
  }
}

TEST(DamagedLeveldb, IsAnErrorOrHasAllItsRecordsAndStaysAsItIs) {
  const Folder folder;
  for (const bool in_log : {true, false}) {
    const std::string path = folder.file(in_log ? "log" : "tables");
    in_log ? write_log(path) : write_tables(path);
    const auto whole = contents(path);
    int errors = 0, tries = 0;
    for (const auto& [name, bytes] : whole) {
      if (bytes.empty() || name == "LOCK" || name.starts_with("LOG")) continue;
      const bool large = bytes.size() > 1000;
      for (unsigned number = 0; number < (large ? 120u : 20u); ++number, ++tries) {
        SCOPED_TRACE(cat(name, ", damage ", number));
        const std::string wrong = damaged(bytes, number, large ? 4096 : 16, 64);
        write_file_atomically(path + "/" + name, wrong);
        std::string reason;
        if (!is_readable(path, &reason)) {
          ++errors;
          expect_part(reason, path);
        }
        auto expected = whole;
        expected[name] = wrong;
        EXPECT_EQ(contents(path), expected);
      }
      write_file_atomically(path + "/" + name, bytes);
    }
    EXPECT_GT(errors, tries / 2) << tries;
    std::string reason;
    EXPECT_TRUE(is_readable(path, &reason)) << reason;
  }
}

TEST(DamagedLeveldb, SaysWhatIsWrong) {
  const Folder folder;
  const std::string path = folder.file("l");
  write_log(path);
  const auto whole = contents(path);
  std::string log, reason;
  for (const auto& [name, bytes] : whole) {
    if (name.ends_with(".log")) log = name;
  }
  const std::string bytes = whole.at(log);
  const auto with = [&](const std::string& content) {
    write_file_atomically(path + "/" + log, content);
    EXPECT_FALSE(is_readable(path, &reason));
    expect_part(reason, path + ": the database is damaged");
    expect_part(reason, "nothing in its folder was changed");
    return reason;
  };
  std::string flipped = bytes, emptied = bytes;
  flipped[bytes.size() / 2] ^= 1;
  expect_part(with(flipped), "checksum mismatch");
  expect_part(with(bytes.substr(0, bytes.size() / 2)), log + " is cut short at byte ");
  std::fill_n(emptied.begin() + 65536, 32768, '\0');
  expect_part(with(emptied), log + " has ");
  with(bytes + "more");
  // Old versions reserved space and may not have used it.
  write_file_atomically(path + "/" + log, bytes + std::string(100000, '\0'));
  EXPECT_TRUE(is_readable(path, &reason)) << reason;
}

TEST(DamagedLeveldb, TablesCutOffWhileTheyAreRead) {
  const Folder folder;
  const std::string path = folder.file("l");
  write_tables(path);
  const std::unique_ptr<Source> source = open_leveldb(path);
  Datum datum;
  source->read(0, datum);
  for (const auto& [name, bytes] : contents(path)) {
    if (name.ends_with(".ldb")) std::filesystem::resize_file(path + "/" + name, bytes.size() / 2);
  }
  expect_part(error_of([&] { source->read(kRecords - 1, datum); }), "the database is damaged");
}

}  // namespace damaged_leveldb_test
}  // namespace crema::tests
#endif
