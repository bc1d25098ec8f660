#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/fail.h"
#include "picture.h"
#include "pte_file.h"

typedef bool (*apply_fn)(tool_options *options, const char *value);

static bool parse_number(const char *text, double low, double high,
                         double *number) {
  char *end;
  errno = 0;
  *number = strtod(text, &end);
  return end != text && *end == 0 && errno == 0 && *number >= low &&
         *number <= high;
}

/* The index of `value` among `names` (ends with NULL), or -1. */
static int find_name(const char *value, const char *const *names) {
  for (int i = 0; names[i]; i++)
    if (strcmp(value, names[i]) == 0)
      return i;
  return -1;
}

static bool apply_help(tool_options *options, const char *value) {
  (void)value;
  options->help = true;
  return true;
}

static bool apply_version(tool_options *options, const char *value) {
  (void)value;
  options->version = true;
  return true;
}

static bool apply_json(tool_options *options, const char *value) {
  (void)value;
  options->json = true;
  return true;
}

static bool apply_threads(tool_options *options, const char *value) {
  double threads;
  if (!parse_number(value, 0, PPH_MAX_THREADS, &threads) ||
      threads != floor(threads))
    return false;
  /* So that what is printed is what is used. */
  options->session.threads = pph_cpu_threads((uint32_t)threads);
  return true;
}

static bool apply_engine(tool_options *options, const char *value) {
  static const char *const names[] = {"auto", "native", "xnnpack", "reference",
                                      NULL};
  int index = find_name(value, names);
  options->session.engine = (pph_engine)(index < 0 ? 0 : index);
  return index >= 0;
}

static bool apply_accuracy(tool_options *options, const char *value) {
  static const char *const names[] = {"normal", "high", "exact", NULL};
  int index = find_name(value, names);
  options->session.accuracy = (pph_accuracy)(index < 0 ? 0 : index);
  return index >= 0;
}

static bool apply_cpu(tool_options *options, const char *value) {
  return pph_cpu_parse(value, &options->session.cpu);
}

static bool apply_polyphase(tool_options *options, const char *value) {
  static const char *const names[] = {"auto", "always", "never", NULL};
  int index = find_name(value, names);
  options->session.lowering = (pph_lowering)(index < 0 ? 0 : index);
  return index >= 0;
}

static bool apply_no_optimize(tool_options *options, const char *value) {
  (void)value;
  options->session.optimize = false;
  return true;
}

static bool apply_dump(tool_options *options, const char *value) {
  options->session.dump = value;
  return true;
}

static bool add_text(option_pairs *texts, const char *text) {
  if (texts->count == MAX_PAIRS || !text[0])
    return false;
  texts->texts[texts->count++] = text;
  return true;
}

static bool add_pair(option_pairs *pairs, const char *value) {
  return strchr(value, '=') && add_text(pairs, value);
}

static bool apply_input(tool_options *options, const char *value) {
  return add_pair(&options->inputs, value);
}

static bool apply_feed(tool_options *options, const char *value) {
  return add_pair(&options->feeds, value);
}

static bool apply_expect(tool_options *options, const char *value) {
  return add_pair(&options->expected, value);
}

static bool apply_shape(tool_options *options, const char *value) {
  return add_pair(&options->shapes, value);
}

static bool apply_output(tool_options *options, const char *value) {
  options->output = value;
  return value[0] != 0;
}

static bool apply_constants(tool_options *options, const char *path) {
  return add_text(&options->constants, path);
}

static bool apply_constants_out(tool_options *options, const char *path) {
  return add_text(&options->constants_out, path);
}

static bool apply_method(tool_options *options, const char *name) {
  options->method = name;
  return name[0] != 0;
}

static bool apply_output_dir(tool_options *options, const char *value) {
  options->output_dir = value;
  return value[0] != 0;
}

static bool apply_external(tool_options *options, const char *value) {
  options->external_constants = value;
  return value[0] != 0;
}

static bool apply_op(tool_options *options, const char *value) {
  options->op = value;
  return true;
}

