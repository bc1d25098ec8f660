/* gemm, narrow, and what lies around them: pack, finish, transpose. */
#include <stdio.h>
#include <string.h>

#include "kernel/finish.h"
#include "kernel/gemm.h"
#include "kernel/narrow.h"
#include "kernel/pack.h"
#include "kernel/transpose.h"
#include "kernel_check.h"

/* For rows at a distance of `stride`. */
static pph_epilogue draw_epilogue(kernel_check *check, size_t columns,
                                  size_t stored, size_t stride) {
  pph_epilogue epilogue = kernel_epilogue(check, columns, stored);
  epilogue.residual_stride = stride;
  return epilogue;
}

/* gemm */

enum { MAX_RUNS = 150 };

/* Where values of A lie: in a panel (no runs), or in runs anywhere. */
typedef struct gemm_rows {
  uint32_t rows;
  size_t floats, run, step, starts[MAX_RUNS];
} gemm_rows;

static gemm_rows draw_rows(kernel_check *check, uint32_t rows, size_t depth) {
  size_t chunks = (depth + PPH_GEMM_CHUNK - 1) / PPH_GEMM_CHUNK;
  gemm_rows made = {.rows = rows, .floats = chunks * rows * PPH_GEMM_CHUNK};
  if (kernel_draw(check, 0, 1))
    return made;
  do
    made.run = (size_t)kernel_draw(check, 1, (int64_t)depth);
  while (depth % made.run);
  made.step = (size_t)kernel_draw(check, 1, 70);
  size_t most = 0;
  for (size_t i = 0; i < depth / made.run; i++) {
    made.starts[i] = (size_t)kernel_draw(check, 0, 90);
    most = made.starts[i] > most ? made.starts[i] : most;
  }
  made.floats = most + (rows - 1) * made.step + made.run;
  return made;
}

static size_t find_value(const gemm_rows *rows, size_t i, size_t k) {
  if (rows->run)
    return rows->starts[k / rows->run] + i * rows->step + k % rows->run;
  return (k / PPH_GEMM_CHUNK * rows->rows + i) * PPH_GEMM_CHUNK +
         k % PPH_GEMM_CHUNK;
}

static void check_tile(kernel_check *check, uint32_t rows, uint32_t columns,
                       size_t depth) {
  size_t lanes = check->kernel->lanes;
  size_t width = (columns + lanes - 1) / lanes * lanes;
  size_t stride = columns + (size_t)kernel_draw(check, 0, 3);
  size_t stored = (rows - 1) * stride + columns;
  gemm_rows places = draw_rows(check, rows, depth);
  const float *a = kernel_data(check, 0, places.floats);
  const float *b = kernel_data(check, 1, depth * width);
  float *c = kernel_target(check, 2, stored);
  pph_epilogue epilogue = draw_epilogue(check, columns, stored, stride);
  bool accumulate = kernel_draw(check, 0, 1), plain = kernel_draw(check, 0, 1);
  bool join = !accumulate && kernel_draw(check, 0, 1);
  bool turned = kernel_draw(check, 0, 1); /* the last row first */
  size_t targets[PPH_GEMM_MAX_ROWS];
  for (size_t i = 0; i < rows; i++)
    targets[i] = (turned ? rows - 1 - i : i) * stride;
  for (size_t i = 0; i < rows; i++)
    for (size_t j = 0; j < columns; j++) {
      size_t at = targets[i] + j;
      float sum = accumulate ? check->expected[at] : 0;
      for (size_t k = 0; k < depth; k++)
        sum = kernel_fma(check, a[find_value(&places, i, k)],
                         b[k * width + j], sum);
      if (join)
        sum += check->expected[at];
      check->expected[at] =
          plain ? sum : kernel_finish(&epilogue, sum, j, i * stride + j);
    }
  ((pph_gemm_kernel)check->kernel->run)(
      &(pph_gemm_tile){.rows = rows,
                       .columns = columns,
                       .depth = depth,
                       .a = a,
                       .b = b,
                       .starts = places.run ? places.starts : NULL,
                       .row_step = places.step,
                       .run = places.run,
                       .c = c,
                       .c_stride = stride,
                       .places = turned ? targets : NULL,
                       .accumulate = accumulate,
                       .join = join,
                       .epilogue = plain ? NULL : &epilogue,
                       .far = kernel_draw(check, 0, 1),
                       .ahead = kernel_draw(check, 0, 1) ? b : NULL,
                       .ahead_step = 5});
  char what[80];
  snprintf(what, sizeof what, "%u x %u x %zu, run %zu, accumulate %d, "
           "join %d, epilogue %d, turned %d", rows, columns, depth, places.run,
           accumulate, join, !plain, turned);
  kernel_compare(check, c, stored, what);
}

