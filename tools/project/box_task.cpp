// Pictures with boxes around objects.
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/visible.h"
#include "data/databases/class_names.h"
#include "data/loader/permutation.h"
#include "tools/project/box_files.h"
#include "tools/project/picture_survey.h"
#include "tools/project/tasks.h"

namespace crema {

namespace {

// Keeps the first warning, and counts the others.
class Counted : public Log {
 public:
  void write(Severity severity, const std::source_location&, std::string_view line) override {
    if (severity == Severity::info) return;
    if (count++ == 0) first = line;
  }
  int64_t count = 0;
  std::string first;
};

struct BoxedPicture {
  size_t set = 0;
  ListedImage image;
};

class BoxTask : public Task {
 public:
  BoxTask(const NewOptions& options, BoxFiles files, Log& log);

  std::vector<std::string> survey() const override { return survey_; }
  ModelChoice choose() const override;
  std::vector<std::string> fit(const NetText&) override {
    return {"pictures: stored as they are; the net resizes them"};
  }
  bool takes_any_net() const override { return false; }
  void connect(NetText*, int64_t) const override {}
  void convert(const std::string& folder, Log& log) const override;
  int64_t training() const override { return static_cast<int64_t>(parts_[0].size()); }
  int64_t testing() const override { return static_cast<int64_t>(parts_[1].size()); }
  int64_t length(int64_t) const override;
  std::string use() const override {
    // Its data layer, which is of type Python, does not say how pictures get into the net.
    const bool small = !options_.gpu && options_.model.empty();
    return cat("crema serve -model net.prototxt -weights $weights -labels labels.txt",
               small ? " -assume data=1x3x128x128,im_info=1x3 -mean 102.98,115.95,122.77" : "",
               "\n");
  }

 private:
  void look_at_pictures(Log& log);
  void count_boxes(const std::vector<BoxedPicture>& pictures);
  void divide(std::vector<BoxedPicture> pictures);

