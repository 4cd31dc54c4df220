// The changes of single pixels and the warps against Pillow 13, Python's colorsys and SciPy, with
// their results in hexadecimal.
#include "data/transforms/pixels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "data/transforms/warp.h"
#include "support.h"

namespace crema::tests {
namespace pixels_test {

constexpr int64_t kHeight = 6, kWidth = 7;

// Red first, as the references were made.
Image picture() {
  Image image{3, kHeight, kWidth, {}};
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x)
      for (int c = 0; c < 3; ++c)
        image.pixels.push_back(static_cast<uint8_t>(x * 37 + y * 59 + c * 83 + x * y * 11));
  return image;
}

Image with_blue_first(Image image) {
  for (size_t i = 0; i < image.pixels.size(); i += 3)
    std::swap(image.pixels[i], image.pixels[i + 2]);
  return image;
}

std::vector<uint8_t> bytes(const std::string& text) {
  std::vector<uint8_t> values;
  for (size_t i = 0; i < text.size(); i += 2)
    values.push_back(static_cast<uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return values;
}

// The smallest and the largest difference of two images.
std::pair<int, int> differences(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
  EXPECT_EQ(a.size(), b.size());
  std::pair<int, int> found{255, -255};
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    found.first = std::min(found.first, a[i] - b[i]);
    found.second = std::max(found.second, a[i] - b[i]);
  }
  return found;
}

struct Row {
  const char* name;
  std::function<void(Image&)> change;
  const char* expected;
  int rounded = 0;  // at most so much more than expected
};

// Pillow cuts off the fractions of blends, which are rounded here.
TEST(Pixels, AreThoseOfPillow) {
  const Row rows[] = {
      {"brightness 1.4", [](Image& i) { change_brightness(1.4f, i); },
       "0074e833a8ff67dbff9bff1dcfff51ff1085ff44b852c6ff95ff17d9ff5bff2a9eff6de13cb0ff7ff301"
       "a5ff27f70579ff58cc36aaff89fd0bdbff5dff3cb0f70579ff67db55c9ffb7ff39ff279b1589fd77ebff"
       "ff58cc55c9ffc6ff48ff46ba43b7ffb4ff36ff33a836aaffb7ff39ff46ba52c6ffd3ff55ff62d66ee2ff",
       1},
      {"brightness 0.3", [](Image& i) { change_brightness(0.3f, i); },
       "0018310b243c162f48213a062c451137031c420e27112a432039052e47133c09214b17300c253e1b3400"
       "233c0835011a46122b0b243d1d36022f4814400c2535011a4a162f122b4427400c3c0821041d3619324b"
       "46122b122b442a430f420f270e2740263f0b3f0b240b243d27400c420f27112a432d461248152d173049",
       1},
      {"contrast 1.7", [](Image& i) { change_contrast(1.7f, true, i); },
       "0033c00072ff24b1ff63f000a2ff09e00047ff00860a97ff5ce900adff14ff0066ff2bb8007cff41ce00"
       "6ffc00d3003aff119e0075ff4dda00b1ff18ff007cd3003aff24b10e9bff85ff00fc0063004dda36c4ff"
       "ff119e0e9bff97ff00ff00880085ff81ff00ff00720075ff85ff00ff00880a97ffa7ff0eff1daa2cb9ff",
       1},
      {"contrast 0.2", [](Image& i) { change_contrast(0.2f, true, i); },
       "6677876d7e8f7585967c8d6a8494728b68799270807282937b8c698596738f6c7d9876866f7f90788966"
       "7e8e6c8967779573836e7e8f7a8a68859673916f7f89677797758572839380916e8e6c7c697a8a778898"
       "95738372839382937093708170809180906e906d7e6e7e8f80916e937081728293849572977485768697",
       1},
      {"saturation 1.9", [](Image& i) { change_saturation(1.9f, true, i); },
       "0060fe0085ff0caaff4cea0071ff00ff0072ff0097009bff48e60078ff00ff0084ff17b4008bff38d600"
       "53f100ff006aff08a50087ff3fdd007aff00ff0091ff006aff13b0009dff60fe00ff0082006fff17b5ff"
       "ff08a5009dff6bff00ff00980090ff5efc00ff008b0087ff60fe00ff0098009bff74ff00ff0fac11afff",
       1},
      {"saturation 0.4", [](Image& i) { change_saturation(0.4f, true, i); },
       "284a6b4d6f907294b585a761aacc867530519a55766385a681a35db1d38d874263b7729353759671934d"
       "8cae686d2849a863844f7192789a54b3d58f944f706d2849b36e8f6587a899bb7585406137597a7d9fc0"
       "a863846587a8a4c6809b5677587a9b97b9738e496a4f719299bb759b56776385a6adcf89af6a8b7799ba",
       1},
      {"sharpness 1.9", [](Image& i) { change_sharpness(1.9f, i); },
       "0053a62578cb4a9df06fc21594e73ab90c5fde31843b8ee16be100adff1dee0071ff2ac4007eff5bae01"
       "76c91cc30045ff1ba4007aff50d800afff1fd82b7eb10457ff38af07a2ff83ff00fe006f0050d855a8fb"
       "ec3f9207a2ff8eff00ff00850083ff81ff00d22578277acd83d629df32853b8ee197ea3df346994fa2f5",
       1},
      {"sharpness 0.1", [](Image& i) { change_sharpness(0.1f, i); },
       "0053a62578cb4a9df06fc21594e73ab90c5fde31843b8ee16b9a5889a664a76571b3717d727e895bae01"
       "76c91c9f4b69b662806e7a9774914f8ba866d82b7eb10457c15c8b727ead83a05e93636f56749155a8fb"
       "ec3f92727ead8eab69a967856583a0819e6ed22578277acd83d629df32853b8ee197ea3df346994fa2f5",
       1},
      {"grey", [](Image& i) { make_grey(true, i); },
       "4444446969698e8e8e959595bababa4949496e6e6e7f7f7f919191c1c1c15b5b5b8b8b8b6f6f6f818181"
       "9c9c9c4141417c7c7c6b6b6b888888c3c3c3686868414141878787818181a9a9a9595959535353999999"
       "7c7c7c818181b4b4b46f6f6f747474a7a7a76262626b6b6ba9a9a96f6f6f7f7f7fbdbdbd838383939393"},
      {"solarize 100", [](Image& i) { solarize(100, i); },
       "0053592587344a620f903d156b183a460c5f21317b3b711e944111641141341e8e044e5e2b812e5b5101"
       "89361c4e0457133f6d278532624a08620f43272b814e0457084a623d6f1c7c2929361c900f624a555704"
       "133f6d3d6f1c711e3420327a307c297e2b272d25872785327c292920327a3b711e68153d0c46664f5d0a"},
      {"posterize 5", [](Image& i) { posterize(5, i); },
       "0050a02078c84898f068c01090e038b80858d830803888e068b81098e840c81870f848a02878d058a800"
       "70c818b00050e838902078c860b00898f040d82878b00050f048983890e080d028c818680860b050a8f8"
       "e838903890e088e030d830803080d080d020d020782078c880d028d830803888e090e838f0409848a0f0"},
  };
  for (const Row& row : rows) {
    Image image = picture();
    row.change(image);
    const auto [least, most] = differences(image.pixels, bytes(row.expected));
    EXPECT_GE(least, 0) << row.name;
    EXPECT_LE(most, row.rounded) << row.name;
  }
  Image dark = picture();
  for (uint8_t& value : dark.pixels) value = static_cast<uint8_t>(value / 3 + 40);
  stretch_contrast(dark);
  EXPECT_EQ(
      dark.pixels,
      bytes(
          "0053a8247dcd49a4f571cb1596f53abb095fe330873a94e66bc80f9cfb40cd1d71ff50a22b84d35cb700"
          "77d51bb50059ef4093277dd062be069fff43dd2981b50059fb4a9f3d97e684e127cd19710f64b856b1ff"
          "ef40933d97e690ee34e330873187da84de27d7237a277dd084e127e330873a94e699f83df8479c4fabf8"));
}

TEST(Pixels, AreThoseOfColorsysAndSciPy) {
  const Row rows[] = {
      {"hue 0.3", [](Image& i) { change_hue(0.3f, true, i); },
       "a60074cb2599f04abe1592c23ab7e782b90ca7de31e13baf118ebe41beee94cb1ec4fb4ed12b9f017eae"
       "1c99c97ab104b5ec3fcd279b0885b543c0f0a1d82b7ab104c0f74ae33db129a6d692c91cb50f83fb55c9"
       "b5ec3fe33db134b1e1a8df32d630a427a4d49bd225cd279b29a6d6a8df32e13baf3dbaeabcf346f54fc3"},
      {"hue -0.1", [](Image& i) { change_hue(-0.1f, true, i); },
       "00a69525cbba4af0dfc2ad15e7d23aab0cb9d031de3be1d0bea911eed941bd1ecbed4efb2bd1c0ae9901"
       "c9b41ca304b1de3fec27cdbcb5a008f0db43ca2bd8a304b1e94af73de3d2d6c129bb1cc90fb5a455fbea"
       "de3fec3de3d2e1cc34d132df30d6c5d4bf27c425d227cdbcd6c129d132df3be1d0ead53de546f34ff5e4"},
      {"blur 0.8", [](Image& i) { blur(0.8f, i); },
       "1b6dad3986a95f9f9783a55d9c9455a65969b6486a49888f6b8c728a9173997d709d7e71887b748e7457"
       "83795d9d646a9b7182847b7d8386677f907290777dad486ca65d8a8d80908486797d7a736f82888178ab"
       "9f57948d7f928f8e848e81867f8586848584906fa2617ea48194799a7d828388998e9f83a587908580c2"},
      {"blur 2.0", [](Image& i) { blur(2, i); },
       "437596547e8f6884857b84798d7c719d6f6ea9616f5a758c677c8874818181827a8c7d759674749e6a75"
       "7072867878837f7e8086807d8b7e7c90787d9472817c7086827784867c828880828a80848b7d8a8d7891"
       "7d718c837889877e878982888a838d898296877fa17476957d7d8f85828b89868d8a88948787a18286b0"},
  };
  for (const Row& row : rows) {
    Image image = picture();
    row.change(image);
    const auto [least, most] = differences(image.pixels, bytes(row.expected));
    EXPECT_GE(least, -1) << row.name;
    EXPECT_LE(most, 1) << row.name;
  }
}

TEST(Pixels, EqualizeAsPillowDoes) {
  Image image{1, 40, 40, {}};
  for (int i = 0; i < 1600; ++i) {
    const int x = i % 40, y = i / 40;
    image.pixels.push_back(static_cast<uint8_t>((x * x + 3 * y * y + x * y) % 97));
  }
  const Image old = image;
  equalize(image);
  const std::map<int, int> expected = {{0, 0},   {1, 5},    {2, 9},   {5, 17},
                                       {17, 54}, {48, 137}, {96, 255}};
  int64_t sum = 0;
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    sum += image.pixels[i];
    const auto found = expected.find(old.pixels[i]);
    if (found == expected.end()) continue;
    EXPECT_EQ(image.pixels[i], found->second) << found->first;
  }
  EXPECT_EQ(sum, 210861);
  // Too few pixels for steps.
  Image small{1, 1, 3, {5, 7, 9}};
  equalize(small);
  EXPECT_EQ(small.pixels, (std::vector<uint8_t>{5, 7, 9}));
}

