// Writes records as HDF5 files, as an HDF5Data layer reads them: `data`, a row of floats for each
// record, and `label`, a number for each record or, of several Datum.labels, a row. The folder NAME
// has the files 0000.h5, 0001.h5, ...; NAME.txt lists them.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/files.h"
#include "base/temporary.h"
#include "data/databases/database_writer.h"
#include "data/databases/exact_label.h"
#include "data/databases/hdf5/hdf5_writer.h"
#include "data/images/record.h"

namespace crema {
namespace {

// A file is written, and read, as a whole: at most 256 MiB.
constexpr int64_t kValuesOfFile = int64_t{1} << 26;

// The path of the list. Error if it would replace a file that is not the list of such files.
std::string list_of(const std::string& path, bool overwrite) {
  for (const char* ending : {".h5", ".hdf5", ".txt"}) {
    require(!ends_with(path, ending), path,
            ": HDF5 files come as a folder and a list of the same name with .txt; give a name "
            "without ",
            ending);
  }
  const std::string list = path + ".txt";
  remove_leftovers(folder_of(list), TemporaryEntry::Kind::file, list.substr(list.rfind('/') + 1));
  if (!file_exists(list)) return list;
  require(overwrite, list, ": exists already; remove it, or choose another name than ", path);
  for (const std::string& line : split(read_text(list), '\n')) {
    const std::string_view entry = trim(line);
    require(entry.empty() || ends_with(entry, ".h5"), list,
            ": is no list of HDF5 files, so it is not replaced; choose another name than ", path);
  }
  return list;
}

class Hdf5RecordWriter : public DatabaseWriter {
 public:
  Hdf5RecordWriter(const std::string& path, const DatabaseFormat& format)
      : DatabaseWriter(path, format),
        list_(list_of(this->path(), format.overwrite)),
        format_(format) {
    require(format.rows > 0, "a HDF5 file has at least 1 row, not ", format.rows);
    require(format.compression >= 0 && format.compression <= 9, "the level of compression is ",
            format.compression, "; gzip has 1 to 9, and 0 is none");
  }

 private:
  void add(const std::string& key, const google::protobuf::Message& message) override {
    const auto* datum = dynamic_cast<const Datum*>(&message);
    require(datum != nullptr, path(), ": HDF5 files for HDF5Data hold no boxes; write an LMDB");
    const auto reason = [&](const auto&... parts) {
      fail(path(), ": record \"", key, "\" ", parts...);
    };
    if (datum->encoded()) reason("is an encoded image, but HDF5Data reads values");
    record_.datum = *datum;
    std::vector<float> labels(datum->labels().begin(), datum->labels().end());
    try {
      decode(record_, Color::as_stored);
      if (labels.empty()) labels = {exact_label(datum->label())};
    } catch (const Error& problem) {
      reason("cannot be written: ", problem.what());
    }
    if (rows_ == 0 && files_ == 0) {
      shape_ = record_.shape();
      labelled_ = datum->has_label() || datum->labels_size() > 0;
      labels_each_ = labels.size();
      maximum_ = std::clamp<int64_t>(kValuesOfFile / shape_.count(), 1, format_.rows);
    }
    if (record_.shape() != shape_) {
      reason("is ", record_.shape().brief(), ", but the first one is ", shape_.brief(),
             "; all must have one shape (-resize_height and -resize_width make it so)");
    }
    if (labels.size() != labels_each_)
      reason("has ", labels.size(), " labels, but the first one has ", labels_each_);
    if (rows_ == maximum_) write_file();
    for (int64_t i = 0; i < shape_.count(); ++i) {
      const float value = record_.bytes ? static_cast<float>(record_.bytes[i]) : record_.values[i];
      data_.push_back(value * format_.scale);
    }
    labels_.insert(labels_.end(), labels.begin(), labels.end());
    ++rows_;
  }

  void flush() override {}

  void close() override {
    if (rows_ > 0) write_file();
    const std::string folder = path().substr(path().rfind('/') + 1);
    written_list_ = std::make_unique<AtomicFile>(list_);
    for (int64_t i = 0; i < files_; ++i) {
      const std::string line = cat(folder, "/", name_of_file(i), "\n");
      written_list_->write(line.data(), line.size());
    }
  }

  void named() override { written_list_->commit(); }

  static std::string name_of_file(int64_t number) { return numbered_key(number, 4) + ".h5"; }

  void write_file() {
    Shape shape{rows_};
    for (const int64_t extent : shape_.dims()) shape.push_back(extent);
    try {
      Hdf5Writer file(temporary_path() + "/" + name_of_file(files_));
      file.chunked_floats("data", shape, format_.compression, data_.data());
      const auto each = static_cast<int64_t>(labels_each_);
      const Shape of_labels = each > 1 ? Shape{rows_, each} : Shape{rows_};
      if (labelled_) file.chunked_floats("label", of_labels, format_.compression, labels_.data());
      file.commit();
    } catch (const Error& problem) {
      // The reader knows the folder by the name that it was to get.
      std::string text = problem.what();
      if (starts_with(text, temporary_path())) text.replace(0, temporary_path().size(), path());
      throw Error(text);
    }
    ++files_;
    rows_ = 0;
    data_.clear();
    labels_.clear();
  }

  const std::string list_;
  const DatabaseFormat format_;
  std::unique_ptr<AtomicFile> written_list_;  // until it has its name
  Record record_;
  Shape shape_;  // of a record
  bool labelled_ = false;
  size_t labels_each_ = 1;
  int64_t maximum_ = 0, rows_ = 0, files_ = 0;  // rows of the file being filled
  std::vector<float> data_, labels_;
};

}  // namespace

std::unique_ptr<DatabaseWriter> create_hdf5(const std::string& path, const DatabaseFormat& format) {
  return std::make_unique<Hdf5RecordWriter>(path, format);
}

}  // namespace crema
