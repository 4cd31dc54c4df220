// -assume and -batch, seen through `summary`, which prints the shapes of all tops.
#include <gtest/gtest.h>

#include "net/sources/batch_size.h"
#include "tools/program.h"

namespace crema::tests {
namespace sources_test {

constexpr const char* loss =
    "layer { name: \"flat\" type: \"Flatten\" bottom: \"data\" top: \"flat\" }\n"
    "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"flat\" top: \"ip\""
    " inner_product_param { num_output: 5 weight_filler { type: \"xavier\" } } }\n"
    "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: \"label\" top: "
    "\"loss\" }\n";

// How a layer other than a source uses the batch.
TEST(Batch, OfProposalsFollowsThatOfTheSource) {
  LayerParameter layer;
  layer.mutable_proposal_target_param()->set_num_img_per_batch(2);
  follow_batch_size(layer, {4}, 1);
  EXPECT_EQ(layer.proposal_target_param().num_img_per_batch(), 2u);  // it means something else
  follow_batch_size(layer, {2}, 1);
  EXPECT_EQ(layer.proposal_target_param().num_img_per_batch(), 1u);
}

struct Assumed {
  const char* name;
  const char* source;  // the data layer's text
  const char* flags;
  const char* shows;  // part of the table; with "!" in front: of the error
};

class AssumeTest : public testing::TestWithParam<Assumed> {};

TEST_P(AssumeTest, GivesTheTopsTheirShapes) {
  const Folder folder;
  folder.write("net.prototxt", std::string(GetParam().source) + loss);
  const Outcome outcome =
      run(folder, std::string("summary -model net.prototxt ") + GetParam().flags);
  const std::string wanted = GetParam().shows;
  if (wanted[0] == '!') {
    ASSERT_EQ(outcome.errors().size(), 1u) << outcome.err;
    expect_part(outcome.errors()[0], wanted.substr(1));
    EXPECT_EQ(outcome.code, 1);
  } else {
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    expect_part(outcome.out, wanted);
  }
}

#define DATA "layer { name: \"data\" type: \"Data\" top: \"data\" top: \"label\" "
#define IMAGES "layer { name: \"data\" type: \"ImageData\" top: \"data\" top: \"label\" "

INSTANTIATE_TEST_SUITE_P(
    Sources, AssumeTest,
    testing::Values(
        Assumed{"explicit_shapes", DATA "data_param { source: \"nowhere\" batch_size: 9 } }\n",
                "-assume data=6x3x8x7,label=6", "data 6x3x8x7, label 6"},
        Assumed{"batch_over_explicit", DATA "data_param { source: \"nowhere\" batch_size: 9 } }\n",
                "-assume data=6x3x8x7,label=6 -batch 2", "data 2x3x8x7, label 2"},
        Assumed{"default_without_size", DATA "data_param { source: \"nowhere\" batch_size: 4 } }\n",
                "-assume default", "data 4x3x227x227, label 4"},
        Assumed{"default_crop",
                DATA "transform_param { crop_size: 11 } data_param { source: \"nowhere\" "
                     "batch_size: 4 } }\n",
                "-assume default", "data 4x3x11x11, label 4"},
        Assumed{"default_crop_before_resize",
                IMAGES "transform_param { crop_size: 11 } image_data_param { source: \"no\" "
                       "batch_size: 4 new_height: 20 new_width: 30 } }\n",
                "-assume default", "data 4x3x11x11, label 4"},
        Assumed{
            "default_resize",
            IMAGES
            "image_data_param { source: \"no\" batch_size: 4 new_height: 20 new_width: 30 } }\n",
            "-assume default", "data 4x3x20x30, label 4"},
        Assumed{
            "default_gray",
            IMAGES
            "image_data_param { source: \"no\" is_color: false new_height: 20 new_width: 30 } }\n",
            "-assume default", "data 1x1x20x30, label 1"},
        Assumed{"default_stated_shape",
                "layer { name: \"data\" type: \"MemoryData\" top: \"data\" top: \"label\" "
                "memory_data_param { batch_size: 3 channels: 2 "
                "height: 5 width: 4 } }\n",
                "-assume default", "data 3x2x5x4, label 3"},
        Assumed{"default_of_strides",
                "layer { name: \"data\" type: \"SegData\" top: \"data\" top: \"label\" "
                "transform_param { stride: 8 upper_height: 100 upper_width: 300 } seg_data_param { "
                "source: \"no\" } }\n",
                "-assume default,label=1", "data 1x3x100x224, label 1"},
        Assumed{
            "default_label_image_of_strides",
            "layer { name: \"data\" type: \"SegData\" top: \"label\" top: \"data\" "
            "transform_param { stride: 8 upper_size: 200 } seg_data_param { source: \"no\" } }\n",
            "-assume default,label=1", "label 1, data 1x1x200x200"},
        Assumed{"default_masks",
                "layer { name: \"data\" type: \"McWindowData\" top: \"data\" top: \"mask\" top: "
                "\"label\" mcwindow_data_param { source: \"no\" batch_size: 16 crop_size: 57 "
                "mask_crop_size: 8 } }\n",
                "-assume default", "data 16x3x57x57, mask 16x1x8x8, label 16"},
        Assumed{"default_batch", DATA "data_param { source: \"nowhere\" batch_size: 4 } }\n",
                "-assume default -batch 7", "data 7x3x227x227, label 7"},
        Assumed{"other_phase_is_left_alone",
                "layer { name: \"data\" type: \"Data\" top: \"data\" top: \"label\" include { "
                "phase: TRAIN } transform_param { crop_size: 9 }"
                " data_param { source: \"nowhere\" batch_size: 4 } }\n"
                "layer { name: \"data\" type: \"Python\" top: \"data\" top: \"label\" include { "
                "phase: TEST } python_param { module: \"m\" "
                "layer: \"L\" } }\n",
                "-assume default", "data 4x3x9x9, label 4"},
        Assumed{"unknown_top",
                "layer { name: \"data\" type: \"Python\" top: \"data\" top: \"label\" python_param "
                "{ module: \"m\" layer: "
                "\"L\" } }\n",
                "-assume default",
                "!net.prototxt:1:1: -assume default cannot know the shapes of the tops \"data\", "
                "\"label\" of layer \"data\" (Python, which states no batch_size); name them, for "
                "example -assume default,data=SHAPE,label=1 (with numbers such as"},
        Assumed{
            "unknown_tops_of_several_layers",
            "layer { name: \"a\" type: \"Python\" top: \"pose\" top: \"im_info\" python_param { "
            "module: \"m\" layer: \"L\" } }\n"
            "layer { name: \"b\" type: \"HDF5Data\" top: \"data\" top: \"target\" top: "
            "\"label\" hdf5_data_param { batch_size: 4 } }\n"
            "layer { name: \"error\" type: \"EuclideanLoss\" bottom: \"pose\" bottom: \"target\" "
            "}\n",
            "-assume default,pose=4x2",
            "!net.prototxt:1:1: -assume default cannot know the shapes of the tops \"im_info\" of "
            "layer \"a\" (Python, which states no batch_size), \"target\" of layer \"b\" "
            "(HDF5Data, net.prototxt:2:1); name them, for example -assume "
            "default,pose=4x2,im_info=1x3,target=SHAPE (with numbers"},
        Assumed{
            "images_called_labels",
            "layer { name: \"in\" type: \"Data\" top: \"labeled_data\" top: \"label\" "
            "transform_param { crop_size: 57 } data_param { source: \"nowhere\" batch_size: 4 } "
            "}\n"
            "layer { name: \"half\" type: \"Power\" bottom: \"labeled_data\" top: \"data\" "
            "power_param { scale: 0.5 } }\n",
            "-assume default", "labeled_data 4x3x57x57, label 4"},
        Assumed{
            "label_images_in_a_database",
            DATA
            "data_param { source: \"nowhere\" batch_size: 4 } }\n"
            "layer { name: \"maps\" type: \"Data\" top: \"maps\" transform_param { crop_size: 9 "
            "} data_param { source: \"nowhere\" batch_size: 4 } }\n"
            "layer { name: \"pixels\" type: \"DummyData\" top: \"pixels\" dummy_data_param { shape "
            "{ dim: 4 dim: 2 dim: 9 dim: 9 } } }\n"
            "layer { name: \"map_loss\" type: \"SoftmaxWithLoss\" bottom: \"pixels\" bottom: "
            "\"maps\" }\n",
            "-assume default", "maps 4x1x9x9"},
        Assumed{"labels_by_use",
                "layer { name: \"data\" type: \"HDF5Data\" top: \"data\" top: \"sort\" top: "
                "\"label\" hdf5_data_param { source: \"nowhere\" batch_size: 4 } }\n"
                "layer { name: \"two\" type: \"InnerProduct\" bottom: \"data\" top: \"two\" "
                "inner_product_param { num_output: 2 } }\n"
                "layer { name: \"right\" type: \"Accuracy\" bottom: \"two\" bottom: \"sort\" top: "
                "\"right\" }\n",
                "-assume default", "data 4x3x227x227, sort 4, label 4"},
        Assumed{"stated_by_input_param",
                DATA "input_param { shape { dim: 2 dim: 3 dim: 8 dim: 7 } } data_param { "
                     "source: \"nowhere\" batch_size: 2 } }\n",
                "-assume default", "data 2x3x8x7, label 2"},
        Assumed{"files_about_images",
                DATA
                "data_param { source: \"nowhere\" batch_size: 4 } }\n"
                "layer { name: \"boxes\" type: \"DummyData\" top: \"found\" top: \"truth\" "
                "dummy_data_param { shape { dim: 1 dim: 1 dim: 3 dim: 7 } shape { dim: 1 dim: 1 "
                "dim: 2 dim: 8 } } }\n"
                "layer { name: \"judge\" type: \"DetectionEvaluate\" bottom: \"found\" bottom: "
                "\"truth\" top: \"judged\" detection_evaluate_param { num_classes: 3 "
                "name_size_file: \"nowhere.txt\" } }\n",
                "-assume default", "judged"},
        Assumed{"unknown_top_named",
                "layer { name: \"data\" type: \"Python\" top: \"data\" top: \"label\" python_param "
                "{ module: \"m\" layer: \"L\" } }\n",
                "-assume default,data=2x3,label=2", "data 2x3, label 2"},
        Assumed{
            "forgotten_top", DATA "data_param { source: \"nowhere\" batch_size: 4 } }\n",
            "-assume data=4x3x5x5",
            "!net.prototxt:1:1: -assume says nothing of top \"label\" of layer \"data\" (Data); "
            "name it, or add default, for example -assume data=4x3x5x5,label=4"},
        Assumed{"misspelt_top", DATA "data_param { source: \"nowhere\" batch_size: 4 } }\n",
                "-assume data=4x3x5x5,lable=4,label=4",
                "!no data layer has a top \"lable\" (did you mean \"label\"?)"},
        Assumed{"no_shape", DATA "data_param { source: \"nowhere\" batch_size: 4 } }\n",
                "-assume data=4x3x0,label=4", "!\"4x3x0\" is not a shape"},
        Assumed{"batch_of_inputs",
                "layer { name: \"data\" type: \"Input\" top: \"data\" top: \"label\" input_param { "
                "shape { dim: 4 dim: 3 } shape { dim: 4 } } }\n",
                "-batch 5", "data 5x3, label 5"},
        Assumed{"batch_of_old_inputs",
                "input: \"data\" input_shape { dim: 4 dim: 3 } input: \"label\" input_shape { dim: "
                "4 }\n",
                "-batch 5", "data 5x3, label 5"},
        Assumed{"batch_of_dummies",
                "layer { name: \"data\" type: \"DummyData\" top: \"data\" top: \"label\" "
                "dummy_data_param { shape { dim: 4 dim: 3 } "
                "shape { dim: 4 } } }\n",
                "-batch 5", "data 5x3, label 5"},
        Assumed{"batch_of_shapes_that_repeat_it",
                "layer { name: \"data\" type: \"Input\" top: \"data\" top: \"label\" input_param { "
                "shape "
                "{ dim: 4 dim: 6 } shape { dim: 4 } } }\n"
                "layer { name: \"r\" type: \"Reshape\" bottom: \"data\" top: \"r\" reshape_param { "
                "shape { dim: 4 dim: 2 dim: -1 } } }\n",
                "-batch 5", "r 5x2x3"},
        Assumed{"batch_of_sequences",
                "layer { name: \"data\" type: \"Input\" top: \"data\" top: \"label\" input_param { "
                "shape "
                "{ dim: 4 dim: 6 } shape { dim: 4 } } }\n"
                "layer { name: \"c\" type: \"ContinuationIndicator\" bottom: \"data\" top: \"c\" "
                "continuation_indicator_param { time_step: 7 batch_size: 4 } }\n",
                "-batch 5", "c 7x5"},
        Assumed{"dummies_stay",
                "layer { name: \"data\" type: \"DummyData\" top: \"data\" top: \"label\" "
                "dummy_data_param { shape { dim: 4 dim: 3 } "
                "shape { dim: 4 } } }\n",
                "-assume default", "data 4x3, label 4"},
        Assumed{"default_box_lists",
                "layer { name: \"images\" type: \"Data\" top: \"images\" data_param { "
                "batch_size: 4 } }\n"
                "layer { name: \"boxes\" type: \"Data\" top: \"boxes\" data_param { "
                "batch_size: 4 } }\n"
                "layer { name: \"targets\" type: \"DetectNetTransformation\" bottom: \"images\" "
                "bottom: \"boxes\" top: \"data\" top: \"maps\" detectnet_groundtruth_param { "
                "image_size_x: 8 image_size_y: 4 } }\n"
                "layer { name: \"classes\" type: \"DummyData\" top: \"label\" dummy_data_param { "
                "shape { dim: 4 } } }\n",
                "-assume default", "4x1x11x16"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(TimeVerb, DrawsInputsAndLabelsFromTheSeed) {
  const Folder folder;
  folder.write("net.prototxt", std::string("input: \"data\" input_shape { dim: 64 dim: 30 } input: "
                                           "\"label\" input_shape { dim: 64 }\n") +
                                   loss);
  const Outcome first = run(folder, "time -model net.prototxt -iterations 1"),
                second = run(folder, "time -model net.prototxt -iterations 1");
  const auto loss_of = [](const Outcome& outcome) {
    for (const std::string& message : outcome.messages()) {
      if (message.rfind("Initial loss: ", 0) == 0) return std::stod(message.substr(14));
    }
    return -1.0;
  };
  // Scores of unit variance over five classes: the loss is not far from ln 5, and never the same
  // for all labels equal.
  EXPECT_GT(loss_of(first), 1.2);
  EXPECT_LT(loss_of(first), 4.0);
  EXPECT_EQ(loss_of(first), loss_of(second));
}

// Caffe's lines as they are, for those who parse them, and then the table of steps.
TEST(TimeVerb, PrintsCaffesLinesAndTheStepsOfThePlan) {
  const Folder folder;
  folder.write("net.prototxt", R"(
    layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 dim: 8 dim: 8 } } }
    layer { name: "conv" type: "Convolution" bottom: "x" top: "y" convolution_param { num_output: 4 kernel_size: 3 } }
    layer { name: "relu" type: "ReLU" bottom: "y" top: "y" }
    layer { name: "sum" type: "Reshape" bottom: "y" top: "z" reshape_param { shape { dim: 2 dim: -1 } } }
    layer { name: "loss" type: "EuclideanLoss" bottom: "z" bottom: "z" top: "loss" })");
  const Outcome outcome = run(folder, "time -model net.prototxt -iterations 3 -dump_plan");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part :
       {"*** Benchmark begins ***", "Testing for 3 iterations.",
        "Iteration: 3 forward-backward time: ", "Average time per layer: ", "      conv\tforward: ",
        "      conv\tbackward: ", "      relu\tforward: 0 ms.",
        "Average Forward pass: ", "Average Backward pass: ", "Average Forward-Backward: ",
        "Total Time: ", "*** Benchmark ends ***", "timed in the row of the first: conv + relu"}) {
    expect_part(outcome.err, part);
  }
  for (const char* part : {"TFLOP/s", "GB/s", "\nconv + relu  ", "\nall  ",
                           "Convolution+ReLU = conv + relu; fp32; "}) {
    expect_part(outcome.out, part);
  }
  const std::string separate =
      run(folder, "time -model net.prototxt -iterations 1 -dump_plan -off fuse").out;
  expect_part(separate, "fuse off: 0 layers");
  expect_part(separate, "\nrelu  ");
}

TEST(TimeVerb, TrainStepReportsSpeedMemoryAndLoss) {
  const Folder folder;
  folder.write("net.prototxt", std::string("input: \"data\" input_shape { dim: 8 dim: 30 } input: "
                                           "\"label\" input_shape { dim: 8 }\n") +
                                   loss);
  const Outcome outcome =
      run(folder, "time -model net.prototxt -train_step -iterations 20 -batch 16");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part :
       {" ms/step", " img/s", " MiB", "loss before: ", "loss after: ", "batch 16"}) {
    expect_part(outcome.err, part);
  }
}

}  // namespace sources_test
}  // namespace crema::tests
