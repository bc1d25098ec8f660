#include "runtime/tune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/native_conv.h"
#include "base/checked.h"
#include "base/cpu.h"
#include "base/fail.h"
#include "polyphase/version.h"
#include "runtime/tune_table.h"

/* Microseconds. A node has rounds until ENOUGH, further ones up to ROUNDS until
   NODE_BUDGET, and at least two unless it is very large. After PLAN_BUDGET
   costs decide. */
#define ENOUGH 20e3
#define NODE_BUDGET 150e3
#define LARGE 750e3
#define PLAN_BUDGET 60e6

/* What another must be faster by than the costs' choice: a part of the time and
   microseconds. Measured times differ by so much from run to run. */
#define LEAST_PART 0.03
#define LEAST_GAIN 0.3

enum {
  ROUNDS = 9,
  MACHINE = 192,
  CANDIDATES = PPH_CONV_CHOICES + 1 /* XNNPACK's */
};

struct pph_tuner {
  pph_heap *heap;
  pph_tune_table table;
  char *path;            /* NULL: nothing is kept */
  char machine[MACHINE]; /* what every key begins with */
  void (*progress)(void *context, uint32_t done, uint32_t nodes);
  void *progress_context;
  /* Of the plan that is being made. */
  double spent;
  uint32_t measured, equal, remembered;
};

/* A way to run a node. */
typedef struct candidate {
  char name[PPH_TUNE_CHOICE_BYTES];
  pph_step step; /* prepared when `ready` */
  bool ready, runs;
  double best;
} candidate;

/* What the candidates of a node run on. */
typedef struct bench {
  pph_heap *heap;
  const void **inputs;
  void **outputs;
  void **blocks; /* by us */
  uint32_t block_count;
  void *workspace;
} bench;

static bool make_folder(const char *path) {
  struct stat facts;
  return mkdir(path, 0777) == 0 ||
         (stat(path, &facts) == 0 && S_ISDIR(facts.st_mode));
}

/* ~/.cache/polyphase/tune, with its folders; false when there is no place. */
static bool find_usual_path(char *path, size_t size) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  bool is_set = cache && cache[0] == '/';
  if (!is_set && !(home && home[0] == '/'))
    return false;
  int length = is_set ? snprintf(path, size, "%s", cache)
                      : snprintf(path, size, "%s/.cache", home);
  if (length < 0 || (size_t)length + sizeof "/polyphase/tune" > size ||
      !make_folder(path))
    return false;
  strcat(path, "/polyphase");
  if (!make_folder(path))
    return false;
  strcat(path, "/tune");
  return true;
}

static pph_status set_path(pph_tuner *tuner, const char *given,
                           pph_error *error) {
  char usual[4096];
  if (!given && !find_usual_path(usual, sizeof usual))
    return PPH_OK;
  given = given ? given : usual;
  size_t bytes = strlen(given) + 1;
  tuner->path = pph_heap_allocate(tuner->heap, bytes, 1);
  if (!tuner->path)
    return pph_fail_memory(error);
  memcpy(tuner->path, given, bytes);
  return pph_tune_table_read(&tuner->table, tuner->path, error);
}

/* A key is printable and has no " = ". */
static void describe_machine(pph_tuner *tuner,
                             const pph_session_options *options) {
  char name[96];
  pph_cpu_describe(name, sizeof name);
  for (char *c = name; *c; c++)
    if (*c < ' ' || *c > '~' || *c == '=' || *c == ';')
      *c = ' ';
  snprintf(tuner->machine, sizeof tuner->machine, "%s; %s; %s; %u threads; %s",
           pph_version(), name, pph_cpu_name(pph_cpu_choose(options->cpu)),
           pph_cpu_threads(options->threads),
           options->engine == PPH_ENGINE_NATIVE ? "native" : "auto");
}

