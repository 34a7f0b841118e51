# tandem/comm/transport/mpi/part.cmake: packets over MPI, when one is found; its test runs several ranks under mpirun.
include("${CMAKE_CURRENT_LIST_DIR}/../module.cmake")
if(TANDEM_MPI)
  find_package(MPI QUIET COMPONENTS C)
endif()
if(MPI_C_FOUND)
  # The MPI 2 bindings for C++ are gone from the standard, and warn.
  tandem_comm_module(mpi
    SOURCES
      transport/mpi/communicator.cpp
      transport/mpi/link.cpp
      transport/mpi/mpi_transport.cpp
    LIBRARIES MPI::MPI_C
    DEFINITIONS OMPI_SKIP_MPICXX=1 MPICH_SKIP_MPICXX=1)
elseif(TANDEM_MPI)
  message(STATUS "comm: no MPI (libopenmpi-dev): the transport mpi is left out")
endif()

if(TANDEM_TESTS AND MPI_C_FOUND AND MPIEXEC_EXECUTABLE)
  add_executable(mpi_transport_check transport/mpi/mpi_transport_check.cpp)
  set_target_properties(mpi_transport_check PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  target_link_libraries(mpi_transport_check PRIVATE tandem_comm_mpi_objects GTest::gtest)
  foreach(mode program alone funneled)
    add_test(NAME MpiTransport.${mode}
      COMMAND "${MPIEXEC_EXECUTABLE}" ${MPIEXEC_NUMPROC_FLAG} 3 $<TARGET_FILE:mpi_transport_check> --${mode})
    set_tests_properties(MpiTransport.${mode} PROPERTIES TIMEOUT 180 ENVIRONMENT "${tandem_mpi_test_environment}" PROCESSORS 2)
  endforeach()
elseif(TANDEM_TESTS)
  # Says in the list of tests that something was not tested, and why.
  add_test(NAME MpiTransport.program COMMAND "${CMAKE_COMMAND}" -E echo "skipped: no MPI development files, or no mpiexec")
  set_tests_properties(MpiTransport.program PROPERTIES SKIP_REGULAR_EXPRESSION "skipped:")
endif()
