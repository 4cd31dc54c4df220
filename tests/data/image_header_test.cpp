// Information from the bytes of image files before decoding, and which of them are not decoded.
#include "data/images/image_header.h"

#include <gtest/gtest.h>

#include "data/images/image.h"
#include "fixtures.h"

namespace crema::tests {
namespace image_header_test {

// `count` bytes of a number, the most significant first.
std::string big(uint64_t number, int count) {
  std::string bytes;
  for (int i = count - 1; i >= 0; --i) bytes.push_back(static_cast<char>(number >> (8 * i)));
  return bytes;
}

std::string little(uint64_t number, int count) {
  const std::string bytes = big(number, count);
  return {bytes.rbegin(), bytes.rend()};
}

std::string segment(int kind, const std::string& content) {
  return "\xFF" + big(static_cast<uint64_t>(kind), 1) + big(content.size() + 2, 2) + content;
}

std::string frame(int kind, int height, int width) {
  return segment(kind, big(8, 1) + big(static_cast<uint64_t>(height), 2) +
                           big(static_cast<uint64_t>(width), 2) +
                           std::string("\x01\x01\x11\x00", 4));
}

const std::string kEnd = "\xFF\xD9";

// With a thumbnail in it, two scans whose data have restart markers and a 255, and marks before a
// marker.
std::string progressive_jpeg() {
  const std::string thumbnail = "\xFF\xD8" + frame(0xC0, 9, 9) + kEnd;
  const std::string scan = segment(0xDA, "123456") + std::string("ab\xFF\0cd\xFF\xD0xy", 10);
  return "\xFF\xD8" + segment(0xE1, "Exif" + thumbnail) + segment(0xFE, "\xFF\xD9") +
         frame(0xC2, 300, 20) + scan + segment(0xC4, "table") + scan + "\xFF" + kEnd;
}

TEST(ImageHeader, TellsAWholeJpegFromACutOne) {
  const std::string whole = progressive_jpeg();
  ASSERT_TRUE(read_image_header(whole));
  EXPECT_EQ(read_image_header(whole)->height, 300);
  EXPECT_EQ(read_image_header(whole)->width, 20);
  EXPECT_FALSE(read_image_header(whole)->cut);
  EXPECT_FALSE(read_image_header(whole + "what a camera adds\xFF\xD8")->cut);
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    const auto header = read_image_header(whole.substr(0, bytes));
    EXPECT_TRUE(!header || header->cut) << bytes << " bytes";
  }
}

TEST(ImageHeader, KnowsBaselineJpegs) {
  // Components of a frame: name and sampling; the table's number follows.
  const auto jpeg = [](int kind, const std::string& components, const std::string& before = "",
                       int scans = 1) {
    std::string parts;
    for (size_t i = 0; i < components.size(); i += 2)
      parts += components.substr(i, 2) + std::string(1, '\0');
    const int count = static_cast<int>(components.size() / 2);
    std::string file = "\xFF\xD8" + before +
                       segment(kind, big(8, 1) + big(9, 2) + big(7, 2) + big(count, 1) + parts);
    for (int i = 0; i < scans; ++i)
      file += segment(0xDA, big(scans > 1 ? 1 : count, 1) + "12") + "ab";
    return file + kEnd;
  };
  const auto adobe = [](int colors) {
    return segment(0xEE, "Adobe" + std::string(6, '\0') + big(colors, 1));
  };
  const std::string ycc = "\x01\x22\x02\x11\x03\x11";
  struct Row {
    const char* what;
    std::string file;
    bool baseline;
  };
  const Row rows[] = {
      {"4:2:0", jpeg(0xC0, ycc), true},
      {"4:4:4", jpeg(0xC0, "\x01\x11\x02\x11\x03\x11"), true},
      {"4:1:1", jpeg(0xC0, "\x01\x41\x02\x11\x03\x11"), false},
      {"colours larger than light", jpeg(0xC0, "\x01\x11\x02\x22\x03\x11"), false},
      {"grey", jpeg(0xC0, "\x01\x11"), true},
      {"inks", jpeg(0xC0, "C\x11M\x11Y\x11K\x11"), false},
      {"progressive", jpeg(0xC2, ycc), false},
      {"a scan for each component", jpeg(0xC0, ycc, "", 3), false},
      {"red, green, blue by name",
       jpeg(0xC0,
            "R\x11G\x11"
            "B\x11"),
       false},
      {"red, green, blue by Adobe's mark", jpeg(0xC0, ycc, adobe(0)), false},
      {"YCbCr by Adobe's mark", jpeg(0xC0, ycc, adobe(1)), true},
      {"without an end", jpeg(0xC0, ycc).substr(0, 30), false},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    const auto header = read_image_header(row.file);
    ASSERT_TRUE(header.has_value());
    EXPECT_EQ(header->baseline, row.baseline);
  }
}

TEST(ImageHeader, AgreesWithTheDecoder) {
  NEEDS_IMAGES();
  Image image{3, 11, 13, std::vector<uint8_t>(3 * 11 * 13, 90)};
  for (const char* kind : {"jpg", "png", "bmp", "webp", "tiff", "ppm", "ras"}) {
    SCOPED_TRACE(kind);
    const std::string file = encode_image(image, kind);
    const auto header = read_image_header(file);
    ASSERT_TRUE(header.has_value());
    EXPECT_EQ(header->height, 11);
    EXPECT_EQ(header->width, 13);
    EXPECT_EQ(header->bits, 8);
    EXPECT_FALSE(header->cut);
    decode_image(file, Color::color, image);
    EXPECT_EQ(image.width, 13);
    // Damaged files may be refused, but nothing is read past their end.
    for (size_t bytes = 0; bytes < file.size(); ++bytes) read_image_header(file.substr(0, bytes));
  }
}

// The product of the largest sides that a header can have is negative in 64 bits.
TEST(ImageHeader, CountsThePixelsOfAnySides) {
  EXPECT_FALSE((ImageHeader{5, 7}.exceeds(35)));
  EXPECT_TRUE((ImageHeader{5, 7}.exceeds(34)));
  const auto header = read_image_header("\x59\xA6\x6A\x95\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF");
  ASSERT_TRUE(header.has_value());
  EXPECT_TRUE(header->exceeds(kMaxPixelsEver));
}

TEST(ImageHeader, ReadsEachKind) {
  struct Row {
    const char* kind;
    std::string file;
    int64_t height, width;
    int bits;
  };
  const auto tag = [](int number, int type, uint64_t value) {
    const int bytes = type == 3 ? 2 : 4;
    return little(static_cast<uint64_t>(number), 2) + little(static_cast<uint64_t>(type), 2) +
           little(1, 4) + little(value, bytes) + std::string(static_cast<size_t>(4 - bytes), '\0');
  };
  const Row rows[] = {
      {"png of 16 bits", "\x89PNG\r\n\x1A\n" + big(13, 4) + "IHDR" + big(7, 4) + big(5, 4) + "\x10",
       5, 7, 16},
      {"bmp from the top",
       "BM" + std::string(12, ' ') + little(40, 4) + little(7, 4) +
           little(static_cast<uint64_t>(-5), 4),
       5, 7, 8},
      {"old bmp", "BM" + std::string(12, ' ') + little(12, 4) + little(7, 2) + little(5, 2), 5, 7,
       8},
      {"webp with parts", "RIFF    WEBPVP8X        " + little(6, 3) + little(4, 3), 5, 7, 8},
      {"webp without loss", "RIFF    WEBPVP8L    /" + little(6 | 4 << 14, 4), 5, 7, 8},
      {"tiff",
       "II*" + little(0, 1) + little(8, 4) + little(3, 2) + tag(256, 3, 7) + tag(257, 4, 5) +
           tag(258, 3, 16),
       5, 7, 16},
      {"pgm of 16 bits", "P5 # a comment 1 2\n#3\n7\t5\n65535\n", 5, 7, 16},
      {"pbm", "P4\n7 5\n", 5, 7, 8},
      {"jpeg 2000",
       "\xFF\x4F\xFF\x51" + big(47, 2) + big(0, 2) + big(17, 4) + big(25, 4) + big(10, 4) +
           big(20, 4) + std::string(16, '\0') + big(1, 2) + "\x0F",
       5, 7, 16},
      {"sun raster", "\x59\xA6\x6A\x95" + big(7, 4) + big(5, 4), 5, 7, 8},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.kind);
    const auto header = read_image_header(row.file);
    ASSERT_TRUE(header.has_value());
    EXPECT_EQ(header->height, row.height);
    EXPECT_EQ(header->width, row.width);
    EXPECT_EQ(header->bits, row.bits);
  }
  for (const char* other : {"", "P", "P5", "P5\n7", "GIF89a", "BM", "RIFF    WEBP", "II*"})
    EXPECT_FALSE(read_image_header(other)) << other;
}

