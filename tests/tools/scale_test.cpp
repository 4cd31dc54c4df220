// `crema scale`: sums and iterations worked out by hand, and the program.
#include <cmath>
#include <sstream>

#include "tools/program.h"
#include "tools/scale/prediction.h"

namespace crema::tests {
namespace scale_test {

// Four ranks a host; 100 GB/s inside, 10 GB/s between. `latency`: 1 us inside, 10 us between, 5 us
// to start.
Network network(bool bandwidth, bool latency) {
  Network network;
  network.per_host = 4;
  network.inside = bandwidth ? 100e9 : 1e30;
  network.between = bandwidth ? 10e9 : 1e30;
  if (latency) {
    network.inside_latency = 1e-6;
    network.between_latency = 10e-6;
    network.start = 5e-6;
  }
  return network;
}

struct SumRow {
  int ranks;
  bool bandwidth, latency, two_levels;
  double seconds;  // of 1 GB
  const char* algorithm;
};

TEST(Scale, SumsTakeWhatTheFormulasSay) {
  for (const SumRow& row : {
           SumRow{1, true, true, true, 0, "none"},
           // 2 * 3/4 * 1 GB / 100 GB/s; a tree would send all of it twice.
           SumRow{4, true, false, false, 0.015, "ring"},
           // 2 * 7/8 * 1 GB / 10 GB/s.
           SumRow{8, true, false, false, 0.175, "ring"},
           // 2 * (3/4 * 1 GB / 100 GB/s + 1/2 * 1 GB / 10 GB/s).
           SumRow{8, true, false, true, 0.115, "two levels"},
           // 2 * 3 steps inside; the tree's chain has as many.
           SumRow{4, false, true, false, 11e-6, "ring"},
           // 2 * (3 inside + 1 between); a ring would take 2 * (6 + 1).
           SumRow{8, false, true, false, 31e-6, "tree"},
           // 2 * (3 inside + 2 between).
           SumRow{16, false, true, true, 51e-6, "tree"},
           // Three hosts are a tree of two levels.
           SumRow{12, false, true, true, 51e-6, "tree"},
       }) {
    Network with = network(row.bandwidth, row.latency);
    with.two_levels = row.two_levels;
    const Transfer sum = sum_over(with, row.ranks, 1e9);
    EXPECT_NEAR(sum.seconds, row.seconds, 1e-9) << row.ranks;
    EXPECT_STREQ(sum.algorithm, row.algorithm) << row.ranks;
  }
  // Half of a ring: 7/8 * 1 GB / 10 GB/s + 6 inside + 1 between + start.
  EXPECT_NEAR(part_over(network(true, true), 8, 1e9).seconds, 0.0875 + 21e-6, 1e-9);
}

// Forward 10 ms, backward 1, 4 and 5 ms from the last node to the first, update 2 ms; each node has
// 4 MB of gradients, a bucket each.
StepProfile three_nodes() {
  StepProfile profile;
  profile.net = "three";
  profile.device = "hand";
  profile.batch = 32;
  profile.forward = 10e-3;
  profile.backward = {5e-3, 4e-3, 1e-3};
  profile.update = 2e-3;
  profile.gradients = {{0, 1000000, 0}, {1000000, 1000000, 1}, {2000000, 1000000, 2}};
  return profile;
}

Exchange three_buckets() {
  Exchange exchange;
  exchange.buckets = {4000000, 4000000};
  return exchange;
}

// Two ranks of a host: a sum is one transfer of its bytes.
Network two_ranks(double bytes_per_second) {
  Network network;
  network.per_host = 2;
  network.inside = bytes_per_second;
  return network;
}

struct IterationRow {
  const char* what;
  double bandwidth;
  int ranks, wire, iter_size;
  bool shards;
  double communication, exposed, seconds;  // ms
};

TEST(Scale, IterationsEndWhenTheLastSumHasLanded) {
  for (const IterationRow& row : {
           IterationRow{"alone", 1e9, 1, 4, 1, false, 0, 0, 22},
           // Begin when backward has finished them, at 11, 15 and 20 ms: only the last one shows.
           IterationRow{"hidden", 4e9, 2, 4, 1, false, 3, 1, 23},
           // 11-15, 15-19, 20-24.
           IterationRow{"just hidden", 1e9, 2, 4, 1, false, 12, 4, 26},
           // 11-19, 19-27, 27-35.
           IterationRow{"exposed", 0.5e9, 2, 4, 1, false, 24, 15, 37},
           IterationRow{"16 bits", 0.5e9, 2, 2, 1, false, 12, 4, 26},
           // Sums of parts take half, 20-32; then 1 ms of update and 12 ms to gather.
           IterationRow{"sharded", 0.5e9, 2, 4, 1, true, 24, 24, 45},
           // Two passes of 20 ms; during and after the last, 31-39, 39-47, 47-55.
           IterationRow{"iter_size", 0.5e9, 2, 4, 2, false, 24, 15, 57},
       }) {
    StepProfile profile = three_nodes();
    profile.iter_size = row.iter_size;
    Exchange exchange = three_buckets();
    exchange.wire = row.wire;
    exchange.shards = row.shards;
    const Prediction p = predict(profile, two_ranks(row.bandwidth), exchange, row.ranks);
    EXPECT_NEAR(1e3 * p.communication, row.communication, 1e-6) << row.what;
    EXPECT_NEAR(1e3 * p.exposed, row.exposed, 1e-6) << row.what;
    EXPECT_NEAR(1e3 * p.seconds, row.seconds, 1e-6) << row.what;
    EXPECT_NEAR(p.efficiency, (20 * row.iter_size + 2) / row.seconds, 1e-9) << row.what;
    EXPECT_NEAR(p.samples_per_second, 32 * row.iter_size * row.ranks / (1e-3 * row.seconds), 1e-6);
  }
}

TEST(Scale, LimitsAndRemediesGiveWhatTheySay) {
  const StepProfile profile = three_nodes();
  const Network slow = two_ranks(0.5e9);
  const auto text_of = [](const std::vector<WhatIf>& all) {
    std::string text;
    for (const WhatIf& what : all)
      text += cat(what.change, " ", std::lround(1e5 * what.prediction.seconds) / 100.0, "; ");
    return text;
  };
  // 37 ms in all; of 15 exposed ones the last sum is 8; the update takes 2.
  EXPECT_EQ(
      text_of(limits_of(profile, slow, three_buckets(), 2)),
      "bandwidth inside a host 22; the last sum, which begins after backward 29; the update 35; ");
  // The larger batch takes 40 ms, which hide all but the last sum, 8 ms; half the bytes, or twice
  // the bandwidth, leave 4 ms; iter_size is 15 ms longer than two passes. Sharding gives nothing
  // here, 45. Smaller buckets begin no earlier: a node finishes all four MB at once.
  EXPECT_EQ(text_of(remedies_of(profile, slow, three_buckets(), 2)),
            "a batch of 64, if it takes twice as long 50; 16 bits on the wire: -wire bf16 26; "
            "twice the bandwidth inside the host 26; iter_size: 2 57; ");
  // A single rank waits only for its update.
  EXPECT_EQ(text_of(limits_of(profile, slow, three_buckets(), 1)), "the update 20; ");
}

TEST(Scale, TimesSurviveTheirFile) {
  const StepProfile profile = three_nodes();
  const std::string text = json_of(profile);
  EXPECT_EQ(json_of(profile_of_json(text, "t.json")), text);
  const auto broken = [&](const std::string& from, const std::string& to) {
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return std::string(text).replace(at, from.size(), to);
  };
  struct Row {
    std::string text, message;
  };
  for (const Row& row : {
           Row{"", "parse error"},
           Row{"[]", "it has no \"kind\": \"crema scale\""},
           Row{broken("\"batch\": 32", "\"batch\": 0"), "must be positive"},
           Row{broken("\"batch\": 32", "\"batch\": \"many\""), "number"},
           Row{broken("0.004", "-1"), "a time is negative"},
           Row{broken("\"update_seconds\"", "\"update\""), "update_seconds"},
           Row{broken("2000000", "1000000"), "do not follow the previous ones"},
           Row{broken("2000000", "2000001"), "do not begin at a multiple of 16"},
           Row{broken("2000000", "2000000000000000"), "too many"},
           Row{broken("\"element_size\": 4", "\"element_size\": 0"), "must be positive"},
       }) {
    const std::string error = error_of([&] { profile_of_json(row.text, "t.json"); });
    expect_part(error, "t.json: not the times that `crema scale -output FILE.json` writes: ");
    expect_part(error, row.message);
  }
}

TEST(Scale, ProgramPrintsWhatTimesOfAFileGive) {
  const Folder folder;
  folder.write("t.json", json_of(three_nodes()));
  const Outcome outcome = run(folder,
                              "crema scale -times t.json -gpus 1,2,4 -per_host 2 -bandwidth 0.5,1 "
                              "-latency 0 -buckets 3.814697265625,3.814697265625 -output t.csv");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_part(outcome.out,
              "three, batch 32 on each GPU (hand): forward 10.00 ms, backward 10.00 ms, update "
              "2.00 ms; 3000000 gradients, 11.4 MiB to send\n");
  std::istringstream lines(folder.read("t.csv"));
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(lines, line);) rows.push_back(split(line, ','));
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].size(), 7u);
  EXPECT_NEAR(std::stod(rows[1][2]), 22, 0.1);
  EXPECT_NEAR(std::stod(rows[2][2]), 37, 0.1);  // and three starts of 8.4 us
  EXPECT_NEAR(std::stod(rows[3][2]), 49, 0.1);  // sums of 12 ms, ring over the slow links
  expect_part(outcome.out, "\nWhat limits 2 GPUs:\n");
  expect_part(outcome.out, "\nWhat would help 4 GPUs:\n");
}

