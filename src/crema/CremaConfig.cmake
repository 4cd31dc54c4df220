# find_package(Crema) in an installed folder, wherever it is: the target Crema::crema. Its libraries are next to it, so there is
# nothing else to find.
get_filename_component(crema_folder "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET Crema::crema)
  add_library(Crema::crema SHARED IMPORTED)
  set_target_properties(Crema::crema PROPERTIES
    IMPORTED_LOCATION "${crema_folder}/lib/libcrema.so"
    INTERFACE_INCLUDE_DIRECTORIES "${crema_folder}/include"
    INTERFACE_COMPILE_FEATURES cxx_std_20
    # Where the linker finds the libraries that libcrema needs, which a program need not name.
    INTERFACE_LINK_OPTIONS "LINKER:-rpath-link,${crema_folder}/lib")
endif()
unset(crema_folder)
