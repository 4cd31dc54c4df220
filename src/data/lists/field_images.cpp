#include "data/lists/field_images.h"

#include <algorithm>
#include <cmath>

#include "data/transforms/transform.h"

namespace crema {
namespace {

constexpr float kUnannotated = 0.4f;  // fraction of a field in unannotated regions
constexpr float kMinBest = 0.2f;      // minimum overlap to record an object that no field fits
constexpr int64_t kJitter = 10;       // pixels

int64_t rounded(float x) {
  // A box of almost no pixels would be enlarged without limit.
  if (!(std::abs(x) < 1e9f)) fail("an object is enlarged to ", x, " pixels: is its box too small?");
  return std::lround(x);
}

void move(Region& box, float scale_x, float scale_y, float right, float down) {
  box = {box.xmin * scale_x + right, box.ymin * scale_y + down, box.xmax * scale_x + right,
         box.ymax * scale_y + down};
}

Region read_corners(WordReader& reader) {
  Region box;
  for (float* side : {&box.xmin, &box.ymin, &box.xmax, &box.ymax})
    *side = reader.corner<float>("a corner of a box");
  return box;
}

}  // namespace

std::vector<FieldImage> read_field_list(const std::string& path) {
  std::vector<FieldImage> images;
  WordReader reader(path);
  while (!reader.at_end()) {
    const std::string_view mark = reader.word("an image");
    if (mark != "#")
      reader.wrong(cat("found `", mark, "` where an image, `# index`, was expected"));
    reader.number<int64_t>("the number of an image");
    FieldImage image;
    image.path = reader.rest_of_line("the path of an image");
    image.line = reader.line();
    reader.number<int64_t>("the channels of an image");
    image.height = reader.number<int64_t>("the height of an image");
    image.width = reader.number<int64_t>("the width of an image");
    for (auto left = reader.number<int64_t>("a count of objects"); left > 0; --left) {
      FieldObject object;
      object.label = reader.label("the class of an object");
      if (object.label <= 0)
        reader.wrong(cat("an object has the class ", object.label, "; 0 is background"));
      object.ignored = reader.number<int>("whether to ignore an object") != 0;
      object.box = read_corners(reader);
      image.objects.push_back(object);
    }
    for (auto left = reader.number<int64_t>("a count of regions"); left > 0; --left)
      image.unseen.push_back(read_corners(reader));
    images.push_back(std::move(image));
  }
  require(!images.empty(), path, ": names no image");
  return images;
}

// centre of the crop
struct FieldImages::Scene {
  Image image;
  std::vector<FieldObject> objects;
  std::vector<Region> unseen;
  float middle_x = 0, middle_y = 0;  // centre of what the crop shows
  float zoom_x = 1, zoom_y = 1;
  // The part of the sample that the image covers.
  int64_t top = 0, left = 0;

