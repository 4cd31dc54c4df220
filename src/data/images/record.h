// Record: one sample of a source, decoded: its numbers, their shape and the label.
#pragma once

#include "data/images/image.h"
#include "proto/data.pb.h"
#include "tensor/shape.h"

namespace crema {

// Filled again for every sample, so that its memory is used again.
struct Record {
  Datum datum;  // as the source holds it
  int64_t channels = 0, height = 0, width = 0;
  int label = 0;
  // One of the two is set; they point into `datum` or `image`.
  const uint8_t* bytes = nullptr;
  const float* values = nullptr;
  bool interleaved =
      false;  // the channels of a pixel lie together (decoded images), not one plane after another
  Image image;

  Shape shape() const { return {channels, height, width}; }
};

// Sets everything but the label from record.image.
void show_image(Record& record);

// Puts what decode() found into record.image, where it is not yet. Error when it is no picture.
void to_image(Record& record);

// Sets everything from record.datum. The colour is for encoded images: others have no picture to
// convert. Error gives only the reason.
void decode(Record& record, Color color);

}  // namespace crema
