#include <gtest/gtest.h>

#include <filesystem>

#include "data/convert/convert.h"
#include "fixtures.h"

namespace crema::tests {
namespace convert_annoset_test {

constexpr const char* kVoc = R"(<?xml version="1.0"?>
<!-- made by hand -->
<annotation verified="yes"><filename>a</filename>
  <size><width>10</width><height>12</height><depth>3</depth></size>
  <object><name>cat</name><part><name>head</name><bndbox><xmin>9</xmin></bndbox></part>
    <difficult>1</difficult>
    <bndbox><xmin>1</xmin><ymin>3</ymin><xmax>5</xmax><ymax>6</ymax></bndbox></object>
  <object><name>dog</name><bndbox><xmin>0</xmin><ymin>0</ymin><xmax>10</xmax><ymax>12</ymax>
    </bndbox></object>
  <object><name>c&#97;t</name><bndbox><xmin>2.5</xmin><ymin>0</ymin><xmax>5</xmax><ymax>12</ymax>
    </bndbox></object><segmented/>
</annotation>
)";
constexpr const char* kLabelMap =
    "item { name: \"none\" label: 0 } item { name: \"cat\" label: 8 } item { name: \"dog\" label: "
    "3 }";

TEST(Annoset, StoresBoxesByClass) {
  NEEDS_IMAGES();
  const Folder folder;
  folder.write("a.xml", kVoc);
  folder.write("map", kLabelMap);
  std::filesystem::copy(formats() + "/images/img00.png", folder.file("a.png"));
  folder.write("list", "a.png a.xml\n");
  const ImagesetResult result =
      convert_annoset(folder.path() + "/", folder.file("list"), folder.file("map"), false,
                      folder.file("db"), {.encoded = true}, silent_log());
  EXPECT_EQ(result.written, 1);
  const auto source = open_lmdb(folder.file("db"));
  EXPECT_EQ(source->key(0), "00000000_a.png");
  AnnotatedDatum record;
  source->read(0, record);
  EXPECT_EQ(record.type(), AnnotatedDatum::BBOX);
  EXPECT_EQ(record.datum().data(), folder.read("a.png"));
  ASSERT_EQ(record.annotation_group_size(), 2);
  EXPECT_EQ(record.annotation_group(0).group_label(), 8);
  EXPECT_EQ(record.annotation_group(1).group_label(), 3);
  ASSERT_EQ(record.annotation_group(0).annotation_size(), 2);
  const NormalizedBBox& first = record.annotation_group(0).annotation(0).bbox();
  EXPECT_EQ(first.xmin(), 0.1f);
  EXPECT_EQ(first.ymin(), 0.25f);
  EXPECT_EQ(first.xmax(), 0.5f);
  EXPECT_EQ(first.ymax(), 0.5f);
  EXPECT_TRUE(first.difficult());
  EXPECT_EQ(record.annotation_group(0).annotation(1).instance_id(), 1);
  EXPECT_EQ(record.annotation_group(0).annotation(1).bbox().xmin(), 0.25f);
}

TEST(Annoset, SaysWhatIsWrong) {
  NEEDS_IMAGES();
  const Folder folder;
  std::filesystem::copy(formats() + "/images/img00.png", folder.file("a.png"));
  folder.write("good.xml", kVoc);
  folder.write("list", "a.png a.xml\na.png good.xml\n");
  const auto first_error = [&](const std::string& from, const std::string& to) {
    std::string text = kVoc;
    text.replace(text.find(from), from.size(), to);
    folder.write("a.xml", text);
    folder.write("map", kLabelMap);
    std::filesystem::remove_all(folder.file("db"));
    Lines log;
    EXPECT_EQ(convert_annoset(folder.path() + "/", folder.file("list"), folder.file("map"), false,
                              folder.file("db"), {}, log)
                  .skipped,
              1);
    return log.errors.at(0);
  };
  expect_part(first_error("cat", "cap"),
              "a.xml: the label map has no \"cap\" (did you mean \"cat\"?)");
  expect_part(first_error("cat", "&lt;R&amp;D&gt;"), "a.xml: the label map has no \"<R&D>\"");
  expect_part(first_error("</object>", "</objet>"), "a.xml:7:80: Start-end tags mismatch");
  expect_part(first_error("</annotation>", ""), "a.xml:12:1: Start-end tags mismatch");
  expect_part(first_error("<size>", "<sizes>"), "a.xml:4:64: Start-end tags mismatch");
  expect_part(first_error("<width>10", "<width>"), "<size> needs a number as <width>, not ``");
  expect_part(first_error("<width>10", "<width>inf"), "<width> of a <size> is inf, farther out");
  expect_part(first_error("<xmin>1", "<xmin>nan"), "a.xml: <xmin> of a <bndbox> is nan, farther");
  expect_part(first_error("<ymax>6", "<ymax>9223372036854775808"), "<ymax> of a <bndbox> is 922");
  expect_part(first_error("<ymax>6", "<ymax>1e99"), "<bndbox> needs a number as <ymax>");
  folder.write("map", "item: 3");
  expect_part(error_of([&] {
                convert_annoset("", folder.file("list"), folder.file("map"), false,
                                folder.file("db2"), {}, silent_log());
              }),
              "map:1:7: Expected \"{\", found \"3\".; is not a label map: item {");
}

TEST(Annoset, ChecksTheLabelMapIfAsked) {
  NEEDS_IMAGES();
  const Folder folder;
  std::filesystem::copy(formats() + "/images/img00.png", folder.file("a.png"));
  folder.write("a.xml", kVoc);
  folder.write("list", "a.png a.xml\n");
  const auto convert = [&](const std::string& more, bool check) {
    folder.write("map", kLabelMap + more);
    std::filesystem::remove_all(folder.file("db"));
    convert_annoset(folder.path() + "/", folder.file("list"), folder.file("map"), check,
                    folder.file("db"), {}, silent_log());
  };
  const std::string same_name = "item { name: \"cat\" label: 8 }",
                    same_number = "item { name: \"cow\" label: 8 }",
                    other_number = "item { name: \"cat\" label: 9 }";
  convert("", true);
  convert(same_name, false);
  convert(same_number, false);
  expect_part(error_of([&] { convert(same_name, true); }), "map: names \"cat\" twice");
  expect_part(error_of([&] { convert(same_number, true); }),
              "map: gives 8 to \"cat\" and to \"cow\"");
  expect_part(error_of([&] { convert(other_number, false); }), "twice, for 8 and 9");
}

// As SSD's converter: first no smaller than min_dim, then no larger than max_dim.
TEST(Annoset, LimitsTheSidesOfImages) {
  NEEDS_IMAGES();
  const Folder folder;
  folder.write("a.png", encode_image({1, 20, 50, std::vector<uint8_t>(1000, 9)}, "png"));
  folder.write("a.xml", kVoc);
  folder.write("map", kLabelMap);
  folder.write("list", "a.png a.xml\n");
  struct Row {
    int64_t min_dim, max_dim;
    int height, width;
  };
  const Row rows[] = {
      {0, 0, 20, 50},   {10, 0, 20, 50},  {40, 0, 40, 100}, {0, 60, 20, 50}, {0, 25, 10, 25},
      {40, 75, 30, 75}, {30, 50, 20, 50}, {0, 1, 1, 1},     {33, 0, 33, 82},  // 82.5 goes to the
                                                                              // even one
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(cat(row.min_dim, " to ", row.max_dim));
    std::filesystem::remove_all(folder.file("db"));
    // The size that would be is not looked at.
    ImagesetOptions options{.resize_height = 7, .resize_width = 7};
    options.min_dim = row.min_dim;
    options.max_dim = row.max_dim;
    if (row.min_dim == 0 && row.max_dim == 0) options.resize_height = 0;
    convert_annoset(folder.path() + "/", folder.file("list"), folder.file("map"), false,
                    folder.file("db"), options, silent_log());
    AnnotatedDatum record;
    open_lmdb(folder.file("db"))->read(0, record);
    EXPECT_EQ(record.datum().height(), row.height);
    EXPECT_EQ(record.datum().width(), row.width);
  }
}

}  // namespace convert_annoset_test
}  // namespace crema::tests