TEST(Pixels, ColorsAreFoundInEitherOrder) {
  const std::function<void(Image&, bool)> changes[] = {
      [](Image& i, bool red_first) { change_contrast(1.7f, red_first, i); },
      [](Image& i, bool red_first) { change_saturation(0.4f, red_first, i); },
      [](Image& i, bool red_first) { change_hue(0.3f, red_first, i); },
      [](Image& i, bool red_first) { make_grey(red_first, i); }};
  for (const auto& change : changes) {
    Image red_first = picture(), blue_first = with_blue_first(picture());
    change(red_first, true);
    change(blue_first, false);
    EXPECT_EQ(with_blue_first(blue_first).pixels, red_first.pixels);
  }
  // Without colours only contrast changes.
  Image gray{1, 1, 2, {100, 200}};
  changes[1](gray, true), changes[2](gray, true), changes[3](gray, true);
  EXPECT_EQ(gray.pixels, (std::vector<uint8_t>{100, 200}));
  changes[0](gray, true);
  EXPECT_EQ(gray.pixels, (std::vector<uint8_t>{65, 235}));
}

TEST(Pixels, NoiseIsNormallyDistributed) {
  Image image{3, 100, 101, std::vector<uint8_t>(30300, 128)};
  add_gaussian_noise(10, {3, 4}, image);
  double sum = 0, squares = 0, beyond = 0;
  for (const uint8_t value : image.pixels) {
    const double distance = value - 128;
    sum += distance;
    squares += distance * distance;
    beyond += std::abs(distance) > 19.5;
  }
  const auto count = static_cast<double>(image.pixels.size());
  EXPECT_NEAR(sum / count, 0, 0.2);
  EXPECT_NEAR(std::sqrt(squares / count), 10, 0.2);
  EXPECT_NEAR(beyond / count, 0.0512, 0.005);  // of a normal distribution
}

