/*
 * machine_cpu.c - the CPU's backend: two blocks of memory, a plan, and a loop over the operations.
 *
 * Opening the machine allocates everything; a step allocates nothing, and only its observer can
 * make it fail. In fast mode kernels omit outputs that nobody reads and work in place; in trace
 * mode, and without a kernel, every output is made. Kernels keep quantized operands packed; for an
 * observer they are unpacked into the scratch. Where a quantized operand is an input or an output
 * of the tape, the rules make and read all of them.
 */
#include <assert.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/steady.h"
#include "engine/machine/machine_beside.h"
#include "engine/ops/assumptions.h"
#include "engine/ops/contraction.h"
#include "engine/ops/float_control.h"
#include "engine/plan/backend.h"
#include "engine/plan/hoist.h"
#include "engine/plan/lazy.h"
#include "engine/plan/plan.h"

/* Operations that touch fewer elements run on one thread. */
#define SERIAL_ELEMENTS 16384

struct machine_cpu {
    struct machine machine;
    struct machine_options options;
    struct kernel_table kernels;
    struct plan plan;
    uint8_t *blocks[3]; /* states, constants and inputs; temporaries; scratch */
    uint64_t block_sizes[3];
    void **memory;       /* per tensor; NULL: not there, or data not bound yet */
    bool *lasting;       /* per operation: is what it makes kept from step to step? NULL: of none */
    bool kept;           /* it is there, and nothing that it depends on was written since */
    bool *read;          /* per tensor, in trace mode: is it read in the step, or after it? */
    uint64_t states_end; /* in the first block; what lasts from step to step lies behind it */
    struct lazy lazy;    /* not in trace mode */
    struct beside beside; /* not in trace mode */
};

enum { BLOCK_STATE, BLOCK_TEMPORARY, BLOCK_SCRATCH, BLOCK_COUNT };

#define FINITE_SPAN 1024 /* elements per test for infinity */

/* ---- options ------------------------------------------------------------ */

enum status machine_options_isa(struct machine_options *options, const char *name,
                                struct error *error)
{
    for (int isa = ISA_SCALAR; isa < ISA_COUNT; isa++) {
        if (strcmp(name, isa_name((enum isa)isa)) == 0) {
            options->isa = (enum isa)isa;
            return isa_check(options->isa, error);
        }
    }
    (void)error_set(error, STATUS_USAGE, "there is no instruction set '%.40s'", name);
    error_advise(error, "use scalar, avx2, avx512, neon or i8mm");
    return STATUS_USAGE;
}

enum status machine_options_default(struct machine_options *options, struct error *error)
{
    const char *name = getenv("LOCKSTEP_ISA");
    enum status status;

    *options = (struct machine_options){.isa = isa_best()};
    if (name == NULL || name[0] == '\0') {
        return STATUS_OK;
    }
    status = machine_options_isa(options, name, error);
    if (status != STATUS_OK) {
        (void)error_wrap(error, "LOCKSTEP_ISA");
        error_advise(error, "leave LOCKSTEP_ISA out: the best here is %s", isa_name(isa_best()));
    }
    return status;
}

/* ---- floating-point control --------------------------------------------- */

/*
 * Every thread of the team takes the default control word and checks that it computes as the rules
 * require. The caller has taken the word before: see float_control.h.
 */
static enum status prepare_threads(int thread_count, struct error *error)
{
    int bad = 0;

#pragma omp parallel num_threads(thread_count) reduction(| : bad)
    {
        (void)float_control_take();
        bad |= assumptions_check(NULL) != STATUS_OK;
    }
    return bad ? error_set(error, STATUS_DEVICE, "a thread does not compute as the rules require")
               : STATUS_OK;
}

/* ---- planning ----------------------------------------------------------- */

/* Do the kernels keep this output in their packed layout? */
static bool is_packed(const struct machine_cpu *cpu, const struct op *op, uint32_t output)
{
    return cpu->kernels.unpack != NULL && op->kind == OP_QUANTIZE && output == 2;
}

static const struct machine_cpu *hook_machine(const void *context)
{
    return context;
}

