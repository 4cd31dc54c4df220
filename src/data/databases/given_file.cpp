#include "data/databases/given_file.h"

#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "data/databases/find_database.h"
#include "data/databases/hdf5/hdf5_file.h"
#include "data/databases/tar/tar_shards.h"
#include "data/images/image_names.h"

namespace crema {
namespace {

namespace fs = std::filesystem;

// Which layer reads the records of a database.
std::string layer_for(const Source& source, const char* backend) {
  switch (kind_of_records(source)) {
    case RecordKind::annotated:
      return cat("a layer of type AnnotatedData reads its records, AnnotatedDatum, with `backend: ",
                 backend, "`");
    case RecordKind::sparse:
      return cat("a layer of type SparseData reads its records, SparseDatum, with `backend: ",
                 backend, "`");
    case RecordKind::datum:
      break;
  }
  return cat("a layer of type Data reads its records, Datum, with `backend: ", backend, "`");
}

FileKind database_kind(const std::string& path, bool lmdb) {
  const char* const backend = lmdb ? "LMDB" : "LEVELDB";
  FileKind kind{lmdb ? "an LMDB" : "a LevelDB", cat("`backend: ", backend, "` reads it")};
  try {
    const auto source = lmdb ? open_lmdb(path) : open_leveldb(path);
    kind.use = layer_for(*source, backend);
  } catch (const std::exception&) {  // damaged: its kind is still clear
  }
  return kind;
}

FileKind folder_kind(const std::string& path) {
  bool any = false, images = false, hdf5 = false, folders = false;
  for (const std::string& name : list_folder(path)) {
    any = true;
    const std::string ending = fs::path(name).extension();
    hdf5 = hdf5 || ending == ".h5";
    images = images || (!ending.empty() && is_image_ending(lower_case(ending.substr(1))));
    folders = folders || folder_exists(path + "/" + name);
  }
  const auto holds = [&](const char* name) { return file_exists(path + "/" + name); };
  if (holds("data.mdb") || holds("CURRENT")) return database_kind(path, holds("data.mdb"));
  if (looks_like_tar(path))
    return {"a folder of tar files", "a layer of type Data reads it with `backend: TAR`"};
  if (hdf5)
    return {"a folder of HDF5 files",
            cat("a layer of type HDF5Data reads a list of them, such as ", path, ".txt")};
  if (holds("run.json"))
    return {"the folder of a training run",
            cat("its weights are in ", path, "/snapshots, its nets next to run.json")};
  if (holds("saved_model.pb"))
    return {"a TensorFlow SavedModel", "convert its weights to .safetensors or HDF5 first"};
  if (images || folders)
    return {images ? "a folder with pictures" : "a folder of folders",
            "convert_imageset makes a database of pictures in a folder for each class"};
  return any ? FileKind{"a folder that holds no database", ""} : FileKind{"an empty folder", ""};
}

// By the names in it.
FileKind hdf5_kind(const std::string& path) {
  try {
    bool weights = false, state = false, data = false;
    for (const Hdf5File::Child& child : Hdf5File(path).children("/")) {
      weights = weights || (child.group && child.name == "data");
      state = state || child.name == "iter";
      data = data || !child.group;
    }
    if (weights) return {"weights in HDF5 (.caffemodel.h5)", "-weights takes them"};
    if (state) return {"a solver state (.solverstate.h5)", "train takes it as -snapshot"};
    if (data)
      return {"an HDF5 file of data", "a layer of type HDF5Data reads a list that names it"};
    return {"an HDF5 file of groups, as Keras writes (.h5)",
            "its arrays saved as .safetensors are for crema convert_weights"};
  } catch (const std::exception&) {
    return {kHdf5Kind, ""};
  }
}

}  // namespace

FileKind kind_of(const std::string& path) {
  try {
    if (path.empty() || !file_exists(path)) return {};
    if (folder_exists(path)) return folder_kind(path);
    const FileKind kind = file_kind(path);
    return kind.what == kHdf5Kind ? hdf5_kind(path) : kind;
  } catch (const std::exception&) {  // a message does without it
    return {};
  }
}

std::string what_it_is(const std::string& path) { return what_it_is(kind_of(path)); }

}  // namespace crema
