// NumPy files as the format's description has them: what numpy.load() reads was compared once, by
// hand.
#include "data/databases/npy_writer.h"

#include <cstring>

#include "fixtures.h"

namespace crema::tests {
namespace npy_writer_test {

// Its text, without the blanks after it; checks everything else. `values`: the data after it.
std::string header_of(const std::string& file, std::vector<float>& values) {
  EXPECT_EQ(file.substr(0, 8), std::string("\x93NUMPY\1\0", 8));
  const size_t size =
      10 + static_cast<uint8_t>(file.at(8)) + 256 * static_cast<uint8_t>(file.at(9));
  EXPECT_EQ(size % 64, 0u);
  EXPECT_EQ(file.at(size - 1), '\n');
  values.resize((file.size() - size) / sizeof(float));
  std::memcpy(values.data(), file.data() + size, values.size() * sizeof(float));
  EXPECT_EQ(file.size(), size + values.size() * sizeof(float));
  return std::string(trim(file.substr(10, size - 10)));
}

TEST(NpyWriter, WritesRowsAsTheyCome) {
  struct Row {
    Shape first, second;
    const char* shape;
  };
  const Row rows[] = {
      {{2, 3}, {4, 3}, "(6, 3)"},
      {{1}, {2}, "(3,)"},
      {{2, 1, 2, 3, 2}, {1, 1, 2, 3, 2}, "(3, 1, 2, 3, 2)"},
      {{0, 5}, {2, 5}, "(2, 5)"},
      {{1, 1000, 1000}, {1, 1000, 1000}, "(2, 1000, 1000)"},
  };
  const Folder folder;
  for (const Row& row : rows) {
    SCOPED_TRACE(row.shape);
    std::vector<float> values;
    for (int64_t i = 0; i < row.first.count() + row.second.count(); ++i)
      values.push_back(static_cast<float>(i) / 8 - 1);
    NpyWriter writer(folder.file("x"), true);
    writer.put(row.first, values.data());
    writer.put(row.second, values.data() + row.first.count());
    EXPECT_EQ(writer.count(), row.first[0] + row.second[0]);
    writer.finish();
    std::vector<float> read;
    EXPECT_EQ(header_of(folder.read("x.npy"), read),
              cat("{'descr': '<f4', 'fortran_order': False, 'shape': ", row.shape, ", }"));
    EXPECT_EQ(read, values);
    EXPECT_EQ(folder.names(), std::vector<std::string>{"x.npy"});
  }
}

TEST(NpyWriter, AppearsWholeOrNotAtAll) {
  const Folder folder;
  const float values[6] = {};
  const auto open = [&](const char* name, bool overwrite) {
    return error_of([&] { NpyWriter(folder.file(name), overwrite); });
  };
  {
    NpyWriter unfinished(folder.file("x.npy"), false);
    unfinished.put({2, 3}, values);
    expect_part(error_of([&] {
                  unfinished.put({3, 2}, values);
                }),
                "x.npy: the rows are 3x2, but the first ones were 2x3");
    unfinished.complete();
  }
  EXPECT_TRUE(folder.names().empty());
  expect_part(error_of([&] { NpyWriter(folder.file("x"), false).finish(); }),
              "there are no rows to write");
  folder.write("text.npy", "words");
  folder.write("old.npy", "\x93NUMPY and so on");
  std::filesystem::create_directory(folder.file("folder.npy"));
  for (const char* name : {"text", "old", "folder.npy"})
    expect_part(open(name, false), ".npy: exists already; remove it, or choose another name");
  for (const char* name : {"text", "folder"})
    expect_part(open(name, true), ".npy: is no NumPy file, so it is not replaced");
  {
    NpyWriter unfinished(folder.file("old"), true);
    unfinished.put({2, 3}, values);
  }
  EXPECT_EQ(folder.read("old.npy"), "\x93NUMPY and so on");
  // Written by two at the same time: the second one says so.
  NpyWriter one(folder.file("x"), false), other(folder.file("x"), false);
  one.put({2, 3}, values);
  other.put({1, 3}, values);
  one.finish();
  const std::string whole = folder.read("x.npy");
  expect_part(error_of([&] { other.finish(); }), "x.npy: exists already");
  EXPECT_EQ(folder.read("x.npy"), whole);
}

TEST(NpyWriter, AFullDiskLeavesNothing) {
  const Folder folder;
  const std::vector<float> values(5000);
  for (const rlim_t bytes : {1, 200, 10000}) {
    expect_part(error_of([&] {
                  const FileSizeLimit limit(bytes);
                  NpyWriter writer(folder.file("x"), false);
                  writer.put({50, 100}, values.data());
                  writer.finish();
                }),
                folder.file("x.npy") + ": cannot write: ");
    EXPECT_TRUE(folder.names().empty());
  }
}

}  // namespace npy_writer_test
}  // namespace crema::tests
