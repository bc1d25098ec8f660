/* Choosing by measurement: the algorithm of each convolution that was fastest
   on this machine, remembered in a file. A session has one tuner, used by its
   thread. */
#ifndef PPH_RUNTIME_TUNE_H
#define PPH_RUNTIME_TUNE_H

#include "backend/backend.h"
#include "polyphase/session.h"
#include "runtime/program.h"

typedef struct pph_tuner pph_tuner;

/* Reads the file of options->tune_file, or the usual one. Memory comes from
   `heap`, which must outlive the tuner. */
PPH_NODISCARD pph_status pph_tuner_create(const pph_session_options *options,
                                          pph_heap *heap, pph_tuner **tuner,
                                          pph_error *error);
void pph_tuner_destroy(pph_tuner *tuner); /* NULL is allowed */

/* Before the first node of a plan, and behind the last: writes what was
   measured, and fills in the program's numbers. */
void pph_tuner_begin(pph_tuner *tuner);
void pph_tuner_end(pph_tuner *tuner, pph_program *program);

/* Prepares the step, whose backend is the one that costs decide for, by what is
   remembered or measured to be fastest. *prepared is false when there is
   nothing to choose: then the caller prepares it. */
PPH_NODISCARD pph_status pph_tuner_prepare(pph_tuner *tuner, pph_engine engine,
                                           pph_backend_context *context,
                                           pph_step *step, bool *prepared,
                                           pph_error *error);

/* Calls the session's tune_progress. */
void pph_tuner_tell(const pph_tuner *tuner, uint32_t done, uint32_t nodes);

#endif
