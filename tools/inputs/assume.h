// SourceReplacer: -assume and -batch, the same net with other data. -assume replaces data layers by
// Input layers, so that any net can be built, shown and run without its database; -batch replaces
// the first dimension of every source. A Python layer in the middle of a net is also replaced when
// -assume names its tops.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "net/sources/assumed_shapes.h"
#include "proto/net.pb.h"

namespace crema {

class SourceReplacer {
 public:
  // `assume` is the text of the flag ("" keeps the layers):
  //   data=64x3x224x224,label=64  these shapes, by top;
  //   default                     the shapes in input_param, else from the layers' own
  //                               fields: batch_size; crop_size, else new_height and new_width,
  //                               else a stated height and width, else 227 x 227; stated channels,
  //                               else 1 where a field says gray, else 3; one label per sample
  //                               where a loss reads labels, 10 boxes for DetectNet;
  //   default,im_info=1x3         both: named shapes take precedence.
  // batch 0 keeps the first dimensions.
  SourceReplacer(Log& log, const std::string& assume, int batch);

  // Rewrites the sources (layers without bottoms) of an upgraded net without the layers of other
  // phases. Also clears fields that name files about the images, which are not there. `where` is
  // file:line:column of a layer.
  void replace(NetParameter& net, const std::function<std::string(int layer)>& where);

  // Call once all nets are rewritten. Error, for all at once, if the shapes of tops are unknown,
  // and for a named top that no net has.
  void finish() const;

 private:
  struct Missing {
    std::string where, layer, type, top;
    std::string likely;  // a shape, or "SHAPE"
    bool has_batch = false;
  };
  // The Input layer in place of a source; none if a shape is missing.
  std::optional<LayerParameter> input_for(const NetParameter& net, const LayerParameter& layer,
                                          const std::string& where);
  void note_missing(const Missing& missing);
  [[noreturn]] void fail_for_missing() const;

  Log& log_;
  const std::string assume_;
  const int batch_;
  const AssumedShapes shapes_;
  std::vector<std::string> tops_;  // of all sources
  std::vector<Missing> missing_;
};

}  // namespace crema
