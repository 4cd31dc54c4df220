// What crema new refuses before it writes anything.
#include <gtest/gtest.h>

#include <filesystem>

#include "tools/new_data.h"

namespace crema::tests {
namespace new_test {

struct RefusedRow {
  const char* arguments;
  const char* message;
};

TEST(New, RefusesWhatItCannotUse) {
  NEEDS_PICTURES();
  const Folder folder;
  folder.write("empty/notes.txt", "x");
  folder.write("one/cat/1.png", picture(0, 1));
  folder.write("broken/cat/1.png", "x");
  folder.write("broken/dog/1.png", "x");
  folder.write("row.csv", "1,2,3\n");
  folder.write("row3.csv", "1,2,0\n1,3,1\n4,5,1\n");
  add_classes(folder, "p", 8);
  std::string words = "age,colour,town,label\n";
  for (int i = 0; i < 150; ++i)
    words += cat(i % 9 ? cat(i) : "", ",", i % 2 ? "red" : "blue", ",town ", i, ",", i % 2, "\n");
  folder.write("words.csv", words);
  folder.write("blank.csv", "1,2,0\n1,,1\n4,5,1\n");
  folder.write("p_full/file", "x");
  folder.write("lines/two\nlines/1.png", picture(0, 1));
  std::filesystem::create_symlink("missing", folder.file("nowhere"));
  const RefusedRow rows[] = {
      {"missing project", "missing: there is no such file or folder"},
      {"empty project", "empty/: has no folder for any class"},
      {"one project", "one: has one class only, \"cat\""},
      {"broken project", "not one of the 2 pictures can be read"},
      {"row.csv project", "row.csv: has one row only"},
      {"p p_full", "p_full: is there already"},
      {"p p/project", "p/project: is inside the data, p"},
      {"p nowhere", "nowhere: is a link to a folder that does not exist"},
      {"lines project", "two\\nlines: the name of this class has a line break"},
      {"-iterations 0 p project", "-iterations 0: a training needs one iteration or more"},
      {"-batch -1 p project", "-batch -1: is negative"},
      {"-label x p project", "-label x: is for tables, but p is a folder"},
      {"-task masks row3.csv project", "-task masks: is for folders, but row3.csv is a file"},
      {"-model resnot p project", "-model resnot: is neither a folder of "},
      {"-task boxes p project", "p: no boxes were found in it"},
      {"-task box p project", "-task box: there are classes, boxes and masks"},
      {"-weights none.caffemodel p project", "-weights none.caffemodel: there is no such file"},
      {"-set widht=3 p project", "widht"},
      {"-set width=0 p project", "layer \"conv1\": convolution_param has no num_output (or 0)"},
      {"-dry_run -set width=0 p project", "layer \"conv1\": convolution_param has no num_output"},
      {"-batch 100000 p project", "-batch 100000: there are only 13 samples for training"},
      {"-set momentum=9 p project", "momentum is 9, it must be at least 0 and less than 1"},
      {"-set lr_policy=stp p project", "unknown lr_policy \"stp\" (did you mean \"step\"?)"},
      {"-set type=Adm p project", "unknown solver type \"Adm\" (did you mean \"Adam\"?)"},
      {"-set lr=1 p project", "no field \"lr\" (did you mean \"base_lr\"?)"},
      {"-set 'layer[con].convolution_param.pad=1' p project", "there is no layer \"con\""},
      {"-set 'layer[conv1].convolution_param.padding=1' p project", "(did you mean \"pad\"?"},
      {"-set 'layer[conv1].convolution_param.pad=x' p project", "x"},
      {"-set name=x p project", "-set name=x: `crema new` sets fields of layers"},
      {"words.csv project",
       "words.csv:2:1: column 0 (\"age\") is empty where a number was expected; fill it, for "
       "example "
       "with the column's mean, or remove its row; the whole table has columns of words: colour (2 "
       "different), town (over 100 different); empty cells: age 17"},
      {"blank.csv project", "blank.csv:2:3: column 1 is empty"},
      {"blank.csv project", "the whole table has empty cells: number 1 1"},
      {"-split 16 p project", "-split 16 of 16 records leaves all for training"},
      {"-split 9 row3.csv project",
       "-split 9 of the 3 samples of row3.csv leaves none for testing"},
  };
  for (const RefusedRow& row : rows) {
    SCOPED_TRACE(row.arguments);
    const Outcome refused = run(folder, cat("crema new ", row.arguments));
    EXPECT_EQ(refused.code, 1);
    ASSERT_FALSE(refused.errors().empty()) << refused.err;
    expect_part(refused.errors().back(), row.message);
    EXPECT_FALSE(folder.has("project"));
  }
}

}  // namespace new_test
}  // namespace crema::tests
