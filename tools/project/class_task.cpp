// Pictures in a folder for each class.
#include <algorithm>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "base/visible.h"
#include "data/convert/class_folders.h"
#include "data/convert/compute_mean.h"
#include "data/convert/convert.h"
#include "data/convert/parts.h"
#include "data/databases/class_names.h"
#include "data/databases/source.h"
#include "tools/project/net_edits.h"
#include "tools/project/picture_size.h"
#include "tools/project/split_folders.h"
#include "tools/project/tasks.h"

namespace crema {

namespace {

constexpr double imbalance = 3;           // classes that differ by more are drawn equally often
constexpr int64_t many_pictures = 10000;  // enough for a net of two million parameters
constexpr size_t shown_pictures = 5, shown_classes = 20;

class ClassTask : public Task {
 public:
  ClassTask(const NewOptions& options, Log& log);

  std::vector<std::string> survey() const override { return survey_; }
  ModelChoice choose() const override;
  std::vector<std::string> fit(const NetText& net) override;
  void connect(NetText* net, int64_t batch) const override;
  std::vector<int64_t> sample(const NetText& net) const override {
    const int64_t crop =
        net.net().layer(data_layers(net, "Data", TRAIN)[0]).transform_param().crop_size();
    const int64_t side = crop > 0 ? crop : fit_.side;
    return {fit_.gray ? 1 : 3, side, side};
  }
  void convert(const std::string& folder, Log& log) const override;
  int64_t training() const override { return static_cast<int64_t>(parts_[0].size()); }
  int64_t testing() const override { return static_cast<int64_t>(parts_[1].size()); }
  std::string use() const override {
    return "crema classify -model net.prototxt -weights $weights PICTURE.jpg\n";
  }

 private:
  void read(const std::string& folder, bool tests, Log& log);
  void drop_copies();
  void divide();
  void describe();
  bool is_uneven() const {
    return static_cast<double>(range_.second) > imbalance * static_cast<double>(range_.first);
  }

