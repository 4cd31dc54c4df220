// The number of loader threads affects nothing: neither the order of the samples, nor their random
// numbers; and a run may be resumed with another one.
#include <gtest/gtest.h>

#include "fixtures.h"
#include "solver/snapshot/state_file.h"

namespace crema::tests {
namespace loader_threads_test {

constexpr const char* kFields = "batch_size: 7 shuffle: true";

// `source`: the data layer without its threads.
SolverFile training(const Folder& folder, const std::string& source, int threads) {
  return parse_solver_text(
      cat("net_param { layer { name: \"data\" top: \"data\" top: \"label\" ", source,
          " threads: ", threads, " prefetch: ", threads + 1,
          " } transform_param { crop_size: 5 mirror: true scale: 0.01 } } layer { name: \"ip\" "
          "type: \"InnerProduct\" bottom: \"data\" top: \"ip\" inner_product_param { num_output: 3 "
          "weight_filler { type: \"xavier\" } } } layer { name: \"loss\" type: \"SoftmaxWithLoss\" "
          "bottom: \"ip\" bottom: \"label\" top: \"loss\" } }\n"
          "base_lr: 0.1 lr_policy: \"fixed\" momentum: 0.9 random_seed: 6 max_iter: 40 snapshot_"
          "prefix: \"",
          folder.file("net"), "\""),
      "solver.prototxt");
}

void expect_nothing_decided(const Folder& folder, const std::string& source) {
  Context context(Device::cpu);
  const auto trained = [&](int threads, int64_t iterations) {
    Solver solver(context, training(folder, source, threads));
    solver.step(iterations);
    return parameters_of(solver);
  };
  const std::vector<float> whole = trained(1, 40);
  EXPECT_NE(whole, trained(1, 39));
  for (const int threads : {2, 3}) EXPECT_EQ(trained(threads, 40), whole) << threads;

  for (const auto& [before, after] : {std::pair(1, 3), std::pair(3, 2), std::pair(2, 1)}) {
    {
      Solver first(context, training(folder, source, before));
      first.step(17);  // in the middle of the sixth pass over the images
      first.snapshot();
    }
    SolverOptions options;
    options.snapshot = folder.file("net_iter_17.solverstate");
    Solver second(context, training(folder, source, after), options);
    second.step(23);
    EXPECT_EQ(parameters_of(second), whole) << before << " threads, then " << after;
  }
}

TEST(LoaderThreads, TheirNumberDecidesNothing) {
  const Folder folder;
  image_database(folder, 23, {2, 7, 7}, [](int64_t i) { return static_cast<int>(i % 3); });
  expect_nothing_decided(folder, cat("type: \"Data\" data_param { source: \"",
                                     folder.file("images"), "\" backend: LMDB ", kFields));
}

TEST(LoaderThreads, OfHdf5DataNeither) {
  const Folder folder;
  DatabaseFormat format(DataParameter::HDF5);
  format.rows = 10;  // of three files
  const auto writer = create_database(folder.file("rows"), format);
  const Random random{5, 5};
  for (int i = 0; i < 23; ++i) {
    Datum datum;
    datum.set_channels(2);
    datum.set_height(7);
    datum.set_width(7);
    datum.set_label(i % 3);
    for (int k = 0; k < 98; ++k) datum.add_float_data(random.normal(i * 98 + k));
    writer->put(numbered_key(i, 4), datum);
  }
  writer->finish();
  expect_nothing_decided(folder, cat("type: \"HDF5Data\" hdf5_data_param { source: \"",
                                     folder.file("rows.txt"), "\" ", kFields));
}

}  // namespace loader_threads_test
}  // namespace crema::tests
