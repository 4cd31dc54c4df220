// Commands as scripts for older and other Caffes write them: each does its work, or says what does.
#include <gtest/gtest.h>

#include "data/images/image.h"
#include "tools/program.h"

namespace crema::tests {
namespace old_forms_test {

constexpr const char* kNet =
    "layer { name: \"d\" type: \"DummyData\" top: \"data\" top: \"label\" dummy_data_param { shape "
    "{ dim: "
    "2 dim: 3 } shape { dim: 2 } data_filler { type: \"gaussian\" } data_filler { value: 1 } } }\n"
    "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"data\" top: \"ip\" inner_product_param "
    "{ "
    "num_output: 2 weight_filler { type: \"xavier\" } } }\n"
    "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: \"label\" top: "
    "\"loss\" }\n";

TEST(OldForms, RunAsTheyAre) {
  const Folder folder;
  folder.write("net.prototxt", kNet);
  folder.write("s.prototxt",
               "net: \"net.prototxt\" base_lr: 0.01 lr_policy: \"fixed\" max_iter: 2 "
               "snapshot_prefix: \"a\" solver_mode: CPU");
  struct Row {
    const char* command;
    int code;
    const char* said;
  };
  const Row rows[] = {
      {"train_net.bin s.prototxt", 0, "Optimization Done."},
      {"train_net s.prototxt a_iter_2.solverstate", 0, "Optimization Done."},
      {"finetune_net.bin s.prototxt a_iter_2.caffemodel", 0, "Finetuning from a_iter_2.caffemodel"},
      {"test_net.bin net.prototxt a_iter_2.caffemodel 3 CPU", 0, "Running for 3 iterations."},
      {"net_speed_benchmark.bin net.prototxt 1", 0, "Average Forward pass"},
      {"test_net.bin net.prototxt a_iter_2.caffemodel 3 more", 1, "unexpected argument: \"more\""},
      {"caffe train --solver=s.prototxt --engine=MKLDNN --param_server=mlsl", 0,
       "-engine has no effect here: the fastest implementation is measured"},
      {"extract_features a_iter_2.caffemodel net.prototxt ip ip_lmdb 2 lmdb CPU", 0,
       "Successfully extracted the features!"},
      {"extract_features a_iter_2.caffemodel net.prototxt ip ip_lmdb 2 CPU", 1, "ip_lmdb"},
      {"compute_image_mean ip_lmdb mean.binaryproto lmdb", 0, "mean_value channel [0]"},
      {"compute_image_mean ip_lmdb mean.binaryproto leveldb", 1, "is of kind LMDB"},
      {"compute_image_mean -backend lmdb ip_lmdb mean.binaryproto lmdb", 1, "keep one of them"},
      {"caffe time --model=net.prototxt -iterations 1 --forward_only", 0, "Average Forward pass"},
      {"caffe time -model net.prototxt -forward_only -train_step", 1, "exclude each other"},
      {"caffe time -model net.prototxt -forward -train_step", 1, "exclude each other"},
      {"caffe time -model net.prototxt -forward -iterations 3", 0, "(median of 3 measurements)"},
      {"caffe test_detection -model net.prototxt -weights a_iter_2.caffemodel -iterations 1", 1,
       "DetectionEvaluate"},
      {"caffe collect -model net.prototxt", 1, "`crema extract_features` writes blobs"},
      {"caffe compare -collect_dir a -epsilon 0.1", 1, "has no flag -collect_dir"},
      {"caffe train --solver=s.prototxt --n_group=2", 1, "mpirun, Slurm and torchrun"},
      {"test -model net.prototxt -weights a_iter_2.caffemodel -show_per_class_result", 1,
       "-show_per_class_result works with -detection"},
      {"test -model net.prototxt -weights a_iter_2.caffemodel -detection -iterations 1", 1,
       "DetectionEvaluate"},
      {"test -model net.prototxt -weights a_iter_2.caffemodel -ap_version 12point", 1,
       "ap_version is \"12point\""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.command);
    const Outcome outcome = run(folder, row.command);
    EXPECT_EQ(outcome.code, row.code);
    expect_part(outcome.err, row.said);
  }
}

// SSD's `caffe test -detection`: the mean average precision over all batches, not means of rows.
TEST(OldForms, DetectorsAreTested) {
  const Folder folder;
  folder.write("net.prototxt", kNet);
  folder.write("s.prototxt",
               "net: \"net.prototxt\" base_lr: 0.01 lr_policy: \"fixed\" max_iter: 1 "
               "snapshot_prefix: \"a\" solver_mode: CPU");
  EXPECT_EQ(run(folder, "train -solver s.prototxt").code, 0);
  // Boxes without an extent: none is found.
  folder.write(
      "detector.prototxt",
      "layer { name: \"d\" type: \"DummyData\" top: \"boxes\" top: \"label\" dummy_data_param { "
      "shape { dim: 1 dim: 1 dim: 2 dim: 7 } shape { dim: 1 dim: 1 dim: 1 dim: 8 } "
      "data_filler { value: 1 } } }\nlayer { name: \"e\" type: \"DetectionEvaluate\" bottom: "
      "\"boxes\" bottom: \"label\" top: \"map\" detection_evaluate_param { num_classes: 3 } }\n");
  const Outcome tested =
      run(folder,
          "caffe test -model detector.prototxt -weights a_iter_1.caffemodel "
          "-detection -ap_version Integral -show_per_class_result -iterations 2");
  EXPECT_EQ(tested.code, 0) << tested.err;
  expect_part(tested.err, "] map = 0\n");
  expect_part(tested.err, "] class1: 0\n");
  EXPECT_EQ(tested.err.find("Batch 0, map"), std::string::npos);
  // NVIDIA's verb, which shows classes unless it is told not to.
  const char* nvidias =
      "caffe test_detection -model detector.prototxt -weights a_iter_1.caffemodel "
      "-iterations 2";
  expect_part(run(folder, nvidias).err, "] class1: 0\n");
  EXPECT_EQ(run(folder, cat(nvidias, " -show_per_class_result=false")).err.find("class1"),
            std::string::npos);
}

#ifdef CREMA_OPENCV
TEST(OldForms, ConvertImagesetTakesArgumentsInsteadOfFlags) {
  const Folder folder;
  folder.write("a.png", encode_image({3, 6, 5, std::vector<uint8_t>(90, 7)}, "png"));
  folder.write("list", "a.png 1\n");
  EXPECT_EQ(run(folder, "convert_imageset.bin ./ list db 1 lmdb 4 3").code, 0);
  expect_part(run(folder, "crema db stat db").out, "3x4x3");
  expect_part(run(folder, "convert_imageset ./ list db2 maybe").err,
              "\"maybe\": expected 0 or 1: whether to shuffle");
  expect_part(run(folder, "convert_imageset -shuffle ./ list db2 1").err,
              "-shuffle and the argument \"1\" set the same value");
}
#endif

}  // namespace old_forms_test
}  // namespace crema::tests
