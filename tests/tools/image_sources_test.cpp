// Training from lists of images, and what a net leaves in an HDF5 file.
#include <gtest/gtest.h>

#include "data/databases/hdf5/hdf5_file.h"
#include "tools/program.h"

#ifdef CREMA_OPENCV
#define NEEDS_IMAGES() static_cast<void>(0)
#else
#define NEEDS_IMAGES() GTEST_SKIP() << "built without OpenCV"
#endif

namespace crema::tests {
namespace image_sources_test {

constexpr const char* kFormats = CREMA_TEST_DATA "/goldens/formats/";

std::string net(const std::string& image_data, const std::string& transform) {
  return cat(
      "layer { name: \"data\" type: \"ImageData\" top: \"data\" top: \"label\" transform_param { ",
      transform, " } image_data_param { root_folder: \"", kFormats, "images/\" source: \"",
      kFormats, image_data,
      " } }\n"
      "layer { name: \"conv\" type: \"Convolution\" bottom: \"data\" top: \"conv\" "
      "convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: \"xavier\" } } }\n"
      "layer { name: \"pool\" type: \"Pooling\" bottom: \"conv\" top: \"pool\" pooling_param { "
      "pool: AVE global_pooling: true } }\n"
      "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"pool\" top: \"ip\" "
      "inner_product_param { num_output: 14 weight_filler { type: \"xavier\" } } }\n"
      "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: \"label\" top: "
      "\"loss\" }\n"
      "layer { name: \"out\" type: \"HDF5Output\" bottom: \"pool\" bottom: \"label\" "
      "hdf5_output_param { file_name: \"out.h5\" } }\n");
}

constexpr const char* kSolver =
    "net: \"net.prototxt\" base_lr: 0.1 lr_policy: \"fixed\" max_iter: 6 snapshot: 3 "
    "snapshot_prefix: \"net\" random_seed: 3 display: 1\n";

TEST(ImageSources, TrainingGoesOnFromASnapshotAsIfItHadNotStopped) {
  NEEDS_IMAGES();
  const Folder folder;
  folder.write("net.prototxt", net("list.txt\" batch_size: 8 shuffle: true",
                                   "crop_size: 7 mirror: true scale: 0.01 mean_value: 128"));
  folder.write("solver.prototxt", kSolver);
  const Outcome whole = run(folder, "crema train -solver solver.prototxt");
  ASSERT_EQ(whole.code, 0) << whole.err;
  const std::string weights = folder.read("net_iter_6.caffemodel");
  // Six iterations, and a pass for the loss at the end.
  const Hdf5File rows(folder.file("out.h5"));
  EXPECT_EQ(rows.shape("data"), (Shape{56, 4, 1, 1}));
  EXPECT_EQ(rows.shape("label"), (Shape{56, 1, 1, 1}));
  const Outcome rest =
      run(folder, "crema train -solver solver.prototxt -snapshot net_iter_3.solverstate");
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_EQ(folder.read("net_iter_6.caffemodel"), weights);
  EXPECT_EQ(Hdf5File(folder.file("out.h5")).shape("data"), (Shape{32, 4, 1, 1}));
}

TEST(ImageSources, TheNetFollowsTheSizeOfEachImage) {
  NEEDS_IMAGES();
  const Folder folder;
  folder.write("net.prototxt", net("list_var.txt\" batch_size: 1", "scale: 0.01"));
  folder.write("solver.prototxt", kSolver);
  const Outcome outcome = run(folder, "crema train -solver solver.prototxt");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(Hdf5File(folder.file("out.h5")).floats("label"),
            (std::vector<float>{0, 1, 2, 3, 4, 5, 0}));
}

}  // namespace image_sources_test
}  // namespace crema::tests
