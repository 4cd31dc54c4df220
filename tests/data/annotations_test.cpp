// Boxes of Pascal VOC, COCO and YOLO: the same objects give the same batch, and what is wrong in a file is said with its
// place.
#include "data/convert/annotations/annotations.h"

#include <gtest/gtest.h>

#include "data/convert/annotations/coco_file.h"
#include "drawn_boxes.h"

namespace crema::tests {
namespace annotations_test {

TEST(Annotations, OfFiveFormatsAreEqual) {
  NEEDS_IMAGES();
  const Shapes folder;
  Lines log;
  EXPECT_EQ(folder.convert("voc", AnnotationFormat::voc, log).written, 3);
  EXPECT_EQ(folder.convert("coco", AnnotationFormat::coco, log).written, 3);
  EXPECT_EQ(folder.convert("json", AnnotationFormat::json, log).written, 3);
  EXPECT_TRUE(log.warnings.empty()) << log.warnings[0];
  EXPECT_EQ(folder.convert("yolo", AnnotationFormat::yolo, log).written, 3);
  ASSERT_EQ(log.warnings.size(), 1u);
  expect_part(log.warnings[0], "1 of 3 images have no text of boxes, such as ");
  expect_part(log.warnings[0], "/labels/1.txt; they have no object.");
  EXPECT_EQ(folder.convert("text", AnnotationFormat::text, log).written, 3);
  ASSERT_EQ(log.warnings.size(), 2u);
  expect_part(log.warnings[1], "1 of 3 annotations are not there, such as ");
  expect_part(log.warnings[1], "/ssd/1.txt; these images have no object.");
  const BoxBatch voc = batch(folder, "voc_db");
  std::vector<float> expected;
  for (size_t i = 0; i < kDrawn.size(); ++i) {
    for (const int label : {1, 2, 3}) {
      float instance = 0;
      for (const Drawn& d : kDrawn[i]) {
        if (d.label != label) continue;
        for (const double value : {double(i), double(label), double(instance++), d.left / 64.,
                                   d.top / 32., d.right / 64., d.bottom / 32., 0.})
          expected.push_back(static_cast<float>(value));
      }
    }
  }
  ASSERT_GE(voc.label.size(), expected.size());
  EXPECT_EQ(std::vector<float>(voc.label.begin(),
                               voc.label.begin() + static_cast<int64_t>(expected.size())),
            expected);
  for (const char* other : {"coco_db", "yolo_db", "text_db", "json_db"}) {
    const BoxBatch same = batch(folder, other);
    EXPECT_EQ(same.data, voc.data) << other;
    EXPECT_EQ(same.label, voc.label) << other;
  }
}

TEST(Annotations, LabelMapsOfThreeFormatsAreEqual) {
  NEEDS_IMAGES();
  const Shapes folder;
  const std::string expected = folder.read("map");
  for (const auto& [source, format] : {std::pair{"voc.list", AnnotationFormat::voc},
                                       {"coco.list", AnnotationFormat::coco},
                                       {"names", AnnotationFormat::yolo}}) {
    create_label_map(folder.path() + "/", folder.file(source), folder.file("other"),
                     {.format = format, .include_background = true, .overwrite = true},
                     silent_log());
    EXPECT_EQ(folder.read("other"), expected) << source;
  }
  expect_part(
      expected,
      "item {\n  name: \"none_of_the_above\"\n  label: 0\n  display_name: \"background\"\n}\n"
      "item {\n  name: \"circle\"\n  label: 1\n  display_name: \"circle\"\n}\n");
}

// The error; "" if there is none.
template <typename Do>
std::string problem_of(const Do& act) {
  try {
    act();
  } catch (const Error& problem) {
    return problem.what();
  }
  return "";
}

TEST(Annotations, LabelMapsOfTexts) {
  const Folder folder;
  struct Row {
    const char *text, *delimiter, *items;  // or the problem
  };
  const Row rows[] = {
      {"a\nb c\n", " ", "a 1 a;b c 2 b c;"},
      {"cat 3 the cat\ndog 1\n", " ", "cat 3 the cat;dog 1 dog;"},
      {"big cat,3,the cat\ndog , 1\n", ",", "big cat 3 the cat;dog 1 dog;"},
      {"a 1\nb\n", " ", ":2: has no label as the lines before; a line is `name`, or `name label"},
      {"a\na\n", " ", ": names \"a\" twice"},
      {"a 1\nb 1\n", " ", ": gives label 1 twice, at last to \"b\""},
      {"\n \n", " ", ": names no class"},
      {"a", "", "-delimiter: must not be empty"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.text);
    folder.write("names", row.text);
    LabelMap map;
    const std::string problem = problem_of([&] {
      create_label_map("", folder.file("names"), folder.file("map"),
                       {.delimiter = row.delimiter, .overwrite = true}, silent_log());
    });
    std::string items;
    if (problem.empty()) {
      google::protobuf::TextFormat::ParseFromString(folder.read("map"), &map);
      for (const LabelMapItem& item : map.item())
        items += cat(item.name(), " ", item.label(), " ", item.display_name(), ";");
      EXPECT_EQ(items, row.items);
    } else {
      expect_part(problem, row.items);
    }
  }
  // Existing files are replaced only on request.
  folder.write("names", "z");
  const auto create = [&](bool overwrite) {
    return problem_of([&] {
      create_label_map("", folder.file("names"), folder.file("map"), {.overwrite = overwrite},
                       silent_log());
    });
  };
  expect_part(create(false), "map: exists and has other labels; -overwrite replaces it");
  EXPECT_EQ(create(true), "");
  EXPECT_EQ(create(false), "");
}

TEST(Annotations, YoloSaysWhatIsWrong) {
  NEEDS_IMAGES();
  const Shapes folder;
  folder.write("yolo.list", "images/0.png a.txt\nimages/1.png labels/0.txt\n");
  struct Row {
    const char *text, *problem;
  };
  const Row rows[] = {
      {"cat .5 .5 .1 .1", "a.txt:1:1: found `cat` where the number of a class was expected"},
      {"\n  -1 .5 .5 .1 .1", "a.txt:2:3: found `-1` where the number of a class"},
      {"0 .5 .5 .1",
       "a.txt:1:9: a line has 5 numbers, `class x y width height`, shares of the image "
       "from 0 to 1, not 4"},
      {"0 .5 .5 .1 .1 .9", "a.txt:1:15: a line has 5 numbers"},
      {"0 .1 .1 .2 .1 .2 .2", "a.txt:1:15: the line goes on, as the outline of an object does"},
      {"0 .5 32 .1 .1", "a.txt:1:6: found `32`; a line is `class x y width height`"},
      {"0 .5 nan .1 .1", "a.txt:1:6: found `nan`"},
      {"0 .5 .5x .1 .1", "a.txt:1:6: found `.5x`"},
      {"3 .5 .5 .1 .1",
       "a.txt:1:1: class 3 is label 4, which the label map lacks; create_label_map"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.text);
    folder.write("a.txt", row.text);
    std::filesystem::remove_all(folder.file("yolo_db"));
    Lines log;
    EXPECT_EQ(folder.convert("yolo", AnnotationFormat::yolo, log).skipped, 1);
    expect_part(log.errors.at(0), row.problem);
  }
  const auto list_error = [&](const char* list) {
    folder.write("yolo.list", list);
    return error_of([&] { folder.convert("yolo", AnnotationFormat::yolo, silent_log()); });
  };
  expect_part(list_error("images/1.png\n"),
              "not one of its 1 images has a text of boxes; there is no");
  expect_part(list_error("\n"), "yolo.list: names no image");
  expect_part(list_error("\na b c\n"),
              "yolo.list:2:5: a line is `image` or `image text`, not `a b c`");
  folder.write("0.txt", "0 1 0.5 0.5 1\n");
  folder.write("yolo.list", "images/0.png 0.txt\n");
  std::filesystem::remove_all(folder.file("yolo_db"));
  Lines log;
  folder.convert("yolo", AnnotationFormat::yolo, log);
  expect_part(log.warnings.at(0), "0.txt:1: the box of a \"circle\" is empty or reaches beyond");
}

TEST(Annotations, CocoSaysWhatIsWrong) {
  NEEDS_IMAGES();
  const Shapes folder;
  const std::string good = folder.read("coco.list");
  struct Row {
    const char *from, *to, *problem;
  };
  const Row rows[] = {
      {"{\"info\"", "[{\"info\"", "coco.list:7:113: the file is not JSON here"},
      {"\"iscrowd\": 0,", "\"iscrowd\": 0;", "coco.list:3:"},
      {"\"width\": 64", "\"width\": 1e999", "coco.list:1:"},
      {"\"images\"", "\"pictures\"", "coco.list: lists no \"images\"; is it COCO's"},
      {"\"categories\"", "\"classes\"", "coco.list: lists no \"categories\""},
      {"\"info\": {\"a\"", "\"images\": {\"a\"", "coco.list:1:15: \"images\" is not a list"},
      {"\"width\": 64", "\"width\": 0", "coco.list:1:38: the image is 0x32; width and height must"},
      {"\"height\": 32", "\"size\": 32", "needs a number as \"height\""},
      {"\"file_name\": \"images/0.png\"", "\"file_name\": 3", "needs a text as \"file_name\""},
      {"\"id\": 6", "\"id\": 7", "two images have the id 7"},
      {"\"id\": 30", "\"id\": 10", "two categories have the id 10"},
      {"\"id\": 7", "\"id\": \"7\"", "an element of \"images\" needs an integer as \"id\""},
      {"\"image_id\": 7", "\"image_id\": 7.5", "needs an integer as \"image_id\""},
      {"\"bbox\": [2, ", "\"bbox\": [", "coco.list:3:1: the annotation needs \"bbox\": [left, top"},
      {"\"bbox\": [2, ", "\"bbox\": [\"2\", ", "coco.list:3:1: the annotation needs \"bbox\""},
      {"\"bbox\": [2, ", "\"bbox\": [1e30, ", "coco.list:3:1: \"bbox\" has 1e+30, farther out"},
      {"\"category_id\": 20", "\"category_id\": 21",
       "coco.list:4:1: the category 21 is not one of \"categories\""},
      {"\"name\": \"circle\"", "\"name\": \"cirle\"",
       "coco.list:3:1: the label map has no \"cirle\" (did you mean \"circle\"?)"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.to);
    std::string text = good;
    ASSERT_NE(text.find(row.from), std::string::npos);
    text.replace(text.find(row.from), std::string(row.from).size(), row.to);
    folder.write("coco.list", text);
    expect_part(error_of([&] { folder.convert("coco", AnnotationFormat::coco, silent_log()); }),
                row.problem);
  }
  EXPECT_FALSE(std::filesystem::exists(folder.file("coco_db")));
  // A box of an image that is not in the file; SSD's map, whose names are COCO's numbers; a crowd.
  std::string text = good;
  text.replace(text.find("\"image_id\": 7"), 13, "\"image_id\": 9");
  text.replace(text.find("\"iscrowd\": 0, \"image_id\": 7"), 12, "\"iscrowd\": 1");
  folder.write("coco.list", text);
  folder.write("map",
               "item { name: \"10\" label: 4 } item { name: \"20\" label: 5 } "
               "item { name: \"30\" label: 6 }");
  Lines log;
  folder.convert("coco", AnnotationFormat::coco, log);
  expect_part(log.warnings.at(0), "coco.list: 1 of 4 boxes belong to images that it does not list");
  AnnotatedDatum record;
  open_lmdb(folder.file("coco_db"))->read(0, record);
  ASSERT_EQ(record.annotation_group_size(), 2);
  EXPECT_EQ(record.annotation_group(0).group_label(), 5);
  EXPECT_TRUE(record.annotation_group(0).annotation(0).bbox().difficult());
  EXPECT_FALSE(record.annotation_group(1).annotation(0).bbox().difficult());
}

// Only what boxes need is kept of a file, however deep or long the rest is.
TEST(Annotations, CocoFilesAreReadInPassing) {
  const Folder folder;
  std::string deep(100000, '[');
  deep += std::string(100000, ']');
  folder.write("file", cat("{\"licenses\": ", deep,
                           ", \"images\": [{\"id\": 1, \"file_name\": \"a\", "
                           "\"width\": 2, \"height\": 3, \"extra\": ",
                           deep,
                           "}], \"annotations\": "
                           "[], \"categories\": [{\"id\": 5, \"name\": \"x\"}]}"));
  const CocoFile file(folder.file("file"));
  ASSERT_EQ(file.pictures.size(), 1u);
  EXPECT_EQ(file.pictures[0].height, 3);
  EXPECT_EQ(file.categories.at(5), "x");
}

}  // namespace annotations_test
}  // namespace crema::tests
