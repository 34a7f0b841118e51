// benchmarks/trace/lttng_tracepoints.h: the two tracepoints of peer_trace_lttng. LTTng's headers include this file again and again.
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER bench_trace

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "benchmarks/trace/lttng_tracepoints.h"

#if !defined(BENCHMARKS_TRACE_LTTNG_TRACEPOINTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define BENCHMARKS_TRACE_LTTNG_TRACEPOINTS_H

#include <cstdint>

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(bench_trace, recorded, LTTNG_UST_TP_ARGS(std::uint32_t, a, std::uint32_t, b),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(std::uint32_t, a, a)
                                                   lttng_ust_field_integer(std::uint32_t, b, b)))
LTTNG_UST_TRACEPOINT_EVENT(bench_trace, ignored, LTTNG_UST_TP_ARGS(std::uint32_t, a, std::uint32_t, b),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(std::uint32_t, a, a)
                                                   lttng_ust_field_integer(std::uint32_t, b, b)))

#endif

#include <lttng/tracepoint-event.h>
