# shardscape_library(name SOURCES ... [USES lower-layer targets ...] [LIBRARIES third-party ...])
#
# One library per folder. Includes are written from the source root ("engine/spec/plan.h"); tests/cli/include_direction checks that they only point to
# folders listed in USES (directly or through them), and linking enforces it: a library sees no symbol of a folder it does not use.
function(shardscape_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES;LIBRARIES;INCLUDES" ${ARGN})
  add_library(shardscape_${name} STATIC ${ARG_SOURCES})
  set_target_properties(shardscape_${name} PROPERTIES UNITY_BUILD_BATCH_SIZE 0)  # with CMAKE_UNITY_BUILD: a folder at a time
  target_include_directories(shardscape_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  foreach(include IN LISTS ARG_INCLUDES)
    target_include_directories(shardscape_${name} SYSTEM PUBLIC ${include})
  endforeach()
  list(TRANSFORM ARG_USES PREPEND shardscape_)
  target_link_libraries(shardscape_${name} PUBLIC ${ARG_USES} ${ARG_LIBRARIES})
  shardscape_warnings(shardscape_${name})
endfunction()

function(shardscape_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion -Wshadow)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Both see ghosts in g++ 12's own headers when optimising: std::string's operator+ (GCC bug 105651) and std::optional (GCC bug 80635).
    target_compile_options(${target} PRIVATE -Wno-restrict -Wno-maybe-uninitialized)
    if(CMAKE_UNITY_BUILD)  # types of one file's anonymous namespace in its own classes: no fault where many files are compiled as one
      target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
    endif()
  endif()
  if(SHARDSCAPE_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()