static bool apply_scale(tool_options *options, const char *value) {
  double number;
  bool ok = parse_number(value, -1e9, 1e9, &number);
  options->range.scale = (float)number;
  return ok && options->range.scale != 0;
}

/* One number for all channels, or three or four, one each. */
static bool parse_channels(const char *value, float *channels) {
  int count = 0;
  while (count < 4) {
    char *end;
    channels[count++] = strtof(value, &end);
    if (end == value || !isfinite(channels[count - 1]))
      return false;
    value = end + 1;
    if (*end == 0)
      break;
    if (*end != ',')
      return false;
  }
  if (count == 2 || *(value - 1) != 0)
    return false;
  for (int i = count; i < 4; i++)
    channels[i] = channels[count == 1 ? 0 : count - 1];
  return true;
}

static bool apply_mean(tool_options *options, const char *value) {
  return parse_channels(value, options->range.mean);
}

static bool apply_std(tool_options *options, const char *value) {
  if (!parse_channels(value, options->range.deviation))
    return false;
  for (int i = 0; i < 4; i++)
    if (options->range.deviation[i] == 0)
      return false;
  return true;
}

static bool apply_rate(tool_options *options, const char *value) {
  double rate;
  if (!parse_number(value, 1, 768000, &rate) || rate != floor(rate))
    return false;
  options->rate = (uint32_t)rate;
  return true;
}

static bool apply_compare(tool_options *options, const char *value) {
  (void)value;
  options->compare = true;
  return true;
}

static bool apply_steps(tool_options *options, const char *value) {
  (void)value;
  options->steps = true;
  return true;
}

static bool apply_tune(tool_options *options, const char *value) {
  (void)value;
  options->session.tune = true;
  return true;
}

static bool apply_tune_file(tool_options *options, const char *value) {
  options->session.tune = true;
  options->session.tune_file = value;
  return value[0] != 0;
}

static bool apply_seconds(tool_options *options, const char *value) {
  return parse_number(value, 0.001, 3600, &options->seconds);
}

static bool apply_absolute(tool_options *options, const char *value) {
  return parse_number(value, 0, 1e30, &options->absolute);
}

static bool apply_relative(tool_options *options, const char *value) {
  return parse_number(value, 0, 1e30, &options->relative);
}

static bool apply_of_peak(tool_options *options, const char *value) {
  return parse_number(value, 0, 1e30, &options->of_peak);
}

static bool apply_max_memory(tool_options *options, const char *value) {
  double mebibytes;
  if (!parse_number(value, 1, 1e9, &mebibytes))
    return false;
  options->limits.heap_bytes = (uint64_t)(mebibytes * 1024 * 1024);
  return true;
}

/* What an option does to the rest of the command line. */
enum {
  MANY = 1, /* may be given several times */
  PLANS = 2 /* speaks of the plan that a session makes */
};

/* An option that means something else in another command has a row for each:
   `commands` lists the row's, each between spaces; NULL: all that accept the
   name. */
