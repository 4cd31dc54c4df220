// `crema check` for mistakes that keep a net from learning or make it learn the wrong thing: for
// each a text that has it and one that has not; and for sources that get out of step.
#include "data/databases/database_writer.h"
#include "fixtures.h"
#include "solver/check/check.h"

namespace crema::tests {
namespace check_learning_test {

const std::string kXavier = "weight_filler { type: \"xavier\" }";
const std::string kSolver = "base_lr: 0.01 max_iter: 100 ", kFixed = "lr_policy: \"fixed\" ";

std::string layer(const std::string& type, const std::string& bottoms, const std::string& top,
                  const std::string& more = "") {
  std::string text = cat("layer { name: \"", top, "_", type, "\" type: \"", type, "\"");
  for (const std::string& bottom : split(bottoms, ' ')) text += cat(" bottom: \"", bottom, "\"");
  return cat(text, " top: \"", top, "\" ", more, " }\n");
}

std::string dense(const std::string& bottom, const std::string& top,
                  const std::string& more = kXavier, int outputs = 3) {
  return layer("InnerProduct", bottom, top,
               cat("inner_product_param { num_output: ", outputs, " ", more, " }"));
}

const std::string kInput = "layer { name: \"in\" type: \"DummyData\" top: \"x\" top: \"y\" }\n";
const std::string kLoss = layer("SoftmaxWithLoss", "z y", "l");
const std::string kGood = kInput + dense("x", "z") + kLoss;

std::string said_of(const std::string& solver, const std::string& net) {
  std::string text;
  const SolverFile file =
      parse_solver_text(cat("net_param {\n", net, "}\n", solver), "solver.prototxt");
  for (const Finding& finding : check_training(file, {})) text += line_of(finding) + "\n";
  return text;
}

struct Case {
  std::string said, solver, net;
};

void PrintTo(const Case& row, std::ostream* out) { *out << row.said; }

class CheckLearning : public testing::TestWithParam<Case> {};

TEST_P(CheckLearning, IsSaid) {
  const Case& row = GetParam();
  const std::string text = said_of(row.solver, row.net);
  if (row.said.empty()) {
    EXPECT_EQ(text, "");
  } else {
    expect_part(text, row.said);
  }
}

Case net(const std::string& said, const std::string& text) {
  return {said, kSolver + kFixed, text};
}
Case solver(const std::string& said, const std::string& text) { return {said, text, kGood}; }

std::string before_loss(const std::string& between, const std::string& loss) {
  return kInput + dense("x", "s") + layer(between, "s", "z") + layer(loss, "z y", "l");
}

const std::string kFrozen = "param { lr_mult: 0 } param { lr_mult: 0 } ";

INSTANTIATE_TEST_SUITE_P(
    Net, CheckLearning,
    testing::Values(
        net("", kGood),
        net("layer \"z_Softmax\" (Softmax) is right in front of \"l_SoftmaxWithLoss\" "
            "(SoftmaxWithLoss): SoftmaxWithLoss has a softmax of its own",
            before_loss("Softmax", "SoftmaxWithLoss")),
        net("give the loss \"s\" instead", before_loss("Softmax", "SoftmaxWithLoss")),
        net("no score is below 0", before_loss("ReLU", "SoftmaxWithLoss")),
        net("squeezed between 0 and 1", before_loss("Sigmoid", "SoftmaxWithLoss")),
        net("squeezed between -1 and 1", before_loss("TanH", "FocalLoss")),
        net("squeezed between 0 and 1", before_loss("HardSigmoid", "SoftmaxWithLoss")),
        net("has a sigmoid of its own", before_loss("Sigmoid", "SigmoidCrossEntropyLoss")),
        net("has a softmax of its own", before_loss("Softmax", "InfogainLoss")),
        net("expects scores of any size, not probabilities", before_loss("Softmax", "HingeLoss")),
        net("", before_loss("Sigmoid", "EuclideanLoss")),
        net("", before_loss("Softmax", "MultinomialLogisticLoss")),
        net("MultinomialLogisticLoss expects probabilities",
            kInput + dense("x", "z") + layer("MultinomialLogisticLoss", "z y", "l")),
        net("both bottoms are \"z\"",
            kInput + dense("x", "z") + layer("EuclideanLoss", "z z", "l")),
        net("num_output is 1, but a softmax over one score is always 1",
            kInput + dense("x", "z", kXavier, 1) + kLoss),
        net("lr_mult is 0 for all weights of the 1 layers",
            kInput +
                layer("InnerProduct", "x", "z",
                      kFrozen + "inner_product_param { num_output: 3 " + kXavier + " }") +
                kLoss),
        net("layer \"w_InnerProduct\" (InnerProduct): no loss depends on it",
            kGood + dense("x", "w") + layer("Accuracy", "w y", "a")),
        net("layer \"w_GroupNorm\" (GroupNorm): no loss depends on it",
            kGood + layer("GroupNorm", "x", "w") + layer("Accuracy", "w y", "a")),
        net("layer \"w_GELU\" (GELU): nothing reads \"w\"", kGood + layer("GELU", "z", "w")),
        net("", kGood + layer("HardSigmoid", "z", "w")),
        net("", kGood + dense("x", "w") + layer("Softmax", "w", "p") +
                    "layer { name: \"unused\" type: \"Silence\" bottom: \"p\" }\n"),
        net("", kGood + layer("Accuracy", "z y", "a")),
        net("\"a_Accuracy\" measures the scores of \"w_InnerProduct\", but no loss learns",
            kGood + dense("x", "w") + layer("Accuracy", "w y", "a")),
        net("top_k is 3, but there are 3 classes, so it is always 1",
            kGood + layer("Accuracy", "z y", "a", "accuracy_param { top_k: 3 }")),
        net("no layer with weights is in front of it", kGood + layer("EuclideanLoss", "x y", "m")),
        net("no layer with weights is in front of it", kGood + layer("Permute", "x", "w") +
                                                           layer("GELU", "w", "w") +
                                                           layer("MAE", "w y", "m")),
        net("its weights start as 0, since weight_filler is missing",
            kInput + dense("x", "h", "") + layer("ReLU", "h", "r") + dense("r", "z") + kLoss),
        net("its weights start as 0, since weight_filler is missing, and with outputs of 0",
            kInput + dense("x", "h", "") + layer("TanH", "h", "r") + dense("r", "z", "") + kLoss),
        net("", kInput + dense("x", "h", "") + layer("TanH", "h", "r") + dense("r", "z") + kLoss),
        net("its weights start as 0, since weight_filler is missing, and with outputs of 0",
            kInput + dense("x", "h", "") + layer("Swish", "h", "r") + layer("ReLU", "r", "q") +
                dense("q", "z") + kLoss),
        net("", kInput + dense("x", "z", "") + kLoss),
        net("standard deviation of 1, the default of std",
            kInput + dense("x", "z", "weight_filler { type: \"gaussian\" }") + kLoss),
        net("", kInput + dense("x", "z", "weight_filler { type: \"gaussian\" std: 0.1 }") + kLoss),
        net("", kInput + dense("x", "z", "weight_filler { type: \"gaussian\" std: 1 }") + kLoss),
        net("standard deviation of 5,",
            kInput + dense("x", "z", "weight_filler { type: \"gaussian\" std: 5 }") + kLoss),
        net("draws all weights from 0 to 1",
            kInput + dense("x", "z", "weight_filler { type: \"uniform\" }") + kLoss)));

INSTANTIATE_TEST_SUITE_P(
    Solver, CheckLearning,
    testing::Values(
        solver("base_lr is 0: no weight changes", "base_lr: 0 max_iter: 100 " + kFixed),
        solver("gamma is 10: the rate grows",
               kSolver + "lr_policy: \"step\" gamma: 10 stepsize: 50"),
        solver("note: gamma is 1: the rate never changes",
               kSolver + "lr_policy: \"step\" gamma: 1 stepsize: 50"),
        solver("gamma is 0: after the first step the rate is 0",
               kSolver + "lr_policy: \"step\" gamma: 0 stepsize: 50"),
        solver("falls below a billionth of its largest value in iteration 30 of 1000",
               "base_lr: 0.01 max_iter: 1000 lr_policy: \"exp\" gamma: 0.5"),
        solver("falls below a billionth of its largest value in iteration 100 of 1000",
               "base_lr: 0.01 max_iter: 1000 lr_policy: \"step\" gamma: 0.1 stepsize: 10"),
        solver("", "base_lr: 0.01 max_iter: 1000 lr_policy: \"exp\" gamma: 0.995"),
        solver("", "base_lr: 0.01 max_iter: 1000 lr_policy: \"poly\" power: 4"),
        solver("weight_decay is 0.9: it pulls", kSolver + kFixed + "weight_decay: 0.9"),
        solver("", kSolver + kFixed + "weight_decay: 0.05"),
        solver("weight_decay is 100 with base_lr 0.001",
               "base_lr: 0.001 max_iter: 9 type: \"AdamW\" weight_decay: 100 " + kFixed),
        solver("", "base_lr: 0.001 max_iter: 9 type: \"AdamW\" weight_decay: 1 " + kFixed),
        solver("weight_decay is -0.1, it must be at least 0",
               kSolver + kFixed + "weight_decay: -0.1"),
        solver("clip_gradients is 0: every gradient", kSolver + kFixed + "clip_gradients: 0")));

// An LMDB of boxes: xmin, ymin, xmax, ymax, label.
struct Boxed {
  float corners[4];
  int label;
};

std::string box_database(const Folder& folder, const std::vector<Boxed>& boxes) {
  const std::string path = folder.file("boxes");
  const std::unique_ptr<DatabaseWriter> writer = create_database(path, DataParameter::LMDB);
  for (size_t i = 0; i < boxes.size(); ++i) {
    AnnotatedDatum record;
    record.set_type(AnnotatedDatum::BBOX);
    record.mutable_datum()->set_channels(1);
    AnnotationGroup* const group = record.add_annotation_group();
    group->set_group_label(boxes[i].label);
    NormalizedBBox* const box = group->add_annotation()->mutable_bbox();
    box->set_xmin(boxes[i].corners[0]);
    box->set_ymin(boxes[i].corners[1]);
    box->set_xmax(boxes[i].corners[2]);
    box->set_ymax(boxes[i].corners[3]);
    writer->put(numbered_key(static_cast<int64_t>(i), 4), record);
  }
  writer->finish();
  return path;
}

TEST(CheckObjects, OutsideOfTheirImagesOrWithoutAClass) {
  struct Row {
    std::vector<Boxed> boxes;
    const char* said;
  };
  const Boxed good = {{0.1F, 0.2F, 0.5F, 0.6F}, 1}, outside = {{29, 23, 37, 33}, 1},
              flat = {{0.5F, 0.5F, 0.5F, 0.9F}, 1}, crossing = {{-0.5F, 0.5F, 0.5F, 1.9F}, 2};
  for (const Row& row :
       {Row{{good, crossing}, ""},
        Row{{outside, outside}, "error: layer \"in\": all 2 boxes that were looked at lie outside"},
        Row{{good, outside, flat}, "warning: layer \"in\": 2 of 3 boxes"},
        Row{{good, {{0.1F, 0.1F, 0.2F, 0.2F}, 0}},
            "has an object with label 0, but that is the "
            "background of \"l\""},
        Row{{good, {{0.1F, 0.1F, 0.2F, 0.2F}, 3}},
            "has an object with label 3, but labels of \"l\" "
            "are below num_classes: 3"}}) {
    const Folder folder;
    const std::string net =
        cat("layer { name: \"in\" type: \"AnnotatedData\" top: \"x\" top: \"y\" data_param { "
            "source: \"",
            box_database(folder, row.boxes), "\" batch_size: 1 backend: LMDB } }\n",
            dense("x", "loc"), dense("x", "conf"), layer("PriorBox", "x x", "prior"),
            "layer { name: \"l\" type: \"MultiBoxLoss\" bottom: \"loc\" bottom: \"conf\" bottom: "
            "\"prior\" bottom: \"y\" top: \"l\" multibox_loss_param { num_classes: 3 } }\n");
    const std::string text = said_of(kSolver + kFixed, net);
    if (*row.said == 0) {
      EXPECT_EQ(text, "");
    } else {
      expect_part(text, row.said);
    }
  }
}

// Label images of these records next to images of 20; their keys are those of a list.
std::string database_of(const Folder& folder, const std::string& name, int records, int size,
                        int first = 0) {
  const std::string path = folder.file(name);
  const std::unique_ptr<DatabaseWriter> writer = create_database(path, DataParameter::LMDB);
  for (int i = 0; i < records; ++i) {
    Datum datum;
    datum.set_channels(1);
    datum.set_height(size);
    datum.set_width(size);
    datum.set_data(std::string(static_cast<size_t>(size * size), static_cast<char>(i)));
    writer->put(cat(numbered_key(i, 8), "_", (i + first) % records, ".", name), datum);
  }
  writer->finish();
  return path;
}

struct StepCase {
  const char *said, *images, *labels;  // fields of data_param; "" said: nothing
  const char *image_transform = "", *label_transform = "";
  int records = 20, size = 4, first = 0;
};

void PrintTo(const StepCase& row, std::ostream* out) { *out << row.said; }

class CheckInStep : public testing::TestWithParam<StepCase> {};

TEST_P(CheckInStep, OfImagesAndLabels) {
  const StepCase& row = GetParam();
  const Folder folder;
  const auto source = [](const char* name, const char* top, const std::string& path,
                         const char* fields, const char* transform) {
    return cat("layer { name: \"", name, "\" type: \"Data\" top: \"", top,
               "\" data_param { source: "
               "\"",
               path, "\" backend: LMDB ", fields, " } transform_param { ", transform, " } }\n");
  };
  const std::string net =
      source("images", "x", database_of(folder, "png", 20, 4), row.images, row.image_transform) +
      source("labels", "y", database_of(folder, "txt", row.records, row.size, row.first),
             row.labels, row.label_transform) +
      dense("x", "z") + layer("EuclideanLoss", "z y", "l");
  const std::string text = said_of(kSolver + kFixed, net);
  if (*row.said == 0) {
    EXPECT_EQ(text, "");
  } else {
    expect_part(text, cat("layers \"images\" and \"labels\" belong together, as "
                          "\"l_EuclideanLoss\" reads both, but ",
                          row.said));
  }
}

#define FOUR "batch_size: 4 "

INSTANTIATE_TEST_SUITE_P(
    Rows, CheckInStep,
    testing::Values(
        StepCase{"", FOUR, FOUR}, StepCase{"", FOUR "shuffle: true", FOUR "shuffle: true"},
        StepCase{"", FOUR "rand_skip: 5", FOUR "rand_skip: 5"},
        StepCase{"", FOUR, FOUR, "mirror: true crop_size: 3", "mirror: true crop_size: 3"},
        StepCase{"", FOUR, FOUR, "mirror: true crop_size: 3", "", 20, 1},
        StepCase{"they have 20 and 19 records", FOUR, FOUR, "", "", 19},
        StepCase{"batch_size is 4 and 5", FOUR, "batch_size: 5"},
        StepCase{"shuffle is 1 and 0", FOUR "shuffle: true", FOUR},
        StepCase{"rand_skip is 0 and 5", FOUR, FOUR "rand_skip: 5"},
        StepCase{"balance draws the records", FOUR "balance: true", FOUR "balance: true"},
        StepCase{"transform_param.mirror is 1 in one and not given", FOUR, FOUR, "mirror: true"},
        StepCase{"transform_param.crop_size is 3 in one and 2", FOUR, FOUR, "crop_size: 3",
                 "crop_size: 2"},
        StepCase{"record 0 is 00000000_0.png in one and 00000000_1.txt in the other", FOUR, FOUR,
                 "", "", 20, 4, 1}));

// Shuffled, cropped and mirrored alike, whatever the layers are called.
TEST(Companions, StayInStep) {
  const Folder folder;
  const std::string images = database_of(folder, "png", 50, 4);
  const auto source = [&](const char* name, const char* top) {
    return cat(
        "layer { name: \"", name, "\" type: \"Data\" top: \"", top, "\" data_param { source: \"",
        images,
        "\" backend: LMDB batch_size: 8 shuffle: true rand_skip: 9 } transform_param { mirror: "
        "true crop_size: 3 } }\n");
  };
  Context context(Device::cpu);
  Solver solver(context,
                solver_file("random_seed: 3 max_iter: 9",
                            source("first", "x") + source("second", "y") +
                                dense("x", "z", kXavier, 9) + layer("EuclideanLoss", "z y", "l")));
  std::string order;
  for (int pass = 0; pass < 12; ++pass) {
    solver.net().forward(pass);
    const auto values = [&](const char* blob) {
      return to_floats(context, solver.net().blob(blob));
    };
    EXPECT_EQ(values("x"), values("y"));
    order += cat(values("x")[0], " ");
  }
  EXPECT_NE(order.substr(0, 6), "0 8 16");  // shuffled
}

}  // namespace check_learning_test
}  // namespace crema::tests
