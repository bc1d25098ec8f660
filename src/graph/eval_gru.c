/* GRU with ONNX's default activations; the state is kept in double. */
#include <math.h>
#include <string.h>

#include "graph/eval_rules.h"

typedef struct gru_job {
  int64_t length, batch, inputs, hidden, directions;
  bool reset_after;          /* linear_before_reset */
  const float *w, *r, *bias; /* of the direction; bias may be NULL */
  double *state, *reset_state, *update, *reset; /* one batch element */
} gru_job;

/* `sum` of row[i] * x[i], by four independent sums. */
static double dot_input(const float *row, const float *x, int64_t count) {
  double sums[4] = {0};
  for (int64_t i = 0; i < count; i++)
    sums[i & 3] += (double)row[i] * x[i];
  return sums[0] + sums[1] + (sums[2] + sums[3]);
}

static double dot_state(const float *row, const double *x, int64_t count) {
  double sums[4] = {0};
  for (int64_t i = 0; i < count; i++)
    sums[i & 3] += row[i] * x[i];
  return sums[0] + sums[1] + (sums[2] + sums[3]);
}

/* Row `i` of gate `gate` (update, reset, hidden). */
static double from_input(const gru_job *job, int gate, int64_t i,
                         const float *x) {
  int64_t row = gate * job->hidden + i;
  double bias = job->bias ? job->bias[row] : 0;
  return dot_input(job->w + row * job->inputs, x, job->inputs) + bias;
}

static double from_state(const gru_job *job, int gate, int64_t i,
                         const double *state) {
  int64_t row = gate * job->hidden + i;
  double bias = job->bias ? job->bias[3 * job->hidden + row] : 0;
  return dot_state(job->r + row * job->hidden, state, job->hidden) + bias;
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static void step(const gru_job *job, const float *x) {
  double *state = job->state, *next = job->reset_state;
  for (int64_t i = 0; i < job->hidden; i++) {
    job->update[i] =
        sigmoid(from_input(job, 0, i, x) + from_state(job, 0, i, state));
    job->reset[i] =
        sigmoid(from_input(job, 1, i, x) + from_state(job, 1, i, state));
  }
  if (job->reset_after) {
    for (int64_t i = 0; i < job->hidden; i++)
      next[i] = tanh(from_input(job, 2, i, x) +
                     job->reset[i] * from_state(job, 2, i, state));
  } else {
    for (int64_t i = 0; i < job->hidden; i++)
      next[i] = job->reset[i] * state[i];
    /* The reset gate is read no more: it takes the result. */
    for (int64_t i = 0; i < job->hidden; i++)
      job->reset[i] =
          tanh(from_input(job, 2, i, x) + from_state(job, 2, i, next));
    next = job->reset;
  }
  for (int64_t i = 0; i < job->hidden; i++)
    state[i] = (1 - job->update[i]) * next[i] + job->update[i] * state[i];
}

static float *output_data(const pph_eval *eval, uint32_t slot) {
  bool has = slot < eval->node->output_count &&
             eval->node->outputs[slot] != PPH_NO_VALUE;
  return has ? eval->outputs[slot].data : NULL;
}

static void store_state(const gru_job *job, float *to) {
  for (int64_t i = 0; to && i < job->hidden; i++)
    to[i] = (float)job->state[i];
}

/* Direction `d` of batch element `n`. */
static void run_sequence(const pph_eval *eval, const gru_job *job, int64_t d,
                         int64_t n, bool reverse) {
  const float *x = eval->inputs[0].data;
  const float *initial = pph_eval_has(eval, 5) ? eval->inputs[5].data : NULL;
  float *all = output_data(eval, 0), *last = output_data(eval, 1);
  int64_t at = (d * job->batch + n) * job->hidden;
  for (int64_t i = 0; i < job->hidden; i++)
    job->state[i] = initial ? initial[at + i] : 0;
  for (int64_t t = 0; t < job->length; t++) {
    int64_t place = reverse ? job->length - 1 - t : t;
    step(job, x + (place * job->batch + n) * job->inputs);
    int64_t row = (place * job->directions + d) * job->batch + n;
    store_state(job, all ? all + row * job->hidden : NULL);
  }
  store_state(job, last ? last + at : NULL);
}

static pph_status check_inputs(const pph_eval *eval) {
  for (uint32_t i = 0; i < eval->node->input_count; i++)
    if (i != 4 && pph_eval_has(eval, i) && eval->inputs[i].type != PPH_F32)
      return pph_eval_fail_type(eval, eval->inputs[i].type);
  int64_t length = eval->inputs[0].shape.dims[0];
  int64_t count =
      pph_eval_has(eval, 4) ? (int64_t)pph_eval_count(&eval->inputs[4]) : 0;
  for (int64_t i = 0; i < count; i++)
    if (pph_number_integer(&eval->inputs[4], i) != length)
      return pph_node_fail(eval->node, eval->error, PPH_UNSUPPORTED,
                           "sequence_lens[%lld] is %lld, only the whole "
                           "length %lld is supported",
                           (long long)i,
                           (long long)pph_number_integer(&eval->inputs[4], i),
                           (long long)length);
  return PPH_OK;
}

static void run_direction(const pph_eval *eval, gru_job *job, int64_t d,
                          bool reverse) {
  const float *w = eval->inputs[1].data, *r = eval->inputs[2].data;
  const float *bias = pph_eval_has(eval, 3) ? eval->inputs[3].data : NULL;
  job->w = w + d * 3 * job->hidden * job->inputs;
  job->r = r + d * 3 * job->hidden * job->hidden;
  job->bias = bias ? bias + d * 6 * job->hidden : NULL;
  for (int64_t n = 0; n < job->batch; n++)
    run_sequence(eval, job, d, n, reverse);
}

pph_status pph_eval_gru(const pph_eval *eval) {
  const pph_shape *x = &eval->inputs[0].shape;
  const char *direction =
      pph_node_text(eval->node, PPH_ATTR_DIRECTION, "forward");
  PPH_TRY(check_inputs(eval));
  gru_job job = {
      .length = x->dims[0],
      .batch = x->dims[1],
      .inputs = x->dims[2],
      .hidden = eval->inputs[2].shape.dims[2],
      .directions = eval->inputs[2].shape.dims[0],
      .reset_after =
          pph_node_int(eval->node, PPH_ATTR_LINEAR_BEFORE_RESET, 0) != 0,
  };
  double *scratch = pph_heap_allocate(eval->graph->heap, (size_t)job.hidden,
                                      4 * sizeof *scratch);
  if (!scratch)
    return pph_fail_memory(eval->error);
  job.state = scratch;
  job.reset_state = scratch + job.hidden;
  job.update = scratch + 2 * job.hidden;
  job.reset = scratch + 3 * job.hidden;
  for (int64_t d = 0; d < job.directions; d++)
    run_direction(eval, &job, d, d == 1 || strcmp(direction, "reverse") == 0);
  pph_heap_release(eval->graph->heap, scratch);
  return PPH_OK;
}
