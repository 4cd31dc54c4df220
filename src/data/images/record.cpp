#include "data/images/record.h"

#include "base/error.h"
#include "tensor/shape_limits.h"

namespace crema {

void show_image(Record& record) {
  record.channels = record.image.channels;
  record.height = record.image.height;
  record.width = record.image.width;
  show_pixels(record.image.pixels.data(), record);
}

void show_pixels(const uint8_t* pixels, Record& record) {
  record.bytes = pixels;
  record.values = nullptr;
  record.interleaved = true;
  record.part = {};
  record.shrink = 1;
}

void to_image(Record& record) {
  if (record.interleaved) {
    // A cache has it, and shows it to many (data/loader/image_cache.h).
    Image& image = record.image;
    if (record.bytes == image.pixels.data()) return;
    image.channels = record.channels;
    image.height = record.height;
    image.width = record.width;
    image.pixels.assign(record.bytes,
                        record.bytes + record.channels * record.height * record.width);
    return show_image(record);
  }
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

void decode_file(std::string_view file, Color color, const Need& need, Record& record) {
  if (!need) {
    decode_image(file, color, record.image);
    return show_image(record);
  }
  const ImageFound found = decode_needed(file, color, need, record.image);
  show_image(record);
  record.height = found.extents.height;
  record.width = found.extents.width;
  record.part = found.part;
  record.shrink = found.shrink;
}

void decode(Record& record, Color color, const Need& need) {
  const Datum& datum = record.datum;
  record.label = datum.label();
  if (datum.encoded()) return decode_file(datum.data(), color, need, record);
  record.shrink = 1;
  record.bytes = nullptr;
  record.values = nullptr;
  record.interleaved = false;
  record.channels = datum.channels();
  record.height = datum.height();
  record.width = datum.width();
  record.part = {};
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
