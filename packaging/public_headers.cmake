# packaging/public_headers.cmake: the headers that users include, and those that these include; the others are not installed.
cmake_policy(VERSION 3.25)  # install scripts have none

# tandem_public_headers(VARIABLE SOURCE_FOLDER ROOT ...): VARIABLE becomes the list of ROOTs and of what they include of Tandem's,
# directly or not, as paths relative to SOURCE_FOLDER.
function(tandem_public_headers variable source_folder)
  set(found ${ARGN})
  set(next ${ARGN})
  while(next)
    list(POP_FRONT next header)
    file(STRINGS "${source_folder}/${header}" includes REGEX "^#include \"tandem/")
    foreach(line ${includes})
      string(REGEX REPLACE "^#include \"([^\"]*)\".*$" "\\1" included "${line}")
      if(NOT included IN_LIST found)
        list(APPEND found "${included}")
        list(APPEND next "${included}")
      endif()
    endforeach()
  endwhile()
  set(${variable} "${found}" PARENT_SCOPE)
endfunction()
