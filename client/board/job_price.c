/* job_price.c - see job_price.h. */
#include "client/board/job_price.h"

#include "proofs/run/known_pace.h"
#include "proofs/run/step_time.h"

#define MILLION     1000000u
#define MS_PER_HOUR 3600000u
#define MOST        (~(wei)0)

/* amount * part / whole; the most where that is too much. */
static wei portion_of(wei amount, uint64_t part, uint64_t whole)
{
    return part != 0 && amount > MOST / part ? MOST : amount * part / whole;
}

static uint64_t milliseconds_of(uint64_t step_ns, uint64_t steps)
{
    double ms = (double)step_ns * (double)steps / 1e6;

    return ms < 1.0 ? 1 : (uint64_t)ms;
}

struct job_price job_price_of(const struct game_terms *terms, wei segment_reward,
                              const char *device)
{
    struct job_price price = {.measured = false};
    struct known_pace pace;
    struct error none;

    error_init(&none);
    if (known_pace_find(&pace, &terms->job_id, device, &none) != STATUS_OK || pace.step_ns == 0 ||
        terms->segment_steps == 0) {
        return price;
    }
    price.measured = true;
    price.hour = portion_of(segment_reward, MS_PER_HOUR,
                            milliseconds_of(pace.step_ns, terms->segment_steps));
    if (pace.tokens > 0 && pace.tokens < UINT64_MAX / terms->segment_steps) {
        price.million = portion_of(segment_reward, MILLION, pace.tokens * terms->segment_steps);
    }
    return price;
}

bool job_price_is_rate(const struct options *options)
{
    return options_flag(options, "per-hour") || options_flag(options, "per-million-tokens");
}

static enum status of_hours(wei *whole, wei amount, const struct job *job, const char *device,
                            struct error *error)
{
    struct known_pace pace;

    if (known_pace_find(&pace, &job->id, device, error) != STATUS_OK || pace.step_ns == 0) {
        error_init(error);
        (void)error_set(error, STATUS_USAGE,
                        "--per-hour: nobody has measured this job on this machine's %s", device);
        error_advise(error, "'lockstep prover probe JOB --data FILE --device %s' does", device);
        return STATUS_USAGE;
    }
    *whole = portion_of(amount, milliseconds_of(pace.step_ns, job->steps), MS_PER_HOUR);
    return STATUS_OK;
}

enum status job_price_whole(wei *whole, wei amount, const struct job *job,
                            const struct options *options, struct error *error)
{
    bool hours = options_flag(options, "per-hour");
    uint64_t tokens = step_time_tokens(job->tape);

    /* A rate is for people; the ledger has the price of the whole, found once, here. */
    *whole = amount;
    if (!job_price_is_rate(options)) {
        return STATUS_OK;
    }
    if (hours && options_flag(options, "per-million-tokens")) {
        return error_set(error, STATUS_USAGE, "--per-hour and --per-million-tokens: only one");
    }
    if (hours) {
        TRY(of_hours(whole, amount, job, options_text(options, "device"), error));
    } else if (tokens == 0 || tokens > UINT64_MAX / job->steps) {
        return error_set(error, STATUS_USAGE,
                         "--per-million-tokens: the job's steps draw no tokens");
    } else {
        *whole = portion_of(amount, tokens * job->steps, MILLION);
    }
    return *whole <= WEI_MAX ? STATUS_OK
                             : error_set(error, STATUS_USAGE, "--reward: more than there is money");
}
