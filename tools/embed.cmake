# Turns the compiled schema (with its comments) into C++, so that `crema layers TYPE` needs no file at run time:
# IN: protoc's output, OUT: the source to write.
file(READ ${IN} bytes HEX)
string(LENGTH "${bytes}" length)
math(EXPR length "${length} / 2")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" bytes "${bytes}")
# Compilers limit the length of literals.
string(REGEX REPLACE "(................................................................................................)" "\\1\"\n    \"" bytes "${bytes}")
file(WRITE ${OUT} "#include \"tools/schema.h\"\n\nnamespace crema {\nstd::string_view schema_bytes() {\n  static const char bytes[] =\n    \"${bytes}\";\n  return {bytes, ${length}};\n}\n}  // namespace crema\n")
