// Everything registered must be tested and documented: a row, an opening comment. (tests/proto
// checks that fields have comments.)
#include <gtest/gtest.h>

#include <set>

#include "layers/layer.h"
#include "layers/layer_docs.h"
#include "layers/row.h"

namespace crema {
namespace complete_test {

// The word after `type:` of a row's layer text.
std::string type_of(const Row& row) {
  const size_t open = row.text.find('"', row.text.find("type:"));
  const size_t close = row.text.find('"', open + 1);
  return row.text.substr(open + 1, close - open - 1);
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Not those that src/layers/README.md and fused/README.md show, which the test program itself brings.
bool is_in_the_library(const std::string& type) {
  return std::string(LayerRegistry::find(type)->file).find("/shown_") == std::string::npos;
}

TEST(CompleteTest, EveryLayerHasARow) {
  std::set<std::string> tested;
  for (const Row& row : read_rows(CREMA_TEST_DATA "/layers/rows")) tested.insert(type_of(row));
  // They read or write databases and files: tests/data compares them with the reference.
  tested.insert({"AnnotatedData", "BboxData", "CoSData", "Data", "DenseImageData", "MatRead",
                 "MatWrite", "HDF5Data", "HDF5Output", "ImageData", "ImageFloatData", "ImageGtData",
                 "ImageLabelmapData", "ImageSegData", "McWindowData", "SegData", "SparseData",
                 "VideoData", "WindowData"});
  for (const std::string& type : LayerRegistry::names()) {
    if (!is_in_the_library(type)) continue;
    EXPECT_TRUE(tested.count(type)) << type << " has no row in tests/layers/rows";
  }
}

TEST(CompleteTest, RowsHaveDistinctNames) {
  std::set<std::string> seen;
  for (const Row& row : read_rows(CREMA_TEST_DATA "/layers/rows")) {
    EXPECT_TRUE(seen.insert(row.id()).second) << row.id() << " is there twice";
  }
}

TEST(CompleteTest, EveryLayerFileOpensWithItsDocumentation) {
  for (const std::string& type : LayerRegistry::names()) {
    if (!is_in_the_library(type)) continue;
    const std::string file = file_name(LayerRegistry::find(type)->file);
    std::string comment;
    for (const LayerDoc& doc : layer_docs()) {
      if (doc.file == file) comment = doc.text;
    }
    EXPECT_NE(comment.find(type), std::string::npos)
        << file << " must open with a comment that names " << type;
    EXPECT_GT(comment.size(), type.size() + 40)
        << file << " must open with formula, shapes and gradient of " << type;
  }
}

}  // namespace complete_test
}  // namespace crema