  void move_all(float scale_x, float scale_y, float right, float down) {
    for (FieldObject& object : objects) move(object.box, scale_x, scale_y, right, down);
    for (Region& region : unseen) move(region, scale_x, scale_y, right, down);
  }
};

// The field that fits an object best.
struct FieldImages::Best {
  int map = 0;
  float overlap = 0;
  bool found = false;  // some field overlaps the object enough
};

FieldImages::FieldImages(std::string path, ImageReading reading,
                         const ImageGtDataParameter& parameter,
                         const TransformationParameter& transform)
    : path_(std::move(path)),
      reading_(std::move(reading)),
      parameter_(parameter),
      means_(transform.mean_value().begin(), transform.mean_value().end()),
      mirror_(transform.mirror()) {
  require(!transform.has_gray(), "this layer takes no gray; its images have 3 channels");
  require(!transform.has_augment(),
          "this layer takes no augment; do_multiple_scale, the crop and mirror are its changes");
  for (const FieldImage& image : read_field_list(path_)) {
    const bool shows = std::any_of(image.objects.begin(), image.objects.end(),
                                   [](const FieldObject& object) { return !object.ignored; });
    images_.insert(images_.end(), shows ? parameter_.fg_img_multiple() : 1, image);
    max_objects_ = std::max(max_objects_, static_cast<int64_t>(image.objects.size()));
  }
  require(!images_.empty(), path_, ": fg_img_multiple: 0 leaves no image");
  require(means_.size() <= 1 || means_.size() == 3, "the images have 3 channels, but there are ",
          means_.size(), " mean_value; give one, or one a channel");
  height_ = reading_.height > 0 ? reading_.height : images_[0].height;
  width_ = reading_.height > 0 ? reading_.width : images_[0].width;
  const int64_t crop_height = parameter_.crop_height(), crop_width = parameter_.crop_width();
  require(crop_height <= height_ && crop_width <= width_, "the images are ", height_, "x", width_,
          ": too small for a crop of ", crop_height, "x", crop_width);
  if (crop_height > 0) height_ = crop_height;
  if (crop_width > 0) width_ = crop_width;
  const int maps = parameter_.downsample_rate_size();
  require(maps > 0 && parameter_.field_h_size() == maps && parameter_.field_w_size() == maps,
          "there are ", maps, " downsample_rate, ", parameter_.field_h_size(), " field_h and ",
          parameter_.field_w_size(), " field_w: give one of each for each map");
  for (int i = 0; i < maps; ++i) {
    const int64_t step = parameter_.downsample_rate(i);
    require(step > 0 && step <= std::min(height_, width_), "downsample_rate is ", step,
            ", but must be from 1 to the height and width of the samples, ", height_, "x", width_);
    maps_.push_back({kChannels, height_ / step, width_ / step});
    map_numbers_ += maps_.back().count();
  }
  require(!parameter_.do_multiple_scale() || !parameter_.has_min_scale() ||
              !parameter_.has_max_scale() ||
              (0 < parameter_.min_scale() && parameter_.min_scale() <= parameter_.max_scale()),
          "min_scale is ", parameter_.min_scale(), " and max_scale ", parameter_.max_scale(),
          ", but both must be above 0, the smaller one first");
}

std::string FieldImages::describe(const SampleIndex& sample_index) const {
  return cat(path_, ":", images_[sample_index.record_index.index].line);
}

std::string FieldImages::how_to_equalize() const {
  return "give image_gt_data_param resize_width and resize_height, or crop_width and crop_height";
}

void FieldImages::read(const FieldImage& listed, Scene& scene) const {
  scene.objects = listed.objects;
  scene.unseen = listed.unseen;
  Image& image = scene.image;
  const ImageExtents whole = reading_.decode(listed.path, read_file(reading_.find(listed.path)),
                                             Color::color, Interpolation::linear, image);
  const auto height = static_cast<float>(whole.height), width = static_cast<float>(whole.width);
  reading_.resize(whole, Interpolation::linear, image);
  scene.move_all(static_cast<float>(image.width) / width, static_cast<float>(image.height) / height,
                 0, 0);
  require(image.height >= height_ && image.width >= width_, "the image is ", image.height, "x",
          image.width, ": too small for samples of ", height_, "x", width_);
}

// Zooms so that the chosen object gets one of the sizes between min_scale and max_scale, half
// octaves apart; half of the time its aspect ratio also changes.
void FieldImages::zoom(Scene& scene, const FieldObject& chosen, Rng& rng) const {
  const auto minimum = static_cast<float>(parameter_.min_scale()),
             maximum = static_cast<float>(parameter_.max_scale());
  const float width = chosen.box.width(), height = chosen.box.height();
  require(width > 0 && height > 0, "an object is ", width, " wide and ", height, " high");
  const int64_t sizes = rounded(2 * std::log2(maximum / minimum) + 1);
  int64_t nearest = 0;
  float best = 0;
  for (int64_t i = 0; i < sizes; ++i) {
    const float side = minimum * std::exp2(static_cast<float>(i) / 2), own = width * height;
    const float ratio = std::min(own, side * side) / std::max(own, side * side);
    if (ratio > best) nearest = i;
    best = std::max(best, ratio);
  }
  const float factor = std::exp2(static_cast<float>(rng.pick(sizes) - nearest) / 2);
  scene.zoom_x = scene.zoom_y = factor;
  const auto steps = rounded((parameter_.max_whaspect() - parameter_.min_whaspect()) / 0.05f);
  if (steps <= 0 || !rng.chance(0.5f)) return;
  const float ratio = parameter_.min_whaspect() + 0.05f * static_cast<float>(rng.pick(steps));
  const float change = ratio / (width / height);
  const auto fits = [&](float side) { return side >= minimum * 0.8f && side <= maximum * 1.2f; };
  if (rng.chance(0.5f)) {
    if (fits(width * factor * change)) scene.zoom_x *= change;
  } else if (fits(height * factor / change)) {
    scene.zoom_y /= change;
  }
}

// Cuts off the area outside the crop, to avoid enlarging it.
void FieldImages::cut_before_zoom(Scene& scene) const {
  const Image& image = scene.image;
  const auto part = [](int64_t side, float zoom, float middle, int64_t* first) {
    const int64_t length = std::min(side, rounded(1.2f * static_cast<float>(side) / zoom));
    *first =
        std::clamp<int64_t>(rounded(middle - static_cast<float>(length) / 2), 0, side - length);
    return length;
  };
  int64_t top, left;
  const int64_t height = part(image.height, scene.zoom_y, scene.middle_y, &top),
                width = part(image.width, scene.zoom_x, scene.middle_x, &left);
  scene.image = cut_image(image, top, left, height, width);
  scene.middle_x -= static_cast<float>(left);
  scene.middle_y -= static_cast<float>(top);
  scene.move_all(1, 1, -static_cast<float>(left), -static_cast<float>(top));
}

// Zooms and cuts out the sample, or positions a smaller image in it.
void FieldImages::place_in_sample(Scene& scene, Rng& rng) const {
  Image& image = scene.image;
  const auto zoomed = [](int64_t side, float zoom) {
    return std::max<int64_t>(1, rounded(static_cast<float>(side) * zoom));
  };
  resize_image(zoomed(image.height, scene.zoom_y), zoomed(image.width, scene.zoom_x), image);
  scene.move_all(scene.zoom_x, scene.zoom_y, 0, 0);
  // Where the sample begins in the image; negative: the image begins inside the sample.
  const auto begin = [&](int64_t side, int64_t wanted, float middle) {
    const int64_t jitter = rng.pick(2 * kJitter) - kJitter, spare = side - wanted;
    if (spare < 0) return -std::clamp<int64_t>((1 - spare) / 2 + jitter, 0, -spare);
    return std::clamp<int64_t>(rounded(middle) + jitter - (wanted + 1) / 2, 0, spare);
  };
  const int64_t left = begin(image.width, width_, scene.middle_x * scene.zoom_x),
                top = begin(image.height, height_, scene.middle_y * scene.zoom_y);
  scene.move_all(1, 1, -static_cast<float>(left), -static_cast<float>(top));
  image = cut_image(image, std::max<int64_t>(0, top), std::max<int64_t>(0, left),
                    std::min(image.height, height_), std::min(image.width, width_));
  scene.top = std::max<int64_t>(0, -top);
  scene.left = std::max<int64_t>(0, -left);
}

void FieldImages::load(const SampleIndex& sample_index, Sample& sample) const {
  Rng rng = rng_of(sample_index);
  Scene scene;
  read(images_[sample_index.record_index.index], scene);
  Image& image = scene.image;
  if (mirror_ && rng.chance(0.5f)) {
    for (int64_t y = 0; y < image.height; ++y) {
      for (int64_t x = 0; x < image.width / 2; ++x) {
        uint8_t* const row = image.pixels.data() + y * image.width * 3;
        std::swap_ranges(row + x * 3, row + x * 3 + 3, row + (image.width - 1 - x) * 3);
      }
    }
    scene.move_all(-1, 1, static_cast<float>(image.width), 0);
    for (FieldObject& object : scene.objects) std::swap(object.box.xmin, object.box.xmax);
    for (Region& region : scene.unseen) std::swap(region.xmin, region.xmax);
  }
  if (scene.objects.empty()) {
    scene.middle_x =
        static_cast<float>(rng.pick(image.width - width_ + 1)) + static_cast<float>(width_) / 2;
    scene.middle_y =
        static_cast<float>(rng.pick(image.height - height_ + 1)) + static_cast<float>(height_) / 2;
  } else {
    const FieldObject& chosen = scene.objects[rng.pick(static_cast<int64_t>(scene.objects.size()))];
    scene.middle_x = (chosen.box.xmin + chosen.box.xmax) / 2;
    scene.middle_y = (chosen.box.ymin + chosen.box.ymax) / 2;
    const bool zooms =
        parameter_.do_multiple_scale() && parameter_.has_min_scale() && parameter_.has_max_scale();
    if (zooms && rng.chance(0.5f)) zoom(scene, chosen, rng);
  }
  if (scene.zoom_x > 1.5f || scene.zoom_y > 1.5f) cut_before_zoom(scene);
  place_in_sample(scene, rng);

  for (FieldObject& object : scene.objects) {
    const Region& box = object.box;
    const float x = (box.xmin + box.xmax) / 2, y = (box.ymin + box.ymax) / 2;
    if (x < 0 || x >= static_cast<float>(width_) || y < 0 || y >= static_cast<float>(height_) ||
        box.width() + 1 < parameter_.min_gt_width() ||
        box.height() + 1 < parameter_.min_gt_height())
      object.ignored = true;
  }
  sample.labels.assign(map_numbers_ + 1 + max_objects_ * kNumbers, 0);
  std::vector<Best> best(scene.objects.size());
  float* to = sample.labels.data();
  for (int map = 0; map < static_cast<int>(maps_.size()); to += maps_[map++].count())
    write_map(scene, map, best, to);
  write_missed(scene, best, sample.labels);
  *to++ = static_cast<float>(scene.objects.size());
  for (const auto& [box, label, ignored] : scene.objects) {
    for (const float number :
         {static_cast<float>(sample_index.in_batch), box.xmin, box.ymin, box.xmax, box.ymax,
          static_cast<float>(label), static_cast<float>(ignored)})
      *to++ = number;
  }
  sample.label_shape = {static_cast<int64_t>(sample.labels.size())};
  // The sample is finished here already: only its pixels are left for write().
  sample.stored_height = scene.top;
  sample.stored_width = scene.left;
  sample.record.image = std::move(image);
  sample.shape = {3, height_, width_};
}

void FieldImages::write_map(const Scene& scene, int map, std::vector<Best>& best, float* to) const {
  const int64_t rows = maps_[map][1], columns = maps_[map][2], positions = rows * columns;
  const auto step = static_cast<float>(parameter_.downsample_rate(map)),
             half_width = static_cast<float>(parameter_.field_w(map)) / 2,
             half_height = static_cast<float>(parameter_.field_h(map)) / 2;
  const auto in_steps = [&](int64_t pixels) { return rounded(static_cast<float>(pixels) / step); };
  const int64_t top = in_steps(scene.top), left = in_steps(scene.left),
                bottom = top + in_steps(scene.image.height),
                right = left + in_steps(scene.image.width);
  for (int64_t position = 0; position < positions; ++position) {
    const int64_t h = position / columns, w = position % columns;
    const float x = (static_cast<float>(w) + 0.5f) * step,
                y = (static_cast<float>(h) + 0.5f) * step;
    const Region field{x - half_width, y - half_height, x + half_width, y + half_height};
    float& share = to[(kChannels - 1) * positions + position];
    float unseen = 0;
    for (const Region& region : scene.unseen) unseen += coverage(field, region);
    if (h < top || h >= bottom || w < left || w >= right || unseen >= kUnannotated) {
      share = 1;  // background that does not count
      continue;
    }
    int match = -1;
    for (int i = 0; i < static_cast<int>(scene.objects.size()); ++i) {
      const float common = overlap(scene.objects[i].box, field);
      if (common > share) match = i;
      share = std::max(share, common);
      if (common > best[i].overlap) best[i] = {map, common, best[i].found};
    }
    if (match < 0 || share <= parameter_.fg_threshold()) continue;
    const auto& [box, label, ignored] = scene.objects[match];
    best[match].found = true;
    const float numbers[] = {ignored ? 0.f : static_cast<float>(label), (box.xmin + box.xmax) / 2,
                             (box.ymin + box.ymax) / 2, box.width(), box.height()};
    for (int k = 0; k < kChannels - 1; ++k) to[k * positions + position] = numbers[k];
  }
}

// Objects that no field overlaps enough are recorded at their centre, in the nearest map.
void FieldImages::write_missed(const Scene& scene, const std::vector<Best>& best,
                               std::vector<float>& labels) const {
  for (size_t i = 0; i < best.size(); ++i) {
    const auto& [box, label, ignored] = scene.objects[i];
    if (ignored || best[i].found || best[i].overlap < kMinBest) continue;
    const int map = best[i].map;
    float* to = labels.data();
    for (int before = 0; before < map; ++before) to += maps_[before].count();
    const int64_t rows = maps_[map][1], columns = maps_[map][2];
    const auto step = static_cast<float>(parameter_.downsample_rate(map));
    const float x = (box.xmin + box.xmax) / 2, y = (box.ymin + box.ymax) / 2;
    const int64_t h = std::clamp<int64_t>(static_cast<int64_t>(y / step), 0, rows - 1),
                  w = std::clamp<int64_t>(static_cast<int64_t>(x / step), 0, columns - 1);
    float* const at = to + h * columns + w;
    if (*at > 0) continue;
    const float numbers[] = {static_cast<float>(label), x, y, box.width(), box.height()};
    for (int k = 0; k < kChannels - 1; ++k) at[k * rows * columns] = numbers[k];
  }
}

void FieldImages::write(const SampleIndex&, Sample& sample, float* data) const {
  const Image& image = sample.record.image;
  std::fill_n(data, sample.shape.count(), 0.f);
  for (int c = 0; c < 3; ++c) {
    const float mean = means_.empty() ? 0 : means_[means_.size() == 1 ? 0 : c];
    for (int64_t y = 0; y < image.height; ++y) {
      const uint8_t* from = image.pixels.data() + y * image.width * 3 + c;
      float* to = data + (c * height_ + y + sample.stored_height) * width_ + sample.stored_width;
      for (int64_t x = 0; x < image.width; ++x)
        to[x] = (static_cast<float>(from[x * 3]) - mean) * parameter_.scale();
    }
  }
}

}  // namespace crema
