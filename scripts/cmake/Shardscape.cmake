# shardscape_sources(out pattern ... [WITHOUT file ...]): the files that the patterns find from the folder of the CMakeLists.txt on, again at each
# build, so that a new file is in no list. What has no `*` is a file that is made.
function(shardscape_sources out)
  cmake_parse_arguments(ARG "" "" "WITHOUT" ${ARGN})
  set(made ${ARG_UNPARSED_ARGUMENTS})
  list(FILTER made EXCLUDE REGEX "[*]")
  list(FILTER ARG_UNPARSED_ARGUMENTS INCLUDE REGEX "[*]")
  set(found "")
  if(ARG_UNPARSED_ARGUMENTS)
    file(GLOB found RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS ${ARG_UNPARSED_ARGUMENTS})
    list(REMOVE_ITEM found "" ${ARG_WITHOUT})
  endif()
  set(${out} ${found} ${made} PARENT_SCOPE)
endfunction()

# shardscape_library(name [SOURCES ...] [WITHOUT ...] [USES lower-layer targets ...] [LIBRARIES third-party ...] [COLD|HOT])
#
# SOURCES and WITHOUT as in shardscape_sources(); left out: the folder's files.
#
# COLD: nothing in it runs often enough to be worth the time that the compiler takes to optimise it. HOT: so much time is spent in it that it has
# SHARDSCAPE_HOT_OPTIONS, as -O2 in an instrumented build that is not optimised.
#
# One library per folder. Includes are written from the source root ("engine/spec/plan.h"); tests/unit/architecture checks that they only point to
# folders listed in USES (directly or through them), and linking enforces it: a library sees no symbol of a folder it does not use.
function(shardscape_library name)
  cmake_parse_arguments(ARG "COLD;HOT" "" "SOURCES;WITHOUT;USES;LIBRARIES;INCLUDES" ${ARGN})
  if(NOT ARG_SOURCES)
    set(ARG_SOURCES *.cc)
  endif()
  shardscape_sources(sources ${ARG_SOURCES} WITHOUT ${ARG_WITHOUT})
  add_library(shardscape_${name} STATIC ${sources})
  set_target_properties(shardscape_${name} PROPERTIES UNITY_BUILD_BATCH_SIZE 0)  # with CMAKE_UNITY_BUILD: a folder at a time
  target_include_directories(shardscape_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  foreach(include IN LISTS ARG_INCLUDES)
    target_include_directories(shardscape_${name} SYSTEM PUBLIC ${include})
  endforeach()
  list(TRANSFORM ARG_USES PREPEND shardscape_)
  target_link_libraries(shardscape_${name} PUBLIC ${ARG_USES} ${ARG_LIBRARIES} fmt::fmt)  # messages and tables, in every folder
  shardscape_warnings(shardscape_${name})
  if(ARG_HOT AND SHARDSCAPE_HOT_OPTIONS)
    target_compile_options(shardscape_${name} PRIVATE ${SHARDSCAPE_HOT_OPTIONS})
    shardscape_precompiled(shardscape_${name} hot)  # headers of other options do not fit
  elseif(ARG_COLD)
    shardscape_cold(shardscape_${name})
  else()
    shardscape_precompiled(shardscape_${name} product)
  endif()
endfunction()

# shardscape_hardly_optimised(target): -O1 in a Release build, two thirds of the time to compile.
function(shardscape_hardly_optimised target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# shardscape_not_optimised(target): -O0 in a Release build, for tests whose own code hardly runs: two thirds of the time of -O1.
function(shardscape_not_optimised target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O0>)
endfunction()

# shardscape_cold(target): a part of the product that is hardly optimised, with headers that were precompiled so: g++ takes those of -O3 with -O1,
# and then optimises as for -O3.
function(shardscape_cold target)
  shardscape_hardly_optimised(${target})
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    shardscape_precompiled(${target} cold)
  else()
    shardscape_precompiled(${target} product)
  endif()
endfunction()

# shardscape_module(name SOURCES ... LIBRARIES third-party ...)
#
# A part of the program that is opened when it's called for (sweep/modules/module.h), with libraries that nothing else needs.
function(shardscape_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_library(shardscape_${name} MODULE ${ARG_SOURCES})
  set_target_properties(shardscape_${name} PROPERTIES PREFIX "" SUFFIX ".so" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
                        CXX_VISIBILITY_PRESET hidden)
  target_include_directories(shardscape_${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(shardscape_${name} PRIVATE ${ARG_LIBRARIES})
  shardscape_warnings(shardscape_${name})
  install(TARGETS shardscape_${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/shardscape)
endfunction()

# shardscape_prefer_archives(variable ...): in each list of libraries, lib*.so becomes the lib*.a beside it, where there is one. Loading shared
# libraries, and what those load in turn, is most of the time of a short command: HDF5 alone brings thirty (curl, Kerberos, LDAP ...), of which
# its archive needs three. A target with the property SHARDSCAPE_SHARED, which is loaded into another program, has the shared libraries: the code
# of some archives fits into a program only.
function(shardscape_prefer_archives)
  foreach(variable IN LISTS ARGN)
    set(chosen "")
    foreach(library IN LISTS ${variable})
      string(REGEX REPLACE "\\.so[.0-9]*$" ".a" archive "${library}")
      if(IS_ABSOLUTE "${library}" AND EXISTS "${archive}" AND NOT library MATCHES "/libm\\.")  # the C library's stays shared
        list(APPEND chosen "$<IF:$<BOOL:$<TARGET_PROPERTY:SHARDSCAPE_SHARED>>,${library},${archive}>")
      else()
        list(APPEND chosen "${library}")
      endif()
    endforeach()
    set(${variable} "${chosen}" PARENT_SCOPE)
  endforeach()
endfunction()

# shardscape_precompiled_headers(): with SHARDSCAPE_PRECOMPILED, what many files include and nobody here changes is compiled once for the product,
# once for its parts that are hardly optimised, once for those that are HOT, and once each for the tests that compute and for those that run the
# program. A build without it shows whether a file includes all that it uses.
function(shardscape_precompiled_headers)
  if(NOT SHARDSCAPE_PRECOMPILED)
    return()
  endif()
  set(product <algorithm> <array> <charconv> <chrono> <cmath> <cstdint> <deque> <filesystem> <fstream> <functional> <iomanip> <iostream> <limits> <map>
              <memory> <mutex> <numeric> <optional> <queue> <set> <span> <sstream> <string> <string_view> <thread> <tuple> <unordered_map> <utility>
              <variant> <vector> <Random123/philox.h> <fmt/format.h> <nlohmann/json.hpp> <tl/expected.hpp>)
  set(tests ${product} <random> <regex> <gtest/gtest.h>)
  find_package(GTest REQUIRED)
  set(cold ${product})
  set(drivers ${tests})
  set(kinds product cold tests drivers)
  if(SHARDSCAPE_HOT_OPTIONS)
    set(hot ${product})
    list(APPEND kinds hot)
  endif()
  foreach(kind IN LISTS kinds)
    set(source ${PROJECT_BINARY_DIR}/precompiled_${kind}.cc)
    if(NOT EXISTS ${source})
      file(WRITE ${source} "// Compiled for the headers before it.\n")
    endif()
    add_library(shardscape_precompiled_${kind} OBJECT ${source})
    target_include_directories(shardscape_precompiled_${kind} SYSTEM PRIVATE ${RANDOM123_INCLUDE} ${EXPECTED_INCLUDE})
    target_precompile_headers(shardscape_precompiled_${kind} PRIVATE ${${kind}})
    target_link_libraries(shardscape_precompiled_${kind} PRIVATE fmt::fmt nlohmann_json::nlohmann_json)
    shardscape_precompiled_options(shardscape_precompiled_${kind})
  endforeach()
  target_link_libraries(shardscape_precompiled_tests PRIVATE GTest::gtest)
  target_link_libraries(shardscape_precompiled_drivers PRIVATE GTest::gtest)
  shardscape_hardly_optimised(shardscape_precompiled_cold)
  shardscape_hardly_optimised(shardscape_precompiled_tests)  # as the tests themselves
  shardscape_not_optimised(shardscape_precompiled_drivers)
  if(SHARDSCAPE_HOT_OPTIONS)
    target_compile_options(shardscape_precompiled_hot PRIVATE ${SHARDSCAPE_HOT_OPTIONS})
  endif()
endfunction()

# shardscape_precompiled(target product|cold|hot|tests|drivers): the target uses these headers.
function(shardscape_precompiled target kind)
  if(SHARDSCAPE_PRECOMPILED)
    target_precompile_headers(${target} REUSE_FROM shardscape_precompiled_${kind})
    shardscape_precompiled_options(${target})
  endif()
endfunction()

function(shardscape_precompiled_options target)  # ccache gives headers back without the times that clang would compare
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>)
endfunction()

function(shardscape_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion -Wshadow)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # They see ghosts in g++ 12's own headers when optimising: std::string's operator+ (GCC bug 105651), std::optional (GCC bug 80635).
    target_compile_options(${target} PRIVATE -Wno-restrict -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-array-bounds)
    if(CMAKE_UNITY_BUILD)  # types of one file's anonymous namespace in its own classes: no fault where many files are compiled as one
      target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
    endif()
  endif()
  if(SHARDSCAPE_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

# shardscape_find_python(): SHARDSCAPE_PYTHON is a Python that has what the package and its tests need (Debian's, whatever else comes first on PATH).
function(shardscape_python_has_pandas result candidate)
  execute_process(COMMAND ${candidate} -c "import h5py, pandas, xarray, h5netcdf" RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(failed)
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()
function(shardscape_find_python)
  find_program(SHARDSCAPE_PYTHON NAMES python3 PATHS /usr/bin VALIDATOR shardscape_python_has_pandas
               DOC "A Python 3 with h5py, pandas, xarray and h5netcdf")
endfunction()
