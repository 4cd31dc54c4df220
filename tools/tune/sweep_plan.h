// The plan of a sweep: the combinations of the values of -sweep, and the file that records which of
// them have been trained.
#pragma once

#include <string>
#include <vector>

namespace crema {

struct SweepAxis {
  std::string path;  // "base_lr"
  std::vector<std::string> values;
};

// "base_lr=0.1,0.01": commas within brackets, braces or quotes belong to a value. Error for a text
// without a path or a value, and for a path or value that is there twice.
std::vector<SweepAxis> parse_sweep(const std::vector<std::string>& texts);

struct SweepRun {
  enum class State { waiting, running, done, failed, stopped };
  std::string name;                   // its folder is DIR/NAME: "3-base_lr=0.1-num_output=16"
  std::vector<std::string> settings;  // "base_lr=0.1", one of each axis
  State state = State::waiting;
  std::string message = {};  // why it failed
};
const char* name_of(SweepRun::State state);

// Each value of one axis with each of the others, the last axis changing fastest; of more than
// `count` (0: all) that many, chosen at random by `seed`, of which fewer are always among more.
std::vector<std::vector<std::string>> combinations_of(const std::vector<SweepAxis>& axes, int count,
                                                      uint64_t seed);

// DIR/sweep.json.
struct SweepRecord {
  std::string solver;
  std::vector<std::string> flags;  // that all its trainings get
  std::vector<SweepRun> runs;

  // Adds runs for combinations that it does not have; runs that were active when a sweep was killed
  // wait again. Returns the runs of `wanted`, as indices.
  std::vector<size_t> take(const std::vector<std::vector<std::string>>& wanted);
};

// Empty if there is no file. Error for a damaged one.
SweepRecord read_sweep(const std::string& path);
void write_sweep(const SweepRecord& record, const std::string& path);

}  // namespace crema
