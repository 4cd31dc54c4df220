// `crema time`: percentiles, the roofline, lists of batch sizes, and the JSON that it writes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "tools/measure/limits.h"
#include "tools/measure/percentiles.h"
#include "tools/program.h"

namespace crema::tests {
namespace time_test {

using nlohmann::json;

TEST(Percentiles, OfKnownSamples) {
  std::vector<double> hundred_and_one;
  for (int i = 0; i <= 100; ++i) hundred_and_one.push_back(i * 37 % 101);  // each number once
  struct Row {
    std::vector<double> samples;
    double mean, least, most, p50, p90, p99;
  };
  // Those of numpy.percentile.
  const Row rows[] = {
      {{5}, 5, 5, 5, 5, 5, 5},
      {{2, 1}, 1.5, 1, 2, 1.5, 1.9, 1.99},
      {{4, 1, 3, 2}, 2.5, 1, 4, 2.5, 3.7, 3.97},
      {{7, 7, 7, 7, 7, 7, 7, 7, 7, 107}, 17, 7, 107, 7, 17, 98},
      {hundred_and_one, 50, 0, 100, 50, 90, 99},
  };
  for (const Row& row : rows) {
    const Timing timing = timing_of(row.samples);
    SCOPED_TRACE(row.samples.size());
    EXPECT_EQ(timing.count, row.samples.size());
    EXPECT_NEAR(timing.mean, row.mean, 1e-9);
    EXPECT_EQ(timing.least, row.least);
    EXPECT_EQ(timing.most, row.most);
    EXPECT_NEAR(timing.p50, row.p50, 1e-9);
    EXPECT_NEAR(timing.p90, row.p90, 1e-9);
    EXPECT_NEAR(timing.p99, row.p99, 1e-9);
    EXPECT_NEAR(median(row.samples), row.p50, 1e-9);
  }
  EXPECT_EQ(timing_of({}).count, 0u);
}

TEST(Roofline, IsTheLongerOfArithmeticAndMemory) {
  Limits limits;
  limits.operations = 100;
  limits.bytes = 10;
  // The first is slow because starting a loop takes most of its time.
  limits.bandwidths = {{1, 5}, {8, 40}, {64, 20}, {128, 19}, {1000, 10}};
  const std::pair<double, double> rates[] = {{0.5, 40}, {8, 40},    {9, 20},  {64, 20},
                                             {65, 10},  {1000, 10}, {1e6, 10}};
  for (const auto& [amount, rate] : rates) EXPECT_EQ(limits.bytes_for(amount), rate) << amount;
  struct Row {
    Work work;
    double seconds;
    bool arithmetic;
  };
  const Row rows[] = {
      {{0, 0, 0}, 0, false},          {{0, 8, 0}, 0.2, false},     {{500, 8, 500}, 5, true},
      {{500, 1000, 500}, 100, false}, {{500, 8, 125}, 1.25, true},  // as Winograd's algorithm
  };
  for (const Row& row : rows) {
    const Roofline roofline = roofline_of(row.work, limits);
    EXPECT_NEAR(roofline.seconds, row.seconds, 1e-9);
    EXPECT_EQ(roofline.arithmetic, row.arithmetic) << row.seconds;
  }
}

constexpr const char* kNet = R"(
    name: "a \"net\""
    layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 2 dim: 16 dim: 24 dim: 24 } } }
    layer { name: "conv" type: "Convolution" bottom: "x" top: "y"
            convolution_param { num_output: 32 kernel_size: 5 pad: 2 weight_filler { type: "xavier" } } }
    layer { name: "relu" type: "ReLU" bottom: "y" top: "y" }
    layer { name: "pool" type: "Pooling" bottom: "y" top: "p" pooling_param { kernel_size: 2 stride: 2 } }
    layer { name: "ip" type: "InnerProduct" bottom: "p" top: "z"
            inner_product_param { num_output: 256 weight_filler { type: "xavier" } } })";
constexpr const char* kLoss =
    "layer { name: \"loss\" type: \"EuclideanLoss\" bottom: \"z\" bottom: \"z\" top: \"loss\" }";

