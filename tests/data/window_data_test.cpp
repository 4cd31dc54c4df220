// WindowData: window files, the origin of a window, and which are drawn.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <set>

#include "data/lists/window_file.h"
#include "data/transforms/mean.h"
#include "fixtures.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"
#include "ranks.h"
#include "windows.h"

namespace crema::tests {
namespace window_data_test {

struct Files {
  Files() {
    folder.write("images/a.png", encode_image(ramp(0), "png"));
    folder.write("images/b.png", encode_image(ramp(100), "png"));
  }

  std::unique_ptr<Layer> layer(const std::string& windows, const std::string& fields,
                               const std::string& transform, Context& context) const {
    folder.write("windows.txt", windows);
    LayerParameter message;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        cat("name: \"d\" type: \"WindowData\" top: \"data\" top: \"label\" transform_param { ",
            transform, " } window_data_param { source: \"windows.txt\" root_folder: \"images/\" ",
            fields, " }"),
        &message));
    std::unique_ptr<Layer> layer = make_layer(message, true, folder.path());
    layer->setup(context, {});
    return layer;
  }

  Folder folder;
};

struct Tops {
  std::vector<float> data, label;
};

Tops batch_of(Layer& layer, Context& context, uint64_t number) {
  Forward pass;
  pass.pass = number;
  for (const Shape& shape : layer.infer({}).tops) pass.top.emplace_back(context, shape);
  layer.forward(context, pass);
  return {to_floats(context, pass.top[0]), to_floats(context, pass.top[1])};
}

const std::string kA = "# 0\na.png\n1\n9\n10\n", kB = "# 1\nb.png\n1 9 10\n";

// The one window of a batch of one.
std::vector<float> sample(const Files& files, const std::string& box, const std::string& fields,
                          const std::string& transform) {
  Context context(Device::cpu);
  const auto layer = files.layer(cat(kA, "1\n5 0.9 ", box, "\n"),
                                 "batch_size: 1 fg_fraction: 1 " + fields, transform, context);
  const Tops tops = batch_of(*layer, context, 0);
  EXPECT_EQ(tops.label, (std::vector<float>{5}));
  return tops.data;
}

TEST(WindowFile, SplitsObjectsFromBackground) {
  const Folder folder;
  folder.write("w", kA + "4\n3 0.5 0 1 2 3\n2 0.49 4 5 6 7\n1 0.1 0 0 1 1\n0 0 1 1 1 1\n" + kB +
                        "1\n7 1 -3 0 20 8\n");
  const WindowFile file = read_window_file(folder.file("w"), {0.5f, 0.3f});
  ASSERT_EQ(file.images.size(), 2u);
  EXPECT_EQ(file.images[1].path, "b.png");
  EXPECT_EQ(file.images[1].line, 12);
  EXPECT_EQ(file.images[1].width, 10);
  ASSERT_EQ(file.objects.size(), 2u);
  EXPECT_EQ(file.objects[0].label, 3);
  EXPECT_EQ(file.objects[0].y2, 3);
  EXPECT_EQ(file.objects[1].image, 1);
  EXPECT_EQ(file.objects[1].x1, -3);
  ASSERT_EQ(file.background.size(), 2u);
  EXPECT_EQ(file.background[0].label, 0);
  EXPECT_EQ(file.background[1].line, 10);
}

TEST(WindowFile, NamesTheLineThatIsWrong) {
  const Folder folder;
  const auto problem = [&](const std::string& text) {
    folder.write("w", text);
    return error_of([&] { read_window_file(folder.file("w"), {}); });
  };
  expect_part(problem("\n"), "w: names no image");
  expect_part(problem("\na.png\n"), "w:2: found `a.png` where an image, `# index`, was expected");
  expect_part(problem("# 0\na.png\n3\nhigh\n"), "w:4: found `high` where the height");
  expect_part(problem("# 0\na.png\n2\n"), "w:3: the image has 2 channels; 1 and 3");
  expect_part(problem(kA + "2\n1 0.5 0 0 1 1\n"), "the file ends where the class of a window");
  expect_part(problem(kA + "1\n0 0.7 0 0 1 1\n"), "w:7: a window with the overlap 0.7 shows an");
  expect_part(problem(kA + "1\n1 0.7 3 0 2 1\n"), "w:7: the window from (3, 0) to (2, 1) is empty");
  expect_part(problem(kA + "1\n1 0.7 10 0 12 1\n"), "outside its image of 10 columns and 9 rows");
  expect_part(problem(kA + "0\n# 1\nb.png 2\n3 9 9 0\n"), "w:9: the image has 3 channels, but");
}

