#include "data/transforms/transform.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <set>

#include "base/files.h"
#include "data/convert/compute_mean.h"
#include "data/databases/hdf5/hdf5_file.h"
#include "fixtures.h"
#include "layers/layer.h"
#include "proto/blob.pb.h"
#include "proto/layer.pb.h"
#include "proto/net.pb.h"

namespace crema::tests {
namespace transform_test {

TransformationParameter parameter(const std::string& text) {
  TransformationParameter message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message));
  return message;
}

// Channel c, row y, column x has the value 100 c + 10 y + x.
Record ramp(int channels, int height, int width) {
  Record record;
  record.datum.set_channels(channels);
  record.datum.set_height(height);
  record.datum.set_width(width);
  for (int c = 0; c < channels; ++c) {
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x)
        record.datum.mutable_data()->push_back(static_cast<char>(100 * c + 10 * y + x));
    }
  }
  decode(record, Color::as_stored);
  return record;
}

std::vector<float> transformed(const std::string& text, bool training, const Record& record,
                               const Draw& draw) {
  const Transform transform(parameter(text), training, "", silent_log());
  std::vector<float> out(transform.output(record.shape()).count());
  transform.apply(record, draw, out.data());
  return out;
}

// Everything that Data and ImageData layers put out in the reference cases, in phase TEST.
TEST(Transform, ReferenceValues) {
  const Folder folder;
  int cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(formats())) {
    const std::string path = entry.path().string(), stem = entry.path().stem().string();
    if (!starts_with(stem, "transform_") || entry.path().extension() != ".prototxt") continue;
    NetParameter net;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(read_file(path), &net)) << path;
    LayerParameter& message = *net.mutable_layer(0);
    SCOPED_TRACE(stem);
#ifndef CREMA_OPENCV
    if (message.data_param().source().find("encoded") != std::string::npos) continue;
    if (message.type() != "Data") continue;
#endif
    DataParameter& data = *message.mutable_data_param();
    if (message.type() == "Data" && data.backend() == DataParameter::LEVELDB) {
#ifndef CREMA_LEVELDB
      continue;
#endif
      data.set_source(folder.copy_golden("formats/" + data.source(), data.source()));
    }
    Context context(Device::cpu);
    const std::unique_ptr<Layer> layer = make_layer(message, false, formats());
    layer->source()->open(context);
    layer->setup(context, {});
    ASSERT_EQ(layer->infer({}).tops.size(), 2u);
    Forward pass;
    const Hdf5File expected(formats() + "/" + stem + ".h5");
    for (pass.pass = 0; expected.has(cat("data/", pass.pass)); ++pass.pass) {
      layer->source()->reshapes(pass.pass);
      pass.top.clear();
      for (const Shape& shape : layer->infer({}).tops) pass.top.emplace_back(context, shape);
      layer->forward(context, pass);
      const std::string batch = std::to_string(pass.pass);
      EXPECT_EQ(pass.top[0].shape(), expected.shape("data/" + batch));
      EXPECT_EQ(to_floats(context, pass.top[0]), expected.floats("data/" + batch)) << batch;
      EXPECT_EQ(to_floats(context, pass.top[1]), expected.floats("label/" + batch)) << batch;
    }
    EXPECT_GE(pass.pass, 3u);
    ++cases;
  }
  EXPECT_GE(cases, 9);
}

TEST(Transform, CropIsRandomInTrainingAndCentralInTest) {
  const Record record = ramp(1, 6, 8);
  EXPECT_EQ(transformed("crop_size: 3", false, record, {{1, 7, 7, 7}})[0], 10 * 1 + 2);
  std::set<float> corners;
  for (uint64_t i = 0; i < 300; ++i)
    corners.insert(transformed("crop_size: 3", true, record, Random{1, 2}.four(i))[0]);
  EXPECT_EQ(corners.size(), 4u * 6u);
  EXPECT_EQ(*corners.rbegin(), 10 * 3 + 5);
}

TEST(Transform, MirrorTossesACoinInBothPhases) {
  const Record record = ramp(2, 2, 3);
  const std::vector<float> plain = {0, 1, 2, 10, 11, 12, 100, 101, 102, 110, 111, 112};
  const std::vector<float> mirrored = {2, 1, 0, 12, 11, 10, 102, 101, 100, 112, 111, 110};
  for (const bool training : {false, true}) {
    EXPECT_EQ(transformed("mirror: true", training, record, {{0, 0, 0, 0}}), plain);
    EXPECT_EQ(transformed("mirror: true", training, record, {{1, 0, 0, 0}}), mirrored);
    EXPECT_EQ(transformed("", training, record, {{1, 0, 0, 0}}), plain);
  }
}