static uint64_t output_size(const void *context, const struct op *op, uint32_t output,
                            const struct tensor *tensors)
{
    const struct tensor *tensor = &tensors[op->outputs[output]];

    if (is_packed(hook_machine(context), op, output)) {
        return contraction_packed_size(op);
    }
    return tensor_size(tensor);
}

static bool has_kernel(const void *context, enum op_kind kind)
{
    return hook_machine(context)->kernels.kernels[kind].run != NULL;
}

static bool in_place(const void *context, const struct op *op, uint32_t output, uint32_t input)
{
    return has_kernel(context, op->kind) && op_in_place(op, output, input);
}

/* Scratch for the kernel and, in trace mode, for unpacking its result. */
static uint64_t scratch_for(const struct machine_cpu *cpu, const struct op *op)
{
    const struct kernel *kernel = &cpu->kernels.kernels[op->kind];
    uint64_t size = 0;

    if (kernel->run != NULL && kernel->scratch_size != NULL) {
        size = kernel->scratch_size(op, cpu->options.thread_count);
    }
    if (cpu->options.trace && is_packed(cpu, op, 2)) {
        uint64_t unpacked = tensor_size(&cpu->machine.tape->tensors[op->outputs[2]]);

        size = unpacked > size ? unpacked : size;
    }
    return size;
}

static uint32_t holder_of(const void *context, uint64_t *offset, uint32_t tensor)
{
    const struct beside *beside = &hook_machine(context)->beside;

    *offset = beside->offsets[tensor];
    return beside->holders[tensor];
}

/* Grows the block sizes to those of the current plan. */
static void size_blocks(struct machine_cpu *cpu)
{
    const struct tape *tape = cpu->machine.tape;
    uint64_t sizes[BLOCK_COUNT] = {cpu->plan.state_size, cpu->plan.temporary_size, 0};

    for (uint32_t at = 0; at < tape->op_count; at++) {
        uint64_t size = cpu->plan.runs[at] ? scratch_for(cpu, &tape->ops[at]) : 0;

        sizes[BLOCK_SCRATCH] = size > sizes[BLOCK_SCRATCH] ? size : sizes[BLOCK_SCRATCH];
    }
    for (int block = 0; block < BLOCK_COUNT; block++) {
        if (sizes[block] > cpu->block_sizes[block]) {
            cpu->block_sizes[block] = sizes[block];
        }
    }
}

static enum status plan_step(struct machine_cpu *cpu, struct error *error)
{
    const struct tape *tape = cpu->machine.tape;
    struct plan_hooks hooks = {.context = cpu,
                               .keep_all = cpu->options.trace,
                               .lasting = cpu->options.trace ? NULL : cpu->lasting};

    hooks.output_size = output_size;
    hooks.may_omit = has_kernel;
    if (!cpu->options.trace) {
        TRY(beside_find(&cpu->beside, tape, cpu->lasting, error));
        hooks.in_place = in_place;
        hooks.holder = holder_of;
        hooks.joins = cpu->beside.joins;
    }
    TRY(plan_build(&cpu->plan, tape, &hooks, error));
    size_blocks(cpu);
    return STATUS_OK;
}

/* ---- memory ------------------------------------------------------------- */

static void find_states_end(struct machine_cpu *cpu)
{
    const struct tape *tape = cpu->machine.tape;

    for (uint32_t i = 0; i < tape->state_count; i++) {
        const uint32_t id = tape->states[i].before;
        const uint64_t end = cpu->plan.places[id] + tensor_size(&tape->tensors[id]);

        cpu->states_end = end > cpu->states_end ? end : cpu->states_end;
    }
}

static enum status allocate_blocks(struct machine_cpu *cpu, struct error *error)
{
    const struct tape *tape = cpu->machine.tape;
    uint64_t total = 0;

