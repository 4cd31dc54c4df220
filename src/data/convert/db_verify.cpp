#include "data/convert/db_verify.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/sha256.h"
#include "base/visible.h"
#include "data/convert/in_order.h"
#include "data/databases/find_database.h"
#include "data/images/record.h"

namespace crema {
namespace {

constexpr size_t kWaitingRecords = 64 << 20;
constexpr int64_t kSaid = 100;  // lines about one kind of problem

struct VerifiedRecord {
  size_t bytes = 0;
  std::string problem, key;
  Sha256::Digest whole{}, content{}, label{};
};

// Hash of a picture or values: the first half of a SHA-256 is enough to tell them apart.
struct Print {
  uint64_t content[2], label;
  int64_t index;
};

Print print_of(const VerifiedRecord& record, int64_t index) {
  Print print{};
  std::memcpy(print.content, record.content.data(), sizeof(print.content));
  std::memcpy(&print.label, record.label.data(), sizeof(print.label));
  print.index = index;
  return print;
}

bool same_content(const Print& one, const Print& other) {
  return std::equal(one.content, one.content + 2, other.content);
}

// The part of a record that the net reads as data, without labels.
std::string content_of(const google::protobuf::Message& record) {
  if (const auto* sparse = dynamic_cast<const SparseDatum*>(&record)) {
    SparseDatum copy = *sparse;
    copy.clear_label();
    return copy.SerializeAsString();
  }
  const Datum& datum = *datum_in(record);
  Datum copy;
  copy.set_channels(datum.channels());
  copy.set_height(datum.height());
  copy.set_width(datum.width());
  copy.set_data(datum.data());
  *copy.mutable_float_data() = datum.float_data();
  return copy.SerializeAsString();
}

std::string label_text(const google::protobuf::Message& record) {
  if (const auto* sparse = dynamic_cast<const SparseDatum*>(&record)) return cat(sparse->label());
  const Datum& datum = *datum_in(record);
  std::string text = cat(datum.label());
  for (const float label : datum.labels()) text += cat(' ', label);
  const auto* annotated = dynamic_cast<const AnnotatedDatum*>(&record);
  if (!annotated) return text;
  for (const AnnotationGroup& group : annotated->annotation_group())
    text += group.SerializeAsString();
  return text;
}

void decode_all(const google::protobuf::Message& message) {
  if (const auto* sparse = dynamic_cast<const SparseDatum*>(&message)) {
    require(sparse->data_size() == sparse->indices_size(), "it has ", sparse->data_size(),
            " values, but ", sparse->indices_size(), " places for them");
    for (const int index : sparse->indices()) {
      require(index >= 0 && index < sparse->size(), "it has a value at place ", index,
              ", but its length is ", sparse->size());
    }
    return;
  }
  Record record;
  record.datum = *datum_in(message);
  if (record.datum.encoded()) {
    // Stricter than a net, which accepts what a damaged JPEG still gives.
    decode_image(record.datum.data(), Color::as_stored, Decoding(), record.image);
  } else {
    decode(record, Color::as_stored);
  }
}

// As many warnings as there are repeated records, up to a hundred.
void find_repeated(const Source& source, std::vector<Print> prints, Verified& found, Log& log) {
  std::sort(prints.begin(), prints.end(), [](const Print& one, const Print& other) {
    if (!same_content(one, other))
      return std::lexicographical_compare(one.content, one.content + 2, other.content,
                                          other.content + 2);
    return one.index < other.index;
  });
  std::vector<std::pair<int64_t, std::pair<int64_t, bool>>> pairs;  // later, first, contradicts
  size_t first = 0;
  for (size_t i = 1; i < prints.size(); ++i) {
    if (!same_content(prints[first], prints[i])) {
      first = i;
      continue;
    }
    const bool contradicts = prints[first].label != prints[i].label;
    pairs.push_back({prints[i].index, {prints[first].index, contradicts}});
    found.contradicting += contradicts;
  }
  found.repeated = static_cast<int64_t>(pairs.size());
  std::sort(pairs.begin(), pairs.end());
  for (size_t i = 0; i < pairs.size() && i < kSaid; ++i) {
    const auto& [later, earlier] = pairs[i];
    log.warning(cat(source.describe(later), ": repeats record ", earlier.first, " (key \"",
                    source.key(earlier.first), "\")",
                    earlier.second ? ", but with another label" : ""));
  }
}

}  // namespace

Verified verify_database(const Source& source, int threads, Log& log) {
  const RecordKind kind = kind_of_records(source);
  Verified found;
  found.records = source.size();
  const auto verify = [&](int64_t index, VerifiedRecord& record) {
    record = {};
    try {
      record.key = source.key(index);
      const std::unique_ptr<google::protobuf::Message> message = new_record(kind);
      source.read(index, *message);
      require(holds_sample(*message), "it is no ", message->GetDescriptor()->name(),
              ", as the others are, or holds nothing");
      decode_all(*message);
      record.whole = sha256(message->SerializeAsString());
      record.content = sha256(content_of(*message));
      record.label = sha256(label_text(*message));
    } catch (const Error& problem) {
      record.problem = problem.what();
    }
  };
  InOrder<VerifiedRecord> records(found.records, threads, kWaitingRecords, verify);
  std::vector<Print> prints;
  Sha256 all;
  auto said = std::chrono::steady_clock::now();
  for (int64_t index = 0; index < found.records; ++index) {
    const VerifiedRecord& record = records.next();
    if (record.problem.empty()) {
      prints.push_back(print_of(record, index));
      all.add(cat(hexadecimal(record.whole), "  ", record.key, "\n"));
    } else if (++found.damaged <= kSaid) {
      log.error(cat(source.describe(index), ": ", record.problem));
    }
    const auto now = std::chrono::steady_clock::now();
    if (now - said < std::chrono::seconds(5)) continue;
    said = now;
    log.info(cat("Verified ", index + 1, " of ", found.records, " records"));
  }
  if (found.damaged == 0) found.checksum = hexadecimal(all.digest());
  find_repeated(source, std::move(prints), found, log);
  return found;
}

}  // namespace crema
