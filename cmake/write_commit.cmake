# cmake/write_commit.cmake: writes OUTPUT from TEMPLATE with the commit of SOURCE, by GIT, unless it says so already.
set(COMMIT unknown)
if(GIT)
  execute_process(COMMAND "${GIT}" -C "${SOURCE}" describe --always --dirty --exclude=*
                  OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
  if(status EQUAL 0)
    set(COMMIT "${found}")
  endif()
endif()
configure_file("${TEMPLATE}" "${OUTPUT}" @ONLY)
