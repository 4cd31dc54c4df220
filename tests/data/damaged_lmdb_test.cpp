#include <gtest/gtest.h>

#include <cstring>

#include "damage.h"
#include "data/databases/database_writer.h"
#include "data/databases/source.h"
#include "fixtures.h"

namespace crema::tests {
namespace damaged_lmdb_test {

constexpr int kRecords = 1300;
constexpr size_t kPage = 4096;

// Two transactions, leaves and branches, and every 30th value in overflow pages.
std::string data_file(const Folder& folder) {
  const std::unique_ptr<DatabaseWriter> writer =
      create_database(folder.file("whole"), DataParameter::LMDB);
  for (int i = 0; i < kRecords; ++i) {
    Datum datum;
    datum.set_label(i);
    datum.set_data(std::string(i % 30 == 0 ? 9000 : 20 + i % 50, static_cast<char>(i)));
    writer->put(numbered_key(i, 8) + std::string(i % 7 * 20, 'k'), datum);
  }
  writer->finish();
  return folder.read("whole/data.mdb");
}

// How many records can be read, or -1 with the reason.
int records_of(const std::string& path, std::string* reason) {
  try {
    const std::unique_ptr<Source> source = open_lmdb(path);
    for (int64_t i = 0; i < source->size(); ++i) {
      Datum datum;
      source->key(i);
      source->read(i, datum);
    }
    return static_cast<int>(source->size());
  } catch (const Error& error) {
    *reason = error.what();
    return -1;
  }
}

TEST(DamagedLmdb, IsAnErrorOrHasAllItsRecords) {
  const Folder folder;
  const std::string content = data_file(folder), file = "l/data.mdb";
  ASSERT_GT(content.size(), 60 * kPage);
  int errors = 0;
  for (unsigned number = 0; number < 500; ++number) {
    folder.write(file, damaged(content, number, kPage, 3 * kPage));
    std::string reason;
    const int records = records_of(folder.file("l"), &reason);
    errors += records < 0;
    if (records >= 0) {
      EXPECT_EQ(records, kRecords) << "damage " << number;
    }
  }
  EXPECT_GT(errors, 250);
}

struct Damage {
  const char* name;
  size_t record_index;
  std::string bytes;
  const char* message;
};

template <typename T>
std::string bytes_of(T value) {
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

// Places of the second meta page, or of the first: the one that counts is that of the last
// transaction, the second of two here.
TEST(DamagedLmdb, SaysWhatIsWrong) {
  const Folder folder;
  const std::string content = data_file(folder);
  constexpr size_t meta = 16, version = meta + 4, page_size = meta + 24, records = meta + 72,
                   entries = records + 32, root = records + 40, last_page = meta + 120,
                   transaction = meta + 128;
  uint64_t root_page = 0;
  std::memcpy(&root_page, content.data() + root, sizeof(root_page));
  const Damage damages[] = {
      {"magic", meta, "oops", "is not an LMDB"},
      {"magic of the other meta page", kPage + meta, "oops", "has no meta page at byte 4096"},
      {"version", version, bytes_of<uint32_t>(999), "version 999"},
      {"page size", page_size, bytes_of<uint32_t>(4095), "pages of 4095 bytes"},
      {"records missing", entries, bytes_of<uint64_t>(kRecords + 80),
       "the database is damaged (record 1300): there are no more records, but the file says that "
       "it has 1380"},
      {"records left over", entries, bytes_of<uint64_t>(kRecords - 80),
       "the file says that it has no more than 1220"},
      {"more records than bytes", entries, bytes_of<uint64_t>(uint64_t{1} << 60),
       "it says that it has 1152921504606846976 records"},
      {"root", root, bytes_of<uint64_t>(1 << 20), "page 1048576 is needed"},
      {"depth", records + 6, bytes_of<uint16_t>(1), "is not the leaf that should be there"},
      {"flags", records + 4, bytes_of<uint16_t>(4), "was made with flags"},
      {"last page", last_page, bytes_of<uint64_t>(1 << 20), "is cut off, or damaged"},
      {"an older transaction", transaction, bytes_of<uint64_t>(0),
       "its meta pages, of transactions 0 and 1, do not follow each other"},
      {"a later transaction", kPage + transaction, bytes_of<uint64_t>(129),
       "its meta pages, of transactions 2 and 129, do not"},
      {"page that contains itself", root_page * kPage + kPage - 8, bytes_of<uint64_t>(root_page),
       "the database is damaged (record "},
      {"number of a page", root_page * kPage, bytes_of<uint64_t>(3), "is not the branch"},
      {"nodes of a page", root_page * kPage + 12, bytes_of<uint16_t>(5000),
       "does not say what is in it"},
      {"place of a node", root_page * kPage + 16, bytes_of<uint16_t>(4094), "lies outside of it"},
  };
  for (const Damage& damage : damages) {
    SCOPED_TRACE(damage.name);
    std::string bytes = content;
    bytes.replace(damage.record_index, damage.bytes.size(), damage.bytes);
    folder.write("l/data.mdb", bytes);
    std::string reason;
    EXPECT_EQ(records_of(folder.file("l"), &reason), -1);
    expect_part(reason, damage.message);
    expect_part(reason, folder.file("l"));
  }
}

TEST(DamagedLmdb, CutOffWhileItIsRead) {
  const Folder folder;
  const std::string path = folder.file("whole");
  const size_t size = data_file(folder).size();
  const std::unique_ptr<Source> source = open_lmdb(path);
  Datum datum;
  source->read(kRecords - 1, datum);
  std::filesystem::resize_file(path + "/data.mdb", size / 2);
  int errors = 0;
  for (int i = 0; i < kRecords; ++i) {
    try {
      source->read(i, datum);
    } catch (const Error& problem) {
      if (errors++ > 0) continue;
      expect_part(problem.what(), "the database is damaged");
      expect_part(problem.what(), "was cut off");
      expect_part(source->describe(i), path + ", record " + std::to_string(i));
    }
  }
  EXPECT_GT(errors, 100);
  EXPECT_LT(errors, kRecords);
}

}  // namespace damaged_lmdb_test
}  // namespace crema::tests
