/*
 * store_tables.c - see store_tables.h.
 *
 * They are what sqlite3 calls eponymous virtual tables: a connection has them by their names, and
 * no file knows of them.
 */
#include "verifier/store/store_tables.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum {
    COLUMNS_MAX = 20,
    EQUALS_MAX = 8, /* that one walk compares */
    SCHEMA_MAX = 512,
};

/* ---- columns ----------------------------------------------------------------------- */

/* What lies at the offset of a column. */
enum field {
    FIELD_U32, /* and every enum */
    FIELD_U64,
    FIELD_BOOL,
    FIELD_HASH, /* a hash32 or a digest */
    FIELD_SEED, /* a hash32; zero is NULL */
    FIELD_ADDRESS,
    FIELD_PARTY, /* an address; zero is NULL */
    FIELD_OURS,  /* an address: is it the board's account? */
    FIELD_AMOUNT,
    FIELD_JOB,      /* nothing: the key of the job */
    FIELD_SEGMENTS, /* nothing: how many the job's terms have */
};

struct seen_column {
    const char *name; /* NULL: no more */
    enum field field;
    size_t offset;
};

#define AT_JOB(member)     offsetof(struct job_record, member)
#define AT_ENTRY(member)   offsetof(struct job_record_entry, member)
#define AT_SEGMENT(member) offsetof(struct job_record_segment, member)
#define AT_SEAT(member)    offsetof(struct job_record_seat, member)
#define AT_CLAIM(member)   offsetof(struct job_record_claim, member)

static const struct seen_column job_columns[COLUMNS_MAX] = {
    {"key", FIELD_JOB, 0},
    {"id", FIELD_HASH, AT_JOB(terms.job_id)},
    {"client", FIELD_ADDRESS, AT_JOB(client)},
    {"solver", FIELD_PARTY, AT_JOB(state.solver)},
    {"steps", FIELD_U64, AT_JOB(terms.steps)},
    {"segment_count", FIELD_SEGMENTS, 0},
    {"phase", FIELD_U32, AT_JOB(state.phase)},
    {"generation", FIELD_U32, AT_JOB(state.generation)},
    {"committed", FIELD_U32, AT_JOB(state.committed)},
    {"drawn", FIELD_U32, AT_JOB(state.drawn)},
    {"leg_start", FIELD_U32, AT_JOB(state.leg_start)},
    {"finalized", FIELD_U32, AT_JOB(state.finalized)},
    {"refused_until_s", FIELD_U64, AT_JOB(state.refused_until_s)},
    {"barred", FIELD_BOOL, AT_JOB(state.barred)},
    {"unpaid", FIELD_U32, AT_JOB(state.unpaid)},
    {"enlisted", FIELD_U64, AT_JOB(enlisted)}, /* entries of ours that ever were */
};

static const struct seen_column entry_columns[COLUMNS_MAX] = {
    {"job", FIELD_JOB, 0},
    {"generation", FIELD_U32, AT_ENTRY(generation)},
    {"number", FIELD_U32, AT_ENTRY(number)},
    {"owner", FIELD_ADDRESS, AT_ENTRY(owner)},
    {"ours", FIELD_OURS, AT_ENTRY(owner)},
    {"enlisted", FIELD_U64, AT_ENTRY(enlisted)},
    {"gone", FIELD_BOOL, AT_ENTRY(gone)},
    {"lost_s", FIELD_U64, AT_ENTRY(lost_s)},
};

static const struct seen_column segment_columns[COLUMNS_MAX] = {
    {"hash", FIELD_HASH, AT_SEGMENT(hash)},
    {"job", FIELD_JOB, 0},
    {"idx", FIELD_U32, AT_SEGMENT(committed.index)},
    {"generation", FIELD_U32, AT_SEGMENT(committed.generation)},
    {"height", FIELD_U64, AT_SEGMENT(committed.height)},
    {"panel", FIELD_U32, AT_SEGMENT(committed.panel)},
    {"previous", FIELD_HASH, AT_SEGMENT(previous)},
    {"seed", FIELD_SEED, AT_SEGMENT(draw.seed)},
    {"covered", FIELD_BOOL, AT_SEGMENT(draw.covered)},
    {"round", FIELD_U32, AT_SEGMENT(draw.round)},
    {"rights", FIELD_U32, AT_SEGMENT(draw.rights)},
    {"unseen", FIELD_U32, AT_SEGMENT(draw.unseen)},
    {"over_height", FIELD_U64, AT_SEGMENT(draw.over_height)},
    {"void", FIELD_BOOL, AT_SEGMENT(is_void)},
    {"number", FIELD_U64, AT_SEGMENT(number)},
};

