/* Sessions: running a model. */
#ifndef POLYPHASE_SESSION_H
#define POLYPHASE_SESSION_H

#include <stdbool.h>
#include <stdio.h>

#include "polyphase/model.h"
#include "polyphase/operator.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What computes the nodes. Each falls back to `native` for moving data and to
   `reference` for what it has no kernel for; pph_session_step tells. */
typedef enum pph_engine {
  PPH_ENGINE_AUTO = 0,
  PPH_ENGINE_NATIVE = 1,
  PPH_ENGINE_XNNPACK = 2,
  PPH_ENGINE_REFERENCE = 3 /* sums in double; slow; the judge of the others */
} pph_engine;

/* When transposed convolutions become phases. */
typedef enum pph_lowering {
  PPH_LOWERING_AUTO = 0,   /* where it is expected to be faster */
  PPH_LOWERING_ALWAYS = 1, /* wherever it is exact */
  PPH_LOWERING_NEVER = 2
} pph_lowering;

/* Set by pph_session_options_init, then change fields. */
typedef struct pph_session_options {
  size_t struct_size;
  pph_engine engine;
  pph_accuracy accuracy;
  pph_cpu cpu;
  pph_lowering lowering;
  bool optimize;     /* default true; false runs the graph as it is */
  uint32_t threads;  /* default 1; 0: one per processor; at most 256, of which
                        no more run than create may use processors */
  uint32_t plans;    /* plans (one per set of input shapes) kept; default 4 */
  const pph_limits *limits; /* NULL: the model's; heap_bytes is read, at
                               create */
  const char *dump;  /* a pass's name or "all": print the graph's text form
                        after it; NULL: nothing. Must outlive the session. */
  FILE *dump_file;   /* where to; NULL: stderr */
  /* Called by run in the caller's thread after every step, with how many of
     the plan's steps are done; NULL: not. It must not use the session. */
  void (*progress)(void *context, uint32_t done, uint32_t steps);
  void *progress_context;
  /* Default false: each convolution runs by the algorithm that a cost model
     expects to be fastest. True: when a plan is made, each convolution whose
     algorithm is open (engines auto and native) takes what was measured to be
     fastest here, among those of the accuracy: remembered, or timed now, which
     takes up to about a second a node and a minute a plan (then costs decide
     again). With `exact` results are the same bits as without; otherwise they
     are within the accuracy, but may then differ between machines, numbers of
     threads and runs. */
  bool tune;
  /* Where choices are remembered: a text file that is read at create and
     written when a plan measured some, as a whole (a file beside it is renamed
     onto it), so that sessions and processes may share it. What is not
     understood in it is left out, but a file that holds no choice at all is
     never replaced; it keeps the last 4096. No failure to read or write it is
     an error (pph_plan_info.unwritten). NULL:
     $XDG_CACHE_HOME/polyphase/tune, or ~/.cache/polyphase/tune, with folders
     made; where neither variable is set the session alone remembers. Read at
     create only; not "". */
  const char *tune_file;
  /* Called by prepare and run in the caller's thread while they make a plan
     with `tune`, after every node, with `progress_context`; NULL: not. It must
     not use the session. */
  void (*tune_progress)(void *context, uint32_t done, uint32_t nodes);
} pph_session_options;

void pph_session_options_init(pph_session_options *options);

/* A session may be used by one thread at a time; sessions are independent. */
typedef struct pph_session pph_session;

/* `options` may be NULL. *session belongs to the caller; NULL on failure. */
PPH_NODISCARD pph_status pph_session_create(const pph_model *model,
                                            const pph_session_options *options,
                                            pph_session **session,
                                            pph_error *error);

/* NULL is allowed. */
void pph_session_destroy(pph_session *session);

/* Plans for the inputs' shapes without running: `inputs` as for run, their
   data may be NULL. Makes that plan the current one. */
PPH_NODISCARD pph_status pph_session_prepare(pph_session *session,
                                             const pph_tensor *inputs,
                                             uint32_t input_count,
                                             pph_error *error);

/* Runs the model once. `inputs` in the model's order, all of them, types as
   declared, data not NULL unless empty, kept by the caller and not written.
   `outputs` (output_count of the model) are filled in: their data belongs to
   the session and stays valid until its next run, prepare or destroy. A new
   combination of input shapes is planned first; repeated ones cost nothing.
   On failure outputs are zeroed. Errors: PPH_INVALID_ARGUMENT (count, type or
   shape of an input: message names it, found and legal), else as for load. */
PPH_NODISCARD pph_status pph_session_run(pph_session *session,
                                         const pph_tensor *inputs,
                                         uint32_t input_count,
                                         pph_tensor *outputs,
                                         uint32_t output_count,
                                         pph_error *error);

/* Puts the state of a model that has any (an ExecuTorch program with buffers
   that it writes) back to what it was at create; else a session keeps it from
   run to run, and a run that fails leaves it as it was. NULL is allowed. */
void pph_session_reset(pph_session *session);

/* One step of the current plan. Texts belong to the session and are valid as
   long as the plan is. */
typedef struct pph_step_info {
  const char *name;      /* the node's, or its first output's */
  const char *kind;      /* "Conv" */
  const char *backend;   /* "xnnpack" */
  const char *algorithm; /* "xnnpack.convolution"; "native.gather+add+prelu":
                            with what was fused; "alias" costs nothing */
  pph_shape output_shape;
  double flops;          /* useful ones, 0 where not counted */
  double microseconds;   /* of the last run; 0 before */
} pph_step_info;

/* What became of an upsampling node (transposed convolution, resize, depth to
   space). */
typedef struct pph_note_info {
  const char *name;
  const char *kind;
  const char *lowered; /* "polyphase, depthwise, 4 phases", or NULL */
  const char *reason;  /* why */
} pph_note_info;

typedef struct pph_plan_info {
  uint32_t steps, notes;
  uint32_t transposes; /* layout changes that move data */
  uint64_t peak_bytes; /* most memory the session's heap has held */
  uint64_t block_bytes; /* the one block that activations live in */
  /* With pph_session_options.tune, of this plan: convolutions whose algorithm
     was timed for it; that took the choice of an equal one that this session
     has timed and not yet written; that took a remembered choice; and choices
     that could not be written to the file. */
  uint32_t measured, equal, remembered, unwritten;
} pph_plan_info;

/* About the current plan; zeros before the first prepare or run, and for
   NULL. */
pph_plan_info pph_session_plan(const pph_session *session);
/* `index` below the plan's count; else all fields zero. */
pph_step_info pph_session_step(const pph_session *session, uint32_t index);
pph_note_info pph_session_note(const pph_session *session, uint32_t index);

#ifdef __cplusplus
}
#endif

#endif
