/* Starts a compiled module. Each library of elasticq/_native holds all modules of one folder of the package.

   mypyc would make a library for each module, with these few calls. elasticq/native.py calls this function instead.
   So a start opens about 20 libraries instead of 150. */

#include <Python.h>

static void *function_of(PyObject *capsule)
{
    return PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule));
}

/* start(prepare, init): run two functions of a library, given as capsules. The first one connects it with the others.
   Return the module that the second one made. */
static PyObject *start(PyObject *self, PyObject *args)
{
    PyObject *first, *second;
    int (*prepare)(void);
    PyObject *(*init)(void);

    (void)self;
    if (!PyArg_ParseTuple(args, "O!O!", &PyCapsule_Type, &first, &PyCapsule_Type, &second))
        return NULL;
    prepare = (int (*)(void))function_of(first);
    init = (PyObject *(*)(void))function_of(second);
    if (prepare == NULL || init == NULL || prepare() < 0)
        return NULL;
    return init();
}

static PyMethodDef methods[] = {
    {"start", start, METH_VARARGS, "Connect a library with the others, and return one of its modules."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "load", .m_size = -1, .m_methods = methods};

PyMODINIT_FUNC PyInit_load(void)
{
    return PyModule_Create(&definition);
}
