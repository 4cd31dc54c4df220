// A table of numbers whose label column has classes, or values to predict.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "data/convert/convert.h"
#include "data/convert/table.h"
#include "data/databases/class_names.h"
#include "tools/project/net_edits.h"
#include "tools/project/table_words.h"
#include "tools/project/tasks.h"

namespace crema {

namespace {

// More different labels than this are values, not classes, unless they are names.
constexpr size_t most_classes = 100;
constexpr size_t shown_labels = 20;

std::string label_column(const NewOptions& options) {
  if (!options.label.empty()) return options.label;
  constexpr std::array<const char*, 6> usual = {"label",   "class",    "target",
                                                "species", "category", "y"};
  const std::string text = read_text(options.data);
  const std::string first = text.substr(0, text.find_first_of("\r\n"));
  const char separator = first.find(';') != first.npos    ? ';'
                         : first.find('\t') != first.npos ? '\t'
                                                          : ',';
  for (const std::string& cell : split(first, separator)) {
    std::string name(trim(cell));
    if (name.size() > 1 && name.front() == '"' && name.back() == '"')
      name = name.substr(1, name.size() - 2);
    for (const char* known : usual) {
      if (lower_case(name) == known) return name;
    }
  }
  return "-1";
}

// One message about all cells that are no numbers, as each reading finds the first one only.
Table read_numbers(const std::string& path, const std::string& label) {
  try {
    return read_table(path, {label});
  } catch (const Error& error) {
    const std::string all = words_in_table(path, label);
    if (all.empty()) throw;
    fail(error.what(), "; the whole table has ", all);
  }
}

class TableTask : public Task {
 public:
  TableTask(const NewOptions& options, Log&)
      : options_(options),
        label_(label_column(options)),
        table_(read_numbers(options.data, label_)) {
    require(table_.rows > 1, options.data,
            ": has one row only; a net needs some to learn from and some to test");
    require(table_.width() > 0, options.data, ": has no column besides its label");
    std::map<int32_t, int64_t> counts;
    for (const int32_t label : table_.classes) ++counts[label];
    classes_ = table_.class_names;
    const bool dense = !counts.empty() && counts.begin()->first == 0 &&
                       counts.rbegin()->first + 1 == static_cast<int32_t>(counts.size());
    if (classes_.empty() && dense && counts.size() <= most_classes && counts.size() > 1) {
      for (size_t c = 0; c < counts.size(); ++c) classes_.push_back(cat(c));
    }
    training_ = training_part(options_, table_.rows);
    describe(counts);
  }

  std::vector<std::string> survey() const override { return survey_; }
  ModelChoice choose() const override {
    ModelChoice choice;
    choice.net = models_folder() + "/table/train_val.prototxt";
    choice.solver = models_folder() + "/table/solver.prototxt";
    choice.settings = {cat("classes=", classes_.size())};
    choice.why = "two hidden layers suit most tables";
    return choice;
  }
  std::vector<std::string> fit(const NetText&) override {
    return {"columns: the net brings each to a mean of 0 and a variance of 1"};
  }
  void connect(NetText* net, int64_t batch) const override {
    connect_databases({"data/table_train_lmdb", "data/table_val_lmdb", batch, testing()}, net);
    if (!classes_.empty()) set_classes(static_cast<int64_t>(classes_.size()), net);
  }
  std::vector<int64_t> sample(const NetText&) const override {
    return {static_cast<int64_t>(table_.width()), 1, 1};
  }
  void convert(const std::string& folder, Log& log) const override {
    TableOptions options;
    options.to.split = static_cast<double>(training_);
    options.to.seed = options_.seed;
    options.labels = {label_};
    convert_csv(options_.data, folder + "/data/table_lmdb", options, log);
    if (!classes_.empty())
      write_file_atomically(folder + "/labels.txt", text_of_class_names(classes_));
  }
  int64_t training() const override { return training_; }
  int64_t testing() const override { return table_.rows - training_; }
  std::string use() const override {
    // In batches of the net's TEST phase; the last one begins again with the first rows.
    const int64_t batch = std::min<int64_t>(50, testing());
    return cat("crema extract_features $weights net.prototxt scores scores.npy ",
               (testing() + batch - 1) / batch, " npy\n");
  }

 private:
  void describe(const std::map<int32_t, int64_t>& counts);

  const NewOptions options_;
  const std::string label_;
  const Table table_;
  std::vector<std::string> classes_;  // empty: the label is a value
  int64_t training_ = 0;
  std::vector<std::string> survey_;
};

void TableTask::describe(const std::map<int32_t, int64_t>& counts) {
  const size_t column = table_.label_columns.at(0);
  const std::string name =
      table_.names.empty() ? cat("number ", column) : "\"" + table_.names[column] + "\"";
  survey_.push_back(cat(options_.data, ": ", table_.rows, " rows with ", table_.width(),
                        " values, and the label in column ", name,
                        options_.label.empty() ? " (-label names another)" : ""));
  if (classes_.empty()) {
    survey_.push_back(
        cat("the label is a number to predict",
            !counts.empty() && counts.size() <= shown_labels
                ? "; if its values are classes, number them from 0 on, or write names for them"
                : ""));
  } else {
    std::vector<std::string> shown;
    for (const auto& [label, count] : counts) {
      if (shown.size() < shown_labels)
        shown.push_back(cat(classes_[static_cast<size_t>(label)], " ", count));
    }
    if (counts.size() > shown_labels) shown.push_back("...");
    survey_.push_back(
        cat("the label is one of ", classes_.size(), " classes: ", join(shown, ", ")));
  }
  survey_.push_back(cat(training(), " for training and ", testing(),
                        " for testing, divided by chance (-split ", options_.split, ")"));
}

}  // namespace

std::unique_ptr<Task> table_task(const NewOptions& options, Log& log) {
  return std::make_unique<TableTask>(options, log);
}

}  // namespace crema
