#include "exchange/onnx/import_attention.h"

#include <cmath>
#include <numeric>
#include <optional>

#include "exchange/onnx/operators/broadcast.h"
#include "proto/params/attention.pb.h"
#include "proto/params/shape.pb.h"

namespace crema {

namespace {

using Indices = std::vector<int64_t>;

// For each value of the top, its index in the bottom; none: the layer computes something.
std::optional<Indices> moved_from(ImportLinks& links, const LayerParameter& layer,
                                  const std::string& top) {
  const std::string& type = layer.type();
  if (type != "Reshape" && type != "Flatten" && type != "Permute" && type != "Slice")
    return std::nullopt;
  const Shape from = links.shape(layer.bottom(0)), to = links.shape(top);
  Indices indices(to.count());
  if (type == "Reshape" || type == "Flatten") {
    std::iota(indices.begin(), indices.end(), 0);
    return indices;
  }
  const std::vector<int64_t> dense = dense_steps(from);
  std::vector<int64_t> steps = dense;
  int64_t first = 0;
  if (type == "Permute") {
    for (int axis = 0; axis < to.axes(); ++axis)
      steps[axis] = dense[layer.permute_param().order(axis)];
  } else {
    const int axis = from.canonical_axis(layer.slice_param().axis());
    for (const std::string& part : layer.top()) {
      if (part == top) break;
      first += links.shape(part)[axis] * dense[axis];
    }
  }
  Walk walk(to, {steps});
  for (int64_t& index : indices) {
    index = first + walk.offset(0);
    walk.next();
  }
  return indices;
}

// A blob that is made of another one by moving values and by a factor.
struct Moved {
  std::string source;
  Indices indices;
  double factor = 1;
};

bool is_scaling(const LayerParameter& layer) {
  const PowerParameter& p = layer.power_param();
  return layer.type() == "Power" && p.power() == 1 && p.shift() == 0;
}

// Goes back one layer; false: the source's layer computes something.
bool step_back(ImportLinks& links, Moved* moved) {
  const ImportedLayer* const maker = links.maker(moved->source);
  if (!maker || maker->message.bottom_size() != 1) return false;
  if (is_scaling(maker->message)) {
    moved->factor *= maker->message.power_param().scale();
  } else {
    const std::optional<Indices> step = moved_from(links, maker->message, moved->source);
    if (!step) return false;
    for (int64_t& index : moved->indices) index = (*step)[index];
  }
  moved->source = maker->message.bottom(0);
  return true;
}

Moved start_at(ImportLinks& links, const std::string& blob) {
  Moved moved{blob, Indices(links.shape(blob).count()), 1};
  std::iota(moved.indices.begin(), moved.indices.end(), 0);
  return moved;
}

struct Sizes {
  int64_t batch = 0, places = 0, heads = 0, each = 0;
  int64_t channels() const { return heads * each; }
};

// A learned projection whose outputs are the heads of queries, keys or values.
struct Projection {
  const ImportedLayer* layer = nullptr;
  std::string input;             // (batch, places, channels)
  std::vector<int64_t> columns;  // of its outputs, for each channel of each head
  double factor = 1;
  bool has_bias() const { return layer->blobs.size() > 1; }
  int64_t inputs() const { return layer->blobs[0].shape[1]; }
};

// Whether row r of a projection is place t of sample n, where rows are sorted by samples or by
// places.
bool is_row(const Sizes& sizes, int64_t row, int64_t n, int64_t t, bool by_samples) {
  return row == (by_samples ? n * sizes.places + t : t * sizes.batch + n);
}

// The blob (batch, places, channels) with these rows.
std::string find_rows(ImportLinks& links, const std::string& rows, const Sizes& sizes,
                      bool by_samples) {
  const int64_t width = links.shape(rows)[links.shape(rows).axes() - 1];
  const Shape wanted{sizes.batch, sizes.places, width};
  Moved moved = start_at(links, rows);
  do {
    bool fits = links.shape(moved.source) == wanted && moved.factor == 1;
    for (size_t i = 0; fits && i < moved.indices.size(); ++i) {
      const int64_t at = moved.indices[i], row = static_cast<int64_t>(i) / width;
      const int64_t n = at / width / sizes.places, t = at / width % sizes.places;
      fits = at % width == static_cast<int64_t>(i) % width && is_row(sizes, row, n, t, by_samples);
    }
    if (fits) return moved.source;
  } while (step_back(links, &moved));
  return "";
}

// position(l, t, j): where a head's value is in the blob.
template <typename Position>
std::optional<Projection> find_projection(ImportLinks& links, const std::string& blob,
                                          const Sizes& sizes, const Position& position) {
  Moved moved = start_at(links, blob);
  while (step_back(links, &moved)) {
  }
  Projection p;
  p.layer = links.maker(moved.source);
  if (!p.layer || p.layer->message.type() != "InnerProduct" || p.layer->blobs.empty())
    return std::nullopt;
  p.factor = moved.factor;
  const int64_t outputs = p.layer->blobs[0].shape[0];
  if (links.shape(moved.source).count() / outputs != sizes.batch * sizes.places)
    return std::nullopt;
  p.columns.assign(sizes.channels(), -1);
  for (const bool by_samples : {true, false}) {
    bool fits = true;
    for (int64_t l = 0; fits && l < sizes.batch * sizes.heads; ++l) {
      for (int64_t t = 0; fits && t < sizes.places; ++t) {
        for (int64_t j = 0; fits && j < sizes.each; ++j) {
          const int64_t at = moved.indices[position(l, t, j)];
          int64_t& column = p.columns[l % sizes.heads * sizes.each + j];
          if (l == 0 || column < 0) column = at % outputs;
          fits =
              column == at % outputs && is_row(sizes, at / outputs, l / sizes.heads, t, by_samples);
        }
      }
    }
    if (!fits) {
      p.columns.assign(sizes.channels(), -1);
      continue;
    }
    p.input = find_rows(links, p.layer->message.bottom(0), sizes, by_samples);
    if (!p.input.empty()) return p;
  }
  return std::nullopt;
}

// What is between the two products: factors, a mask of the keys behind each query, and the softmax.
struct Scores {
  const ImportedLayer* first = nullptr;  // the product of queries and keys
  double factor = 1;
  bool causal = false;
};

bool is_causal_mask(const LayerBlob& blob, int64_t queries, int64_t keys) {
  if (blob.shape.count() != queries * keys) return false;
  for (int64_t i = 0; i < queries; ++i) {
    for (int64_t j = 0; j < keys; ++j) {
      const float value = blob.values[i * keys + j];
      if (j > i ? !(value < -1e4f) : value != 0) return false;
    }
  }
  return true;
}

std::optional<Scores> find_scores(ImportLinks& links, const std::string& weights) {
  const ImportedLayer* layer = links.maker(weights);
  const Shape shape = links.shape(weights);
  const int last = shape.axes() - 1;
  if (!layer || layer->message.type() != "Softmax" ||
      shape.canonical_axis(layer->message.softmax_param().axis()) != last)
    return std::nullopt;
  Scores scores;
  while ((layer = links.maker(layer->message.bottom(0)))) {
    const LayerParameter& message = layer->message;
    if (message.type() == "MatMul") {
      scores.first = layer;
      return scores;
    }
    if (is_scaling(message)) {
      scores.factor *= message.power_param().scale();
    } else if (message.type() == "Bias" && layer->blobs.size() == 1 && !scores.causal &&
               is_causal_mask(layer->blobs[0], shape[last - 1], shape[last])) {
      scores.causal = true;
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

struct Attention {
  Sizes queries, keys;
  Scores scores;
  Projection q, k, v;
  const ImportedLayer* output = nullptr;  // the last projection
  std::vector<int64_t> output_columns;    // of its inputs, for each channel of each head
  bool by_samples = true;                 // its rows
};

// The projection behind the second product.
bool find_output(ImportLinks& links, const std::string& product, Attention* a) {
  std::string blob = product;
  const ImportedLayer* reader = links.only_reader(blob);
  while (reader && reader->message.type() != "InnerProduct") {
    if (!moved_from(links, reader->message, reader->message.top(0))) return false;
    blob = reader->message.top(0);
    reader = links.only_reader(blob);
  }
  const Sizes& s = a->queries;
  if (!reader || reader->blobs.empty() ||
      reader->blobs[0].shape != Shape{s.channels(), s.channels()})
    return false;
  a->output = reader;
  Moved moved = start_at(links, blob);
  while (moved.source != product)
    if (!step_back(links, &moved)) return false;
  for (const bool by_samples : {true, false}) {
    a->by_samples = by_samples;
    a->output_columns.assign(s.channels(), -1);
    bool fits = true;
    for (size_t i = 0; fits && i < moved.indices.size(); ++i) {
      const int64_t at = moved.indices[i], row = static_cast<int64_t>(i) / s.channels();
      const int64_t l = at / s.each / s.places, t = at / s.each % s.places;
      int64_t& column = a->output_columns[l % s.heads * s.each + at % s.each];
      if (column < 0) column = static_cast<int64_t>(i) % s.channels();
      fits = column == static_cast<int64_t>(i) % s.channels() &&
             is_row(s, row, l / s.heads, t, by_samples);
    }
    if (fits) return true;
  }
  return false;
}

// Rows of weights, or values of a bias, for each channel of each head.
LayerBlob chosen_rows(const LayerBlob& from, const std::vector<int64_t>& rows, double factor) {
  const int64_t width = from.shape.count(1);
  LayerBlob blob;
  blob.shape = from.shape;
  blob.shape[0] = static_cast<int64_t>(rows.size());
  for (const int64_t row : rows)
    for (int64_t i = 0; i < width; ++i)
      blob.values.push_back(static_cast<float>(from.values[row * width + i] * factor));
  return blob;
}

LayerBlob chosen_bias(const Projection& p, double factor) {
  const auto count = static_cast<int64_t>(p.columns.size());
  if (!p.has_bias()) return {Shape{count}, std::vector<float>(count)};
  return chosen_rows(p.layer->blobs[1], p.columns, factor);
}

std::vector<LayerBlob> blobs_of(const Attention& a, bool bias) {
  const double factor = a.q.factor * a.k.factor * a.scores.factor * std::sqrt(a.queries.each);
  const double of_queries = std::abs(factor - 1) < 1e-5 ? 1 : factor;
  std::vector<LayerBlob> blobs = {chosen_rows(a.q.layer->blobs[0], a.q.columns, of_queries),
                                  chosen_rows(a.k.layer->blobs[0], a.k.columns, 1),
                                  chosen_rows(a.v.layer->blobs[0], a.v.columns, a.v.factor)};
  const LayerBlob& given = a.output->blobs[0];
  const int64_t channels = a.queries.channels();
  LayerBlob output{given.shape, std::vector<float>(given.values.size())};
  for (int64_t o = 0; o < channels; ++o)
    for (int64_t i = 0; i < channels; ++i)
      output.values[o * channels + i] = given.values[o * channels + a.output_columns[i]];
  blobs.push_back(std::move(output));
  if (!bias) return blobs;
  blobs.push_back(chosen_bias(a.q, of_queries));
  blobs.push_back(chosen_bias(a.v, a.v.factor));
  blobs.push_back(a.output->blobs.size() > 1
                      ? a.output->blobs[1]
                      : LayerBlob{Shape{channels}, std::vector<float>(channels)});
  return blobs;
}

// The last layer behind the output projection that gives (batch, places, channels), which becomes
// the attention.
ImportedLayer* find_last(ImportLinks& links, const Attention& a) {
  const std::string top = a.output->message.top(0);
  ImportedLayer* layer = links.maker(top);
  ImportedLayer* found = nullptr;
  while (layer && layer->message.top_size() == 1) {
    const std::string& blob = layer->message.top(0);
    Moved moved = start_at(links, blob);
    while (moved.source != top)
      if (!step_back(links, &moved)) return found;
    const Sizes& s = a.queries;
    bool fits = links.shape(blob) == Shape{s.batch, s.places, s.channels()} && moved.factor == 1;
    for (size_t i = 0; fits && i < moved.indices.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      const int64_t n = at / s.channels() / s.places, t = at / s.channels() % s.places;
      fits = moved.indices[i] % s.channels() == at % s.channels() &&
             is_row(s, moved.indices[i] / s.channels(), n, t, a.by_samples);
    }
    if (fits) found = layer;
    layer = links.only_reader(blob);
    if (layer && !moved_from(links, layer->message, layer->message.top(0))) break;
  }
  return found;
}

}  // namespace

void find_attention(ImportLinks& links, const ImportedLayer& second) {
  const std::string product = second.message.top(0);
  const std::optional<Scores> scores = find_scores(links, second.message.bottom(0));
  if (!scores) return;
  Attention a;
  a.scores = *scores;
  const std::string queries = scores->first->message.bottom(0);
  const std::string keys = scores->first->message.bottom(1), values = second.message.bottom(1);
  const Shape of_q = links.shape(queries), of_k = links.shape(keys);
  const int axes = of_q.axes();
  const int64_t all = of_q.count(0, axes - 2), each = of_q[axes - 1];
  if (of_k.count(0, of_k.axes() - 2) != all || links.shape(values).count() != of_k.count()) return;
  // How many of the first axes' positions are samples: the first projection that fits says it.
  for (int64_t batch = 1; batch <= all; ++batch) {
    if (all % batch != 0) continue;
    a.queries = {batch, of_q[axes - 2], all / batch, each};
    a.keys = {batch, of_k[of_k.axes() - 1], all / batch, each};
    const auto q = find_projection(links, queries, a.queries, [&](int64_t l, int64_t t, int64_t j) {
      return (l * a.queries.places + t) * each + j;
    });
    if (!q) continue;
    const auto k = find_projection(links, keys, a.keys, [&](int64_t l, int64_t t, int64_t j) {
      return (l * each + j) * a.keys.places + t;
    });
    const auto v = find_projection(links, values, a.keys, [&](int64_t l, int64_t t, int64_t j) {
      return (l * a.keys.places + t) * each + j;
    });
    if (!k || !v || !find_output(links, product, &a)) return;
    a.q = *q;
    a.k = *k;
    a.v = *v;
    ImportedLayer* const last = find_last(links, a);
    if (!last || a.k.input.empty()) return;
    const bool bias = a.q.has_bias() || a.v.has_bias() || a.output->blobs.size() > 1;
    std::vector<LayerBlob> blobs = blobs_of(a, bias);
    LayerParameter made;
    made.set_name(a.output->message.name());
    made.set_type("MultiHeadAttention");
    made.add_bottom(a.q.input);
    if (a.k.input != a.q.input || a.v.input != a.q.input) {
      made.add_bottom(a.k.input);
      made.add_bottom(a.v.input);
    }
    made.add_top(last->message.top(0));
    MultiHeadAttentionParameter* const p = made.mutable_multi_head_attention_param();
    p->set_num_heads(static_cast<uint32_t>(a.queries.heads));
    if (a.scores.causal) p->set_causal(true);
    if (!bias) p->set_bias_term(false);
    links.replace(last, std::move(made), std::move(blobs));
    return;
  }
}

}  // namespace crema
