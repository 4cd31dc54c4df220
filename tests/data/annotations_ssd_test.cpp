// Input of SSD's converter: boxes as text files and as JSON cut out of COCO's, and classes.
#include <gtest/gtest.h>

#include "drawn_boxes.h"

namespace crema::tests {
namespace annotations_ssd_test {

TEST(Annotations, SsdsFormatsSayWhatIsWrong) {
  NEEDS_IMAGES();
  const Shapes folder;
  const std::string images = "images/0.png a.txt\nimages/1.png ssd/0.txt\n";
  struct Row {
    AnnotationFormat format;
    const char *text, *problem;
  };
  const auto text = AnnotationFormat::text, json = AnnotationFormat::json;
  const Row rows[] = {
      {text, "cat 1 2 3 4", "a.txt:1: found `cat` where the number of a class (`class xmin"},
      {text, "1 2 3 4", "a.txt:1: the file ends where ymax of a box was expected"},
      {text, "1 2 3 4\n1 2 3 4 5",
       "a.txt:2: a line is `class xmin ymin xmax ymax`, but the one bef"},
      {text, "\n1 2 3 4 5 0", "a.txt:2: a line is `class xmin ymin xmax ymax`, but this one goes"},
      {text, "1 2 3 1e9 5", "a.txt:1: xmax of a box is 1e+09, farther out"},
      {text, "7 2 3 4 5", "a.txt:1: the label map has no label 7"},
      {json, "{\"annotation\": [\n{]}", "a.txt:2:2: the file is not JSON here"},
      {json, "[]", "a.txt: has no list \"annotation\""},
      {json, "{\"annotations\": []}", "-anno_format coco reads COCO's files whole"},
      {json, "{\"annotation\": [{\"category_id\": 1}]}",
       "a.txt: annotation[0]: needs \"bbox\": [left, top, width, height]"},
      {json, "{\"annotation\": [{\"bbox\": [0, 0, 9, 9]}]}",
       "a.txt: annotation[0]: has no number or name as \"category_id\""},
      {json, "{\"annotation\": [{\"bbox\": [0, 0, 9, 9], \"category_id\": 7}]}",
       "a.txt: annotation[0]: the label map has no label 7, nor a name of that number"},
      {json, "{\"annotation\": [{\"bbox\": [0, 0, 9, 9], \"category_id\": \"cirle\"}]}",
       "the label map has no \"cirle\" (did you mean \"circle\"?)"},
      {json, "{\"image\": {\"width\": 0}, \"annotation\": []}",
       "a.txt: \"image\" has no number above 0 as \"width\""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.text);
    const std::string name = row.format == json ? "json" : "text";
    folder.write("a.txt", row.text);
    folder.write(name + ".list",
                 row.format == json ? "images/0.png a.txt\nimages/1.png ssd/1.json\n" : images);
    std::filesystem::remove_all(folder.file(name + "_db"));
    Lines log;
    EXPECT_EQ(folder.convert(name, row.format, log).skipped, 1);
    expect_part(log.errors.at(0), row.problem);
  }
  // The size is that of the file before it is made smaller; where a map names numbers, as SSD's for
  // COCO does, an id is one of these names.
  folder.write(
      "a.txt",
      "{\"annotation\": [{\"bbox\": [16, 8, 16, 8], \"category_id\": 90, \"iscrowd\": 1}]}");
  folder.write("json.list", "images/0.png a.txt\n");
  folder.write("map", "item { name: \"90\" label: 80 display_name: \"toothbrush\" }");
  std::filesystem::remove_all(folder.file("json_db"));
  convert_annoset(folder.path() + "/", folder.file("json.list"), folder.file("map"), true,
                  folder.file("json_db"), {.resize_height = 8, .resize_width = 8}, silent_log(),
                  json);
  AnnotatedDatum record;
  open_lmdb(folder.file("json_db"))->read(0, record);
  EXPECT_EQ(record.datum().height(), 8);
  ASSERT_EQ(record.annotation_group_size(), 1);
  EXPECT_EQ(record.annotation_group(0).group_label(), 80);
  const NormalizedBBox& box = record.annotation_group(0).annotation(0).bbox();
  EXPECT_EQ(box.xmin(), 0.25f);
  EXPECT_EQ(box.xmax(), 0.5f);
  EXPECT_EQ(box.ymax(), 0.5f);
  EXPECT_TRUE(box.difficult());
}

// SSD's -anno_type=classification: an AnnotatedData layer reads the class of an image.
TEST(Annotations, OfClassesAreLabels) {
  NEEDS_IMAGES();
  const Shapes folder;
  folder.write("list", "images/0.png 4\nimages/1.png 2\nimages/2.png 9\n");
  const ImagesetResult result = convert_annoset_of_classes(
      folder.path() + "/", folder.file("list"), folder.file("class_db"), {}, silent_log());
  EXPECT_EQ(result.written, 3);
  EXPECT_EQ(batch(folder, "class_db").label, (std::vector<float>{4, 2, 9}));
}

}  // namespace annotations_ssd_test
}  // namespace crema::tests