static const struct seen_column seat_columns[COLUMNS_MAX] = {
    {"segment", FIELD_HASH, AT_SEAT(segment)},  {"place", FIELD_U32, AT_SEAT(place)},
    {"entry", FIELD_U32, AT_SEAT(state.entry)}, {"owner", FIELD_ADDRESS, AT_SEAT(owner)},
    {"ours", FIELD_OURS, AT_SEAT(owner)},       {"round", FIELD_U32, AT_SEAT(round)},
    {"phase", FIELD_U32, AT_SEAT(state.phase)}, {"verdict", FIELD_U32, AT_SEAT(state.verdict)},
};

static const struct seen_column claim_columns[COLUMNS_MAX] = {
    {"key", FIELD_HASH, AT_CLAIM(key)},
    {"job", FIELD_JOB, 0},
    {"segment", FIELD_HASH, AT_CLAIM(segment)},
    {"subject", FIELD_HASH, AT_CLAIM(subject)},
    {"idx", FIELD_U32, AT_CLAIM(index)},
    {"generation", FIELD_U32, AT_CLAIM(generation)},
    {"step", FIELD_U32, AT_CLAIM(step)},
    {"pre", FIELD_HASH, AT_CLAIM(pre_state)},
    {"post", FIELD_HASH, AT_CLAIM(post_state)},
    {"phase", FIELD_U32, AT_CLAIM(state.phase)},
    {"turn", FIELD_U32, AT_CLAIM(state.turn)},
    {"deadline_s", FIELD_U64, AT_CLAIM(state.deadline_s)},
    {"outcome", FIELD_U32, AT_CLAIM(state.outcome)},
    {"ours", FIELD_BOOL, AT_CLAIM(ours)},
    {"lost", FIELD_BOOL, AT_CLAIM(lost)},
    {"lost_s", FIELD_U64, AT_CLAIM(lost_s)},
    {"bond", FIELD_AMOUNT, AT_CLAIM(bond)}, /* that we paid */
    {"number", FIELD_U64, AT_CLAIM(number)},
};

/* ---- tables ------------------------------------------------------------------------- */

/* The rows of one job lie in up to two lists of its record. */
struct rows {
    const void *items;
    uint32_t count;
};

static struct rows job_rows(const struct job_record *job, uint32_t list)
{
    return (struct rows){job, list == 0};
}

static struct rows entry_rows(const struct job_record *job, uint32_t list)
{
    return list == 0 ? (struct rows){job->entries, job->state.entries}
                     : (struct rows){job->former, job->former_count};
}

static struct rows segment_rows(const struct job_record *job, uint32_t list)
{
    return list == 0 ? (struct rows){job->segments, job->state.committed}
                     : (struct rows){job->voids, job->void_count};
}

static struct rows seat_rows(const struct job_record *job, uint32_t list)
{
    return list == 0 ? (struct rows){job->seats, job->seat_count}
                     : (struct rows){job->ended, job->ended_count};
}

static struct rows claim_rows(const struct job_record *job, uint32_t list)
{
    return (struct rows){job->claims, list == 0 ? job->claim_count : 0};
}

