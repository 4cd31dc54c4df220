#include "data/convert/convert_image.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "data/convert/parts.h"
#include "data/images/image_header.h"

namespace crema {
namespace {

std::string extension_of(const std::string& path) {
  const size_t dot = path.rfind('.');
  if (dot == std::string::npos || path.find('/', dot) != std::string::npos) return "";
  return lower_case(path.substr(dot + 1));
}

bool same_kind(std::string a, std::string b) {
  for (std::string* kind : {&a, &b}) {
    if (*kind == "jpg") *kind = "jpeg";
  }
  return a == b;
}

void set_planes(const Image& image, Datum& datum) {
  datum.set_channels(static_cast<int>(image.channels));
  datum.set_height(static_cast<int>(image.height));
  datum.set_width(static_cast<int>(image.width));
  std::string& planes = *datum.mutable_data();
  planes.resize(image.pixels.size());
  const int64_t plane = image.height * image.width;
  for (int64_t c = 0; c < image.channels; ++c) {
    for (int64_t i = 0; i < plane; ++i)
      planes[c * plane + i] = static_cast<char>(image.pixels[i * image.channels + c]);
  }
  datum.set_encoded(false);
}

void check_pixels(double width, double height, const char* what, const ImagesetOptions& options) {
  if (width * height > static_cast<double>(options.max_pixels)) {
    fail(what, static_cast<int64_t>(width), " x ", static_cast<int64_t>(height),
         " pixels; at most ", options.max_pixels, " are stored (-max_pixels)");
  }
}

// As in SSD's converter, including rounding.
void limit_sides(const ImagesetOptions& options, Image& image) {
  const auto minimum = static_cast<float>(std::min(image.height, image.width)),
             maximum = static_cast<float>(std::max(image.height, image.width));
  const auto min_dim = static_cast<float>(options.min_dim),
             max_dim = static_cast<float>(options.max_dim);
  float factor = 1;
  if (min_dim > 0 && minimum < min_dim) factor = min_dim / minimum;
  if (max_dim > 0 && std::trunc(factor * maximum) > max_dim) factor = max_dim / maximum;
  if (factor == 1) return;
  check_pixels(std::trunc(static_cast<double>(image.width) * factor),
               std::trunc(static_cast<double>(image.height) * factor),
               "with -min_dim and -max_dim the image has ", options);
  scale_image(factor, image);
}

void check_options(const ImagesetOptions& options, Log& log) {
  require(options.max_pixels > 0 && options.max_pixels <= kMaxPixelsEver, "-max_pixels ",
          options.max_pixels, ": must be from 1 to ", kMaxPixelsEver);
  require(!options.encoded || options.to.format.backend != DataParameter::HDF5,
          "-encoded: HDF5Data reads values, not image files; with -backend hdf5 leave it out");
  check_pixels(static_cast<double>(options.resize_width),
               static_cast<double>(options.resize_height),
               "-resize_width and -resize_height ask for images of ", options);
  if ((options.resize_height > 0) != (options.resize_width > 0))
    log.warning("Only one of -resize_height and -resize_width is given: images are not resized.");
  if (!options.encode_type.empty() && !options.encoded)
    log.info("encode_type specified, assuming encoded=true.");
  if (options.shuffle) log.info("Shuffling data");
}

}  // namespace

ConvertedImage convert_image(const std::string& path, int label, const ImagesetOptions& options,
                             Datum& datum) {
  const std::string file = read_file(path);
  ConvertedImage converted;
  Image& image = converted.image;
  const bool limit = options.min_dim > 0 || options.max_dim > 0,
             resize = !limit && options.resize_height > 0 && options.resize_width > 0;
  try {
    decode_image(file, options.gray ? Color::gray : Color::color, image, options.max_pixels);
    if (limit) limit_sides(options, image);
  } catch (const Error& problem) {
    fail(path, ": ", problem.what());
  }
  if (resize) resize_image(options.resize_height, options.resize_width, image);
  if (const std::optional<ImageHeader> header = read_image_header(file))
    converted.bits = header->bits;
  datum.Clear();
  datum.set_label(label);
  const std::string own = extension_of(path);
  const std::string kind =
      options.encode_type.empty() && options.encoded ? own : options.encode_type;
  if (kind.empty()) {
    set_planes(image, datum);
  } else {
    // A file in the right format is stored byte for byte, as in Caffe, even with -gray.
    const bool keep = same_kind(own, kind) && !resize && !limit;
    datum.set_data(keep ? file : encode_image(image, kind));
    datum.set_encoded(true);
  }
  return converted;
}

ImagesetResult convert_list(
    const std::string& list, const std::string& root, const std::vector<ListedImage>& lines,
    const std::string& database, const ImagesetOptions& options, Log& log,
    const google::protobuf::Message& record,
    const std::function<ConvertedImage(const ListedImage&, const std::string& path)>& make) {
  const auto count = static_cast<int64_t>(lines.size());
  check_options(options, log);
  log.info(cat("A total of ", count, " images."));
  std::vector<int> labels;
  for (const ListedImage& line : lines) labels.push_back(line.class_number);
  Parts parts(database, labels, options.shuffle, options.to);
  ImagesetResult result;
  Image first;
  bool cut = false;  // whether an image was reduced to 8 bits, which is logged once
  parts.each_record([&](Parts::Part& part, int64_t i, int64_t index) {
    const ListedImage& line = lines[index];
    const std::string name = as_listed(line.path, root, ""), path = root + name;
    ConvertedImage converted;
    try {
      converted = make(line, path);
    } catch (const Error& problem) {
      const std::string reason = problem.what();
      const bool named = starts_with(reason, path) || (!root.empty() && starts_with(reason, root));
      log.error(cat("Could not open or find file ", named ? reason : cat(path, ": ", reason)));
      ++result.skipped;
      return;
    }
    const Image& image = converted.image;
    if (first.pixels.empty()) first = image;
    if (options.check_size && image.pixels.size() != first.pixels.size()) {
      fail(path, ": is ", image.channels, "x", image.height, "x", image.width,
           ", but the first image is ", first.channels, "x", first.height, "x", first.width,
           "; -resize_height and -resize_width make them equal");
    }
    if (converted.bits > 8 && !cut) {
      log.warning(cat(path, ": has ", converted.bits,
                      " bits a channel, of which 8 are kept; so it is with all such images"));
      cut = true;
    }
    part.put(cat(numbered_key(i, 8), "_", name), record, line.class_number);
    if (++result.written % 1000 == 0) log.info(cat("Processed ", result.written, " files."));
  });
  require(result.written > 0, list, ": not one of its ", count,
          " images can be read; the paths follow ", root.empty() ? "the working directory" : root);
  if (options.strict && result.skipped > 0) {
    fail(list, ": ", result.skipped, " of ", count,
         " images could not be read; with -strict no database is made of the others");
  }
  parts.finish(log);
  if (result.written % 1000 != 0) log.info(cat("Processed ", result.written, " files."));
  if (result.skipped > 0) {
    log.warning(cat(result.skipped, " of ", count,
                    " images could not be read and are left out; -strict makes that an error."));
  }
  return result;
}

}  // namespace crema
