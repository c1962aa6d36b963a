/* Selects float for the headers that are compiled once for each type of element: REAL is the type, SIZE its bytes, NAME(x) a name that
   says the type. */
#include "_no_type.h"

#define REAL float
#define SIZE 4
#define NAME(name) name##_float