void expect_timing(const json& timing, int64_t count) {
  EXPECT_EQ(timing.at("count"), count);
  EXPECT_GE(timing.at("min_ms"), 0);
  const char* const ascending[] = {"min_ms", "p50_ms", "p90_ms", "p99_ms", "max_ms"};
  for (size_t i = 1; i < std::size(ascending); ++i)
    EXPECT_LE(timing.at(ascending[i - 1]), timing.at(ascending[i])) << ascending[i];
  EXPECT_GE(timing.at("mean_ms"), timing.at("min_ms"));
  EXPECT_LE(timing.at("mean_ms"), timing.at("max_ms"));
}

// The share of the roofline, from the other numbers.
double share_from(const json& side, const json& peak) {
  const double memory_rate = peak.at("bytes_per_second");
  double best = memory_rate, rate = memory_rate;
  for (const json& bandwidth : peak.at("bandwidths"))
    best = std::max(best, bandwidth.at("bytes_per_second").get<double>());
  for (const json& bandwidth : peak.at("bandwidths")) {
    const double one = bandwidth.at("bytes_per_second");
    if (bandwidth.at("bytes") >= side.at("bytes") && one >= std::sqrt(best * memory_rate))
      rate = std::max(rate, one);
  }
  const double arithmetic =
      side.at("operations").get<double>() / peak.at("operations_per_second").get<double>();
  const double memory = side.at("bytes").get<double>() / rate;
  EXPECT_EQ(side.at("limit"), arithmetic > memory ? "arithmetic" : "memory");
  return std::max(arithmetic, memory) / (1e-3 * side.at("p50_ms").get<double>());
}

const json& step_named(const json& run, const std::string& name) {
  for (const json& step : run.at("steps")) {
    if (step.at("name") == name) return step;
  }
  throw std::runtime_error("there is no step " + name);
}

void expect_result(const json& result, const std::string& mode) {
  EXPECT_EQ(result.at("kind"), "crema time");
  EXPECT_EQ(result.at("version"), 1);
  EXPECT_EQ(result.at("mode"), mode);
  EXPECT_EQ(result.at("net"), "a \"net\"");
  EXPECT_EQ(result.at("model"), "net.prototxt");
  EXPECT_EQ(result.at("phase"), mode == "forward" ? "TEST" : "TRAIN");
  EXPECT_EQ(result.at("device"), "CPU");
  EXPECT_EQ(result.at("precision"), "fp32");
  EXPECT_EQ(result.at("threads"), 1);
  EXPECT_EQ(result.at("warmup"), 2);
  const json& peak = result.at("peak");
  EXPECT_GT(peak.at("operations_per_second"), 1e8);
  EXPECT_GT(peak.at("bytes_per_second"), 1e7);
  ASSERT_EQ(result.at("runs").size(), 2u);
  const bool backward = mode == "forward_backward" || mode == "train_step";
  for (const int64_t batch : {1, 4}) {
    const json& run = result.at("runs")[batch == 1 ? 0 : 1];
    EXPECT_EQ(run.at("batch"), batch);
    EXPECT_EQ(run.at("group"), 1);
    expect_timing(run.at("whole"), 6);
    EXPECT_NEAR(run.at("samples_per_second").get<double>(),
                1e3 * static_cast<double>(batch) / run.at("whole").at("p50_ms").get<double>(),
                1e-3 * run.at("samples_per_second").get<double>());
    EXPECT_EQ(run.contains("forward"), mode == "forward_backward" || mode == "forward_only");
    EXPECT_EQ(run.contains("backward"), mode == "forward_backward");
    EXPECT_EQ(run.contains("update"), mode == "train_step");
    EXPECT_EQ(run.at("memory_bytes").is_null(),
              mode == "forward_backward" || mode == "forward_only");
    const json& conv = step_named(run, "conv + relu");
    EXPECT_EQ(conv.at("layers"), json({"conv", "relu"}));
    EXPECT_EQ(conv.at("forward").at("operations"), 2.0 * 32 * 16 * 25 * 24 * 24 * batch);
    EXPECT_EQ(conv.contains("backward"), backward);
    for (const json& step : run.at("steps")) {
      for (const char* side : {"forward", "backward"}) {
        if (!step.contains(side)) continue;
        const json& one = step.at(side);
        expect_timing(one, 6);
        if (one.at("roofline").is_null()) continue;
        EXPECT_NEAR(one.at("roofline").get<double>(), share_from(one, peak),
                    0.01 * one.at("roofline").get<double>())
            << step;
      }
    }
    EXPECT_EQ(run.at("all_steps").contains("backward"), backward);
    double forward = 0;
    for (const json& step : run.at("steps"))
      forward += step.contains("forward") ? step.at("forward").at("p50_ms").get<double>() : 0;
    EXPECT_NEAR(run.at("all_steps").at("forward").at("p50_ms").get<double>(), forward,
                1e-3 * forward);
  }
}

