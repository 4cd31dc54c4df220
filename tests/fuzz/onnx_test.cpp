// ONNX models, as `crema import` reads them.
#include "exchange/onnx/export.h"
#include "exchange/onnx/import.h"
#include "exchange/onnx/operator_import.h"
#include "fuzz/fuzz.h"
#include "net/prototxt/prototxt.h"
#include "solver/fixtures.h"

namespace crema::tests {
namespace onnx_fuzz_test {

const char* const kNets[] = {
    R"(layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 4 dim: 8 dim: 8 } } }
layer { name: "c" type: "Convolution" bottom: "x" top: "c"
  convolution_param { num_output: 4 kernel_size: 3 pad: 1 group: 2 weight_filler { type: "xavier" } } }
layer { name: "b" type: "BatchNorm" bottom: "c" top: "c" }
layer { name: "s" type: "Swish" bottom: "c" top: "s" }
layer { name: "p" type: "Pooling" bottom: "s" top: "p" pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 } }
layer { name: "d" type: "Deconvolution" bottom: "p" top: "d"
  convolution_param { num_output: 2 kernel_size: 4 stride: 2 weight_filler { type: "xavier" } } }
layer { name: "i" type: "Interp" bottom: "d" top: "i" interp_param { height: 7 width: 5 } }
layer { name: "q" type: "PixelShuffle" bottom: "p" top: "q" pixel_shuffle_param { upscale_factor: 2 } }
layer { name: "f" type: "InnerProduct" bottom: "q" top: "f"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "m" type: "Softmax" bottom: "f" top: "m" })",
    R"(layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 6 dim: 8 } } }
layer { name: "n" type: "LayerNorm" bottom: "x" top: "n" }
layer { name: "a" type: "MultiHeadAttention" bottom: "n" top: "a"
  multi_head_attention_param { num_heads: 2 causal: true weight_filler { type: "xavier" } } }
layer { name: "e" type: "Eltwise" bottom: "a" bottom: "x" top: "e" }
layer { name: "g" type: "GELU" bottom: "e" top: "g" }
layer { name: "s" type: "Slice" bottom: "g" top: "s1" top: "s2" slice_param { axis: 1 slice_point: 2 } }
layer { name: "t" type: "Concat" bottom: "s2" bottom: "s1" top: "t" }
layer { name: "l" type: "Lstm" bottom: "t" top: "l"
  lstm_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "r" type: "Reduction" bottom: "l" top: "r" reduction_param { axis: 1 operation: MEAN } })",
    // From opset 16 on.
    R"(layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 2 dim: 5 dim: 6 } } }
layer { name: "y" type: "Input" top: "y" input_param { shape { dim: 3 dim: 5 } } }
layer { name: "f" type: "InnerProduct" bottom: "x" top: "f"
  inner_product_param { num_output: 6 weight_filler { type: "xavier" } } }
layer { name: "s" type: "SpatialTransformer" bottom: "x" bottom: "f" top: "s" }
layer { name: "p" type: "ROIPooling" bottom: "s" bottom: "y" top: "p" roi_pooling_param { pooled_h: 2 pooled_w: 2 } }
layer { name: "a" type: "ROIAlign" bottom: "s" bottom: "y" top: "a" roi_align_param { pooled_h: 2 pooled_w: 2 } }
layer { name: "e" type: "Eltwise" bottom: "p" bottom: "a" top: "e" })"};

std::vector<Files> models() {
  std::vector<Files> all;
  for (const char* text : kNets) {
    for (const int opset : {11, 17, 21}) {
      if (opset < 16 && text == std::end(kNets)[-1]) continue;
      Context context(Device::cpu);
      context.set_log(silent_log());
      NetOptions options;
      options.state.set_phase(TEST);
      options.keep_blobs = options.row_major = true;
      options.fuse = false;
      Net net(context, parse_net_text(text, "net.prototxt").net, options);
      OnnxOptions of_model;
      of_model.opset = opset;
      of_model.fold = opset == 17;
      of_model.any_batch = false;
      all.push_back({{"model.onnx", export_onnx(net, of_model).model.SerializeAsString()}});
    }
  }
  return all;
}

TEST(Fuzz, OnnxModels) {
  std::vector<std::string> words = OperatorImportRegistry::names();
  for (const std::string& name : OperatorFoldRegistry::names()) words.push_back(name);
  for (const char* word : {"axis",
                           "axes",
                           "perm",
                           "pads",
                           "strides",
                           "kernel_shape",
                           "group",
                           "x",
                           "c",
                           "p",
                           "SAME_UPPER",
                           "reflect",
                           "keepdims",
                           "mode",
                           "linear",
                           "cubic",
                           "direction",
                           "bidirectional",
                           "equation",
                           "ij,jk->ik",
                           "abc,acd->abd",
                           "linear_before_reset",
                           ""})
    words.emplace_back(word);
  fuzz({"onnx", models,
        [words](Dice& dice, Files& files, const Files&) {
          std::string& bytes = files["model.onnx"];
          onnx::ModelProto model;
          if (dice.one_in(4) || !model.ParsePartialFromString(bytes))
            return damage_wire(dice, bytes);
          damage_message(dice, *model.mutable_graph(), words);
          bytes = model.SerializePartialAsString();
        },
        [](const std::string& folder, const Files&) {
          Context context(Device::cpu);
          context.set_log(silent_log());
          const ImportedNet imported = import_onnx(context, read_onnx(folder + "/model.onnx"), {});
          NetOptions options;
          options.state.set_phase(TEST);
          Net net(context, imported.net, options);
          set_imported_weights(imported, &net);
        }});
}

}  // namespace onnx_fuzz_test
}  // namespace crema::tests
