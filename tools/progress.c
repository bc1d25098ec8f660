#include "progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WIDTH = 40 };

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

void progress_begin(progress *bar, const char *label, uint64_t total) {
  const char *terminal = getenv("TERM");
  *bar = (progress){.label = label, .total = total, .start = now()};
  bar->terminal = isatty(STDERR_FILENO) && terminal &&
                  strcmp(terminal, "dumb") != 0;
}

static void draw(const progress *bar, uint64_t done, double seconds) {
  char line[WIDTH + 1];
  double share = bar->total ? (double)done / (double)bar->total : 0;
  share = share > 1 ? 1 : share;
  int full = (int)(share * WIDTH);
  for (int i = 0; i < WIDTH; i++)
    line[i] = i < full ? '#' : '.';
  line[WIDTH] = 0;
  if (!bar->total)
    fprintf(stderr, "\r\033[K%s %.0f s", bar->label, seconds);
  else if (full > 0)
    fprintf(stderr, "\r\033[K%s [%s] %3.0f%%, %.0f s left", bar->label, line,
            100 * share, share < 1 ? seconds / share - seconds : 0.0);
  else
    fprintf(stderr, "\r\033[K%s [%s]", bar->label, line);
  fflush(stderr);
}

void progress_update(progress *bar, uint64_t done) {
  if (!bar->terminal)
    return;
  double time = now();
  if (time - bar->start < 1 || time - bar->drawn < 0.1)
    return;
  draw(bar, done, time - bar->start);
  bar->drawn = time;
  bar->visible = true;
}

void progress_end(progress *bar) {
  if (bar->visible)
    fputs("\r\033[K", stderr);
  bar->visible = false;
}
