// Dialect: the layers and fields that a reader of Caffe's files takes. The facts are data, in
// exchange/caffe/dialects/NAME.dialect; each file names its sources in a comment. A line of one:
//
//   Type  bottoms=1 tops=1 axes=3..4 given=block  block: field field! field(1 2) field[1] f_h+f_w
//
// means a layer of this type with at most so many bottoms and tops, bottoms of so many axes (axes=4:
// at most; second=2: exactly, of the second bottom; batch=kept: of the same first extent as the top)
// and this block present; and with these fields in `block`: field! written even if it has its
// default, which the reader does not know, field(1 2) with one of these values, field[1] given at
// most once, f_h+f_w both or neither. Several lines of one type are alternatives. `about:` says in
// words what the reader is; `extends: NAME` takes over the lines of another dialect, except those of
// the types behind `without:` and those that this file has itself.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "proto/layer.pb.h"
#include "tensor/shape.h"

namespace crema {

struct DialectField {
  std::string block, name;
  std::vector<std::string> values;  // empty: any
  int most = 0;                     // maximum count of a repeated field; 0: any
  std::string partner;              // the field without which this one is not read
  bool always = false;              // written even if it has its default
};

// One way in which a layer of a type may be written.
struct DialectLayer {
  std::vector<DialectField> fields;
  int bottoms = 0, tops = 0, axes = 0;  // at most; 0: any number
  int least_axes = 0, second_axes = 0;
  std::string given;         // a block that must be there
  bool keeps_batch = false;  // bottoms and tops have the same first extent
};

// What keeps a reader from taking a layer.
struct Misfit {
  std::string text;  // for people
  std::string
      field;  // the field of the layer that is the reason, "pooling_param.round_mode"; "": none
};

std::string text_of(const std::vector<Misfit>& misfits);

class Dialect {
 public:
  std::string name, about;
  std::map<std::string, std::vector<DialectLayer>> layers;  // by type

  bool has(const std::string& type) const { return layers.count(type) > 0; }
  // Whether some form of the type has this field.
  bool has_field(const std::string& type, const std::string& block, const std::string& field) const;
  // The fields of the type that are written even if they have their default.
  std::vector<DialectField> always(const std::string& type) const;
  // Empty: the reader takes the layer.
  std::vector<Misfit> misfits(const LayerParameter& layer, const std::vector<Shape>& bottoms,
                              const std::vector<Shape>& tops) const;
};

// Error, which lists the names, for an unknown one. `setting`: the flag that gave it.
const Dialect& find_dialect(std::string_view name, std::string_view setting);
const std::vector<std::string>& dialect_names();

// The files, by name. Generated.
const std::map<std::string, std::string>& dialect_texts();

}  // namespace crema