TEST(Transform, MeanImageIsCroppedWithTheImageAndMirroredWithIt) {
  const Folder folder;
  Mean mean;
  mean.shape = {1, 2, 3};
  mean.values = {0, 1, 2, 10, 11, 12};
  write_mean(mean, folder.file("mean.binaryproto"));
  const std::string text =
      "mirror: true crop_size: 2 scale: 0.5 mean_file: \"" + folder.file("mean.binaryproto") + "\"";
  for (uint64_t i = 0; i < 20; ++i) {
    for (const float value : transformed(text, true, ramp(1, 2, 3), Random{1, 2}.four(i)))
      EXPECT_EQ(value, 0);
  }
}

TEST(Transform, FloatValuesAndInterleavedPixels) {
  Record record = ramp(3, 2, 2);
  std::vector<float> values;
  for (int i = 0; i < 12; ++i) values.push_back(static_cast<float>(record.bytes[i]));
  const std::string text = "mean_value: 1 mean_value: 2 mean_value: 3 scale: 0.25";
  const std::vector<float> expected = transformed(text, false, record, {{0, 0, 0, 0}});
  EXPECT_EQ(expected[5], (101 - 2) * 0.25f);
  std::vector<uint8_t> pixels;
  for (int i = 0; i < 4; ++i) {
    for (int c = 0; c < 3; ++c) pixels.push_back(record.bytes[c * 4 + i]);
  }
  record.bytes = pixels.data();
  record.interleaved = true;
  EXPECT_EQ(transformed(text, false, record, {{0, 0, 0, 0}}), expected);
  record.bytes = nullptr;
  record.values = values.data();
  record.interleaved = false;
  EXPECT_EQ(transformed(text, false, record, {{0, 0, 0, 0}}), expected);
}

struct PadRow {
  const char* fields;
  bool training;
  Draw draw;
  std::vector<float> expected;
};

// Of ramp(1, 2, 3): 0 1 2, 10 11 12.
const PadRow kPadRows[] = {
    {"pad: 1", false, {}, {0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 10, 11, 12, 0, 0, 0, 0, 0, 0}},
    {"pad: 1 pad_mode: REFLECT", false, {}, {11, 10, 11, 12, 11, 1, 0, 1, 2, 1,
                                             11, 10, 11, 12, 11, 1, 0, 1, 2, 1}},
    // Zeros are of the result, which has no mean in it.
    {"pad: 1 crop_h: 1 crop_w: 5 mean_value: 2 scale: 2", false, {}, {0, -4, -2, 0, 0}},
    // The last of four rows and of three columns.
    {"pad: 1 crop_h: 1 crop_w: 3 pad_mode: REFLECT", true, {{{0, ~0u, ~0u, 0}}}, {1, 2, 1}},
    {"pad: 1 crop_h: 2 crop_w: 3 mirror: true", true, {{{1, 0, 0, 0}}}, {0, 0, 0, 1, 0, 0}},
    {"mirror: true mirror_alternates: true", true, {{{1, 0, 0, 0}}, 2}, {0, 1, 2, 10, 11, 12}},
    {"mirror: true mirror_alternates: true", true, {{{0, 0, 0, 0}}, 3}, {2, 1, 0, 12, 11, 10}},
};

TEST(Transform, PadsAndMirrorsInTurns) {
  const Record record = ramp(1, 2, 3);
  for (const PadRow& row : kPadRows) {
    SCOPED_TRACE(row.fields);
    EXPECT_EQ(transformed(row.fields, row.training, record, row.draw), row.expected);
  }
  const Random of_epoch{1, 2}, all{3, 4};
  int ones = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    const Draw first(of_epoch, all, i, 0), second(of_epoch, all, i, 1);
    EXPECT_NE(first.alternating & 1, second.alternating & 1);
    ones += static_cast<int>(first.alternating & 1);
  }
  EXPECT_NEAR(ones, 500, 60);
  expect_part(error_of([&] { transformed("pad: 2", false, record, Draw()); }), "pads 2 rows");
  expect_part(error_of([&] { transformed("mirror_alternates: true", false, record, Draw()); }),
              "mirror is false");
}

struct GrayRow {
  const char* name;
  const char* fields;
  bool training;
  uint32_t mirror, top, left;  // the words that are drawn
  std::vector<float> expected;
};

