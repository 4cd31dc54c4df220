// Samples: what a Loader fills batches with: an endless walk through records, each of which becomes
// the numbers that a net reads.
#pragma once

#include "data/images/record.h"
#include "data/transforms/draws.h"

namespace crema {

// Where a position of an endless walk through records lies: which time round, and which record.
struct Place {
  int64_t epoch = 0;
  int64_t index = 0;
};

// A sample's place in the walk.
struct Turn {
  int64_t position = 0;  // samples of all ranks count
  int64_t in_batch = 0;
  Place place;    // its record, shuffled or not
  Random random;  // of the epoch: random.four(place.index) are this record's numbers

  Random::Four draws() const { return random.four(static_cast<uint64_t>(place.index)); }
};

// As many more as are wanted, for the same record.
inline Draws draws_of(const Turn& turn) {
  return Draws(
      {turn.random.seed, mix(turn.random.stream, static_cast<uint64_t>(turn.place.index) + 2)});
}

// Filled again for every sample, so that its memory is used again.
struct Sample {
  Shape shape;                                  // of the data
  Shape label_shape;                            // of the labels; no axes: a single number
  int64_t stored_height = 0, stored_width = 0;  // of the image before a crop, where somebody asks
  Record record;
  Image label_image;
  std::vector<float> labels;
};

// All functions may be called from several threads at the same time.
class Samples {
 public:
  virtual ~Samples() = default;

  // Of an epoch.
  virtual int64_t size() const = 0;
  // A source that learns its size only by walking through itself overrides this.
  virtual Place place(int64_t position) const { return {position / size(), position % size()}; }
  // The record as messages name it: `PATH, record 17 (key "00000017_cat.jpg")`.
  virtual std::string describe(const Turn& turn) const = 0;
  // What makes samples of different shapes equal, for the message that asks for it.
  virtual std::string how_to_equalize() const = 0;
  // Making one takes much longer than copying its bytes: it decodes an image.
  virtual bool decodes() const { return true; }

  // Samples have as many labels as they have objects. Then `labels` holds those of a batch one
  // after another, and joined() gives their shape as the net reads them; it may add what stands for
  // none.
  virtual bool labels_vary() const { return false; }
  virtual Shape joined(std::vector<float>& labels) const {
    return {static_cast<int64_t>(labels.size())};
  }

  // Reads the record and sets the sample's shapes, and what write() needs. Error, of write() too,
  // gives only the reason: the caller puts describe() in front of it.
  virtual void load(const Turn& turn, Sample& sample) const = 0;
  // After load(): sets the labels, and writes the data, which has room for the sample's shape.
  virtual void write(const Turn& turn, Sample& sample, float* data) const = 0;
};

}  // namespace crema
