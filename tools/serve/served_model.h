// A net that answers requests: what it takes and gives, and whether several requests can share a pass.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "crema.h"
#include "tools/console/program_log.h"
#include "tools/serve/served_pictures.h"

namespace crema {

struct ServedModelOptions {
  std::string name, net;
  ModelOptions model;
  int batch = 8;    // the most samples in a pass; 1: requests never share one
  int threads = 1;  // that run passes
};

// How requests share passes: any number of samples up to the batch, each with its own result. Nets whose
// samples concern each other, or whose inputs have no common first axis, take one request at a time, in
// the shapes of their file.
class ServedModel {
 public:
  // Opens the net and tries it with random values. Error with file:line:column for what is wrong with it.
  ServedModel(const ServedModelOptions& options, ProgramLog& log);

  const std::string& name() const { return options_.name; }
  bool batches() const { return !sizes_.empty(); }
  int64_t most_samples() const { return batches() ? sizes_.back() : 1; }
  // How many of the samples that wait, at most most_samples(), a pass computes fastest per sample: a batch
  // between two sizes is either filled up to the next one or divided.
  int64_t samples_to_take(int64_t waiting) const;
  // With batches() the first number of each shape is that of the samples, here 1.
  const std::vector<BlobInfo>& inputs() const { return inputs_; }
  const std::vector<BlobInfo>& outputs() const { return outputs_; }

  const ServedPictures& pictures() const { return pictures_; }

  // The parts that run passes, each used by one thread: as many as asked for, or one if they cannot share
  // weights.
  int threads() const { return static_cast<int>(models_.size()); }
  // Called first by a thread that runs passes: divides the processors among them.
  void take_thread(int thread);
  // One pass over `samples` samples: inputs in the order of inputs(), each with the values of all samples.
  // Returns the outputs in the order of outputs(). Without batches() `samples` does not count.
  std::vector<ServedTensor> run(int thread, int64_t samples,
                                const std::vector<std::vector<float>>& inputs);
  // With batches(): the outputs of `count` samples from `first` on, of those of a pass over `samples`.
  std::vector<ServedTensor> part(const std::vector<ServedTensor>& outputs, int64_t samples,
                                 int64_t first, int64_t count) const;

 private:
  static constexpr size_t kPlans = 4;  // that a net keeps
  using Shapes = std::vector<Model::InputShape>;
  // Values that a net is tried with: fractions, or 0 and 1 for layers that take whole numbers.
  enum class Trial { fractions, bits, none };
  void open(ProgramLog& log);
  // For input i; 0 samples: as many as its shape has.
  std::vector<float> trial_values(size_t i, int64_t samples, unsigned seed) const;
  std::vector<std::vector<float>> all_trial_values(int64_t samples, unsigned seed) const;
  void find_batches();
  bool samples_are_independent();
  void reshape(int thread, int64_t samples);
  void find_pictures();
  void measure_sizes();
  void add_time(int64_t size, double seconds);

  const ServedModelOptions options_;
  Trial trial_ = Trial::fractions;  // none: the net refuses both
  std::vector<Model> models_;
  std::vector<int64_t> now_;                           // samples of each one's shapes
  std::vector<int64_t> sizes_;                         // batch sizes, ascending; at most kPlans
  std::array<std::atomic<double>, kPlans> seconds_{};  // that a pass of each size takes; 0: unknown
  std::vector<BlobInfo> inputs_, outputs_;
  ServedPictures pictures_;
};

// "Nx3x227x227" with batches, else "1x3x227x227".
std::string shape_text(const std::vector<int64_t>& shape, bool batches);

}  // namespace crema
