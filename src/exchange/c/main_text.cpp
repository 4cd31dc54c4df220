#include <cctype>

#include "base/strings.h"
#include "exchange/c/export.h"
#include "exchange/c/functions.h"
#include "exchange/c/operator_emit.h"

namespace crema {

namespace {

// What is subtracted: nothing, a value for each channel, or for each value of the input.
std::vector<float> means_of(const PictureInput& picture, const Cut& cut, const Shape& x) {
  const Transform& transform = picture.transform;
  if (transform.mean_image().empty()) return transform.mean_values();
  const Shape& whole = transform.mean_shape();
  std::vector<float> means;
  for (int64_t c = 0; c < x[1]; ++c)
    for (int64_t row = 0; row < x[2]; ++row)
      for (int64_t column = 0; column < x[3]; ++column)
        means.push_back(
            transform.mean_image()[(c * whole[1] + cut.top + row) * whole[2] + cut.left + column]);
  return means;
}

CFields preparation_fields(const PictureInput& picture, const Cut& cut, const Shape& x,
                           size_t means) {
  CFields fields;
  fields.add("rows", picture.height).add("columns", picture.width);
  fields.add("short_side", picture.short_side).add("top", cut.top).add("left", cut.left);
  fields.add("channels", x[1]).add("height", x[2]).add("width", x[3]);
  fields.add("picture_channels", picture.channels);
  fields.add("is_blue",
             int64_t{picture.channels == 3 && !picture.transform.augmentation().reverses_colors()});
  fields.text("mean", means > 0 ? "mean" : "NULL").add("means", static_cast<int64_t>(means));
  fields.text("scale", c_float(picture.transform.numbers().scale));
  return fields;
}

}  // namespace

std::string c_main_text(const CProgram& program, const COptions& options, const CAbout& about,
                        const PictureInput& picture) {
  const Shape& x = program.values[program.inference.inputs[0]].shape;
  const std::string& prefix = program.prefix;
  const Cut cut = picture.transform.numbers().cut(picture.height, picture.width, {});
  const std::vector<float> means = means_of(picture, cut, x);
  std::string text =
      cat("/* Classifies pictures with ", about.header, ":  ", prefix, " PICTURE.ppm",
          options.weights_file ? " WEIGHTS.bin" : "", " */\n#include \"", about.header,
          "\"\n\n#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n\n");
  text += c_function_texts().at("classify_picture");
  text += "\n";
  if (!means.empty()) text += c_array("static const float mean", means);
  text += cat("static float input[", x.count(), "];\n");
  std::string arguments = "input", results;
  for (const int id : program.inference.outputs) {
    const CValue& value = program.values[program.root_of(id)];
    const int64_t count = value.shape.count();
    text += cat("static float ", value.name, "[", count, "];\n");
    arguments += ", " + value.name;
    if (program.inference.outputs.size() > 1)
      results += cat("  printf(\"", value.name, "\\n\");\n");
    const bool named = static_cast<int64_t>(about.labels.size()) == count;
    results += cat("  print_largest(", value.name, ", ", count, ", ",
                   named ? prefix + "_labels" : std::string("NULL"), ");\n");
  }
  if (options.weights_file) {
    text += cat("static float weights[", program.weights_bytes() / 4, "];\n");
    arguments = "weights, " + arguments;
  }
  text += cat("\nint main(int argc, char **argv) {\n  struct picture picture;\n",
              "  struct preparation preparation = {\n");
  for (const std::string& field :
       split(preparation_fields(picture, cut, x, means.size()).str(), '\n'))
    text += cat("      ", field, "\n");
  const char* const files = options.weights_file ? "3" : "2";
  text += cat("  };\n  if (argc != ", files, ") {\n    fprintf(stderr, \"usage: ", prefix,
              " PICTURE", options.weights_file ? " WEIGHTS.bin" : "",
              "; a picture is a binary PGM or PPM file\\n\");\n    return 2;\n  }\n");
  if (options.weights_file) {
    text +=
        "  FILE *const file = fopen(argv[2], \"rb\");\n"
        "  if (!file || fread(weights, sizeof weights, 1, file) != 1) {\n"
        "    fprintf(stderr, \"%s: cannot be read as the weights of this net\\n\", argv[2]);\n    "
        "return 1;\n  }\n"
        "  fclose(file);\n";
  }
  text +=
      "  if (!read_picture(argv[1], &picture)) {\n"
      "    fprintf(stderr, \"%s: cannot be read as a binary PGM or PPM picture\\n\", argv[1]);\n   "
      " return 1;\n"
      "  }\n  prepare(input, &picture, &preparation);\n  free(picture.pixels);\n";
  return text + cat("  ", prefix, "_run(", arguments, ");\n", results, "  return 0;\n}\n");
}

}  // namespace crema
