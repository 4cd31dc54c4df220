// What `crema classify` of one picture does not wait for.
#include <gtest/gtest.h>

#include <set>

#include "data/images/image.h"
#include "tools/program.h"

namespace crema::tests {
namespace classify_start_test {

constexpr const char* kNet =
    "layer { name: \"in\" type: \"Input\" top: \"data\" input_param { shape { dim: 1 dim: 3 dim: "
    "40 dim: 40 } } }\n"
    "layer { name: \"one\" type: \"Convolution\" bottom: \"data\" top: \"one\" convolution_param { "
    "num_output: 64 kernel_size: 3 weight_filler { type: \"xavier\" } } }\n"
    "layer { name: \"two\" type: \"Convolution\" bottom: \"one\" top: \"two\" convolution_param { "
    "num_output: 64 kernel_size: 3 weight_filler { type: \"xavier\" } } }\n"
    "layer { name: \"pool\" type: \"Pooling\" bottom: \"two\" top: \"pool\" pooling_param { pool: "
    "AVE global_pooling: true } }\n"
    "layer { name: \"prob\" type: \"Softmax\" bottom: \"pool\" top: \"prob\" }\n";

void make_net_and_picture(const Folder& folder) {
  folder.write("net.prototxt", kNet);
  folder.write("train.prototxt",
               std::string(kNet) +
                   "layer { name: \"loss\" type: \"EuclideanLoss\" bottom: \"pool\" bottom: "
                   "\"pool\" top: \"loss\" }\n");
  folder.write(
      "solver.prototxt",
      "net: \"train.prototxt\" base_lr: 0.01 lr_policy: \"fixed\" max_iter: 1 random_seed: "
      "3 snapshot_prefix: \"net\"\n");
  const Outcome trained = run(folder, "train -solver solver.prototxt -assume default");
  ASSERT_EQ(trained.code, 0) << trained.err;
  Image image{3, 50, 60, {}};
  for (int i = 0; i < 3 * 50 * 60; ++i) image.pixels.push_back(static_cast<uint8_t>(i * 7));
  folder.write("a.jpg", encode_image(image, "jpg"));
}

constexpr const char* kClassify =
    "crema classify -model net.prototxt -weights net_iter_1.caffemodel ";

#if defined(CREMA_OPENCV) && defined(CREMA_JPEG)

// The names of the libraries that a command starts, without folders.
std::set<std::string> libraries_of(const Folder& folder, const std::string& command) {
  const Outcome outcome =
      run_shell(folder, cat("LD_DEBUG=files LD_DEBUG_OUTPUT=opened \"$TOOLS\"/", command,
                            " > /dev/null && cat opened.* && rm opened.*"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  std::set<std::string> names;
  for (const std::string& line : split(outcome.out, '\n')) {
    if (line.find("calling init: ") != std::string::npos)
      names.insert(line.substr(line.rfind('/') + 1));
  }
  return names;
}

bool has(const std::set<std::string>& names, const std::string& begin) {
  const auto found = names.lower_bound(begin);
  return found != names.end() && starts_with(*found, begin);
}

TEST(ClassifyStart, OpensNoLibraryThatAJpegDoesNotNeed) {
  const Folder folder;
  make_net_and_picture(folder);
  const std::set<std::string> names = libraries_of(folder, cat(kClassify, "a.jpg"));
  EXPECT_TRUE(has(names, "libcrema.so"));
  EXPECT_TRUE(has(names, "libcrema_jpeg.so"));
  for (const char* name :
       {"libcrema_images.so", "libcrema_hdf5.so", "libcrema_zip.so", "libcrema_http.so", "libssl",
        "libopencv", "libhdf5", "libcurl", "libzip", "libgdal"})
    EXPECT_FALSE(has(names, name)) << name;
  EXPECT_LE(names.size(), 40u) << join({names.begin(), names.end()}, " ");
  // Weights as HDF5 do need it.
  ASSERT_EQ(
      run(folder, "train -solver solver.prototxt -assume default -set snapshot_format=HDF5").code,
      0);
  const std::set<std::string> others = libraries_of(
      folder, "crema classify -model net.prototxt -weights net_iter_1.caffemodel.h5 a.jpg");
  EXPECT_TRUE(has(others, "libcrema_hdf5.so"));
}

#endif

#ifdef CREMA_OPENCV
// Weights are transformed for Winograd's algorithm if there are enough images. The answers agree.
TEST(ClassifyStart, TransformsWeightsForManyPicturesOnly) {
  const Folder folder;
  make_net_and_picture(folder);
  const std::string chosen = "is implemented by winograd";
  const Outcome one = run(folder, cat(kClassify, "-v 1 a.jpg")),
                many = run(folder, cat(kClassify, "-v 1 a.jpg a.jpg a.jpg a.jpg"));
  ASSERT_EQ(one.code, 0) << one.err;
  ASSERT_EQ(many.code, 0) << many.err;
  EXPECT_EQ(one.err.find(chosen), std::string::npos);
  const bool has_winograd = one.err.find("winograd declined") != std::string::npos;
  EXPECT_EQ(many.err.find(chosen) != std::string::npos, has_winograd);
  EXPECT_EQ(one.out, many.out.substr(0, many.out.find('\n') + 1));
}
#endif

}  // namespace classify_start_test
}  // namespace crema::tests
