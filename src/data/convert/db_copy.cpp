#include "data/convert/db_copy.h"

#include <algorithm>
#include <chrono>
#include <unordered_set>

#include "base/error.h"
#include "data/convert/parts.h"
#include "data/convert/progress.h"
#include "data/databases/class_names.h"
#include "data/databases/find_database.h"
#include "data/images/record.h"

namespace crema {
namespace {

using Sources = std::vector<std::shared_ptr<const Source>>;

// Record number i of all databases.
struct RecordPlace {
  const Source* source;
  int64_t index;
};

class JoinedSources {
 public:
  explicit JoinedSources(const Sources& sources) : sources_(sources) {
    for (const auto& source : sources) {
      begins_.push_back(size_);
      size_ += source->size();
    }
  }
  int64_t size() const { return size_; }
  RecordPlace place(int64_t index) const {
    const auto at = std::upper_bound(begins_.begin(), begins_.end(), index) - begins_.begin() - 1;
    return {sources_[static_cast<size_t>(at)].get(), index - begins_[static_cast<size_t>(at)]};
  }
  std::string key(int64_t index) const {
    const RecordPlace at = place(index);
    try {
      return at.source->key(at.index);
    } catch (const Error& problem) {
      fail(at.source->describe(at.index), ": ", problem.what());
    }
  }
  void read(int64_t index, google::protobuf::Message& record) const {
    const RecordPlace at = place(index);
    try {
      at.source->read(at.index, record);
      require(holds_sample(record), "it is no ", record.GetDescriptor()->name(),
              ", as the others are, or holds nothing");
    } catch (const Error& problem) {
      fail(at.source->describe(at.index), ": ", problem.what());
    }
  }
  // The first key that two databases have in common, or empty.
  std::string common_key() const {
    if (sources_.size() < 2) return "";
    std::unordered_set<std::string> keys;
    for (int64_t i = 0; i < size_; ++i) {
      std::string one = key(i);
      if (!keys.insert(one).second) return one;
    }
    return "";
  }

 private:
  const Sources& sources_;
  std::vector<int64_t> begins_;
  int64_t size_ = 0;
};

// Without the number that converters and copies begin keys with.
std::string bare(const std::string& key) {
  const size_t digits = std::min(key.find_first_not_of("0123456789"), key.size());
  return digits >= 8 && digits + 1 < key.size() && key[digits] == '_' ? key.substr(digits + 1)
                                                                      : key;
}

int label_of_record(const google::protobuf::Message& record) {
  if (const auto* sparse = dynamic_cast<const SparseDatum*>(&record)) return sparse->label();
  const Datum& datum = *datum_in(record);
  return datum.labels_size() > 0 ? 0 : datum.label();
}

// HDF5Data reads values, plane by plane.
void decode_to_planes(Datum& datum, Record& record) {
  if (!datum.encoded()) return;
  decode_image(datum.data(), Color::as_stored, record.image);
  const Image& image = record.image;
  const int64_t plane = image.height * image.width;
  std::string planes(static_cast<size_t>(plane * image.channels), '\0');
  for (int64_t i = 0; i < plane; ++i) {
    for (int64_t c = 0; c < image.channels; ++c) {
      planes[static_cast<size_t>(c * plane + i)] =
          static_cast<char>(image.pixels[static_cast<size_t>(i * image.channels + c)]);
    }
  }
  datum.set_data(std::move(planes));
  datum.set_encoded(false);
  datum.set_channels(static_cast<int>(image.channels));
  datum.set_height(static_cast<int>(image.height));
  datum.set_width(static_cast<int>(image.width));
}

// The names of any of the databases. Error if another one has different names.
std::vector<std::string> common_names(const Sources& from) {
  ClassNames common;
  for (const auto& source : from) {
    const ClassNames names = class_names_of_source(source->path());
    if (names.empty()) continue;
    require(common.empty() || names.names == common.names, names.path,
            ": names other classes than ", common.path,
            ", so the same number would mean two classes; convert both with one list of classes");
    if (common.empty()) common = names;
  }
  return common.names;
}

RecordKind common_kind(const Sources& from) {
  const RecordKind kind = kind_of_records(*from[0]);
  for (const auto& source : from) {
    const RecordKind other = kind_of_records(*source);
    require(other == kind, source->path(), ": its records are of type ",
            new_record(other)->GetDescriptor()->name(), ", but those of ", from[0]->path(),
            " of type ", new_record(kind)->GetDescriptor()->name(),
            "; a database has records of one type");
  }
  return kind;
}

}  // namespace

int64_t copy_records(const Sources& from, const std::string& to, bool shuffle,
                     const ConvertOptions& options, Log& log) {
  const RecordKind kind = common_kind(from);
  const JoinedSources joined(from);
  const std::unique_ptr<google::protobuf::Message> record = new_record(kind);
  std::vector<int> labels(static_cast<size_t>(joined.size()));
  if (options.split > 0) {
    for (int64_t i = 0; i < joined.size(); ++i) {
      joined.read(i, *record);
      labels[static_cast<size_t>(i)] = label_of_record(*record);
    }
  }
  const std::string common = joined.common_key();
  if (!common.empty()) {
    log.info(cat("The key \"", common,
                 "\" is in two of the databases: all keys get a number in front of them"));
  }
  const bool numbers = shuffle || options.split > 0 || !common.empty();
  ConvertOptions named = options;
  named.format.classes = common_names(from);
  Parts parts(to, labels, shuffle, named);
  Record decoded;
  Progress progress(joined.size());
  int64_t done = 0;
  const auto begin = std::chrono::steady_clock::now();
  parts.each_record([&](Parts::Part& part, int64_t i, int64_t index) {
    joined.read(index, *record);
    std::string key = joined.key(index);
    if (numbers) key = cat(numbered_key(i, 8), "_", bare(key));
    if (options.format.backend == DataParameter::HDF5 && kind == RecordKind::datum) {
      try {
        decode_to_planes(dynamic_cast<Datum&>(*record), decoded);
      } catch (const Error& problem) {
        const RecordPlace at = joined.place(index);
        fail(at.source->describe(at.index), ": ", problem.what());
      }
    }
    part.put(key, *record, labels[static_cast<size_t>(index)]);
    ++done;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    const std::string line = progress.line(seconds.count(), done, done);
    if (!line.empty()) log.info(line);
  });
  parts.finish(log);
  if (options.split == 0) log.info(cat("Wrote ", done, " records to ", to));
  return done;
}

}  // namespace crema