  const NewOptions options_;
  const SplitFolders folders_;
  std::vector<std::string> classes_;
  std::vector<PictureFacts>
      pictures_;      // those of the test folder last, with paths from options_.data
  size_t tests_ = 0;  // the number of those
  std::vector<PictureFacts> parts_[2];  // for training, for testing
  std::vector<std::string> survey_, copies_;
  std::map<int32_t, int64_t> counts_;  // of pictures in each class
  std::pair<int64_t, int64_t> range_;  // of these
  PictureSizes sizes_;
  PictureFit fit_;
  bool needs_mean_ = false;  // the net subtracts a mean file
};

ClassTask::ClassTask(const NewOptions& options, Log& log)
    : options_(options), folders_(split_folders(options.data)) {
  read(folders_.training, false, log);
  if (!folders_.testing.empty()) read(folders_.testing, true, log);
  require(classes_.size() > 1, options.data, ": has one class only, \"",
          classes_.empty() ? "" : classes_[0],
          "\"; a net needs pictures of at least two, each class in a folder of its own");
  read_pictures_facts(options.data + "/", &pictures_, log);
  sizes_ = sizes_of(pictures_);
  drop_copies();
  divide();
  describe();
}

void ClassTask::read(const std::string& folder, bool tests, Log& log) {
  const std::string below = folder.empty() ? "" : folder + "/";
  const ClassFolders found = read_class_folders(options_.data + "/" + below, log);
  if (!tests) classes_ = found.classes;
  require(found.classes == classes_, options_.data, "/", folder, ": has the classes ",
          join(found.classes, ", "), ", but ", folders_.training, " has ", join(classes_, ", "));
  // Lists of pictures and of classes have one in each line.
  for (const std::string& name : classes_)
    require(name.find_first_of("\r\n") == name.npos, options_.data, "/", below, visible(name),
            ": the name of this class has a line break; rename its folder");
  for (const ListedImage& image : found.images) {
    PictureFacts picture;
    picture.path = below + image.path;
    if (image.path.find_first_of("\r\n") != image.path.npos)
      picture.problem = "its name has a line break; rename it";
    picture.label = image.class_number;
    pictures_.push_back(picture);
    tests_ += tests ? 1 : 0;
  }
}

// Of pictures that are there several times in a class the first stays, so that none is both learned from and
// tested. Of those in several classes none can be learned from.
void ClassTask::drop_copies() {
  std::map<Sha256::Digest, std::vector<PictureFacts*>> same;
  for (PictureFacts& picture : pictures_) {
    if (picture.problem.empty()) same[picture.pixels].push_back(&picture);
  }
  int64_t copies = 0, contradictions = 0;
  std::vector<std::string> shown;
  for (PictureFacts& first : pictures_) {
    if (!first.problem.empty()) continue;
    const std::vector<PictureFacts*>& group = same[first.pixels];
    if (group.size() < 2 || group[0] != &first) continue;
    const bool contradict = std::any_of(group.begin(), group.end(), [&](const PictureFacts* other) {
      return other->label != first.label;
    });
    // Tests come last: their copy stays, because test sets are compared with those of others.
    PictureFacts* const stays = contradict ? nullptr : group.back();
    for (PictureFacts* picture : group) {
      if (picture != stays) picture->problem = "a copy";
    }
    if (!contradict) {
      copies += static_cast<int64_t>(group.size()) - 1;
      continue;
    }
    contradictions += static_cast<int64_t>(group.size());
    if (shown.size() < shown_pictures)
      shown.push_back(cat("  ", group[0]->path, " = ", group[1]->path));
  }
  if (contradictions > 0) {
    copies_.push_back(
        cat(contradictions,
            " pictures are equal to one in another class; which is right is not known, so they "
            "are left out:"));
    copies_.insert(copies_.end(), shown.begin(), shown.end());
  }
  if (copies > 0)
    copies_.push_back(
        cat(copies, copies == 1 ? " picture is" : " pictures are",
            " there twice in one class and left out once, so that tests show nothing that was "
            "learned by heart"));
}

void ClassTask::divide() {
  std::vector<PictureFacts> kept;
  std::vector<int> labels;
  const size_t first_test = pictures_.size() - tests_;
  for (size_t i = 0; i < pictures_.size(); ++i) {
    if (!pictures_[i].problem.empty()) continue;
    ++counts_[pictures_[i].label];
    if (tests_ > 0) parts_[i >= first_test].push_back(pictures_[i]);
    kept.push_back(pictures_[i]);
    labels.push_back(pictures_[i].label);
  }
  range_ = {pictures_.size(), 0};
  for (size_t c = 0; c < classes_.size(); ++c) {
    const int64_t count = counts_[static_cast<int32_t>(c)];
    range_ = {std::min(range_.first, count), std::max(range_.second, count)};
    require(count > 0, options_.data, ": class \"", classes_[c],
            "\" has no picture that can be used; remove its folder, or add pictures");
  }
  if (tests_ == 0) {
    const Split split = split_by_class(labels, options_.split, options_.seed);
    for (const int64_t i : split.training) parts_[0].push_back(kept[static_cast<size_t>(i)]);
    for (const int64_t i : split.validation) parts_[1].push_back(kept[static_cast<size_t>(i)]);
  }
  require(!parts_[0].empty() && !parts_[1].empty(), options_.data, ": has ", parts_[0].size(),
          " pictures for training and ", parts_[1].size(), " for testing; both need some");
}

void ClassTask::describe() {
  std::vector<std::string> classes;
  for (size_t c = 0; c < std::min(classes_.size(), shown_classes); ++c)
    classes.push_back(cat(classes_[c], " ", counts_[static_cast<int32_t>(c)]));
  if (classes_.size() > shown_classes) classes.push_back("...");
  survey_.push_back(cat(options_.data, ": ", training() + testing(), " pictures in ",
                        classes_.size(), " classes: ", join(classes, ", ")));
  survey_.push_back(text_of(sizes_));
  std::vector<PictureFacts> unreadable = pictures_;
  for (PictureFacts& picture : unreadable) {
    if (picture.problem == "a copy") picture.problem.clear();
  }
  for (const std::vector<std::string>& lines : {problems_of(unreadable), copies_})
    survey_.insert(survey_.end(), lines.begin(), lines.end());
  survey_.push_back(
      cat(training(), " for training and ", testing(), " for testing, ",
          tests_ > 0
              ? cat("as the folders ", folders_.training, " and ", folders_.testing, " divide them")
              : cat("divided by chance with the same share of each class (-split ", options_.split,
                    ")")));
  if (!folders_.unused.empty())
    survey_.push_back(cat("the folder ", folders_.unused,
                          " is not used; `crema test` can show its pictures to the net"));
}

ModelChoice ClassTask::choose() const {
  ModelChoice choice;
  const int64_t side = free_side(sizes_);
  if (side <= 40 && !sizes_.gray && training() >= many_pictures) {
    const std::string folder = models_folder() + "/cifar10_94/";
    choice.net = folder + (options_.gpu ? "train_val.prototxt" : "train_val_small.prototxt");
    choice.solver = folder + (options_.gpu ? "solver.prototxt" : "solver_small.prototxt");
    choice.keeps_recipe = true;
    choice.why = "the best known for many small pictures in colour; its rate and batch go with it";
    return choice;
  }
  choice.net = models_folder() + "/pictures/train_val.prototxt";
  choice.solver = models_folder() + "/pictures/solver.prototxt";
  const bool wide = training() >= many_pictures / 2;
  choice.settings = {cat("size=", side), cat("width=", wide ? 32 : 24)};
  if (side <= 40) choice.settings.push_back("stride=1");
  choice.why = cat("it learns pictures of any kind, from few of them or many; ",
                   wide ? "wider, for there are many" : "narrow",
                   side <= 40 ? ", and its first layer keeps the size of such small ones" : "");
  return choice;
}

std::vector<std::string> ClassTask::fit(const NetText& net) {
  for (const LayerParameter& layer : net.net().layer())
    needs_mean_ |= layer.type() == "Data" && layer.transform_param().has_mean_file();
  fit_ = fit_pictures(net, sizes_);
  std::vector<std::string> lines = {cat("pictures: stored as ", fit_.side, " x ", fit_.side,
                                        " pixels, ", fit_.why,
                                        fit_.gray ? ", in grey, as they are" : ", in colour")};
  if (is_uneven())
    lines.push_back(cat("balance: classes are drawn equally often, because they have from ",
                        range_.first, " to ", range_.second, " pictures"));
  return lines;
}

void ClassTask::connect(NetText* net, int64_t batch) const {
  connect_databases({"data/pictures_train_lmdb", "data/pictures_test_lmdb", batch, testing()}, net);
  set_classes(static_cast<int64_t>(classes_.size()), net);
  if (is_uneven()) net->set(data_layers(*net, "Data", TRAIN)[0], "data_param.balance", "true");
}

void ClassTask::convert(const std::string& folder, Log& log) const {
  ImagesetOptions options;
  options.gray = fit_.gray;
  options.resize_height = options.resize_width = fit_.side;
  options.to.format.classes = classes_;
  for (const int part : {0, 1}) {
    const std::string name = part == 0 ? "train" : "test";
    std::string list;
    for (const PictureFacts& picture : parts_[part])
      list += cat(picture.path, " ", picture.label, "\n");
    const std::string path = cat(folder, "/data/", name, ".txt");
    write_file_atomically(path, list);
    const ImagesetResult result = convert_imageset(
        options_.data + "/", path, cat(folder, "/data/pictures_", name, "_lmdb"), options, log);
    require(result.skipped == 0, options_.data, ": ", result.skipped,
            " pictures could be read before, but not now; did the folder change?");
  }
  if (needs_mean_)
    write_mean(compute_mean(*open_lmdb(folder + "/data/pictures_train_lmdb"), 1, log),
               cat(folder, "/", mean_file));
  write_file_atomically(folder + "/labels.txt", text_of_class_names(classes_));
}

}  // namespace

std::unique_ptr<Task> class_task(const NewOptions& options, Log& log) {
  return std::make_unique<ClassTask>(options, log);
}

}  // namespace crema