// All of these claim 30000 x 30000 pixels, and are not read further.
TEST(Images, RefusesTooManyPixelsBeforeDecoding) {
  NEEDS_IMAGES();
  Image image;
  const auto problem = [&](const std::string& file, int64_t maximum) {
    return error_of([&] { decode_image(file, Color::color, image, maximum); });
  };
  const std::string claims[] = {
      "\x89PNG\r\n\x1A\n" + big(13, 4) + "IHDR" + big(30000, 4) + big(30000, 4) + "\x08",
      "\xFF\xD8" + frame(0xC0, 30000, 30000),
      "P5\n30000 30000\n255\n",
  };
  for (const std::string& file : claims) {
    expect_part(problem(file, kMaxPixels),
                "the image has 30000 x 30000 pixels; at most 268435456 are decoded");
  }
  // As many as are allowed.
  const std::string small = encode_image({1, 10, 20, std::vector<uint8_t>(200)}, "png");
  decode_image(small, Color::gray, image, 200);
  EXPECT_EQ(image.width, 20);
  expect_part(problem(small, 199), "20 x 10 pixels; at most 199");
  expect_part(error_of([&] { resize_image(50000, 50000, image); }),
              "cannot be resized to 50000 x 50000 pixels");
  const uint8_t black = 0;
  expect_part(error_of([&] { extend_image(image, 0, 0, 50000, 50000, &black); }),
              "cannot be extended to 50000 x 50000 pixels");
}

TEST(Images, RefusesACutFileOfAnyKind) {
  NEEDS_IMAGES();
  Image image{3, 31, 33, {}};
  for (int i = 0; i < 3 * 31 * 33; ++i) image.pixels.push_back(static_cast<uint8_t>(i * i % 251));
  for (const char* kind : {"jpg", "png", "bmp", "webp", "ppm"}) {
    SCOPED_TRACE(kind);
    const std::string file = encode_image(image, kind);
    Image decoded;
    for (const double share : {0.3, 0.7, 0.95}) {
      const auto bytes = static_cast<size_t>(share * static_cast<double>(file.size()));
      EXPECT_THROW(decode_image(file.substr(0, bytes), Color::color, decoded), Error) << share;
    }
    decode_image(file, Color::color, decoded);
    EXPECT_EQ(decoded.height, 31);
  }
}

}  // namespace image_header_test
}  // namespace crema::tests
