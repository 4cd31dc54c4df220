// Iterations of runs of many kinds come out again bit for bit.
#include <gtest/gtest.h>

#include "tools/replayed.h"

namespace crema::tests {
namespace replay_kinds_test {

using namespace replayed;  // NOLINT(google-build-using-namespace)

// Pictures with one box each.
void make_boxes(const Folder& folder, const std::string& name, int64_t count) {
  const auto writer = create_database(folder.file(name), DataParameter::LMDB);
  for (int64_t i = 0; i < count; ++i) {
    AnnotatedDatum record;
    *record.mutable_datum() = picture(i, static_cast<int>(i % kClasses));
    record.set_type(AnnotatedDatum::BBOX);
    AnnotationGroup& group = *record.add_annotation_group();
    group.set_group_label(1 + static_cast<int>(i % 2));
    Annotation& one = *group.add_annotation();
    one.set_instance_id(0);
    NormalizedBBox& box = *one.mutable_bbox();
    box.set_xmin(0.1f);
    box.set_ymin(0.2f);
    box.set_xmax(0.6f);
    box.set_ymax(0.7f);
    writer->put(numbered_key(i, 4), record);
  }
  writer->finish();
}

const std::string kNormalized =
    data() + kConvolution +
    R"(layer { name: "norm" type: "BatchNorm" bottom: "conv" top: "conv" }
       layer { name: "scale" type: "Scale" bottom: "conv" top: "conv" scale_param { bias_term: true } }
)" + kEnd;
const std::string kTested =
    data("", "scale: 0.01", "include { phase: TRAIN }") +
    data("", "scale: 0.01", "include { phase: TEST }", "tests") + kBody +
    R"(layer { name: "accuracy" type: "Accuracy" bottom: "score" bottom: "label" top: "accuracy"
         include { phase: TEST } })";
const std::string kDetector =
    R"(layer { name: "data" type: "AnnotatedData" top: "data" top: "label" transform_param { mirror: true
         scale: 0.01 resize_param { prob: 1 resize_mode: WARP height: 8 width: 8 } } data_param { source: "boxes" backend: LMDB batch_size: 3 }
         annotated_data_param { batch_sampler { max_sample: 1 max_trials: 1 } batch_sampler {
           sampler { min_scale: 0.5 max_scale: 1 } max_sample: 1 max_trials: 9 } } }
)" + kConvolution +
    R"(layer { name: "prior" type: "PriorBox" bottom: "conv" bottom: "data" top: "prior" prior_box_param {
         min_size: 4 variance: [0.1, 0.1, 0.2, 0.2] } }
       layer { name: "loc" type: "Convolution" bottom: "conv" top: "loc" convolution_param { num_output: 4
         kernel_size: 1 weight_filler { type: "xavier" } } }
       layer { name: "conf" type: "Convolution" bottom: "conv" top: "conf" convolution_param { num_output: 3
         kernel_size: 1 weight_filler { type: "xavier" } } }
       layer { name: "p1" type: "Permute" bottom: "loc" top: "p1" permute_param { order: [0, 2, 3, 1] } }
       layer { name: "p2" type: "Permute" bottom: "conf" top: "p2" permute_param { order: [0, 2, 3, 1] } }
       layer { name: "f1" type: "Flatten" bottom: "p1" top: "f1" }
       layer { name: "f2" type: "Flatten" bottom: "p2" top: "f2" }
       layer { name: "loss" type: "MultiBoxLoss" bottom: "f1" bottom: "f2" bottom: "prior" bottom: "label"
         top: "loss" propagate_down: [true, true, false, false] multibox_loss_param { num_classes: 3
         neg_pos_ratio: 3 mining_type: MAX_NEGATIVE } })";
const std::string kSequence =
    R"(layer { name: "data" type: "DummyData" top: "x" top: "y" top: "cont" dummy_data_param {
         shape { dim: 3 dim: 2 dim: 5 } shape { dim: 3 dim: 2 dim: 4 } shape { dim: 3 dim: 2 }
         data_filler { type: "gaussian" std: 1 } data_filler { type: "gaussian" std: 1 }
         data_filler { type: "constant" value: 1 } } }
       layer { name: "lstm" type: "LSTM" bottom: "x" bottom: "cont" top: "h" recurrent_param { num_output: 4
         weight_filler { type: "gaussian" std: 0.5 } } }
       layer { name: "loss" type: "EuclideanLoss" bottom: "h" bottom: "y" top: "loss" })";
