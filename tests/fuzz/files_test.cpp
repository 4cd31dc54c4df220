// Lists, annotations and pictures.
#include <functional>

#include "data/convert/annotations/annotations.h"
#include "data/convert/annotations/class_numbers.h"
#include "data/convert/convert.h"
#include "data/convert/pickle.h"
#include "data/convert/table.h"
#include "data/databases/hdf5/hdf5_source.h"
#include "data/databases/hdf5/hdf5_writer.h"
#include "data/images/image.h"
#include "data/lists/image_list.h"
#include "data/lists/window_file.h"
#include "data/lists/xml.h"
#include "fuzz/checksums.h"
#include "fuzz/fuzz.h"
#include "layers/detection/detection_files.h"
#include "support.h"

namespace crema::tests {
namespace files_test {

std::vector<Files> lists(const std::vector<std::string>& texts) {
  std::vector<Files> corpus;
  for (const std::string& text : texts) corpus.push_back({{"list", text}});
  return corpus;
}

void damage_list(Dice& dice, Files& files, const Files& other) {
  damage_text(
      dice, files["list"],
      {"a.png", "\n", " ", "\t", "\r\n", "#", "# 0\n", "\xEF\xBB\xBF", "list", ",", "\"", ";"},
      other.at("list"));
}

TEST(Fuzz, ImageLists) {
  using Reader = std::function<void(const std::string&)>;
  static const std::vector<Reader> readers = {
      [](const std::string& path) { read_labelled_list(path); },
      [](const std::string& path) { read_class_list(path); },
      [](const std::string& path) { read_table(path, {"0"}); },
      [](const std::string& path) { read_pair_list(path); },
      [](const std::string& path) {
        read_boxed_list(path, [&](const std::string&) { return path; });
      },
      [](const std::string& path) { read_path_list(path); },
      [](const std::string& path) { read_name_size_file(path); }};
  fuzz({"image list",
        [] {
          return lists({"a.png 0\nb c.png 1\n", "a.png 0 1.5 2\nb.png 3 4 -5\n",
                        "a.png b.png\nc.png d.png\n", "1 2 3 4 5\n6 7 8 9 10\n",
                        "a 10 20\nb 30 40\n", "path,y\n\"a, \"\"b\"\".png\",1\nc.png,2.5\n",
                        "x;\"y z\"\n1;2\n-3;4e5\n", golden("formats/list.txt")});
        },
        damage_list,
        [](const std::string& folder, const Files&) {
          // All of them: the last problem is the answer, unless one takes the text.
          std::string problem;
          size_t accepted = 0;
          for (const Reader& read : readers) {
            try {
              read(folder + "/list");
              ++accepted;
            } catch (const Error& error) {
              problem = error.what();
            }
          }
          require(accepted > 0, problem);
        }});
}

TEST(Fuzz, WindowFiles) {
  fuzz({"window file",
        [] {
          return lists({"# 0\na.png\n3\n9\n10\n2\n1 0.9 0 0 5 5\n0 0.1 2 2 9 8\n",
                        "# 0\na.png\n1\n9\n10\n0\n# 1\nb.png\n1 9 10\n1\n2 1.0 1 1 3 3\n"});
        },
        damage_list,
        [](const std::string& folder, const Files&) {
          read_window_file(folder + "/list", {0.5f, 0.3f});
        }});
}

TEST(Fuzz, WindowFilesWithMasks) {
  fuzz({"window file with masks",
        [] {
          return lists({"# 0\na.png\n2\nm.png\nn.png\n3\n9\n10\n1\n1 0.9 0 0 5 5\n",
                        "# 0\na.png\n1 m.png\n1 9 10\n0\n# 1\nb.png\n1 n.png\n1 9 10\n1\n"
                        "2 0.4 1 1 3 3\n"});
        },
        damage_list,
        [](const std::string& folder, const Files&) {
          read_window_file(folder + "/list", {0.5f, 0.3f, true, true});
        }});
}

const char* const kXml =
    "<?xml version=\"1.0\"?>\n<annotation><!-- a comment "
    "-->\n<size><width>10</width><height>8</height>"
    "<depth>3</depth></size>\n<object><name>cat</name><difficult>0</difficult><bndbox><xmin>1</"
    "xmin>"
    "<ymin>2</ymin><xmax>5.5</xmax><ymax>6</ymax></bndbox></object>\n<object><name>dog</name>"
    "<bndbox><xmin>0</xmin><ymin>0</ymin><xmax>10</xmax><ymax>8</ymax></bndbox></object></"
    "annotation>\n";
const char* const kLabels =
    "item { name: \"none_of_the_above\" label: 0 display_name: \"background\" }\n"
    "item { name: \"cat\" label: 1 display_name: \"cat\" }\nitem { name: \"dog\" label: 2 }\n";

TEST(Fuzz, Xml) {
  fuzz({"xml",
        [] {
          return lists({kXml, "<a b='c'/>", "<a>text &lt;</a>"});
        },
        [](Dice& dice, Files& files, const Files& other) {
          damage_text(dice, files["list"],
                      {"<",   ">",         "</",     "/>",     "<!--",  "-->",          "<?",
                       "?>",  "<![CDATA[", "]]>",    "&lt;",   "&#65;", "&#xffffffff;", "&",
                       "<a>", "</a>",      "object", "bndbox", "xmin",  "size"},
                      other.at("list"));
          if (dice.one_in(200)) {
            std::string nest;
            for (size_t i = dice.below(100000); i > 0; --i) nest += "<a>";
            files["list"] = nest + files["list"];
          }
        },
        [](const std::string& folder, const Files&) { read_xml(folder + "/list"); }});
}

TEST(Fuzz, LabelMaps) {
  fuzz({"label map", [] { return lists({kLabels}); },
        [](Dice& dice, Files& files, const Files& other) {
          damage_text(dice, files["list"], {"item", "name", "label", "display_name", "cat"},
                      other.at("list"));
        },
        [](const std::string& folder, const Files&) { read_label_map(folder + "/list"); }});
}

// Boxes of COCO, in one file, and of YOLO, next to the pictures.
TEST(Fuzz, BoxesOfCocoAndYolo) {
  fuzz({"boxes",
        [] {
          return std::vector<Files>{
              {{"coco",
                "{\"images\": [{\"id\": 1, \"file_name\": \"a\", \"width\": 9, \"height\": "
                "8}],\n\"annotations\": [{\"image_id\": 1, \"category_id\": 2, \"bbox\": [1, "
                "2, 3.5, 4], \"iscrowd\": 0, \"segmentation\": [[1, 2]]}],\n\"categories\": "
                "[{\"id\": 2, \"name\": \"cat\"}]}"}},
              {{"yolo", "a.png a.txt\nimages/b.png\n"},
               {"a.txt", "0 0.5 .5 0.25 1\n1 .1 .1 .2 .2\n"}}};
        },
        [](Dice& dice, Files& files, const Files& other) {
          const auto file =
              std::next(files.begin(), static_cast<int64_t>(dice.below(files.size())));
          damage_text(dice, file->second,
                      {"{", "}", "[", "]", ":", ",", "\"", "null", "true", "1e999", "-1", "nan",
                       "99999999999999999999", "\\u0000", "images", "bbox", "id"},
                      other.count(file->first) > 0 ? other.at(file->first) : file->second);
        },
        [](const std::string& folder, const Files& files) {
          const Folder map;
          map.write("labels", kLabels);
          const ClassNumbers labels(map.file("labels"), true);
          const auto boxes =
              files.count("coco") > 0
                  ? coco_annotations(folder + "/coco", labels, silent_log())
                  : yolo_annotations(folder + "/",
                                     read_yolo_list(folder + "/", folder + "/yolo", silent_log()),
                                     labels);
          for (const ListedImage& image : boxes->images()) {
            AnnotatedDatum record;
            boxes->annotate(image, {}, record, silent_log());
          }
        }});
}

#ifdef CREMA_OPENCV
// List, label map, annotation and picture together.
TEST(Fuzz, Annotations) {
  fuzz({"annoset",
        [] {
          return std::vector<Files>{{{"list", "a.png a.xml\n"},
                                     {"labels", kLabels},
                                     {"a.xml", kXml},
                                     {"a.png", golden("formats/images/img00.png")}}};
        },
        [](Dice& dice, Files& files, const Files& other) {
          static const std::vector<std::string> names = {"a.xml",  "a.xml", "a.xml",
                                                         "labels", "list",  "a.png"};
          const std::string& name = dice.pick(names);
          if (name == "a.png") return damage_bytes(dice, files[name], other.at(name));
          damage_text(dice, files[name],
                      {"xmin", "nan", "inf", "1e39", "-1", "cat", "label", "99999999999"},
                      other.at(name));
        },
        [](const std::string& folder, const Files&) {
          const Folder out;
          ImagesetOptions options;
          options.encoded = true;
          convert_annoset(folder + "/", folder + "/list", folder + "/labels", true, out.file("db"),
                          options, silent_log());
        }});
}

TEST(Fuzz, Pickles) {
  fuzz({"pickle",
        [] {
          std::vector<Files> corpus;
          for (const int protocol : {2, 3, 4, 5})
            corpus.push_back({{"pickle", golden(cat("pickles/protocol_", protocol))}});
          return corpus;
        },
        [](Dice& dice, Files& files, const Files& other) {
          damage_bytes(dice, files["pickle"], other.at("pickle"));
        },
        [](const std::string& folder, const Files&) {
          const Pickle pickle(folder + "/pickle");
          pickle.bytes("data");
          pickle.integers("labels");
        }});
}

TEST(Fuzz, Images) {
  fuzz({"image",
        [] {
          std::vector<Files> corpus;
          for (const char* name : {"img00.png", "img03.jpg", "img04.png", "img13.png", "img19.bmp"})
            corpus.push_back({{"image", golden(cat("formats/images/", name))}});
          Image image{3, 6, 5, std::vector<uint8_t>(90, 77)};
          for (const char* kind : {"ppm", "tiff", "webp"}) {
            try {
              corpus.push_back({{"image", encode_image(image, kind)}});
            } catch (const Error&) {  // not in this build of the library
            }
          }
          return corpus;
        },
        [](Dice& dice, Files& files, const Files& other) {
          damage_bytes(dice, files["image"], other.at("image"));
          if (dice.one_in(2) && starts_with(files["image"], "\x89PNG")) mend_png(files["image"]);
        },
        [](const std::string&, const Files& files) {
          const std::string& bytes = files.at("image");
          Image image;
          decode_image(bytes, bytes.size() % 2 == 0 ? Color::color : Color::as_stored, image);
          require(image.pixels.size() ==
                      static_cast<size_t>(image.channels * image.height * image.width),
                  "half an image");
        }});
}
#endif

TEST(Fuzz, Hdf5Data) {
  fuzz({"hdf5 data",
        [] {
          const Folder folder;
          Hdf5Writer file(folder.file("a.h5"));
          std::vector<float> values(60, 0.5f);
          file.floats("data", {5, 3, 2, 2}, values.data());
          file.floats("label", {5}, values.data());
          file.group("more");
          file.text("more/text", "five");
          file.commit();
          return std::vector<Files>{{{"list", "a.h5\n"}, {"a.h5", folder.read("a.h5")}}};
        },
        [](Dice& dice, Files& files, const Files& other) {
          if (dice.one_in(20)) return damage_list(dice, files, other);
          damage_bytes(dice, files["a.h5"], other.at("a.h5"));
        },
        [](const std::string& folder, const Files&) {
          Hdf5Source source(folder + "/list", {"data", "label"});
          for (int64_t i = 0; i < std::min<int64_t>(source.rows(), 20); ++i) {
            const int64_t index = i % 2 == 1 ? source.shuffled(i, {1, 1}) : i;
            volatile float sum = 0;
            for (int set = 0; set < 2; ++set) {
              const Hdf5Blocks::Values at = source.at(source.locate(index), set);
              for (int64_t k = 0; k < std::min<int64_t>(source.row_shape(set).count(), 1000); ++k)
                sum = sum + at[k];
            }
          }
        }});
}

}  // namespace files_test
}  // namespace crema::tests
