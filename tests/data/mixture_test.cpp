// mixup and cutmix: what becomes of the samples of a batch and of their labels.
#include "data/transforms/mixture.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "data/databases/database_writer.h"
#include "data/databases/records.h"
#include "fixtures.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"
#include "ranks.h"

namespace crema::tests {
namespace mixture_test {

constexpr int kRecords = 11, kHeight = 9, kWidth = 14, kPixels = kHeight * kWidth;

Datum record_of(int i) {
  const Random random{5, 1};
  Datum datum;
  datum.set_channels(3);
  datum.set_height(kHeight);
  datum.set_width(kWidth);
  datum.set_label(i);
  for (int k = 0; k < 3 * kPixels; ++k)
    datum.mutable_data()->push_back(static_cast<char>(random.word(i * 1000 + k)));
  return datum;
}

struct Layers {
  Layers() {
    const auto writer = create_lmdb(folder.file("db"));
    for (int i = 0; i < kRecords; ++i) writer->put(numbered_key(i, 8), record_of(i));
    writer->finish();
  }

  std::unique_ptr<Layer> layer(const std::string& text, Context& context,
                               bool training = true) const {
    LayerParameter message;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString("name: \"d\" " + text, &message))
        << text;
    std::unique_ptr<Layer> layer = make_layer(message, training, folder.path());
    layer->source()->open(context);
    layer->setup(context, {});
    return layer;
  }

