/* passphrase.c - see passphrase.h. */
#include "chain/keys/passphrase.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

void passphrase_free(struct passphrase *passphrase)
{
    secret_free(passphrase, sizeof(*passphrase));
}

/* Without watched signals there are none. */
static bool signal_came(int descriptor, int signals)
{
    struct pollfd watched[2] = {{.fd = descriptor, .events = POLLIN},
                                {.fd = signals, .events = POLLIN}};

    if (signals < 0) {
        return false;
    }
    while (poll(watched, 2, -1) < 0 && errno == EINTR) {
    }
    return watched[1].revents != 0;
}

/* Reads up to the end of a line, byte by byte: no buffer of stdio keeps a copy. signals is a
 * descriptor of signals that end it, or -1. */
static enum status read_line(int descriptor, int signals, struct passphrase *passphrase,
                             struct error *error)
{
    passphrase->size = 0;
    for (;;) {
        uint8_t byte;
        ssize_t got;

        if (signal_came(descriptor, signals)) {
            return error_set(error, STATUS_STOPPED, "stopped before a passphrase was typed");
        }
        got = read(descriptor, &byte, 1);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return error_set_errno(error, "cannot read the passphrase");
        }
        if (got == 0 && signals >= 0) {
            return error_set(error, STATUS_USAGE, "no passphrase: what is typed has ended");
        }
        if (got == 0 || byte == '\n') {
            break;
        }
        if (passphrase->size >= PASSPHRASE_SIZE_MAX) {
            return error_set(error, STATUS_OVER_LIMIT, "a passphrase has at most %d bytes",
                             PASSPHRASE_SIZE_MAX);
        }
        passphrase->bytes[passphrase->size++] = byte;
    }
    if (passphrase->size > 0 && passphrase->bytes[passphrase->size - 1] == '\r') {
        passphrase->size--;
    }
    return STATUS_OK;
}

static enum status read_file(const char *path, struct passphrase *passphrase, struct error *error)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    struct stat about;
    enum status status;

    if (descriptor < 0) {
        return error_set_errno(error, "cannot open the passphrase file %s", path);
    }
    if (fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode) && (about.st_mode & 077) != 0) {
        status = error_set(error, STATUS_REFUSED, "others may read the passphrase file %s", path);
        error_advise(error, "chmod 600 %s", path);
    } else {
        status = read_line(descriptor, -1, passphrase, error);
    }
    (void)close(descriptor);
    return status;
}

static enum status read_variable(char *value, struct passphrase *passphrase, struct error *error)
{
    size_t size = strlen(value);

    if (size > PASSPHRASE_SIZE_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "a passphrase has at most %d bytes",
                         PASSPHRASE_SIZE_MAX);
    }
    memcpy(passphrase->bytes, value, size);
    passphrase->size = size;
    secret_wipe(value, size); /* children would inherit it */
    (void)unsetenv(PASSPHRASE_VARIABLE);
    return STATUS_OK;
}

static void say_on(int terminal, const char *text)
{
    ssize_t written = write(terminal, text, strlen(text));

    (void)written; /* a terminal that cannot show the question still reads the answer */
}

static enum status read_silently(int terminal, int signals, const char *question,
                                 struct passphrase *passphrase, struct error *error)
{
    struct termios before;
    struct termios silent;
    enum status status;

    if (tcgetattr(terminal, &before) != 0) {
        return error_set_errno(error, "cannot ask on this terminal");
    }
    silent = before;
    silent.c_lflag &= ~(tcflag_t)ECHO;
    silent.c_lflag |= ICANON | ECHONL;
    if (tcsetattr(terminal, TCSAFLUSH, &silent) != 0) {
        return error_set_errno(error, "cannot hide what is typed on this terminal");
    }
    say_on(terminal, question);
    status = read_line(terminal, signals, passphrase, error);
    (void)tcsetattr(terminal, TCSAFLUSH, &before);
    if (status != STATUS_OK) {
        say_on(terminal, "\n");
    }
    return status;
}

/* A program that ends or stops during the prompt would leave a terminal without echo. So signals
 * wait until the terminal is restored, and take effect then. */
static enum status prompt_on(int terminal, const char *question, struct passphrase *passphrase,
                             struct error *error)
{
    sigset_t watched;
    sigset_t before;
    enum status status;
    int signals;

    sigemptyset(&watched);
    sigaddset(&watched, SIGINT);
    sigaddset(&watched, SIGTERM);
    sigaddset(&watched, SIGHUP);
    sigaddset(&watched, SIGQUIT);
    sigaddset(&watched, SIGTSTP);
    signals = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0) {
        return error_set_errno(error, "cannot open a descriptor for signals");
    }
    for (;;) {
        sigset_t came;

        (void)pthread_sigmask(SIG_BLOCK, &watched, &before);
        status = read_silently(terminal, signals, question, passphrase, error);
        sigemptyset(&came);
        (void)sigpending(&came);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        /* Ctrl-Z stopped the program here: after it continues, the prompt is shown again. */
        if (status != STATUS_STOPPED || sigismember(&came, SIGTSTP) != 1 ||
            sigismember(&before, SIGTSTP) == 1) {
            break;
        }
    }
    (void)close(signals);
    return status;
}

static enum status prompt_twice(int terminal, struct passphrase *passphrase, struct error *error)
{
    struct passphrase *again = secret_alloc(sizeof(*again), error);
    enum status status;

    if (again == NULL) {
        return STATUS_NO_MEMORY;
    }
    status = prompt_on(terminal, "Again: ", again, error);
    if (status == STATUS_OK && (again->size != passphrase->size ||
                                !secret_equal(again->bytes, passphrase->bytes, again->size))) {
        status = error_set(error, STATUS_REFUSED, "the two passphrases differ");
    }
    passphrase_free(again);
    return status;
}

static enum status read_terminal(const struct passphrase_source *source,
                                 struct passphrase *passphrase, struct error *error)
{
    int terminal;
    enum status status;

    if (source->question == NULL || (terminal = open("/dev/tty", O_RDWR | O_CLOEXEC)) < 0) {
        (void)error_set(error, STATUS_USAGE, "no passphrase, and nobody to ask for one");
        error_advise(error, "give --%s FILE, or set " PASSPHRASE_VARIABLE,
                     source->option == NULL ? "passphrase-file" : source->option);
        return STATUS_USAGE;
    }
    status = prompt_on(terminal, source->question, passphrase, error);
    if (status == STATUS_OK && source->twice) {
        status = prompt_twice(terminal, passphrase, error);
    }
    (void)close(terminal);
    return status;
}

enum status passphrase_get(struct passphrase **passphrase, const struct passphrase_source *source,
                           struct error *error)
{
    char *variable = getenv(PASSPHRASE_VARIABLE);
    struct passphrase *made = secret_alloc(sizeof(*made), error);
    enum status status;

    *passphrase = NULL;
    if (made == NULL) {
        return STATUS_NO_MEMORY;
    }
    if (source->file != NULL) {
        status = read_file(source->file, made, error);
    } else if (variable != NULL) {
        status = read_variable(variable, made, error);
    } else {
        status = read_terminal(source, made, error);
    }
    if (status == STATUS_OK && source->twice && made->size == 0) {
        status = error_set(error, STATUS_REFUSED, "an empty passphrase protects nothing");
    }
    if (status != STATUS_OK) {
        passphrase_free(made);
        return status;
    }
    *passphrase = made;
    return STATUS_OK;
}