pph_status pph_tuner_create(const pph_session_options *options, pph_heap *heap,
                            pph_tuner **tuner, pph_error *error) {
  *tuner = NULL;
  pph_tuner *made = pph_heap_allocate_zeroed(heap, 1, sizeof *made);
  if (!made)
    return pph_fail_memory(error);
  made->heap = heap;
  made->progress = options->tune_progress;
  made->progress_context = options->progress_context;
  pph_tune_table_init(&made->table, heap);
  describe_machine(made, options);
  pph_status status = set_path(made, options->tune_file, error);
  if (status != PPH_OK) {
    pph_tuner_destroy(made);
    return status;
  }
  *tuner = made;
  return PPH_OK;
}

void pph_tuner_destroy(pph_tuner *tuner) {
  if (!tuner)
    return;
  pph_tune_table_clear(&tuner->table);
  pph_heap_release(tuner->heap, tuner->path);
  pph_heap_release(tuner->heap, tuner);
}

void pph_tuner_begin(pph_tuner *tuner) {
  tuner->spent = 0;
  tuner->measured = tuner->equal = tuner->remembered = 0;
}

void pph_tuner_end(pph_tuner *tuner, pph_program *program) {
  pph_error unwritten = {0};
  program->measured = tuner->measured;
  program->equal = tuner->equal;
  program->remembered = tuner->remembered;
  uint32_t fresh = pph_tune_table_count_fresh(&tuner->table);
  if (fresh && (!tuner->path || pph_tune_table_write(&tuner->table, tuner->path,
                                                     &unwritten) != PPH_OK))
    program->unwritten = fresh;
}

void pph_tuner_tell(const pph_tuner *tuner, uint32_t done, uint32_t nodes) {
  if (tuner->progress)
    tuner->progress(tuner->progress_context, done, nodes);
}

static void add(candidate *all, uint32_t *count, const pph_step *step,
                const pph_backend *backend, const char *algorithm) {
  candidate *one = &all[(*count)++];
  *one = (candidate){.step = *step, .best = INFINITY};
  one->step.backend = backend;
  one->step.algorithm = backend->name;
  one->step.wanted = algorithm;
  snprintf(one->name, sizeof one->name, "%s%s%s", backend->name,
           algorithm ? "." : "", algorithm ? algorithm : "");
}

/* All ways to run the node within the accuracy, the one that costs decide for
   first. `exact` promises an order of sums, which only the native ones have
   among themselves: its backend stays. */
static uint32_t list_candidates(const pph_native_ranking *ranking,
                                pph_engine engine, const pph_step *step,
                                candidate *all) {
  const pph_backend *other = &pph_backend_xnnpack;
  bool exact = ranking->accuracy == PPH_ACCURACY_EXACT;
  bool other_first = step->backend == other;
  uint32_t count = 0;
  if (other_first)
    add(all, &count, step, other, NULL);
  if (other_first && exact)
    return count;
  for (uint32_t i = 0; i < ranking->count; i++)
    add(all, &count, step, &pph_backend_native, ranking->choices[i].algorithm);
  if (!other_first && !exact && engine == PPH_ENGINE_AUTO &&
      other->supports(step->graph, step->node))
    add(all, &count, step, other, NULL);
  return count;
}

/* What the model expects to take so long is not worth a try: it is wrong by
   less. */
static bool is_hopeless(const pph_native_ranking *ranking,
                        const candidate *one) {
  enum { FACTOR = 4 };
  for (uint32_t i = 0; one->step.wanted && i < ranking->count; i++)
    if (ranking->choices[i].algorithm == one->step.wanted)
      return ranking->choices[i].us > FACTOR * ranking->choices[0].us;
  return false;
}

static void prepare(pph_backend_context *context, candidate *one) {
  pph_error error = {0};
  one->ready = one->runs =
      one->step.backend->prepare(context, &one->step, &error) == PPH_OK;
}

static void release(pph_backend_context *context, candidate *one) {
  if (one->ready)
    one->step.backend->release(context, &one->step);
  one->ready = one->runs = false;
}

