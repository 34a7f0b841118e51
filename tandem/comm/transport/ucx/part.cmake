# tandem/comm/transport/ucx/part.cmake: packets over UCX, when its development files are found.
include("${CMAKE_CURRENT_LIST_DIR}/../module.cmake")
if(TANDEM_UCX)
  pkg_check_modules(ucx QUIET IMPORTED_TARGET ucx)
endif()
if(ucx_FOUND)
  tandem_comm_module(ucx
    SOURCES
      transport/ucx/hello.cpp
      transport/ucx/link_receive.cpp
      transport/ucx/link_send.cpp
      transport/ucx/ucx_transport.cpp
      transport/ucx/worker.cpp
    LIBRARIES PkgConfig::ucx)
  tandem_test(comm_ucx_test
    SOURCES transport/ucx/reorder_test.cpp transport/ucx/ucx_transport_test.cpp
    LIBRARIES tandem_comm_ucx_objects)
elseif(TANDEM_UCX)
  message(STATUS "comm: no UCX (libucx-dev): the transport ucx is left out")
endif()