TEST(WindowFile, HasMasks) {
  const Folder folder;
  const WindowRules rules{0.5f, 0.5f, true, false};
  folder.write("w",
               "# 0\na.png\n2\na1.png\na2.png\n3\n9\n10\n1\n1 0.9 0 0 3 3\n"
               "# 1\nb c.png\n2 b1.png b2.png\n3 9 10\n0\n");
  const WindowFile file = read_window_file(folder.file("w"), rules);
  ASSERT_EQ(file.images.size(), 2u);
  EXPECT_EQ(file.images[0].masks, (std::vector<std::string>{"a1.png", "a2.png"}));
  EXPECT_EQ(file.images[0].height, 9);
  EXPECT_EQ(file.images[1].path, "b c.png");
  EXPECT_EQ(file.images[1].masks, (std::vector<std::string>{"b1.png", "b2.png"}));
  EXPECT_EQ(file.objects.size(), 1u);
  const auto problem = [&](const std::string& text) {
    folder.write("w", text);
    return error_of([&] { read_window_file(folder.file("w"), rules); });
  };
  expect_part(problem("# 0\na.png\nmask.png\n3 9 10\n0\n"),
              "w:3: found `mask.png` where the number of masks was expected");
  expect_part(problem("# 0\na.png\n0\n3 9 10\n0\n"), "w:3: the image has 0 masks");
  expect_part(problem("# 0\na.png\n-2\n3 9 10\n0\n"), "w:3: the image has -2 masks");
  expect_part(problem("# 0\na.png\n3\na1.png\n"), "w:5: the file ends where the path of a mask");
  expect_part(problem("# 0\na.png\n1 a1.png\n3 9 10\n0\n# 1\nb.png\n2 b1.png b2.png\n3 9 10\n0\n"),
              "w:8: the image has 2 masks, but that of line 2 has 1");
}

TEST(WindowFile, KeepsTheOrder) {
  const Folder folder;
  folder.write("w",
               kA + "3\n3 0.9 0 1 2 3\n2 0.4 4 5 6 7\n1 0.1 0 0 1 1\n" + kB + "1\n7 0.5 0 0 2 8\n");
  const WindowFile file = read_window_file(folder.file("w"), {0.5f, 0.3f, false, true});
  EXPECT_TRUE(file.objects.empty());
  EXPECT_TRUE(file.background.empty());
  std::vector<int> classes;
  for (const ListedWindow& window : file.in_order) classes.push_back(window.label);
  EXPECT_EQ(classes, (std::vector<int>{3, 2, 0, 7}));
  EXPECT_EQ(file.in_order[3].image, 1);
}

TEST(WindowData, WarpsTheBox) {
  NEEDS_IMAGES();
  const Files files;
  // As it is, then stretched.
  EXPECT_EQ(sample(files, "2 1 4 3", "", "crop_size: 3"),
            (std::vector<float>{12, 13, 14, 22, 23, 24, 32, 33, 34}));
  EXPECT_EQ(sample(files, "2 1 7 4", "", "crop_size: 3"), placed(1, 2, 4, 6, 3, 3, 0, 0, 3));
  EXPECT_EQ(sample(files, "2 1 4 3", "cache_images: true", "crop_size: 3 mean_value: 2 scale: 0.5"),
            (std::vector<float>{5, 5.5f, 6, 10, 10.5f, 11, 15, 15.5f, 16}));
}

