/* The element-wise stage of preprocess as one NumPy ufunc, written by hand: see cpu.numpy_ufunc.

   https://numpy.org/doc/stable/user/c-info.ufunc-tutorial.html */

#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <Python.h>
#include <numpy/ndarrayobject.h>
#include <numpy/ufuncobject.h>

/* A row of normalise(x, mean, std); NumPy says where each operand lies, how far its elements are apart, and how many. */
static void normalise(char** operands, const npy_intp* dimensions, const npy_intp* strides, void* unused)
{
    const char *x = operands[0], *mean = operands[1], *std = operands[2];
    char* y = operands[3];
    (void)unused;
    for (npy_intp i = 0; i < dimensions[0]; ++i) {
        *(float*)y = (*(const float*)x / 255 - *(const float*)mean) / *(const float*)std;
        x += strides[0];
        mean += strides[1];
        std += strides[2];
        y += strides[3];
    }
}

static PyUFuncGenericFunction loops[] = {normalise};
static const char types[] = {NPY_FLOAT, NPY_FLOAT, NPY_FLOAT, NPY_FLOAT};
static void* const data[] = {NULL};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "_ufunc_normalise", .m_size = -1};

PyMODINIT_FUNC PyInit__ufunc_normalise(void)
{
    PyObject *module, *ufunc;
    import_array();
    import_umath();
    module = PyModule_Create(&definition);
    if (module == NULL) return NULL;
    ufunc = PyUFunc_FromFuncAndData(
        loops, (void**)data, types, 1, 3, 1, PyUFunc_None, "normalise", "(x / 255 - mean) / std in float32", 0);
    if (PyModule_AddObjectRef(module, "normalise", ufunc) < 0) {
        Py_DECREF(module);
        module = NULL;
    }
    Py_XDECREF(ufunc);
    return module;
}