const std::string kTwoSources =
    data("shuffle: true") +
    R"(layer { name: "more" type: "Data" top: "more" top: "kind" transform_param { mirror: true }
         data_param { source: "tests" backend: LMDB batch_size: 3 } }
       layer { name: "side" type: "InnerProduct" bottom: "more" top: "side" inner_product_param {
         num_output: 4 weight_filler { type: "xavier" } } }
       layer { name: "loss2" type: "SoftmaxWithLoss" bottom: "side" bottom: "kind" top: "loss2"
         loss_weight: 0.001 }
)" + kBody;

struct Kind {
  const char* name;
  std::string net, fields;
  const char* flags = "";
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

class ReplayTest : public testing::TestWithParam<Kind> {};

TEST_P(ReplayTest, GivesTheSameBits) {
  const Kind& kind = GetParam();
  const Folder folder;
  write(folder, kind.net, solver(kind.fields));
  if (kind.net == kDetector) make_boxes(folder, "boxes", 10);
  if (kind.fields.find("first") != std::string::npos ||
      std::string(kind.flags).find("first") != std::string::npos) {
    folder.write("first.prototxt", solver("snapshot_prefix: \"first\""));
    ASSERT_EQ(run(folder, "crema train -solver first.prototxt").code, 0);
  }
  const Outcome trained = train(folder, cat("-run r ", kind.flags));
  ASSERT_TRUE(trained.code == 0 || kind.fields.find("SKIP") != std::string::npos) << trained.err;
  const int64_t last = std::stoll(split(folder.read("r/iterations.csv"), '\n').end()[-2]);
  // The tests' data need not be there any more.
  if (kind.fields.find("plateau_test") == std::string::npos && kind.net == kTested)
    std::filesystem::remove_all(folder.file("tests"));
  const Random random{7, 7};
  for (uint64_t i = 0; i < 2; ++i)
    expect_same(folder, static_cast<int64_t>(random.word(i) % static_cast<uint64_t>(last)));
  expect_same(folder, last);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, ReplayTest,
    testing::Values(
        Kind{"augmented",
             data("shuffle: true",
                  "scale: 0.01 mirror: true crop_size: 7 augment { rotate { probability: 0.5 most: "
                  "20 } }") +
                 kBody,
             ""},
        Kind{"detector", kDetector, "base_lr: 0.001"}, Kind{"sequence", kSequence, ""},
        Kind{"two_sources", kTwoSources, ""}, Kind{"iter_size", kNormalized, "iter_size: 4"},
        Kind{"average", kTested,
             "ema_decay: 0.9 test_ema: true test_iter: 2 test_interval: 7 average_loss: 20"},
        Kind{
            "plateau", kPlain,
            "lr_policy: \"plateau\" gamma: 0.5 plateau_winsize: [3, 4] display: 1 average_loss: 5"},
        Kind{"plateau_of_tests", kTested,
             "lr_policy: \"plateau\" gamma: 0.5 plateau_winsize: 1 test_iter: 2 test_interval: 3 "
             "plateau_test { output: \"accuracy\" }"},
        Kind{"multistep", kPlain,
             "lr_policy: \"multistep\" gamma: 0.3 stepvalue: [13, 33] display: 0"},
        Kind{"adam", kNormalized, "type: \"Adam\" base_lr: 0.001 amsgrad: true lookahead: true"},
        Kind{"muon", kPlain, "type: \"Muon\" base_lr: 0.001"},
        Kind{"larc", kPlain, "larc: true clip_gradients: 0.5 debug_info: true display: 5"},
        Kind{"quantized", kPlain, "quantize { start: 25 }"},
        Kind{"pruned", kPlain, "prune { start: 10 end: 35 interval: 6 }"},
        Kind{"taught", kPlain,
             "teacher { net: \"net.prototxt\" weights: \"first_iter_40.caffemodel\" }"},
        Kind{"fine_tuned", kPlain, "", "-weights first_iter_40.caffemodel"},
        Kind{"fine_tuned_in_part", kPlain, "",
             "-weights first_iter_40.caffemodel -weights_mode match -set "
             "'layer[score].inner_product_param.num_output=5'"},
        Kind{"epochs", kTested, "max_epoch: 3.5 test_epoch: true epoch_log: true snapshot: 13"},
        Kind{"skipped", kPlain, "base_lr: 1e4 on_divergence: SKIP"},
        Kind{"ignored", kPlain, "base_lr: 1e4 on_divergence: IGNORE"},
        Kind{"unfused", kNormalized, "", "-off fuse"},
        Kind{"plain_kernels", kNormalized, "", "-implementation plain"},
        Kind{"hdf5_snapshots", kPlain, "snapshot_format: HDF5 keep_last: 1"},
        Kind{"without_states", kPlain, "snapshot_include_state: false"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace replay_kinds_test
}  // namespace crema::tests
