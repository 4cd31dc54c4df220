// Common code of the tests of classify: small nets, and the CSV files that it writes.
#pragma once

#include <map>

#include "base/strings.h"
#include "tools/program.h"

namespace crema::tests {

// An image's class and score, for all classes, from lines of a CSV file.
using Scores = std::map<int, double>;
struct Classified {
  std::string path, label;
  int best = -1;
  Scores scores;
};

inline std::vector<Classified> rows_of(const std::string& csv) {
  std::vector<Classified> rows;
  for (const std::string& line : split(csv, '\n')) {
    const std::vector<std::string> cells = split(line, ',');
    if (line.empty() || cells[0] == "path") continue;
    EXPECT_EQ(cells.size() % 3, 2u) << line;
    Classified row{cells.front(), cells.back(), std::stoi(cells[1]), {}};
    for (size_t i = 1; i + 2 < cells.size(); i += 3)
      row.scores[std::stoi(cells[i])] = std::stod(cells[i + 2]);
    rows.push_back(row);
  }
  return rows;
}

inline std::string trunk(int classes, int kernel) {
  return cat(
      "layer { name: \"conv\" type: \"Convolution\" bottom: \"data\" top: \"conv\" "
      "convolution_param { num_output: 4 kernel_size: ",
      kernel,
      " weight_filler { type: \"xavier\" } } }\n"
      "layer { name: \"pool\" type: \"Pooling\" bottom: \"conv\" top: \"pool\" "
      "pooling_param { pool: MAX global_pooling: true } }\n"
      "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"pool\" top: \"ip\" "
      "inner_product_param { num_output: ",
      classes, " weight_filler { type: \"xavier\" } } }\n");
}
constexpr const char* kClassLoss =
    "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: \"label\" top: "
    "\"loss\" }\n"
    "layer { name: \"accuracy\" type: \"Accuracy\" bottom: \"ip\" bottom: \"label\" top: "
    "\"accuracy\" include { phase: TEST } }\n";

inline void train_two_iterations(const Folder& folder, const std::string& net) {
  folder.write("solver.prototxt",
               "net: \"" + net +
                   "\" base_lr: 0.01 lr_policy: \"fixed\" max_iter: 2 random_seed: 3 "
                   "snapshot_prefix: \"net\"\n");
  ASSERT_EQ(run(folder, "train -solver solver.prototxt").code, 0);
}

}  // namespace crema::tests
