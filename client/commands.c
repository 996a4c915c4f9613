/* commands.c - see commands.h. */
#include "client/commands.h"

#include "base/web/ports.h"
#include "client/federate/federate.h"
#include "client/job_change.h"
#include "client/job_collect.h"
#include "client/job_fetch.h"
#include "client/job_list.h"
#include "client/job_new.h"
#include "client/job_new_options.h"
#include "client/job_open.h"
#include "client/job_serve.h"
#include "client/judge/job_eval.h"
#include "client/keeper/job_keep.h"
#include "client/watch/job_watch.h"

static const struct command commands[] = {
    {.name = "new",
     .summary = "make a job of a model, its options and its data",
     .description =
         "Writes a job file: the program of one training step, the roots of the data and of the "
         "first state, and the number of steps. With the file and the data every machine computes "
         "the same bits after every step.",
     .example =
         "lockstep job new --model gpt2 --data text.u8 --steps 300 --out text.job\n"
         "lockstep job new --inference --first-state gpt2.safetensors --data text.u16 \\\n"
         "    --data-type u16 --vocabulary 50257 --layers 12 --heads 12 --width 768 \\\n"
         "    --positions 1024\n"
         "lockstep job new --base Llama-3.2-1B --data tokens.npy --length 512 --rate 0.00002\n"
         "lockstep job new --tape my.tape --constants my.safetensors --data text.u8",
     .options = job_new_options,
     .option_count = JOB_NEW_OPTIONS,
     .run = job_new_run},
    {.name = "show",
     .summary = "check a job file and print it, or print a job on a ledger",
     .arguments = "JOB",
     .example = "lockstep job show text.job\n"
                "lockstep job show 0x51dc0a7f --ledger local:try.ledger",
     .options = job_new_show_options,
     .option_count = JOB_NEW_SHOW_OPTIONS,
     .run = job_new_show},
    {.name = "eval",
     .summary = "find the loss and the accuracy of a trained state on held-out data",
     .description =
         "Takes the part of the job's program that looks at held-out data ('job new --eval'), "
         "makes "
         "a job of one step of it, which begins with the state, and runs that here. The state is "
         "the newest checkpoint of a bundle, or --checkpoint. With the held-out file of the job "
         "itself "
         "the figure has the bits that the job committed to. With --out others can run the same "
         "job, and dispute what it gives.",
     .arguments = "JOB",
     .example =
         "lockstep job eval text.run --data held.u8\n"
         "lockstep job eval text.job --checkpoint model/model.safetensors --data held.u8 \\\n"
         "    --out eval.job",
     .options = job_eval_options,
     .option_count = JOB_EVAL_OPTIONS,
     .run = job_eval_run},
    {.name = "open",
     .summary = "put a job on a ledger, with the money for its solver",
     .description =
         "Escrows reward and fees. Terms that are not given follow from the reward and "
         "--terms; all terms are shown and must be confirmed. Prints the key: the job's name on "
         "the ledger. The solver also needs the job file and the data.",
     .arguments = "JOB",
     .example = "lockstep job open text.job --reward 0.5eth --ledger local:try.ledger",
     .options = job_open_options,
     .option_count = JOB_OPEN_OPTIONS,
     .run = job_open_run},
    {.name = "serve",
     .summary = "offer a job file and its data to solvers and verifiers",
     .description =
         "Serves the job file, the data and a first state that is given by their roots, so that "
         "'prover run KEY' and 'verifier node' find them with nothing but the ledger, where "
         "'job open --contact URL' has told the address. With --push-token it also takes in and "
         "serves what solvers behind a router push ('prover publish --push'). With --keeper-of it "
         "is the job's keeper too. A folder stands for all files NAME.job in it.",
     .arguments = "JOB",
     .example =
         "lockstep job serve text.job --data text.u8 --serve 0.0.0.0:" PORT_JOB_SERVE "\n"
         "lockstep job serve text.job --data text.u8 --keeper-of 0x51dc0a7f --account 0x9f2c...41",
     .options = job_serve_options,
     .option_count = JOB_SERVE_OPTIONS,
     .run = job_serve_run},
    {.name = "list",
     .summary = "list the jobs on a ledger, newest first",
     .example = "lockstep job list --open --ledger local:try.ledger",
     .options = job_list_options,
     .option_count = JOB_LIST_OPTIONS,
     .run = job_list_run},
    {.name = "watch",
     .summary = "follow a job live: its curve, its segments, its money, what it waits for",
     .description =
         "Reads the ledger, and asks the job's mirrors for what the steps said: the curve of the "
         "loss, and of the loss on held-out data. No root binds a loss: the curve is the word of "
         "the mirror that is named beside it. Says when the job is barred or refused, what burned, "
         "and "
         "for how long its keeper has vouched nothing. Needs no key. Without a terminal it prints "
         "a line "
         "for each change, with --json an object. Ends when the job is over.",
     .arguments = "KEY",
     .example = "lockstep job watch 0x51dc0a7f --ledger local:try.ledger\n"
                "lockstep job watch 0x51dc0a7f --once --json --ledger local:try.ledger",
     .options = job_watch_options,
     .option_count = JOB_WATCH_OPTIONS,
     .run = job_watch_run},
    {.name = "keep",
     .summary = "run the keeper of a job: hold its states, and say so",
     .description =
         "Follows one job with a key of its own, which 'job open --keeper' names. Fetches start "
         "and end of each covered segment, checks them against their roots, keeps and serves "
         "them, and signs for it: then nobody can deny that they are there. Hands the signature "
         "to the solver; announces it, or brings it itself, where the account has gas. Where it "
         "could not have the states in time it refuses. Where seats disagree, or none says right, "
         "it replays the segment and claims what is false; that takes a bond and gas. Anybody "
         "with its key can give this escrow away, and nothing else. Stop it with SIGTERM; it "
         "resumes where it was.",
     .arguments = "KEY",
     .example =
         "lockstep job keep 0x51dc0a7f --account 0x9f2c...41 --serve 0.0.0.0:" PORT_JOB_KEEP "\n"
         "lockstep job keep 0x51dc0a7f --account 0x9f2c...41 --no-replay --known 0x71aa...0e",
     .options = job_keep_options,
     .option_count = JOB_KEEP_OPTIONS,
     .run = job_keep_run},
    {.name = "close",
     .summary = "take back a job that no solver has, with its escrow",
     .description = "What is not final comes back, but for what a void burned. After the deadline "
                    "anybody may do it; the money is the client's.",
     .arguments = "KEY",
     .example = "lockstep job close 0x51dc0a7f --ledger local:try.ledger",
     .options = job_change_options,
     .option_count = JOB_CHANGE_OPTIONS,
     .run = job_change_close},
    {.name = "stop",
     .summary = "end a running job with the next segment",
     .description = "The next segment becomes the last one. The escrow of those behind it comes "
                    "back at once, the pool when the job is closed.",
     .arguments = "KEY",
     .example = "lockstep job stop 0x51dc0a7f --ledger local:try.ledger",
     .options = job_change_options,
     .option_count = JOB_CHANGE_OPTIONS,
     .run = job_change_stop},
    {.name = "resume",
     .summary = "put back what a void burned, so that a solver may come again",
     .arguments = "KEY",
     .example = "lockstep job resume 0x51dc0a7f --ledger local:try.ledger",
     .options = job_change_paid_options,
     .option_count = JOB_CHANGE_PAID_OPTIONS,
     .run = job_change_resume},
    {.name = "refuse",
     .summary = "say that the states of what is open cannot be fetched",
     .description =
         "Ends the tenure of the solver. What nobody has vouched for and what still waits for "
         "claims becomes void: its price burns on both sides. What is vouched is paid first.",
     .arguments = "KEY",
     .example = "lockstep job refuse 0x51dc0a7f --ledger local:try.ledger",
     .options = job_change_paid_options,
     .option_count = JOB_CHANGE_PAID_OPTIONS,
     .run = job_change_refuse},
    {.name = "collect",
     .summary = "make the due moves of a job and withdraw what the ledger owes",
     .description =
         "Without a job, only withdraws what the ledger owes this account. With a job it first "
         "makes every due move that anybody may make: ends claims whose turn passed unused, "
         "settles covered segments, pays their legs, releases a late solver, and closes a job "
         "whose "
         "time is over. A running solver makes most of "
         "these moves itself. Prints each move that it made, what the job waits for, and until "
         "when. May be run again at any time.",
     .arguments = "[KEY]",
     .example = "lockstep job collect --ledger local:try.ledger\n"
                "lockstep job collect 0x51dc0a7f --wait --ledger local:try.ledger",
     .options = job_collect_options,
     .option_count = JOB_COLLECT_OPTIONS,
     .run = job_collect_run},
    {.name = "fetch",
     .summary = "fetch the trained model, checked against the root on the ledger",
     .description =
         "Fetches the last final state from several mirrors at once: those of --mirror, and those "
         "that the solver, the client and the panel announce on the ledger. Every piece is checked "
         "by its hash before it is kept; a mirror that gives a false one is named and dropped. The "
         "same command goes on where it stopped. Needs no key.",
     .arguments = "KEY",
     .example = "lockstep job fetch 0x51dc0a7f --out model --ledger local:try.ledger\n"
                "lockstep job fetch 0x51dc0a7f --out model --mirror https://solver.example \\\n"
                "    --segment 3 --ledger local:try.ledger",
     .options = job_fetch_options,
     .option_count = JOB_FETCH_OPTIONS,
     .run = job_fetch_run},
    {.name = "federate",
     .summary = "train by rounds of many owners, and average their states",
     .description =
         "PLAN is JSON: a list of owners, each with a name, a job file, data and terms. Each round "
         "opens one job for each owner, on the owner's own rows, with its own solver and pay; all "
         "begin with one state. The mean of their last states, which this machine makes as a "
         "bundle of one step, is what the next round begins with. 'lockstep audit FOLDER' proves "
         "the chain of rounds offline and makes each mean again. The rows of each owner are public "
         "to those who check its job. The mean of honest trainings may still be a bad model: an "
         "owner whose rows mislead is not found. A convicted or late solver is replaced; with "
         "--quorum its owner is left out of the round, and the record gives the reason. The same "
         "command goes on after a stop or a kill, and opens and pays nothing twice.",
     .arguments = "PLAN",
     .example = "lockstep job federate plan.json --out fed --offline --rounds 2\n"
                "lockstep job federate plan.json --out fed --rounds 8 --quorum 3 \\\n"
                "    --outer 0.7:0.9 --serve 0.0.0.0:" PORT_JOB_SERVE " --ledger local:try.ledger",
     .options = federate_options,
     .option_count = FEDERATE_OPTIONS,
     .run = federate_run},
    {.name = "check",
     .summary = "say whether a file is a state that a job has committed",
     .description = "Hashes a checkpoint or a model file of 'job fetch' and looks for its root "
                    "among the committed ones on the ledger.",
     .arguments = "KEY FILE",
     .example = "lockstep job check 0x51dc0a7f model/model.safetensors --ledger local:try.ledger",
     .options = job_fetch_check_options,
     .option_count = JOB_FETCH_CHECK_OPTIONS,
     .run = job_fetch_check},
};

const struct command_group job_commands = {.name = "job",
                                           .summary = "agreements on what to train",
                                           .commands = commands,
                                           .command_count = sizeof(commands) / sizeof(commands[0])};
