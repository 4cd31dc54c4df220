// SSD's programs as its scripts call them.
#include <gtest/gtest.h>

#include "data/images/image.h"
#include "tools/program.h"

#ifdef CREMA_OPENCV
#define NEEDS_IMAGES() static_cast<void>(0)
#else
#define NEEDS_IMAGES() GTEST_SKIP() << "built without OpenCV"
#endif

namespace crema::tests {
namespace ssd_tools_test {

// As create_list.sh calls it, and its variant for COCO.
TEST(SsdTools, SizesOfImages) {
  NEEDS_IMAGES();
  const Folder folder;
  folder.write("a.png", encode_image({3, 60, 50, std::vector<uint8_t>(9000, 7)}, "png"));
  folder.write("broken.jpg", "no picture");
  folder.write("both", "a.png 1\nbroken.jpg 2\n");
  folder.write("b.png", encode_image({1, 20, 30, std::vector<uint8_t>(600, 9)}, "png"));
  folder.write("list", "a.png a.xml\nb.png b.xml\n");
  EXPECT_EQ(run(folder, "get_image_size . list sizes.txt").code, 0);
  EXPECT_EQ(folder.read("sizes.txt"), "a 60 50\nb 20 30\n");
  folder.write("ids", "b 7\na 3\n");
  EXPECT_EQ(run(folder, "get_image_size --name_id_file=ids ./ list sizes.txt").code, 0);
  EXPECT_EQ(folder.read("sizes.txt"), "3 60 50\n7 20 30\n");
  folder.write("ids", "b 7\n");
  expect_part(run(folder, "get_image_size -name_id_file ids ./ list out").err,
              "list:1: ids has no id for a");
  expect_part(run(folder, "get_image_size ./ both out").err, "broken.jpg: ");
  EXPECT_FALSE(std::filesystem::exists(folder.file("out")));
}

TEST(SsdTools, BoxesAndClasses) {
  NEEDS_IMAGES();
  const Folder folder;
  folder.write("a.png", encode_image({3, 60, 60, std::vector<uint8_t>(10800, 7)}, "png"));
  folder.write("map", "item { name: \"cat\" label: 1 }");
  folder.write("boxes.txt", "1 0 0 30 30\n");
  folder.write("ssd", "a.png boxes.txt\n");
  folder.write("classes", "a.png 3\n");
  struct Row {
    const char* command;
    int code;
    const char* said;
  };
  const Row rows[] = {
      {"convert_annoset --anno_type=detection --label_type=txt --label_map_file=map "
       "--check_label=True --encode_type=png --encoded=True --gray=False ./ ssd ssd_db",
       0, "Processed 1 files"},
      {"convert_annoset -label_type jsn -label_map_file map ./ ssd db", 1,
       "there are xml, txt and json (did you mean \"json\"?); -anno_format coco"},
      {"convert_annoset -label_type txt -anno_format yolo -label_map_file map ./ ssd db", 1,
       "name two formats; keep one of them"},
      {"convert_annoset -anno_type classification ./ classes class_db", 0, "Processed 1 files"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.command);
    const Outcome outcome = run(folder, row.command);
    EXPECT_EQ(outcome.code, row.code);
    expect_part(outcome.err, row.said);
  }
}

}  // namespace ssd_tools_test
}  // namespace crema::tests