static const struct {
  const char *name, *argument;
  char letter; /* short form, or 0 */
  unsigned flags;
  const char *commands;
  apply_fn apply;
  const char *help;
} rows[] = {
    {"help", NULL, 'h', 0, NULL, apply_help, "this text"},
    {"version", NULL, 'v', 0, NULL, apply_version, "the version"},
    {"json", NULL, 0, 0, NULL, apply_json,
     "one JSON object instead of a table"},
    {"threads", "N", 't', PLANS, NULL, apply_threads,
     "threads, 1 to 256, at most one per processor; 0: one each (default 1)"},
    {"engine", "auto|native|xnnpack|reference", 0, PLANS, NULL, apply_engine,
     "what computes: native is our own kernels; auto (the default) takes for\n"
     "each node these or XNNPACK, as is expected to be faster; reference is\n"
     "plain loops with sums in double, whatever --accuracy and --cpu say:\n"
     "slow, the judge of the others, and what runs a node that an engine\n"
     "has no kernel for"},
    {"accuracy", "exact|high|normal", 0, 0, " compile optimize ",
     apply_accuracy,
     "convolutions by minimal filtering where that is faster: normal (the\n"
     "default) takes all filters, high those as accurate as direct sums,\n"
     "exact none"},
    {"accuracy", "exact|high|normal", 0, PLANS, NULL, apply_accuracy,
     "how accurate results must be: exact is direct algorithms only, with\n"
     "one order of summation; high allows E up to 4, as direct sums have;\n"
     "normal, the default, up to 24 (E: error / (2^-23 * sum |x||w|), the\n"
     "largest such sum within 8 input positions where tiles are filtered)"},
    {"cpu", "best|scalar|avx2|avx512|neon", 0, PLANS, NULL, apply_cpu,
     "turns our own kernels down to those instructions, or to the best below\n"
     "them that the processor has (default best); XNNPACK chooses its own"},
    {"polyphase", "auto|always|never", 0, 0, " optimize ", apply_polyphase,
     "when transposed convolutions become phases (default auto: where faster)"},
    {"polyphase", "auto|always|never", 0, PLANS, NULL, apply_polyphase,
     "when upsampling nodes become phases (default auto: where faster)"},
    {"no-optimize", NULL, 0, PLANS, NULL, apply_no_optimize,
     "take the graph as it is in the file"},
    {"dump", "PASS|all", 0, PLANS, NULL, apply_dump,
     "print the graph's text form to stderr after a pass\n"
     "(docs/passes.md has their names)"},
    {"input", "NAME=FILE.npy", 'i', MANY | PLANS, " info ", apply_input,
     "an input's shape and what depends on its values, by name or position\n"
     "(0=x.npy); once per input"},
    {"input", "NAME=FILE.npy", 'i', MANY | PLANS, NULL, apply_input,
     "an input, by name or position (0=x.npy); once per input; a .wav (mono)\n"
     "is a signal [..,1,samples]"},
    {"steps", NULL, 0, 0, NULL, apply_steps,
     "run once per step, the model keeping its state: an input given several\n"
     "times has a file per step, and one whose file has a dimension more than\n"
     "the model says has its steps in the first; what has one step is the\n"
     "same in all, a state too: see --feed. Outputs get the steps as first\n"
     "dimension, a .wav joins them"},
    {"feed", "OUTPUT=INPUT", 0, MANY, NULL, apply_feed,
     "with --steps: an output is this input at the next step (a state such as\n"
     "hn and h0 of a GRU), both by name or position; once per input. At the\n"
     "first step the input is what --input says, else zeros"},
    {"shape", "NAME=1x3x64..256x64..256:8", 0, MANY, " compile ", apply_shape,
     "an input's shape, where the file leaves it open; once per input. A\n"
     "range LEAST..MOST[:STEP] is a length that the program leaves open too,\n"
     "up to MOST, of which it differs by whole STEPs (default 1)"},
    {"shape", "NAME=1x3x64x64", 0, MANY | PLANS, NULL, apply_shape,
     "an input's shape where no file is given (unknown\n"
     "sizes: 1 for the first, the batch, else 64); once per input"},
    {"output", "FILE", 'o', 0, " run ", apply_output,
     "where to write output 0 (--output-dir writes all): .png, .npy or .wav\n"
     "(mono)"},
    {"output", "FILE.pte", 'o', 0, " compile ", apply_output,
     "where to write the program"},
    {"output", "FILE.pte", 'o', 0, " optimize ", apply_output,
     "where to write the new program (of a bundle: FILE.bpte)"},
    {"constants", "FILE.ptd", 0, MANY, NULL, apply_constants,
     "constants that a .pte keeps in another file; may be repeated"},
    {"constants-out", "FILE.ptd", 0, MANY, NULL, apply_constants_out,
     "where to write what --constants gave, which changes too; once for each"},
    {"method", "NAME", 0, 0, " info ", apply_method,
     "tell of this method of a .pte alone (default: of all)"},
    {"method", "NAME", 0, 0, NULL, apply_method,
     "which method of a .pte (default: forward, or the only one)"},
    {"external-constants", "FILE.ptd", 0, 0, NULL, apply_external,
     "where to write filters and biases, instead of into the program"},
    {"output-dir", "DIR", 0, 0, NULL, apply_output_dir,
     "a folder, made if need be with those above it, that gets\n"
     "OUTPUTNAME.npy of every output; characters of the name other than\n"
     "A-Z a-z 0-9 _ become _ there"},
    {"scale", "S", 0, 0, NULL, apply_scale,
     "a number other than 0; of pictures: value = (pixel * S - mean) / std,\n"
     "and the other way round for -o FILE.png (default 1/255)"},
    {"mean", "M[,M,M]", 0, 0, NULL, apply_mean,
     "a number, or three or four, one per channel; see --scale (default 0)"},
    {"std", "D[,D,D]", 0, 0, NULL, apply_std,
     "a number other than 0, or three or four; see --scale (default 1)"},
    {"rate", "HZ", 0, 0, NULL, apply_rate,
     "samples a second of -o FILE.wav, 1 to 768000 (default: an input .wav's,\n"
     "else 22050)"},
    {"op", "DESCRIPTOR", 0, 0, NULL, apply_op,
     "one operator, \"f32 n1 g1 ci64 co32 i64x64 k4x4 s2x2 d1x1 p1,1,1,1\":\n"
     "  [conv ]f32 nN gN ciN coN iHxW kHxW sHxW dHxW pT,L,B,R[ opHxW]\n"
     "transposed, or ordinary with conv; batch, groups, channels in and out,\n"
     "input, kernel, stride, dilation, pads top,left,bottom,right, output\n"
     "padding (not with conv; default 0). 1-D: height 1; 3-D: a depth before\n"
     "every height, pads front,top,left,back,bottom,right"},
    {"compare", NULL, 0, 0, NULL, apply_compare,
     "upsampling nodes beside XNNPACK's own deconvolution"},
    {"tune", NULL, 0, PLANS, NULL, apply_tune,
     "take for each convolution the algorithm that is measured to be fastest\n"
     "here, not the one expected (engines auto and native; up to about a\n"
     "second each); it is remembered. Results stay within --accuracy"},
    {"tune-file", "FILE", 0, PLANS, NULL, apply_tune_file,
     "--tune, and remember in this file (default polyphase/tune in\n"
     "$XDG_CACHE_HOME or ~/.cache)"},
    {"seconds", "S", 0, 0, NULL, apply_seconds,
     "time to measure each candidate, 0.001 to 3600 (default 1)"},
    {"atol", "A", 0, 0, NULL, apply_absolute,
     "absolute tolerance, at least 0 (default 1e-4)"},
    {"rtol", "R", 0, 0, NULL, apply_relative,
     "relative tolerance, at least 0 (default 1e-4)"},
    {"ptol", "P", 0, 0, NULL, apply_of_peak,
     "tolerance as a part of the output's largest magnitude (default 0)"},
    {"expect", "NAME=FILE.npy", 0, MANY, NULL, apply_expect,
     "an output of MODEL_A as stored, by name or position; once per output"},
    {"max-memory", "MIB", 0, 0, NULL, apply_max_memory,
     "refuse to take more memory than this, at least 1 (default 16384)"},
};
enum { ROWS = sizeof rows / sizeof *rows, FIRST_VALUE = 256 };

