// Classes that come equally often.
#include "data/loader/balance.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "data/databases/database_writer.h"
#include "data/databases/datum_class.h"
#include "data/databases/records.h"
#include "data/loader/loader.h"
#include "fixtures.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"
#include "tar_files.h"

namespace crema::tests {
namespace balance_test {

// This many records of each class, mixed up.
std::vector<int64_t> classes_of(const std::vector<int64_t>& counts) {
  std::vector<int64_t> classes;
  for (size_t label = 0; label < counts.size(); ++label)
    classes.insert(classes.end(), static_cast<size_t>(counts[label]), static_cast<int64_t>(label));
  std::vector<int64_t> mixed(classes.size());
  const size_t step = 7;
  for (size_t i = 0; i < classes.size(); ++i) mixed[i] = classes[i * step % classes.size()];
  return mixed;
}

TEST(Balance, DrawsClassesEquallyOftenAndRecordsInTurn) {
  const std::vector<int64_t> rows[] = {
      {5}, {1, 1}, {1, 100}, {3, 50, 20, 1}, {10, 10, 10}, {2, 2, 2, 2, 2, 2, 2, 2, 2, 300}};
  for (const std::vector<int64_t>& counts : rows) {
    const auto count = static_cast<int64_t>(counts.size());
    SCOPED_TRACE(cat(count, " classes, first of ", counts[0]));
    const std::vector<int64_t> classes = classes_of(counts);
    const Balance balance(classes, {3, 4});
    ASSERT_EQ(balance.classes(), count);
    std::vector<int64_t> drawn(classes.size()), of_class(counts.size());
    std::set<std::pair<int64_t, int64_t>> turns;
    for (int64_t position = 0; position < 40 * count; ++position) {
      const Balance::Place place = balance.at(position);
      const auto label = static_cast<size_t>(classes[static_cast<size_t>(place.record)]);
      EXPECT_EQ(place.turn, drawn[static_cast<size_t>(place.record)]++);
      // All others of the class have come as often, or once less.
      EXPECT_EQ(place.turn, of_class[label]++ / counts[label]);
      EXPECT_TRUE(turns.insert({place.record, place.turn}).second);
      // A class comes once in each round.
      EXPECT_EQ(of_class[label], position / count + 1);
    }
  }
}

TEST(Balance, OrdersDependOnTheSeedAndChange) {
  const std::vector<int64_t> classes = classes_of({30, 30, 30});
  const Balance balance(classes, {3, 4}), same(classes, {3, 4}), other(classes, {3, 5});
  std::vector<int64_t> first, again, another, later;
  std::set<std::vector<int64_t>> rounds;
  for (int64_t i = 0; i < 90; ++i) {
    first.push_back(balance.at(i).record);
    again.push_back(same.at(i).record);
    another.push_back(other.at(i).record);
    later.push_back(balance.at(90 + i).record);
  }
  for (int64_t round = 0; round < 60; ++round) {
    std::vector<int64_t> order;
    for (int64_t i = 0; i < 3; ++i)
      order.push_back(classes[static_cast<size_t>(balance.at(3 * round + i).record)]);
    rounds.insert(order);
  }
  EXPECT_EQ(first, again);
  EXPECT_NE(first, another);
  EXPECT_NE(first, later);
  EXPECT_EQ(rounds.size(), 6u);  // all orders of three classes
}

// Record i is 1 x 5 x 5, the numbers from i on; of every ten records one is of class 1, one of class 2.
std::string write_unequal(const Folder& folder, const std::string& name, Backend backend,
                          int count = 50) {
  const std::string path = folder.file(name);
  const auto writer = create_database(path, backend);
  for (int i = 0; i < count; ++i) {
    Datum datum;
    datum.set_channels(1);
    datum.set_height(5);
    datum.set_width(5);
    for (int k = 0; k < 25; ++k) datum.mutable_data()->push_back(static_cast<char>(i + k));
    datum.set_label(i % 10 < 2 ? i % 10 + 1 : 0);
    writer->put(numbered_key(i, 8), datum);
  }
  writer->finish();
  return path;
}

LoaderOptions balanced(int64_t batch) {
  LoaderOptions options;
  options.batch_size = batch;
  options.balance = true;
  options.random = {5, 9};
  return options;
}

std::shared_ptr<const Dataset> samples_of(const std::string& path) {
  TransformationParameter transform;
  transform.set_crop_size(3);
  transform.set_mirror(true);
  return std::make_shared<Records>(open_lmdb(path), Transform(transform, true, "", silent_log()));
}

TEST(Balance, ThreadsRanksAndResumingChangeNothing) {
  const Folder folder;
  const auto samples = samples_of(write_unequal(folder, "db", DataParameter::LMDB));
  Loader reference(samples, balanced(6));
  std::vector<Batch> batches;
  for (int64_t i = 0; i < 40; ++i) batches.push_back(reference.batch(i));
  std::map<float, int> counts;
  for (const Batch& batch : batches)
    for (const float label : batch.labels) ++counts[label];
  EXPECT_EQ(counts, (std::map<float, int>{{0.f, 80}, {1.f, 80}, {2.f, 80}}));
  EXPECT_EQ(batches[7].epoch, 0);
  EXPECT_EQ(batches[8].epoch, 1);  // samples 48 to 53; an epoch has 50

  for (const int workers : {1, 2, 8}) {
    SCOPED_TRACE(workers);
    LoaderOptions options = balanced(6);
    options.workers = workers;
    Loader resumed(samples, options);  // in the middle of the second epoch, and back
    for (const int64_t number : {11, 12, 13, 30, 31, 2, 3}) {
      EXPECT_EQ(resumed.batch(number).data, batches[static_cast<size_t>(number)].data);
      EXPECT_EQ(resumed.batch(number).labels, batches[static_cast<size_t>(number)].labels);
    }
  }
  for (int rank = 0; rank < 2; ++rank) {
    SCOPED_TRACE(rank);
    LoaderOptions options = balanced(3);
    options.batch_of_ranks = 6;
    options.first_in_batch = 3 * rank;
    Loader part(samples, options);
    for (int64_t number = 0; number < 40; ++number) {
      const Batch& batch = part.batch(number);
      for (int64_t i = 0; i < 3; ++i) {
        const Batch& whole = batches[static_cast<size_t>(number)];
        EXPECT_EQ(batch.labels[i], whole.labels[3 * rank + i]);
        EXPECT_TRUE(std::equal(batch.data.begin() + i * 9, batch.data.begin() + (i + 1) * 9,
                               whole.data.begin() + (3 * rank + i) * 9));
      }
    }
  }
}

// Frequent records are cropped and mirrored differently each time, also within one epoch.
TEST(Balance, RepeatedRecordsAreChangedAnew) {
  const Folder folder;
  const auto samples = samples_of(write_unequal(folder, "db", DataParameter::LMDB, 12));
  Loader loader(samples, balanced(12));  // an epoch
  std::set<std::vector<float>> cuts;
  for (int64_t i = 0; i < 12; ++i) {
    const Batch& batch = loader.batch(0);
    if (batch.labels[i] != 1.f) continue;
    cuts.insert(std::vector<float>(batch.data.begin() + i * 9, batch.data.begin() + (i + 1) * 9));
  }
  EXPECT_GE(cuts.size(), 3u);  // of four: the class has two records
}

TEST(Balance, FindsTheClassWithoutTheImage) {
  const auto class_in_bytes = [](const std::string& bytes, size_t* read) {
    return class_of_datum(bytes.size(), [&](uint64_t offset, void* to, size_t count) {
      ASSERT_LE(offset + count, bytes.size());
      bytes.copy(static_cast<char*>(to), count, offset);
      *read += count;
    });
  };
  for (const int size : {0, 3, 127, 128, 4000, 5000, 100000}) {
    for (const int label : {0, 3, 70000, -1}) {
      Datum datum;
      datum.set_channels(3);
      datum.set_data(std::string(static_cast<size_t>(size), 'd'));
      datum.set_label(label);
      datum.add_float_data(0.5f);
      datum.set_encoded(true);
      size_t read = 0;
      EXPECT_EQ(class_in_bytes(datum.SerializeAsString(), &read), label) << size;
      EXPECT_LT(read, 6000u);
      datum.add_labels(1);
      EXPECT_EQ(class_in_bytes(datum.SerializeAsString(), &read), std::nullopt) << size;
    }
  }
  size_t read = 0;
  EXPECT_EQ(class_in_bytes("", &read), 0);
  Datum datum;
  datum.set_data("picture");
  datum.set_label(300);
  const std::string whole = datum.SerializeAsString();
  for (size_t i = 1; i < whole.size(); ++i) {
    if (i == 9) continue;  // between two fields
    expect_part(error_of([&] { class_in_bytes(whole.substr(0, i), &read); }),
                "not a message of type Datum");
  }
}

std::unique_ptr<Layer> layer_of(const std::string& text, bool training, Context& context,
                                const std::string& folder) {
  LayerParameter message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "name: \"d\" top: \"data\" top: \"label\" " + text, &message));
  std::unique_ptr<Layer> layer = make_layer(message, training, folder);
  layer->source()->open(context);
  layer->setup(context, {});
  return layer;
}