    for (int block = 0; block < BLOCK_COUNT; block++) {
        total += cpu->block_sizes[block];
    }
    if (cpu->options.memory_max != 0 && total > cpu->options.memory_max) {
        return error_set(error, STATUS_NO_MEMORY,
                         "the tape needs %.1f MiB of memory, and %.1f MiB are allowed",
                         (double)total / 1048576.0, (double)cpu->options.memory_max / 1048576.0);
    }
    for (int block = 0; block < BLOCK_COUNT; block++) {
        uint64_t size = (cpu->block_sizes[block] + 2097151) / 2097152 * 2097152;

        cpu->blocks[block] = size == 0 ? NULL : aligned_alloc(2097152, size);
        if (size != 0 && cpu->blocks[block] == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "the tape needs %.1f MiB of memory",
                             (double)total / 1048576.0);
        }
        if (size != 0) {
            /* Large pages, if the system has them, only make it faster. */
            (void)madvise(cpu->blocks[block], size, MADV_HUGEPAGE);
        }
    }
    if (cpu->blocks[BLOCK_STATE] != NULL) {
        memset(cpu->blocks[BLOCK_STATE], 0, cpu->block_sizes[BLOCK_STATE]);
    }
    cpu->memory = calloc((size_t)tape->tensor_count + 1, sizeof(*cpu->memory));
    if (cpu->memory == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %u tensors", tape->tensor_count);
    }
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (cpu->plan.places[id] != PLAN_ABSENT) {
            int block = cpu->plan.in_state[id] ? BLOCK_STATE : BLOCK_TEMPORARY;

            cpu->memory[id] = cpu->blocks[block] + cpu->plan.places[id];
        }
    }
    find_states_end(cpu);
    return STATUS_OK;
}

/* ---- opening ------------------------------------------------------------ */

static struct machine_cpu *cpu_of(struct machine *machine)
{
    return (struct machine_cpu *)machine;
}

static void cpu_close(struct machine *machine)
{
    struct machine_cpu *cpu = cpu_of(machine);

    if (cpu == NULL) {
        return;
    }
    for (int block = 0; block < BLOCK_COUNT; block++) {
        free(cpu->blocks[block]);
    }
    free(cpu->memory);
    free(cpu->lasting);
    free(cpu->read);
    lazy_release(&cpu->lazy);
    beside_release(&cpu->beside);
    plan_release(&cpu->plan);
    tape_free(machine->rewrite);
    free(machine->notes);
    free(cpu);
}

/*
 * Is a quantized operand an input or an output of the tape? It may be where a tape is a part of a
 * step (range.h), and it then has the canonical layout.
 */
static bool operands_cross(const struct tape *tape)
{
    for (uint32_t at = 0; at < tape->op_count; at++) {
        const struct op *op = &tape->ops[at];
        uint32_t slots[2];
        uint32_t count = contraction_slots(slots, op->kind);

        if (op->kind == OP_QUANTIZE && tape->tensors[op->outputs[2]].role != ROLE_TEMPORARY) {
            return true;
        }
        for (uint32_t i = 0; i < count; i++) {
            if (tape->tensors[op->inputs[slots[i]]].role != ROLE_TEMPORARY) {
                return true;
            }
        }
    }
    return false;
}

/* Takes the kernels of the instruction set, without those of packed operands if operands cross. */
static void choose_kernels(struct machine_cpu *cpu)
{
    cpu_kernels(&cpu->kernels, cpu->options.isa);
    if (!operands_cross(cpu->machine.tape)) {
        return;
    }
    for (uint32_t kind = 0; kind < OP_KIND_COUNT; kind++) {
        uint32_t slots[2];

        if (kind == OP_QUANTIZE || contraction_slots(slots, (enum op_kind)kind) != 0) {
            cpu->kernels.kernels[kind] = (struct kernel){.run = NULL};
        }
    }
    cpu->kernels.unpack = NULL;
}

static enum status find_lasting(struct machine_cpu *cpu, struct error *error)
{
    const struct tape *tape = cpu->machine.tape;

    cpu->lasting = calloc((size_t)tape->op_count + 1, sizeof(*cpu->lasting));
    if (cpu->lasting == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a machine");
    }
    return hoist_find_lasting(cpu->lasting, tape, error);
}

static enum status find_read(struct machine_cpu *cpu, struct error *error)
{
    const struct tape *tape = cpu->machine.tape;

