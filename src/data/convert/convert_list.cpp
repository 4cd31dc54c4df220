#include "data/convert/convert_list.h"

#include <chrono>
#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "data/convert/image_notes.h"
#include "data/convert/in_order.h"
#include "data/convert/parts.h"
#include "data/convert/progress.h"
#include "device/host_limits.h"

namespace crema {
namespace {

// Memory limit of records that wait for the writer, plus one per thread.
constexpr size_t kWaiting = size_t{256} << 20;

struct MadeRecord {
  size_t bytes = 0;
  std::unique_ptr<google::protobuf::Message> record;
  std::string name, path;
  ConvertedImage image;
  std::string problem;   // why there is none
  bool refused = false;  // the system cannot read it, although the file may be intact
};

// Logs the meaning of options that may be surprising.
void explain(const ImagesetOptions& options, Log& log) {
  if ((options.resize_height > 0) != (options.resize_width > 0))
    log.warning("Only one of -resize_height and -resize_width is given: images are not resized.");
  if (!options.encode_type.empty() && !options.encoded)
    log.info("encode_type specified, assuming encoded=true.");
  if (options.shuffle) log.info("Shuffling data");
}

// The first image's size, which -check_size requires of all, compared by the number of values as in
// Caffe.
class SizeCheck {
 public:
  void check(const std::string& path, const ConvertedImage& image) {
    if (first_.values() == 0) first_ = image;
    if (image.values() == first_.values()) return;
    fail(path, ": is ", image.channels, "x", image.height, "x", image.width,
         ", but the first image is ", first_.channels, "x", first_.height, "x", first_.width,
         "; -resize_height and -resize_width make them equal");
  }

 private:
  ConvertedImage first_;
};

}  // namespace

void set_labels(const ListedImage& line, Datum& datum) {
  if (line.labels.empty()) {
    datum.set_label(line.class_number);
  } else {
    datum.mutable_labels()->Assign(line.labels.begin(), line.labels.end());
  }
}

ImagesetResult convert_list(const std::string& list, const std::string& root,
                            const std::vector<ListedImage>& lines, const std::string& database,
                            const ImagesetOptions& options, Log& log,
                            const google::protobuf::Message& kind, const MakeRecord& make) {
  const auto count = static_cast<int64_t>(lines.size());
  check_options(options);
  explain(options, log);
  log.info(cat("A total of ", count, " images."));
  std::vector<int> labels;
  for (const ListedImage& line : lines) labels.push_back(line.class_number);
  Parts parts(database, labels, options.shuffle, options.to);
  const auto make_one = [&](int64_t number, MadeRecord& made) {
    const ListedImage& line = lines[static_cast<size_t>(parts.turn(number).index)];
    if (!made.record) made.record.reset(kind.New());
    made.problem.clear();
    made.refused = false;
    made.name = as_listed(line.path, root, "");
    made.path = root + made.name;
    try {
      made.image = make(line, made.path, *made.record);
      made.bytes = made.record->ByteSizeLong();
    } catch (const FileError& problem) {
      made.problem = problem.what();
      made.refused = true;
    } catch (const Error& problem) {
      made.problem = problem.what();
    }
  };
  const int threads = options.threads > 0 ? options.threads : usable_processors();
  ImagesetResult result;
  SizeCheck size;
  ImageNotes notes(options.as_stored);
  Progress progress(count);
  const auto begin = std::chrono::steady_clock::now();
  InOrder<MadeRecord> records(count, threads, kWaiting, make_one);
  for (int64_t number = 0; number < count; ++number) {
    const Parts::Turn turn = parts.turn(number);
    const MadeRecord& made = records.next();
    // Neither absent nor damaged: a failing disk must not produce a smaller database.
    if (made.refused)
      fail(made.problem,
           "; no database is made without this file: make it readable, or take it out of the list");
    if (made.problem.empty()) {
      if (options.check_size) size.check(made.path, made.image);
      notes.add(made.path, made.image);
      turn.part->put(cat(numbered_key(turn.i, 8), "_", made.name), *made.record,
                     lines[static_cast<size_t>(turn.index)].class_number);
      ++result.written;
    } else {
      const bool named = starts_with(made.problem, made.path) ||
                         (!root.empty() && starts_with(made.problem, root));
      log.error(cat("Could not open or find file ",
                    named ? made.problem : cat(made.path, ": ", made.problem)));
      ++result.skipped;
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    const std::string line = progress.line(seconds.count(), number + 1, result.written);
    if (!line.empty()) log.info(line);
  }
  require(result.written > 0, list, ": not one of its ", count,
          " images can be read; the paths follow ", root.empty() ? "the working directory" : root);
  if (options.strict && result.skipped > 0) {
    fail(list, ": ", result.skipped, " of ", count,
         " images could not be read; with -strict no database is made of the others");
  }
  parts.finish(log);
  log.info(Progress::last(result.written));
  notes.say(log);
  if (result.skipped > 0) {
    log.warning(cat(result.skipped, " of ", count,
                    " images could not be read and are left out; -strict makes that an error."));
  }
  return result;
}

}  // namespace crema
