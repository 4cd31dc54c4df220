// Tables of numbers as databases.
#include <cstring>

#include "data/convert/convert.h"
#include "data/databases/class_names.h"
#include "data/databases/hdf5/hdf5_file.h"
#include "data/databases/source.h"
#include "fixtures.h"

namespace crema::tests {
namespace convert_csv_test {

// Records as text: `label | data`, several labels with blanks, and ~ before data of bytes.
std::string content_of(const std::string& path) {
  const std::unique_ptr<Source> source = open_lmdb(path);
  std::string text;
  for (int64_t i = 0; i < source->size(); ++i) {
    Record record;
    source->read(i, record.datum);
    const Datum& datum = record.datum;
    decode(record, Color::as_stored);
    if (datum.has_label()) text += cat(datum.label());
    for (const float label : datum.labels()) text += cat(" ", label);
    text += record.bytes ? "|~" : "|";
    for (int64_t k = 0; k < record.shape().count(); ++k)
      text += cat(" ", record.bytes ? static_cast<float>(record.bytes[k]) : record.values[k]);
    text += "\n";
  }
  return text;
}

struct Row {
  const char* table;
  std::vector<std::string> labels;
  const char* content;
};

const Row kTables[] = {
    {"1,2,0\n3,4,1\n", {"2"}, "0|~ 1 2\n1|~ 3 4\n"},
    {"a,b,class\n1,2.5,7\r\n\n3,4,16777216\n", {"class"}, "7| 1 2.5\n16777216| 3 4\n"},
    {"1,2,0\n3,256,1\n", {"-1"}, "0| 1 2\n1| 3 256\n"},
    {"1,2,0\n", {}, "|~ 1 2 0\n"},
    {"a b y z\n1 2 3 4\n5 6 7.5 8\n", {"z", "y"}, " 3 4|~ 1 2\n 7.5 8|~ 5 6\n"},
    {"x;y\n-1e3;0.5\n", {"y"}, " 0.5| -1000\n"},
    {"\"a, b\"\ty\n+7\t1\n", {"a, b"}, "7|~ 1\n"},
    {"0,1\n5,6\n", {"0"}, "0|~ 1\n5|~ 6\n"},
};

TEST(ConvertCsv, MakesARecordOfEachRow) {
  for (const Row& row : kTables) {
    SCOPED_TRACE(row.table);
    const Folder folder;
    folder.write("t.csv", row.table);
    TableOptions options;
    options.labels = row.labels;
    convert_csv(folder.file("t.csv"), folder.file("db"), options, silent_log());
    EXPECT_EQ(content_of(folder.file("db")), row.content);
  }
}

struct NamedRow {
  const char* table;
  std::string label;
  const char* content;  // or, without a bar, a part of the error
  std::vector<std::string> names{};
};

const NamedRow kNamed[] = {
    {"x,species\n1,setosa\n2,virginica\n3,setosa\n4,\"a, b\"\n",
     "species",
     "1|~ 1\n2|~ 2\n1|~ 3\n0|~ 4\n",
     {"a, b", "setosa", "virginica"}},
    {"5.1,no\n4.9,yes\n", "-1", "0| 5.1\n1| 4.9\n", {"no", "yes"}},
    {"yes,5\n", "0", "0|~ 5\n", {"yes"}},
    // Columns with numbers for names.
    {"0,1,label\n7,8,2\n", "-1", "2|~ 7 8\n"},
    {"x y\n1 cat\n2 dog\n", "1", "0|~ 1\n1|~ 2\n", {"cat", "dog"}},
    {"x,y\n1,cat\n2,3\n", "y",
     "t.csv:3:3: column 1 (\"y\") holds `3`, a number, but the lines before have names of classes"},
    {"x,y\n1,0\n2,dog\n", "y",
     "t.csv:3:3: column 1 (\"y\") holds `dog`, a name, but the lines before have numbers"},
    {"x,y\n1,cat\n2,\n", "y",
     "t.csv:3:3: column 1 (\"y\") is empty where the name of a class was expected"},
    {"x,y,z\n1,cat,2\n", "y,z", "holds the name `cat`, but there are 2 labels a row"},
    {"x,y\ncat,1\n", "y", "t.csv:2:1: column 0 (\"x\") holds `cat` where a number was expected"},
};

TEST(ConvertCsv, TakesNamesOfClasses) {
  for (const NamedRow& row : kNamed) {
    SCOPED_TRACE(row.table);
    const Folder folder;
    folder.write("t.csv", row.table);
    TableOptions options;
    options.labels = split(row.label, ',');
    const auto convert = [&] {
      convert_csv(folder.file("t.csv"), folder.file("db"), options, silent_log());
    };
    if (!std::strchr(row.content, '|')) {
      expect_part(error_of(convert), row.content);
      EXPECT_FALSE(folder.has("db") || folder.has("labels.txt"));
      continue;
    }
    convert();
    EXPECT_EQ(content_of(folder.file("db")), row.content);
    EXPECT_EQ(class_names_of_source(folder.file("db")).names, row.names);
    EXPECT_EQ(folder.has("labels.txt"), !row.names.empty());
  }
}

TEST(ConvertCsv, WritesHdf5OfAShapeAndSplits) {
  const Folder folder;
  std::string table = "y0,y1,a,b,c,d\n";
  for (int i = 0; i < 10; ++i) table += cat(i, ",", i + 0.5, ",1,2,3,", i, "\n");
  folder.write("t.csv", table);
  TableOptions options;
  options.to.format.backend = DataParameter::HDF5;
  options.to.format.scale = 0.5f;
  options.to.split = 0.8;
  options.labels = {"y0", "y1"};
  options.shape = {1, 2, 2};
  Lines log;
  convert_csv(folder.file("t.csv"), folder.file("t"), options, log);
  EXPECT_TRUE(log.has("A total of 10 rows with 4 values and 2 labels."));
  const Hdf5File train(folder.file("t_train/0000.h5"));
  EXPECT_EQ(train.shape("data"), (Shape{8, 1, 2, 2}));
  EXPECT_EQ(train.shape("label"), (Shape{8, 2}));
  const std::vector<float> data = train.floats("data"), labels = train.floats("label");
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(labels[2 * i] + 0.5f, labels[2 * i + 1]);
    EXPECT_EQ(data[4 * i], 0.5f);
    EXPECT_EQ(data[4 * i + 3], labels[2 * i] / 2);
  }
}

TEST(ConvertCsv, SaysWhatIsWrong) {
  struct Wrong {
    const char* table;
    TableOptions options;
    const char* message;
  };
  const Wrong rows[] = {
      {"", {}, "t.csv: has no row of numbers"},
      {"a,b\n", {}, "t.csv: has no row of numbers"},
      {"1,2\n3,x\n", {}, "t.csv:2:3: column 1 holds `x` where a number was expected"},
      {"a,b\n1,2\n3, ,4\n", {}, "t.csv:3: has 3 fields, but the first line has 2"},
      {"a,b\n1,\n", {}, "t.csv:2:3: column 1 (\"b\") is empty where a number was expected"},
      {"a;b\n1,5;2\n",
       {},
       "t.csv:2:1: column 0 (\"a\") holds `1,5` where a number was expected; write "},
      {"\"a\";b;\"c, d\"\n1;2;x\n", {}, "t.csv:2:5: column 2 (\"c, d\") holds `x`"},
      {"1,2\n3,aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n",
       {},
       "aaaa...` where a number was expected; remove the column"},
      {"1,nan\n1,nan\n", {}, "t.csv:2:3: column 1 (\"nan\") holds `nan`"},
      {"1,1e39\n", {}, "t.csv:1:3: column 1 holds 1e39, which is beyond the numbers of a float32"},
      {"1,\"2\n", {}, "t.csv:1:3: this quote is not closed"},
      {"age,size\n1,2\n", {.labels = {"agee"}}, "no column \"agee\" (did you mean \"age\"?)"},
      {"1,2\n", {.labels = {"2"}}, "t.csv: has no column \"2\" for -label; it has 2 columns"},
      {"1,2\n", {.labels = {"0", "-2"}}, "-label names the column \"-2\" twice"},
      {"1,2\n", {.labels = {"0", "1"}}, "has no column besides its label (-label)"},
      {"1,2\n16777217,2\n", {.labels = {"0"}}, "t.csv:2:1: the label 16777217 cannot be kept"},
      {"1,2\n", {.shape = {3}}, "-shape 3: each extent is a number from 1 to 2"},
      {"1,2,3\n", {.shape = {2}}, "-shape 2 asks for 2 values, but a row of"},
      {"1,2\n", {.shape = {1, 2}}, "-shape 1x2: expected the number of values, or channels x"},
  };
  for (const Wrong& row : rows) {
    SCOPED_TRACE(row.table);
    const Folder folder;
    folder.write("t.csv", row.table);
    expect_part(error_of([&] {
                  convert_csv(folder.file("t.csv"), folder.file("db"), row.options, silent_log());
                }),
                row.message);
    EXPECT_EQ(folder.names(), std::vector<std::string>{"t.csv"});
  }
}

}  // namespace convert_csv_test
}  // namespace crema::tests
