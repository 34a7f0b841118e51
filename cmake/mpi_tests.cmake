# cmake/mpi_tests.cmake: the environment of tests that run under mpirun.

# Ranks outnumber cores on small machines, and tests run as root in containers; both need Open MPI's leave.
set(tandem_mpi_test_environment OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1)

# Open MPI leaks, which scripts/lsan.supp suppresses by the names of its libraries. LeakSanitizer looks for them when the process
# ends; by then Open MPI has closed its modules, so they are kept loaded. Their code has no frame pointers, hence the slow unwinder.
if(TANDEM_TESTS AND TANDEM_SANITIZE MATCHES "address")
  add_library(keep_modules MODULE "${CMAKE_CURRENT_LIST_DIR}/keep_modules.c")
  list(APPEND tandem_mpi_test_environment LD_PRELOAD=$<TARGET_FILE:keep_modules>
    ASAN_OPTIONS=verify_asan_link_order=0:fast_unwind_on_malloc=0)
endif()