enum { MAX_GIVEN = sizeof ((tool_options *)0)->given / sizeof(char *) };
_Static_assert((int)ROWS <= (int)MAX_GIVEN, "room for every option");

static bool has_word(const char *words, const char *name) {
  char word[32];
  snprintf(word, sizeof word, " %s ", name);
  return strstr(words, word) != NULL;
}

const char *tool_options_find_given(const tool_options *options,
                                    const char *names) {
  for (uint32_t i = 0; i < options->given_count; i++)
    if (has_word(names, options->given[i]))
      return options->given[i];
  return NULL;
}

/* Whether the row is the command's: it accepts the name, and no row before
   speaks of that name for it. */
static bool accepts(const tool_command *command, int row) {
  const char *name = rows[row].name;
  if (strcmp(name, "help") == 0 || strcmp(name, "version") == 0)
    return true;
  if (!has_word(command->accepts, name) ||
      (rows[row].commands && !has_word(rows[row].commands, command->name)))
    return false;
  for (int i = 0; i < row; i++)
    if (strcmp(rows[i].name, name) == 0 &&
        has_word(rows[i].commands, command->name))
      return false;
  return true;
}

static void set_defaults(tool_options *options) {
  *options = (tool_options){
      .range = {.scale = 1.0f / 255, .deviation = {1, 1, 1, 1}},
      .seconds = 1,
      .absolute = 1e-4,
      .relative = 1e-4};
  pph_session_options_init(&options->session);
  pph_limits_init(&options->limits);
}

