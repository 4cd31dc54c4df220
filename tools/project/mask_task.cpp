// Pictures, and pictures of the same names that show the class of each pixel.
#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "data/databases/class_names.h"
#include "data/images/image.h"
#include "data/lists/image_folder.h"
#include "data/loader/on_threads.h"
#include "data/loader/permutation.h"
#include "tools/project/picture_survey.h"
#include "tools/project/split_folders.h"
#include "tools/project/tasks.h"

namespace crema {

namespace {

namespace fs = std::filesystem;

constexpr uint32_t ignored_gray = 0xffffff, ignored_voc = 0xe0e0c0;  // as 0xRRGGBB: no class
constexpr uint8_t ignored = 255;        // in the masks that are written
constexpr int64_t sides_multiple = 16;  // of U-Net
constexpr size_t most_colours = 255;

struct MaskedPicture {
  std::string picture, mask;  // paths
  bool tests = false;
};

std::string without_ending(const std::string& path) {
  return fs::path(path).replace_extension().string();
}

// Pairs of the same name in both folders.
void add_pairs(const std::string& pictures, const std::string& masks, bool tests,
               std::vector<MaskedPicture>* pairs) {
  std::map<std::string, std::string> found;
  for (const std::string& path : images_below(masks).paths)
    found[without_ending(path.substr(masks.size()))] = path;
  for (const std::string& path : images_below(pictures).paths) {
    const auto mask = found.find(without_ending(path.substr(pictures.size())));
    if (mask != found.end()) pairs->push_back({path, mask->second, tests});
  }
}

std::vector<MaskedPicture> find_pairs(const std::string& top) {
  const std::vector<std::string> of_pictures = {"images", "jpegimages", "imgs", "img", "pictures"};
  const std::vector<std::string> of_masks = {"masks",  "mask",        "segmentationclass",
                                             "labels", "annotations", "gt"};
  std::vector<MaskedPicture> pairs;
  const std::string pictures = folder_named(top, of_pictures), masks = folder_named(top, of_masks);
  const bool outside = !pictures.empty() && !masks.empty();
  const SplitFolders parts = split_folders(outside ? pictures : top);
  for (const std::string& part : {parts.training, parts.testing}) {
    const std::string below = part.empty() ? "" : "/" + part;
    const std::string from = outside ? pictures + below : folder_named(top + below, of_pictures);
    const std::string to = outside ? masks + below : folder_named(top + below, of_masks);
    if (!from.empty() && !to.empty() && folder_exists(from) && folder_exists(to))
      add_pairs(from, to, !part.empty() && part == parts.testing, &pairs);
    if (part.empty()) break;
  }
  return pairs;
}

uint32_t colour_at(const Image& image, int64_t i) {
  const uint8_t* const pixel = image.pixels.data() + 3 * i;
  return static_cast<uint32_t>(pixel[2]) << 16 | static_cast<uint32_t>(pixel[1]) << 8 | pixel[0];
}

class MaskTask : public Task {
 public:
  MaskTask(const NewOptions& options, std::vector<MaskedPicture> pairs, Log& log);

  std::vector<std::string> survey() const override { return survey_; }
  ModelChoice choose() const override;
  std::vector<std::string> fit(const NetText&) override {
    return {cat("pictures: stored as ", side_, " x ", side_,
                " pixels, a multiple of 16 as U-Net needs, and the masks likewise")};
  }
  bool takes_any_net() const override { return false; }
  void connect(NetText*, int64_t) const override {}
  void convert(const std::string& folder, Log& log) const override;
  int64_t training() const override { return static_cast<int64_t>(parts_[0].size()); }
  int64_t testing() const override { return static_cast<int64_t>(parts_[1].size()); }
  // A pixel is a sample of its own, so pictures are seen less often than those of classes.
  int64_t length(int64_t batch) const override {
    return std::max<int64_t>(200, Task::length(batch) / 4 / 10 * 10);
  }
  std::string use() const override {
    return "crema serve -model net.prototxt -weights $weights -labels labels.txt\n";
  }

 private:
  void look(Log& log);
  void number_classes(const std::set<uint32_t>& colours);
  void divide(std::vector<MaskedPicture> usable);
  void write_pair(const MaskedPicture& pair, const std::string& picture,
                  const std::string& mask) const;