TEST(TimeVerb, WritesOneJsonObject) {
  const Folder folder;
  folder.write("net.prototxt", std::string(kNet) + kLoss);
  for (const char* mode : {"forward", "train_step", "forward_only", "forward_backward"}) {
    SCOPED_TRACE(mode);
    const Outcome outcome = run(
        folder, cat("time -model net.prototxt -iterations 6 -warmup 2 -threads 1 -batch 1,4 -json ",
                    std::string(mode) == "forward_backward" ? "" : cat("-", mode)));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    expect_result(json::parse(outcome.out), mode);
  }
}

// A solver's net is timed as a run would train it: with rounding, the teacher, and the update rule.
TEST(TimeVerb, TimesTheNetThatASolverTrains) {
  const Folder folder;
  folder.write("net.prototxt", std::string(kNet) + kLoss);
  folder.write(
      "solver.prototxt",
      "net: \"net.prototxt\" type: \"Adam\" base_lr: 0.1 lr_policy: \"fixed\" max_iter: 9\n"
      "quantize { keep: \"ip\" } prune { sparsity: 0.5 }\n"
      "teacher { net: \"net.prototxt\" weights: \"net.prototxt\" weight: 0 "
      "match { student: \"z\" teacher: \"z\" } }\n");
  const std::string solver = "time -solver solver.prototxt -iterations 2 -json ";
  for (const char* mode : {"-train_step", ""}) {
    const Outcome outcome = run(folder, cat(solver, mode));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const json result = json::parse(outcome.out);
    EXPECT_EQ(result.at("model"), "solver.prototxt");
    std::set<std::string> names;
    for (const json& step : result.at("runs").at(0).at("steps")) names.insert(step.at("name"));
    for (const char* name : {"x/range", "teacher/match0"})
      EXPECT_EQ(names.count(name), 1u) << name << outcome.out;
    EXPECT_EQ(names.count("p/range"), 0u) << "of ip, which keep names";
  }
  for (const auto& [flags, message] : std::vector<std::pair<std::string, std::string>>{
           {"-forward", "-forward and -solver exclude each other"},
           {"-phase TEST", "-phase and -solver exclude each other"},
           {"-model net.prototxt", "-solver and -model exclude each other"},
           {"-set quantize.bits=1", "bits"}}) {
    const Outcome outcome = run(folder, solver + flags);
    EXPECT_EQ(outcome.code, 1);
    expect_part(outcome.err, message);
  }
}

// With -quiet the log is empty, but Caffe's lines and the tables are on stdout.
TEST(TimeVerb, TablesOfSeveralBatchSizes) {
  const Folder folder;
  folder.write("deploy.prototxt", kNet);
  const Outcome outcome =
      run(folder, "time -model deploy.prototxt -forward -iterations 2 -batch 3,1 -quiet");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  for (const char* part : {"Inference: batch 3  ", "Inference: batch 1  ", "Inference: p50 ",
                           "\nBatch 3:\nlayers ", "\nBatch 1:\nlayers ", "\nconv + relu  ",
                           "% arithmetic\n", "% memory\n", "\nall  ", "\nbatch  p50 ms  p90 ms"})
    expect_part(outcome.out, part);
  const Outcome one = run(folder, "time -model deploy.prototxt -forward_only -iterations 2 -quiet");
  ASSERT_EQ(one.code, 0) << one.err;
  expect_part(one.out, "Average Forward pass: ");
  expect_part(one.out, "Forward: p50 ");
  for (const char* part : {"Batch ", "backward", "p50 ms  p90 ms  "})
    EXPECT_EQ(one.out.find(part), std::string::npos) << one.out;
}

