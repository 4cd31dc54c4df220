// Unusual and damaged pictures: how each is stored in a database, and what is reported about it.
#include "data/convert/convert.h"
#include "data/databases/hdf5/hdf5_source.h"
#include "data/databases/source.h"
#include "fixtures.h"
#include "pictures.h"

namespace crema::tests {
namespace odd_images_test {

std::string jpeg_of(const Image& image) { return encode_image(image, "jpg"); }

// A picture of noise, which takes many bytes.
Image noise() {
  Image image{3, 64, 64, {}};
  for (int i = 0; i < 3 * 64 * 64; ++i) image.pixels.push_back(static_cast<uint8_t>(i * i % 251));
  return image;
}

// In the middle of a scan's data, a marker in place of some of them.
std::string damaged_jpeg() {
  const std::string whole = jpeg_of(noise());
  return whole.substr(0, whole.size() / 2) + "\xFF\xD9";
}

std::string with_rubbish_before_its_end() {
  const std::string whole = jpeg_of(noise());
  return whole.substr(0, whole.size() - 2) + std::string("rubbish") +
         whole.substr(whole.size() - 2);
}

// The beginning of a square one, and nothing else.
std::string huge_png(int side) {
  const std::string extent = {'\0', '\0', static_cast<char>(side / 256),
                              static_cast<char>(side % 256)};
  return std::string("\x89PNG\r\n\x1A\n\0\0\0\x0DIHDR", 16) + extent + extent +
         std::string("\x08\x02\0\0\0", 5);
}

struct Row {
  const char* name;
  std::string file;
  ImagesetOptions options;
  const char* shape;  // content of the record; nullptr: it is skipped
  const char* says;   // part of the error or the warning; "": none
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all = [] {
    const Image grey = quarters();
    const std::string alpha = encode_image({4, 2, 3, std::vector<uint8_t>(24, 200)}, "png"),
                      twisted = with_exif(jpeg_of(grey), 6);
    return std::vector<Row>{
        {"empty.jpg", "", {}, nullptr, "empty.jpg: an empty file is not an image"},
        {"text.jpg", "These are words.", {}, nullptr, "are not an image that can be decoded"},
        {"huge.png",
         huge_png(50000),
         {},
         nullptr,
         "huge.png: the image has 50000 x 50000 pixels; at most 1073741824 are decoded"},
        {"big.png",
         huge_png(20000),
         {},
         nullptr,
         "big.png: the image has 20000 x 20000 pixels; at most 268435456 are decoded (-max_pixels"},
        // Within a limit that was raised; there is no more of it.
        {"large.png",
         huge_png(17000),
         {.max_pixels = 300000000},
         nullptr,
         "its 29 bytes are not an image"},
        {"cut.jpg", jpeg_of(noise()).substr(0, 2000), {}, nullptr, "the JPEG file is cut short"},
        {"damaged.jpg",
         damaged_jpeg(),
         {},
         nullptr,
         "damaged.jpg: the JPEG file is damaged, and pixels are missing (libjpeg: \"Corrupt JPEG "
         "data: premature end of data segment\")"},
        {"damaged.jpg", damaged_jpeg(), {.encoded = true}, nullptr, "pixels are missing"},
        {"odd.jpg",
         with_rubbish_before_its_end(),
         {},
         "3x64x64",
         "odd.jpg: is stored, though libjpeg says: Corrupt JPEG data: "},
        {"grey.jpg", jpeg_of(grey), {}, "3x16x32", ""},
        {"grey.jpg",
         jpeg_of(grey),
         {.as_stored = true},
         "1x16x32",
         "grey.jpg: has 1 channel of bytes, but the first image 3 channels of bytes; a net's"},
        {"cmyk.jpg", cmyk_jpeg(), {}, "3x8x8", "cmyk.jpg: has the inks of print (CMYK)"},
        {"cmyk.jpg", cmyk_jpeg(), {.encoded = true}, "encoded", ""},
        {"alpha.png", alpha, {}, "3x2x3", "alpha.png: has alpha, which is left out; -as_stored"},
        {"alpha.png",
         alpha,
         {.as_stored = true},
         "4x2x3",
         "alpha.png: has 4 channels of bytes, but"},
        {"alpha.png", alpha, {.encoded = true}, "encoded", ""},
        {"deep.png",
         deep_png(),
         {},
         "3x1x2",
         "deep.png: has 16 bits a channel, of which 8 are kept; -as_stored keeps all"},
        {"deep.png",
         deep_png(),
         {.as_stored = true},
         "1x1x2 real",
         "deep.png: has 1 channel of real numbers, but"},
        {"deep.png",
         deep_png(),
         {.resize_height = 3, .resize_width = 4, .as_stored = true},
         "1x3x4 real",
         "deep.png: has 1 channel of real numbers, but"},
        {"held.jpg", twisted, {}, "3x32x16", ""},
        {"held.jpg", twisted, {.exif = false}, "3x16x32", ""},
        {"held.jpg",
         twisted,
         {.as_stored = true},
         "1x32x16",
         "held.jpg: has 1 channel of bytes, but"},
        {"held.jpg",
         twisted,
         {.encoded = true},
         "encoded",
         "held.jpg: is turned as its EXIF data say, and so encoded anew; -exif=false"},
        {"held.jpg", twisted, {.encoded = true, .exif = false}, "encoded", ""},
        // The name says nothing of the content.
        {"png.jpg", encode_image(grey, "png"), {}, "3x16x32", ""},
    };
  }();
  return all;
}

TEST(OddImages, AreStoredOrLeftOutAndNamed) {
  NEEDS_IMAGES();
  for (const Row& row : rows()) {
    SCOPED_TRACE(cat(row.name, ", for ", row.shape ? row.shape : "none"));
    const Folder folder;
    folder.write(row.name, row.file);
    folder.write("good.png", encode_image(noise(), "png"));
    folder.write("list", cat("good.png 1\n", row.name, " 2\n"));
    Lines log;
    const ImagesetResult result = convert_imageset(folder.path() + "/", folder.file("list"),
                                                   folder.file("db"), row.options, log);
    EXPECT_EQ(result.skipped, row.shape ? 0 : 1);
    if (!row.shape) {
      ASSERT_EQ(log.errors.size(), 1u);
      expect_part(log.errors[0], row.says);
      expect_part(log.errors[0], row.name);
      EXPECT_EQ(log.warnings,
                std::vector<std::string>{"1 of 2 images could not be read and are left out; "
                                         "-strict makes that an error."});
      continue;
    }
    ASSERT_EQ(log.warnings.size(), *row.says ? 1u : 0u);
    if (*row.says) expect_part(log.warnings[0], row.says);
    Record record;
    open_lmdb(folder.file("db"))->read(1, record.datum);
    EXPECT_EQ(record.datum.label(), 2);
    const Datum& datum = record.datum;
    const std::string shape = datum.encoded()
                                  ? "encoded"
                                  : cat(datum.channels(), "x", datum.height(), "x", datum.width(),
                                        datum.float_data_size() > 0 ? " real" : "");
    EXPECT_EQ(shape, row.shape);
    decode(record, Color::as_stored);  // what a Data layer reads
  }
}

TEST(OddImages, KeepTheirNumbersAsStored) {
  NEEDS_IMAGES();
  const Folder folder;
  folder.write("deep.png", deep_png());
  folder.write("deep.pgm", std::string("P5\n1 2\n65535\n\xAB\xCD\x12\x34", 18));
  folder.write("list", "deep.png 1\ndeep.pgm 2\n");
  ImagesetOptions options;
  options.as_stored = true;
  convert_imageset(folder.path() + "/", folder.file("list"), folder.file("db"), options,
                   silent_log());
  const auto source = open_lmdb(folder.file("db"));
  for (int i = 0; i < 2; ++i) {
    Record record;
    source->read(i, record.datum);
    decode(record, Color::as_stored);
    ASSERT_NE(record.values, nullptr);
    EXPECT_EQ(record.values[0], 0xABCD);
    EXPECT_EQ(record.values[1], 0x1234);
  }
  for (const bool gray : {false, true}) {
    options.gray = gray;
    options.encoded = !gray;
    expect_part(error_of([&] {
                  convert_imageset(folder.path() + "/", folder.file("list"), folder.file("other"),
                                   options, silent_log());
                }),
                gray ? "-as_stored and -gray: give one of them" : "-as_stored: encoded files keep");
  }
}

// The quarters of the picture where EXIF's eight values say that they belong.
TEST(OddImages, AreTurnedAsTheirCameraWasHeld) {
  NEEDS_IMAGES();
  const std::string upright[] = {"0123", "1032", "3210", "2301", "0213", "2031", "3120", "1302"};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    SCOPED_TRACE(orientation);
    const std::string jpeg = jpeg_of(quarters()), png = encode_image(quarters(), "png");
    const std::string files[] = {with_exif(jpeg, orientation), with_exif(jpeg, orientation, false),
                                 png_with_exif(png, orientation)};
    for (const std::string& file : files) {
      Image image;
      DeepImage deep;
      std::string remark;
      for (const Color color : {Color::color, Color::gray}) {
        decode_image(file, color, image);
        EXPECT_EQ(corners(image), upright[orientation - 1]);
        decode_image(file, color, Decoding{.upright = true}, image);
        EXPECT_EQ(corners(image), upright[orientation - 1]);
        decode_image(file, color, Decoding{.upright = false}, image);
        EXPECT_EQ(corners(image), "0123");
      }
      EXPECT_EQ(image.width, 32);
      decode_image(file, Color::as_stored, image);  // as Caffe reads encoded records
      EXPECT_EQ(corners(image), "0123");
      EXPECT_FALSE(decode_image(file, Decoding{}, image, deep, remark));
      EXPECT_EQ(corners(image), upright[orientation - 1]);
    }
  }
}

// Raw and encoded records of one picture are the same to a Data layer.
TEST(OddImages, AreUprightInEncodedRecordsToo) {
  NEEDS_IMAGES();
  const Folder folder;
  for (int i = 1; i <= 8; ++i) folder.write(cat(i, ".jpg"), with_exif(jpeg_of(quarters()), i));
  std::string list;
  for (int i = 1; i <= 8; ++i) list += cat(i, ".jpg ", i, "\n");
  folder.write("list", list);
  for (const bool encoded : {false, true}) {
    ImagesetOptions options;
    options.encoded = encoded;
    Lines log;
    const std::string path = folder.file(encoded ? "encoded" : "raw");
    convert_imageset(folder.path() + "/", folder.file("list"), path, options, log);
    if (encoded)
      expect_part(log.warnings.at(0),
                  "2.jpg: is turned as its EXIF data say, and so "
                  "encoded anew (so it is with 6 others)");
    const auto source = open_lmdb(path);
    std::string all;
    for (int i = 0; i < 8; ++i) {
      Record record;
      source->read(i, record.datum);
      decode(record, Color::as_stored);
      to_image(record);
      all += corners(record.image) + " ";
    }
    EXPECT_EQ(all, "0123 1032 3210 2301 0213 2031 3120 1302 ");
  }
}

}  // namespace odd_images_test
}  // namespace crema::tests
