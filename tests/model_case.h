/* Running a model file with given inputs and judging its outputs, over every
   engine, optimized or not. */
#ifndef TESTS_MODEL_CASE_H
#define TESTS_MODEL_CASE_H

#include <stdbool.h>

#include "polyphase/polyphase.h"

enum { CASE_MAX = 32 };

typedef struct model_case {
  const char *path; /* the model */
  pph_tensor inputs[CASE_MAX], outputs[CASE_MAX]; /* data by malloc */
  uint32_t input_count, output_count;
  double absolute, relative; /* tolerance per element */
} model_case;

/* One way of running. */
typedef struct model_way {
  pph_engine engine;
  bool optimize;
  pph_lowering lowering;
  uint32_t threads;
} model_way;

/* Runs the case one way and fails the test at the first wrong element, naming
   case, way, output and place. */
void model_case_check(const model_case *one, const model_way *way);

/* Every way that the engines, optimize, lowering and thread counts make. */
void model_case_check_all(const model_case *one);

/* A model that is loaded, on every engine, optimized and not. */
void model_case_check_model(const model_case *one, const pph_model *model);

void model_case_clear(model_case *one);

#endif