// The labels of some batches, counted.
std::map<float, int> labels_of(Layer& layer, Context& context, int batches) {
  std::map<float, int> counts;
  Forward pass;
  for (const Shape& shape : layer.infer({}).tops) pass.top.emplace_back(context, shape);
  for (pass.pass = 0; pass.pass < static_cast<uint64_t>(batches); ++pass.pass) {
    layer.forward(context, pass);
    for (const float label : to_floats(context, pass.top[1])) ++counts[label];
  }
  return counts;
}

TEST(Balance, IsForEverySourceWithClasses) {
  NEEDS_IMAGES();
  const Folder folder;
  write_unequal(folder, "l", DataParameter::LMDB);
  write_unequal(folder, "h", DataParameter::HDF5);
  std::string list, tar;
  const std::string picture = read_file(formats() + "/images/img03.jpg");
  folder.write("a.jpg", picture);
  for (int i = 0; i < 20; ++i) {
    const std::string label = i < 2 ? "1" : i < 5 ? "2" : "0";
    list += "a.jpg " + label + "\n";
    tar += tar_record(cat(i), picture, label);
  }
  folder.write("list.txt", list);
  folder.write("t.tar", tar + tar_end());
  std::vector<std::string> rows = {
      "type: \"Data\" data_param { source: \"l\" backend: LMDB batch_size: 3 balance: true }",
      "type: \"Data\" data_param { source: \"t.tar\" backend: TAR batch_size: 3 balance: true }",
      "type: \"ImageData\" image_data_param { source: \"list.txt\" batch_size: 3 balance: true }",
      "type: \"ImageData\" image_data_param { source: \"list.txt\" batch_size: 3 balance_class: "
      "true }",
      "type: \"HDF5Data\" hdf5_data_param { source: \"h.txt\" batch_size: 3 balance: true }",
  };
#ifdef CREMA_LEVELDB
  write_unequal(folder, "v", DataParameter::LEVELDB);
  rows.push_back("type: \"Data\" data_param { source: \"v\" batch_size: 3 balance: true }");
#endif
  for (const std::string& row : rows) {
    SCOPED_TRACE(row);
    Lines log;
    Context context(Device::cpu);
    context.set_log(log);
    const auto layer = layer_of(row, true, context, folder.path());
    EXPECT_EQ(labels_of(*layer, context, 20),
              (std::map<float, int>{{0.f, 20}, {1.f, 20}, {2.f, 20}}));
    const auto balanced = std::find_if(
        log.infos.begin(), log.infos.end(),
        [](const std::string& line) { return line.rfind("Balanced: 3 classes of ", 0) == 0; });
    EXPECT_NE(balanced, log.infos.end());
  }
  // A test sees each record once.
  Lines log;
  Context context(Device::cpu);
  context.set_log(log);
  const auto layer = layer_of(rows[0], false, context, folder.path());
  EXPECT_EQ(labels_of(*layer, context, 10), (std::map<float, int>{{0.f, 24}, {1.f, 3}, {2.f, 3}}));
  EXPECT_TRUE(log.has("balance is for training: here each record comes once an epoch"));
}

