# The Python package: crema/ and caffe/ (its name in old scripts), with the extension module _crema.
set(CREMA_HAS_PYTHON OFF)
# The first that has NumPy and its own headers: the one on the path, or the system's.
if(NOT Python3_EXECUTABLE)
  find_program(python_on_path python3)
  foreach(candidate ${python_on_path} /usr/bin/python3)
    execute_process(COMMAND ${candidate} -c "import numpy, sysconfig; open(sysconfig.get_path('include') + '/Python.h')"
                    RESULT_VARIABLE lacks_something OUTPUT_QUIET ERROR_QUIET)
    if(lacks_something EQUAL 0)
      set(Python3_EXECUTABLE ${candidate})
      break()
    endif()
  endforeach()
endif()
find_package(Python3 3.9 QUIET COMPONENTS Interpreter Development.Module NumPy)
if(Python3_FOUND)
  execute_process(COMMAND ${Python3_EXECUTABLE} -m pybind11 --cmakedir OUTPUT_VARIABLE pybind11_folder OUTPUT_STRIP_TRAILING_WHITESPACE
                  ERROR_QUIET)
  set(PYBIND11_FINDPYTHON ON)
  find_package(pybind11 2.10 QUIET HINTS ${pybind11_folder})
endif()
if(NOT (Python3_FOUND AND pybind11_FOUND))
  if(SKBUILD)
    message(FATAL_ERROR "The package needs Python's headers (Debian's python3-dev), NumPy and pybind11, for ${Python3_EXECUTABLE}")
  endif()
  message(STATUS "No Python module: it needs Python's headers, NumPy and pybind11")
  return()
endif()
set(CREMA_HAS_PYTHON ON)

file(GLOB_RECURSE sources CONFIGURE_DEPENDS src/python/*.cpp)
pybind11_add_module(crema_python_module NO_EXTRAS ${sources})
target_link_libraries(crema_python_module PRIVATE crema crema_flags Python3::NumPy)
set_target_properties(crema_python_module PROPERTIES OUTPUT_NAME _crema LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib
                      UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
target_compile_definitions(crema_python_module PRIVATE CREMA_VERSION="${PROJECT_VERSION}")
# People wait for the library, so it comes first.
target_compile_options(crema_python_module PRIVATE $<$<CONFIG:Release>:-O1>)

# The package appears with its module only: Python would import a folder without one as an empty namespace.
set(package ${PROJECT_BINARY_DIR}/python)
add_custom_target(crema_python ALL
                  COMMAND ${CMAKE_COMMAND} -E copy_directory ${PROJECT_SOURCE_DIR}/src/python/crema ${package}/crema
                  COMMAND ${CMAKE_COMMAND} -E copy_directory ${PROJECT_SOURCE_DIR}/src/python/caffe ${package}/caffe
                  COMMAND ${CMAKE_COMMAND} -E copy_if_different ${PROJECT_BINARY_DIR}/generated/schema.bin ${package}/crema/proto
                  COMMAND ${CMAKE_COMMAND} -E copy_if_different $<TARGET_FILE:crema_python_module> ${package}/crema)
add_dependencies(crema_python crema_schema crema_python_module)

# One search path for the build's folder, an installed one (python/ next to lib/) and a wheel (crema/lib). RPATH, not RUNPATH, as for
# the program: tools/CMakeLists.txt says why.
target_link_options(crema_python_module PRIVATE LINKER:--disable-new-dtags)
set_target_properties(crema_python_module PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/lib:$ORIGIN/../../lib"
                                                     INSTALL_RPATH_USE_LINK_PATH ON)
