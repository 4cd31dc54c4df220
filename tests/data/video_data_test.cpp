// VideoData: which frames of a clip are used, and where they go.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <set>

#include "data/lists/video_clips.h"
#include "fixtures.h"
#include "layers/layer.h"
#include "proto/blob.pb.h"
#include "proto/layer.pb.h"

namespace crema::tests {
namespace video_data_test {

// Frame number f of clip a has the values 10 f + channel; x of flow f, y 100 + f.
struct Clips {
  Clips() {
    std::filesystem::create_directory(folder.file("a"));
    for (int f = 1; f <= 9; ++f) {
      Image frame{3, 2, 2, {}};
      for (int i = 0; i < 12; ++i) frame.pixels.push_back(static_cast<uint8_t>(10 * f + i % 3));
      const auto write = [&](const char* pattern, char direction, const Image& image) {
        folder.write("a/" + frame_name(pattern, f, direction), encode_image(image, "png"));
      };
      write("%06d.jpg", ' ', frame);
      write("%06d.png", ' ', frame);
      write("image_%04d.jpg", ' ', frame);
      for (const char direction : {'x', 'y'}) {
        const auto value = static_cast<uint8_t>(direction == 'x' ? f : 100 + f);
        write("flow_%c_%04d.jpg", direction, {1, 2, 2, {value, value, value, value}});
      }
    }
  }

  std::unique_ptr<Layer> layer(const std::string& list, const std::string& fields, Context& context,
                               bool training = true) const {
    folder.write("list.txt", list);
    LayerParameter message;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "name: \"d\" type: \"VideoData\" top: \"data\" top: \"label\" " + fields, &message))
        << fields;
    std::unique_ptr<Layer> layer = make_layer(message, training, folder.path());
    layer->setup(context, {});
    return layer;
  }

  Folder folder;
};

struct Tops {
  Shape shape;
  std::vector<float> data, label;
};

Tops batch_of(Layer& layer, Context& context, uint64_t number) {
  Forward pass;
  pass.pass = number;
  for (const Shape& shape : layer.infer({}).tops) pass.top.emplace_back(context, shape);
  layer.forward(context, pass);
  return {pass.top[0].shape(), to_floats(context, pass.top[0]), to_floats(context, pass.top[1])};
}

// The first pixel of each plane.
std::vector<float> planes(const Tops& tops) {
  std::vector<float> first;
  for (size_t i = 0; i < tops.data.size(); i += 4) first.push_back(tops.data[i]);
  return first;
}

TEST(VideoData, NamesFrames) {
  EXPECT_EQ(frame_name("img_%05d.jpg", 42, ' '), "img_00042.jpg");
  EXPECT_EQ(frame_name("flow_%c_%d.png", 7, 'y'), "flow_y_7.png");
  EXPECT_EQ(frame_name("%02d", 123, ' '), "123");
  expect_part(error_of([] { frame_name("%s.jpg", 1, ' '); }), "neither %d, %04d nor %c");
}

TEST(VideoData, TakesFramesFromTheOneThatTheListNames) {
  NEEDS_IMAGES();
  const Clips clips;
  Context context(Device::cpu);
  const auto layer =
      clips.layer("a 3 7\n",
                  "video_data_param { source: \"list.txt\" batch_size: 1 new_length: 2 "
                  "sampling_rate: 4 }",
                  context);
  const Tops tops = batch_of(*layer, context, 0);
  EXPECT_EQ(tops.shape, (Shape{1, 3, 2, 2, 2}));
  EXPECT_EQ(planes(tops), (std::vector<float>{30, 70, 31, 71, 32, 72}));
  EXPECT_EQ(tops.label, std::vector<float>{7});
  const auto old = clips.layer(
      "a 3 7\n", "image_data_param { source: \"list.txt\" batch_size: 1 new_length: 2 }", context);
  EXPECT_EQ(planes(batch_of(*old, context, 0)), (std::vector<float>{30, 40, 31, 41, 32, 42}));
}

