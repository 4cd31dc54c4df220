#include "data/images/record.h"

#include "base/error.h"
#include "tensor/claims.h"

namespace crema {

void show_image(Record& record) {
  record.channels = record.image.channels;
  record.height = record.image.height;
  record.width = record.image.width;
  record.bytes = record.image.pixels.data();
  record.values = nullptr;
  record.interleaved = true;
}

void to_image(Record& record) {
  if (record.interleaved) return;
  require(
      record.bytes != nullptr,
      "the record holds real numbers, not a picture: it cannot be resized or its colours changed");
  const int64_t plane = record.height * record.width;
  record.image = {record.channels, record.height, record.width, {}};
  record.image.pixels.resize(static_cast<size_t>(plane * record.channels));
  for (int64_t c = 0; c < record.channels; ++c) {
    for (int64_t i = 0; i < plane; ++i)
      record.image.pixels[i * record.channels + c] = record.bytes[c * plane + i];
  }
  show_image(record);
}

void decode(Record& record, Color color) {
  const Datum& datum = record.datum;
  record.label = datum.label();
  if (datum.encoded()) {
    decode_image(datum.data(), color, record.image);
    return show_image(record);
  }
  record.bytes = nullptr;
  record.values = nullptr;
  record.interleaved = false;
  record.channels = datum.channels();
  record.height = datum.height();
  record.width = datum.width();
  const auto plausible = [](int64_t extent) { return extent > 0 && extent <= (1 << 20); };
  const Shape shape = record.shape();
  if (!plausible(record.channels) || !plausible(record.height) || !plausible(record.width) ||
      !at_most(shape, kMaxValues))
    fail("the Datum has the shape ", shape.brief(), ": it is damaged, or holds no sample");
  const bool bytes = !datum.data().empty();
  const int64_t held =
      bytes ? static_cast<int64_t>(datum.data().size()) : int64_t{datum.float_data_size()};
  if (held != shape.count()) {
    fail("the Datum is damaged: its shape ", shape.brief(), " asks for ", shape.count(),
         bytes ? " bytes" : " values", ", but it holds ", held);
  }
  if (bytes) {
    record.bytes = reinterpret_cast<const uint8_t*>(datum.data().data());
  } else {
    record.values = datum.float_data().data();
  }
}

}  // namespace crema
