// mosaic: four images with their boxes as one.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "data/databases/database_writer.h"
#include "fixtures.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema::tests {
namespace mosaic_test {

constexpr int kHeight = 48, kWidth = 64;

// Black, with a white rectangle of 20 x 16 pixels.
AnnotatedDatum record_of(int label, int channels = 1) {
  AnnotatedDatum record;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "type: BBOX datum { height: 48 width: 64 } annotation_group { annotation { bbox { xmin: 0.25 "
      "ymin: 0.25 xmax: 0.5625 ymax: 0.5833333 } } }",
      &record));
  record.mutable_annotation_group(0)->set_group_label(label);
  record.mutable_datum()->set_channels(channels);
  for (int i = 0; i < channels * kHeight * kWidth; ++i) {
    const int x = i % kWidth, y = i / kWidth % kHeight;
    const bool inside = x >= 16 && x < 36 && y >= 12 && y < 28;
    record.mutable_datum()->mutable_data()->push_back(inside ? '\xff' : '\0');
  }
  return record;
}

struct Layers {
  Layers() { write("boxes", {1, 1, 1, 1, 1, 1, 1}); }
  void write(const std::string& name, const std::vector<int>& channels) const {
    const auto writer = create_lmdb(folder.file(name));
    for (size_t i = 0; i < channels.size(); ++i) {
      const int label = static_cast<int>(i) + 1;
      writer->put(numbered_key(label, 8), record_of(label, channels[i]));
    }
    writer->finish();
  }
  std::unique_ptr<Layer> layer(const std::string& augment, Context& context, int threads = 1,
                               const std::string& database = "boxes") const {
    LayerParameter message;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        cat("name: \"d\" type: \"AnnotatedData\" top: \"data\" top: \"label\" data_param { source: "
            "\"",
            database, "\" backend: LMDB batch_size: 2 threads: ", threads,
            " } transform_param { augment { ", augment, " } }"),
        &message));
    std::unique_ptr<Layer> layer = make_layer(message, true, folder.path());
    layer->source()->open(context);
    layer->setup(context, {});
    return layer;
  }
  Folder folder;
};

struct Box {
  int image, label;
  float left, top, right, bottom;  // in pixels
  float area() const { return (right - left) * (bottom - top); }
  float aspect() const { return (right - left) / (bottom - top); }
};

struct Batch {
  std::vector<float> data;
  std::vector<Box> boxes;
};

Batch batch_of(Layer& layer, Context& context, uint64_t number) {
  Forward pass;
  pass.pass = number;
  layer.source()->reshapes(number);
  for (const Shape& shape : layer.infer({}).tops) pass.top.emplace_back(context, shape);
  layer.forward(context, pass);
  EXPECT_EQ(pass.top[0].shape(), Shape({2, 1, kHeight, kWidth}));
  Batch batch{to_floats(context, pass.top[0]), {}};
  const std::vector<float> rows = to_floats(context, pass.top[1]);
  for (size_t at = 0; at < rows.size() && rows[at] >= 0; at += 8) {
    batch.boxes.push_back({static_cast<int>(rows[at]), static_cast<int>(rows[at + 1]),
                           rows[at + 3] * kWidth, rows[at + 4] * kHeight, rows[at + 5] * kWidth,
                           rows[at + 6] * kHeight});
  }
  return batch;
}

TEST(Mosaic, BoxesFollowTheirObjects) {
  const Layers files;
  Context context(Device::cpu);
  const auto layer = files.layer("mosaic { least_visible: 0 }", context);
  size_t found = 0;
  std::vector<int> seen(8);
  for (uint64_t pass = 0; pass < 40; ++pass) {
    const Batch batch = batch_of(*layer, context, pass);
    float area[2] = {}, bright[2] = {};
    for (const Box& box : batch.boxes) {
      area[box.image] += box.area();
      ++seen[box.label];
    }
    for (int i = 0; i < 2 * kHeight * kWidth; ++i)
      bright[i / (kHeight * kWidth)] += batch.data[i] / 255;
    // Everything bright, and nothing else, is in the boxes.
    for (int i = 0; i < 2; ++i) EXPECT_NEAR(area[i], bright[i], 0.06f * bright[i] + 4) << pass;
    for (const Box& box : batch.boxes) {
      const auto x = static_cast<int>((box.left + box.right) / 2),
                 y = static_cast<int>((box.top + box.bottom) / 2);
      if (box.area() > 25) {
        EXPECT_GT(batch.data[(box.image * kHeight + y) * kWidth + x], 200) << pass;
      }
    }
    found += batch.boxes.size();
  }
  EXPECT_GT(found, 40u * 2 * 3);
  for (int label = 1; label <= 7; ++label) EXPECT_GT(seen[label], 10) << label;
}

TEST(Mosaic, ObjectsThatAreHardlySeenGo) {
  const Layers files;
  Context context(Device::cpu);
  const auto boxes = [&](const std::string& mosaic) {
    std::vector<Box> all;
    const auto layer = files.layer(mosaic, context);
    for (uint64_t pass = 0; pass < 30; ++pass) {
      for (const Box& box : batch_of(*layer, context, pass).boxes) all.push_back(box);
    }
    return all;
  };
  const std::vector<Box> any = boxes("mosaic { least_visible: 0 }"),
                         half = boxes("mosaic { least_visible: 0.5 }"),
                         whole = boxes("mosaic { least_visible: 1 }");
  EXPECT_GT(any.size(), half.size());
  EXPECT_GT(half.size(), whole.size());
  EXPECT_GT(whole.size(), 30u);
  for (const Box& box : whole) EXPECT_NEAR(box.aspect(), 1.25f, 0.06f);
  // With the point in the middle each image is halved.
  for (const Box& box : boxes("mosaic { least_center: 0.5 }")) EXPECT_NEAR(box.area(), 80, 1);
}

TEST(Mosaic, NeitherThreadsNorResumingChangeAnything) {
  const Layers files;
  Context context(Device::cpu);
  const std::string augment = "mosaic { probability: 0.7 } flip {} rotate {}";
  const auto one = files.layer(augment, context);
  std::vector<std::vector<float>> expected;
  for (uint64_t pass = 0; pass < 8; ++pass) expected.push_back(batch_of(*one, context, pass).data);
  const auto several = files.layer(augment, context, 4);
  for (uint64_t pass = 0; pass < 8; ++pass)
    EXPECT_EQ(batch_of(*several, context, pass).data, expected[pass]) << pass;
  EXPECT_EQ(batch_of(*files.layer(augment, context, 2), context, 5).data, expected[5]);
}

TEST(Mosaic, NamesTheRecordThatDoesNotFit) {
  const Layers files;
  files.write("mixed", {1, 1, 1, 1, 3, 1});
  Context context(Device::cpu);
  const auto layer = files.layer("mosaic {}", context, 1, "mixed");
  const std::string problem = error_of([&] {
    for (uint64_t pass = 0; pass < 2; ++pass) batch_of(*layer, context, pass);
  });
  expect_part(problem,
              "record 4 (key \"00000005\"): it has 3 channels, and the one it is to be joined "
              "with 1; give transform_param force_color or force_gray");
}

}  // namespace mosaic_test
}  // namespace crema::tests
