// Record: one decoded sample of a source: its values, their shape and the label.
#pragma once

#include "data/images/image.h"
#include "proto/data.pb.h"
#include "tensor/shape.h"

namespace crema {

// Reused for every sample, to reuse its memory.
struct Record {
  Datum datum;  // as stored in the source
  int64_t channels = 0, height = 0, width = 0;
  int label = 0;
  // Exactly one of these is set; it points into `datum` or `image`.
  const uint8_t* bytes = nullptr;
  const float* values = nullptr;
  bool interleaved =
      false;  // the channels of a pixel are adjacent (decoded images), not in separate planes
  // The available rows and columns, if only a part of a JPEG was decoded; no height: all.
  ImagePart part;
  // Divisor of height and width of `image`, for changes that shrink it anyway.
  int shrink = 1;
  Image image;

  Shape shape() const { return {channels, height, width}; }
};

// Sets everything but the label from record.image.
void show_image(Record& record);
// The same for pixels owned by the caller, with its channels, height and width.
void show_pixels(const uint8_t* pixels, Record& record);

// Puts what decode() found into record.image, if it is not there yet. Error when it is not an
// image.
void to_image(Record& record);

using Need = std::function<ImageNeed(const ImageExtents&)>;

// Sets everything from record.datum. `color` applies only to encoded images; others have no image
// to convert. With `need` images are decoded only as far as it asks for. Error gives only the reason.
void decode(Record& record, Color color, const Need& need = {});

// Sets all but the label from the content of an image file.
void decode_file(std::string_view file, Color color, const Need& need, Record& record);

}  // namespace crema
