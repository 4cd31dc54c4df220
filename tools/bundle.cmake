# Runs at the end of `cmake --install`: copies the libraries that the program needs next to libcrema, so that the folder is
# relocatable and runs on another machine. Left out: glibc, the GPU driver and MPI, which are specific to a machine (MPI's library
# must be that of the mpirun which starts the program), and the CUDA toolkit's libraries unless CUDA is ON.
#
# PROGRAM and MODULES (may be empty), LIBRARY: the files of the build tree, which contain the paths of their libraries.
# GPU_LIBRARIES: those of the toolkit that are loaded with the first GPU. TO: the destination folder.
set(machine "^(ld-linux.*|ld64|libc|libm|libmvec|libdl|librt|libpthread|libresolv|libutil|libanl|libnss_.*)\\.so"
            "^(libcuda|libnvidia-.*)\\.so" "^(libmpi|libmpich|libopen-pal|libopen-rte)\\.so" "^libcrema")
set(cuda "^lib(cudart|cublas|cublasLt|cudnn.*|nvrtc.*|nvJitLink|nccl)\\.so")
set(excluded ${machine})
if(NOT CUDA)
  list(APPEND excluded ${cuda})
  set(GPU_LIBRARIES)
endif()
# Under the names by which programs load them.
set(loaded)
foreach(path ${GPU_LIBRARIES})
  get_filename_component(folder ${path} DIRECTORY)
  get_filename_component(name ${path} NAME)
  file(GLOB versions ${folder}/${name}.[0-9] ${folder}/${name}.[0-9][0-9])
  list(APPEND loaded ${versions})
endforeach()

set(program)
if(PROGRAM)
  set(program EXECUTABLES ${PROGRAM})
endif()
file(GET_RUNTIME_DEPENDENCIES
  ${program}
  LIBRARIES ${LIBRARY} ${loaded}
  MODULES ${MODULES}
  PRE_EXCLUDE_REGEXES ${excluded}
  RESOLVED_DEPENDENCIES_VAR found
  UNRESOLVED_DEPENDENCIES_VAR missing
  CONFLICTING_DEPENDENCIES_PREFIX several)
if(missing)
  message(FATAL_ERROR "Cannot bundle what is not found on this machine: ${missing}")
endif()
foreach(name ${several_FILENAMES})
  list(GET several_${name} 0 first)
  list(APPEND found ${first})
endforeach()

list(APPEND found ${loaded})
list(REMOVE_DUPLICATES found)

# Loaded by name while the program runs.
foreach(path ${found})
  get_filename_component(folder ${path} DIRECTORY)
  if(path MATCHES "/libcudnn\\.so")
    file(GLOB parts ${folder}/libcudnn_*.so.[0-9] ${folder}/libcudnn_*.so.[0-9][0-9])
    list(APPEND found ${parts})
  elseif(path MATCHES "/libnvrtc\\.so")
    file(GLOB parts ${folder}/libnvrtc-builtins.so.*)
    list(APPEND found ${parts})
  endif()
endforeach()

foreach(path ${found})
  get_filename_component(name ${path} NAME)
  file(REAL_PATH ${path} real)
  file(COPY_FILE ${real} ${TO}/${name} ONLY_IF_DIFFERENT)
  file(CHMOD ${TO}/${name} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  # For a library with its own search path, the RPATH of its dependents would not be used.
  file(RPATH_REMOVE FILE ${TO}/${name})
endforeach()
list(LENGTH found count)
message(STATUS "Bundled ${count} libraries into ${TO}")
if(MARCH STREQUAL native)
  message(STATUS "Note: compiled for this machine's CPU; -DCREMA_MARCH=portable makes a build that travels")
endif()
