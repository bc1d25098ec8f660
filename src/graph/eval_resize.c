/* Resize. Coordinates and weights are computed in float as ONNX Runtime does
   (they decide which elements are read), sums in double. */
#include <math.h>
#include <string.h>

#include "graph/eval_rules.h"

typedef enum coordinate_mode {
  HALF_PIXEL,
  HALF_PIXEL_SYMMETRIC,
  PYTORCH_HALF_PIXEL,
  ALIGN_CORNERS,
  ASYMMETRIC,
  CROP
} coordinate_mode;

typedef enum nearest_mode {
  ROUND_PREFER_FLOOR,
  ROUND_PREFER_CEIL,
  FLOOR,
  CEIL
} nearest_mode;

typedef enum resize_mode { NEAREST, LINEAR, CUBIC } resize_mode;

typedef struct resize_axis {
  int64_t input, output;
  float scale, roi_start, roi_end;
  /* Interpolation: output o is the sum over t < taps of weights[o*taps + t] *
     x[places[o*taps + t]]; nearest: one tap and no weights. */
  int64_t taps;
  int64_t *places;
  float *weights;
  uint8_t *outside; /* per output: takes the extrapolation value */
} resize_axis;

typedef struct resize_job {
  const pph_eval *eval;
  pph_heap *heap;
  int32_t rank;
  resize_mode mode;
  coordinate_mode coordinates;
  nearest_mode nearest;
  bool antialias, exclude_outside;
  float cubic_a;
  resize_axis axes[PPH_MAX_RANK];
} resize_job;

/* Position of the attribute's text in `names`, 0 when it is unknown. */
static int choose(const pph_node *node, pph_attribute_key key,
                  const char *const *names, int count) {
  const char *text = pph_node_text(node, key, names[0]);
  for (int i = 0; i < count; i++)
    if (strcmp(text, names[i]) == 0)
      return i;
  return 0;
}

static void read_attributes(resize_job *job) {
  static const char *const modes[] = {"nearest", "linear", "cubic"};
  static const char *const coordinates[] = {
      "half_pixel",    "half_pixel_symmetric", "pytorch_half_pixel",
      "align_corners", "asymmetric",           "tf_crop_and_resize"};
  static const char *const nearest[] = {"round_prefer_floor",
                                        "round_prefer_ceil", "floor", "ceil"};
  const pph_node *node = job->eval->node;
  job->mode = (resize_mode)choose(node, PPH_ATTR_MODE, modes, 3);
  job->coordinates = (coordinate_mode)choose(
      node, PPH_ATTR_COORDINATE_TRANSFORMATION_MODE, coordinates, 6);
  job->nearest = (nearest_mode)choose(node, PPH_ATTR_NEAREST_MODE, nearest, 4);
  job->antialias = pph_node_int(node, PPH_ATTR_ANTIALIAS, 0) != 0;
  job->exclude_outside = pph_node_int(node, PPH_ATTR_EXCLUDE_OUTSIDE, 0) != 0;
  job->cubic_a = pph_node_float(node, PPH_ATTR_CUBIC_COEFF_A, -0.75f);
}

/* Which axis entry `i` of roi, scales and sizes speaks of, of *count. */
static int32_t named_axis(const resize_job *job, int32_t i, int32_t *count) {
  uint32_t given;
  const int64_t *axes = pph_node_ints(job->eval->node, PPH_ATTR_AXES, &given);
  *count = axes ? (int32_t)given : job->rank;
  return axes && i < *count ? pph_eval_axis(axes[i], job->rank) : i;
}

/* One scale for all axes that sizes name, under a policy that keeps the aspect
   ratio. */
static void share_scale(resize_job *job, int32_t count) {
  const char *policy = pph_node_text(
      job->eval->node, PPH_ATTR_KEEP_ASPECT_RATIO_POLICY, "stretch");
  bool largest = strcmp(policy, "not_smaller") == 0;
  if (!largest && strcmp(policy, "not_larger") != 0)
    return;
  float shared = 0;
  for (int32_t i = 0; i < count; i++) {
    resize_axis *axis = &job->axes[named_axis(job, i, &count)];
    float scale = (float)pph_number_integer(&job->eval->inputs[3], i) /
                  (float)axis->input;
    if (i == 0 || (largest ? scale > shared : scale < shared))
      shared = scale;
  }
  for (int32_t i = 0; i < count; i++)
    job->axes[named_axis(job, i, &count)].scale = shared;
}

