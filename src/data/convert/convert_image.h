// One image file as a record.
#pragma once

#include "data/convert/convert.h"
#include "data/images/image.h"

namespace crema {

// What a converter reports about an image in addition to storing it.
struct ConvertedImage {
  int64_t channels = 0, height = 0, width = 0;  // in whatever form it is stored
  int64_t whole_height = 0, whole_width = 0;    // upright, before resizing
  int bits = 8;                                 // per channel, in the file, of which 8 are kept
  int dropped_channels = 0;                     // of the file
  bool real = false;                            // not bytes
  bool cmyk = false;                            // the file has these inks
  bool written_anew = false;                    // an encoded file that had to be turned
  std::string remark;                           // libjpeg's, on what does no harm

  int64_t values() const { return channels * height * width; }
};

// Error if the options contradict each other or are out of range.
void check_options(const ImagesetOptions& options);

// Reads the file into a Datum as the options say; its labels are left to the caller. Error names the
// file. Thread-safe.
ConvertedImage convert_image(const std::string& path, const ImagesetOptions& options, Datum& datum);

}  // namespace crema