static const struct seen_rows {
    const char *name;
    size_t size; /* of a row */
    struct rows (*rows)(const struct job_record *job, uint32_t list);
    const struct seen_column *columns;
    const char *row; /* the column that names one row; NULL: none does */
    const char *job; /* ... the rows of one job, */
    const char *of;  /* ... of one segment; NULL: none does */
} tables[] = {
    {"jobs", sizeof(struct job_record), job_rows, job_columns, NULL, "key", NULL},
    {"entries", sizeof(struct job_record_entry), entry_rows, entry_columns, NULL, "job", NULL},
    {"segments", sizeof(struct job_record_segment), segment_rows, segment_columns, "hash", "job",
     NULL},
    {"seats", sizeof(struct job_record_seat), seat_rows, seat_columns, NULL, NULL, "segment"},
    {"disputes", sizeof(struct job_record_claim), claim_rows, claim_columns, "key", "job",
     "segment"},
};

/* ---- values ------------------------------------------------------------------------- */

struct value {
    int type;       /* of sqlite3: SQLITE_INTEGER, SQLITE_BLOB, SQLITE_TEXT or SQLITE_NULL */
    int64_t number; /* ..., or the size of the bytes */
    const void *bytes;
};

static struct value bytes_or_null(const void *bytes, size_t size, bool may_be_null)
{
    static const uint8_t zeros[HASH32_SIZE];
    bool is_null = may_be_null && memcmp(bytes, zeros, size) == 0;

    return (struct value){is_null ? SQLITE_NULL : SQLITE_BLOB, (int64_t)size, bytes};
}

/* Of the field of a number; 0 for the others. */
static int64_t number_of(const struct board *board, const struct job_record *job, const char *field,
                         enum field kind)
{
    switch (kind) {
    case FIELD_U32:
        return *(const uint32_t *)(const void *)field;
    case FIELD_U64:
        return (int64_t) * (const uint64_t *)(const void *)field;
    case FIELD_BOOL:
        return *(const bool *)(const void *)field;
    case FIELD_OURS:
        return !address_is_zero(&board->account) &&
               address_equal((const struct address *)(const void *)field, &board->account);
    case FIELD_SEGMENTS:
        return game_segment_count(&job->terms);
    case FIELD_HASH:
    case FIELD_SEED:
    case FIELD_ADDRESS:
    case FIELD_PARTY:
    case FIELD_AMOUNT:
    case FIELD_JOB:
        break;
    }
    return 0;
}

/* text: room for an amount. */
static struct value value_of(char text[WEI_TEXT_SIZE], const struct board *board,
                             const struct job_record *job, const void *item,
                             const struct seen_column *column)
{
    const char *field = (const char *)item + column->offset;

    switch (column->field) {
    case FIELD_HASH:
    case FIELD_SEED:
        return bytes_or_null(field, HASH32_SIZE, column->field == FIELD_SEED);
    case FIELD_ADDRESS:
    case FIELD_PARTY:
        return bytes_or_null(field, ADDRESS_SIZE, column->field == FIELD_PARTY);
    case FIELD_JOB:
        return bytes_or_null(job->key.bytes, HASH32_SIZE, false);
    case FIELD_AMOUNT:
        wei_print_plain(text, *(const wei *)(const void *)field);
        return (struct value){SQLITE_TEXT, (int64_t)strlen(text), text};
    case FIELD_U32:
    case FIELD_U64:
    case FIELD_BOOL:
    case FIELD_OURS:
    case FIELD_SEGMENTS:
        break;
    }
    return (struct value){SQLITE_INTEGER, number_of(board, job, field, column->field), NULL};
}

/* ---- walks --------------------------------------------------------------------------- */

struct seen_table {
    sqlite3_vtab base;
    const struct board *board;
    const struct seen_rows *table;
};

/* A value that a column must have. */
struct equal {
    int column;
    int type;
    int64_t number;
    uint8_t bytes[HASH32_SIZE];
};

struct seen_walk {
    sqlite3_vtab_cursor base;
    struct equal equals[EQUALS_MAX];
    int equal_count;
    const void *only; /* the one row; NULL: all from here on */
    uint32_t job;
    uint32_t job_end; /* one past the last */
    uint32_t list;
    uint32_t list_end;
    uint32_t at;
    const void *item; /* NULL: at the end */
};

static const struct seen_table *table_of(const struct seen_walk *walk)
{
    return (const struct seen_table *)(const void *)walk->base.pVtab;
}

