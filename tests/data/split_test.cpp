// Databases for training and validation, split by class.
#include <set>

#include "data/convert/parts.h"
#include "data/databases/source.h"
#include "fixtures.h"

namespace crema::tests {
namespace split_test {

// This many records of each class, one class after the other.
std::vector<int> labels_of(const std::vector<int>& counts) {
  std::vector<int> labels;
  for (size_t c = 0; c < counts.size(); ++c)
    labels.insert(labels.end(), static_cast<size_t>(counts[c]), static_cast<int>(c));
  return labels;
}

struct Row {
  const char* name;
  std::vector<int> classes;
  double split;
  std::vector<int> training;  // of each class
};

const Row kRows[] = {
    {"share", {10, 20, 30}, 0.9, {9, 18, 27}},
    {"number", {10, 20, 30}, 54, {9, 18, 27}},
    // 45 of 60: 7.5, 15 and 22.5; of equal remainders the first class gets the record.
    {"halves", {10, 20, 30}, 0.75, {8, 15, 22}},
    // 7 of 10: 4.9, 1.4 and 0.7.
    {"remainders", {7, 2, 1}, 0.7, {5, 1, 1}},
    {"one_of_each", {1, 1, 1, 1}, 2, {1, 1, 0, 0}},
    {"empty_class", {4, 0, 4}, 0.5, {2, 0, 2}},
};

TEST(Split, GivesEachPartItsShareOfEveryClass) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    const std::vector<int> labels = labels_of(row.classes);
    const Split split = split_by_class(labels, row.split, 1);
    std::vector<int> training(row.classes.size());
    std::set<int64_t> all(split.validation.begin(), split.validation.end());
    for (const int64_t record : split.training) {
      ++training[static_cast<size_t>(labels[static_cast<size_t>(record)])];
      all.insert(record);
    }
    EXPECT_EQ(training, row.training);
    // Each record is in one part.
    EXPECT_EQ(all.size(), labels.size());
    EXPECT_EQ(split.training.size() + split.validation.size(), labels.size());
  }
}

TEST(Split, DependsOnTheSeedAlone) {
  const std::vector<int> labels = labels_of({200, 100, 300});
  const Split one = split_by_class(labels, 0.8, 1), again = split_by_class(labels, 0.8, 1),
              other = split_by_class(labels, 0.8, 2);
  EXPECT_EQ(one.training, again.training);
  EXPECT_EQ(one.validation, again.validation);
  EXPECT_NE(std::set<int64_t>(one.validation.begin(), one.validation.end()),
            std::set<int64_t>(other.validation.begin(), other.validation.end()));
  // In shuffled order: the classes alternate, and so do early and late records.
  for (const auto* part : {&one.training, &one.validation}) {
    size_t changes = 0, rises = 0;
    for (size_t i = 1; i < part->size(); ++i) {
      const int64_t before = (*part)[i - 1], here = (*part)[i];
      changes += labels[static_cast<size_t>(before)] != labels[static_cast<size_t>(here)];
      rises += here > before;
    }
    EXPECT_GT(changes, part->size() / 3);
    EXPECT_GT(rises, part->size() / 3);
    EXPECT_LT(rises, part->size() * 2 / 3);
  }
}

TEST(Split, SaysWhatIsWrong) {
  const auto problem = [](double split) {
    return error_of([&] { split_by_class(labels_of({3, 2}), split, 1); });
  };
  expect_part(problem(5), "-split 5 of 5 records leaves all for training");
  expect_part(problem(0.05), "-split 0.05 of 5 records leaves none for training");
  expect_part(problem(0.95), "leaves all");
  for (const double wrong : {-1.0, 2.5, 1e300 * 1e300})
    expect_part(problem(wrong), "expected a fraction below 1");
}

TEST(Split, NamesTheParts) {
  const std::vector<std::vector<std::string>> rows = {
      {"pets_lmdb", "pets_train_lmdb", "pets_val_lmdb"},
      {"a/pets_train_lmdb/", "a/pets_train_lmdb", "a/pets_val_lmdb"},
      {"train_lmdb", "train_lmdb", "val_lmdb"},
      {"train_data/x_leveldb", "train_data/x_train_leveldb", "train_data/x_val_leveldb"},
      {"x-train_hdf5", "x-train_hdf5", "x-val_hdf5"},
      {"strain", "strain_train", "strain_val"},
      {"pets", "pets_train", "pets_val"},
  };
  for (const auto& row : rows) {
    const auto [training, validation] = split_paths(row[0]);
    EXPECT_EQ(training, row[1]);
    EXPECT_EQ(validation, row[2]);
  }
}

TEST(Split, SaysHowManyOfEachClassThereAre) {
  const Folder folder;
  const auto convert = [&](const std::vector<int>& counts, double split, Lines& log) {
    const std::vector<int> labels = labels_of(counts);
    ConvertOptions options;
    options.split = split;
    options.format.overwrite = true;
    Parts parts(folder.file("x_lmdb"), labels, false, options);
    Datum datum;
    parts.each_record([&](Parts::Part& part, int64_t i, int64_t index) {
      datum.set_label(labels[static_cast<size_t>(index)]);
      part.put(numbered_key(i, 8), datum, datum.label());
    });
    parts.finish(log);
  };
  Lines few, more;
  convert({10, 1}, 0.8, few);
  EXPECT_EQ(few.infos,
            (std::vector<std::string>{"Wrote 9 records to " + folder.file("x_train_lmdb"),
                                      "Wrote 2 records to " + folder.file("x_val_lmdb"),
                                      "Class 0: 8 for training, 2 for validation",
                                      "Class 1: 1 for training, 0 for validation"}));
  EXPECT_EQ(few.warnings, std::vector<std::string>{"1 class has no record for validation"});
  std::vector<int> many(21, 10);
  many[4] = 20;
  convert(many, 0.9, more);
  EXPECT_EQ(more.infos.back(), "21 classes, each with 9 to 18 for training, 1 to 2 for validation");
  const std::unique_ptr<Source> source = open_lmdb(folder.file("x_val_lmdb"));
  EXPECT_EQ(source->size(), 22);
  EXPECT_EQ(source->key(21), "00000021");
}

}  // namespace split_test
}  // namespace crema::tests
