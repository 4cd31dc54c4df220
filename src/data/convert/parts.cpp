#include "data/convert/parts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/files.h"
#include "data/loader/permutation.h"

namespace crema {
namespace {

// Streams of random numbers: of the order of a list, of the two parts, and of each class.
enum Stream : uint64_t { kList = 0, kTraining = 2, kValidation = 3, kClasses = 4 };

void shuffle(std::vector<int64_t>& records, Random random) {
  const std::vector<int64_t> before = records;
  const Permutation order(static_cast<int64_t>(records.size()), random);
  for (size_t i = 0; i < records.size(); ++i)
    records[i] = before[static_cast<size_t>(order(static_cast<int64_t>(i)))];
}

// How many of `count` records are for training.
int64_t training_records(int64_t count, double split) {
  const bool share = split < 1;
  require(split > 0 && std::isfinite(split) && (share || split == std::floor(split)), "-split ",
          split,
          ": expected a fraction below 1, such as 0.9, or a number of records, such as 45000");
  const double wanted = share ? std::round(split * static_cast<double>(count)) : split;
  if (wanted < 1 || wanted > static_cast<double>(count - 1)) {
    fail("-split ", split, " of ", count, " records leaves ", wanted < 1 ? "none" : "all",
         " for training; both parts need at least one");
  }
  return static_cast<int64_t>(wanted);
}

// Each class's number of training records: its exact share rounded down, and one more for those of
// the largest remainders.
std::map<int, int64_t> shares_of(const std::map<int, std::vector<int64_t>>& classes, int64_t count,
                                 int64_t training) {
  std::map<int, int64_t> shares;
  std::vector<std::pair<int64_t, int>> remainders;  // negative, so that the largest come first
  int64_t missing = training;
  for (const auto& [label, records] : classes) {
    const int64_t product = static_cast<int64_t>(records.size()) * training;
    shares[label] = product / count;
    missing -= product / count;
    remainders.emplace_back(-(product % count), label);
  }
  std::sort(remainders.begin(), remainders.end());
  for (int64_t i = 0; i < missing; ++i) ++shares[remainders[static_cast<size_t>(i)].second];
  return shares;
}

std::string range(const std::vector<int64_t>& numbers) {
  const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
  return *least == *most ? cat(*least) : cat(*least, " to ", *most);
}

}  // namespace

Split split_by_class(const std::vector<int>& labels, double split, uint64_t seed) {
  const auto count = static_cast<int64_t>(labels.size());
  const int64_t training = training_records(count, split);
  std::map<int, std::vector<int64_t>> classes;
  for (int64_t i = 0; i < count; ++i) classes[labels[static_cast<size_t>(i)]].push_back(i);
  const std::map<int, int64_t> shares = shares_of(classes, count, training);
  Split parts;
  for (auto& [label, records] : classes) {
    shuffle(records, {seed, mix(kClasses, static_cast<uint64_t>(label))});
    const auto middle = records.begin() + shares.at(label);
    parts.training.insert(parts.training.end(), records.begin(), middle);
    parts.validation.insert(parts.validation.end(), middle, records.end());
  }
  shuffle(parts.training, {seed, kTraining});
  shuffle(parts.validation, {seed, kValidation});
  return parts;
}

std::pair<std::string, std::string> split_paths(const std::string& path) {
  std::string name = path, ending;
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  for (const std::string kind : {"_lmdb", "_leveldb", "_hdf5"}) {
    if (!ends_with(name, kind)) continue;
    ending = kind;
    name.resize(name.size() - kind.size());
    break;
  }
  const std::string last = name.substr(name.rfind('/') + 1), train = "train";
  const bool named = last == train || ends_with(last, "_train") || ends_with(last, "-train");
  const std::string start = named ? name.substr(0, name.size() - train.size()) : name + "_";
  return {start + "train" + ending, start + "val" + ending};
}

void Parts::Part::put(const std::string& key, const google::protobuf::Message& record, int label) {
  writer->put(key, record);
  ++classes[label];
}

Parts::Parts(const std::string& path, const std::vector<int>& labels, bool shuffled,
             const ConvertOptions& options) {
  const auto add = [&](const std::string& at, std::vector<int64_t> records) {
    require(options.format.overwrite || !file_exists(at), at,
            ": exists already; -overwrite replaces it, or choose another name");
    parts_.push_back({at, std::move(records), nullptr});
  };
  if (options.split == 0) {
    std::vector<int64_t> records(labels.size());
    std::iota(records.begin(), records.end(), 0);
    if (shuffled) shuffle(records, {options.seed, kList});
    add(path, std::move(records));
  } else {
    Split split = split_by_class(labels, options.split, options.seed);
    const auto [training, validation] = split_paths(path);
    add(training, std::move(split.training));
    add(validation, std::move(split.validation));
  }
  for (Part& part : parts_) part.writer = create_database(part.path, options.format);
}

int64_t Parts::turns() const {
  size_t count = 0;
  for (const Part& part : parts_) count += part.records.size();
  return static_cast<int64_t>(count);
}

Parts::Turn Parts::turn(int64_t number) {
  size_t at = 0;
  auto i = static_cast<size_t>(number);
  while (i >= parts_[at].records.size()) i -= parts_[at++].records.size();
  return {&parts_[at], static_cast<int64_t>(i), parts_[at].records[i]};
}

void Parts::each_record(const std::function<void(Part& part, int64_t i, int64_t index)>& use) {
  for (int64_t number = 0; number < turns(); ++number) {
    const Turn now = turn(number);
    use(*now.part, now.i, now.index);
  }
}

void Parts::complete() {
  for (const Part& part : parts_) {
    require(part.writer->count() > 0 || part.records.empty(), part.path, ": not one of its ",
            part.records.size(), " records could be made");
    part.writer->complete();
  }
}

void Parts::finish(Log& log) {
  complete();
  for (const Part& part : parts_) part.writer->finish();
  if (parts_.size() > 1) log_classes(log);
}

void Parts::log_classes(Log& log) const {
  const Part &training = parts_[0], &validation = parts_[1];
  std::map<int, std::pair<int64_t, int64_t>> classes;
  for (const auto& [label, count] : training.classes) classes[label].first = count;
  for (const auto& [label, count] : validation.classes) classes[label].second = count;
  for (const Part& part : parts_)
    log.info(cat("Wrote ", part.writer->count(), " records to ", part.path));
  constexpr size_t kListed = 20;
  std::vector<int64_t> firsts, seconds;
  for (const auto& [label, counts] : classes) {
    firsts.push_back(counts.first);
    seconds.push_back(counts.second);
    if (classes.size() <= kListed) {
      log.info(cat("Class ", label, ": ", counts.first, " for training, ", counts.second,
                   " for validation"));
    }
  }
  if (classes.size() > kListed) {
    log.info(cat(classes.size(), " classes, each with ", range(firsts), " for training, ",
                 range(seconds), " for validation"));
  }
  const int64_t without = std::count(firsts.begin(), firsts.end(), 0),
                untested = std::count(seconds.begin(), seconds.end(), 0);
  const auto warn = [&](int64_t number, const char* part) {
    if (number == 0) return;
    log.warning(cat(number, number == 1 ? " class has" : " classes have", " no record for ", part));
  };
  warn(without, "training");
  warn(untested, "validation");
}

}  // namespace crema
