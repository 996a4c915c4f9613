/* job_modules.c - see job_modules.h. */
#include "client/show/job_modules.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proofs/run/module_shares.h"

#define ROWS_MOST   16   /* where not all are asked for */
#define WIDTH_MOST  64   /* letters of a name that others are aligned with */
#define SHARE_LEAST 5e-5 /* of what has no weights */

/* "(64, 192)" */
static void write_shape(char text[96], const struct tensor *tensor)
{
    size_t size = 0;

    for (uint32_t axis = 0; axis < tensor->rank; axis++) {
        size += (size_t)snprintf(text + size, 96 - size, "%s%" PRIu64, axis == 0 ? "(" : ", ",
                                 tensor->dims[axis]);
    }
    (void)snprintf(text + size, 96 - size, ")");
}

/* The tensor's name without its module's. */
static const char *name_in(const struct tensor *tensor, const struct module_share *module)
{
    const size_t length = strlen(module->name);

    return strncmp(tensor->name, module->name, length) == 0 && tensor->name[length] == '.'
               ? tensor->name + length + 1
               : tensor->name;
}

static json_t *tensors_json(const struct module_shares *shares, uint32_t number,
                            const struct tape *tape)
{
    json_t *tensors = json_array();

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (shares->of_tensor[id] == number) {
            json_t *shape = json_array();

            for (uint32_t axis = 0; axis < tape->tensors[id].rank; axis++) {
                (void)json_array_append_new(shape,
                                            json_integer((json_int_t)tape->tensors[id].dims[axis]));
            }
            (void)json_array_append_new(
                tensors, json_pack("{s:s, s:s, s:o, s:b}", "name", tape->tensors[id].name, "type",
                                   dtype_name(tape->tensors[id].dtype), "shape", shape, "frozen",
                                   tape->tensors[id].role == ROLE_DATA));
        }
    }
    return tensors;
}

static double share_of(const struct module_shares *shares, const struct module_share *module)
{
    return shares->work > 0.0 ? module->work / shares->work : 0.0;
}

static json_t *modules_json(const struct module_shares *shares, const struct tape *tape)
{
    json_t *modules = json_array();

    for (uint32_t i = 0; i < shares->count; i++) {
        const struct module_share *module = &shares->modules[i];

        (void)json_array_append_new(
            modules, json_pack("{s:s, s:I, s:I, s:f, s:o}", "module", module->name, "parameters",
                               (json_int_t)module->parameters, "frozen_parameters",
                               (json_int_t)module->frozen, "share", share_of(shares, module),
                               "tensors", tensors_json(shares, i, tape)));
    }
    return modules;
}

/* What has no weights and does next to nothing is left out. */
static bool is_told(const struct module_shares *shares, const struct module_share *module)
{
    return module->parameters + module->frozen > 0 || share_of(shares, module) >= SHARE_LEAST;
}

static int width_of_names(const struct module_shares *shares)
{
    size_t width = 20;

    for (uint32_t i = 0; i < shares->count; i++) {
        const size_t length = strlen(shares->modules[i].name);

        width = length > width && is_told(shares, &shares->modules[i]) ? length : width;
    }
    return (int)(width < WIDTH_MOST ? width : WIDTH_MOST);
}

static void print_module(struct sheet *sheet, const struct module_shares *shares, uint32_t number,
                         const struct tape *tape, int width)
{
    const struct module_share *module = &shares->modules[number];
    char shape[96];

    sheet_print(sheet, "  %-*s %12" PRIu64 " %10.2f %%", width, module->name, module->parameters,
                100.0 * share_of(shares, module));
    if (module->frozen > 0) {
        sheet_print(sheet, "  and %" PRIu64 " frozen", module->frozen);
    }
    for (uint32_t id = 0; shares->of_tensor != NULL && id < tape->tensor_count; id++) {
        if (shares->of_tensor[id] == number) {
            write_shape(shape, &tape->tensors[id]);
            sheet_print(sheet, "  %s %s", name_in(&tape->tensors[id], module), shape);
        }
    }
    sheet_print(sheet, "\n");
}

enum status job_modules_show(struct sheet *sheet, const struct job *job, bool all,
                             struct error *error)
{
    const struct tape *tape = job->tape->brief != NULL ? job->tape->brief : job->tape;
    struct module_shares shares;
    uint32_t count;
    int width;

    TRY(module_shares_find(&shares, job, error));
    sheet_set(sheet, "modules", modules_json(&shares, tape));
    count = shares.count;
    if (!all) {
        module_shares_fold(&shares, ROWS_MOST);
    }
    width = width_of_names(&shares);
    sheet_print(sheet, "modules      %-*s    weights   arithmetic\n", width - 9, "");
    for (uint32_t i = 0; i < shares.count; i++) {
        if (is_told(&shares, &shares.modules[i])) {
            print_module(sheet, &shares, i, tape, width);
        }
    }
    if (shares.count < count) {
        sheet_print(sheet, "             --modules shows all %u of them, with their tensors\n",
                    count);
    }
    module_shares_release(&shares);
    return STATUS_OK;
}