static bool is_equal(const struct seen_walk *walk, const struct equal *equal)
{
    const struct seen_table *seen = table_of(walk);
    char text[WEI_TEXT_SIZE];
    const struct value value = value_of(text, seen->board, &seen->board->jobs[walk->job],
                                        walk->item, &seen->table->columns[equal->column]);

    if (value.type != equal->type) {
        return false;
    }
    return value.number == equal->number &&
           (value.type == SQLITE_INTEGER ||
            memcmp(value.bytes, equal->bytes, (size_t)value.number) == 0);
}

static bool is_wanted(const struct seen_walk *walk)
{
    for (int i = 0; i < walk->equal_count; i++) {
        if (!is_equal(walk, &walk->equals[i])) {
            return false;
        }
    }
    return true;
}

/* To the next row there is, wanted or not. */
static void advance_walk(struct seen_walk *walk)
{
    const struct seen_table *seen = table_of(walk);

    walk->item = NULL;
    while (walk->item == NULL && walk->job < walk->job_end) {
        const struct rows rows = seen->table->rows(&seen->board->jobs[walk->job], walk->list);

        if (walk->only != NULL) {
            walk->item = walk->only;
            walk->only = NULL;
            walk->list = walk->list_end - 1; /* nothing follows */
            walk->at = UINT32_MAX;
        } else if (walk->at < rows.count) {
            walk->item = (const char *)rows.items + seen->table->size * walk->at++;
        } else {
            walk->at = 0;
            walk->list++;
            walk->job += walk->list == walk->list_end;
            walk->list = walk->list == walk->list_end ? 0 : walk->list;
        }
    }
}

static int walk_next(sqlite3_vtab_cursor *cursor)
{
    struct seen_walk *walk = (struct seen_walk *)(void *)cursor;

    do {
        advance_walk(walk);
    } while (walk->item != NULL && !is_wanted(walk));
    return SQLITE_OK;
}

static int walk_is_over(sqlite3_vtab_cursor *cursor)
{
    return ((struct seen_walk *)(void *)cursor)->item == NULL;
}

static int walk_column(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int column)
{
    const struct seen_walk *walk = (struct seen_walk *)(void *)cursor;
    const struct seen_table *seen = table_of(walk);
    char text[WEI_TEXT_SIZE];
    const struct value value = value_of(text, seen->board, &seen->board->jobs[walk->job],
                                        walk->item, &seen->table->columns[column]);

    switch (value.type) {
    case SQLITE_INTEGER:
        sqlite3_result_int64(context, value.number);
        break;
    case SQLITE_BLOB:
        sqlite3_result_blob(context, value.bytes, (int)value.number, SQLITE_TRANSIENT);
        break;
    case SQLITE_TEXT:
        sqlite3_result_text(context, value.bytes, (int)value.number, SQLITE_TRANSIENT);
        break;
    default:
        sqlite3_result_null(context);
        break;
    }
    return SQLITE_OK;
}

/* Its job, its list, and its place there: no two rows have the same. */
static int walk_row(sqlite3_vtab_cursor *cursor, sqlite3_int64 *number)
{
    const struct seen_walk *walk = (const struct seen_walk *)(void *)cursor;
    const struct seen_table *seen = table_of(walk);
    const char *item = walk->item;

    *number = (sqlite3_int64)walk->job << 33;
    for (uint32_t list = 0; list < 2; list++) {
        const struct rows rows = seen->table->rows(&seen->board->jobs[walk->job], list);
        const char *first = rows.items;

        if (rows.count > 0 && item >= first && item < first + rows.count * seen->table->size) {
            *number |= (sqlite3_int64)list << 32;
            *number |= (sqlite3_int64)((size_t)(item - first) / seen->table->size);
        }
    }
    return SQLITE_OK;
}

/* ---- beginning a walk ------------------------------------------------------------------ */

static bool is_named(const struct seen_column *column, const char *name)
{
    return name != NULL && strcmp(column->name, name) == 0;
}