TEST(VideoData, MakesGrayOfColours) {
  NEEDS_IMAGES();
  const Clips clips;
  Context context(Device::cpu);
  for (const std::string kind : {"", "num_segments: 1 modality: RGB"}) {
    const auto layer =
        clips.layer("a 3 7\n",
                    "transform_param { gray: BGR } video_data_param { source: \"list.txt\" "
                    "batch_size: 1 new_length: 2 " +
                        kind + " }",
                    context, false);
    const Tops tops = batch_of(*layer, context, 0);
    EXPECT_EQ(tops.shape, kind.empty() ? (Shape{1, 1, 2, 2, 2}) : (Shape{1, 2, 2, 2}));
    const std::vector<float> first = planes(tops);
    ASSERT_EQ(first.size(), 2u);
    // 0.299 32 + 0.587 31 + 0.114 30, and of the next frame 10 more.
    if (kind.empty()) {
      EXPECT_FLOAT_EQ(first[0], 31.185f);
    }
    EXPECT_FLOAT_EQ(first[1], first[0] + 10);
  }
}

TEST(VideoData, TakesFramesOfEachSegment) {
  NEEDS_IMAGES();
  const Clips clips;
  Context context(Device::cpu);
  const std::string rgb =
      "video_data_param { source: \"list.txt\" batch_size: 1 num_segments: 2 modality: RGB }";
  const auto test = clips.layer("a 9 1\n", rgb, context, false);
  const Tops tops = batch_of(*test, context, 0);
  EXPECT_EQ(tops.shape, (Shape{1, 6, 2, 2}));
  EXPECT_EQ(planes(tops), (std::vector<float>{30, 31, 32, 70, 71, 72}));
  std::set<float> first, second;
  const auto train = clips.layer("a 9 1\n", rgb, context);
  for (uint64_t i = 0; i < 60; ++i) {
    const std::vector<float> seen = planes(batch_of(*train, context, i));
    first.insert(seen[0]);
    second.insert(seen[3]);
  }
  EXPECT_EQ(first, (std::set<float>{10, 20, 30, 40}));
  EXPECT_EQ(second, (std::set<float>{50, 60, 70, 80}));
  const auto flow = clips.layer(
      "a 4 1\n",
      "video_data_param { source: \"list.txt\" batch_size: 1 new_length: 2 modality: FLOW }",
      context, false);
  EXPECT_EQ(planes(batch_of(*flow, context, 0)), (std::vector<float>{2, 102, 3, 103}));
}

TEST(VideoData, MirrorsAndCropsAllFramesAlike) {
  NEEDS_IMAGES();
  const Clips clips;
  Context context(Device::cpu);
  const auto layer = clips.layer("a 9 1\n",
                                 "transform_param { mirror: true is_flow: true crop_size: 1 "
                                 "mean_value: 128 } video_data_param "
                                 "{ source: \"list.txt\" batch_size: 1 new_length: 3 modality: "
                                 "FLOW use_temporal_jitter: true }",
                                 context);
  std::set<bool> turned;
  for (uint64_t i = 0; i < 20; ++i) {
    const std::vector<float> x = batch_of(*layer, context, i).data;
    ASSERT_EQ(x.size(), 6u);
    turned.insert(x[0] > 0);
    EXPECT_EQ(x[2] - x[0], x[0] > 0 ? -1 : 1);
    EXPECT_EQ(x[3] - x[1], 1);
  }
  EXPECT_EQ(turned.size(), 2u);
}