// Of ramp(3, 2, 3): red first, 0.299 v + 0.587 (100 + v) + 0.114 (200 + v) = v + 81.5, with v = 10 y
// + x; blue first it is v + 118.5.
const GrayRow kGrayRows[] = {
    {"rgb", "gray: RGB", false, 0, 0, 0, {81.5f, 82.5f, 83.5f, 91.5f, 92.5f, 93.5f}},
    {"bgr", "gray: BGR", false, 0, 0, 0, {118.5f, 119.5f, 120.5f, 128.5f, 129.5f, 130.5f}},
    {"mirrored",
     "gray: RGB mirror: true",
     true,
     1,
     0,
     0,
     {83.5f, 82.5f, 81.5f, 93.5f, 92.5f, 91.5f}},
    // The last of the two places from top and left, each.
    {"cropped", "gray: BGR crop_h: 1 crop_w: 2", true, 0, ~0u, ~0u, {129.5f, 130.5f}},
    {"cropped_and_mirrored",
     "gray: BGR crop_h: 1 crop_w: 2 mirror: true",
     true,
     1,
     ~0u,
     ~0u,
     {130.5f, 129.5f}},
    {"scaled", "gray: RGB mean_value: 1.5 scale: 0.5 crop_h: 1 crop_w: 1", false, 0, 0, 0, {40.5f}},
    // Means of three channels become grey, too: 0.299 10 + 0.587 20 + 0.114 30.
    {"means",
     "gray: RGB mean_value: 10 mean_value: 20 mean_value: 30 crop_h: 1 crop_w: 1",
     false,
     0,
     0,
     0,
     {82.5f - 18.15f}},
};

TEST(Transform, MakesGrayOfThreeChannels) {
  const Record record = ramp(3, 2, 3);
  for (const GrayRow& row : kGrayRows) {
    SCOPED_TRACE(row.name);
    const std::vector<float> out =
        transformed(row.fields, row.training, record, {{row.mirror, row.top, row.left, 0}});
    ASSERT_EQ(out.size(), row.expected.size());
    for (size_t i = 0; i < out.size(); ++i) EXPECT_FLOAT_EQ(out[i], row.expected[i]);
  }
}

TEST(Transform, GrayIsTheSameOfEveryFormOfRecord) {
  const Folder folder;
  Record record = ramp(3, 2, 3);
  std::vector<float> values;
  std::vector<uint8_t> pixels;
  for (int i = 0; i < 18; ++i) {
    values.push_back(static_cast<float>(record.bytes[i]));
    pixels.push_back(record.bytes[i % 3 * 6 + i / 3]);
  }
  // The mean image is the record itself: nothing is left of it.
  write_mean({{3, 2, 3}, values}, folder.file("mean"));
  write_mean({{1, 2, 3}, {81, 82, 83, 91, 92, 93}}, folder.file("gray_mean"));
  const std::vector<float> nothing(6, 0.f), halves(6, 0.5f);
  const std::string colour = "gray: RGB mean_file: \"" + folder.file("mean") + "\"",
                    gray = "gray: RGB mean_file: \"" + folder.file("gray_mean") + "\"";
  const auto check = [&] {
    EXPECT_EQ(transformed(colour, false, record, {{0, 0, 0, 0}}), nothing);
    EXPECT_EQ(transformed(gray, false, record, {{0, 0, 0, 0}}), halves);
  };
  check();
  record.bytes = pixels.data();
  record.interleaved = true;
  check();
  record.bytes = nullptr;
  record.values = values.data();
  record.interleaved = false;
  check();
  // One channel is grey already.
  EXPECT_EQ(transformed("gray: BGR", false, ramp(1, 1, 2), {{0, 0, 0, 0}}),
            (std::vector<float>{0, 1}));
}

TEST(Transform, ScaleFollowsTheMeanAsInCaffe) {
  // x / 255 - 0.5, as Caffe's files write it.
  const Record record = ramp(1, 2, 3);
  const std::vector<float> out =
      transformed("mean_value: 127.5 scale: 0.00392157", false, record, {{0, 0, 0, 0}});
  for (size_t i = 0; i < out.size(); ++i)
    EXPECT_NEAR(out[i], static_cast<float>(record.bytes[i]) / 255 - 0.5f, 1e-6f);
}

TEST(Transform, CropsNeedNotBeSquare) {
  const Record record = ramp(1, 6, 8);
  const std::vector<float> out = transformed("crop_h: 2 crop_w: 4", false, record, {{0, 0, 0, 0}});
  EXPECT_EQ(out, (std::vector<float>{22, 23, 24, 25, 32, 33, 34, 35}));
  expect_part(error_of([&] {
                transformed("crop_h: 2", false, record, {{0, 0, 0, 0}});
              }),
              "only one side");
}

