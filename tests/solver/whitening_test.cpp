// The filler "whitening": what its layer makes of the training data is decorrelated.
#include "net/whitening.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fixtures.h"

namespace crema::tests {
namespace whitening_test {

std::string net_of(const std::string& source, const std::string& more) {
  return cat(R"(
    layer { name: "data" type: "Data" top: "x" top: "y"
      transform_param { scale: 0.01 mean_value: 128 }
      data_param { source: ")",
             source, R"(" backend: LMDB batch_size: 50 } }
    layer { name: "before" type: "Pooling" bottom: "x" top: "p"
      pooling_param { pool: AVE kernel_size: 2 } }
    layer { name: "white" type: "Convolution" bottom: "p" top: "w" param { lr_mult: 0 }
      convolution_param { bias_term: false kernel_size: 2
                          weight_filler { type: "whitening" epsilon: 1e-6 } )",
             more, R"( } }
    layer { name: "score" type: "InnerProduct" bottom: "w" top: "s"
      inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "s" bottom: "y" top: "loss" })");
}

TEST(Whitening, DecorrelatesPatches) {
  const Folder folder;
  const std::string database =
      image_database(folder, 50, {2, 7, 6}, [](int64_t i) { return static_cast<int>(i % 10); });
  for (const Device device : {Device::cpu, Device::gpu}) {
    if (device == Device::gpu && gpu_count() == 0) continue;
    for (const int outputs : {16, 6}) {
      Context context(device);
      SolverOptions options;
      options.net.keep_blobs = true;
      Solver solver(context,
                    solver_file("max_iter: 1", net_of(database, cat("num_output: ", outputs))),
                    options);
      solver.net().forward(0);
      const Tensor blob = solver.net().blob("w");
      const std::vector<float> y = to_floats(context, blob);
      const int64_t half = outputs / 2, plane = blob.shape().count(2);
      // Of all patches, which are those that the filters were made from.
      for (int64_t i = 0; i < half; ++i) {
        for (int64_t j = 0; j < half; ++j) {
          double sum = 0, negative = 0;
          for (int64_t n = 0; n < 50; ++n) {
            for (int64_t at = 0; at < plane; ++at) {
              const double a = y[(n * outputs + i) * plane + at];
              sum += a * y[(n * outputs + j) * plane + at];
              negative += a * y[(n * outputs + half + j) * plane + at];
            }
          }
          const auto count = static_cast<double>(50 * plane);
          EXPECT_NEAR(sum / count, i == j ? 1 : 0, 2e-3) << i << ' ' << j;
          EXPECT_NEAR(negative / count, -sum / count, 2e-3);
        }
      }
      const std::vector<float> before = parameters_of(solver);
      solver.step(2);
      const std::vector<float> after = parameters_of(solver);
      for (int i = 0; i < outputs * 8; ++i) ASSERT_EQ(before[i], after[i]);  // lr_mult: 0
      EXPECT_NE(before, after);
    }
  }
}

TEST(Whitening, RefusesWhatItCannotFill) {
  const Folder folder;
  const std::string database = image_database(folder, 5, {2, 7, 6}, [](int64_t) { return 0; });
  const std::pair<const char*, const char*> rows[] = {
      {"num_output: 7", "makes filters and their negatives, at most 8 of each here"},
      {"num_output: 18", "at most 8 of each here, but there are 18 outputs"},
      {"num_output: 8 group: 2",
       "layer \"white\": filler \"whitening\" fills a Convolution of images"},
  };
  Context context(Device::cpu);
  for (const auto& [more, message] : rows) {
    const SolverFile file = solver_file("max_iter: 1", net_of(database, more));
    expect_part(error_of([&] { Solver(context, file); }), message);
  }
}

TEST(Whitening, EigenvectorsOfKnownMatrices) {
  std::vector<double> values;
  const std::vector<double> vectors = eigenvectors({2, 1, 1, 2}, 2, &values);
  EXPECT_NEAR(values[0], 3, 1e-12);
  EXPECT_NEAR(values[1], 1, 1e-12);
  EXPECT_NEAR(vectors[0], std::sqrt(0.5), 1e-12);
  EXPECT_NEAR(vectors[1], std::sqrt(0.5), 1e-12);
  EXPECT_NEAR(vectors[2] * vectors[3], -0.5, 1e-12);
  EXPECT_EQ(eigenvectors({0, 0, 0, 0}, 2, &values), (std::vector<double>{1, 0, 0, 1}));
}

}  // namespace whitening_test
}  // namespace crema::tests
