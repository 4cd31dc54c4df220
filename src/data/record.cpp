#include "data/record.h"

#include "base/error.h"

namespace crema {

void decode(Record& record, Color color) {
  const Datum& datum = record.datum;
  record.label = datum.label();
  record.bytes = nullptr;
  record.values = nullptr;
  record.interleaved = datum.encoded();
  if (datum.encoded()) {
    decode_image(datum.data(), color, record.image);
    record.channels = record.image.channels;
    record.height = record.image.height;
    record.width = record.image.width;
    record.bytes = record.image.pixels.data();
    return;
  }
  record.channels = datum.channels();
  record.height = datum.height();
  record.width = datum.width();
  const auto plausible = [](int64_t extent) { return extent > 0 && extent <= (1 << 20); };
  require(plausible(record.channels) && plausible(record.height) && plausible(record.width),
          "the Datum has the shape ", record.shape().brief(),
          ": it is damaged, or holds no sample");
  const int64_t count = record.shape().count();
  if (!datum.data().empty()) {
    require(static_cast<int64_t>(datum.data().size()) == count, "the Datum is damaged: its shape ",
            record.shape().brief(), " asks for ", count, " bytes, but it holds ",
            datum.data().size());
    record.bytes = reinterpret_cast<const uint8_t*>(datum.data().data());
  } else {
    require(datum.float_data_size() == count, "the Datum is damaged: its shape ",
            record.shape().brief(), " asks for ", count, " values, but it holds ",
            datum.float_data_size());
    record.values = datum.float_data().data();
  }
}

}  // namespace crema
