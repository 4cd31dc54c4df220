// iterations.csv in a run folder: what each iteration gave, so that it can be recognized when it is computed again.
//   iteration,loss,weights,parameters
//   0,2.36548066,8d0c7e21a4b35f60,1f2e3d4c 5b6a7988 ...
//   1,2.31004858,,
// loss: of that iteration, from the fewest digits that give the same float again; nan and inf as such.
// weights: a hash of all parameters before it, and parameters: the first 32 bits of the hash of each, in
// the net's order; only in some rows. After a resume or a rollback iterations come again: the last ones count.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "solver/events/events.h"
#include "solver/readers/record_file.h"

namespace crema {

// Hashes of weights as the file has them.
struct RecordedWeights {
  std::string all;
  std::vector<std::string> parameters;  // empty: not recorded
};

// As the file has them, from the hashes of all parameters.
RecordedWeights recorded_weights(const std::vector<uint64_t>& parameters);

// The course of a run: what later rows outdate is left out.
struct RecordedIterations {
  int64_t first = 0;  // iteration of the first loss
  std::vector<float> losses;
  std::set<int64_t> missing;                   // iterations whose rows could not be written
  std::map<int64_t, RecordedWeights> weights;  // by iteration

  int64_t end() const { return first + std::ssize(losses); }
  bool has_loss(int64_t iteration) const {
    return iteration >= first && iteration < end() && missing.count(iteration) == 0;
  }
  float loss(int64_t iteration) const { return losses[static_cast<size_t>(iteration - first)]; }
};

// Error names a line that is none of such a file. A last line without its newline is left out: a kill cuts it off.
RecordedIterations read_iterations(const std::string& path);

// Writes the file during training. A damaged last line is removed at the start.
class IterationsReader : public EventReader {
 public:
  IterationsReader(Log& log, std::string path) : log_(log), path_(path), file_(log, path) {}
  void read(const Event& event) override;

 private:
  void begin();
  void write(const event::Losses& losses);

  Log& log_;
  std::string path_;
  RecordFile file_;
  std::map<int64_t, RecordedWeights> waiting_;  // until the loss of their iteration is known
  int with_parameters_ = 0;                     // rows so far
};

}  // namespace crema
