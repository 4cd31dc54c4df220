// eval_type: "detection": average precision, and its log lines.
#include <gtest/gtest.h>

#include "solver/fixtures.h"
#include "solver/test/average_precision.h"

namespace crema::tests {
namespace detection_test {

TEST(AveragePrecision, IsWhatEachVersionSays) {
  // Of 3 objects: right, wrong, right, right: precision 1, 1/2, 2/3, 3/4; recall 1/3, 1/3, 2/3, 1.
  const std::vector<RankedDetection> detections = {
      {0.6f, true}, {0.9f, true}, {0.7f, true}, {0.8f, false}};
  EXPECT_NEAR(average_precision(detections, 3, "11point"), (4 + 7 * 0.75) / 11, 1e-6);
  EXPECT_NEAR(average_precision(detections, 3, "MaxIntegral"), 1. / 3 + 2. / 3 * 0.75, 1e-6);
  EXPECT_NEAR(average_precision(detections, 3, "Integral"), (1 + 2. / 3 + 0.75) / 3, 1e-6);
  EXPECT_EQ(average_precision({}, 3, "Integral"), 0);
  EXPECT_EQ(average_precision(detections, 0, "Integral"), 0);
}

constexpr const char* kDetectionNet = R"(
  name: "found"
  layer { name: "data" type: "DummyData" top: "x" top: "y"
    dummy_data_param { shape { dim: 2 dim: 3 } data_filler { type: "gaussian" std: 1 } } }
  layer { name: "z" type: "InnerProduct" bottom: "x" top: "z" inner_product_param { num_output: 3 } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "z" bottom: "y" top: "loss" include { phase: TRAIN } }
  layer { name: "silence" type: "Silence" bottom: "z" bottom: "y" include { phase: TEST } }
  layer { name: "boxes" type: "Input" top: "detections" top: "objects" include { phase: TEST }
    input_param { shape { dim: 1 dim: 1 dim: 4 dim: 7 } shape { dim: 1 dim: 1 dim: 3 dim: 8 } } }
  layer { name: "detection_eval" type: "DetectionEvaluate" bottom: "detections" bottom: "objects"
    top: "detection_eval" include { phase: TEST } detection_evaluate_param { num_classes: 4 } }
)";

struct Session {
  explicit Session(const std::string& more, const std::string& net = kDetectionNet) {
    context.set_log(log);
    SolverOptions options;
    options.fills_inputs = true;
    solver.emplace(
        context,
        solver_file("test_iter: 2 test_interval: 100 eval_type: \"detection\" " + more, net),
        options);
    log.all.clear();
  }
  // Three objects, two of class 1 and one of class 2. Of class 1 one is found, but only after a
  // mistake; that of class 2 is found; of class 3 there is nothing.
  void fill() {
    Net& net = *solver->test_nets()[0];
    const std::vector<float> detections = {0, 1, 0.9f, 0.6f, 0.6f, 0.9f, 0.9f, 0, 1, 0.5f,
                                           0, 0, 0.5f, 0.5f, 1,    2,    0.7f, 0, 0, 1,
                                           1, 1, -1,   0,    0,    0,    0,    0};
    const std::vector<float> objects = {0,    1,    0,    0, 0, 0.5f, 0.5f, 0, 0, 1, 1, 0,
                                        0.6f, 0.3f, 0.9f, 0, 1, 2,    0,    0, 0, 1, 1, 0};
    from_floats(context, detections.data(), net.input("detections"));
    from_floats(context, objects.data(), net.input("objects"));
  }
  Context context{Device::cpu};
  Lines log;
  std::optional<Solver> solver;
};

TEST(Detection, TheLogSaysTheMeanAveragePrecision) {
  Session run("ap_version: \"MaxIntegral\" show_per_class_result: true");
  run.fill();
  run.solver->test_all();
  // Class 1: precision 0, 1/2 at recall 0, 1/2. Both batches are alike, so in the order of the
  // scores two are wrong, then two right of four: 0, 0, 1/3, 1/2 at 0, 0, 1/4, 1/2.
  EXPECT_EQ(run.log.all,
            (std::vector<std::string>{"Iteration 0, Testing net (#0)", "class1: 0.25", "class2: 1",
                                      "Missing true_pos for label: 3",
                                      "    Test net output #0: detection_eval = 0.416667"}));
}

TEST(Detection, FieldsOfTheSolverAreChecked) {
  EXPECT_NE(error_of([] {
              Session("ap_version: \"12point\"");
            }).find("ap_version is \"12point\", but must be \"11point\""),
            std::string::npos);
  EXPECT_NE(error_of([] {
              Session run("", kNet);
              run.solver->test_all();
            }).find("needs a test net with an output of DetectionEvaluate"),
            std::string::npos);
}

}  // namespace detection_test
}  // namespace crema::tests
