// `crema db stat DB`: shows what is in a database.
#include "data/convert/db_stat.h"

#include <algorithm>
#include <iostream>

#include "base/visible.h"
#include "data/databases/class_names.h"
#include "tools/db/db.h"

namespace crema {
namespace {

constexpr size_t kRows = 50;  // of a histogram

std::string counted(int64_t count, const std::string& one) {
  return cat(count, " ", one, count == 1 ? "" : "s");
}

std::string right(const std::string& text, size_t width) {
  return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
}

// A row and a bar for each; of many the most frequent.
void print_bars(std::vector<std::pair<std::string, int64_t>> rows) {
  constexpr int64_t kWidth = 50;
  const size_t all = rows.size();
  if (all > kRows) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto& one, const auto& other) { return one.second > other.second; });
  }
  int64_t most = 0, left_most = 0, left_least = INT64_MAX;
  size_t name_width = 0, count_width = 0;
  for (size_t i = 0; i < all; ++i) {
    most = std::max(most, rows[i].second);
    if (i >= kRows) {
      left_most = std::max(left_most, rows[i].second);
      left_least = std::min(left_least, rows[i].second);
      continue;
    }
    name_width = std::max(name_width, rows[i].first.size());
    count_width = std::max(count_width, cat(rows[i].second).size());
  }
  for (size_t i = 0; i < std::min(all, kRows); ++i) {
    const auto& [name, count] = rows[i];
    const int64_t bar = (count * kWidth + most - 1) / most;
    std::cout << "  " << right(name, name_width) << "  " << right(cat(count), count_width) << "  "
              << std::string(static_cast<size_t>(bar), '#') << "\n";
  }
  if (all > kRows) {
    std::cout << "  and " << all - kRows << " more, with " << left_least << " to " << left_most
              << " each\n";
  }
}

void print_numbers(const std::map<int64_t, int64_t>& counts, const ClassNames& names = {}) {
  std::vector<std::pair<std::string, int64_t>> rows;
  for (const auto& [number, count] : counts) {
    rows.emplace_back(
        names.empty() ? cat(number) : cat(visible(class_text(number, names)), " ", number), count);
  }
  print_bars(std::move(rows));
}

void print_shapes(const DatabaseFacts& facts) {
  const auto text = [](const std::vector<int64_t>& shape) { return Shape(shape).brief(); };
  if (facts.shapes.size() == 1) {
    std::cout << "shape: " << text(facts.shapes.begin()->first) << ", of all\n";
    return;
  }
  std::cout << "shapes: " << facts.shapes.size() << " different ones";
  std::vector<std::vector<int64_t>> extents(3);
  for (const auto& [shape, count] : facts.shapes) {
    for (size_t axis = 0; axis < shape.size(); ++axis) extents[axis].push_back(shape[axis]);
  }
  const char* const names[] = {"channels", "height", "width"};
  for (size_t axis = 0; axis < 3 && !extents[1].empty(); ++axis) {
    const auto [least, most] = std::minmax_element(extents[axis].begin(), extents[axis].end());
    std::cout << ", " << names[axis] << " " << *least;
    if (*least != *most) std::cout << " to " << *most;
  }
  std::cout << "\n";
  std::vector<std::pair<std::string, int64_t>> rows;
  for (const auto& [shape, count] : facts.shapes) rows.emplace_back(text(shape), count);
  print_bars(std::move(rows));
}

// "labels: 10 classes, from 0 to 9, without 3, 7"
void print_classes(const char* what, const std::map<int64_t, int64_t>& classes,
                   const ClassNames& names) {
  if (classes.empty()) return;
  const int64_t first = classes.begin()->first, last = classes.rbegin()->first;
  std::cout << what << ": " << classes.size() << (classes.size() == 1 ? " class" : " classes");
  std::cout << (classes.size() == 1 ? cat(", ", first) : cat(", from ", first, " to ", last));
  std::vector<std::string> missing;
  constexpr size_t kNamed = 10;
  for (int64_t label = std::max<int64_t>(0, first); label < last && missing.size() <= kNamed;
       ++label) {
    if (!classes.count(label)) missing.push_back(cat(label));
  }
  if (!missing.empty() && missing.size() <= kNamed)
    std::cout << ", without " << join(missing, ", ");
  std::cout << "\n";
  print_numbers(classes, names);
}

void print_channels(const DatabaseFacts& facts) {
  for (size_t c = 0; c < facts.channels.size(); ++c) {
    const DatabaseFacts::Channel& channel = facts.channels[c];
    std::cout << "channel " << c << ": mean " << channel.mean() << ", standard deviation "
              << channel.deviation() << "\n";
  }
}

}  // namespace

int run_db_stat(const VerbCall& call, const DbStatFlags& flags) {
  const FoundDatabase database = find_database(call.arguments[0]);
  const DatabaseFacts facts =
      facts_of_database(*database.source, flags.channel_mean, threads_for(flags.threads));
  std::cout << call.arguments[0] << ": " << title_of(database.backend) << ", "
            << counted(facts.records, "record") << ", "
            << size_text(static_cast<size_t>(database.bytes)) << "\n";
  std::vector<std::string> formats;
  for (const auto& [format, count] : facts.formats)
    formats.push_back(facts.formats.size() == 1 ? format : cat(count, " ", format));
  std::cout << "type: " << new_record(facts.kind)->GetDescriptor()->name() << ", stored as "
            << join(formats, ", ") << "\n";
  print_shapes(facts);
  const ClassNames names = class_names_of_source(call.arguments[0]);
  if (facts.kind != RecordKind::annotated) print_classes("labels", facts.classes, names);
  if (!facts.labels_each.empty()) {
    std::cout << "several labels, or real ones: how many a record has\n";
    print_numbers(facts.labels_each);
  }
  print_classes("boxes", facts.box_classes, names);
  if (!facts.boxes_each.empty()) {
    std::cout << "boxes of a record\n";
    print_numbers(facts.boxes_each);
  }
  print_channels(facts);
  if (facts.sorted) {
    call.log.warning(
        cat(call.arguments[0], ": the records are sorted by their label, from ",
            facts.classes.begin()->first, " to ", facts.classes.rbegin()->first,
            ": without shuffling, a batch has only one or two classes; write data_param { shuffle: "
            "true }, or shuffle the database: crema db shuffle"));
  }
  return 0;
}

}  // namespace crema
