/* The command's options: one table, of which each command takes some. */
#ifndef TOOLS_OPTIONS_H
#define TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "polyphase/polyphase.h"

/* Exit codes. */
enum {
  EXIT_DONE = 0,
  EXIT_NO = 1,
  EXIT_USAGE = 2,
  EXIT_BAD_FILE = 3,
  EXIT_UNSUPPORTED = 4,
  EXIT_LIMIT = 5
};

enum { MAX_PAIRS = 64 };

/* NAME=VALUE of an option that may be repeated. */
typedef struct option_pairs {
  const char *texts[MAX_PAIRS];
  uint32_t count;
} option_pairs;

/* What is done to a picture's 0..255 before it enters the model:
   (x * scale - mean[c]) / deviation[c]. */
typedef struct picture_range {
  float scale;
  float mean[4], deviation[4];
} picture_range;

typedef struct tool_options {
  pph_session_options session;
  pph_limits limits;
  bool help, version, json;
  const char *given[64]; /* names of the options that are, each once */
  uint32_t given_count;
  bool plans;   /* an option about the plan of a session is given */
  bool steps;   /* run, check: once per step of the inputs */
  bool compare; /* bench: beside XNNPACK's own deconvolution */
  option_pairs inputs; /* --input NAME=FILE.npy */
  option_pairs feeds; /* --feed OUTPUT=INPUT */
  option_pairs expected; /* --expect NAME=FILE.npy */
  option_pairs shapes; /* --shape NAME=1x3x64x64 */
  option_pairs constants; /* --constants FILE.ptd */
  const char *output, *output_dir, *op, *method;
  const char *external_constants; /* compile: a .ptd to write */
  option_pairs constants_out; /* optimize: the same, one per --constants */
  picture_range range;
  uint32_t rate; /* run: samples a second of a .wav; 0: not given */
  double seconds;   /* bench: time to spend per candidate */
  double absolute, relative, of_peak; /* check: tolerances */
  /* What is left after the options. */
  char **arguments;
  int argument_count;
} tool_options;

/* One command of the table in polyphase.c. `accepts` lists option names, each
   between spaces. */
typedef struct tool_command {
  const char *name, *arguments, *summary, *accepts;
  int min_arguments, max_arguments;
  int (*run)(const tool_options *options);
} tool_command;

/* Parses argv (argv[0] is the command's name). On bad usage prints why to
   stderr and returns false. */
bool tool_options_parse(const tool_command *command, int argc, char **argv,
                        tool_options *options);

/* The first given option that is one of `names`, each between spaces; NULL:
   none of them is. */
const char *tool_options_find_given(const tool_options *options,
                                    const char *names);

/* Usage, arguments and accepted options, to stdout. */
void tool_options_print_help(const tool_command *command);

/* pph_model_load within the options' limits, with --method and --constants. */
PPH_NODISCARD pph_status tool_load_model(const tool_options *options,
                                         const char *path, pph_model **model,
                                         pph_error *error);

/* "WHERE: MESSAGE", where the library's fields are called as our options. */
enum { TOOL_MESSAGE = sizeof(pph_error) + 64 };
void tool_explain(const pph_error *error, char text[TOOL_MESSAGE]);

/* Prints "polyphase: error: WHERE: MESSAGE" and gives the exit code that goes
   with the status. */
int tool_fail(const pph_error *error);

/* The commands. */
int cmd_run(const tool_options *options);
int cmd_check(const tool_options *options);
int cmd_info(const tool_options *options);
int cmd_bench(const tool_options *options);
int cmd_compile(const tool_options *options);
int cmd_optimize(const tool_options *options);

#endif