// Where activations leave the cache, the plan runs a step once for each micro-batch: their times and
// work are those of one step.
TEST(TimeVerb, AddsUpMicroBatches) {
  const Folder folder;
  folder.write("net.prototxt", R"(
    layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 32 dim: 16 dim: 224 dim: 224 } } }
    layer { name: "one" type: "Convolution" bottom: "x" top: "y" convolution_param { num_output: 16 kernel_size: 1 } }
    layer { name: "two" type: "Pooling" bottom: "y" top: "z" pooling_param { kernel_size: 2 stride: 2 } }
    layer { name: "three" type: "TanH" bottom: "z" top: "s" })");
  const Outcome outcome =
      run(folder, "time -model net.prototxt -forward -iterations 3 -warmup 1 -json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json run = json::parse(outcome.out).at("runs").at(0);
  std::set<std::string> names;
  for (const json& step : run.at("steps")) {
    EXPECT_TRUE(names.insert(step.at("name")).second) << step.at("name");
    expect_timing(step.at("forward"), 3);
  }
  EXPECT_EQ(step_named(run, "one").at("forward").at("operations"), 2.0 * 32 * 16 * 16 * 224 * 224);
}

// Large layers cannot be much faster than the measured peak. Other programs may disturb the
// measurement of the peak.
TEST(TimeVerb, NoLayerIsAboveTheRoofline) {
  const Folder folder;
  folder.write("net.prototxt", R"(
    layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 8 dim: 64 dim: 56 dim: 56 } } }
    layer { name: "conv" type: "Convolution" bottom: "x" top: "y"
            convolution_param { num_output: 64 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
    layer { name: "power" type: "Power" bottom: "y" top: "z" power_param { scale: 2 shift: 1 } }
    layer { name: "ip" type: "InnerProduct" bottom: "z" top: "s"
            inner_product_param { num_output: 16 weight_filler { type: "xavier" } } })");
  double most = 0;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const Outcome outcome = run(folder, "time -model net.prototxt -forward -iterations 10 -json");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const json run = json::parse(outcome.out).at("runs").at(0);
    most = 0;
    for (const json& step : run.at("steps")) {
      if (step.at("forward").at("roofline").is_null()) continue;
      EXPECT_GT(step.at("forward").at("roofline"), 0.001) << step;
      most = std::max(most, step.at("forward").at("roofline").get<double>());
    }
    if (most <= 1.2) return;
  }
  EXPECT_LE(most, 1.2);
}

TEST(TimeVerb, RefusesWrongNumbers) {
  const Folder folder;
  folder.write("net.prototxt", kNet);
  const std::pair<const char*, const char*> rows[] = {
      {"time -batch 4,,x", "-batch=4,,x: \"\" is not of type int32; expected numbers with commas"},
      {"time -batch 4,x", "-batch=4,x: \"x\" is not of type int32"},
      {"time -batch 4,", "-batch=4,: \"\" is not of type int32"},
      {"time -batch x", "-batch=x: the value must be of type int32"},
      {"time -batch 4,0", "-batch 4,0: expected positive numbers"},
      {"time -batch 4,-1", "-batch 4,-1: expected positive numbers"},
      {"time -batch -1", "-batch -1: expected a positive number"},
      {"time -batch 99999999999,1", "\"99999999999\" is not of type int32"},
      {"summary -batch 1,4", "-batch=1,4: the value must be of type int32"},
      {"time -iterations 1,2", "-iterations=1,2: the value must be of type int32"},
      {"time -warmup -1", "-warmup -1: expected 0 or a positive number"},
      {"time -threads -1", "-threads -1: expected at most "},
      {"time -threads 1000000", "-threads 1000000: expected at most "},
      {"time -json -dump_plan", "both print on the standard output"},
  };
  for (const auto& [command, message] : rows) {
    SCOPED_TRACE(command);
    const Outcome outcome = run(folder, cat(command, " -model net.prototxt"));
    EXPECT_EQ(outcome.code, 1);
    ASSERT_EQ(outcome.errors().size(), 1u) << outcome.err;
    expect_part(outcome.errors()[0], message);
    EXPECT_EQ(outcome.out, "");
  }
  const Outcome shared = run_shell(folder,
                                   "CREMA_FLAGS='-batch 2,x' \"$TOOLS\"/crema time -model "
                                   "net.prototxt -forward -iterations 1");
  EXPECT_EQ(shared.code, 1);
  expect_part(shared.err, "CREMA_FLAGS: -batch=2,x: \"x\" is not of type int32");
}

}  // namespace time_test
}  // namespace crema::tests
