#include "problem/npy.h"

#include "base/file.h"
#include "base/text.h"

/* The format wants magic, version, header length and header together to be a multiple of this. */
#define NPY_ALIGN    64
#define NPY_PREAMBLE 10

static void npy_header(struct text *header, const char *descr, const size_t *dim, unsigned ndim)
{
    text_addf(header, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (unsigned d = 0; d < ndim; d++)
        text_addf(header, "%zu,%s", dim[d], d + 1 < ndim ? " " : "");
    text_add(header, "), }");
    while ((NPY_PREAMBLE + header->len + 1) % NPY_ALIGN != 0)
        text_add(header, " ");
    text_add(header, "\n");
}

int npy_write(const char *path, const char *descr, const size_t *dim, unsigned ndim,
              const void *data, size_t bytes, struct err *err)
{
    struct text header, file;
    text_init(&header);
    text_init(&file);
    npy_header(&header, descr, dim, ndim);
    unsigned char preamble[NPY_PREAMBLE] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    preamble[8] = (unsigned char)(header.len & 0xff);
    preamble[9] = (unsigned char)(header.len >> 8);
    text_add_bytes(&file, preamble, sizeof(preamble));
    text_add_bytes(&file, header.data, header.len);
    text_add_bytes(&file, data, bytes);
    int rc = file_replace(path, file.data, file.len, err);
    text_release(&header);
    text_release(&file);
    return rc;
}
