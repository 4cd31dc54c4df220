// Others can read our files: OpenCV's dnn module loads a net and the weights that we saved, and
// computes the same.
#include <gtest/gtest.h>

#include <cmath>

#include "base/files.h"
#include "net/deploy/deploy.h"
#include "net/graph/filter.h"
#include "net/net.h"
#include "net/prototxt/prototxt.h"
#include "net/weights/weights.h"

#ifdef CREMA_TEST_OPENCV_DNN
#include <opencv2/dnn.hpp>
#endif

namespace crema {
namespace opencv_dnn_test {

TEST(OpenCvDnn, ReadsWhatWeWriteAndComputesTheSame) {
#ifdef CREMA_TEST_OPENCV_DNN
  DeployOptions use;
  use.assume = "data=1x1x28x28";
  use.where = [](int) { return "train_val.prototxt"; };
  NetState state;
  state.set_phase(TEST);
  const NetParameter train_val =
      read_net_file(CREMA_TEST_DATA "/../models/lenet/train_val.prototxt").net;
  const std::string text =
      text_of(deploy(filter_net(train_val, state, silent_log()), use, silent_log()));
  const std::string file = testing::TempDir() + "/crema_lenet_for_opencv.prototxt";
  write_file_atomically(file, text);
  const std::string weights = testing::TempDir() + "/crema_lenet_for_opencv.caffemodel";
  Context context(Device::cpu);
  NetOptions options;
  options.state.set_phase(TEST);
  Net net(context, read_net_file(file).net, options);
  save_caffemodel(net, weights);

  const Tensor input = net.input("data");
  std::vector<float> values(input.count());
  const Random random{5, 5};
  for (size_t i = 0; i < values.size(); ++i) values[i] = random.uniform(i);
  from_floats(context, values.data(), input);
  net.forward(0);
  const std::vector<float> ours = to_floats(context, net.outputs()[0].value);

  cv::dnn::Net other = cv::dnn::readNetFromCaffe(file, weights);
  std::vector<int> sizes(input.shape().dims().begin(), input.shape().dims().end());
  other.setInput(cv::Mat(sizes, CV_32F, values.data()));
  const cv::Mat theirs = other.forward();
  ASSERT_EQ(theirs.total(), ours.size());
  for (size_t i = 0; i < ours.size(); ++i) EXPECT_NEAR(ours[i], theirs.ptr<float>()[i], 1e-5);
#else
  GTEST_SKIP() << "OpenCV's dnn module was not found when this was built";
#endif
}

}  // namespace opencv_dnn_test
}  // namespace crema
