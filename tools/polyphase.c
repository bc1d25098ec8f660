/* The command: a table of commands. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "options.h"

#define SESSION_OPTIONS                                                        \
  " json threads engine accuracy cpu polyphase no-optimize dump max-memory "   \
  "constants method "

static const tool_command commands[] = {
    {"run",
     "MODEL [PICTURE] [--input NAME=FILE]... [-o FILE]\n"
     "           [--output-dir DIR] [--steps [--feed OUTPUT=INPUT]...]",
     "Runs a model once. A picture (PNG or JPEG) serves a model with one\n"
     "picture input; other inputs are files. Without -o or --output-dir\n"
     "a summary of the outputs is printed.",
     SESSION_OPTIONS " input steps feed output output-dir scale mean std rate "
                     "tune tune-file ", 1,
     2, cmd_run},
    {"check", "MODEL_A [MODEL_B] [--input NAME=FILE.npy]...",
     "Runs two models on the same inputs (random ones where none are given)\n"
     "and compares every output element: |a-b| <= atol + rtol*|b| +\n"
     "ptol*max|b|. Exit 0 when they agree, 1 when not. One model alone is\n"
     "compared with the stored outputs of --expect; without, with itself as\n"
     "it is in the file, computed by the reference engine; a bundle (.bpte)\n"
     "with the outputs of its own test cases, if no input is given.",
     SESSION_OPTIONS " input steps feed shape expect atol rtol ptol "
                     "tune tune-file ", 1, 2, cmd_check},
    {"info", "MODEL [--shape NAME=1x3x64x64]...",
     "Prints inputs, outputs, and for every upsampling node what it becomes\n"
     "and why; with --json all nodes. Of an ExecuTorch file (.pte, .bpte,\n"
     ".ptd): methods, upsampling nodes at the declared sizes, operators,\n"
     "delegates, constants, state, warnings; with --shape, --dump or another\n"
     "option about the plan the same as of ONNX.",
     SESSION_OPTIONS " input shape ", 1, 1, cmd_info},
    {"bench", "MODEL | --op DESCRIPTOR",
     "Measures the time per node of a model, or every algorithm that runs\n"
     "one operator, each verified before it is timed and all interleaved.",
     SESSION_OPTIONS " input shape op compare seconds tune tune-file ", 0, 1,
     cmd_bench},
    {"compile", "MODEL -o MODEL.pte [--shape NAME=1x3x64x64]...",
     "Writes a program for ExecuTorch: one delegate for its XNNPACK backend,\n"
     "with transposed convolutions as phases and others as minimal filtering\n"
     "where that is faster. MODEL is an ONNX file or a method of a .pte.\n"
     "Shapes are those of the file or of --shape, where a range leaves a\n"
     "length open: phases stay with one such length (two: transposed\n"
     "convolutions stay), and nothing is filtered. Exit 4 names nodes that\n"
     "have no form.",
     " output external-constants shape polyphase accuracy max-memory constants "
     "method ",
     1, 1, cmd_compile},
    {"optimize", "IN.pte -o OUT.pte [--constants FILE.ptd]...",
     "Rewrites an ExecuTorch program (.pte, .bpte) for released runtimes:\n"
     "in its XNNPACK delegates transposed convolutions become phases and\n"
     "others minimal filtering where that is faster (docs/optimize.md),\n"
     "transposes that cancel go, nearest upsampling moves in.\n"
     "Inputs, outputs and state stay the same. Tells what was changed and\n"
     "what was left, and why. What did not change is copied.",
     " output constants constants-out polyphase accuracy max-memory ", 1, 1,
     cmd_optimize},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void print_overview(FILE *file) {
  fprintf(file, "usage: polyphase COMMAND ...\n\n"
                "Runs neural nets that upsample fast on CPUs.\n\ncommands:\n");
  for (int i = 0; i < COMMANDS; i++)
    fprintf(file, "  %-8s %s\n", commands[i].name, commands[i].arguments);
  fprintf(file,
          "\npolyphase COMMAND --help tells more; polyphase --version.\n"
          "Exit: 0 done, 1 the answer is no, 2 bad usage, 3 bad model or "
          "file,\n4 unsupported, 5 out of memory or over a limit.\n");
}

static int print_version(void) {
  printf("polyphase %s\n", pph_version());
  return EXIT_DONE;
}

static int run_command(const tool_command *command, int argc, char **argv) {
  tool_options options;
  if (!tool_options_parse(command, argc, argv, &options))
    return EXIT_USAGE;
  if (options.help) {
    tool_options_print_help(command);
    return EXIT_DONE;
  }
  if (options.version)
    return print_version();
  return command->run(&options);
}

static int print_help_of(const char *name) {
  for (int i = 0; name && i < COMMANDS; i++)
    if (strcmp(name, commands[i].name) == 0) {
      tool_options_print_help(&commands[i]);
      return EXIT_DONE;
    }
  print_overview(stdout);
  return EXIT_DONE;
}

static int dispatch(int argc, char **argv) {
  if (argc < 2) {
    print_overview(stderr);
    return EXIT_USAGE;
  }
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
    return print_help_of(NULL);
  if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-v") == 0)
    return print_version();
  for (int i = 0; i < COMMANDS; i++)
    if (strcmp(argv[1], commands[i].name) == 0)
      return run_command(&commands[i], argc - 1, argv + 1);
  if (strcmp(argv[1], "help") == 0)
    return print_help_of(argc > 2 ? argv[2] : NULL);
  fprintf(stderr, "polyphase: unknown command \"%s\", must be one of", argv[1]);
  for (int i = 0; i < COMMANDS; i++)
    fprintf(stderr, " %s", commands[i].name);
  fprintf(stderr, "; try polyphase --help\n");
  return EXIT_USAGE;
}

/* What a command prints is its result: one that did not arrive is none. */
static int finish_output(int code) {
  pph_error error = {0};
  bool written = !ferror(stdout);
  errno = 0;
  if (fflush(stdout) == 0 && written)
    return code;
  pph_fail(&error, PPH_IO_FAILED, "standard output", "cannot be written%s%s",
           errno ? ": " : "", errno ? strerror(errno) : "");
  int failed = tool_fail(&error);
  return code == EXIT_DONE || code == EXIT_NO ? failed : code;
}

int main(int argc, char **argv) {
  return finish_output(dispatch(argc, argv));
}