// Here, too.
TEST(Warps, AreThoseOfPillow) {
  const PlanePoint corners[] = {{0.5, 0.25}, {6.5, 0.75}, {6, 5.5}, {1, 5}};
  struct WarpRow {
    const char* name;
    std::function<void(Warp&)> make;
    const char* expected;
  };
  const WarpRow rows[] = {
      {"rot20", [&](Warp& w) { w.rotate(20); },
       "0a141e0a141e6bbe279dca4384568e648d430a141e1d70b85bae99a08562d53f868e9276999e62c8398c"
       "4c9e97928c38b66f853385a78483353a8a975ba0f273c327c11e67886abd75c74c9a537e5c9672b4625c"
       "aa1a50c73d907a9b9ead8f5f876ca48da875be66ad0a141ea85ea672aa7cc053854295d30a141e0a141e"},
      {"shear", [&](Warp& w) { w.shear(0.3, 0, 3.5, 3); },
       "0a141e095caf2e81d453a6b978cb1e9db043c215683b8ee155a86e85d82bb57b5be5388b8868bb45985e"
       "76c91ca8214ee336894471c459ac2594e73acf4875bb0e61db54a7479ac78dba33ad2679196cbf55a8fb"
       "9d63b661b494b292589056a954a787a5854bd225786bbe52c75b6d6477ca80d366dc6f82788bde0a141e"},
      {"persp", [&](Warp& w) { w.move_corners(corners); },
       "0a141e186bbe4497ea70c3160a141e0a141e0a141e0a141e499c7979cc6fa6624cb28676924a720a141e"
       "0a141e926939d4477a4f66b28da04c8490630a141e0a141ec230837288bf87cb2e89407c5688c50a141e"
       "0a141e677fa29c936a9b59a96aa486b25e6f0a141e0a141e0a141e0a141e0a141e0a141e0a141e0a141e"},
      {"crop", [&](Warp& w) { w.crop(1, 2, 3, 4, 6, 8); },
       "7bce6192b568a86b5ebf5265d5687bbc6f927366a9596c8fa2b548ab9e61a5587bae4184c85b7eb17487"
       "6a8da054978ac95c6fb5688b7164a75e71947a8d5086a93c82c5588eb164c043969f62a55e81a44d9083"
       "6c8f427b9e317abd5088ab6e876abd698caf6bae717c9f529e61549053665174874386a96f92b563a699"
       "87aa5d9c8f52a0537684478a496c8f3d80a3"},
  };
  const std::vector<uint8_t> fill = {10, 20, 30};
  for (const WarpRow& row : rows) {
    Warp warp{kHeight, kWidth};
    row.make(warp);
    const auto [least, most] =
        differences(warp_image(picture(), warp, fill).pixels, bytes(row.expected));
    EXPECT_GE(least, 0) << row.name;
    EXPECT_LE(most, 1) << row.name;
  }
  Warp shear{kHeight, kWidth};
  shear.shear(0.3, 0, 3.5, 3);
  EXPECT_EQ(
      warp_labels(picture(), shear, fill).pixels,
      bytes(
          "0a141e0053a62578cb4a9df06fc21594e73ab90c5f3b8ee16bbe119bee41cb1e71fb4ea12b7ed15bae01"
          "76c91cb10457ec3f92277acd62b5089df043d82b7eb10457f74a9d3d90e383d629c91c6f0f62b555a8fb"
          "ec3f923d90e38ee134df32853083d681d427d2257883d629df32853b8ee197ea3df346994fa2f50a141e"));
}

