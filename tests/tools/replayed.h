// Small runs with everything in their folders, and what a replay of them must say.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <string>
#include <vector>

#include "base/random.h"
#include "data/databases/database_writer.h"
#include "tools/program.h"

namespace crema::tests::replayed {

constexpr int kSide = 8, kClasses = 4;

// Pictures of noise with one bright quarter, which is the class.
inline Datum picture(int64_t number, int label) {
  Datum datum;
  datum.set_channels(1);
  datum.set_height(kSide);
  datum.set_width(kSide);
  const Random random{5, 5};
  std::string bytes;
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      const int quarter = 2 * (y >= kSide / 2) + (x >= kSide / 2);
      const auto noise = random.word(static_cast<uint64_t>((number * kSide + y) * kSide + x)) % 100;
      bytes.push_back(static_cast<char>(noise + (quarter == label ? 150 : 0)));
    }
  }
  datum.set_data(bytes);
  datum.set_label(label);
  return datum;
}

using Change = std::function<void(int64_t, Datum*)>;

inline void make_pictures(const Folder& folder, const std::string& name, int64_t count,
                          const Change& change = {}) {
  const auto writer = create_database(folder.file(name), DataParameter::LMDB);
  for (int64_t i = 0; i < count; ++i) {
    Datum datum = picture(i, static_cast<int>(i % kClasses));
    if (change) change(i, &datum);
    writer->put(numbered_key(i, 4), datum);
  }
  writer->finish();
}

inline std::string data(const std::string& more = "", const std::string& transform = "scale: 0.01",
                        const std::string& rule = "", const std::string& source = "pictures") {
  return cat(R"(layer { name: "data" type: "Data" top: "data" top: "label" )", rule,
             " transform_param { ", transform, R"( } data_param { source: ")", source,
             R"(" backend: LMDB batch_size: 4 )", more, " } }\n");
}

inline const std::string kConvolution =
    R"(layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param {
         num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
)";
inline const std::string kEnd =
    R"(layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
       layer { name: "hidden" type: "InnerProduct" bottom: "conv" top: "hidden" inner_product_param {
         num_output: 6 weight_filler { type: "xavier" } } }
       layer { name: "drop" type: "Dropout" bottom: "hidden" top: "hidden" }
       layer { name: "score" type: "InnerProduct" bottom: "hidden" top: "score" inner_product_param {
         num_output: 4 weight_filler { type: "xavier" } } }
       layer { name: "loss" type: "SoftmaxWithLoss" bottom: "score" bottom: "label" top: "loss" }
)";
inline const std::string kBody = kConvolution + kEnd;
inline const std::string kPlain = data() + kBody;
// Fields of the text replace those of the same name.
inline std::string solver(const std::string& more = "") {
  std::string text = cat("net: \"net.prototxt\" solver_mode: CPU ", more, "\n");
  const std::pair<const char*, const char*> others[] = {{"base_lr", "0.02"},
                                                        {"lr_policy", "\"fixed\""},
                                                        {"momentum", "0.9"},
                                                        {"display", "10"},
                                                        {"snapshot", "15"}};
  for (const auto& [name, value] : others) {
    if (!std::regex_search(more, std::regex(cat("\\b", name, ":"))))
      text += cat(name, ": ", value, "\n");
  }
  return text + (more.find("max_epoch:") == std::string::npos ? "max_iter: 40\n" : "");
}

inline void write(const Folder& folder, const std::string& net, const std::string& text) {
  make_pictures(folder, "pictures", 43);
  make_pictures(folder, "tests", 9);
  folder.write("net.prototxt", "name: \"small\"\n" + net);
  folder.write("solver.prototxt", text);
}

inline Outcome train(const Folder& folder, const std::string& flags = "-run r") {
  return run(folder, "crema train -solver solver.prototxt " + flags);
}

// The last rows of an iteration count.
inline double recorded_loss(const Folder& folder, int64_t iteration, const std::string& run = "r") {
  double loss = std::nan("");
  for (const std::string& line : split(folder.read(run + "/iterations.csv"), '\n')) {
    const std::vector<std::string> cells = split(line, ',');
    if (cells.size() == 4 && cells[0] == cat(iteration)) loss = std::stod(cells[1]);
  }
  return loss;
}

// Replays it, and expects it to be that of the run.
inline Outcome expect_same(const Folder& folder, int64_t iteration, const std::string& more = "") {
  SCOPED_TRACE(cat("iteration ", iteration));
  const Outcome outcome = run(folder, cat("crema replay -run r -iteration ", iteration, more));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_part(outcome.err, "on are those of the run, bit for bit\n");
  static const std::regex losses(R"(: loss (\S+) layer by layer; the run recorded (\S+), )");
  std::smatch found;
  if (!std::regex_search(outcome.err, found, losses)) {
    ADD_FAILURE() << outcome.err;
    return outcome;
  }
  const double loss = recorded_loss(folder, iteration), by_layer = std::stod(found[1].str()),
               said = std::stod(found[2].str());
  EXPECT_TRUE(std::isfinite(loss) ? std::abs(said - loss) <= 1e-5 * std::abs(loss)
                                  : !std::isfinite(said))
      << outcome.err;
  EXPECT_TRUE(std::isfinite(loss) ? std::abs(by_layer - loss) <= 1e-4 * std::abs(loss)
                                  : !std::isfinite(by_layer))
      << outcome.err;
  return outcome;
}

}  // namespace crema::tests::replayed