    cpu->read = calloc((size_t)tape->tensor_count + 1, sizeof(*cpu->read));
    if (cpu->read == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a machine");
    }
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        cpu->read[id] = tape->tensors[id].role != ROLE_TEMPORARY || id == tape->loss;
    }
    for (uint32_t i = 0; i < tape->state_count; i++) {
        cpu->read[tape->states[i].after] = true;
    }
    for (uint32_t i = 0; i < tape->loop_carry_count; i++) {
        cpu->read[tape->loop_carries[i].out] = true;
    }
    for (uint32_t at = 0; at < tape->op_count; at++) {
        for (uint32_t i = 0; i < tape->ops[at].input_count; i++) {
            cpu->read[tape->ops[at].inputs[i]] = true;
        }
    }
    return STATUS_OK;
}

static enum status prepare_machine(struct machine_cpu *cpu, const struct tape *tape,
                                   const struct machine_options *options, struct error *error)
{
    cpu->machine = (struct machine){.backend = &backend_cpu, .tape = tape};
    cpu->options = *options;
    if (options->thread_count <= 0) {
        cpu->options.thread_count = omp_get_max_threads();
    }
    if (cpu->options.thread_count > MACHINE_THREADS_MAX) {
        cpu->options.thread_count = MACHINE_THREADS_MAX;
    }
    TRY(isa_check(cpu->options.isa, error));
    choose_kernels(cpu);
    if (options->hoist && !options->trace && !options->in_legs) {
        TRY(find_lasting(cpu, error));
    }
    return plan_step(cpu, error);
}

static enum status cpu_size(uint64_t *size, const struct tape *tape,
                            const struct machine_options *options, struct error *error)
{
    struct machine_cpu cpu = {.memory = NULL};
    enum status status = prepare_machine(&cpu, tape, options, error);

    *size = 0;
    for (int block = 0; block < BLOCK_COUNT; block++) {
        *size += cpu.block_sizes[block];
    }
    plan_release(&cpu.plan);
    beside_release(&cpu.beside);
    free(cpu.lasting);
    return status;
}

static enum status cpu_open(struct machine **machine, const struct tape *tape,
                            const struct machine_options *options, struct error *error)
{
    struct machine_cpu *cpu = calloc(1, sizeof(*cpu));
    enum status status;

    if (cpu == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a machine");
    }
    TRY_OUT(prepare_machine(cpu, tape, options, error));
    TRY_OUT(allocate_blocks(cpu, error));
    TRY_OUT(options->trace ? find_read(cpu, error) : lazy_find(&cpu->lazy, tape, error));
    *machine = &cpu->machine;
    return STATUS_OK;
out:
    cpu_close(&cpu->machine);
    return status;
}

/* ---- tensors ------------------------------------------------------------ */

/* The memory of a lasting tensor, of an output or of the loss; NULL for others. */
static const void *cpu_peek(struct machine *machine, uint32_t tensor)
{
    struct machine_cpu *cpu = cpu_of(machine);
    const struct tape *tape = machine->tape;

    if (tensor >= tape->tensor_count || tape->tensors[tensor].role == ROLE_DATA) {
        return NULL;
    }
    if (tape->tensors[tensor].role == ROLE_TEMPORARY && tensor != tape->loss) {
        return NULL;
    }
    return cpu->memory[tensor];
}

static void ask_guard(struct machine_cpu *cpu)
{
    if (cpu->machine.guard.before_write != NULL) {
        cpu->machine.guard.before_write(cpu->machine.guard.context);
    }
}

static enum status cpu_write(struct machine *machine, uint32_t tensor, const void *bytes,
                             struct error *error)
{
    struct machine_cpu *cpu = cpu_of(machine);

    if (tensor >= machine->tape->tensor_count || !cpu->plan.in_state[tensor] ||
        role_is_made(machine->tape->tensors[tensor].role)) {
        return error_set(error, STATUS_USAGE, "tensor %u cannot be written", tensor);
    }
    ask_guard(cpu);
    memcpy(cpu->memory[tensor], bytes, tensor_size(&machine->tape->tensors[tensor]));
    cpu->kept = false;
    free(machine->notes);
    machine->notes = NULL;
    return STATUS_OK;
}

