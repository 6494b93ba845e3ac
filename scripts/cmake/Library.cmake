# What other C++ projects link: `find_package(Shardscape)` gives Shardscape::engine and Shardscape::study.
#
# The libraries of the folders are many and small; what is installed is two archives of the same objects.

# shardscape_closure(out target ...): the targets and all of ours that they use.
function(shardscape_closure out)
  set(found "")
  set(next ${ARGN})
  while(next)
    list(POP_FRONT next target)
    if(NOT target MATCHES "^shardscape_" OR target IN_LIST found)
      continue()
    endif()
    list(APPEND found ${target})
    get_target_property(used ${target} INTERFACE_LINK_LIBRARIES)
    if(used)
      list(APPEND next ${used})
    endif()
  endwhile()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# shardscape_installed_library(name OF target ... [WITHOUT target ...] LIBRARIES ...)
#
# One archive of all that OF uses but for what WITHOUT uses, as Shardscape::name. LIBRARIES are targets that the
# package's configuration (ShardscapeConfig.cmake.in) finds or defines.
function(shardscape_installed_library name)
  cmake_parse_arguments(ARG "" "" "OF;WITHOUT;LIBRARIES" ${ARGN})
  shardscape_closure(all ${ARG_OF})
  shardscape_closure(other ${ARG_WITHOUT})
  if(other)
    list(REMOVE_ITEM all ${other})
  endif()
  set(objects "")
  foreach(target IN LISTS all)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      list(APPEND objects $<TARGET_OBJECTS:${target}>)
    endif()
  endforeach()
  set(archive shardscape_${name}_archive)
  add_library(${archive} STATIC ${objects})
  set_target_properties(${archive} PROPERTIES EXPORT_NAME ${name} OUTPUT_NAME shardscape_${name} LINKER_LANGUAGE CXX)
  target_compile_features(${archive} INTERFACE cxx_std_20)
  target_link_libraries(${archive} INTERFACE "$<INSTALL_INTERFACE:${ARG_LIBRARIES}>")  # known to who links the package, not here
  install(TARGETS ${archive} EXPORT ShardscapeTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
          INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/shardscape)
endfunction()

include(CMakePackageConfigHelpers)
shardscape_installed_library(engine OF shardscape_simulate LIBRARIES fmt::fmt nlohmann_json::nlohmann_json Shardscape::headers)
shardscape_installed_library(study OF shardscape_study WITHOUT shardscape_simulate LIBRARIES Shardscape::engine Shardscape::files)

# Headers keep their places: "engine/simulate.h" is written so in the tree and by who links the package.
install(DIRECTORY engine sweep results_schema DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/shardscape FILES_MATCHING PATTERN "*.h"
        PATTERN "sweep/cli" EXCLUDE PATTERN "report" EXCLUDE PATTERN "python" EXCLUDE PATTERN "studies" EXCLUDE
        PATTERN "published" EXCLUDE PATTERN "wasm" EXCLUDE)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Shardscape)
install(EXPORT ShardscapeTargets NAMESPACE Shardscape:: DESTINATION ${package})
set(SHARDSCAPE_DATA ${CMAKE_INSTALL_DATADIR}/shardscape)
configure_package_config_file(scripts/cmake/ShardscapeConfig.cmake.in ${PROJECT_BINARY_DIR}/ShardscapeConfig.cmake
                              INSTALL_DESTINATION ${package} PATH_VARS SHARDSCAPE_DATA)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ShardscapeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ShardscapeConfig.cmake ${PROJECT_BINARY_DIR}/ShardscapeConfigVersion.cmake DESTINATION ${package})
