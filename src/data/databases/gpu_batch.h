// Makes a batch on a GPU from records in its memory: crop, mirror, mean, scale, padding and grey,
// in any format and type, with the same values as Transform::apply.
#pragma once

#include "data/transforms/transform.h"
#include "tensor/tensor.h"

namespace crema {

// A record of a batch: its planes, and the random numbers drawn for it.
struct StoredPicture {
  const uint8_t* planes;
  int64_t height, width;
  Cut cut;
};

// All records of a database, of one size; a batch takes its own by the order in which they come.
struct AllRecords {
  const uint8_t* planes;
  const float* labels;
  int64_t count, height, width;
  int64_t batch_size, skip;  // the first sample of pass p is number p * batch_size + skip
  int64_t batches;           // in an epoch that no batch crosses; 0: batches cross
  bool shuffle;
  Random random;
  uint64_t pass;
  const uint64_t* live_pass;  // not null: the pass is *live_pass
  float* label;               // the batch's labels; null: not needed
};

// A transform as the GPU needs it, for records of so many channels.
struct BatchTransform {
  BatchTransform(Context& context, const Transform& transform, int64_t channels);

  TransformParams numbers;
  int64_t channels;  // of a record
  Tensor mean;
  int64_t mean_count;  // 0: none; 1; one per channel; one per value

  // data: (batch, C, H, W) in any real type and order, with or without channel padding; `pictures`
  // is in GPU memory, one for each sample.
  void make(Context& context, const StoredPicture* pictures, const Tensor& data) const;
  void make(Context& context, const AllRecords& records, const Tensor& data) const;
};

}  // namespace crema