  Folder folder;
};

std::string data_layer(const std::string& augment, int batch = 6, int threads = 1,
                       const std::string& tops = "top: \"data\" top: \"label\"") {
  return cat("type: \"Data\" ", tops, " data_param { source: \"db\" backend: LMDB shuffle: true ",
             "batch_size: ", batch, " threads: ", threads, " } transform_param { augment { ",
             augment, " } }");
}

struct Tops {
  std::vector<float> data, labels;
  Shape label_shape;
  bool operator==(const Tops& other) const { return data == other.data && labels == other.labels; }
};

Tops batch_of(Layer& layer, Context& context, uint64_t number) {
  Forward pass;
  pass.pass = number;
  layer.source()->reshapes(number);
  for (const Shape& shape : layer.infer({}).tops) pass.top.emplace_back(context, shape);
  layer.forward(context, pass);
  return {to_floats(context, pass.top[0]), to_floats(context, pass.top[1]), pass.top[1].shape()};
}

// The sample with this label, as it is.
std::vector<float> plain(int label) {
  const Datum datum = record_of(label);
  std::vector<float> values;
  for (const char byte : datum.data()) values.push_back(static_cast<uint8_t>(byte));
  return values;
}

TEST(Mixture, SharesFollowABetaDistribution) {
  for (const float alpha : {0.2f, 1.f, 4.f}) {
    Rng rng({3, 4});
    constexpr int kDraws = 20000;
    double sum = 0, squares = 0;
    for (int i = 0; i < kDraws; ++i) {
      const double value = draw_beta(alpha, rng);
      ASSERT_TRUE(value >= 0 && value <= 1) << value;
      sum += value;
      squares += (value - 0.5) * (value - 0.5);
    }
    EXPECT_NEAR(sum / kDraws, 0.5, 0.01);
    EXPECT_NEAR(squares / kDraws, 0.25 / (2 * double{alpha} + 1), 0.003) << alpha;
  }
}

TEST(Mixture, PartnersAreEachOthers) {
  AugmentParameter parameter;
  parameter.mutable_mixup();
  parameter.set_classes(2);
  const Mixture mixture(parameter, "Data", {7, 8});
  for (const int64_t size : {2, 7, 12}) {
    std::set<int64_t> of_first;
    for (int64_t batch = 0; batch < 60; ++batch) {
      int64_t alone = 0;
      for (int64_t i = 0; i < size; ++i) {
        const int64_t partner = mixture.partner(batch, i, size);
        ASSERT_TRUE(partner >= 0 && partner < size);
        EXPECT_EQ(mixture.partner(batch, partner, size), i);
        alone += partner == i;
      }
      EXPECT_EQ(alone, size % 2);
      of_first.insert(mixture.partner(batch, 0, size));
    }
    EXPECT_EQ(static_cast<int64_t>(of_first.size()), size % 2 == 0 ? size / 2 : size);
  }
}

// The two classes of a sample and the share of the first; the same class twice if it is alone.
struct Found {
  int own, other;
  float share;
};
Found classes_of(const float* shares, const std::vector<int>& own_classes, int in_batch) {
  Found found{own_classes[in_batch], own_classes[in_batch], shares[own_classes[in_batch]]};
  for (int k = 0; k < kRecords; ++k) {
    if (shares[k] > 0 && k != found.own) found.other = k;
  }
  return found;
}

TEST(Mixture, LabelsSayWhatIsInAPicture) {
  const Layers files;
  Context context(Device::cpu);
  const auto unmixed = files.layer(data_layer(""), context);
  const std::string both = "mixup { alpha: 1 } cutmix {} classes: 11";
  const auto mixed = files.layer(data_layer(both), context);
  int blended = 0, cut = 0, whole = 0;
  for (uint64_t pass = 0; pass < 30; ++pass) {
    const Tops before = batch_of(*unmixed, context, pass), after = batch_of(*mixed, context, pass);
    ASSERT_EQ(after.label_shape, Shape({6, kRecords}));
    const std::vector<int> own(before.labels.begin(), before.labels.end());
    for (int i = 0; i < 6; ++i) {
      const float* const shares = after.labels.data() + i * kRecords;
      EXPECT_NEAR(std::accumulate(shares, shares + kRecords, 0.f), 1, 1e-6);
      const Found found = classes_of(shares, own, i);
      const std::vector<float> a = plain(found.own), b = plain(found.other);
      int of_own = 0;
      bool is_blend = true;
      for (int k = 0; k < 3 * kPixels; ++k) {
        const float value = after.data[i * 3 * kPixels + k];
        is_blend &= std::abs(value - (found.share * a[k] + (1 - found.share) * b[k])) < 1e-3;
        of_own += value == a[k];
        if (value != a[k] && value != b[k]) of_own = -100000;
      }
      if (found.share == 1) {
        ++whole;
        EXPECT_EQ(of_own, 3 * kPixels);
      } else if (is_blend) {
        ++blended;
      } else {
        ++cut;
        // Also where both happen to be equal.
        EXPECT_GE(of_own, std::lround(found.share * 3 * kPixels));
        EXPECT_LE(of_own, std::lround(found.share * 3 * kPixels) + 12);
      }
    }
  }
  EXPECT_GT(blended, 60);
  EXPECT_GT(cut, 50);
  EXPECT_LT(whole, 30);
}

TEST(Mixture, NeitherThreadsNorResumingChangeAnything) {
  const Layers files;
  Context context(Device::cpu);
  const std::string augment = "flip {} mixup { probability: 0.8 } cutmix {} classes: 11";
  const auto one = files.layer(data_layer(augment, 7), context);
  std::vector<Tops> expected;
  for (uint64_t pass = 0; pass < 8; ++pass) expected.push_back(batch_of(*one, context, pass));
  for (const int threads : {2, 8}) {
    const auto several = files.layer(data_layer(augment, 7, threads), context);
    for (uint64_t pass = 0; pass < 8; ++pass)
      EXPECT_TRUE(batch_of(*several, context, pass) == expected[pass]) << threads << " " << pass;
    const auto resumed = files.layer(data_layer(augment, 7, threads), context);
    EXPECT_TRUE(batch_of(*resumed, context, 5) == expected[5]);
  }
  EXPECT_FALSE(batch_of(*one, context, 0) == expected[1]);
}

// Both samples of a pair are in one rank's part of the batch; a sample keeps the same weight as on
// one rank.
TEST(Mixture, RanksMixTheirOwnPart) {
  const Layers files;
  const std::string augment = "mixup { alpha: 1 } cutmix {} classes: 11";
  Context context(Device::cpu);
  const auto plain = files.layer(data_layer("", 10), context),
             alone = files.layer(data_layer(augment, 10), context);
  int mixed = 0;
  for (int rank = 0; rank < 2; ++rank) {
    OnlyRank world(rank, 2);
    world.divides_batches = true;
    Context shared(Device::cpu);
    shared.set_world(&world);
    const auto part = files.layer(data_layer(augment, 10), shared);
    for (uint64_t pass = 0; pass < 11; ++pass) {
      const std::vector<float> classes = batch_of(*plain, context, pass).labels;
      if (std::set<float>(classes.begin(), classes.end()).size() < classes.size()) continue;
      const Tops whole = batch_of(*alone, context, pass), own = batch_of(*part, shared, pass);
      ASSERT_EQ(own.label_shape, Shape({5, kRecords}));
      const std::set<float> of_part(classes.begin() + 5 * rank, classes.begin() + 5 * rank + 5);
      for (int i = 0; i < 5; ++i) {
        const float* const shares = own.labels.data() + i * kRecords;
        for (int k = 0; k < kRecords; ++k) EXPECT_TRUE(shares[k] == 0 || of_part.contains(k));
        const int label = static_cast<int>(classes[5 * rank + i]);
        if (shares[label] == 1) continue;  // without a partner, for example
        ++mixed;
        const float kept = whole.labels[(5 * rank + i) * kRecords + label];
        EXPECT_TRUE(kept == shares[label] || kept == 1) << kept << " " << shares[label];
      }
    }
  }
  EXPECT_GT(mixed, 10);
}

TEST(Mixture, ProbabilityZeroAndTestsMixNothing) {
  const Layers files;
  Context context(Device::cpu);
  const auto unmixed = files.layer(data_layer(""), context);
  const auto never = files.layer(data_layer("mixup { probability: 0 } classes: 11", 6, 2), context);
  for (uint64_t pass = 0; pass < 4; ++pass) {
    const Tops plain = batch_of(*unmixed, context, pass), same = batch_of(*never, context, pass);
    EXPECT_EQ(same.data, plain.data);
    for (int i = 0; i < 6; ++i)
      EXPECT_EQ(same.labels[i * kRecords + static_cast<int>(plain.labels[i])], 1);
  }
  const auto plain_test = files.layer(data_layer(""), context, false);
  const auto mixed_test = files.layer(data_layer("mixup {} cutmix {} classes: 11"), context, false);
  const Tops test = batch_of(*mixed_test, context, 1);
  EXPECT_TRUE(test == batch_of(*plain_test, context, 1));
  EXPECT_EQ(test.label_shape, Shape({6}));
}

TEST(Mixture, RefusesWhatItCannotMix) {
  const Layers files;
  const std::string one_top = "top: \"data\"", mixup = "mixup {} classes: 11";
  {
    const auto writer = create_lmdb(files.folder.file("several"));
    Datum datum = record_of(0);
    datum.add_labels(1);
    datum.add_labels(0);
    writer->put("a", datum);
    writer->finish();
  }
  const std::string several =
      "type: \"Data\" top: \"data\" top: \"label\" data_param { source: \"several\" backend: LMDB "
      "batch_size: 2 } transform_param { augment { cutmix {} classes: 3 } }";
  const std::pair<std::string, std::string> rows[] = {
      {data_layer("mixup {}"), "augment has mixup, but no `classes`"},
      {data_layer("cutmix {} classes: 1"), "augment has classes: 1; cutmix mixes labels of 2 to"},
      {data_layer(mixup, 1), "which mixes the samples of a batch, but batch_size is 1"},
      {data_layer(mixup, 4, 1, one_top), "there is no second top for the labels"},
      {data_layer("mixup { alpha: 0 } classes: 11"),
       "augment has mixup { alpha }: 0; the alpha of"},
      {data_layer("cutmix { probability: 2 } classes: 11"), "cutmix { probability }: 2; a share"},
      {data_layer("mosaic {}"),
       "mosaic, which joins images with boxes around their objects, but "
       "Data has no boxes here"},
      {data_layer("mosaic { least_center: 0.6 }"), "augment has mosaic { least_center }: 0.6"},
      {several, "record 0 (key \"a\"): it has 2 labels (2); augment has cutmix"},
      {"type: \"DenseImageData\" top: \"data\" top: \"label\" dense_image_data_param { source: "
       "\"list.txt\" batch_size: 2 } transform_param { augment { mixup {} classes: 3 } }",
       "which mixes samples that have a class each, but the labels of DenseImageData are "
       "something"},
  };
#ifdef CREMA_OPENCV
  files.folder.write("a.png", encode_image({3, 8, 8, std::vector<uint8_t>(192, 9)}, "png"));
  files.folder.write("a_label.png", encode_image({1, 8, 8, std::vector<uint8_t>(64, 1)}, "png"));
#endif
  files.folder.write("list.txt", "a.png a_label.png\n");
  Context context(Device::cpu);
  for (const auto& [text, part] : rows) {
#ifndef CREMA_OPENCV
    if (text.find("DenseImageData") != std::string::npos) continue;
#endif
    expect_part(error_of([&] { files.layer(text, context); }), part);
  }
  // A label that is no class names its record.
  const auto few = files.layer(data_layer("mixup {} classes: 7", 11), context);
  const std::string problem = error_of([&] { batch_of(*few, context, 0); });
  expect_part(problem, "(key \"000000");
  expect_part(problem, " is no class: augment has classes: 7, and mixup mixes labels from 0 to 6");
}

}  // namespace mixture_test
}  // namespace crema::tests
