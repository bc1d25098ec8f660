#include "op/cost.h"

#include <math.h>

#include "base/cpu.h"
#include "kernel/kernel_table.h"

/* A nominal 3 GHz core with two multiply-add units. */
static const double cycles_per_us = 3000;

double pph_cost_flops(pph_cpu cpu, double flops) {
  const pph_kernel *gemm = pph_kernel_find("f32_gemm", cpu);
  return flops * pph_cpu_passes(cpu) / (4.0 * gemm->lanes) / cycles_per_us;
}

double pph_cost_gemm(pph_cpu cpu, double calls, double rows, double columns,
                     double depth) {
  const pph_kernel *gemm = pph_kernel_find("f32_gemm", cpu);
  double vectors = (double)(((size_t)columns + gemm->lanes - 1) / gemm->lanes);
  /* Two multiply-adds or two loads a cycle (without vectors there is no fused
     one, and few registers); sums that are too few wait for one another (4
     cycles, 2 units). Storing and starting a tile costs about a cycle per
     vector and 20 more. */
  vectors *= pph_cpu_passes(cpu);
  double work = rows * vectors * (gemm->lanes > 1 ? 0.5 : 1.1);
  double loads = (rows + vectors) / 2;
  double step = work > loads ? work : loads;
  step = step > 4 ? step : 4;
  return calls * (step * depth + rows * vectors + 20) / cycles_per_us;
}

double pph_cost_overlap(double a, double b) {
  return cbrt(a * a * a + b * b * b);
}

double pph_cost_memory(double bytes, double working_set) {
  /* Bytes per cycle: level 2, last level, memory. */
  double rate = working_set <= (double)pph_cpu_cache2()       ? 32
                : working_set <= (double)pph_cpu_cache_last() ? 10
                                                              : 4;
  return bytes / rate / cycles_per_us;
}

double pph_cost_weights(double bytes, double working_set) {
  bool beyond = working_set > PPH_COST_SHARE;
  return 0.5 * pph_cost_memory(bytes, beyond ? INFINITY : working_set);
}

double pph_cost_products(pph_cpu cpu, double calls, double rows,
                         double columns, double depth) {
  double reading = 1.2 * pph_cost_memory(4 * calls * columns * depth, 0);
  return pph_cost_overlap(pph_cost_gemm(cpu, calls, rows, columns, depth),
                          reading);
}
