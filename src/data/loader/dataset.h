// Dataset: the samples from which a Loader fills batches. It is traversed endlessly, epoch after
// epoch; each record becomes one sample of a batch.
#pragma once

#include <optional>

#include "data/images/record.h"
#include "data/loader/waiting.h"
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
  // Earlier occurrences of the record. It is the epoch, unless classes are balanced.
  int64_t turn = 0;
  Random random;  // of the turn
  Random all_epochs;

  Draw draw() const {
    return {random, all_epochs, static_cast<uint64_t>(record_index.index), turn};
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
  Shape label_shape;                            // shape of the labels; no axes: a scalar
  int64_t stored_height = 0, stored_width = 0;  // image size before a crop, if needed
                                                // it
  Record record;
  Image label_image;
  std::vector<float> labels;
  SampleTimes* times = nullptr;  // load() adds to them if they are set
};

// All functions are thread-safe.
class Dataset {
 public:
  virtual ~Dataset() = default;

  // The number of records in an epoch.
  virtual int64_t size() const = 0;
  // A source that only learns its size by reading everything overrides this.
  virtual RecordIndex record_index(int64_t position) const {
    return {position / size(), position % size()};
  }
  // The record at place `index` of an epoch in a random order: a permutation of the records, which
  // depends on nothing but the epoch's random numbers. A source that reads its records in blocks
  // overrides this, so that those of a block come close together.
  virtual int64_t shuffled(int64_t index, const Random& of_epoch) const;
  // The record as error messages name it: `PATH, record 17 (key "00000017_cat.jpg")`.
  virtual std::string describe(const SampleIndex& sample_index) const = 0;
  // The class of a record, which costs less than to load it; none where records have several labels,
  // real ones, objects or label images. Error gives only the reason.
  virtual std::optional<int64_t> class_of(int64_t record) const {
    (void)record;
    return {};
  }
  // How to give all samples the same shape, for the error message about it.
  virtual std::string how_to_equalize() const = 0;
  // Whether making a sample takes much longer than copying its bytes, because it decodes or changes
  // an image.
  virtual bool decodes() const { return true; }

  // Whether a batch gets the records themselves (Batch::records), from which another component
  // makes the data. write() then only sets the labels.
  virtual bool hands_over() const { return false; }

  // For the hint to who waits for samples: what kind of source this is. `times` are set.
  virtual void add_facts(WaitingFacts& facts) const { (void)facts; }

  // Whether samples have as many labels as objects. Then `labels` has those of a batch,
  // concatenated, and joined_label_shape() returns their shape in the net; it may add a placeholder
  // for none.
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