TEST(WindowData, TakesSurroundingsAndLeavesWhatLiesOutsideEmpty) {
  NEEDS_IMAGES();
  const Files files;
  // Columns 2 to 5 and rows 3 to 6, middle (4, 5), grown by 6 / 4: columns 1 to 7, rows 2 to 8.
  EXPECT_EQ(sample(files, "2 3 5 6", "context_pad: 1", "crop_size: 6"),
            placed(2, 1, 7, 7, 6, 6, 0, 0, 6));
  // Columns 0 to 3, middle 2, grown to -1 to 5: one of seven columns is missing, round(6 / 7) = 1.
  // Rows 5 to 8, middle 7, grown to 4 to 10: two are missing, at the lower end.
  EXPECT_EQ(sample(files, "0 5 3 8", "context_pad: 1", "crop_size: 6"),
            placed(4, 0, 5, 6, 4, 5, 0, 1, 6));
  // Three columns and one row become a square of three, then four, with halves rounded away from 0:
  // middle (3.5, 4.5), columns 2 to 5, rows 3 to 6.
  EXPECT_EQ(sample(files, "2 4 4 4", "crop_mode: \"square\"", "crop_size: 8"),
            placed(3, 2, 4, 4, 8, 8, 0, 0, 8));
}

TEST(WindowData, MakesGrayOfColours) {
  NEEDS_IMAGES();
  const Files files;
  Image image{3, 2, 2, {}};
  for (int i = 0; i < 4; ++i)
    for (const int value : {100 + i, 50, 10 * i})
      image.pixels.push_back(static_cast<uint8_t>(value));
  files.folder.write("images/c.png", encode_image(image, "png"));
  Context context(Device::cpu);
  const auto layer =
      files.layer("# 0\nc.png\n3\n2\n2\n1\n5 0.9 0 0 1 1\n", "batch_size: 1 fg_fraction: 1",
                  "gray: BGR crop_size: 2 mean_value: 1 scale: 2", context);
  EXPECT_EQ(layer->infer({}).tops[0], (Shape{1, 1, 2, 2}));
  const Tops tops = batch_of(*layer, context, 0);
  for (int i = 0; i < 4; ++i) {
    const double gray = 0.299 * 10 * i + 0.587 * 50 + 0.114 * (100 + i);
    EXPECT_NEAR(tops.data[i], (gray - 1) * 2, 1e-4);
  }
}

TEST(WindowData, TakesTheMiddleOfAMeanImage) {
  NEEDS_IMAGES();
  const Files files;
  Mean mean;
  mean.shape = {1, 5, 5};
  for (int i = 0; i < 25; ++i) mean.values.push_back(static_cast<float>(i));
  write_mean(mean, files.folder.file("mean"));
  std::vector<float> expected = {12, 13, 14, 22, 23, 24, 32, 33, 34};
  for (int y = 0; y < 3; ++y) {
    for (int x = 0; x < 3; ++x) expected[y * 3 + x] -= static_cast<float>(5 * (y + 1) + x + 1);
  }
  EXPECT_EQ(sample(files, "2 1 4 3", "", "crop_size: 3 mean_file: \"mean\""), expected);
}