void kernel_check_gemm(kernel_check *check) {
  static const size_t depths[] = {1, 2, 15, 16, 17, 45, MAX_RUNS};
  for (uint32_t rows = 1; rows <= check->kernel->rows; rows++)
    for (uint32_t columns = 1; columns <= check->kernel->columns; columns++)
      for (size_t i = 0; i < sizeof depths / sizeof *depths; i++)
        check_tile(check, rows, columns, depths[i]);
}

/* narrow */

enum { MAX_TAPS = 4 };

static void check_planes(kernel_check *check, uint32_t rows, size_t vectors) {
  size_t pixels = vectors * check->kernel->lanes;
  size_t taps = (size_t)kernel_draw(check, 1, MAX_TAPS);
  size_t channels = (size_t)kernel_draw(check, 1, 5), offsets[MAX_TAPS];
  size_t step = pixels + (size_t)kernel_draw(check, 0, 9), most = 0;
  size_t weight_step = rows + (size_t)kernel_draw(check, 0, 3);
  for (size_t t = 0; t < taps; t++) {
    offsets[t] = (size_t)kernel_draw(check, 0, 40);
    most = offsets[t] > most ? offsets[t] : most;
  }
  const float *planes =
      kernel_data(check, 0, most + (channels - 1) * step + pixels);
  const float *weights = kernel_data(
      check, 1, (taps * channels - 1) * weight_step + rows);
  pph_narrow_tile tile = {.rows = rows,
                          .vectors = vectors,
                          .taps = taps,
                          .channels = channels,
                          .offsets = offsets,
                          .planes = planes,
                          .channel_step = step,
                          .weights = weights,
                          .weight_step = weight_step,
                          .ahead = planes,
                          .ahead_floats = (size_t)kernel_draw(check, 0, 500)};
  for (uint32_t r = 0; r < rows; r++) {
    tile.sums[r] = kernel_target(check, 2 + (int)r, pixels);
    float *expected = check->expected + KERNEL_FLOATS / 2 + r * pixels;
    for (size_t x = 0; x < pixels; x++) {
      expected[x] = tile.sums[r][x];
      for (size_t t = 0; t < taps; t++)
        for (size_t c = 0; c < channels; c++)
          expected[x] = kernel_fma(
              check, planes[offsets[t] + c * step + x],
              weights[(t * channels + c) * weight_step + r], expected[x]);
    }
  }
  ((pph_narrow_kernel)check->kernel->run)(&tile);
  for (uint32_t r = 0; r < rows; r++) {
    memcpy(check->expected, check->expected + KERNEL_FLOATS / 2 + r * pixels,
           pixels * sizeof(float));
    char what[80];
    snprintf(what, sizeof what, "row %u of %u, %zu vectors, %zu x %zu", r, rows,
             vectors, taps, channels);
    kernel_compare(check, tile.sums[r], pixels, what);
  }
}

void kernel_check_narrow(kernel_check *check) {
  for (uint32_t rows = 1; rows <= check->kernel->rows; rows++)
    for (size_t vectors = 1; vectors <= 20; vectors++)
      for (int i = 0; i < 3; i++)
        check_planes(check, rows, vectors);
}

/* pack */

