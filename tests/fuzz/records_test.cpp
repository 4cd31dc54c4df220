// Records of databases, and the databases.
#include "data/databases/records.h"

#include <google/protobuf/text_format.h>

#include <functional>

#include "data/databases/database_writer.h"
#include "data/databases/sparse_records.h"
#include "data/lists/annotated.h"
#include "fuzz/checksums.h"
#include "fuzz/fuzz.h"
#include "support.h"

namespace crema::tests {
namespace records_test {

// A database of one record, in memory.
class OneRecord : public Source {
 public:
  explicit OneRecord(std::string bytes) : Source("db"), bytes_(std::move(bytes)) {}
  int64_t size() const override { return 1; }
  void read(int64_t, google::protobuf::Message& record) const override {
    parse(bytes_.data(), bytes_.size(), record);
  }
  std::string key(int64_t) const override { return "0"; }

 private:
  std::string bytes_;
};

TransformationParameter transform_of(const Files& files) {
  TransformationParameter parameter;
  const bool text =
      google::protobuf::TextFormat::ParseFromString(files.at("transform"), &parameter);
  require(text, "no text of a transform_param");
  return parameter;
}

// A loader's work on a sample, without its threads.
void draw(const Dataset& samples) {
  Sample sample;
  for (uint64_t stream = 0; stream < 3; ++stream) {
    SampleIndex sample_index;
    sample_index.random = {1, stream};
    samples.load(sample_index, sample);
    require(sample.shape.count() < (1 << 24), "the sample is too large");
    std::vector<float> data(static_cast<size_t>(sample.shape.count()));
    samples.write(sample_index, sample, data.data());
    if (samples.labels_vary()) samples.joined_label_shape(sample.labels);
  }
}

const std::vector<std::string>& transforms() {
  static const std::vector<std::string> texts = {
      "",
      "scale: 0.5 mirror: true",
      "crop_size: 3 mirror: true",
      "mean_value: 3 force_gray: true",
      "gray: BGR mean_value: 1 mean_value: 2 mean_value: 3 crop_size: 3 mirror: true",
      "force_color: true mean_value: 1 mean_value: 2 mean_value: 3",
      "resize_param { prob: 1 resize_mode: WARP height: 6 width: 5 interp_mode: LINEAR }",
      "distort_param { brightness_prob: 1 brightness_delta: 32 contrast_prob: 1 contrast_lower: "
      "0.5 "
      "contrast_upper: 1.5 hue_prob: 1 hue_delta: 18 saturation_prob: 1 saturation_lower: 0.5 "
      "saturation_upper: 1.5 } expand_param { prob: 1 max_expand_ratio: 2 }",
      "noise_param { prob: 1 gauss_blur: true } min_side: 6 rotate: 10 short_side: 5"};
  return texts;
}

Datum pixels(int channels, int height, int width) {
  Datum datum;
  datum.set_channels(channels);
  datum.set_height(height);
  datum.set_width(width);
  datum.set_label(3);
  for (int i = 0; i < channels * height * width; ++i)
    datum.mutable_data()->push_back(static_cast<char>(37 * i));
  return datum;
}

std::vector<Datum> datums() {
  Datum floats = pixels(2, 3, 4), encoded;
  floats.clear_data();
  for (int i = 0; i < 24; ++i) floats.add_float_data(0.5f * static_cast<float>(i));
  std::vector<Datum> all = {pixels(1, 4, 5), pixels(3, 5, 4), floats};
#ifdef CREMA_OPENCV
  for (const char* name : {"img00.png", "img03.jpg"}) {
    encoded.set_encoded(true);
    encoded.set_label(1);
    encoded.set_data(golden(cat("formats/images/", name)));
    all.push_back(encoded);
  }
#endif
  return all;
}

std::vector<Files> with_transforms(const std::vector<std::string>& records) {
  std::vector<Files> corpus;
  for (const std::string& record : records)
    for (const std::string& text : transforms())
      corpus.push_back({{"record", record}, {"transform", text}});
  return corpus;
}

template <typename Message>
void damage_record(Dice& dice, Files& files, const Files& other) {
  static const std::vector<std::string> words = words_of(TransformationParameter::descriptor());
  if (files.count("transform") && dice.one_in(3))
    return damage_text(dice, files["transform"], words, other.at("transform"));
  std::string& bytes = files["record"];
  Message message;
  if (dice.one_in(3) || !message.ParsePartialFromString(bytes)) return damage_wire(dice, bytes);
  damage_message(dice, message, {"a"});
  bytes = message.SerializePartialAsString();
}

TEST(Fuzz, Datums) {
  fuzz({"Datum",
        [] {
          std::vector<std::string> records;
          for (const Datum& datum : datums()) records.push_back(datum.SerializeAsString());
          return with_transforms(records);
        },
        damage_record<Datum>,
        [](const std::string&, const Files& files) {
          const Transform transform(transform_of(files), true, ".", silent_log());
          draw(Records(std::make_shared<OneRecord>(files.at("record")), transform));
        }});
}

std::string annotated(const Datum& datum) {
  AnnotatedDatum record;
  *record.mutable_datum() = datum;
  record.set_type(AnnotatedDatum::BBOX);
  for (int group = 1; group < 3; ++group) {
    auto* boxes = record.add_annotation_group();
    boxes->set_group_label(group);
    for (int i = 0; i < 2; ++i) {
      auto* one = boxes->add_annotation();
      one->set_instance_id(i);
      one->mutable_bbox()->set_xmin(0.1f);
      one->mutable_bbox()->set_ymin(0.2f * static_cast<float>(i));
      one->mutable_bbox()->set_xmax(0.6f);
      one->mutable_bbox()->set_ymax(0.9f);
    }
  }
  return record.SerializeAsString();
}

TEST(Fuzz, AnnotatedDatums) {
  fuzz({"AnnotatedDatum",
        [] {
          std::vector<std::string> records;
          for (const Datum& datum : datums()) records.push_back(annotated(datum));
          return with_transforms(records);
        },
        damage_record<AnnotatedDatum>,
        [](const std::string&, const Files& files) {
          const TransformationParameter fields = transform_of(files);
          AnnotatedDataParameter parameter;
          auto* sampler = parameter.add_batch_sampler();
          sampler->set_max_sample(1);
          sampler->set_max_trials(10);
          sampler->mutable_sampler()->set_min_scale(0.3f);
          sampler->mutable_sample_constraint()->set_min_jaccard_overlap(0.1f);
          draw(AnnotatedRecords(std::make_shared<OneRecord>(files.at("record")),
                                Transform(fields, true, ".", silent_log()), fields, parameter));
        }});
}

TEST(Fuzz, SparseDatums) {
  fuzz({"SparseDatum",
        [] {
          SparseDatum record;
          record.set_size(9);
          record.set_nnz(3);
          record.set_label(2);
          for (int i = 0; i < 3; ++i) {
            record.add_indices(3 * i);
            record.add_data(1.5f);
          }
          return std::vector<Files>{{{"record", record.SerializeAsString()}}};
        },
        damage_record<SparseDatum>,
        [](const std::string&, const Files& files) {
          draw(SparseRecords(std::make_shared<OneRecord>(files.at("record"))));
        }});
}

// A database for the reader: every file of its folder under its own name.
Files files_of(const std::string& folder) {
  Files files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name != "lock.mdb" && name != "LOCK" && !starts_with(name, "LOG"))
      files[name] = read_file(entry.path());
  }
  return files;
}

