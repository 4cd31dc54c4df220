# libcrema_infer: crema_infer.h for programs that run nets. The same objects as libcrema's, without those of training, and of them only
# the functions that are needed: LMDB, LevelDB, pugixml and MPI are not linked, so a function that needed them would be an error here.
file(GLOB infer_sources CONFIGURE_DEPENDS src/infer/*.cpp)
set(types)
foreach(file ${training_layers})
  file(READ ${file} text)
  string(REGEX MATCHALL "REGISTER_LAYER\\([A-Za-z0-9_]+" found "${text}")
  foreach(registered ${found})
    string(REGEX REPLACE ".*\\(" "" type "${registered}")
    string(APPEND types "      \"${type}\",\n")
  endforeach()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
endforeach()
set(absent_types ${PROJECT_BINARY_DIR}/generated/absent_types.cpp)
file(CONFIGURE OUTPUT ${absent_types} @ONLY CONTENT
     "#include <set>\n\n#include \"layers/absent.h\"\n\nnamespace crema {\n\nbool is_absent_type(const std::string& type) {\n\
  static const std::set<std::string> all = {\n${types}  };\n  return all.count(type) > 0;\n}\n\n}  // namespace crema\n")
add_library(crema_infer_objects OBJECT ${infer_sources} ${absent_types})
target_link_libraries(crema_infer_objects PRIVATE crema_flags)
target_compile_definitions(crema_infer_objects PRIVATE CREMA_VERSION="${PROJECT_VERSION}")
target_compile_options(crema_infer_objects PRIVATE ${hardened} $<$<CONFIG:Release>:-O1>)
set_target_properties(crema_infer_objects PROPERTIES UNITY_BUILD OFF)
add_dependencies(crema_infer_objects crema_schema)

# The schema a second time, under the package crema_infer: protobuf has one table of files, messages and options per process, and ends a
# process that adds an entry twice. So a process can load this library and libcrema. The C++ classes keep their names, because the other
# objects are compiled with them. The schemas of exchange and events are left out.
set(infer_protos ${protos})
list(FILTER infer_protos EXCLUDE REGEX "/(onnx|tensorboard)\\.proto$")
set(private ${generated}/infer)
set(private_sources)
set(private_headers)
foreach(proto ${infer_protos})
  string(REGEX REPLACE "^proto/(.*)\\.proto$" "${private}/crema_infer/\\1.pb" stem ${proto})
  list(APPEND private_sources ${stem}.cc)
  list(APPEND private_headers ${stem}.h)
endforeach()
list(TRANSFORM infer_protos REPLACE "^proto/" "${private}/crema_infer/" OUTPUT_VARIABLE private_protos)
add_custom_command(
  OUTPUT ${private_sources} ${private_headers}
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${private}
  COMMAND ${CMAKE_COMMAND} -E copy_directory proto ${private}/crema_infer
  COMMAND sed -i -E -e "s/^package crema;/package crema_infer;/" -e "s|^(import .*)\"proto/|\\1\"crema_infer/|"
          -e "s/(no_effect = )505/\\1515/" ${private_protos}
  COMMAND ${Protobuf_PROTOC_EXECUTABLE} -I${private} --cpp_out=${private} ${private_protos}
  COMMAND sed -i -E "s/\\bcrema_infer::/crema::/g; s/^namespace crema_infer /namespace crema /" ${private_sources} ${private_headers}
  DEPENDS ${infer_protos}
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
  COMMENT "protoc: the schema of libcrema_infer"
  VERBATIM)
add_library(crema_infer_proto OBJECT ${private_sources})
set_target_properties(crema_infer_proto PROPERTIES UNITY_BUILD OFF)
target_compile_options(crema_infer_proto PRIVATE $<$<CONFIG:Release>:-Os> ${hardened} ${in_sections})
target_include_directories(crema_infer_proto SYSTEM PRIVATE ${private} ${Protobuf_INCLUDE_DIRS})

set(infer_objects $<TARGET_OBJECTS:crema_infer_proto>)
foreach(part base device tensor kernels data layers net)
  list(APPEND infer_objects $<TARGET_OBJECTS:crema_${part}>)
endforeach()
list(APPEND infer_objects "$<FILTER:$<TARGET_OBJECTS:crema_crema>,EXCLUDE,/(trainer|deployed_net)[.]cpp>")
add_library(crema_infer SHARED $<TARGET_OBJECTS:crema_infer_objects> ${infer_objects})
target_link_libraries(crema_infer PRIVATE ${Protobuf_LIBRARIES} ZLIB::ZLIB Threads::Threads ${CMAKE_DL_LIBS})
if(CREMA_OPENMP)
  target_link_libraries(crema_infer PRIVATE OpenMP::OpenMP_CXX)
endif()
if(CREMA_HAS_ONEDNN)
  target_link_libraries(crema_infer PRIVATE ${ONEDNN_LIBRARY})
endif()
if(CREMA_WITH_CUDA)
  target_link_libraries(crema_infer PRIVATE CUDA::cudart)
endif()
set(exported ${CMAKE_CURRENT_SOURCE_DIR}/src/infer/exported.map)
set_property(TARGET crema_infer PROPERTY LINK_DEPENDS ${exported})
target_link_options(crema_infer PRIVATE LINKER:--gc-sections LINKER:--as-needed LINKER:--version-script=${exported}
                                        LINKER:--disable-new-dtags)
if(NOT CREMA_SANITIZE)
  target_link_options(crema_infer PRIVATE LINKER:-z,defs)
endif()
set_target_properties(crema_infer PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN"
  INSTALL_RPATH_USE_LINK_PATH ON LINKER_LANGUAGE CXX)
add_library(crema_infer_api INTERFACE)
add_library(Crema::infer ALIAS crema_infer_api)
target_link_libraries(crema_infer_api INTERFACE crema_infer)
configure_file(src/crema_infer.h ${PROJECT_BINARY_DIR}/include/crema_infer.h COPYONLY)
target_include_directories(crema_infer_api INTERFACE ${PROJECT_BINARY_DIR}/include)
set(infer_modules)  # for pictures and HDF5
foreach(module crema_jpeg crema_images crema_hdf5)
  if(TARGET ${module})
    list(APPEND infer_modules ${module})
  endif()
endforeach()
add_dependencies(crema_infer ${infer_modules})