TEST(Balance, RefusesWhatHasNoClass) {
  const Folder folder;
  {
    const auto writer = create_database(folder.file("db"), DataParameter::LMDB);
    Datum datum;
    datum.set_channels(1);
    datum.set_height(1);
    datum.set_width(1);
    datum.set_data("x");
    datum.set_label(1);
    writer->put("a", datum);
    datum.add_labels(0.5f);
    writer->put("b", datum);
    writer->finish();
    const auto boxes = create_database(folder.file("boxes"), DataParameter::LMDB);
    AnnotatedDatum annotated;
    datum.clear_labels();
    *annotated.mutable_datum() = datum;
    annotated.set_type(AnnotatedDatum::BBOX);
    boxes->put("a", annotated);
    boxes->finish();
  }
  const std::pair<std::string, std::string> rows[] = {
      {"type: \"Data\" data_param { source: \"db\" backend: LMDB batch_size: 3 balance: true }",
       folder.file("db") +
           ", record 1 (key \"b\"): has no one class, but several labels or a real number"},
      {"type: \"AnnotatedData\" data_param { source: \"boxes\" backend: LMDB batch_size: 3 "
       "balance: "
       "true }",
       "balance draws classes equally often, but the labels of AnnotatedData are something else"},
  };
  for (const auto& [text, part] : rows) {
    Context context(Device::cpu);
    expect_part(error_of([&] { layer_of(text, true, context, folder.path()); }), part);
  }
}

TEST(Balance, NamesTheLineWithoutAClass) {
  NEEDS_IMAGES();
  const Folder folder;
  folder.write("a.jpg", read_file(formats() + "/images/img03.jpg"));
  folder.write("real.txt", "a.jpg 1\na.jpg 0.5\n");
  folder.write("several.txt", "a.jpg 1 2\na.jpg 0 3\n");
  const std::pair<std::string, std::string> rows[] = {
      {"real.txt", "real.txt:2: has no one class"},
      {"several.txt", "several.txt:1: has no one class"}};
  for (const auto& [list, part] : rows) {
    Context context(Device::cpu);
    expect_part(error_of([&] {
                  layer_of("type: \"ImageData\" image_data_param { source: \"" + list +
                               "\" batch_size: 2 balance: true }",
                           true, context, folder.path());
                }),
                part);
  }
}

}  // namespace balance_test
}  // namespace crema::tests