static enum status cpu_read(struct machine *machine, uint32_t tensor, void *bytes,
                            struct error *error)
{
    const void *memory = cpu_peek(machine, tensor);

    if (memory == NULL) {
        return error_set(error, STATUS_USAGE, "tensor %u cannot be read", tensor);
    }
    memcpy(bytes, memory, tensor_size(&machine->tape->tensors[tensor]));
    return STATUS_OK;
}

static enum status cpu_bind(struct machine *machine, uint32_t tensor, const void *bytes,
                            struct error *error)
{
    if (tensor >= machine->tape->tensor_count || machine->tape->tensors[tensor].role != ROLE_DATA) {
        return error_set(error, STATUS_USAGE, "tensor %u is not data", tensor);
    }
    cpu_of(machine)->memory[tensor] = (void *)(uintptr_t)bytes;
    cpu_of(machine)->kept = false;
    return STATUS_OK;
}

/* ---- a step ------------------------------------------------------------- */

/*
 * A small operation ends before a second thread wakes up. And on a busy machine every further
 * thread may be descheduled, and the others wait for it at the end of the operation.
 */
static int threads_for(const struct machine_cpu *cpu, const struct op *op)
{
    const struct tensor *tensors = cpu->machine.tape->tensors;
    uint64_t touched = 0;

    for (uint32_t i = 0; i < op->input_count; i++) {
        touched += tensors[op->inputs[i]].count;
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        touched += tensors[op->outputs[i]].count;
    }
    return touched < SERIAL_ELEMENTS ? 1 : cpu->options.thread_count;
}

/* Is the output made for nobody? */
static bool is_unwanted(const struct machine_cpu *cpu, const struct observer *observer,
                        struct op_turn maker, uint32_t output)
{
    return observer != NULL && !cpu->read[cpu->machine.tape->ops[maker.op].outputs[output]] &&
           !observer_wants(observer, maker, output);
}

/* Does the operation write where a state is? Joined states lie there already. */
static bool writes_state(const struct machine_cpu *cpu, uint32_t at)
{
    const struct op *op = &cpu->machine.tape->ops[at];

    for (uint32_t i = 0; i < op->output_count; i++) {
        const uint32_t id = op->outputs[i];

        if (cpu->plan.in_state[id] && cpu->plan.places[id] < cpu->states_end) {
            return cpu->beside.joins == NULL || !cpu->beside.joins[at];
        }
    }
    return false;
}

static void run_op(struct machine_cpu *cpu, struct op_turn maker, const struct observer *observer)
{
    const struct op *op = &cpu->machine.tape->ops[maker.op];
    const struct kernel *kernel = &cpu->kernels.kernels[op->kind];
    struct kernel_call call = {.op = op,
                               .tensors = cpu->machine.tape->tensors,
                               .scratch = cpu->blocks[BLOCK_SCRATCH],
                               .thread_count = threads_for(cpu, op)};

    for (uint32_t i = 0; i < op->input_count; i++) {
        call.inputs[i] = cpu->memory[op->inputs[i]];
        assert(call.inputs[i] != NULL);
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        const bool omitted = kernel->run != NULL && is_unwanted(cpu, observer, maker, i);

        call.outputs[i] = omitted ? NULL : cpu->memory[op->outputs[i]];
    }
    if (kernel->run != NULL) {
        kernel->run(&call);
    } else {
        kernel_run_rules(&call);
    }
}

/* What a lasting operation has read, it does not read again. */
static void spare_data(const struct machine_cpu *cpu, uint32_t at)
{
    const struct op *op = &cpu->machine.tape->ops[at];

    for (uint32_t i = 0; i < op->input_count; i++) {
        if (cpu->machine.tape->tensors[op->inputs[i]].role == ROLE_DATA) {
            cpu->options.spare(cpu->options.spare_context, cpu->memory[op->inputs[i]]);
        }
    }
}

static void run_op_timed(struct machine_cpu *cpu, struct op_turn maker,
                         const struct observer *observer)
{
    double start = steady_seconds();

    run_op(cpu, maker, observer);
    cpu->options.timed(cpu->options.timed_context, maker.op, steady_seconds() - start);
}