/* A block for a value, with numbers between -1 and 1, and room behind it. */
static pph_status make_block(bench *b, const pph_value *value, void **block,
                             pph_error *error) {
  enum { SLACK = 64 };
  size_t bytes, count;
  uint32_t state = 1;
  if (!pph_shape_bytes(&value->shape, value->type, &bytes) ||
      !pph_shape_count(&value->shape, &count) || bytes > SIZE_MAX - SLACK)
    return pph_fail(error, PPH_LIMIT_EXCEEDED, value->name, "is too large");
  *block = pph_heap_allocate(b->heap, bytes + SLACK, 1);
  if (!*block)
    return pph_fail_memory(error);
  b->blocks[b->block_count++] = *block;
  memset((char *)*block + bytes, 0, SLACK);
  float *floats = *block;
  for (size_t i = 0; value->type == PPH_F32 && i < count; i++) {
    state = state * 1664525u + 1013904223u;
    floats[i] = (float)(int32_t)state * 0x1p-31f;
  }
  return PPH_OK;
}

static pph_status fill_bench(bench *b, const pph_step *step, size_t workspace,
                             pph_error *error) {
  const pph_node *node = step->node;
  for (uint32_t i = 0; i < node->input_count; i++) {
    const pph_value *value = pph_node_find_input(step->graph, node, i);
    if (!value)
      continue;
    b->inputs[i] = value->data;
    if (value->data)
      continue;
    void *block;
    PPH_TRY(make_block(b, value, &block, error));
    b->inputs[i] = block;
  }
  for (uint32_t i = 0; i < node->output_count; i++)
    PPH_TRY(make_block(b, pph_graph_value(step->graph, node->outputs[i]),
                       &b->outputs[i], error));
  b->workspace = pph_heap_allocate(b->heap, workspace + PPH_ALIGNMENT, 1);
  if (!b->workspace)
    return pph_fail_memory(error);
  b->blocks[b->block_count++] = b->workspace;
  return PPH_OK;
}

static pph_status make_bench(bench *b, pph_heap *heap, const pph_step *step,
                             size_t workspace, pph_error *error) {
  size_t inputs = step->node->input_count, outputs = step->node->output_count;
  *b = (bench){.heap = heap};
  b->inputs = pph_heap_allocate_zeroed(heap, inputs + 1, sizeof *b->inputs);
  b->outputs = pph_heap_allocate_zeroed(heap, outputs + 1, sizeof *b->outputs);
  b->blocks =
      pph_heap_allocate_zeroed(heap, inputs + outputs + 1, sizeof *b->blocks);
  if (!b->inputs || !b->outputs || !b->blocks)
    return pph_fail_memory(error);
  return fill_bench(b, step, workspace, error);
}

static void clear_bench(bench *b) {
  for (uint32_t i = 0; i < b->block_count; i++)
    pph_heap_release(b->heap, b->blocks[i]);
  pph_heap_release(b->heap, b->blocks);
  pph_heap_release(b->heap, b->outputs);
  pph_heap_release(b->heap, b->inputs);
}

static void time_once(const bench *b, pph_backend_context *context,
                      candidate *one) {
  pph_run_pointers pointers = {b->inputs, b->outputs, b->workspace};
  pph_error error = {0};
  double start = pph_program_now();
  one->runs = one->step.backend->run(context, &one->step, &pointers, &error) ==
              PPH_OK;
  double us = pph_program_now() - start;
  one->best = one->runs && us < one->best ? us : one->best;
}

static bool goes_on(int round, double spent) {
  if (round < 2)
    return round == 0 || spent < LARGE;
  return spent < (round < ROUNDS ? NODE_BUDGET : ENOUGH);
}

/* Rounds over all, so that what disturbs one disturbs the others. What is twice
   as slow as the fastest is out of it; the first round, when memory and code
   are cold, only tells what is far off. */
static void time_all(const bench *b, pph_backend_context *context,
                     candidate *all, uint32_t count) {
  double start = pph_program_now();
  for (int round = 0; goes_on(round, pph_program_now() - start); round++) {
    double least = INFINITY, factor = round == 0 ? 8 : 2;
    for (uint32_t i = 0; i < count; i++) {
      if (all[i].runs)
        time_once(b, context, &all[i]);
      least = fmin(least, all[i].best);
    }
    for (uint32_t i = 0; i < count; i++)
      all[i].runs &= all[i].best <= factor * least;
  }
}

