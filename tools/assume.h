// -assume and -batch: the same net with other data. -assume puts Input layers in the place of data
// layers, so that any net can be built, shown and run without its database; -batch replaces the
// first dimension of every source. A Python layer in the middle of a net is replaced, too, when
// -assume names its tops.
#pragma once

#include <string>

#include "base/log.h"
#include "proto/net.pb.h"

namespace crema {

// Rewrites the sources of an upgraded net: layers without bottoms. `assume` is the text of the flag
// ("" leaves the layers):
//   data=64x3x224x224,label=64  these shapes, by top;
//   default                     shapes from the layers' own fields: batch_size; crop_size, else
//                               new_height and new_width, else a stated height and width, else
//                               227 x 227; stated channels, else 1 where a field says gray,
//                               else 3; one label a sample, or 10 boxes for DetectNet;
//   default,im_info=1x3         both: what is named counts.
// batch 0 leaves the first dimensions. Error names a top whose shape cannot be known.
void replace_sources(Log& log, NetParameter& net, const std::string& assume, int batch);

}  // namespace crema
