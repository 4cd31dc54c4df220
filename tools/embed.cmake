# Turns a file into C++, so that the program needs no file at run time: IN, OUT: the source to write, NAME of the function in it that
# gives the bytes, HEADER that declares it.
file(READ ${IN} bytes HEX)
string(LENGTH "${bytes}" length)
math(EXPR length "${length} / 2")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" bytes "${bytes}")
# Compilers limit the length of literals.
string(REGEX REPLACE "(................................................................................................)" "\\1\"\n    \"" bytes "${bytes}")
file(WRITE ${OUT} "#include \"${HEADER}\"\n\nnamespace crema {\nstd::string_view ${NAME}() {\n  static const char bytes[] =\n    \"${bytes}\";\n  return {bytes, ${length}};\n}\n}  // namespace crema\n")
