# Collects texts, one file each, into a C++ table: FOLDER of the files and their folders, ENDING of their names, HEADER that declares
# FUNCTION, the table by the files' names, OUT the file to write.
file(GLOB_RECURSE sources ${FOLDER}/*.${ENDING})
set(table "#include \"${HEADER}\"\n\nnamespace crema {\nconst std::map<std::string, std::string>& ${FUNCTION}() {\n  static const std::map<std::string, std::string> texts = {\n")
foreach(source ${sources})
  file(READ ${source} text)
  get_filename_component(name ${source} NAME_WE)
  string(APPEND table "      {\"${name}\", R\"crema_text(${text})crema_text\"},\n")
endforeach()
string(APPEND table "  };\n  return texts;\n}\n}  // namespace crema\n")
file(WRITE ${OUT} "${table}")
