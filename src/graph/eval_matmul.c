/* Matrix products: y = alpha * a b + beta * c, summed in double. */
#include "graph/eval_rules.h"

/* Rows, columns and depth of the block that is summed at once. */
enum { ROWS = 64, TILE = 128, CHUNK = 64 };

/* Steps between rows and columns say how a matrix lies, transposed or
   repeated. */
typedef struct matrix {
  const float *data;
  int64_t row, column;
} matrix;

typedef struct product_job {
  matrix a, b, c; /* c.data may be NULL */
  int64_t rows, columns, depth;
  double alpha, beta;
  float *y;            /* dense */
  double *sums, *tile; /* [ROWS][TILE], [CHUNK][TILE] */
} product_job;

/* Block of b from row `k`, column `j` on. */
static void load_tile(const product_job *job, int64_t k, int64_t count,
                      int64_t j, int64_t width) {
  for (int64_t r = 0; r < count; r++) {
    const float *from = job->b.data + (k + r) * job->b.row + j * job->b.column;
    for (int64_t x = 0; x < width; x++)
      job->tile[r * TILE + x] = from[x * job->b.column];
  }
}

static void store_block(const product_job *job, int64_t i, int64_t height,
                        int64_t j, int64_t width) {
  for (int64_t r = i; r < i + height; r++)
    for (int64_t x = j; x < j + width; x++) {
      double sum = job->alpha * job->sums[(r - i) * TILE + x - j];
      if (job->c.data)
        sum += job->beta * job->c.data[r * job->c.row + x * job->c.column];
      job->y[r * job->columns + x] = (float)sum;
    }
}

static void run_block(const product_job *job, int64_t i, int64_t j) {
  int64_t height = pph_min_i64(ROWS, job->rows - i);
  int64_t width = pph_min_i64(TILE, job->columns - j);
  for (int64_t x = 0; x < ROWS * TILE; x++)
    job->sums[x] = 0;
  for (int64_t k = 0; k < job->depth; k += CHUNK) {
    int64_t count = pph_min_i64(CHUNK, job->depth - k);
    load_tile(job, k, count, j, width);
    for (int64_t r = 0; r < height; r++) {
      pph_product product = {job->a.data + (i + r) * job->a.row +
                                 k * job->a.column,
                             job->a.column,
                             job->tile,
                             TILE,
                             count,
                             width};
      pph_product_add(&product, job->sums + r * TILE);
    }
  }
  store_block(job, i, height, j, width);
}

static void run_product(const product_job *job) {
  for (int64_t i = 0; i < job->rows; i += ROWS)
    for (int64_t j = 0; j < job->columns; j += TILE)
      run_block(job, i, j);
}

static pph_status allocate(const pph_eval *eval, product_job *job) {
  job->sums = pph_heap_allocate(eval->graph->heap, ROWS + CHUNK,
                                TILE * sizeof *job->sums);
  if (!job->sums)
    return pph_fail_memory(eval->error);
  job->tile = job->sums + ROWS * TILE;
  return PPH_OK;
}

static pph_status check_types(const pph_eval *eval) {
  for (uint32_t i = 0; i < eval->node->input_count; i++)
    if (pph_eval_has(eval, i) && eval->inputs[i].type != PPH_F32)
      return pph_eval_fail_type(eval, eval->inputs[i].type);
  return PPH_OK;
}

static matrix find_matrix(const pph_tensor *tensor, bool transposed) {
  int64_t columns = tensor->shape.dims[1];
  return transposed ? (matrix){tensor->data, 1, columns}
                    : (matrix){tensor->data, columns, 1};
}

static void read_addend(const pph_tensor *c, matrix *addend) {
  int64_t strides[PPH_MAX_RANK];
  int32_t rank = c->shape.rank;
  pph_eval_strides(&c->shape, strides);
  addend->data = c->data;
  if (rank > 0 && c->shape.dims[rank - 1] != 1)
    addend->column = strides[rank - 1];
  if (rank > 1 && c->shape.dims[rank - 2] != 1)
    addend->row = strides[rank - 2];
}

pph_status pph_eval_gemm(const pph_eval *eval) {
  const pph_node *node = eval->node;
  bool trans_a = pph_node_int(node, PPH_ATTR_TRANS_A, 0) != 0;
  bool trans_b = pph_node_int(node, PPH_ATTR_TRANS_B, 0) != 0;
  PPH_TRY(check_types(eval));
  product_job job = {
      .a = find_matrix(&eval->inputs[0], trans_a),
      .b = find_matrix(&eval->inputs[1], trans_b),
      .rows = eval->outputs[0].shape.dims[0],
      .columns = eval->outputs[0].shape.dims[1],
      .depth = eval->inputs[0].shape.dims[!trans_a],
      .alpha = pph_node_float(node, PPH_ATTR_ALPHA, 1),
      .beta = pph_node_float(node, PPH_ATTR_BETA, 1),
      .y = eval->outputs[0].data,
  };
  if (pph_eval_has(eval, 2))
    read_addend(&eval->inputs[2], &job.c);
  if (job.beta == 0)
    job.c.data = NULL;
  PPH_TRY(allocate(eval, &job));
  run_product(&job);
  pph_heap_release(eval->graph->heap, job.sums);
  return PPH_OK;
}

/* Batch axes of an operand of MatMul: all but its last two. */
static pph_shape batch_shape(const pph_shape *shape) {
  pph_shape batch = *shape;
  batch.rank = shape->rank > 2 ? shape->rank - 2 : 0;
  return batch;
}

/* A vector on the left is one row, on the right one column. */
pph_status pph_eval_matmul(const pph_eval *eval) {
  const pph_shape *a = &eval->inputs[0].shape, *b = &eval->inputs[1].shape;
  PPH_TRY(check_types(eval));
  if (pph_eval_count(&eval->outputs[0]) == 0)
    return PPH_OK;
  product_job job = {.alpha = 1};
  job.depth = a->dims[a->rank - 1];
  job.rows = a->rank > 1 ? a->dims[a->rank - 2] : 1;
  job.columns = b->rank > 1 ? b->dims[b->rank - 1] : 1;
  PPH_TRY(allocate(eval, &job));
  pph_shape whole = eval->outputs[0].shape;
  whole.rank -= (a->rank > 1) + (b->rank > 1);
  pph_shape batch_a = batch_shape(a), batch_b = batch_shape(b);
  pph_walk walk;
  pph_walk_init(&walk, &whole, 3);
  pph_walk_broadcast(&walk, 0, &batch_a);
  pph_walk_broadcast(&walk, 1, &batch_b);
  pph_walk_broadcast(&walk, 2, &whole);
  while (pph_walk_next(&walk))
    for (int64_t i = 0; i < walk.length; i++) {
      const float *from_a = eval->inputs[0].data,
                  *from_b = eval->inputs[1].data;
      int64_t at[3];
      for (int k = 0; k < 3; k++)
        at[k] = walk.offset[k] + i * walk.step[k];
      job.a = (matrix){from_a + at[0] * job.rows * job.depth, job.depth, 1};
      job.b =
          (matrix){from_b + at[1] * job.depth * job.columns, job.columns, 1};
      job.y = (float *)eval->outputs[0].data + at[2] * job.rows * job.columns;
      run_product(&job);
    }
  pph_heap_release(eval->graph->heap, job.sums);
  return PPH_OK;
}
