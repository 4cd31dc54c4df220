#include "tools/classify/classify_inputs.h"

#include <cmath>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "data/databases/records.h"
#include "data/lists/image_files.h"
#include "data/lists/image_folder.h"

namespace crema {

namespace {

namespace fs = std::filesystem;

// A text by its name, or what comes out of a pipe.
bool is_list(const std::string& path) {
  static const std::set<std::string> endings = {".txt", ".lst", ".list"};
  return endings.count(lower_case(fs::path(path).extension().string())) > 0 ||
         (fs::exists(path) && !fs::is_regular_file(path));
}

// With those of folders within, in the order of their paths. Hidden files and folders are left out.
std::vector<ListedImage> images_in(const std::string& folder) {
  std::vector<std::string> paths;
  try {
    paths = images_below(folder).paths;
  } catch (const fs::filesystem_error& error) {
    fail(folder, ": cannot be read: ", error.code().message());
  }
  require(!paths.empty(), folder,
          ": is neither a database (no data.mdb, no CURRENT) nor a folder with images (files that "
          "end in .jpg, .png, ...)");
  std::vector<ListedImage> images(paths.size());
  for (size_t i = 0; i < paths.size(); ++i) images[i].path = paths[i];
  return images;
}

std::vector<ListedImage> images_of_list(const std::string& list, const std::string& root,
                                        const std::string& folder) {
  const ImageReading beside{"", folder_of(list)}, as_the_net{root, folder};
  std::vector<ListedImage> images = read_image_list(list);
  for (ListedImage& image : images) {
    const std::string near = beside.find(image.path), other = as_the_net.find(image.path);
    image.path = !file_exists(near) && file_exists(other) ? other : near;
  }
  return images;
}

std::optional<int64_t> label_of(const ListedImage& image) {
  if (image.labels.size() != 1 || image.labels[0] != std::trunc(image.labels[0])) return {};
  return static_cast<int64_t>(image.labels[0]);
}

}  // namespace

int64_t ImageSource::size() const {
  return database ? database->size() : static_cast<int64_t>(files.size());
}

std::string ImageSource::name(int64_t index) const {
  return database ? cat(database->path(), ":", database->key(index)) : files[index].path;
}

std::vector<ImageSource> sources_of(const std::vector<std::string>& arguments,
                                    const std::string& root, const std::string& folder) {
  std::vector<ImageSource> sources;
  const auto add = [&](const std::vector<ListedImage>& images) {
    if (sources.empty() || sources.back().database) sources.emplace_back();
    std::vector<ListedImage>& files = sources.back().files;
    files.insert(files.end(), images.begin(), images.end());
  };
  for (const std::string& argument : arguments) {
    if (folder_exists(argument)) {
      const bool lmdb = file_exists(argument + "/data.mdb");
      if (!lmdb && !file_exists(argument + "/CURRENT")) {
        add(images_in(argument));
        continue;
      }
      const Backend backend = lmdb ? DataParameter::LMDB : DataParameter::LEVELDB;
      sources.push_back({{}, open_database(argument, backend)});
    } else if (is_list(argument)) {
      add(images_of_list(argument, root, folder));
    } else {
      ListedImage image;
      image.path = argument;
      add({image});
    }
  }
  return sources;
}

std::unique_ptr<Dataset> dataset_of(const ImageSource& source,
                                    const PicturePreparation& preparation) {
  if (source.database)
    return std::make_unique<Records>(source.database, preparation.records, false);
  return std::make_unique<ImageFiles>("", source.files, preparation.reading, preparation.images);
}

std::vector<LoadedImage> load_images(const ImageSource& source, const Dataset& dataset,
                                     const Shape& expected, int64_t first, int64_t count,
                                     std::vector<float>* data) {
  std::vector<LoadedImage> loaded(static_cast<size_t>(count));
#pragma omp parallel
  {
    Sample sample;
#pragma omp for schedule(dynamic)
    for (int64_t i = 0; i < count; ++i) {
      LoadedImage& image = loaded[i];
      try {
        image.name = source.name(first + i);
        SampleIndex at;
        at.in_batch = i;
        at.position = at.record_index.index = first + i;
        dataset.load(at, sample);
        require(sample.shape == expected, "gives ", sample.shape.brief(),
                ", but the net's input takes ", expected.brief());
        dataset.write(at, sample, data->data() + i * expected.count());
        if (!source.database) {
          image.label = label_of(source.files[first + i]);
        } else if (sample.record.datum.has_label()) {
          image.label = sample.record.label;
        }
      } catch (const std::exception& problem) {
        image.error = problem.what();
        if (!starts_with(image.error, image.name)) image.error = image.name + ": " + image.error;
      }
    }
  }
  return loaded;
}

}  // namespace crema