  const NewOptions options_;
  const std::vector<MaskedPicture> pairs_;
  std::map<uint32_t, uint8_t> numbers_;  // of colours
  std::vector<std::string> classes_;
  std::vector<MaskedPicture> parts_[2];
  int64_t side_ = 0;
  std::vector<std::string> survey_;
};

MaskTask::MaskTask(const NewOptions& options, std::vector<MaskedPicture> pairs, Log& log)
    : options_(options), pairs_(std::move(pairs)) {
  look(log);
}

void MaskTask::look(Log& log) {
  std::vector<PictureFacts> facts(pairs_.size());
  for (size_t i = 0; i < pairs_.size(); ++i) facts[i].path = pairs_[i].picture;
  read_pictures_facts("", &facts, log);
  std::set<uint32_t> colours;
  std::mutex mutex;
  on_threads(static_cast<int64_t>(pairs_.size()), 8, [&](int64_t i) {
    PictureFacts& picture = facts[static_cast<size_t>(i)];
    if (!picture.problem.empty()) return;
    try {
      Image mask;
      decode_image(read_file(pairs_[static_cast<size_t>(i)].mask), Color::color, mask);
      if (mask.height != picture.height || mask.width != picture.width) {
        picture.problem = cat("has ", picture.width, " x ", picture.height,
                              " pixels, but its mask ", mask.width, " x ", mask.height);
        return;
      }
      std::set<uint32_t> mine;
      uint32_t last = 0;
      for (int64_t k = 0; k < mask.height * mask.width; ++k) {
        const uint32_t colour = colour_at(mask, k);
        if (k == 0 || colour != last) mine.insert(colour);
        last = colour;
        require(mine.size() <= most_colours, pairs_[static_cast<size_t>(i)].mask,
                ": has more than ", most_colours,
                " colours, but a mask has one for each class; save masks as PNG, because JPEG "
                "blurs them");
      }
      const std::lock_guard<std::mutex> lock(mutex);
      colours.insert(mine.begin(), mine.end());
    } catch (const Error& error) {
      picture.problem = error.what();
    }
  });
  const PictureSizes sizes = sizes_of(facts);
  require(colours.size() <= most_colours, options_.data, ": its masks have ", colours.size(),
          " colours in all, but one for each class is expected");
  number_classes(colours);
  std::vector<MaskedPicture> usable;
  for (size_t i = 0; i < pairs_.size(); ++i) {
    if (facts[i].problem.empty()) usable.push_back(pairs_[i]);
  }
  survey_.push_back(cat(options_.data, ": ", usable.size(), " pictures with masks of ",
                        classes_.size(), " classes: ", join(classes_, ", "),
                        numbers_.size() > classes_.size() ? "; and pixels of no class" : ""));
  survey_.push_back(text_of(sizes));
  const std::vector<std::string> problems = problems_of(facts);
  survey_.insert(survey_.end(), problems.begin(), problems.end());
  const int64_t most = options_.gpu ? 288 : 128;
  side_ = std::clamp<int64_t>(sizes.median_side / sides_multiple * sides_multiple, 64, most);
  divide(std::move(usable));
}

// Grey values from 0 on are the numbers of classes, with 255 for pixels of no class. Other colours are
// numbered in their order, black first.
void MaskTask::number_classes(const std::set<uint32_t>& colours) {
  const bool gray = std::all_of(colours.begin(), colours.end(),
                                [](uint32_t c) { return (c & 255) * 0x010101 == c; });
  uint32_t most = 0;
  for (const uint32_t colour : colours) {
    if (colour != ignored_gray) most = std::max(most, colour & 255);
  }
  const bool numbered = gray && colours.size() > 1 && most > 0 && most < 64;
  for (const uint32_t colour : colours) {
    const bool none = numbered ? colour == ignored_gray : !gray && colour == ignored_voc;
    numbers_[colour] = none       ? ignored
                       : numbered ? static_cast<uint8_t>(colour & 255)
                                  : static_cast<uint8_t>(classes_.size());
    if (none || numbered) continue;
    classes_.push_back(gray ? cat("grey ", colour & 255) : "#" + hex_of(colour, 6));
  }
  if (numbered) {
    for (uint32_t c = 0; c <= most; ++c)
      classes_.push_back(c == 0 ? "background" : cat("class ", c));
  }
  require(classes_.size() > 1, options_.data, ": its masks have one class only");
}

void MaskTask::divide(std::vector<MaskedPicture> usable) {
  const auto count = static_cast<int64_t>(usable.size());
  const bool given = std::any_of(usable.begin(), usable.end(),
                                 [](const MaskedPicture& pair) { return pair.tests; });
  const int64_t learned = given ? 0 : training_part(options_, count);
  const Permutation order(std::max<int64_t>(1, count), {options_.seed, 1});
  for (int64_t i = 0; i < count; ++i) {
    MaskedPicture& pair = usable[static_cast<size_t>(given ? i : order(i))];
    parts_[given ? pair.tests : i >= learned].push_back(std::move(pair));
  }
  require(training() > 0 && testing() > 0, options_.data, ": has ", training(),
          " pictures for training and ", testing(), " for testing; both need some");
  survey_.push_back(cat(training(), " for training and ", testing(), " for testing, ",
                        given ? "as the folders divide them"
                              : cat("divided by chance (-split ", options_.split, ")")));
}

ModelChoice MaskTask::choose() const {
  ModelChoice choice;
  choice.net = models_folder() + "/unet/train_val.prototxt";
  choice.solver = models_folder() + "/unet/solver.prototxt";
  choice.settings = {"data=data",         cat("classes=", classes_.size()),
                     cat("crop=", side_), cat("width=", options_.gpu ? 32 : 16),
                     "bn=true",           "type=AdamW",
                     "momentum=0.9",      "base_lr=0.002",
                     "weight_decay=0.01", "lr_policy=onecycle"};
  choice.batch = 4;
  choice.why = cat("it learns from few pictures; ", options_.gpu ? "half" : "a quarter",
                   " of its channels do for one ", options_.gpu ? "GPU" : "CPU");
  return choice;
}

void MaskTask::write_pair(const MaskedPicture& pair, const std::string& picture,
                          const std::string& mask) const {
  Image image;
  decode_image(read_file(pair.picture), Color::color, image);
  resize_image(side_, side_, image, Interpolation::area);
  write_file_atomically(picture, encode_image(image, "png"));
  decode_image(read_file(pair.mask), Color::color, image);
  Image numbers{1, image.height, image.width, {}};
  numbers.pixels.resize(static_cast<size_t>(image.height * image.width));
  for (int64_t i = 0; i < image.height * image.width; ++i)
    numbers.pixels[static_cast<size_t>(i)] = numbers_.at(colour_at(image, i));
  resize_image(side_, side_, numbers, Interpolation::nearest);
  write_file_atomically(mask, encode_image(numbers, "png"));
}

void MaskTask::convert(const std::string& folder, Log& log) const {
  for (const char* name : {"/data/images", "/data/masks"}) fs::create_directories(folder + name);
  for (const int part : {0, 1}) {
    const std::string set = part == 0 ? "train" : "test";
    std::vector<std::string> names;
    for (size_t i = 0; i < parts_[part].size(); ++i) names.push_back(cat(set, "_", i, ".png"));
    on_threads(static_cast<int64_t>(names.size()), 4, [&](int64_t i) {
      const std::string& name = names[static_cast<size_t>(i)];
      write_pair(parts_[part][static_cast<size_t>(i)], folder + "/data/images/" + name,
                 folder + "/data/masks/" + name);
    });
    std::string list;
    for (const std::string& name : names) list += cat("images/", name, " masks/", name, "\n");
    write_file_atomically(folder + "/data/segmentation_" + set + ".txt", list);
    log.info(cat("Wrote ", names.size(), " pictures and masks, data/segmentation_", set, ".txt"));
  }
  write_file_atomically(folder + "/labels.txt", text_of_class_names(classes_));
}

}  // namespace

std::unique_ptr<Task> mask_task(const NewOptions& options, Log& log) {
  std::vector<MaskedPicture> pairs = find_pairs(options.data);
  if (pairs.empty()) return nullptr;
  return std::make_unique<MaskTask>(options, std::move(pairs), log);
}

}  // namespace crema
