#include <string.h>

#include "problem/operator.h"

const struct op *operator_find(const char *name)
{
    for (size_t i = 0; i < operator_count; i++)
        if (strcmp(operator_table[i]->name, name) == 0)
            return operator_table[i];
    return NULL;
}
