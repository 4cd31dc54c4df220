#include "data/databases/find_database.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "data/databases/database_writer.h"
#include "data/databases/given_file.h"
#include "data/databases/hdf5/hdf5_file.h"
#include "data/databases/hdf5/hdf5_rows.h"
#include "data/databases/tar/tar_shards.h"

namespace crema {
namespace {

namespace fs = std::filesystem;

int64_t bytes_of_files(const std::string& path) {
  if (!folder_exists(path)) return static_cast<int64_t>(fs::file_size(path));
  int64_t bytes = 0;
  for (const std::string& name : list_folder(path)) {
    const fs::path file = path + "/" + name;
    if (fs::is_regular_file(file)) bytes += static_cast<int64_t>(fs::file_size(file));
  }
  return bytes;
}

bool has_hdf5(const std::string& folder) {
  const std::vector<std::string> names = list_folder(folder);
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return ends_with(name, ".h5"); });
}

int64_t bytes_of_list(const std::string& list) {
  int64_t bytes = 0;
  for (const std::string& line : split(read_text(list), '\n')) {
    const std::string_view entry = trim(line);
    if (!entry.empty()) bytes += bytes_of_files(find_file(std::string(entry), folder_of(list)));
  }
  return bytes;
}

FoundDatabase hdf5(const std::string& path) {
  std::unique_ptr<Source> source = open_hdf5_rows(path);
  return {DataParameter::HDF5, std::move(source),
          is_hdf5(path) ? bytes_of_files(path) : bytes_of_list(path)};
}

FoundDatabase tar(const std::string& path) {
  int64_t bytes = 0;
  for (const TarShard& shard : tar_shards(path)) bytes += bytes_of_files(shard.path);
  return {DataParameter::TAR, open_tar(path), bytes};
}

FoundDatabase in_folder(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (file_exists(path + "/data.mdb"))
    return {DataParameter::LMDB, open_lmdb(path), bytes_of_files(path)};
  if (file_exists(path + "/CURRENT"))
    return {DataParameter::LEVELDB, open_leveldb(path), bytes_of_files(path)};
  if (looks_like_tar(path)) return tar(path);
  if (has_hdf5(path)) {
    require(file_exists(path + ".txt"), path, ": is a folder of HDF5 files, but their list, ", path,
            ".txt, is missing; give one of the files, or make a list of them, one a line");
    return hdf5(path + ".txt");
  }
  fail(path,
       ": is no database: the folder has no data.mdb (LMDB), no CURRENT (LevelDB), no .h5 file and "
       "no .tar file",
       what_it_is(path));
}

}  // namespace

FoundDatabase find_database(const std::string& path) {
  require(!path.empty(), "the path of a database is empty");
  if (!folder_exists(path) && looks_like_tar(path)) return tar(path);
  if (!file_exists(path)) fail(path, ": no such database", missing_database_hint(path));
  if (folder_exists(path)) return in_folder(path);
  if (ends_with(path, ".mdb")) return {DataParameter::LMDB, open_lmdb(path), bytes_of_files(path)};
  if (!is_hdf5(path) && !ends_with(path, ".txt"))
    fail(
        path,
        ": is no database: expected a folder, a data.mdb, an HDF5 file, a tar file, or the list of "
        "such files, NAME.txt",
        what_it_is(path));
  return hdf5(path);
}

const char* title_of(Backend backend) {
  if (backend == DataParameter::HDF5) return "HDF5";
  if (backend == DataParameter::TAR) return "tar";
  return backend == DataParameter::LMDB ? "LMDB" : "LevelDB";
}

RecordKind kind_of_records(const Source& source) {
  for (int64_t position = 0; source.record_index(position).epoch == 0; ++position) {
    for (const RecordKind kind : {RecordKind::datum, RecordKind::annotated, RecordKind::sparse}) {
      const std::unique_ptr<google::protobuf::Message> record = new_record(kind);
      try {
        source.read(position, *record);
      } catch (const Error&) {
        continue;  // damaged, or of another kind
      }
      if (holds_sample(*record)) return kind;
    }
  }
  return RecordKind::datum;
}

void require_records(const Source& source, RecordKind expected) {
  static const char* const layers[] = {"Data", "AnnotatedData", "SparseData"};
  const RecordKind found = kind_of_records(source);
  require(found == expected, source.path(), ": its records are of type ",
          new_record(found)->GetDescriptor()->name(), ", which a layer of type ",
          layers[static_cast<int>(found)], " reads; a layer of type ",
          layers[static_cast<int>(expected)], " reads ",
          new_record(expected)->GetDescriptor()->name());
}

std::unique_ptr<google::protobuf::Message> new_record(RecordKind kind) {
  if (kind == RecordKind::annotated) return std::make_unique<AnnotatedDatum>();
  if (kind == RecordKind::sparse) return std::make_unique<SparseDatum>();
  return std::make_unique<Datum>();
}

const Datum* datum_in(const google::protobuf::Message& record) {
  if (const auto* annotated = dynamic_cast<const AnnotatedDatum*>(&record))
    return &annotated->datum();
  return dynamic_cast<const Datum*>(&record);
}

bool holds_sample(const google::protobuf::Message& record) {
  if (const Datum* datum = datum_in(record))
    return !datum->data().empty() || datum->float_data_size() > 0;
  const auto& sparse = dynamic_cast<const SparseDatum&>(record);
  return sparse.size() > 0 && sparse.data_size() == sparse.indices_size() && sparse.data_size() > 0;
}

}  // namespace crema