static pph_status read_axes(resize_job *job) {
  const pph_eval *eval = job->eval;
  int32_t count;
  for (int32_t i = 0; i < job->rank; i++) {
    int64_t input = eval->inputs[0].shape.dims[i];
    int64_t output = eval->outputs[0].shape.dims[i];
    job->axes[i] = (resize_axis){.input = input,
                                 .output = output,
                                 .scale = (float)output / (float)input,
                                 .roi_end = 1};
  }
  named_axis(job, 0, &count);
  bool has_roi = job->coordinates == CROP && pph_eval_has_elements(eval, 1);
  if (job->coordinates == CROP &&
      (!has_roi || pph_eval_count(&eval->inputs[1]) != 2 * (size_t)count))
    return pph_node_fail(eval->node, eval->error, PPH_BAD_MODEL,
                         "roi must have %d entries", 2 * count);
  bool has_scales = pph_eval_has_elements(eval, 2);
  for (int32_t i = 0; i < count; i++) {
    resize_axis *axis = &job->axes[named_axis(job, i, &count)];
    double number;
    if (has_scales) {
      pph_number_load_reals(&eval->inputs[2], i, 0, &number, 1);
      axis->scale = (float)number;
    }
    if (has_roi) {
      pph_number_load_reals(&eval->inputs[1], i, 0, &number, 1);
      axis->roi_start = (float)number;
      pph_number_load_reals(&eval->inputs[1], i + count, 0, &number, 1);
      axis->roi_end = (float)number;
    }
  }
  if (!has_scales)
    share_scale(job, count);
  return PPH_OK;
}

/* The length that align_corners stretches over: where scales are given and
   their product with the input is no whole number, ONNX's conformance cases
   keep the fraction (ONNX Runtime drops it). */
static float corner_length(const resize_axis *axis) {
  float whole = (float)axis->output, exact = axis->scale * (float)axis->input;
  return fabsf(exact - whole) < 1e-4f * whole ? whole : exact;
}

/* Where output `o` lies in the input. */
static float find_coordinate(const resize_job *job, const resize_axis *axis,
                             int64_t o) {
  float x = (float)o, in = (float)axis->input, out = (float)axis->output;
  float start = axis->roi_start, end = axis->roi_end;
  float half = (x + 0.5f) / axis->scale - 0.5f;
  if (axis->scale == 1 && job->coordinates != CROP)
    return x;
  switch (job->coordinates) {
  case HALF_PIXEL:
    return half;
  case PYTORCH_HALF_PIXEL:
    return axis->output > 1 ? half : 0;
  case ASYMMETRIC:
    return x / axis->scale;
  case ALIGN_CORNERS:
    return corner_length(axis) == 1 ? 0
                                    : x * (in - 1) / (corner_length(axis) - 1);
  case HALF_PIXEL_SYMMETRIC: {
    /* The offset in float, the rest in double: a place that falls between two
       elements must fall to the same side as in ONNX Runtime. */
    float offset = in / 2 * (1 - out / (axis->scale * in));
    return (float)(offset + (x + 0.5) / axis->scale - 0.5);
  }
  case CROP:
    break;
  }
  return axis->output > 1
             ? start * (in - 1) + x * (end - start) * (in - 1) / (out - 1)
             : 0.5f * (start + end) * (in - 1);
}

/* A place in [0, length), also for numbers beyond any integer, and NaN. */
static int64_t clamp_place(float at, int64_t length) {
  if (!(at > 0))
    return 0;
  return at >= (float)length ? length - 1
                             : pph_min_i64((int64_t)at, length - 1);
}

/* Halfway has a tolerance, as in ONNX Runtime 1.32: a place such as 3.5 often
   comes out of the division a little below or above. Not through x + 0.5, which
   itself rounds up just below a half. */
static float round_nearest(nearest_mode mode, float x) {
  float low = floorf(x);
  bool halfway = fabsf(x - low - 0.5f) <= 1e-6f;
  switch (mode) {
  case ROUND_PREFER_FLOOR:
    return halfway ? low : roundf(x);
  case ROUND_PREFER_CEIL:
    return halfway ? low + 1 : roundf(x);
  case FLOOR:
    return low;
  case CEIL:
    return ceilf(x);
  }
  return x;
}

