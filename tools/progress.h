/* A progress bar on stderr: only on a terminal, and only for work that takes
   more than a second. */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
  const char *label;
  uint64_t total;
  double start, drawn; /* seconds */
  bool terminal, visible;
} progress;

/* `label` is kept. `total` is what `done` reaches at the end; 0: unknown. */
void progress_begin(progress *bar, const char *label, uint64_t total);
/* Cheap: draws at most ten times a second. */
void progress_update(progress *bar, uint64_t done);
/* Takes the bar off the screen. */
void progress_end(progress *bar);

#endif
