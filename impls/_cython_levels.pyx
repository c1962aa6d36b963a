"""What the kernels were compiled for, and what of that this processor has: for levels.py."""


cdef extern from *:
    """
    #include "_machine.h"
    /* The processor's best level, by itself and the operating system. */
    static const char *best_level(void)
    {
    #if defined(__x86_64__)
        return __builtin_cpu_supports("x86-64-v4")   ? "avx512"
               : __builtin_cpu_supports("x86-64-v3") ? "avx2"
               : __builtin_cpu_supports("x86-64-v2") ? "baseline"
                                                     : "none";
    #else
        return INSTRUCTIONS;
    #endif
    }
    """
    const char* best_level()
    const char* INSTRUCTIONS
    const char* LEVELS


def compiled():
    """The levels of a build for any machine, from the slowest on; otherwise the only one."""
    return (<bytes> LEVELS or <bytes> INSTRUCTIONS).decode().split()


def best():
    """The level of this processor; "none" if it has fewer instructions than the lowest level."""
    return best_level().decode()