constexpr const char* kNet =
    "name: \"small\"\nlayer { name: \"in\" type: \"DummyData\" top: \"x\" top: \"y\" "
    "dummy_data_param { shape { dim: 16 dim: 50 } shape { dim: 16 } } }\n"
    "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"x\" top: \"z\" inner_product_param { "
    "num_output: 100 } }\n"
    "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"z\" bottom: \"y\" top: \"loss\" "
    "}\n";

// Measured once, predicted again from the file that was written.
TEST(Scale, ProgramMeasuresAndItsFileGivesTheSameTable) {
  const Folder folder;
  folder.write("net.prototxt", kNet);
  folder.write("solver.prototxt",
               "net: \"net.prototxt\"\ntype: \"Adam\"\nbase_lr: 0.1\nlr_policy: \"fixed\"\n"
               "max_iter: 1\niter_size: 3\n");
  const std::string flags = " -gpus 1,8,16 -bandwidth 10,1 -iterations 20";
  const Outcome measured =
      run(folder, "crema scale -solver solver.prototxt -output t.json" + flags);
  ASSERT_EQ(measured.code, 0) << measured.err;
  expect_part(measured.out, "small, batch 16 x 3 on each GPU (CPU, fp32): ");
  expect_part(measured.out, "; 5100 gradients, ");
  const StepProfile profile = profile_of_json(folder.read("t.json"), "t.json");
  EXPECT_EQ(profile.backward.size(), 3u);
  EXPECT_GT(profile.backward[1], 0);
  EXPECT_EQ(profile.gradient_elements(), 5100);
  const Outcome again = run(folder, "crema scale -times t.json" + flags);
  EXPECT_EQ(again.out, measured.out) << again.err;
  // What the solver adds to the net is measured, too: here the rounding of the input.
  const Outcome rounded = run(
      folder, "crema scale -solver solver.prototxt -set quantize.bits=8 -output r.json" + flags);
  ASSERT_EQ(rounded.code, 0) << rounded.err;
  EXPECT_GT(profile_of_json(folder.read("r.json"), "r.json").backward.size(), 3u);
  // -model instead of the solver's net, with SGD.
  const Outcome plain =
      run(folder, "crema scale -model net.prototxt -batch 4 -gpus 8 -bandwidth 10 -iterations 5");
  EXPECT_EQ(plain.code, 0) << plain.err;
  expect_part(plain.out, "small, batch 4 on each GPU");
}

