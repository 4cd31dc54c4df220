#include "data/convert/cifar_files.h"

#include "base/error.h"
#include "base/files.h"
#include "data/convert/pickle.h"
#include "data/databases/class_names.h"

namespace crema {
namespace {

void add_label(const CifarFiles& files, const std::string& path, int64_t label, CifarImages& into) {
  if (label < 0 || label >= files.classes) {
    fail(path, ": the label of an image is ", label, "; ", files.name, " has the classes 0 to ",
         files.classes - 1);
  }
  into.labels.push_back(static_cast<int>(label));
}

void read_binary(const CifarFiles& files, const std::string& path, CifarImages& into) {
  const size_t record = files.label_bytes + kCifarBytes;
  const std::string& content = into.contents.emplace_back(read_file(path));
  require(!content.empty() && content.size() % record == 0, path, ": is not a ",
          files.name == "cifar10" ? "CIFAR-10" : "CIFAR-100", " binary file: its ", content.size(),
          " bytes are not a number of records of ", record);
  for (size_t at = 0; at < content.size(); at += record) {
    add_label(files, path, static_cast<unsigned char>(content[at + files.label_at]), into);
    into.images.push_back(content.data() + at + files.label_bytes);
  }
}

void read_pickled(const CifarFiles& files, const std::string& path, CifarImages& into) {
  const Pickle pickle(path);
  Pickle::Bytes data = pickle.bytes("data");
  const std::vector<int64_t> labels = pickle.integers(files.label_key);
  const auto count = static_cast<int64_t>(labels.size());
  const Shape wanted{count, static_cast<int64_t>(kCifarBytes)};
  require(count > 0 && data.shape == wanted, path, ": \"data\" is ", data.shape.brief(),
          ", but the ", count, " \"", files.label_key, "\" need ", wanted.brief());
  const std::string& content = into.contents.emplace_back(std::move(data.values));
  for (int64_t i = 0; i < count; ++i) {
    add_label(files, path, labels[static_cast<size_t>(i)], into);
    into.images.push_back(content.data() + static_cast<size_t>(i) * kCifarBytes);
  }
}

}  // namespace

CifarFiles find_cifar(const std::string& folder, bool coarse) {
  require(folder_exists(folder), folder, ": no such folder");
  for (const std::string ending : {".bin", ""}) {
    const auto path = [&](const std::string& name) { return cat(folder, "/", name, ending); };
    if (file_exists(path("data_batch_1"))) {
      require(!coarse, folder, ": holds CIFAR-10, which has no coarse labels; CIFAR-100 has");
      CifarFiles files{"cifar10", {}, path("test_batch"), ending.empty()};
      for (int batch = 1; batch <= 5; ++batch)
        files.training.push_back(path(cat("data_batch_", batch)));
      files.label_key = "labels";
      files.names = cat(folder, "/batches.meta", files.pickled ? "" : ".txt");
      files.names_key = "label_names";
      return files;
    }
    if (file_exists(path("train"))) {
      // The coarse label comes first.
      return {"cifar100",
              {path("train")},
              path("test"),
              ending.empty(),
              2,
              coarse ? 0u : 1u,
              coarse ? "coarse_labels" : "fine_labels",
              coarse ? 20 : 100,
              cat(folder, "/",
                  !ending.empty() ? (coarse ? "coarse_label_names.txt" : "fine_label_names.txt")
                                  : "meta"),
              coarse ? "coarse_label_names" : "fine_label_names"};
    }
  }
  fail(folder,
       ": holds no CIFAR; expected data_batch_1.bin or, pickled for Python, data_batch_1, and the "
       "other files of CIFAR-10, or train.bin or train of CIFAR-100");
}

std::vector<std::string> read_cifar_names(const CifarFiles& files) {
  if (!file_exists(files.names)) return {};
  const ClassNames names{files.names, files.pickled ? Pickle(files.names).texts(files.names_key)
                                                    : read_class_names(files.names).names};
  require_count(names, files.classes, files.name);
  return names.names;
}

void read_cifar(const CifarFiles& files, const std::string& path, CifarImages& into) {
  if (files.pickled) {
    read_pickled(files, path, into);
  } else {
    read_binary(files, path, into);
  }
}

}  // namespace crema
