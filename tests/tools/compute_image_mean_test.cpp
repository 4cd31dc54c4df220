// compute_image_mean: Caffe's command line, and any kind of database.
#include <gtest/gtest.h>

#include "tools/program.h"

namespace crema::tests {
namespace compute_image_mean_test {

TEST(ComputeImageMean, ReadsWhatIsThere) {
  const Folder folder;
  folder.write("t.csv", "0,10,3\n4,20,5\n");
  std::string first;
  for (const std::string kind : {"lmdb", "leveldb", "hdf5"}) {
#ifndef CREMA_LEVELDB
    if (kind == "leveldb") continue;
#endif
    SCOPED_TRACE(kind);
    ASSERT_EQ(
        run(folder, cat("convert_csv -label 2 -shape 2x1x1 -backend ", kind, " t.csv ", kind)).code,
        0);
    const Outcome outcome = run(folder, cat("compute_image_mean -threads 2 ", kind, " mean"));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(
        outcome.messages(),
        (std::vector<std::string>{cat("Opened ", kind, " ", kind), "Starting iteration",
                                  "Processed 2 files.", "Write to mean", "Number of channels: 2",
                                  "mean_value channel [0]: 2", "mean_value channel [1]: 15"}));
    if (first.empty()) first = folder.read("mean");
    EXPECT_EQ(folder.read("mean"), first);
    EXPECT_EQ(run(folder, cat("compute_image_mean --backend=", kind, " ", kind)).code, 0);
    const Outcome other = run(folder, cat("compute_image_mean -backend ",
                                          kind == "lmdb" ? "leveldb " : "lmdb ", kind, " other"));
    EXPECT_EQ(other.code, 1);
    ASSERT_EQ(other.errors().size(), 1u) << other.err;
    expect_part(other.errors()[0], cat(kind, ": is of kind "));
    expect_part(other.errors()[0], "; without it any kind is read");
    EXPECT_FALSE(folder.has("other"));
  }
}

}  // namespace compute_image_mean_test
}  // namespace crema::tests
