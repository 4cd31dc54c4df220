#include "net/check/source_facts.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "data/databases/source.h"
#include "data/databases/tar/tar_shards.h"
#include "data/images/record.h"

namespace crema {
namespace {

constexpr int64_t kRecords = 1000;  // of a database, spread over it
constexpr int64_t kFirst = 5000;    // of a LevelDB, whose size is not known ahead
constexpr int64_t kNames = 100;
constexpr int64_t kLines = 200000;      // of a list
constexpr int64_t kBytes = 32 << 20;    // of records, as images of some databases are large
constexpr int64_t kValues = 4'000'000;  // of the records whose values are looked at

void add_value(SourceFacts::Channel* channel, double value) {
  ++channel->count;
  channel->sum += value;
  channel->squares += value * value;
}

// The pixels of an encoded image; returns how many values there are.
int64_t add_pixels(const Datum& datum, std::vector<SourceFacts::Channel>* channels) {
  Record record;
  record.datum = datum;
  decode(record, Color::as_stored);
  if (!record.bytes || !record.interleaved || record.part.height > 0) return 0;
  if (channels->empty()) channels->resize(record.channels);
  if (static_cast<int64_t>(channels->size()) != record.channels) return 0;
  const int64_t size = record.channels * record.height * record.width;
  for (int64_t i = 0; i < size; ++i) add_value(&(*channels)[i % record.channels], record.bytes[i]);
  return size;
}

int64_t add_values(const Datum& datum, std::vector<SourceFacts::Channel>* channels) {
  if (datum.encoded()) return add_pixels(datum, channels);
  if (datum.channels() <= 0) return 0;
  const bool bytes = !datum.data().empty();
  const auto size = bytes ? static_cast<int64_t>(datum.data().size()) : datum.float_data_size();
  const int64_t plane = size / datum.channels();
  if (plane == 0) return 0;
  if (channels->empty()) channels->resize(datum.channels());
  if (static_cast<int>(channels->size()) != datum.channels()) return 0;
  for (int64_t i = 0; i < plane * datum.channels(); ++i) {
    add_value(&(*channels)[i / plane], bytes ? static_cast<unsigned char>(datum.data()[i])
                                             : datum.float_data(static_cast<int>(i)));
  }
  return size;
}

void read_names(const Source& source, SourceFacts* facts) {
  for (int64_t i = 0; i < kNames; ++i) {
    const RecordIndex at = source.record_index(i);
    if (at.epoch > 0) break;
    facts->names.push_back(source.key(at.index));
  }
}

void read_database(const Source& source, bool counts, bool labelled, SourceFacts* facts) {
  facts->records = counts ? source.size() : 0;
  const int64_t most = counts ? std::min(source.size(), kRecords) : kFirst;
  int64_t bytes = 0, values = 0, read = 0;
  bool whole = false;
  for (; read < most && bytes < kBytes; ++read) {
    const RecordIndex at = source.record_index(counts ? read * source.size() / most : read);
    if (at.epoch > 0) {
      facts->records = read;
      whole = true;
      break;
    }
    Datum datum;
    try {
      source.read(at.index, datum);
    } catch (const Error& error) {
      fail(source.describe(at.index), ": ", error.what());
    }
    bytes += static_cast<int64_t>(datum.ByteSizeLong());
    facts->spatial = datum.encoded() || datum.height() > 1 || datum.width() > 1;
    if (labelled && datum.labels_size() == 0) facts->labels.push_back(datum.label());
    if (values >= kValues) continue;
    values += add_values(datum, &facts->values);
  }
  // A part of a spread sample is still in order, but ends early.
  facts->all_labels = labelled && (whole || (counts && read == source.size()));
}

void add_objects(const AnnotatedDatum& record, const std::string& where,
                 SourceFacts::Objects* objects) {
  for (const AnnotationGroup& group : record.annotation_group()) {
    for (const Annotation& annotation : group.annotation()) {
      const NormalizedBBox& box = annotation.bbox();
      ++objects->count;
      objects->labels.emplace(group.group_label(), where);
      // NaN is in no image.
      const bool inside = box.xmin() < 1 && box.ymin() < 1 && box.xmax() > 0 && box.ymax() > 0 &&
                          box.xmin() < box.xmax() && box.ymin() < box.ymax();
      if (inside) continue;
      if (objects->outside++ == 0) objects->first_outside = where;
    }
  }
}

void read_annotated(const Source& source, bool counts, SourceFacts* facts) {
  facts->records = counts ? source.size() : 0;
  const int64_t most = counts ? std::min(source.size(), kRecords) : kRecords;
  int64_t bytes = 0;
  for (int64_t read = 0; read < most && bytes < kBytes; ++read) {
    const RecordIndex at = source.record_index(counts ? read * source.size() / most : read);
    if (at.epoch > 0) {
      facts->records = read;
      break;
    }
    AnnotatedDatum record;
    try {
      source.read(at.index, record);
    } catch (const Error& error) {
      fail(source.describe(at.index), ": ", error.what());
    }
    bytes += static_cast<int64_t>(record.ByteSizeLong());
    add_objects(record, source.describe(at.index), &facts->objects);
  }
}

// "PATH LABEL" in each line.
void read_list(const std::string& path, SourceFacts* facts) {
  require(file_exists(path), path, ": there is no such list of images");
  std::ifstream file(path);
  std::string line;
  int64_t lines = 0;
  for (; lines < kLines && std::getline(file, line); ++lines) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    const size_t space = line.find_last_of(" \t");
    char* end = nullptr;
    const long label =
        std::strtol(line.c_str() + (space == std::string::npos ? 0 : space + 1), &end, 10);
    if (space == std::string::npos || *end != 0) break;  // the layer reports the error
    facts->labels.push_back(label);
    if (lines < kNames) facts->names.push_back(line.substr(0, space));
  }
  facts->all_labels = file.eof();
  if (facts->all_labels) facts->records = lines;
}

}  // namespace

std::optional<SourceFacts> facts_of(const LayerParameter& layer, const std::string& folder) {
  SourceFacts facts;
  const bool labelled = layer.top_size() > 1;
  if (layer.type() == "Data" || layer.type() == "AnnotatedData") {
    const DataParameter& data = layer.data_param();
    facts.batch = data.batch_size();
    facts.shuffles = data.shuffle() || data.balance();
    const auto source = open_database(find_source(data.source(), folder), data.backend());
    const bool counts = data.backend() != DataParameter::LEVELDB;
    read_names(*source, &facts);
    if (layer.type() == "Data") {
      read_database(*source, counts, labelled, &facts);
    } else {
      read_annotated(*source, counts, &facts);
    }
    return facts;
  }
  if (layer.type() != "ImageData") return std::nullopt;
  const ImageDataParameter& images = layer.image_data_param();
  facts.batch = images.batch_size();
  facts.shuffles = images.shuffle() || images.balance() || images.balance_class();
  read_list(find_file(images.source(), folder), &facts);
  return facts;
}

}  // namespace crema
