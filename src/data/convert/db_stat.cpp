#include "data/convert/db_stat.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "data/convert/in_order.h"
#include "data/databases/label_order.h"
#include "data/images/image_header.h"
#include "data/images/record.h"

namespace crema {
namespace {

constexpr size_t kWaitingFacts = 64 << 20;

struct RecordFacts {
  size_t bytes = 0;  // always 0: items need little memory
  std::string format;
  std::vector<int64_t> shape;
  int64_t label = 0, labels = 0, boxes = 0;
  std::vector<int64_t> box_classes;
  std::vector<DatabaseFacts::Channel> channels;
};

std::string format_of_file(std::string_view file) {
  const auto begins = [&](std::string_view bytes) { return file.substr(0, bytes.size()) == bytes; };
  if (begins("\xFF\xD8\xFF")) return "JPEG";
  if (begins("\x89PNG")) return "PNG";
  return "other image files";
}

std::vector<DatabaseFacts::Channel> channels_of(const Record& record) {
  std::vector<DatabaseFacts::Channel> channels(static_cast<size_t>(record.channels));
  const int64_t plane = record.height * record.width, step = record.interleaved ? 1 : plane;
  const int64_t next = record.interleaved ? record.channels : 1;
  for (int64_t c = 0; c < record.channels; ++c) {
    DatabaseFacts::Channel& channel = channels[static_cast<size_t>(c)];
    for (int64_t i = 0; i < plane; ++i) {
      const int64_t at = c * step + i * next;
      const double value =
          record.bytes ? double{static_cast<double>(record.bytes[at])} : double{record.values[at]};
      channel.sum += value;
      channel.squares += value * value;
    }
    channel.count = static_cast<double>(plane);
  }
  return channels;
}

void look_at(const google::protobuf::Message& message, bool values, RecordFacts& facts) {
  if (const auto* sparse = dynamic_cast<const SparseDatum*>(&message)) {
    facts.format = "sparse vectors";
    facts.shape = {sparse->size()};
    facts.label = sparse->label();
    return;
  }
  Record record;
  record.datum = *datum_in(message);
  const Datum& datum = record.datum;
  facts.label = datum.label();
  facts.labels = datum.labels_size();
  facts.format = datum.encoded()         ? format_of_file(datum.data())
                 : !datum.data().empty() ? "bytes"
                                         : "real numbers";
  const ImageHeader header =
      datum.encoded() ? read_image_header(datum.data()).value_or(ImageHeader{}) : ImageHeader{};
  if (values || !datum.encoded() || header.channels == 0) {
    decode(record, Color::as_stored);
    facts.shape = record.shape().dims();
    if (values) facts.channels = channels_of(record);
  } else {
    facts.shape = {header.channels, header.height, header.width};
  }
  const auto* annotated = dynamic_cast<const AnnotatedDatum*>(&message);
  if (!annotated) return;
  for (const AnnotationGroup& group : annotated->annotation_group()) {
    facts.boxes += group.annotation_size();
    facts.box_classes.insert(facts.box_classes.end(), group.annotation_size(), group.group_label());
  }
}

void add_channels(const std::vector<DatabaseFacts::Channel>& more, DatabaseFacts& facts) {
  if (facts.channels.empty()) facts.channels.resize(more.size());
  if (facts.channels.size() != more.size()) return;
  for (size_t c = 0; c < more.size(); ++c) {
    facts.channels[c].count += more[c].count;
    facts.channels[c].sum += more[c].sum;
    facts.channels[c].squares += more[c].squares;
  }
}

}  // namespace

double DatabaseFacts::Channel::deviation() const {
  return std::sqrt(std::max(0.0, squares / count - mean() * mean()));
}

DatabaseFacts facts_of_database(const Source& source, bool values, int threads) {
  DatabaseFacts facts;
  facts.kind = kind_of_records(source);
  facts.records = source.size();
  const auto look = [&](int64_t index, RecordFacts& found) {
    found = {};
    const std::unique_ptr<google::protobuf::Message> message = new_record(facts.kind);
    try {
      source.read(index, *message);
      look_at(*message, values, found);
    } catch (const Error& problem) {
      fail(source.describe(index), ": ", problem.what(), "; `crema db verify` lists all of these");
    }
  };
  InOrder<RecordFacts> records(facts.records, threads, kWaitingFacts, look);
  std::vector<int64_t> labels;
  for (int64_t index = 0; index < facts.records; ++index) {
    const RecordFacts& record = records.next();
    ++facts.formats[record.format];
    ++facts.shapes[record.shape];
    if (facts.kind == RecordKind::annotated) {
      ++facts.boxes_each[record.boxes];
      for (const int64_t label : record.box_classes) ++facts.box_classes[label];
    }
    if (record.labels > 0) {
      ++facts.labels_each[record.labels];
    } else {
      ++facts.classes[record.label];
      labels.push_back(record.label);
    }
    add_channels(record.channels, facts);
  }
  facts.sorted = facts.labels_each.empty() && sorted_by_class(labels);
  return facts;
}

}  // namespace crema
