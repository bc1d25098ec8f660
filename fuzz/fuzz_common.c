#include "fuzz_common.h"

pph_limits fuzz_limits(void) {
  pph_limits limits;
  pph_limits_init(&limits);
  limits.file_bytes = 1 << 20;
  limits.tensor_bytes = 1 << 20;
  limits.heap_bytes = 64 << 20;
  limits.nodes = 1000;
  return limits;
}