TEST(WindowData, DrawsBackgroundFirstAndRepeatsForASeed) {
  NEEDS_IMAGES();
  const Files files;
  const std::string windows = kA + "3\n1 0.9 0 0 3 3\n2 0.8 1 1 4 4\n9 0.1 2 2 5 5\n" + kB +
                              "2\n3 1 3 3 6 6\n9 0 4 4 7 7\n";
  Context context(Device::cpu);
  const auto layer = files.layer(windows, "batch_size: 8 fg_fraction: 0.4 context_pad: 0",
                                 "crop_size: 4 mirror: true", context);
  std::set<float> classes;
  int mirrored = 0;
  for (uint64_t pass = 0; pass < 10; ++pass) {
    const Tops tops = batch_of(*layer, context, pass);
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(tops.label[i] > 0, i >= 5) << i;
      classes.insert(tops.label[i]);
      const bool mirror = tops.data[i * 16] > tops.data[i * 16 + 1];
      mirrored += mirror;
      const float corner = tops.data[i * 16 + (mirror ? 3 : 0)];
      const std::vector<float> corners =
          i < 5 ? std::vector<float>{22, 144} : std::vector<float>{0, 11, 133};
      EXPECT_NE(std::find(corners.begin(), corners.end(), corner), corners.end()) << corner;
    }
  }
  EXPECT_EQ(classes, (std::set<float>{0, 1, 2, 3}));
  EXPECT_GT(mirrored, 20);
  EXPECT_LT(mirrored, 60);
  const auto again = files.layer(windows, "batch_size: 8 fg_fraction: 0.4 cache_images: true",
                                 "crop_size: 4 mirror: true", context);
  EXPECT_EQ(batch_of(*again, context, 7).data, batch_of(*layer, context, 7).data);
}

// Ranks that share a batch have the windows of one that is alone; with a batch each, all have objects.
TEST(WindowData, RanksDrawTheirOwn) {
  NEEDS_IMAGES();
  const Files files;
  const std::string windows = kA + "4\n3 0.9 0 1 2 3\n2 0.8 4 5 6 7\n0 0 0 0 3 3\n0 0 2 2 6 6\n";
  const auto batches = [&](int batch_size, Communicator* world) {
    Context context(Device::cpu);
    context.set_world(world);
    const auto layer = files.layer(windows, cat("batch_size: ", batch_size, " fg_fraction: 0.4"),
                                   "crop_size: 3 mirror: true", context);
    std::vector<Tops> tops;
    for (uint64_t number = 0; number < 5; ++number)
      tops.push_back(batch_of(*layer, context, number));
    return tops;
  };
  const std::vector<Tops> alone = batches(7, nullptr);
  std::vector<Tops> together(alone.size());
  for (int rank = 0; rank < 3; ++rank) {
    OnlyRank world(rank, 3);
    world.divides_batches = true;
    const std::vector<Tops> parts = batches(7, &world);
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto append = [](const std::vector<float>& part, std::vector<float>& all) {
        all.insert(all.end(), part.begin(), part.end());
      };
      append(parts[i].data, together[i].data);
      append(parts[i].label, together[i].label);
    }
  }
  for (size_t i = 0; i < alone.size(); ++i) {
    EXPECT_EQ(together[i].data, alone[i].data) << i;
    EXPECT_EQ(together[i].label, alone[i].label) << i;
  }
  OnlyRank first(0, 2), second(1, 2);
  const std::vector<Tops> of_first = batches(7, &first), of_second = batches(7, &second);
  bool differ = false;
  for (size_t i = 0; i < of_first.size(); ++i) {
    for (const std::vector<float>& label : {of_first[i].label, of_second[i].label})
      EXPECT_EQ(std::count(label.begin(), label.end(), 0.f), 5);
    differ = differ || of_first[i].data != of_second[i].data;
  }
  EXPECT_TRUE(differ);
}