static enum status show_outputs(struct machine_cpu *cpu, const struct observer *observer,
                                struct op_turn maker, struct error *error)
{
    const struct tape *tape = cpu->machine.tape;
    const struct op *op = &tape->ops[maker.op];

    for (uint32_t i = 0; i < op->output_count; i++) {
        const void *bytes = cpu->memory[op->outputs[i]];

        if (!observer_wants(observer, maker, i)) {
            continue;
        }
        if (is_packed(cpu, op, i)) {
            cpu->kernels.unpack(cpu->blocks[BLOCK_SCRATCH], bytes, op, threads_for(cpu, op));
            bytes = cpu->blocks[BLOCK_SCRATCH];
        }
        TRY(observer->made(observer->context, maker, i, bytes,
                           tensor_size(&tape->tensors[op->outputs[i]]), error));
    }
    return STATUS_OK;
}

static enum status check_bound(const struct machine_cpu *cpu, struct error *error)
{
    const struct tape *tape = cpu->machine.tape;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (tape->tensors[id].role == ROLE_DATA && cpu->memory[id] == NULL) {
            return error_set(error, STATUS_USAGE, "the data '%s' is not there",
                             tape->tensors[id].name);
        }
    }
    return STATUS_OK;
}

static void take_next_states(struct machine_cpu *cpu)
{
    const struct tape *tape = cpu->machine.tape;

    for (uint32_t i = 0; i < tape->state_count; i++) {
        if (cpu->plan.copied[i]) {
            memcpy(cpu->memory[tape->states[i].before], cpu->memory[tape->states[i].after],
                   tensor_size(&tape->tensors[tape->states[i].before]));
        }
    }
}

/* Is what the operation makes not read in this step? */
static bool is_idle(const struct machine_cpu *cpu, uint32_t at)
{
    const uint32_t condition = cpu->lazy.condition;

    return cpu->lazy.ops != NULL && cpu->lazy.ops[at] &&
           !lazy_holds(&cpu->machine.tape->tensors[condition], cpu->memory[condition]);
}

/* Does the operation make nothing that anybody reads or wants to see? */
static bool makes_nothing(const struct machine_cpu *cpu, const struct observer *observer,
                          struct op_turn maker)
{
    for (uint32_t i = 0; i < cpu->machine.tape->ops[maker.op].output_count; i++) {
        if (!is_unwanted(cpu, observer, maker, i)) {
            return false;
        }
    }
    return true;
}

/* Is it there, or not wanted? What lasts is made in the first step, wanted or not. */
static bool may_skip(const struct machine_cpu *cpu, const struct observer *observer,
                     struct op_turn maker)
{
    const uint32_t at = maker.op;
    const bool lasts = cpu->lasting != NULL && cpu->lasting[at];

    return !cpu->plan.runs[at] || (lasts ? cpu->kept : is_idle(cpu, at)) ||
           makes_nothing(cpu, observer, maker);
}

static enum status run_once(struct machine_cpu *cpu, struct op_turn maker,
                            const struct observer *observer, struct error *error)
{
    if (may_skip(cpu, observer, maker)) {
        return STATUS_OK;
    }
    if (cpu->machine.guard.before_write != NULL && writes_state(cpu, maker.op)) {
        ask_guard(cpu);
    }
    if (cpu->options.timed == NULL) {
        run_op(cpu, maker, observer);
    } else {
        run_op_timed(cpu, maker, observer);
    }
    if (observer != NULL) {
        TRY(show_outputs(cpu, observer, maker, error));
    }
    if (cpu->lasting != NULL && cpu->lasting[maker.op] && cpu->options.spare != NULL) {
        spare_data(cpu, maker.op);
    }
    return STATUS_OK;
}