/* The four weights around a place whose fraction is `s`. */
static void cubic_weights(float a, float s, float w[4]) {
  w[0] = ((a * (s + 1) - 5 * a) * (s + 1) + 8 * a) * (s + 1) - 4 * a;
  w[1] = ((a + 2) * s - (a + 3)) * s * s + 1;
  w[2] = ((a + 2) * (1 - s) - (a + 3)) * (1 - s) * (1 - s) + 1;
  w[3] = ((a * (2 - s) - 5 * a) * (2 - s) + 8 * a) * (2 - s) - 4 * a;
}

static void set_nearest(const resize_job *job, resize_axis *axis, int64_t o,
                        float x) {
  axis->places[o] = clamp_place(round_nearest(job->nearest, x), axis->input);
}

static void set_linear(const resize_job *job, resize_axis *axis, int64_t o,
                       float x) {
  (void)job;
  x = x > 0 ? fminf(x, (float)(axis->input - 1)) : 0;
  int64_t low = clamp_place(x, axis->input);
  int64_t high = pph_min_i64(low + 1, axis->input - 1);
  float above = low == high ? 0.5f : x - (float)low;
  float below = low == high ? 0.5f : (float)high - x;
  axis->places[2 * o] = low;
  axis->places[2 * o + 1] = high;
  axis->weights[2 * o] = below;
  axis->weights[2 * o + 1] = above;
}

static void set_cubic(const resize_job *job, resize_axis *axis, int64_t o,
                      float x) {
  float *w = axis->weights + 4 * o, first = floorf(x) - 1, sum = 0;
  if (!isfinite(x))
    x = 0, first = -1;
  cubic_weights(job->cubic_a, x - floorf(x), w);
  for (int t = 0; t < 4; t++) {
    float place = first + (float)t;
    axis->places[4 * o + t] = clamp_place(place, axis->input);
    if (job->exclude_outside && (place < 0 || place >= (float)axis->input))
      w[t] = 0;
    sum += w[t];
  }
  for (int t = 0; t < 4 && job->exclude_outside && sum != 0; t++)
    w[t] /= sum;
}