TEST(WindowData, TakesWindowsAsListed) {
  NEEDS_IMAGES();
  const Files files;
  Context context(Device::cpu);
  // All are background, as in a file for prediction.
  const auto layer = files.layer(kA + "2\n0 0 1 0 2 1\n0 0 2 1 3 2\n" + kB + "1\n0 0 0 0 1 1\n",
                                 "batch_size: 2 fg_fraction: 0.5 shuffle: false",
                                 "crop_size: 2 mirror: false", context);
  EXPECT_EQ(layer->source()->records(), 3);
  const std::vector<float> first = {1, 2, 11, 12}, second = {12, 13, 22, 23},
                           third = {100, 101, 110, 111};
  const auto fused = [](std::vector<float> a, const std::vector<float>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  EXPECT_EQ(batch_of(*layer, context, 0).data, fused(first, second));
  EXPECT_EQ(batch_of(*layer, context, 1).data, fused(third, first));
  EXPECT_EQ(batch_of(*layer, context, 2).data, fused(second, third));
  EXPECT_EQ(batch_of(*layer, context, 2).label, (std::vector<float>{0, 0}));
}

TEST(WindowData, MirrorsThePlaceToo) {
  NEEDS_IMAGES();
  const Files files;
  std::set<std::vector<float>> seen;
  Context context(Device::cpu);
  const auto layer =
      files.layer(kA + "1\n1 1 0 5 3 8\n", "batch_size: 1 fg_fraction: 1 context_pad: 1",
                  "crop_size: 6 mirror: true", context);
  for (uint64_t pass = 0; pass < 20; ++pass) seen.insert(batch_of(*layer, context, pass).data);
  EXPECT_EQ(seen, (std::set<std::vector<float>>{placed(4, 0, 5, 6, 4, 5, 0, 1, 6),
                                                placed(4, 0, 5, 6, 4, 5, 0, 0, 6, true)}));
}

TEST(WindowData, SaysWhatIsWrong) {
  NEEDS_IMAGES();
  const Files files;
  Context context(Device::cpu);
  const std::string windows = kA + "1\n1 0.9 0 0 3 3\n";
  const auto problem = [&](const std::string& text, const std::string& fields,
                           const std::string& transform) {
    return error_of([&] { batch_of(*files.layer(text, fields, transform, context), context, 0); });
  };
  const std::string one = "batch_size: 1 fg_fraction: 1 ";
  expect_part(problem(windows, one, ""), "give transform_param a crop_size");
  expect_part(problem(windows, "", "crop_size: 3"), "batch_size");
  expect_part(problem(windows, "batch_size: 4", "crop_size: 3"), "no window of background");
  expect_part(problem(windows, one + "fg_threshold: 1", "crop_size: 3"), "no window of an object");
  expect_part(problem(windows, "batch_size: 1 fg_fraction: 2", "crop_size: 3"),
              "fg_fraction is 2; it is a share");
  expect_part(problem(windows, one + "crop_mode: \"wrap\"", "crop_size: 3"),
              "unknown crop_mode \"wrap\" (did you mean \"warp\"?)");
  expect_part(problem(windows, one + "context_pad: 2", "crop_size: 4"), "leaves nothing");
  expect_part(problem(windows, one, "crop_size: 3 mean_value: 1 mean_value: 2"),
              "1 channels, but there are 2 mean_value");
  expect_part(problem(kA + "1\n1 1 5 5 12 7\n", one, "crop_size: 3"),
              "windows.txt:7: the window from (5, 5) to (12, 7) does not lie inside the image");
  for (const char* corner : {"9223372036854775807", "-9223372036854775808", "16777217"}) {
    expect_part(problem(kA + "1\n1 1 " + corner + " 0 3 3\n", one, "crop_size: 3"),
                cat("windows.txt:7: a corner of a window is ", corner, ", farther out"));
  }
  for (const char* corner : {"9223372036854775808", "inf", "nan", "1.5"}) {
    expect_part(problem(kA + "1\n1 1 " + corner + " 0 3 3\n", one, "crop_size: 3"),
                cat("windows.txt:7: found `", corner, "` where a corner of a window"));
  }
  expect_part(problem(kA + "1\n1 inf 0 0 3 3\n", one, "crop_size: 3"), "found `inf` where");
  expect_part(problem(kA + "1\n16777217 1 0 0 3 3\n", one, "crop_size: 3"),
              "windows.txt:7: the label 16777217 cannot be kept");
  expect_part(problem(kA + "1\n3000000000 1 0 0 3 3\n", one, "crop_size: 3"),
              "found `3000000000` where the class of a window was expected");
  expect_part(problem("# 0\nnone.png\n1 9 10\n1\n1 1 0 0 1 1\n", one, "crop_size: 3"),
              "none.png: cannot open");
}

}  // namespace window_data_test
}  // namespace crema::tests