static void check_run(kernel_check *check, uint32_t rows, size_t offset,
                      size_t count) {
  size_t step = (size_t)kernel_draw(check, 0, 1) *
                    (size_t)kernel_draw(check, 1, 6) +
                1;
  size_t chunks = (offset + count + PPH_GEMM_CHUNK - 1) / PPH_GEMM_CHUNK;
  size_t stored = chunks * rows * PPH_GEMM_CHUNK;
  const float *sources[PPH_GEMM_MAX_ROWS];
  float *panel = kernel_target(check, PPH_GEMM_MAX_ROWS, stored);
  for (uint32_t i = 0; i < rows; i++) {
    sources[i] = kernel_draw(check, 0, 4)
                     ? kernel_data(check, (int)i, (count - 1) * step + 1)
                     : NULL;
    for (size_t k = 0; k < count; k++) {
      size_t at = offset + k;
      check->expected[(at / PPH_GEMM_CHUNK * rows + i) * PPH_GEMM_CHUNK +
                      at % PPH_GEMM_CHUNK] =
          sources[i] ? sources[i][k * step] : 0;
    }
  }
  ((pph_pack_kernel)check->kernel->run)(&(pph_pack_run){.rows = rows,
                                                        .offset = offset,
                                                        .count = count,
                                                        .step = step,
                                                        .sources = sources,
                                                        .panel = panel});
  char what[80];
  snprintf(what, sizeof what, "%u rows, %zu from %zu, step %zu", rows, count,
           offset, step);
  kernel_compare(check, panel, stored, what);
}

void kernel_check_pack(kernel_check *check) {
  for (uint32_t rows = 1; rows <= PPH_GEMM_MAX_ROWS; rows++)
    for (size_t count = 1; count <= 40; count++)
      for (size_t offset = 0; offset < 20; offset++)
        check_run(check, rows, offset, count);
}

/* finish */

static void check_block(kernel_check *check, uint32_t rows, size_t columns) {
  bool planes = strcmp(check->kernel->stem, "f32_finish_planes") == 0;
  size_t sum_stride = columns + (size_t)kernel_draw(check, 0, 3);
  size_t stride = (planes ? 1 : columns) + (size_t)kernel_draw(check, 0, 3);
  size_t plane = 1;
  if (planes)
    plane = rows * stride + (size_t)kernel_draw(check, 0, 3);
  size_t stored = (rows - 1) * stride + (columns - 1) * plane + 1;
  const float *sums =
      kernel_data(check, 0, (rows - 1) * sum_stride + columns);
  float *target = kernel_target(check, 1, stored);
  pph_epilogue epilogue = draw_epilogue(check, columns, stored, stride);
  for (size_t i = 0; i < rows; i++)
    for (size_t j = 0; j < columns; j++) {
      size_t at = i * stride + j * plane;
      check->expected[at] =
          kernel_finish(&epilogue, sums[i * sum_stride + j], j, at);
    }
  ((pph_finish_kernel)check->kernel->run)(
      &(pph_finish_block){.rows = rows,
                          .columns = columns,
                          .sums = sums,
                          .sum_stride = sum_stride,
                          .target = target,
                          .target_stride = stride,
                          .plane = plane,
                          .epilogue = &epilogue});
  char what[80];
  snprintf(what, sizeof what, "%u x %zu", rows, columns);
  kernel_compare(check, target, stored, what);
}

void kernel_check_finish(kernel_check *check) {
  for (uint32_t rows = 1; rows <= 18; rows++)
    for (size_t columns = 1; columns <= 70; columns++)
      check_block(check, rows, columns);
}

/* transpose */

static void check_matrix(kernel_check *check, size_t rows, size_t columns,
                         bool dense) {
  size_t source_step = columns + (size_t)kernel_draw(check, 0, 3);
  size_t target_step = rows + (dense ? 0 : (size_t)kernel_draw(check, 1, 3));
  size_t stored = (columns - 1) * target_step + rows;
  const float *source =
      kernel_data(check, 0, (rows - 1) * source_step + columns);
  float *target = kernel_target(check, 1, stored);
  for (size_t i = 0; i < rows; i++)
    for (size_t j = 0; j < columns; j++)
      check->expected[j * target_step + i] = source[i * source_step + j];
  ((pph_transpose_kernel)check->kernel->run)(
      &(pph_transpose_block){.rows = rows,
                             .columns = columns,
                             .source = source,
                             .source_step = source_step,
                             .target = target,
                             .target_step = target_step});
  char what[80];
  snprintf(what, sizeof what, "%zu x %zu, dense %d", rows, columns, dense);
  kernel_compare(check, target, stored, what);
}

void kernel_check_transpose(kernel_check *check) {
  for (size_t rows = 1; rows <= 36; rows++)
    for (size_t columns = 1; columns <= 36; columns++)
      for (int dense = 0; dense < 2; dense++)
        check_matrix(check, rows, columns, dense);
  for (size_t rows = 254; rows <= 274; rows += 2)
    for (size_t columns = 15; columns <= 33; columns++)
      check_matrix(check, rows, columns, false);
}