TEST(Warps, MoveWholePixelsExactly) {
  const Image image{1, 2, 3, {1, 2, 3, 4, 5, 6}};
  const auto warped = [&](const auto& make) {
    Warp warp{2, 3};
    make(warp);
    const Image result = warp_image(image, warp, {9});
    EXPECT_EQ(result.pixels, warp_labels(image, warp, {9}).pixels);
    return result.pixels;
  };
  using Bytes = std::vector<uint8_t>;
  EXPECT_EQ(warped([](Warp&) {}), image.pixels);
  EXPECT_EQ(warped([](Warp& w) { w.flip(true, false); }), (Bytes{3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(warped([](Warp& w) { w.flip(false, true); }), (Bytes{4, 5, 6, 1, 2, 3}));
  EXPECT_EQ(warped([](Warp& w) { w.translate(1, 0); }), (Bytes{9, 1, 2, 9, 4, 5}));
  EXPECT_EQ(warped([](Warp& w) { w.translate(0, -1); }), (Bytes{4, 5, 6, 9, 9, 9}));
  // A flip after a translation, and vice versa.
  EXPECT_EQ(warped([](Warp& w) { w.translate(1, 0), w.flip(true, false); }),
            (Bytes{2, 1, 9, 5, 4, 9}));
  EXPECT_EQ(warped([](Warp& w) { w.flip(true, false), w.translate(1, 0); }),
            (Bytes{9, 3, 2, 9, 6, 5}));
  EXPECT_EQ(warped([](Warp& w) { w.crop(0, 1, 2, 2, 2, 2); }), (Bytes{2, 3, 5, 6}));
  EXPECT_EQ(warped([](Warp& w) { w.crop(0, 1, 2, 2, 2, 2), w.flip(true, false); }),
            (Bytes{3, 2, 6, 5}));
}

// A crop much larger than its target size shows means, not every fourth pixel.
TEST(Warps, CropsThatShrinkAreMeans) {
  Image image{2, 8, 9, {}};
  for (int i = 0; i < 8 * 9; ++i) {
    image.pixels.push_back(static_cast<uint8_t>(i % 2 * 200));
    image.pixels.push_back(static_cast<uint8_t>(10 * (i / 9)));
  }
  Warp warp{8, 9};
  warp.crop(0, 0, 8, 8, 2, 2);
  EXPECT_EQ(warp_image(image, warp, {0}).pixels,
            (std::vector<uint8_t>{100, 15, 100, 15, 100, 55, 100, 55}));
  // The last column is of blocks that are cut off.
  warp = {8, 9};
  warp.crop(0, 0, 8, 9, 2, 2);
  EXPECT_EQ(warp_image(image, warp, {0}).pixels.size(), 8u);
}

}  // namespace pixels_test
}  // namespace crema::tests