/* Gives the next turn of a loop what this one left. */
static void hand_on(struct machine_cpu *cpu, const struct loop *loop)
{
    const struct tape *tape = cpu->machine.tape;

    for (uint32_t k = loop->carry_first; k < loop->carry_first + loop->carry_count; k++) {
        const struct loop_carry *carry = &tape->loop_carries[k];

        if (cpu->plan.handed[k]) {
            assert(!cpu->plan.in_state[carry->in]);
            memcpy(cpu->memory[carry->in], cpu->memory[carry->out],
                   tensor_size(&tape->tensors[carry->in]));
        }
    }
}

static enum status run_loop(struct machine_cpu *cpu, const struct loop *loop,
                            const struct observer *observer, struct error *error)
{
    for (uint32_t turn = 0; turn < loop->turns; turn++) {
        if (turn > 0) {
            hand_on(cpu, loop);
        }
        for (uint32_t at = loop->first; at < loop->last; at++) {
            TRY(run_once(cpu, (struct op_turn){at, turn}, observer, error));
        }
    }
    return STATUS_OK;
}

static enum status cpu_run(struct machine *machine, uint32_t first, uint32_t last,
                           const struct observer *observer, struct error *error)
{
    struct machine_cpu *cpu = cpu_of(machine);
    uint64_t control = float_control_take();
    enum status status;

    assert(observer == NULL || cpu->options.trace);
    TRY_OUT(check_bound(cpu, error));
    TRY_OUT(prepare_threads(cpu->options.thread_count, error));
    for (uint32_t at = first; at < last;) {
        const struct loop *loop = tape_loop_of(machine->tape, at);

        if (loop == NULL) {
            TRY_OUT(run_once(cpu, (struct op_turn){at, 0}, observer, error));
            at++;
        } else {
            assert(at == loop->first && loop->last <= last);
            TRY_OUT(run_loop(cpu, loop, observer, error));
            at = loop->last;
        }
    }
    if (last == machine->tape->op_count) {
        ask_guard(cpu);
        take_next_states(cpu);
        cpu->kept = cpu->kept || first == 0;
    }
out:
    float_control_give_back(control);
    return status;
}

static enum status cpu_step(struct machine *machine, const struct observer *observer,
                            struct error *error)
{
    return cpu_run(machine, 0, machine->tape->op_count, observer, error);
}

/* The sign bit of the result is set if one of the numbers is a NaN or an infinity: all exponent
 * bits are then set, and adding one carries into the sign. */
static uint32_t carry_of(const uint32_t *bits, uint64_t count)
{
    uint32_t found = 0;

    for (uint64_t i = 0; i < count; i++) {
        found |= (bits[i] & UINT32_C(0x7f800000)) + UINT32_C(0x00800000);
    }
    return found;
}

static bool is_finite(const uint32_t *bits, uint64_t count, int thread_count)
{
    uint64_t spans = count / FINITE_SPAN;
    uint32_t found = carry_of(bits + spans * FINITE_SPAN, count % FINITE_SPAN);

#pragma omp parallel for schedule(static) reduction(| : found) num_threads(thread_count)
    for (uint64_t span = 0; span < spans; span++) {
        found |= carry_of(bits + span * FINITE_SPAN, FINITE_SPAN); /* constant: it vectorizes */
    }
    return found >> 31 == 0;
}

static enum status cpu_diverged(struct machine *machine, bool *diverged, struct error *error)
{
    struct machine_cpu *cpu = cpu_of(machine);
    const struct tape *tape = machine->tape;

    (void)error;
    for (uint32_t i = 0; i < tape->state_count; i++) {
        uint32_t id = tape->states[i].before;

        if (tape->tensors[id].dtype == DTYPE_F32 &&
            !is_finite(cpu->memory[id], tape->tensors[id].count, cpu->options.thread_count)) {
            *diverged = true;
            return STATUS_OK;
        }
    }
    *diverged = false;
    return STATUS_OK;
}

const struct backend backend_cpu = {
    .name = "cpu",
    .slices = {.room = CHAIN_ROOM, .losses = true},
    .open = cpu_open,
    .size = cpu_size,
    .close = cpu_close,
    .write = cpu_write,
    .read = cpu_read,
    .bind = cpu_bind,
    .step = cpu_step,
    .run = cpu_run,
    .peek = cpu_peek,
    .diverged = cpu_diverged,
};
