// Dataset: the samples from which a Loader fills batches. It is traversed endlessly, epoch after
// epoch; each record becomes one sample of a batch.
#pragma once

#include "data/images/record.h"
#include "data/transforms/rng.h"

namespace crema {

// The record at a position of the endless traversal: which epoch, and which record in it.
struct RecordIndex {
  int64_t epoch = 0;
  int64_t index = 0;
};

// Identifies a sample: its position in the traversal and its record.
struct SampleIndex {
  int64_t position = 0;  // counts the samples of all ranks
  int64_t in_batch = 0;
  RecordIndex record_index;  // shuffled or not
  Random random;             // of the epoch
  Random all_epochs;

  Draw draw() const {
    return {random, all_epochs, static_cast<uint64_t>(record_index.index), record_index.epoch};
  }
};

// A generator for the same record, where more than four words are needed.
inline Rng rng_of(const SampleIndex& sample_index) {
  return Rng(
      {sample_index.random.seed, mix(sample_index.random.stream,
                                     static_cast<uint64_t>(sample_index.record_index.index) + 2)});
}

// Reused for every sample, to reuse its memory.
struct Sample {
  Shape shape;                                  // of the data
  Shape label_shape;                            // of the labels; no axes: a scalar
  int64_t stored_height = 0, stored_width = 0;  // of the image before a crop, where a layer needs
                                                // it
  Record record;
  Image label_image;
  std::vector<float> labels;
};

// All functions are thread-safe.
class Dataset {
 public:
  virtual ~Dataset() = default;

  // The number of records in an epoch.
  virtual int64_t size() const = 0;
  // A source that learns its size only by reading through itself overrides this.
  virtual RecordIndex record_index(int64_t position) const {
    return {position / size(), position % size()};
  }
  // The record as error messages name it: `PATH, record 17 (key "00000017_cat.jpg")`.
  virtual std::string describe(const SampleIndex& sample_index) const = 0;
  // How to make all samples have one shape, for the error message that asks for it.
  virtual std::string how_to_equalize() const = 0;
  // Whether making a sample takes much longer than copying its bytes, because it decodes or
  // changes an image.
  virtual bool decodes() const { return true; }

  // Whether samples have as many labels as they have objects. Then `labels` holds those of a batch,
  // concatenated, and joined_label_shape() gives their shape as the net reads them; it may add a placeholder for
  // none.
  virtual bool labels_vary() const { return false; }
  virtual Shape joined_label_shape(std::vector<float>& labels) const {
    return {static_cast<int64_t>(labels.size())};
  }

  // Reads the record and sets the sample's shapes, and what write() needs. An Error from here or
  // write() gives only the reason: the caller prefixes it with describe().
  virtual void load(const SampleIndex& sample_index, Sample& sample) const = 0;
  // After load(): sets the labels and writes the data; `data` has room for the sample's shape.
  virtual void write(const SampleIndex& sample_index, Sample& sample, float* data) const = 0;
};

}  // namespace crema
