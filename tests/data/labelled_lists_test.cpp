// Lists of images with labels, as text and as CSV, and what databases keep of the labels.
#include <gtest/gtest.h>

#include "data/databases/records.h"
#include "data/lists/csv.h"
#include "data/lists/image_list.h"
#include "data/loader/loader.h"
#include "fixtures.h"

namespace crema::tests {
namespace labelled_lists_test {

TEST(Csv, SplitsLines) {
  struct Row {
    const char* line;
    std::vector<std::string> fields;
  };
  const Row rows[] = {
      {"a,b", {"a", "b"}},
      {" a b , c ", {"a b", "c"}},
      {"\"a,b\",c", {"a,b", "c"}},
      {"\"say \"\"hi\"\"\" , 2", {"say \"hi\"", "2"}},
      {"\" blank \",\"\"", {" blank ", ""}},
      {",,", {"", "", ""}},
      {"it's 5\" wide,3", {"it's 5\" wide", "3"}},
      {"a;b c; 1.5", {"a", "b c", "1.5"}},
      {"a\t\tb", {"a", "", "b"}},
      {"  1   2 3 ", {"1", "2", "3"}},
      {"1  \"2 3\" 4", {"1", "2 3", "4"}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.line);
    std::vector<std::string> fields;
    for (const CsvField& field : csv_fields(row.line, csv_separator(row.line), "t"))
      fields.push_back(field.text);
    EXPECT_EQ(fields, row.fields);
  }
  expect_part(error_of([&] { csv_fields("1, \"a", ',', "t:7"); }),
              "t:7:4: this quote is not closed");
  expect_part(error_of([&] { csv_fields("\"a\"b,1", ',', "t:7"); }),
              "t:7:4: after the quote that closes a field comes `b,1`");
}

struct Row {
  const char* name;
  const char* text;
  std::vector<std::string> paths;
  std::vector<std::vector<float>> labels;
};

const Row kLists[] = {
    {"list", "a.jpg 1\nb c.jpg 2\n", {"a.jpg", "b c.jpg"}, {{1}, {2}}},
    {"list", "a.jpg,1\r\n\"b, c.jpg\",2\r\n", {"a.jpg", "b, c.jpg"}, {{1}, {2}}},
    {"list",
     "\"a \"\"x\"\".jpg\", 1, 2.5\nb,c.jpg,3,4\n",
     {"a \"x\".jpg", "b,c.jpg"},
     {{1, 2.5f}, {3, 4}}},
    // Columns may have names, and a comma may be in the paths of a list that is no CSV.
    {"list", "path,label\na.jpg,1\n", {"a.jpg"}, {{1}}},
    {"list.csv", "file,a,b\nx 1.jpg,1,2\n", {"x 1.jpg"}, {{1, 2}}},
    {"list", "a,b.jpg 3\nc,1 4\n", {"a,b.jpg", "c,1"}, {{3}, {4}}},
    {"list", "a.jpg, 3\n", {"a.jpg"}, {{3}}},
    {"list.CSV", "a.jpg, 3\n", {"a.jpg"}, {{3}}},
    {"list.csv", "a.jpg 3\n", {"a.jpg"}, {{3}}},
    {"list", "k\xC3\xA4tze.jpg,-1e2\n", {"k\xC3\xA4tze.jpg"}, {{-100}}},
};

TEST(LabelledLists, AreTextOrCsv) {
  for (const Row& row : kLists) {
    SCOPED_TRACE(row.text);
    const Folder folder;
    folder.write(row.name, row.text);
    std::vector<std::string> paths;
    std::vector<std::vector<float>> labels;
    for (const ListedImage& image : read_labelled_list(folder.file(row.name))) {
      paths.push_back(image.path);
      labels.push_back(image.labels);
    }
    EXPECT_EQ(paths, row.paths);
    EXPECT_EQ(labels, row.labels);
  }
}

TEST(LabelledLists, SayWhatIsWrongWithCsv) {
  const std::pair<const char*, const char*> rows[] = {
      {"a.jpg,1\nb.jpg,x\n", "list.csv:2: a line is `path,label` with a number as label"},
      {"a.jpg,1\n\nb.jpg\n", "list.csv:3: a line is `path,label`"},
      {"a.jpg,1,2\nb.jpg,3\n", "list.csv:2: has 1 labels, but the first line has 2"},
      {"a.jpg,1\n\"b.jpg,2\n", "list.csv:2:1: this quote is not closed"},
      {"a.jpg,1,2\n\"b.jpg\",x,2,3\n", "list.csv:2:9: found `x` where a number was expected"},
      {"path,label\n", "names no image"},
  };
  for (const auto& [text, message] : rows) {
    SCOPED_TRACE(text);
    const Folder folder;
    folder.write("list.csv", text);
    expect_part(error_of([&] { read_labelled_list(folder.file("list.csv")); }), message);
  }
}

// For databases: integers stay integers, to the last digit, if all are.
TEST(LabelledLists, AreClassesIfAllAre) {
  const Folder folder;
  const auto read = [&](const std::string& text) {
    folder.write("list", text);
    return read_class_list(folder.file("list"));
  };
  const auto classes = read("a 7.0\nb 16777217\nc -2\n");
  EXPECT_EQ(classes[1].class_number, 16777217);
  EXPECT_TRUE(classes[0].labels.empty());
  const auto numbers = read("a 7\nb 1.5\n");
  EXPECT_EQ(numbers[0].labels, std::vector<float>{7});
  EXPECT_EQ(numbers[1].labels, std::vector<float>{1.5f});
  EXPECT_EQ(numbers[0].class_number, 0);
  const auto several = read("a 7 1\nb 3 0.5\n");
  EXPECT_EQ(several[1].labels, (std::vector<float>{3, 0.5f}));
  EXPECT_EQ(several[1].class_number, 3);
  expect_part(error_of([&] { read("a 16777217\nb 0.5\n"); }),
              "list:1: the label 16777217 cannot be kept");
}

// A Data layer's samples.
TEST(Records, HaveAsManyLabelsAsTheDatum) {
  class Three : public Source {
   public:
    explicit Three(std::vector<float> labels) : Source("here"), labels_(std::move(labels)) {}
    int64_t size() const override { return 3; }
    std::string key(int64_t) const override { return "k"; }
    void read(int64_t index, google::protobuf::Message& record) const override {
      auto& datum = static_cast<Datum&>(record);
      datum.Clear();
      datum.set_channels(1);
      datum.set_height(1);
      datum.set_width(1);
      datum.set_data("x");
      datum.set_label(9);
      for (const float label : labels_) datum.add_labels(label + static_cast<float>(index));
    }

   private:
    std::vector<float> labels_;
  };
  const std::pair<std::vector<float>, Shape> rows[] = {
      {{}, {3}}, {{0.5f}, {3}}, {{0.5f, -4}, {3, 2}}};
  for (const auto& [labels, shape] : rows) {
    const TransformationParameter none;
    LoaderOptions options;
    options.batch_size = 3;
    Loader loader(std::make_shared<Records>(std::make_shared<Three>(labels),
                                            Transform(none, true, "", silent_log())),
                  options);
    EXPECT_EQ(loader.label_shape(), shape);
    const Batch& batch = loader.batch(0);
    std::vector<float> expected;
    for (int i = 0; i < 3; ++i) {
      if (labels.empty()) expected.push_back(9);
      for (const float label : labels) expected.push_back(label + static_cast<float>(i));
    }
    EXPECT_EQ(batch.labels, expected);
  }
}

}  // namespace labelled_lists_test
}  // namespace crema::tests
