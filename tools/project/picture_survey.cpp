#include "tools/project/picture_survey.h"

#include <algorithm>
#include <chrono>
#include <mutex>

#include "base/error.h"
#include "base/files.h"
#include "data/convert/progress.h"
#include "data/images/image.h"
#include "data/loader/on_threads.h"

namespace crema {

namespace {

constexpr int64_t at_a_time = 16;
constexpr size_t shown_problems = 5;

bool is_gray(const Image& image) {
  if (image.channels < 3) return true;
  const uint8_t* pixel = image.pixels.data();
  for (int64_t i = 0; i < image.height * image.width; ++i, pixel += image.channels) {
    if (pixel[0] != pixel[1] || pixel[1] != pixel[2]) return false;
  }
  return true;
}

void read_facts(const std::string& root, PictureFacts& picture) {
  if (!picture.problem.empty()) return;
  try {
    Image image;
    decode_image(read_file(root + picture.path), Color::color, Decoding(), image);
    picture.height = image.height;
    picture.width = image.width;
    picture.gray = is_gray(image);
    Sha256 hash;
    hash.add(cat(image.height, " ", image.width, "\n"));
    hash.add({reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size()});
    picture.pixels = hash.digest();
  } catch (const Error& error) {
    picture.problem = error.what();
  }
}

std::string size_of(int64_t width, int64_t height) { return cat(width, " x ", height); }

}  // namespace

void read_pictures_facts(const std::string& root, std::vector<PictureFacts>* pictures, Log& log) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  const auto count = static_cast<int64_t>(pictures->size());
  int64_t done = 0;
  std::mutex mutex;
  Progress progress(count);
  on_threads(count, at_a_time, [&](int64_t i) {
    read_facts(root, (*pictures)[static_cast<size_t>(i)]);
    const std::lock_guard<std::mutex> lock(mutex);
    const std::chrono::duration<double> seconds = Clock::now() - begin;
    ++done;
    const std::string line = progress.line(seconds.count(), done, done);
    if (!line.empty()) log.info("Looking: " + line);
  });
}

PictureSizes sizes_of(const std::vector<PictureFacts>& pictures) {
  PictureSizes sizes;
  std::vector<int64_t> sides;
  for (const PictureFacts& picture : pictures) {
    if (!picture.problem.empty()) continue;
    if (sides.empty()) {
      sizes.least_height = sizes.most_height = picture.height;
      sizes.least_width = sizes.most_width = picture.width;
    }
    sizes.all_equal &= picture.height == sizes.least_height && picture.width == sizes.least_width;
    sizes.least_height = std::min(sizes.least_height, picture.height);
    sizes.least_width = std::min(sizes.least_width, picture.width);
    sizes.most_height = std::max(sizes.most_height, picture.height);
    sizes.most_width = std::max(sizes.most_width, picture.width);
    sizes.gray &= picture.gray;
    sides.push_back(std::min(picture.height, picture.width));
  }
  require(!sides.empty(), "not one of the ", pictures.size(), " pictures can be read",
          pictures.empty() ? "" : ", such as " + pictures[0].path + ": " + pictures[0].problem);
  const auto middle = sides.begin() + static_cast<int64_t>(sides.size() / 2);
  std::nth_element(sides.begin(), middle, sides.end());
  sizes.median_side = *middle;
  return sizes;
}

std::string text_of(const PictureSizes& sizes) {
  const std::string colours = sizes.gray ? "all grey" : "in colour";
  if (sizes.all_equal)
    return cat("all of ", size_of(sizes.least_width, sizes.least_height), " pixels, ", colours);
  return cat("widths from ", sizes.least_width, " to ", sizes.most_width, ", heights from ",
             sizes.least_height, " to ", sizes.most_height, ", the median of the shorter sides is ",
             sizes.median_side, "; ", colours);
}

std::vector<std::string> problems_of(const std::vector<PictureFacts>& pictures) {
  std::vector<std::string> lines;
  size_t count = 0;
  for (const PictureFacts& picture : pictures) {
    if (picture.problem.empty() || ++count > shown_problems) continue;
    lines.push_back(cat("  ", picture.path, ": ", picture.problem));
  }
  if (count > shown_problems) lines.push_back(cat("  and ", count - shown_problems, " more"));
  if (count > 0)
    lines.insert(lines.begin(),
                 cat(count, count == 1 ? " picture" : " pictures", " cannot be read and ",
                     count == 1 ? "is" : "are", " left out:"));
  return lines;
}

}  // namespace crema