std::vector<Files> databases(Backend backend) {
  std::vector<Files> corpus;
  const std::string kind = name_of(backend);
  for (const char* name : {"_raw", "_encoded", "_gray"})
    corpus.push_back(files_of(cat(CREMA_TEST_DATA, "/goldens/formats/", kind, name)));
  // One with many pages, and one whose records do not fit into one.
  for (const int side : {3, 90}) {
    const Folder folder;
    const auto writer = create_database(folder.file("db"), backend);
    for (int i = 0; i < 12000 / (side * side); ++i)
      writer->put(numbered_key(i, 8), pixels(1, side, side));
    writer->finish();
    corpus.push_back(files_of(folder.file("db")));
  }
  return corpus;
}

// Every record, also after one that cannot be read.
void read_database(const std::string& folder, Backend backend) {
  const std::unique_ptr<Source> source = open_database(folder, backend);
  std::string problem;
  Datum datum;
  for (int64_t i = 0; i < std::min<int64_t>(source->size(), 5000); ++i) {
    try {
      source->key(i);
      source->read(i, datum);
    } catch (const Error& error) {
      problem = error.what();
    }
  }
  require(problem.empty(), problem);
}

std::string& some_file(Dice& dice, Files& files) {
  auto at = files.begin();
  std::advance(at, dice.below(files.size()));
  return at->second;
}

TEST(Fuzz, Lmdb) {
  fuzz({"lmdb", [] { return databases(DataParameter::LMDB); },
        [](Dice& dice, Files& files, const Files& other) {
          damage_bytes(dice, files.at("data.mdb"), other.at("data.mdb"));
        },
        [](const std::string& folder, const Files&) {
          read_database(folder, DataParameter::LMDB);
        }});
}

#ifdef CREMA_LEVELDB
TEST(Fuzz, LevelDb) {
  fuzz({"leveldb", [] { return databases(DataParameter::LEVELDB); },
        [](Dice& dice, Files& files, const Files& other) {
          Files copy = other;
          for (auto& [name, content] : files) {
            if (!dice.one_in(2)) continue;
            damage_bytes(dice, content, some_file(dice, copy));
            if (dice.one_in(2)) mend_leveldb(name, content);
          }
        },
        [](const std::string& folder, const Files&) {
          read_database(folder, DataParameter::LEVELDB);
        }});
}
#endif

}  // namespace records_test
}  // namespace crema::tests