static bool usage_error(const tool_command *command, const char *text,
                        const char *value) {
  fprintf(stderr,
          "polyphase %s: %s%s%s; try polyphase %s --help\n", command->name,
          text, value ? " " : "", value ? value : "", command->name);
  return false;
}

static int build_long_options(const tool_command *command,
                              struct option *longs, char *shorts) {
  int count = 0;
  *shorts++ = ':';
  for (int i = 0; i < ROWS; i++) {
    if (!accepts(command, i))
      continue;
    longs[count++] = (struct option){
        rows[i].name, rows[i].argument ? required_argument : no_argument, NULL,
        FIRST_VALUE + i};
    if (rows[i].letter) {
      *shorts++ = rows[i].letter;
      if (rows[i].argument)
        *shorts++ = ':';
    }
  }
  longs[count] = (struct option){0};
  *shorts = 0;
  return count;
}

static int find_row(const tool_command *command, int value) {
  if (value >= FIRST_VALUE)
    return value - FIRST_VALUE;
  for (int i = 0; i < ROWS; i++)
    if (rows[i].letter == value && accepts(command, i))
      return i;
  return -1;
}

/* Of two values for what takes one, either could be meant. */
static bool apply_row(const tool_command *command, int row, const char *value,
                      bool *seen, tool_options *options) {
  char text[400];
  if (*seen && rows[row].argument && !(rows[row].flags & MANY)) {
    snprintf(text, sizeof text, "--%s is given twice, the second time as",
             rows[row].name);
    return usage_error(command, text, value);
  }
  if (!*seen && options->given_count < MAX_GIVEN)
    options->given[options->given_count++] = rows[row].name;
  *seen = true;
  options->plans |= (rows[row].flags & PLANS) != 0;
  if (rows[row].apply(options, value))
    return true;
  /* Alternatives say all; else help begins with what is legal. */
  int legal = strchr(rows[row].argument, '|')
                  ? 0
                  : (int)strcspn(rows[row].help, ";\n");
  snprintf(text, sizeof text, "--%s takes %s%s%.*s, found", rows[row].name,
           rows[row].argument, legal ? ": " : "", legal, rows[row].help);
  return usage_error(command, text, value[0] ? value : "nothing");
}