/* To the job of a row, or to the row. */
static void go_to(struct seen_walk *walk, const struct seen_column *column,
                  const struct hash32 *key)
{
    const struct seen_table *seen = table_of(walk);
    const struct board *board = seen->board;
    const struct job_record *job = NULL;

    if (is_named(column, seen->table->job)) {
        job = board_find(board, key);
    } else if (is_named(column, seen->table->of)) {
        const struct job_record_segment *segment = board_segment(board, &job, key);

        job = segment == NULL ? NULL : job;
        /* Seats of what stands and is not final are in the first list. */
        if (job != NULL && !segment->is_void && segment->committed.index >= job->state.finalized) {
            walk->list_end = 1;
        }
    } else {
        walk->only = seen->table->rows == segment_rows
                         ? (const void *)board_segment(board, &job, key)
                         : board_claim(board, &job, key);
        job = walk->only == NULL ? NULL : job;
    }
    walk->job = job == NULL ? walk->job_end : (uint32_t)(job - board->jobs);
    walk->job_end = job == NULL ? walk->job_end : walk->job + 1;
}

/* How few rows a value of the column leaves; 0: it says nothing of where they are. */
static int goal_rank(const struct seen_rows *table, const struct seen_column *column)
{
    return is_named(column, table->row)   ? 3
           : is_named(column, table->of)  ? 2
           : is_named(column, table->job) ? 1
                                          : 0;
}

/* No row has a key of another size. */
static void go_to_value(struct seen_walk *walk, const struct seen_column *column,
                        sqlite3_value *value)
{
    struct hash32 key;

    if (sqlite3_value_bytes(value) != HASH32_SIZE) {
        walk->job = walk->job_end;
        return;
    }
    memcpy(key.bytes, sqlite3_value_blob(value), HASH32_SIZE);
    go_to(walk, column, &key);
}

/* Compares what it can: sqlite3 looks at each row again. */
static void add_equal(struct seen_walk *walk, int column, sqlite3_value *wanted)
{
    struct equal *equal = &walk->equals[walk->equal_count];
    const int type = sqlite3_value_type(wanted);

    *equal = (struct equal){.column = column, .type = type};
    if (type == SQLITE_INTEGER) {
        equal->number = sqlite3_value_int64(wanted);
    } else if (type == SQLITE_BLOB && sqlite3_value_bytes(wanted) <= HASH32_SIZE) {
        equal->number = sqlite3_value_bytes(wanted);
        memcpy(equal->bytes, sqlite3_value_blob(wanted), (size_t)equal->number);
    } else {
        return;
    }
    walk->equal_count += walk->equal_count < EQUALS_MAX - 1;
}

/* columns: a letter for each value, from 'a' on. */
static int walk_begin(sqlite3_vtab_cursor *cursor, int number, const char *columns, int count,
                      sqlite3_value **values)
{
    struct seen_walk *walk = (struct seen_walk *)(void *)cursor;
    const struct seen_table *seen = table_of(walk);
    int best = 0;
    int best_rank = 0;

    (void)number;
    walk->equal_count = 0;
    walk->only = NULL;
    walk->job = walk->list = walk->at = 0;
    walk->job_end = seen->board->count;
    walk->list_end = 2;
    for (int i = 0; i < count; i++) {
        const int rank = goal_rank(seen->table, &seen->table->columns[columns[i] - 'a']);

        add_equal(walk, columns[i] - 'a', values[i]);
        best = rank > best_rank ? i : best;
        best_rank = rank > best_rank ? rank : best_rank;
    }
    if (best_rank > 0) {
        go_to_value(walk, &seen->table->columns[columns[best] - 'a'], values[best]);
    }
    return walk_next(cursor);
}

static double cost_of(const struct seen_rows *table, const struct seen_column *column, double cost)
{
    const double of_job = table->rows == job_rows ? 1 : 1000;
    const double costs[] = {cost / 4, of_job, 16, 1};
    const double most = costs[goal_rank(table, column)];

    return most < cost ? most : cost;
}

