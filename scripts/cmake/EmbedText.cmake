# Writes OUTPUT, a C++ source whose functions give the texts of files, so that a program needs no files beside it.
#
#   cmake -DOUTPUT=x.cc -DHEADER=path/in/includes.h -DNAMESPACE=a::b -DTEXTS="name=file+file name=file" -P EmbedText.cmake
#
# Every `name` becomes `std::string_view name()`; the files behind it are joined in their order.
separate_arguments(TEXTS UNIX_COMMAND "${TEXTS}")
set(mark "embedded")
set(source "// Written by EmbedText.cmake.\n#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n")
foreach(entry IN LISTS TEXTS)
  string(REGEX MATCH "^([a-z_]+)=(.+)$" matched "${entry}")
  set(name ${CMAKE_MATCH_1})
  string(REPLACE "+" ";" files "${CMAKE_MATCH_2}")
  set(text "")
  foreach(file IN LISTS files)
    file(READ "${file}" content)
    string(APPEND text "${content}")
  endforeach()
  string(FIND "${text}" ")${mark}\"" clash)
  if(NOT clash EQUAL -1)
    message(FATAL_ERROR "${name} holds the mark that ends it")
  endif()
  string(APPEND source "\nstd::string_view ${name}() {\n  static constexpr std::string_view kText = R\"${mark}(${text})${mark}\";\n  return kText;\n}\n")
endforeach()
string(APPEND source "\n}  // namespace ${NAMESPACE}\n")
file(WRITE "${OUTPUT}" "${source}")
