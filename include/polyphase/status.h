/* What a Polyphase function reports: a status, and an optional error text. */
#ifndef POLYPHASE_STATUS_H
#define POLYPHASE_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PPH_NODISCARD __attribute__((warn_unused_result))
#else
#define PPH_NODISCARD
#endif

/* The values are fixed for good; gaps are left for later groups. */
typedef enum pph_status {
  PPH_OK = 0,
  PPH_INVALID_ARGUMENT = 1, /* the caller's mistake */
  PPH_BAD_MODEL = 2,        /* the model breaks its own format's rules */
  PPH_UNSUPPORTED = 3,      /* legal, but not implemented here */
  PPH_LIMIT_EXCEEDED = 4,   /* beyond a limit of pph_limits */
  PPH_OUT_OF_MEMORY = 5,    /* the allocator gave nothing */
  PPH_IO_FAILED = 6         /* a file could not be read or written */
} pph_status;

/* Where and what went wrong. Always passed last and may be NULL; it is written
   on failure only. `where` names the place ("node 17 ConvTranspose \"up2\"" or
   a file), `message` says what was found and what is legal. Both end in 0. */
typedef struct pph_error {
  pph_status status;
  char where[192];
  char message[384];
} pph_error;

/* A short static name such as "bad model". Callable from any thread. */
const char *pph_status_name(pph_status status);

#ifdef __cplusplus
}
#endif

#endif