/* The first stays unless another is clearly faster: what is measured differs
   from time to time. NULL when none ran. */
static candidate *find_fastest(candidate *all, uint32_t count) {
  candidate *fastest = NULL;
  for (uint32_t i = 0; i < count; i++) {
    if (!all[i].ready || isinf(all[i].best))
      continue;
    double bar = fastest ? fastest->best : INFINITY;
    if (fastest == &all[0])
      bar -= fmax(LEAST_PART * bar, LEAST_GAIN);
    if (all[i].best < bar)
      fastest = &all[i];
  }
  return fastest;
}

/* Prepares all that may be fastest and times them; NULL: none could be. */
static candidate *measure(pph_tuner *tuner, const pph_native_ranking *ranking,
                          pph_backend_context *context, candidate *all,
                          uint32_t count) {
  bench b;
  pph_error error = {0};
  size_t workspace = 0;
  double start = pph_program_now();
  for (uint32_t i = 0; i < count; i++) {
    if (i == 0 || !is_hopeless(ranking, &all[i]))
      prepare(context, &all[i]);
    if (all[i].ready && all[i].step.workspace > workspace)
      workspace = all[i].step.workspace;
  }
  pph_status status =
      make_bench(&b, tuner->heap, &all[0].step, workspace, &error);
  if (status == PPH_OK)
    time_all(&b, context, all, count);
  clear_bench(&b);
  tuner->spent += pph_program_now() - start;
  return status == PPH_OK ? find_fastest(all, count) : NULL;
}

static candidate *recall(const char *name, pph_backend_context *context,
                         candidate *all, uint32_t count) {
  for (uint32_t i = 0; name && i < count; i++)
    if (strcmp(all[i].name, name) == 0) {
      prepare(context, &all[i]);
      return all[i].ready ? &all[i] : NULL;
    }
  return NULL;
}

static pph_status choose(pph_tuner *tuner, const pph_native_ranking *ranking,
                         pph_backend_context *context, candidate *all,
                         uint32_t count, candidate **chosen,
                         pph_error *error) {
  char key[PPH_TUNE_KEY_BYTES];
  snprintf(key, sizeof key, "%s; %s", tuner->machine, ranking->text);
  *chosen = recall(pph_tune_table_find(&tuner->table, key), context, all,
                   count);
  if (*chosen) {
    bool is_fresh = pph_tune_table_is_fresh(&tuner->table, key);
    ++*(is_fresh ? &tuner->equal : &tuner->remembered);
    return PPH_OK;
  }
  if (tuner->spent > PLAN_BUDGET)
    return PPH_OK;
  candidate *fastest = measure(tuner, ranking, context, all, count);
  if (!fastest)
    return PPH_OK;
  PPH_TRY(pph_tune_table_set(&tuner->table, key, fastest->name, error));
  tuner->measured++;
  *chosen = fastest;
  return PPH_OK;
}

pph_status pph_tuner_prepare(pph_tuner *tuner, pph_engine engine,
                             pph_backend_context *context, pph_step *step,
                             bool *prepared, pph_error *error) {
  pph_native_ranking ranking;
  candidate all[CANDIDATES], *chosen = NULL;
  *prepared = false;
  if ((engine != PPH_ENGINE_AUTO && engine != PPH_ENGINE_NATIVE) ||
      !pph_native_conv_supports(step->graph, step->node))
    return PPH_OK;
  /* What native cannot do after all, costs may have left to XNNPACK. */
  pph_error refused = {0};
  if (pph_native_conv_rank(context, step->graph, step->node, &ranking,
                           &refused) != PPH_OK)
    return PPH_OK;
  uint32_t count = list_candidates(&ranking, engine, step, all);
  if (count < 2)
    return PPH_OK;
  pph_status status = choose(tuner, &ranking, context, all, count, &chosen,
                             error);
  for (uint32_t i = 0; i < count; i++)
    if (&all[i] != chosen)
      release(context, &all[i]);
  if (chosen)
    *step = chosen->step;
  *prepared = chosen != NULL;
  return status;
}
