/* What kernel templates (*.inc) tell the compiler. */
#ifndef PPH_KERNEL_TEMPLATE_H
#define PPH_KERNEL_TEMPLATE_H

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Hides from the compiler where a position comes from. It would keep those of a
   whole unrolled loop, first in registers, then in memory, and move each of
   them on. */
#define HIDE(position) __asm__("" : "+r"(position))

#endif