struct Refused {
  const char* flags;
  const char* message;
};

TEST(Scale, RefusesWhatItCannotPredict) {
  const Folder folder;
  folder.write("t.json", json_of(three_nodes()));
  for (const Refused& row : {
           Refused{"-bandwidth 1,1", "nothing to measure: give -solver SOLVER.prototxt, -model"},
           Refused{"-times t.json", "the network's bandwidth is needed: -bandwidth GB/s"},
           Refused{"-times t.json -bandwidth 400", "give the bandwidth between hosts, too"},
           Refused{"-times t.json -bandwidth 400,x", "-bandwidth 400,x: \"x\" is not a number"},
           Refused{"-times t.json -bandwidth 0,1", "\"0\" is not a number of at least"},
           Refused{"-times t.json -bandwidth 1,2,3", "expected one number, or two with a comma"},
           Refused{"-times t.json -bandwidth 1,1 -gpus 12", "-gpus 12: expected full hosts"},
           Refused{"-times t.json -bandwidth 1,1 -gpus 8,0", "\"0\" is not a number of at least 1"},
           Refused{"-times t.json -bandwidth 1,1 -per_host 0", "-per_host 0: expected a positive"},
           Refused{"-times t.json -bandwidth 1,1 -latency -1", "\"-1\" is not a number"},
           Refused{"-times t.json -bandwidth 1,1 -buckets 0", "\"0\" is not a number"},
           Refused{"-times t.json -bandwidth 1,1 -wire int8", "-wire int8: expected fp32, bf16"},
           Refused{"-times t.json -bandwidth 1,1 -output t.txt", "expected NAME.json"},
           Refused{"-times t.json -bandwidth 1,1 -batch 3", "-batch and -times t.json: the times"},
           Refused{"-times none.json -bandwidth 1,1", "none.json"},
       }) {
    const Outcome outcome = run(folder, std::string("crema scale ") + row.flags);
    EXPECT_EQ(outcome.code, 1) << row.flags;
    ASSERT_EQ(outcome.errors().size(), 1u) << row.flags << outcome.err;
    expect_part(outcome.errors()[0], row.message);
  }
}

}  // namespace scale_test
}  // namespace crema::tests