TEST(Transform, SaysWhatIsWrong) {
  const auto setting = [&](const std::string& text) {
    return error_of([&] { Transform(parameter(text), true, formats(), silent_log()); });
  };
  expect_part(setting("force_color: true force_gray: true"), "both force_color and force_gray");
  expect_part(setting("mean_file: \"mean.binaryproto\" mean_value: 1"),
              "both mean_file and mean_value");
  expect_part(setting("gray: RGB is_flow: true"), "both gray and flow");
  const auto order = [&](const std::string& text) {
    return error_of(
        [&] { Transform(parameter(text), true, "", silent_log()).check_order_of_decoded(); });
  };
  for (const char* right : {"gray: BGR", "gray: RGB bgr2rgb: true", ""})
    Transform(parameter(right), true, "", silent_log()).check_order_of_decoded();
  expect_part(order("gray: RGB"), "gray: RGB, but decoded images have blue first; write gray: BGR");
  expect_part(order("gray: BGR color_order: RGB"), "red first here (bgr2rgb, color_order)");
  expect_part(setting("mean_file: \"nowhere\""), "nowhere: cannot open");
  expect_part(setting("mean_file: \"list.txt\""), "is not a mean file");
  const auto record = [&](const std::string& text) {
    return error_of([&] { transformed(text, true, ramp(3, 4, 4), {{0, 0, 0, 0}}); });
  };
  expect_part(record("crop_size: 5"), "too small for a crop of 5x5");
  expect_part(record("mean_value: 1 mean_value: 2"), "3 channels, but there are 2 mean_value");
  expect_part(error_of([&] {
                transformed("gray: RGB", true, ramp(2, 4, 4), {{0, 0, 0, 0}});
              }),
              "makes one channel of three, but the image has 2");
  expect_part(record("mean_file: \"" + formats() + "/mean.binaryproto\""), "is 3x12x10");
}

TEST(Transform, TurnsTheXComponentOfFlowRoundWithTheImage) {
  const Record flow = ramp(2, 1, 2);
  const std::vector<float> mirrored = {255 - 1, 255, 101, 100};
  EXPECT_EQ(transformed("mirror: true is_flow: true", true, flow, {{1, 0, 0, 0}}), mirrored);
  EXPECT_EQ(transformed("mirror: true flow: true", false, flow, {{1, 0, 0, 0}}), mirrored);
  EXPECT_EQ(transformed("mirror: true is_flow: true", true, flow, {{0, 0, 0, 0}}),
            (std::vector<float>{0, 1, 100, 101}));
  EXPECT_EQ(transformed("mirror: true is_flow: true mean_value: 100 mean_value: 1", true, flow,
                        {{1, 0, 0, 0}}),
            (std::vector<float>{154, 155, 100, 99}));
}

TEST(Mean, IsWhatCaffeComputes) {
  NEEDS_IMAGES();
  const Folder folder;
  for (const auto& [database, name] : {std::pair{"lmdb_raw", "mean"},
                                       {"lmdb_encoded", "mean_encoded"},
                                       {"lmdb_gray", "mean_gray"}}) {
    SCOPED_TRACE(name);
    const Mean mean = compute_mean(*open_lmdb(formats() + "/" + database), 2, silent_log());
    write_mean(mean, folder.file(name));
    EXPECT_EQ(read_file(folder.file(name)), read_file(formats() + "/" + name + ".binaryproto"));
    EXPECT_EQ(read_mean(folder.file(name)).values, mean.values);
    EXPECT_EQ(read_mean(folder.file(name)).shape, mean.shape);
  }
  const Mean mean = read_mean(formats() + "/mean.binaryproto");
  const std::vector<float> channels = mean.channels();
  EXPECT_EQ(cat(channels[0], " ", channels[1], " ", channels[2]), "130.332 126.423 140.604");
  expect_part(error_of([&] {
                compute_mean(*open_lmdb(formats() + "/lmdb_encoded_mixed"), 2, silent_log());
              }),
              "its shape 1x12x10");
}

TEST(Mean, OfAFileHasExtentsThatItsValuesFill) {
  const Folder folder;
  // In 64 bits the product of the last ones is 3, too.
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{1, -3, -1},
                                           {3, 1, 0},
                                           {3, int64_t{1} << 32, int64_t{1} << 32},
                                           {3, 7, 7905747460161236407}}) {
    BlobProto blob;
    for (const int64_t extent : dims) blob.mutable_shape()->add_dim(extent);
    for (int i = 0; i < 3; ++i) blob.add_data(1);
    folder.write("mean", blob.SerializeAsString());
    expect_part(error_of([&] { read_mean(folder.file("mean")); }), "and 3 values");
  }
}

}  // namespace transform_test
}  // namespace crema::tests
