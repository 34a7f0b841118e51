// tandem/model/contention/platforms.cpp: tables E.1 to E.9 of the thesis.
//
// Source: P. Swartvagher, On the Interactions between HPC Task-based Runtime Systems and Communication Libraries, 2022:
// appendix C for the machines, appendix E for their parameters. A row has the order of ThresholdParameters: N_par_max,
// T_par_max, N_seq_max, T_seq_max, T_par_max2, alpha, delta_l, delta_r, B_comp_seq, B_comm_seq; bandwidths are in MB/s.
// Appendix C counts the cores of a node, except those of pyxis, which it counts per socket, since table E.9 has 31
// cores on one.
#include "tandem/model/contention/platforms.hpp"

#include <algorithm>

namespace tandem::model::contention {
namespace {

constexpr Platform all_platforms[] = {
    {"billy", "two AMD EPYC 7502, InfiniBand ConnectX-6 HDR", 32, 2,
     {.local = {32, 95555.5, 32, 84420.4, 95555.5, 0.842, 0.0, 0.0, 2808.8, 12793.0},
      .remote = {32, 75276.9, 32, 76466.4, 75276.9, 0.593, 0.0, 0.0, 2746.5, 18898.9},
      .nodes_per_socket = 1}},
    {"bora", "two Intel Xeon Gold 6240, Omni-Path 100", 18, 2,
     {.local = {18, 83849.6, 18, 80107.7, 83849.6, 0.951, 0.0, 0.0, 4489.2, 9948.4},
      .remote = {8, 32315.3, 8, 32733.3, 32315.3, 0.936, 0.0, 1.6, 4487.6, 8784.7},
      .nodes_per_socket = 1}},
    {"dahu", "two Intel Xeon Gold 6130, Omni-Path 100", 16, 2,
     {.local = {11, 72147.6, 14, 70072.9, 71509.2, 0.959, 212.8, 656.8, 6656.5, 11341.2},
      .remote = {5, 32102.5, 5, 32677.4, 32102.5, 0.949, 0.0, -38.4, 7171.3, 10607.0},
      .nodes_per_socket = 1}},
    {"diablo", "two AMD EPYC 7452, InfiniBand ConnectX-6 HDR", 32, 2,
     {.local = {32, 81846.8, 32, 70092.1, 81846.8, 0.967, 0.0, 0.0, 2221.1, 12139.7},
      .remote = {32, 87081.5, 32, 67694.6, 87081.5, 0.908, 0.0, 0.0, 2210.2, 22394.3},
      .nodes_per_socket = 1}},
    {"grvingt", "two Intel Xeon Gold 6130, Omni-Path 100", 16, 2,
     {.local = {14, 75015.2, 15, 73818.4, 74398.4, 0.953, 616.8, 649.2, 6698.7, 9628.8},
      .remote = {5, 31928.2, 5, 32576.8, 31928.2, 0.971, 0.0, -10.6, 7178.5, 9345.7},
      .nodes_per_socket = 1}},
    {"henri", "two Intel Xeon Gold 6140, InfiniBand ConnectX-4 EDR", 18, 2,
     {.local = {17, 73423.0, 18, 72589.9, 73387.7, 0.915, 35.3, 0.0, 4455.4, 11481.1},
      .remote = {5, 31629.7, 7, 29130.7, 31278.1, 0.761, 175.8, 119.8, 4455.2, 11459.6},
      .nodes_per_socket = 1}},
    {"henrisubnuma", "henri with two NUMA nodes per socket", 18, 2,
     {.local = {8, 42487.7, 11, 43655.6, 39718.9, 0.853, 922.9, 191.7, 4456.4, 11450.4},
      .remote = {11, 16936.1, 4, 14726.2, 15217.8, 0.270, 859.1, 103.3, 4455.4, 11410.0},
      .nodes_per_socket = 2}},
    {"occigen", "two Intel Xeon E5-2690 v4, InfiniBand Connect-IB FDR", 14, 2,
     {.local = {14, 53948.2, 14, 47817.2, 53948.2, 1.000, 0.0, 0.0, 3417.6, 6220.0},
      .remote = {7, 24706.4, 7, 21137.3, 24706.4, 1.000, 0.0, 39.9, 3417.8, 6219.5},
      .nodes_per_socket = 1}},
    {"pyxis", "two Cavium ThunderX2 99xx (Arm), InfiniBand ConnectX-6 EDR", 32, 2,
     {.local = {24, 64626.9, 26, 62462.7, 64566.2, 0.990, 30.3, 56.9, 3211.5, 4958.6},
      .remote = {25, 36737.2, 31, 32649.8, 36696.7, 0.945, 6.8, -8.4, 3030.8, 4390.1},
      .nodes_per_socket = 1}},};

}  // namespace

std::span<const Platform> platforms() { return all_platforms; }

const Platform* find_platform(std::string_view name) {
  const auto found = std::ranges::find(all_platforms, name, &Platform::name);
  return found == std::end(all_platforms) ? nullptr : found;
}

}  // namespace tandem::model::contention
