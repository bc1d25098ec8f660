/* The benchmarks' lists of problems (bench/shapes): every line is one, and one
   that the operators take. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "geometry/problem.h"
#include "test_support.h"

/* What follows the label, without the comment; NULL for an empty line. */
static char *find_descriptor(char *line) {
  line[strcspn(line, "#\n")] = 0;
  char *colon = strrchr(line, ':');
  char *text = colon ? colon + 1 : line;
  text += strspn(text, " ");
  return *text ? text : NULL;
}

static int check_list(const char *path) {
  char line[512];
  int rows = 0;
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file)) {
    char *text = find_descriptor(line);
    pph_problem problem;
    pph_error error = {0};
    if (!text)
      continue;
    rows++;
    if (pph_problem_parse(text, &problem, &error) != PPH_OK)
      fail_msg("%s: %s: %s", path, text, error.message);
    if (pph_problem_flops(&problem) > 3e9)
      fail_msg("%s: %s: too much work for a row", path, text);
    if (problem.axes[PPH_HEIGHT].output < 1 ||
        problem.axes[PPH_WIDTH].output < 1)
      fail_msg("%s: %s: no output", path, text);
  }
  fclose(file);
  return rows;
}

static void test_lists(void **state) {
  (void)state;
  const char *folder = PPH_SOURCE_DIR "/bench/shapes";
  int lists = 0;
  DIR *directory = opendir(folder);
  assert_non_null(directory);
  for (struct dirent *entry; (entry = readdir(directory));) {
    char path[512];
    if (!strstr(entry->d_name, ".txt"))
      continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (check_list(path) == 0)
      fail_msg("%s is empty", path);
    lists++;
  }
  closedir(directory);
  assert_true(lists > 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_lists)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
