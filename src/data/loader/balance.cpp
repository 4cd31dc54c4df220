#include "data/loader/balance.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "data/loader/on_threads.h"
#include "data/loader/permutation.h"

namespace crema {

Balance::Balance(const std::vector<int64_t>& classes, Random random) : random_(random) {
  std::map<int64_t, int64_t> counts;
  for (const int64_t label : classes) ++counts[label];
  std::map<int64_t, int64_t> next;
  begins_.push_back(0);
  for (const auto& [label, count] : counts) {
    next[label] = begins_.back();
    begins_.push_back(begins_.back() + count);
  }
  records_.resize(classes.size());
  for (size_t i = 0; i < classes.size(); ++i)
    records_[static_cast<size_t>(next[classes[i]]++)] = static_cast<int64_t>(i);
}

std::unique_ptr<Balance> Balance::of(const Dataset& samples, Random random) {
  constexpr int64_t kPiece = 64;
  std::vector<int64_t> classes(static_cast<size_t>(samples.size()));
  on_threads(samples.size(), kPiece, [&](int64_t record) {
    SampleIndex where;
    where.record_index.index = record;
    std::optional<int64_t> label;
    try {
      label = samples.class_of(record);
    } catch (const Error& problem) {
      fail(samples.describe(where), ": ", problem.what());
    }
    if (!label) {
      fail(samples.describe(where),
           ": has no one class, but several labels or a real number; `balance` draws classes "
           "equally "
           "often, so each record needs one whole number as label");
    }
    classes[static_cast<size_t>(record)] = *label;
  });
  return std::make_unique<Balance>(classes, random);
}

Balance::Place Balance::at(int64_t position) const {
  const int64_t round = position / classes();
  const Random of_round{random_.seed, mix(random_.stream, static_cast<uint64_t>(round))};
  const int64_t label = Permutation(classes(), of_round)(position % classes());
  const int64_t begin = begins_[static_cast<size_t>(label)],
                count = begins_[static_cast<size_t>(label) + 1] - begin;
  Place place{};
  place.turn = round / count;
  const Random of_turn{random_.seed, mix(mix(random_.stream, ~static_cast<uint64_t>(label)),
                                         static_cast<uint64_t>(place.turn))};
  const int64_t in_class = Permutation(count, of_turn)(round % count);
  place.record = records_[static_cast<size_t>(begin + in_class)];
  return place;
}

std::string Balance::describe() const {
  int64_t least = INT64_MAX, most = 0;
  for (size_t i = 1; i < begins_.size(); ++i) {
    least = std::min(least, begins_[i] - begins_[i - 1]);
    most = std::max(most, begins_[i] - begins_[i - 1]);
  }
  return cat(classes(), classes() == 1 ? " class of " : " classes of ", least,
             least == most ? "" : cat(" to ", most), " records each");
}

std::optional<int64_t> class_of_label(float label) {
  constexpr float kExact = 1 << 24;
  if (label != std::floor(label) || std::abs(label) > kExact) return {};
  return static_cast<int64_t>(label);
}

}  // namespace crema
