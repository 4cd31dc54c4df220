// RecordCheck: compares iterations that are computed again with those that a run has recorded.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "solver/events/events.h"
#include "solver/readers/iterations_file.h"

namespace crema {

class RecordCheck : public EventReader {
 public:
  // Compares from iteration `from` on, to the end of the record.
  explicit RecordCheck(RecordedIterations recorded, int64_t from = 0)
      : recorded_(std::move(recorded)), from_(from) {}
  void read(const Event& event) override;

  struct Difference {
    int64_t iteration = 0;
    // The weights before that iteration differ; else its loss.
    bool weights = false;
    double recorded = 0, found = 0;    // losses
    std::vector<int> parameters = {};  // that differ; empty: those of each were not recorded
  };
  // In the order of the run: weights come before the loss that they give.
  const std::optional<Difference>& first() const { return first_; }
  // How many were compared.
  int64_t losses() const { return losses_; }
  int64_t weights() const { return weights_; }
  // The last iteration up to which all are equal; -1: not even the first.
  int64_t last_equal() const { return last_equal_; }
  const RecordedIterations& recorded() const { return recorded_; }

 private:
  void compare(const event::Losses& losses);
  void compare(const event::WeightHashes& hashes);
  void note(Difference difference);

  RecordedIterations recorded_;
  int64_t from_, losses_ = 0, weights_ = 0, last_equal_ = -1;
  std::optional<Difference> first_;
};

}  // namespace crema