  const NewOptions options_;
  const BoxFiles files_;
  const ClassNumbers numbers_;
  std::vector<std::unique_ptr<Annotations>> annotations_;  // of each set
  std::vector<BoxedPicture> parts_[2];
  std::vector<std::string> survey_;
};

BoxTask::BoxTask(const NewOptions& options, BoxFiles files, Log& log)
    : options_(options), files_(std::move(files)), numbers_(files_.classes) {
  require(!files_.classes.empty(), options.data, ": has no boxes, or no names of their classes");
  for (const BoxSet& set : files_.sets) {
    annotations_.push_back(files_.format == AnnotationFormat::coco
                               ? coco_annotations(set.coco, numbers_, silent_log())
                           : files_.format == AnnotationFormat::voc
                               ? voc_annotations(set.root, set.images, numbers_)
                               : yolo_annotations(set.root, set.images, numbers_));
  }
  look_at_pictures(log);
}

void BoxTask::look_at_pictures(Log& log) {
  std::vector<PictureFacts> facts, all;
  std::vector<BoxedPicture> kept;
  std::set<Sha256::Digest> known;
  int64_t copies = 0;
  for (size_t set = 0; set < files_.sets.size(); ++set) {
    const std::vector<ListedImage>& images = annotations_[set]->images();
    facts.assign(images.size(), {});
    for (size_t i = 0; i < images.size(); ++i) facts[i].path = images[i].path;
    read_pictures_facts(files_.sets[set].root, &facts, log);
    for (size_t i = 0; i < images.size(); ++i) {
      if (facts[i].problem.empty() && !known.insert(facts[i].pixels).second) {
        ++copies;
      } else if (facts[i].problem.empty()) {
        kept.push_back({set, images[i]});
      }
    }
    all.insert(all.end(), facts.begin(), facts.end());
  }
  const PictureSizes sizes = sizes_of(all);
  survey_.push_back(
      cat(options_.data, ": ", kept.size(), " pictures with boxes in ", files_.form, " form"));
  count_boxes(kept);
  survey_.push_back(text_of(sizes));
  const std::vector<std::string> problems = problems_of(all);
  survey_.insert(survey_.end(), problems.begin(), problems.end());
  if (copies > 0)
    survey_.push_back(cat(copies, copies == 1 ? " picture is" : " pictures are",
                          " there twice, and left out once"));
  divide(std::move(kept));
}

void BoxTask::count_boxes(const std::vector<BoxedPicture>& pictures) {
  std::map<int, int64_t> counts;
  int64_t empty = 0, boxes = 0;
  Counted odd;
  for (const BoxedPicture& picture : pictures) {
    AnnotatedDatum record;
    annotations_[picture.set]->annotate(picture.image, ConvertedImage(), record, odd);
    empty += record.annotation_group_size() == 0;
    for (const AnnotationGroup& group : record.annotation_group()) {
      counts[group.group_label()] += group.annotation_size();
      boxes += group.annotation_size();
    }
  }
  std::vector<std::string> texts;
  for (size_t i = 0; i < files_.classes.size(); ++i)
    texts.push_back(cat(files_.classes[i], " ", counts[static_cast<int>(i) + 1]));
  survey_.push_back(
      cat(boxes, " boxes of ", files_.classes.size(), " classes: ", join(texts, ", ")));
  if (empty > 0)
    survey_.push_back(cat(empty, " pictures have no box; they teach what is no object"));
  if (!files_.lone.empty())
    survey_.push_back(cat(files_.lone.size(),
                          files_.lone.size() == 1
                              ? " file of boxes has no picture, and is left out: "
                              : " files of boxes have no picture, and are left "
                                "out, such as ",
                          visible(files_.lone[0])));
  if (odd.count > 0)
    survey_.push_back(
        cat(odd.count, odd.count == 1 ? " box is" : " boxes are", " odd, such as ", odd.first));
  require(boxes > 0, options_.data, ": not one of its ", pictures.size(), " pictures has a box");
}

void BoxTask::divide(std::vector<BoxedPicture> pictures) {
  const auto count = static_cast<int64_t>(pictures.size());
  const bool given = files_.sets.size() > 1;
  const int64_t learned = given ? 0 : training_part(options_, count);
  const Permutation order(std::max<int64_t>(1, count), {options_.seed, 1});
  for (int64_t i = 0; i < count; ++i) {
    BoxedPicture& picture = pictures[static_cast<size_t>(given ? i : order(i))];
    parts_[given ? picture.set : i >= learned].push_back(std::move(picture));
  }
  require(training() > 0 && testing() > 0, options_.data, ": has ", training(),
          " pictures for training and ", testing(), " for testing; both need some");
  survey_.push_back(cat(
      training(), " for training and ", testing(), " for testing, ",
      given ? "as the data are divided" : cat("divided by chance (-split ", options_.split, ")")));
}

ModelChoice BoxTask::choose() const {
  ModelChoice choice;
  const std::string folder = models_folder() + (options_.gpu ? "/ssd/" : "/rfcn/");
  choice.net = folder + "train_val.prototxt";
  choice.solver = folder + "solver.prototxt";
  choice.settings = {"data=data/boxes", cat("classes=", files_.classes.size() + 1)};
  if (options_.gpu) choice.settings.push_back("bn=true");
  choice.keeps_recipe = true;
  choice.batch = options_.gpu ? 32 : 1;
  choice.why = options_.gpu
                   ? "it is accurate, and a GPU trains it in minutes; its rates go with it"
                   : "it is small enough for a CPU (-gpu 0 takes SSD); its rates go with it";
  return choice;
}

// In proportion to the root of the number, as the models' own are for 2000 pictures; but detectors need a while to find anything.
int64_t BoxTask::length(int64_t) const {
  const double own = options_.gpu ? 12000 : 4000;
  return std::max<int64_t>(
      4000, std::llround(own * std::sqrt(static_cast<double>(training()) / 2000) / 100) * 100);
}

void BoxTask::convert(const std::string& folder, Log& log) const {
  LabelMap map;
  for (size_t i = 0; i <= files_.classes.size(); ++i) {
    LabelMapItem& item = *map.add_item();
    item.set_label(static_cast<int>(i));
    item.set_name(i == 0 ? "none_of_the_above" : files_.classes[i - 1]);
    item.set_display_name(i == 0 ? "background" : files_.classes[i - 1]);
  }
  std::string text;
  google::protobuf::TextFormat::PrintToString(map, &text);
  write_file_atomically(folder + "/labelmap.prototxt", text);
  std::vector<std::string> names = {"background"};
  names.insert(names.end(), files_.classes.begin(), files_.classes.end());
  write_file_atomically(folder + "/labels.txt", text_of_class_names(names));
  ImagesetOptions options;
  options.encoded = true;
  options.to.format.classes = names;
  for (const size_t part : {0, 1}) {
    // A part is of one set.
    std::vector<ListedImage> images;
    for (const BoxedPicture& picture : parts_[part]) images.push_back(picture.image);
    const size_t set = parts_[part][0].set;
    convert_annotated(options_.data, files_.sets[set].root, images, *annotations_[set],
                      cat(folder, "/data/boxes_", part == 0 ? "train" : "test", "_lmdb"), options,
                      log);
  }
}

}  // namespace

std::unique_ptr<Task> box_task(const NewOptions& options, Log& log) {
  BoxFiles files = find_boxes(options.data, log);
  if (files.sets.empty()) return nullptr;
  return std::make_unique<BoxTask>(options, std::move(files), log);
}

}  // namespace crema
