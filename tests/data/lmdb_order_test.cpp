// Records of an LMDB in any order, small and large ones, from several files and threads: each read
// returns the requested record.
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <thread>

#include "data/databases/database_writer.h"
#include "data/databases/source.h"
#include "fixtures.h"

namespace crema::tests {
namespace lmdb_order_test {

constexpr int64_t kRecords = 300;

// From a byte to more than one read block.
size_t size_of(int64_t index) { return index % 50 == 49 ? 100000 : 1 + index * 37 % 6000; }

char value_of(int64_t index, char file) { return static_cast<char>(index + file); }

std::unique_ptr<Source> database(const std::string& path, char file) {
  const std::unique_ptr<DatabaseWriter> writer = create_database(path, DataParameter::LMDB);
  for (int64_t i = 0; i < kRecords; ++i) {
    Datum datum;
    datum.set_label(static_cast<int>(i));
    datum.set_data(std::string(size_of(i), value_of(i, file)));
    writer->put(cat("key", 1000 + i), datum);
  }
  writer->finish();
  return open_database(path, DataParameter::LMDB);
}

void expect_record(const Source& source, int64_t index, char file) {
  Datum datum;
  source.read(index, datum);
  EXPECT_EQ(datum.label(), index);
  EXPECT_EQ(datum.data(), std::string(size_of(index), value_of(index, file))) << index;
}

TEST(LmdbOrder, ReadsWhatIsAskedFor) {
  const Folder folder;
  const std::unique_ptr<Source> first = database(folder.file("first"), 0);
  std::unique_ptr<Source> second = database(folder.file("second"), 1);
  std::vector<int64_t> forwards(kRecords);
  std::iota(forwards.begin(), forwards.end(), 0);
  std::vector<int64_t> backwards(forwards.rbegin(), forwards.rend()), mixed = forwards, twice;
  std::shuffle(mixed.begin(), mixed.end(), std::mt19937(1));
  for (const int64_t i : forwards) twice.insert(twice.end(), {i, i, (i + 1) % kRecords});
  const auto read = [&](const std::vector<int64_t>& order) {
    for (const int64_t i : order) expect_record(*first, i, 0);
    for (const int64_t i : order) {
      expect_record(*first, i, 0);
      expect_record(*second, i, 1);
    }
  };
  for (const auto& order : {forwards, backwards, mixed, twice}) read(order);
  std::thread other([&] { read(forwards); });
  read(mixed);
  other.join();
  // Another file, which may have the old one's address in memory.
  second.reset();
  second = database(folder.file("third"), 2);
  for (const int64_t i : forwards) expect_record(*second, i, 2);
}

}  // namespace lmdb_order_test
}  // namespace crema::tests