/* The kernel that antialiasing stretches. */
static float filter(const resize_job *job, float x) {
  float a = job->cubic_a;
  x = fabsf(x);
  if (job->mode == LINEAR)
    return x < 1 ? 1 - x : 0;
  if (x < 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static float stretch(const resize_axis *axis) {
  return axis->scale < 1 ? 1 / axis->scale : 1;
}

static float support(const resize_job *job, const resize_axis *axis) {
  return (job->mode == LINEAR ? 1 : 2) * stretch(axis);
}

/* Elements whose centres lie within the stretched kernel. Places outside the
   input count for the element at the border, or not at all. */
static void set_antialiased(const resize_job *job, resize_axis *axis, int64_t o,
                            float x) {
  float reach = support(job, axis), scale = 1 / stretch(axis);
  float centre = isfinite(x) ? x + 0.5f : 0, sum = 0;
  float limit = (float)axis->input + reach; /* the kernel sees one end only */
  centre = fmaxf(-reach, fminf(centre, limit));
  float first = floorf(centre - reach + 0.5f);
  float *w = axis->weights + o * axis->taps;
  int64_t *places = axis->places + o * axis->taps;
  for (int64_t t = 0; t < axis->taps; t++) {
    float place = first + (float)t;
    w[t] = filter(job, (place - centre + 0.5f) * scale);
    if (job->exclude_outside && (place < 0 || place >= (float)axis->input))
      w[t] = 0;
    places[t] = clamp_place(place, axis->input);
    sum += w[t];
  }
  for (int64_t t = 0; t < axis->taps && sum != 0; t++)
    w[t] /= sum;
}

typedef void set_function(const resize_job *job, resize_axis *axis, int64_t o,
                          float x);

static pph_status allocate_axis(const resize_job *job, resize_axis *axis) {
  size_t outputs = (size_t)axis->output, count;
  if (!pph_checked_mul(outputs, (size_t)axis->taps, &count))
    return pph_fail_memory(job->eval->error);
  axis->places = pph_heap_allocate(job->heap, count, sizeof *axis->places);
  axis->weights = pph_heap_allocate(job->heap, count, sizeof *axis->weights);
  axis->outside = pph_heap_allocate_zeroed(job->heap, outputs, 1);
  if (!axis->places || !axis->weights || !axis->outside)
    return pph_fail_memory(job->eval->error);
  return PPH_OK;
}

static pph_status plan_axis(const resize_job *job, resize_axis *axis) {
  static const struct {
    set_function *set;
    int64_t taps;
  } modes[] = {{set_nearest, 1}, {set_linear, 2}, {set_cubic, 4}};
  bool antialias = job->antialias && job->mode != NEAREST;
  axis->taps = modes[job->mode].taps;
  if (antialias) { /* the kernel's width, but at most a bounded one */
    float width = ceilf(2 * support(job, axis)) + 1;
    axis->taps = clamp_place(width, (int64_t)1 << 40);
  }
  PPH_TRY(allocate_axis(job, axis));
  for (int64_t o = 0; o < axis->output; o++) {
    float x = find_coordinate(job, axis, o);
    axis->outside[o] =
        job->coordinates == CROP && (x < 0 || x > (float)(axis->input - 1));
    (antialias ? set_antialiased : modes[job->mode].set)(job, axis, o, x);
  }
  return PPH_OK;
}

static void release_axes(resize_job *job) {
  for (int32_t i = 0; i < job->rank; i++) {
    pph_heap_release(job->heap, job->axes[i].places);
    pph_heap_release(job->heap, job->axes[i].weights);
    pph_heap_release(job->heap, job->axes[i].outside);
  }
}

static double extrapolation(const resize_job *job) {
  return pph_node_float(job->eval->node, PPH_ATTR_EXTRAPOLATION_VALUE, 0);
}

static pph_status run_nearest(resize_job *job) {
  const int64_t *tables[PPH_MAX_RANK];
  const pph_tensor *output = &job->eval->outputs[0];
  for (int32_t i = 0; i < job->rank; i++) {
    resize_axis *axis = &job->axes[i];
    tables[i] = axis->places;
    for (int64_t o = 0; o < axis->output; o++)
      if (axis->outside[o])
        axis->places[o] = -1;
  }
  uint64_t fill = 0;
  double value = extrapolation(job);
  pph_tensor element = {output->type, {0}, &fill};
  pph_number_store_reals(&element, 0, &value, 1);
  pph_walk_gather(&job->eval->inputs[0], output, tables, &fill);
  return PPH_OK;
}

/* target[outer][output][inner] from source[outer][input][inner]. */
static void interpolate(const resize_axis *axis, int64_t outer, int64_t inner,
                        const double *source, double *target) {
  for (int64_t n = 0; n < outer; n++, source += axis->input * inner)
    for (int64_t o = 0; o < axis->output; o++, target += inner) {
      memset(target, 0, (size_t)inner * sizeof *target);
      for (int64_t t = o * axis->taps; t < (o + 1) * axis->taps; t++) {
        const double *from = source + axis->places[t] * inner;
        double weight = axis->weights[t];
        for (int64_t i = 0; weight != 0 && i < inner; i++)
          target[i] += weight * from[i];
      }
    }
}

/* Nothing to interpolate: every output is the input at its own index. */
static bool is_still(const resize_job *job, const resize_axis *axis) {
  return axis->input == axis->output &&
         (job->coordinates == CROP ? axis->roi_start == 0 && axis->roi_end == 1
                                   : axis->scale == 1);
}

/* The axis that shrinks most comes first, so that nothing between is larger
   than the larger of input and output. -1 when none is left. */
static int32_t next_axis(const resize_job *job, const bool *done) {
  int32_t best = -1;
  double least = 0;
  for (int32_t i = 0; i < job->rank; i++) {
    double ratio = (double)job->axes[i].output / (double)job->axes[i].input;
    if (!done[i] && (best < 0 || ratio < least)) {
      best = i;
      least = ratio;
    }
  }
  return best;
}

/* Interpolates along axis `k` of *data, which is replaced. */
static pph_status run_axis(const resize_job *job, int32_t k, pph_shape *shape,
                           double **data) {
  int64_t outer = pph_eval_product(shape, 0, k);
  int64_t inner = pph_eval_product(shape, k + 1, shape->rank);
  size_t count;
  shape->dims[k] = job->axes[k].output;
  if (!pph_shape_count(shape, &count))
    return pph_fail_memory(job->eval->error);
  double *next = pph_heap_allocate(job->heap, count, sizeof *next);
  if (!next)
    return pph_fail_memory(job->eval->error);
  interpolate(&job->axes[k], outer, inner, *data, next);
  pph_heap_release(job->heap, *data);
  *data = next;
  return PPH_OK;
}

static void extrapolate(const resize_job *job) {
  const pph_tensor *output = &job->eval->outputs[0];
  double value = extrapolation(job);
  int64_t strides[PPH_MAX_RANK], count = (int64_t)pph_eval_count(output);
  pph_eval_strides(&output->shape, strides);
  for (int64_t i = 0; i < count; i++) {
    bool outside = false;
    for (int32_t k = 0; k < job->rank; k++)
      outside |= job->axes[k].outside[i / strides[k] % job->axes[k].output];
    if (outside)
      pph_number_store_reals(output, i, &value, 1);
  }
}

static pph_status run_interpolation(const resize_job *job) {
  const pph_tensor *input = &job->eval->inputs[0];
  const pph_tensor *output = &job->eval->outputs[0];
  pph_shape shape = input->shape;
  bool done[PPH_MAX_RANK] = {false};
  int64_t count = (int64_t)pph_eval_count(input);
  double *data = pph_heap_allocate(job->heap, (size_t)count, sizeof *data);
  if (!data)
    return pph_fail_memory(job->eval->error);
  pph_number_load_reals(input, 0, 1, data, count);
  pph_status status = PPH_OK;
  for (int32_t k; status == PPH_OK && (k = next_axis(job, done)) >= 0;) {
    done[k] = true;
    if (!is_still(job, &job->axes[k]))
      status = run_axis(job, k, &shape, &data);
  }
  if (status == PPH_OK)
    pph_number_store_reals(output, 0, data, (int64_t)pph_eval_count(output));
  pph_heap_release(job->heap, data);
  if (status == PPH_OK && job->coordinates == CROP)
    extrapolate(job);
  return status;
}

pph_status pph_eval_resize(const pph_eval *eval) {
  const pph_tensor *input = &eval->inputs[0];
  resize_job job = {
      .eval = eval, .heap = eval->graph->heap, .rank = input->shape.rank};
  if (pph_eval_count(&eval->outputs[0]) == 0 || pph_eval_count(input) == 0)
    return PPH_OK;
  read_attributes(&job);
  if (job.mode != NEAREST && !pph_number_is_real(input->type))
    return pph_eval_fail_type(eval, input->type);
  PPH_TRY(read_axes(&job));
  pph_status status = PPH_OK;
  for (int32_t i = 0; status == PPH_OK && i < job.rank; i++)
    status = plan_axis(&job, &job.axes[i]);
  if (status == PPH_OK)
    status = job.mode == NEAREST ? run_nearest(&job) : run_interpolation(&job);
  release_axes(&job);
  return status;
}

/* Every output of the axis reads the input `factor` times smaller. */
static bool axis_repeats(const resize_job *job, const resize_axis *axis,
                         int64_t *factor) {
  if (axis->input == 0 || axis->output % axis->input)
    return false;
  *factor = axis->output / axis->input;
  for (int64_t o = 0; o < axis->output; o++) {
    float x = find_coordinate(job, axis, o);
    if (clamp_place(round_nearest(job->nearest, x), axis->input) !=
        o / *factor)
      return false;
  }
  return true;
}

bool pph_eval_resize_repeats(const pph_graph *graph, const pph_node *node,
                             int64_t *factors) {
  pph_tensor inputs[4] = {{0}}, output = {0};
  const pph_value *x = pph_node_find_input(graph, node, 0);
  const pph_value *y = pph_graph_value(graph, node->outputs[0]);
  for (uint32_t i = 1; i < node->input_count; i++)
    if (pph_node_find_input(graph, node, i) &&
        !pph_node_find_constant(graph, node, i, &inputs[i]))
      return false;
  inputs[0] = (pph_tensor){x->type, x->shape, NULL};
  output = (pph_tensor){y->type, y->shape, NULL};
  pph_eval eval = {graph, node, inputs, &output, NULL};
  resize_job job = {.eval = &eval, .rank = x->shape.rank};
  read_attributes(&job);
  if (job.mode != NEAREST || job.coordinates == CROP ||
      read_axes(&job) != PPH_OK)
    return false;
  for (int32_t i = 0; i < job.rank; i++)
    if (!axis_repeats(&job, &job.axes[i], &factors[i]))
      return false;
  return true;
}
