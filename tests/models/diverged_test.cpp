// Where the nets of models/ become nan or infinite: a layer in the middle gets weights whose
// products overflow, and the log must name it, whatever ReLU or normalization follows.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>

#include "device/context.h"
#include "tools/program.h"

namespace crema::tests {
namespace diverged_test {

struct Row {
  const char *name, *solver, *shapes, *layer, *filler;
  const char* settings = "";
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class Diverged : public testing::TestWithParam<Row> {};

TEST_P(Diverged, NamesTheLayerWhereItBegins) {
  const Row& row = GetParam();
  const Folder folder;
  std::string command = cat(
      "cd '", std::filesystem::path(CREMA_TEST_DATA).parent_path().string(),
      "' && \"$TOOLS\"/train -tune off -solver models/", row.solver, " -assume ", row.shapes, " ",
      row.settings, " -set snapshot_prefix=", folder.file("net"), " -set 'layer[", row.layer, "].",
      row.filler, ".type=constant' -set 'layer[", row.layer, "].", row.filler, ".value=3e38'");
  for (const char* setting :
       {"random_seed=2", "snapshot=0", "max_iter=2", "display=1", "test_interval=1000000",
        "test_initialization=false", "epoch_log=false"})
    command += cat(" -set ", setting);
  // "It begins in ...", or a warning of a finite loss "but ...".
  const std::regex named(
      cat("(It begins in|, but) layer \"", row.layer, "\"[^\n]*: its top[^\n]* holds "));
  const auto expect_named = [&](const std::string& log) {
    EXPECT_TRUE(std::regex_search(log, named))
        << log.substr(log.size() - std::min<size_t>(log.size(), 3000));
  };
  expect_named(run_shell(folder, command).err);
  if (gpu_count() == 0) return;
  for (const char* precision : {"fp32", "tf32", "bf16"}) {
    SCOPED_TRACE(precision);
    const std::string log = run_shell(folder, cat(command, " -gpu 0 -precision ", precision)).err;
    // If a library's ReLU hides it, the weights show it at the next check of the loss.
    if (log.find("the update left weights that are not finite") == std::string::npos)
      expect_named(log);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rows, Diverged,
    testing::Values(Row{"lenet", "lenet/solver.prototxt", "data=8x1x28x28,label=8", "ip1",
                        "inner_product_param.weight_filler"},
                    Row{"cifar10_quick", "cifar10_quick/solver.prototxt", "data=8x3x32x32,label=8",
                        "conv2", "convolution_param.weight_filler"},
                    Row{"face_center_loss", "face_center_loss/solver.prototxt",
                        "data=8x1x28x28,label=8", "conv2_1", "convolution_param.weight_filler"},
                    Row{"siamese", "siamese/solver.prototxt", "pair_data=8x2x28x28,sim=8", "conv2",
                        "convolution_param.weight_filler"},
                    Row{"squeezenet", "squeezenet/solver.prototxt", "data=2x3x64x64,label=2",
                        "fire4/expand3x3", "convolution_param.weight_filler"},
                    Row{"mobilenet_v2", "mobilenet_v2/solver.prototxt", "data=2x3x64x64,label=2",
                        "conv2_3/dwise", "convolution_param.weight_filler"},
                    Row{"resnet18", "resnet/solver.prototxt", "data=2x3x64x64,label=2",
                        "res2b_branch2b", "convolution_param.weight_filler", "-set depth=18"},
                    Row{"resnet20", "resnet_cifar/solver.prototxt", "data=4x3x32x32,label=4",
                        "res1_3_conv1", "convolution_param.weight_filler"},
                    Row{"shufflenet_v2", "shufflenet_v2/solver.prototxt", "data=2x3x64x64,label=2",
                        "stage2_1/branch2/conv1", "convolution_param.weight_filler"},
                    Row{"nin_cifar", "nin_cifar/solver.prototxt", "data=2x3x32x32,label=2", "cccp3",
                        "convolution_param.weight_filler"}),
    [](const auto& info) { return info.param.name; });

}  // namespace diverged_test
}  // namespace crema::tests
