# find_package(Crema) in an installed folder, wherever it is: the targets Crema::crema (crema.h) and Crema::infer (crema_infer.h), which
# are also the components crema and infer, as far as they are installed. Their libraries are next to them, so there is nothing else to find.
get_filename_component(crema_folder "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
foreach(crema_component crema infer)
  set(crema_library "${crema_folder}/lib/libcrema.so")
  if(crema_component STREQUAL infer)
    set(crema_library "${crema_folder}/lib/libcrema_infer.so")
  endif()
  if(NOT EXISTS "${crema_library}")
    if(Crema_FIND_REQUIRED_${crema_component})
      set(Crema_FOUND FALSE)
      set(Crema_NOT_FOUND_MESSAGE "${crema_folder} was installed without the component ${crema_component}")
    endif()
    continue()
  endif()
  set(Crema_${crema_component}_FOUND TRUE)
  if(NOT TARGET Crema::${crema_component})
    add_library(Crema::${crema_component} SHARED IMPORTED)
    set_target_properties(Crema::${crema_component} PROPERTIES
      IMPORTED_LOCATION "${crema_library}"
      INTERFACE_INCLUDE_DIRECTORIES "${crema_folder}/include"
      # Where the linker finds the libraries that it needs, which a program need not name.
      INTERFACE_LINK_OPTIONS "LINKER:-rpath-link,${crema_folder}/lib")
  endif()
endforeach()
if(TARGET Crema::crema)
  set_target_properties(Crema::crema PROPERTIES INTERFACE_COMPILE_FEATURES cxx_std_20)
endif()
unset(crema_component)
unset(crema_library)
unset(crema_folder)