/* Which `=` a walk can use. */
static int plan_walk(sqlite3_vtab *base, sqlite3_index_info *info)
{
    const struct seen_table *seen = (const struct seen_table *)(const void *)base;
    char columns[EQUALS_MAX] = "";
    double cost = 1e6;
    int count = 0;

    for (int i = 0; i < info->nConstraint && count < EQUALS_MAX - 1; i++) {
        const int column = info->aConstraint[i].iColumn;

        if (!info->aConstraint[i].usable || column < 0 ||
            info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ) {
            continue;
        }
        cost = cost_of(seen->table, &seen->table->columns[column], cost);
        columns[count] = (char)('a' + column);
        info->aConstraintUsage[i].argvIndex = ++count;
    }
    info->estimatedCost = cost;
    info->estimatedRows = cost < 1 ? 1 : (sqlite3_int64)cost;
    info->idxStr = sqlite3_mprintf("%.*s", count, columns);
    info->needToFreeIdxStr = 1;
    return info->idxStr == NULL ? SQLITE_NOMEM : SQLITE_OK;
}

/* ---- for sqlite3 ------------------------------------------------------------------------ */

static int open_walk(sqlite3_vtab *base, sqlite3_vtab_cursor **cursor)
{
    struct seen_walk *walk = sqlite3_malloc(sizeof(*walk));

    (void)base;
    if (walk == NULL) {
        return SQLITE_NOMEM;
    }
    memset(walk, 0, sizeof(*walk));
    *cursor = &walk->base;
    return SQLITE_OK;
}

static int close_walk(sqlite3_vtab_cursor *cursor)
{
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static void print_schema(char text[SCHEMA_MAX], const struct seen_rows *table)
{
    size_t size = (size_t)snprintf(text, SCHEMA_MAX, "CREATE TABLE %s (", table->name);

    for (int i = 0; i < COLUMNS_MAX && table->columns[i].name != NULL; i++) {
        size += (size_t)snprintf(text + size, SCHEMA_MAX - size, "%s%s", i == 0 ? "" : ", ",
                                 table->columns[i].name);
        assert(size < SCHEMA_MAX - 1);
    }
    (void)snprintf(text + size, SCHEMA_MAX - size, ")");
}

/* about: of the module. */
static int connect_table(sqlite3 *database, void *about, int count, const char *const *arguments,
                         sqlite3_vtab **base, char **why)
{
    struct seen_table *seen = sqlite3_malloc(sizeof(*seen));
    char schema[SCHEMA_MAX];
    int result;

    (void)count;
    (void)arguments;
    (void)why;
    if (seen == NULL) {
        return SQLITE_NOMEM;
    }
    memcpy(seen, about, sizeof(*seen));
    print_schema(schema, seen->table);
    result = sqlite3_declare_vtab(database, schema);
    if (result != SQLITE_OK) {
        sqlite3_free(seen);
        return result;
    }
    *base = &seen->base;
    return SQLITE_OK;
}

static int disconnect_table(sqlite3_vtab *base)
{
    sqlite3_free(base);
    return SQLITE_OK;
}

/* Without xCreate, a table is there by its name alone; without xUpdate, nobody writes it. */
static const sqlite3_module module = {.xConnect = connect_table,
                                      .xBestIndex = plan_walk,
                                      .xDisconnect = disconnect_table,
                                      .xOpen = open_walk,
                                      .xClose = close_walk,
                                      .xFilter = walk_begin,
                                      .xNext = walk_next,
                                      .xEof = walk_is_over,
                                      .xColumn = walk_column,
                                      .xRowid = walk_row};

enum status store_tables_make(struct database *sql, const struct board *board, struct error *error)
{
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        struct seen_table *about = sqlite3_malloc(sizeof(*about));

        if (about == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory for the tables of a ledger");
        }
        *about = (struct seen_table){.board = board, .table = &tables[i]};
        if (sqlite3_create_module_v2(sql->database, tables[i].name, &module, about, sqlite3_free) !=
            SQLITE_OK) {
            return error_set(error, STATUS_IO, "sqlite3 does not take the tables of a ledger: %s",
                             sqlite3_errmsg(sql->database));
        }
    }
    return STATUS_OK;
}
