#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "data/databases/find_database.h"
#include "data/images/record.h"
#include "tools/db/peek_batch.h"

namespace crema {
namespace {

struct PeekedRecord {
  std::vector<float> planes;
  int64_t channels = 0, height = 0, width = 0;
  bool real = false;
  SheetCell cell;
};

void take_planes(const Record& record, PeekedRecord& peeked) {
  peeked.channels = record.channels;
  peeked.height = record.height;
  peeked.width = record.width;
  peeked.real = record.bytes == nullptr;
  const int64_t plane = record.height * record.width;
  peeked.planes.resize(static_cast<size_t>(plane * record.channels));
  for (int64_t c = 0; c < record.channels; ++c) {
    for (int64_t i = 0; i < plane; ++i) {
      const int64_t at = record.interleaved ? i * record.channels + c : c * plane + i;
      peeked.planes[static_cast<size_t>(c * plane + i)] =
          record.bytes ? static_cast<float>(record.bytes[at]) : record.values[at];
    }
  }
}

std::vector<SheetBox> boxes_in(const AnnotatedDatum& record, const ClassNames& names) {
  std::vector<SheetBox> boxes;
  for (const AnnotationGroup& group : record.annotation_group()) {
    for (const Annotation& one : group.annotation()) {
      const NormalizedBBox& box = one.bbox();
      boxes.push_back({box.xmin(), box.ymin(), box.xmax(), box.ymax(), group.group_label(),
                       class_text(group.group_label(), names)});
    }
  }
  return boxes;
}

PeekedRecord peek_record(const Source& source, int64_t index, google::protobuf::Message& message,
                         const ClassNames& names) {
  PeekedRecord peeked;
  try {
    source.read(index, message);
    const Datum* const datum = datum_in(message);
    require(datum != nullptr, "a sparse vector is not a picture");
    Record record;
    record.datum = *datum;
    decode(record, Color::as_stored);
    take_planes(record, peeked);
    if (const auto* annotated = dynamic_cast<const AnnotatedDatum*>(&message))
      peeked.cell.boxes = boxes_in(*annotated, names);
    std::string& caption = peeked.cell.picture.caption;
    if (datum->labels_size() > 0) {
      for (const float label : datum->labels()) caption += cat(caption.empty() ? "" : " ", label);
    } else if (datum->has_label() && peeked.cell.boxes.empty()) {
      caption = class_text(datum->label(), names);
    }
  } catch (const Error& problem) {
    fail(source.describe(index), ": ", problem.what());
  }
  return peeked;
}

}  // namespace

Picture picture_of_planes(const float* values, int64_t channels, int64_t height, int64_t width,
                          float low, float high, bool red_first) {
  const bool colors = (channels == 3 || channels == 4) && height * width > 1;
  const int64_t beside = colors ? 1 : channels;  // pictures side by side
  Picture picture;
  picture.channels = colors ? 3 : 1;
  picture.height = static_cast<int>(height);
  picture.width = static_cast<int>(width * beside);
  const float factor = high > low ? 255 / (high - low) : 0;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width * beside; ++x) {
      for (int64_t c = 0; c < picture.channels; ++c) {
        const int64_t channel = !colors ? x / width : red_first ? c : 2 - c;
        const float value = values[(channel * height + y) * width + x % width];
        const float shade = (value - low) * factor;
        picture.bytes.push_back(  // NaN is black
            shade > 0 ? static_cast<uint8_t>(std::lround(std::min(shade, 255.0f))) : uint8_t{0});
      }
    }
  }
  return picture;
}

std::vector<SheetCell> peek_records(const std::string& database, const PeekOptions& options) {
  const FoundDatabase found = find_database(database);
  const std::unique_ptr<google::protobuf::Message> message =
      new_record(kind_of_records(*found.source));
  const ClassNames names = options.names.empty() ? class_names_of_source(database) : options.names;
  std::vector<PeekedRecord> records;
  float least = 0, largest = 255;
  for (int64_t i = 0; i < options.count && found.source->record_index(i).epoch == 0; ++i) {
    records.push_back(peek_record(*found.source, i, *message, names));
    if (!records.back().real) continue;
    const auto& planes = records.back().planes;
    const auto [low, high] = std::minmax_element(planes.begin(), planes.end());
    least = i == 0 ? *low : std::min(least, *low);
    largest = i == 0 ? *high : std::max(largest, *high);
  }
  std::vector<SheetCell> cells;
  for (PeekedRecord& record : records) {
    const std::string caption = record.cell.picture.caption;
    record.cell.picture =
        picture_of_planes(record.planes.data(), record.channels, record.height, record.width,
                          record.real ? least : 0, record.real ? largest : 255, options.red_first);
    record.cell.picture.caption = caption;
    cells.push_back(std::move(record.cell));
  }
  return cells;
}

}  // namespace crema
