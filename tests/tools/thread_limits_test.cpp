// OpenMP may start fewer threads than a loop asks for, if the environment says so: a run goes on.
#include <gtest/gtest.h>

#include "tools/program.h"

namespace crema::tests {
namespace thread_limits_test {

class ThreadLimits : public testing::TestWithParam<const char*> {};

TEST_P(ThreadLimits, DoNotHoldUpARun) {
  const Folder folder;
  folder.write("solver.prototxt", R"(
    base_lr: 0.01 lr_policy: "fixed" max_iter: 2 snapshot_prefix: "w" net_param {
      layer { name: "x" type: "DummyData" top: "x"
              dummy_data_param { shape { dim: 2 dim: 16 dim: 2 dim: 4 dim: 4 } } }
      layer { name: "up" type: "Deconvolution" bottom: "x" top: "up" convolution_param {
                num_output: 8 kernel_size: 4 stride: 2 pad: 1 weight_filler { type: "xavier" } } }
      layer { name: "sum" type: "Reduction" bottom: "up" top: "sum" loss_weight: 1 } })");
  const Outcome outcome = run_shell(
      folder, cat(GetParam(), " timeout 60 \"$TOOLS/crema\" train -solver solver.prototxt"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;  // 124: it did not end
}

INSTANTIATE_TEST_SUITE_P(Environments, ThreadLimits,
                         testing::Values("OMP_NUM_THREADS=2 OMP_THREAD_LIMIT=1",
                                         "OMP_NUM_THREADS=64 OMP_DYNAMIC=true"));

}  // namespace thread_limits_test
}  // namespace crema::tests
