// ResidentData: all records of a database in GPU memory, and the batches made from them there.
// Their values are those of a Loader with the same transform and options.
#pragma once

#include <memory>

#include "data/databases/gpu_batch.h"
#include "data/databases/records.h"
#include "data/loader/loader.h"
#include "tensor/tensor.h"

namespace crema {

class ResidentData {
 public:
  // Null if this is not possible: on a CPU, if records are encoded, have no bytes, differ in shape
  // or have several labels, if images are augmented or classes balanced, or if they need more than
  // `max_bytes`.
  static std::unique_ptr<ResidentData> load(Context& context, const Records& records,
                                            const LoaderOptions& options, size_t max_bytes);

  // Batch number `pass`, or *live_pass if that is not null. data: (batch, C, H, W) in any real type
  // and order, with or without channel padding; labels: (batch), or empty. At the end of a whole
  // epoch the batch is as small as the loader's.
  void batch(Context& context, uint64_t pass, const uint64_t* live_pass, const Tensor& data,
             const Tensor& labels) const;
  // As Loader::skip(); before a CUDA graph records batches.
  void skip(int64_t samples) {
    options_.skip += samples - skipped_;
    skipped_ = samples;
  }
  // Bytes of GPU memory.
  size_t bytes() const { return bytes_.bytes() + labels_.bytes() + transform_.mean.bytes(); }
  // The epoch that the last sample of a batch belongs to.
  int64_t epoch(uint64_t pass) const;

 private:
  ResidentData(Context& context, const Transform& transform, Shape record)
      : transform_(context, transform, record[0]), record_(std::move(record)) {}

  int64_t batches() const;

  LoaderOptions options_;
  BatchTransform transform_;
  int64_t records_ = 0, skipped_ = 0;
  Shape record_;
  Tensor bytes_, labels_;
};

}  // namespace crema
