// Pictures of filled boxes, and what each format of annotations says of them.
#pragma once

#include <google/protobuf/text_format.h>

#include <filesystem>

#include "data/convert/annotations/annotations.h"
#include "data/images/image.h"
#include "fixtures.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema::tests {

struct Drawn {
  const char* name;
  int label, left, top, right, bottom;  // in pixels of 64 x 32
};
inline const std::vector<std::vector<Drawn>> kDrawn = {
    {{"circle", 1, 2, 4, 18, 20}, {"square", 2, 30, 8, 62, 32}, {"circle", 1, 40, 0, 44, 6}},
    {},
    {{"traffic light", 3, 0, 0, 64, 32}}};
inline constexpr int kWide = 64, kHigh = 32;

// Pictures of filled boxes in images/, and what VOC, COCO, YOLO and SSD's two formats say of them.
struct Shapes : Folder {
  Shapes() {
    for (const char* name : {"images", "labels", "xml", "ssd"})
      std::filesystem::create_directories(file(name));
    std::string pictures, boxes, voc, plain, texts, jsons;
    for (size_t i = 0; i < kDrawn.size(); ++i) {
      Image image{1, kHigh, kWide, std::vector<uint8_t>(kHigh * kWide, 9)};
      std::string xml = cat("<annotation><size><width>", kWide, "</width><height>", kHigh,
                            "</height></size>"),
                  text, ssd, cut;
      for (const Drawn& d : kDrawn[i]) {
        for (int y = d.top; y < d.bottom; ++y) {
          for (int x = d.left; x < d.right; ++x)
            image.pixels[static_cast<size_t>(y * kWide + x)] = static_cast<uint8_t>(60 * d.label);
        }
        xml +=
            cat("<object><name>", d.name, "</name><bndbox><xmin>", d.left, "</xmin><ymin>", d.top,
                "</ymin><xmax>", d.right, "</xmax><ymax>", d.bottom, "</ymax></bndbox></object>");
        const int width = d.right - d.left, height = d.bottom - d.top;
        text += cat(d.label - 1, " ", (d.left + d.right) / 2.0 / kWide, " ",
                    (d.top + d.bottom) / 2.0 / kHigh, "\t", width / double{kWide}, " ",
                    height / double{kHigh}, " \r\n\n");
        ssd += cat(d.label, " ", d.left, "  ", d.top, ".0 ", d.right, "\t", d.bottom, "\r\n");
        cut += cat(cut.empty() ? "" : ",", "{\"bbox\": [", d.left, ", ", d.top, ".0, ", width, ", ",
                   height, "], \"category_id\": ", d.label, ", \"iscrowd\": 0, \"area\": 9}");
        boxes += cat(boxes.empty() ? "" : ",\n",
                     "{\"segmentation\": [[1, {\"id\": 2}]], \"id\": ", boxes.size(),
                     ", \"bbox\": [", d.left, ", ", d.top, ".0, ", width, ", ", height,
                     "], \"category_id\": ", 10 * d.label,
                     ", \"iscrowd\": 0, \"image_id\": ", 7 - i, "}");
      }
      write(cat("images/", i, ".png"), encode_image(image, "png"));
      write(cat("xml/", i, ".xml"), xml + "</annotation>");
      if (!text.empty()) write(cat("labels/", i, ".txt"), text);
      if (!ssd.empty()) write(cat("ssd/", i, ".txt"), ssd);
      write(cat("ssd/", i, ".json"),
            cat("{\"image\": {\"file_name\": \"", i, ".png\", \"width\": ", kWide,
                ", \"height\": ", kHigh, "}, \"annotation\": [", cut, "]}"));
      texts += cat("images/", i, ".png ssd/", i, ".txt\n");
      jsons += cat("images/", i, ".png ssd/", i, ".json\n");
      voc += cat("images/", i, ".png xml/", i, ".xml\n");
      plain += cat("images/", i, ".png\n");
      pictures += cat(i ? ", " : "", "{\"file_name\": \"images/", i, ".png\", \"height\": ", kHigh,
                      ", \"width\": ", kWide, ", \"id\": ", 7 - i, "}");
    }
    write("voc.list", voc);
    write("yolo.list", plain);
    write("text.list", texts);
    write("json.list", jsons);
    write("coco.list",
          cat("{\"info\": {\"a\": {\"b\": 1}}, \"images\": [", pictures, "],\n\"annotations\": [\n",
              boxes,
              "],\n\"categories\": [{\"id\": 30, \"name\": \"traffic light\"}, {\"id\": 10, "
              "\"name\": \"circle\"}, {\"name\": \"square\", \"id\": 20}]}\n"));
    write("names", "circle\nsquare\r\ntraffic light\n\n");
    create_label_map("", file("names"), file("map"), {.include_background = true}, silent_log());
  }
  ImagesetResult convert(const std::string& format, AnnotationFormat as, Log& log) const {
    return convert_annoset(path() + "/", file(format + ".list"), file("map"), true,
                           file(format + "_db"), {.encoded = true}, log, as);
  }
};

struct BoxBatch {
  std::vector<float> data, label;
};

// The first batch of the database, through an AnnotatedData layer.
inline BoxBatch batch(const Shapes& folder, const std::string& database) {
  LayerParameter message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      cat("name: \"d\" type: \"AnnotatedData\" top: \"data\" top: \"label\" data_param { source: "
          "\"",
          database, "\" backend: LMDB batch_size: 3 }"),
      &message));
  Context context(Device::cpu);
  const std::unique_ptr<Layer> layer = make_layer(message, false, folder.path());
  layer->source()->open(context);
  layer->setup(context, {});
  Forward pass;
  layer->source()->reshapes(0);
  for (const Shape& shape : layer->infer({}).tops) pass.top.emplace_back(context, shape);
  layer->forward(context, pass);
  return {to_floats(context, pass.top[0]), to_floats(context, pass.top[1])};
}

}  // namespace crema::tests
