// `crema train -tensorboard`: where its files go, and the other contents of a run folder.
#include <gtest/gtest.h>

#include "tools/program.h"

namespace crema::tests {
namespace tensorboard_test {

void prepare(const Folder& folder) {
  folder.copy_golden("formats/lmdb_raw", "records");
  folder.write("net.prototxt",
               "layer { name: \"data\" type: \"Data\" top: \"data\" top: \"label\" data_param { "
               "source: \"records\" backend: LMDB batch_size: 5 } }\n"
               "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"data\" top: \"ip\" "
               "inner_product_param { num_output: 20 } }\n"
               "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: \"label\" "
               "top: \"loss\" }\n");
  folder.write("solver.prototxt",
               "net: \"net.prototxt\" base_lr: 0.0001 lr_policy: \"fixed\" max_iter: 4 display: 2 "
               "test_iter: 2 test_interval: 2 snapshot_prefix: \"own/small\" "
               "snapshot_after_train: false\n");
  std::filesystem::create_directory(folder.file("own"));
}

bool has_events(const Folder& folder, const std::string& place) {
  if (!folder.has(place)) return false;
  const std::filesystem::directory_iterator files(folder.file(place));
  return std::any_of(begin(files), end(files), [](const auto& entry) {
    return starts_with(entry.path().filename().string(), "events.out.tfevents.");
  });
}

struct PlaceRow {
  const char* flags;
  const char* place;  // of event files
  bool pictures;      // of the run's own
};

TEST(Tensorboard, WritesIntoTheFolderThatIsAskedFor) {
  const PlaceRow rows[] = {
      {"-tensorboard a/board", "a/board", false},
      {"-tensorboard auto", "own/tensorboard", false},
      {"-tensorboard auto -run here", "here/tensorboard", true},
      {"-tensorboard a/board -run here", "a/board", true},
      {"-run here", "", true},
  };
  for (const PlaceRow& row : rows) {
    SCOPED_TRACE(row.flags);
    const Folder folder;
    prepare(folder);
    const Outcome outcome = run(folder, cat("train -solver solver.prototxt ", row.flags));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    for (const char* place : {"a/board", "own/tensorboard", "here/tensorboard"})
      EXPECT_EQ(has_events(folder, place), place == std::string(row.place)) << place;
    EXPECT_EQ(folder.has("here/pictures/filters.json"), row.pictures);
    EXPECT_EQ(folder.has("here/pictures/mistakes.json"), row.pictures);
  }
}

struct MistakeRow {
  const char* flags;
  const char* message;
};

TEST(Tensorboard, RefusesWhatItCannotDo) {
  const MistakeRow rows[] = {
      {"-tensorboard net.prototxt",
       "-tensorboard net.prototxt: is a file; expected a folder, or a new name for one"},
      {"-tensorboard_histograms 5",
       "-tensorboard_histograms needs a folder to write to: -tensorboard DIR"},
      {"-tensorboard board -tensorboard_histograms -1",
       "-tensorboard_histograms is -1, it must be a number of iterations, or 0 for none"},
  };
  const Folder folder;
  prepare(folder);
  for (const MistakeRow& row : rows) {
    const Outcome outcome = run(folder, cat("train -solver solver.prototxt ", row.flags));
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.errors(), std::vector<std::string>{row.message});
    EXPECT_FALSE(folder.has("board"));
  }
}

}  // namespace tensorboard_test
}  // namespace crema::tests
