/* Selects double, as _float.h does float. */
#include "_no_type.h"

#define REAL double
#define SIZE 8
#define NAME(name) name##_double
