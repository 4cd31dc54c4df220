// train -resume_check: equality and difference of a resumed training.
#include <gtest/gtest.h>

#include "tools/program.h"
#include "tools/runs/same_training.h"

namespace crema::tests {
namespace resume_check_test {

constexpr const char* images =
    "layer { name: \"data\" type: \"Data\" top: \"data\" top: \"label\" data_param { source: "
    "\"records\" backend: LMDB batch_size: 5 shuffle: true } transform_param { crop_size: 6 "
    "mirror: true } }\n"
    "layer { name: \"conv\" type: \"Convolution\" bottom: \"data\" top: \"conv\" "
    "convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: \"xavier\" } } }\n"
    "layer { name: \"norm\" type: \"BatchNorm\" bottom: \"conv\" top: \"conv\" }\n"
    "layer { name: \"drop\" type: \"Dropout\" bottom: \"conv\" top: \"conv\" }\n"
    "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"conv\" top: \"ip\" inner_product_param "
    "{ num_output: 20 weight_filler { type: \"xavier\" } } }\n"
    "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: \"label\" top: "
    "\"loss\" }\n";

// Its LSTM continues from one batch into the next.
constexpr const char* sequences =
    "layer { name: \"data\" type: \"DummyData\" top: \"x\" top: \"cont\" top: \"y\" "
    "dummy_data_param { shape { dim: 5 dim: 3 dim: 4 } shape { dim: 5 dim: 3 } shape { dim: 5 dim: "
    "3 dim: 6 } data_filler { type: \"gaussian\" } data_filler { type: \"constant\" value: 1 } "
    "data_filler { type: \"gaussian\" } } }\n"
    "layer { name: \"lstm\" type: \"LSTM\" bottom: \"x\" bottom: \"cont\" top: \"h\" "
    "recurrent_param { num_output: 6 weight_filler { type: \"xavier\" } } }\n"
    "layer { name: \"loss\" type: \"EuclideanLoss\" bottom: \"h\" bottom: \"y\" top: \"loss\" }\n";

struct Check {
  const char* net;
  const char* flags;
  int code;
  const char* message;
};

TEST(ResumeCheck, SaysWhetherAResumedTrainingIsTheSame) {
  for (const Check& row : {
           Check{
               images, "-resume_check 7", 0,
               "-resume_check 7: equal bit for bit. 7 iterations, a snapshot and 7 more give what "
               "14 without a break give: 7 blobs of weights ("},
           Check{images, "-resume_check 3 -set type=Adam -set ema_decay=0.9 -set random_seed=5", 0,
                 "14 of history, and all counters"},
           Check{images, "-resume_check 4 -set snapshot_format=HDF5 -set iter_size=2", 0,
                 "equal bit for bit"},
           Check{images, "-resume_check 2 -assume data=5x3x6x6,label=5", 0, "equal bit for bit"},
           Check{sequences, "-resume_check 3", 0, "equal bit for bit"},
           Check{sequences, "-resume_check 3 -set snapshot_format=HDF5", 0, "equal bit for bit"},
           Check{images, "-resume_check 11", 1,
                 "-resume_check 11 trains twice as many iterations, but max_iter is 20: give at "
                 "most 10"},
           Check{images, "-resume_check=-1", 1, "-resume_check is -1; expected the number"},
           Check{images, "-resume_check 1 -snapshot auto", 1, "leave out -snapshot"},
           Check{images,
                 "-resume_check 5 -set 'early_stop={watch {output: \"loss\" min_change: 99} tests: "
                 "1}' "
                 "-set test_iter=1 -set test_interval=1 -set base_lr=0",
                 1, ": the run stopped after 1 iterations, and 10 are needed"},
       }) {
    SCOPED_TRACE(row.flags);
    const Folder folder;
    folder.write("net.prototxt", row.net);
    folder.copy_golden("formats/lmdb_raw", "records");
    folder.write("solver.prototxt",
                 "net: \"net.prototxt\"\nbase_lr: 0.01\nlr_policy: \"poly\"\npower: 2\nmomentum: "
                 "0.9\nsolver_mode: CPU\nmax_iter: 20\nsnapshot: 2\nkeep_last: 1\ndisplay: 2\n"
                 "snapshot_prefix: \"own/small\"\n");
    folder.write("tmp/.here", "");
    const Outcome outcome = run_shell(
        folder,
        cat("export TMPDIR=$PWD/tmp; \"$TOOLS\"/crema train -solver solver.prototxt ", row.flags));
    EXPECT_EQ(outcome.code, row.code) << outcome.err;
    expect_part(outcome.err, row.message);
    EXPECT_EQ(outcome.errors().size(), static_cast<size_t>(row.code));
    // It leaves no files.
    EXPECT_FALSE(folder.has("own"));
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.file("tmp")), {}), 1);
  }
}

// The result of a run with these values.
Training training(float weight, float history, float carried, int passes) {
  Training made;
  made.weights = {{"layer \"a\", blob 0", {1, weight}}, {"layer \"b\", blob 0", {0.5f}}};
  for (const float value : {history, 4.0f}) made.state.add_history()->add_data(value);
  made.state.add_carried()->add_data(carried);
  made.state.set_train_passes(static_cast<uint64_t>(passes));
  made.state.set_learned_net(std::to_string(weight));
  return made;
}

TEST(ResumeCheck, FindsWhatDiffersFirst) {
  const Training whole = training(2, 3, 7, 10);
  EXPECT_EQ(difference(whole, training(2, 3, 7, 10)), "");
  struct Row {
    Training found;
    const char* says;
  };
  for (const Row& row :
       {Row{training(2.5f, 3, 7, 10),
            "weights of layer \"a\", blob 0: 1 of 2 values differ, the first is number 1, 2.5 "
            "where "
            "2 was expected; the largest difference is 0.5"},
        Row{training(2, -3, 7, 10), "history of layer \"a\", blob 0: 1 of 1 values differ"},
        Row{training(2, 3, 8, 10), "the state of recurrent layers, blob 0: 1 of 1 values differ"},
        Row{training(2, 3, 7, 9), "train_passes of the state is { train_passes: 9 } where"}}) {
    expect_part(difference(whole, row.found), row.says);
  }
}

}  // namespace resume_check_test
}  // namespace crema::tests