bool tool_options_parse(const tool_command *command, int argc, char **argv,
                        tool_options *options) {
  struct option longs[ROWS + 1];
  char shorts[2 * ROWS + 2];
  bool seen[ROWS] = {false};
  set_defaults(options);
  build_long_options(command, longs, shorts);
  opterr = 0;
  optind = 1;
  int value;
  while ((value = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
    if (value == '?')
      return usage_error(command, "unknown option", argv[optind - 1]);
    if (value == ':')
      return usage_error(command, "an argument is missing after",
                         argv[optind - 1]);
    int row = find_row(command, value);
    if (!apply_row(command, row, optarg, &seen[row], options))
      return false;
  }
  options->session.limits = &options->limits;
  options->arguments = argv + optind;
  options->argument_count = argc - optind;
  if (options->help || options->version)
    return true;
  if (options->argument_count < command->min_arguments)
    return usage_error(command, "too few arguments", NULL);
  if (options->argument_count > command->max_arguments)
    return usage_error(command, "unexpected argument",
                       options->arguments[command->max_arguments]);
  if (options->feeds.count && !options->steps)
    return usage_error(command, "--feed goes with --steps", NULL);
  for (int i = 0; i < options->argument_count; i++)
    if (!options->arguments[i][0])
      return usage_error(command, "an argument is empty", NULL);
  return true;
}

/* A help text may have several lines; indented so little, they all fit into 80
   columns. */
static void print_row(const char *left, const char *help) {
  printf("  %s\n        ", left);
  for (; *help; help++) {
    putchar(*help);
    if (*help == '\n')
      printf("        ");
  }
  putchar('\n');
}

void tool_options_print_help(const tool_command *command) {
  printf("usage: polyphase %s %s\n\n%s\n\noptions:\n", command->name,
         command->arguments, command->summary);
  for (int i = 0; i < ROWS; i++) {
    if (!accepts(command, i))
      continue;
    char left[80];
    char letter[8] = "";
    if (rows[i].letter)
      snprintf(letter, sizeof letter, "-%c, ", rows[i].letter);
    snprintf(left, sizeof left, "%s--%s%s%s", letter, rows[i].name,
             rows[i].argument ? " " : "",
             rows[i].argument ? rows[i].argument : "");
    print_row(left, rows[i].help);
  }
}

void tool_explain(const pph_error *error, char text[TOOL_MESSAGE]) {
  static const struct {
    const char *field, *option;
  } names[] = {{"pph_limits.heap_bytes", "--max-memory"},
               {"pph_session_options: dump", "--dump"},
               {"pph_model_options.constants", "--constants"},
               {"pph_model_options.method", "--method"}};
  char whole[TOOL_MESSAGE];
  int at = 0;
  snprintf(whole, sizeof whole, "%s%s%s", error->where,
           error->where[0] ? ": " : "", error->message);
  text[0] = 0;
  for (const char *from = whole; *from && at < TOOL_MESSAGE;) {
    const char *piece = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !piece; i++)
      if (strncmp(from, names[i].field, strlen(names[i].field)) == 0) {
        piece = names[i].option;
        from += strlen(names[i].field);
      }
    at += piece ? snprintf(text + at, (size_t)(TOOL_MESSAGE - at), "%s", piece)
                : snprintf(text + at, (size_t)(TOOL_MESSAGE - at), "%c",
                           *from++);
  }
}

int tool_fail(const pph_error *error) {
  const char *name = error->status == PPH_BAD_MODEL
                         ? "bad model or file"
                         : pph_status_name(error->status);
  char text[TOOL_MESSAGE];
  tool_explain(error, text);
  fprintf(stderr, "polyphase: %s: %s\n", name, text);
  switch (error->status) {
  case PPH_OK:
    return EXIT_DONE;
  case PPH_INVALID_ARGUMENT:
    return EXIT_USAGE;
  case PPH_BAD_MODEL:
  case PPH_IO_FAILED:
    return EXIT_BAD_FILE;
  case PPH_UNSUPPORTED:
    return EXIT_UNSUPPORTED;
  case PPH_LIMIT_EXCEEDED:
  case PPH_OUT_OF_MEMORY:
    return EXIT_LIMIT;
  }
  return EXIT_USAGE;
}

/* Of two models one may be a program and the other not: --method and
   --constants are the program's. */
static bool is_for_other(const tool_options *options, const char *path) {
  bool has_program = false;
  for (int i = 0; i < options->argument_count; i++)
    has_program |= pte_file_is_container(options->arguments[i]);
  return has_program && !pte_file_is_container(path);
}

pph_status tool_load_model(const tool_options *options, const char *path,
                           pph_model **model, pph_error *error) {
  pph_model_options model_options;
  pph_model_options_init(&model_options);
  model_options.limits = &options->limits;
  if (!is_for_other(options, path)) {
    model_options.constants = options->constants.texts;
    model_options.constant_count = options->constants.count;
    model_options.method = options->method;
  }
  pph_status status = pph_model_load(path, &model_options, model, error);
  if (status == PPH_BAD_MODEL && picture_is_one(path))
    return pph_fail(error, PPH_INVALID_ARGUMENT, path,
                    "is a picture, must be a model: MODEL comes before "
                    "PICTURE");
  return status;
}

