// Labels that float32 cannot represent, and boxes outside of any image: reported, not rounded.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "data/databases/database_writer.h"
#include "fixtures.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema::tests {
namespace exact_labels_test {

constexpr int kLarge = 16777217;  // 2^24 + 1

Datum image(int label) {
  Datum datum;
  datum.set_channels(1);
  datum.set_height(2);
  datum.set_width(2);
  datum.set_data("abcd");
  datum.set_label(label);
  return datum;
}

AnnotatedDatum boxed(float xmin, int label = 1) {
  AnnotatedDatum record;
  *record.mutable_datum() = image(0);
  record.set_type(AnnotatedDatum::BBOX);
  AnnotationGroup& group = *record.add_annotation_group();
  group.set_group_label(label);
  NormalizedBBox& box = *group.add_annotation()->mutable_bbox();
  box.set_xmin(xmin);
  box.set_ymin(0.25f);
  box.set_xmax(0.75f);
  box.set_ymax(0.75f);
  return record;
}

// The labels of the first batch, of two records, or the error.
std::string batch_of(const std::string& layer_text,
                     const std::vector<const google::protobuf::Message*>& records) {
  const Folder folder;
  const auto writer = create_database(folder.file("db"), DataParameter::LMDB);
  for (size_t i = 0; i < records.size(); ++i)
    writer->put(numbered_key(static_cast<int64_t>(i), 8), *records[i]);
  writer->finish();
  LayerParameter message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      cat("name: \"d\" top: \"data\" data_param { source: \"db\" backend: LMDB batch_size: 2 } ",
          layer_text),
      &message));
  try {
    Context context(Device::cpu);
    const std::unique_ptr<Layer> layer = make_layer(message, true, folder.path());
    layer->source()->open(context);
    layer->setup(context, {});
    Forward pass;
    layer->source()->reshapes(0);
    for (const Shape& shape : layer->infer({}).tops) pass.top.emplace_back(context, shape);
    layer->forward(context, pass);
    std::vector<std::string> labels;
    if (pass.top.size() > 1) {
      for (const float label : to_floats(context, pass.top[1]))
        labels.push_back(cat(int64_t(label)));
    }
    return join(labels, " ");
  } catch (const Error& problem) {
    return problem.what();
  }
}

TEST(ExactLabels, OfDatabasesAreSaidWhereABlobCannotHoldThem) {
  const Datum small = image(16777216), large = image(kLarge), even = image(INT32_MIN);
  const std::string labelled = "type: \"Data\" top: \"label\"";
  EXPECT_EQ(batch_of(labelled, {&small, &even}), "16777216 -2147483648");
  expect_part(batch_of(labelled, {&small, &large}),
              "record 1 (key \"00000001\"): the label 16777217 cannot be kept: blobs are float32");
  // Nobody reads it.
  EXPECT_EQ(batch_of("type: \"Data\"", {&small, &large}), "");
}

TEST(ExactLabels, OfAnnotationsToo) {
  const std::string layer = "type: \"AnnotatedData\" top: \"label\"";
  const AnnotatedDatum good = boxed(0.25f), large = boxed(0.25f, kLarge);
  expect_part(batch_of(layer, {&good, &large}), "the label 16777217 cannot be kept");
  for (const float corner : {NAN, INFINITY, -INFINITY, 0x1p63f}) {
    SCOPED_TRACE(corner);
    const AnnotatedDatum far = boxed(corner);
    expect_part(batch_of(layer, {&good, &far}),
                "record 1 (key \"00000001\"): the box of an object of class 1 reaches from (");
  }
}

}  // namespace exact_labels_test
}  // namespace crema::tests
