/* What the commands print: tables for people, JSON for programs. */
#ifndef TOOLS_REPORT_H
#define TOOLS_REPORT_H

#include "operator_bench.h"
#include "polyphase/polyphase.h"

typedef struct report_step {
  pph_step_info info;
  double us, gflops;
} report_step;

typedef struct report_bench {
  const char *model;
  uint32_t threads;
  double us, us_min;
  pph_plan_info plan;
  const report_step *steps;
  uint32_t step_count;
} report_bench;

void report_print_bench(const report_bench *bench, bool json);
void report_print_operator(const operator_bench *bench, bool json);

/* An upsampling node before and after. */
typedef struct report_compared {
  const char *name, *kind, *lowered, *reason;
  double before, after; /* microseconds */
} report_compared;

void report_begin_compared(bool json);
void report_print_compared(const report_compared *row, bool json);
void report_end_compared(const report_compared *whole, bool json);

/* "[1,3,height,<=64,?]": an open dimension by its name, bound, or neither. */
const char *report_shape_text(const pph_value_info *info, char *text,
                              size_t size);

/* "TITLE NAME SHAPE" of every input that a plan was made for. */
void report_print_shapes(const pph_model *model, const pph_tensor *inputs,
                         const char *title);

/* What became of every upsampling node of the current plan, and why. */
void report_print_notes(const pph_session *session);

/* info: the model's inputs and outputs and the current plan of a session, made
   for the shapes of `inputs`. */
void report_print_info(const pph_model *model, const pph_tensor *inputs,
                       const pph_session *session, bool json);

#endif