// A mean of clips, (1, 3, 2, 2, 2): of channel c and frame l it is 2 c + l + 1. C3D's first files
// number their fields otherwise.
TEST(VideoData, SubtractsTheMeanOfAClip) {
  NEEDS_IMAGES();
  const Clips clips;
  Context context(Device::cpu);
  BlobProto mean;
  std::string dims, values;
  const auto varint = [&](int field, int value) {
    dims += static_cast<char>(field << 3);
    dims += static_cast<char>(value);
  };
  for (const int extent : {1, 3, 2, 2, 2}) {
    mean.mutable_shape()->add_dim(extent);
    varint(mean.shape().dim_size(), extent);
  }
  for (int i = 0; i < 24; ++i) {
    mean.add_data(static_cast<float>(i / 4 + 1));
    const float value = mean.data(i);
    values.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  clips.folder.write("mean.binaryproto", mean.SerializeAsString());
  clips.folder.write("c3d.binaryproto", dims + "\x32\x60" + values);
  const auto layer = [&](const std::string& file, int length) {
    return clips.layer(
        "a 3 7\n",
        cat("transform_param { mean_file: \"", file,
            "\" } image_data_param { source: \"list.txt\" batch_size: 1 new_length: ", length,
            " }"),
        context);
  };
  for (const char* file : {"mean.binaryproto", "c3d.binaryproto"}) {
    SCOPED_TRACE(file);
    EXPECT_EQ(planes(batch_of(*layer(file, 2), context, 0)),
              (std::vector<float>{29, 38, 28, 37, 27, 36}));
  }
  expect_part(error_of([&] { layer("mean.binaryproto", 3); }),
              "the mean is that of clips of 2 frames, but these have 3");
}

// OpenCV reads numbered image files as a video, from the first one as frame 0.
TEST(VideoData, TakesFramesOfFilms) {
  NEEDS_IMAGES();
  const Clips clips;
  Context context(Device::cpu);
  const std::string video = "a/%06d.png",
                    read =
                        cat("source: \"list.txt\" batch_size: 1 use_image: false root_folder: \"",
                            clips.folder.path(), "/\" ");
  const auto layer = clips.layer(
      video + " 4 2\n", "video_data_param { " + read + "new_length: 2 sampling_rate: 3 }", context);
  EXPECT_EQ(planes(batch_of(*layer, context, 0)), (std::vector<float>{50, 80, 51, 81, 52, 82}));
  const auto middle = clips.layer(
      video + " 2\n", "video_data_param { " + read + "new_length: 3 use_temporal_jitter: true }",
      context, false);
  EXPECT_EQ(planes(batch_of(*middle, context, 0)),
            (std::vector<float>{40, 50, 60, 41, 51, 61, 42, 52, 62}));
  const auto played = clips.layer(
      "",
      cat("data_param { batch_size: 2 } video_data_param { video_type: VIDEO video_file: \"",
          clips.folder.path(), "/", video, "\" skip_frames: 2 }"),
      context);
  EXPECT_EQ(played->source()->records(), 3);
  EXPECT_EQ(planes(batch_of(*played, context, 1)), (std::vector<float>{70, 71, 72, 10, 11, 12}));
}

TEST(VideoData, SaysWhatIsWrong) {
  NEEDS_IMAGES();
  const Clips clips;
  Context context(Device::cpu);
  const auto problem = [&](const std::string& list, const std::string& fields) {
    return error_of([&] {
      batch_of(*clips.layer(list, "video_data_param { " + fields + " }", context), context, 0);
    });
  };
  const std::string source = "source: \"list.txt\" batch_size: 1 ";
  expect_part(problem("a 1\n", source), "a line is `path first-frame label`, but has 1 numbers");
  expect_part(problem("a 9 1\n", source + "new_length: 10 use_temporal_jitter: true"),
              "has 9 frames, but 10 are needed");
  expect_part(problem("a 9 1\n", source + "new_length: 2"), "000010.jpg");
  expect_part(problem("a 9 1\n", "source: \"list.txt\""), "batch_size");
  expect_part(problem("a 9 1\n", "video_type: WEBCAM"), "a camera is not supported");
  expect_part(problem("a 1 1\n", source + "use_image: false"),
              "a: is a folder, not a regular file");
  clips.folder.write("words", "no video");
  expect_part(problem("words 1 1\n", source + "use_image: false"), "not a video that can be read");
}

}  // namespace video_data_test
}  // namespace crema::tests
