/* confined_wire.c - see confined_wire.h. */
#include "prover/confined/confined_wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

bool confined_wire_write(int socket, const void *bytes, size_t size)
{
    size_t done = 0;

    while (done < size) {
        ssize_t sent = send(socket, (const uint8_t *)bytes + done, size - done, MSG_NOSIGNAL);

        if (sent < 0 && errno != EINTR) {
            return false;
        }
        done += sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

bool confined_wire_read(int socket, void *bytes, size_t size)
{
    size_t done = 0;

    while (done < size) {
        ssize_t got = recv(socket, (uint8_t *)bytes + done, size - done, 0);

        if (got == 0 || (got < 0 && errno != EINTR)) {
            return false;
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return true;
}

bool confined_wire_say(int socket, const struct confined_message *message, const void *bytes)
{
    return confined_wire_write(socket, message, sizeof(*message)) &&
           confined_wire_write(socket, bytes, message->size);
}

void confined_wire_put_step(struct confined_message *message, const struct bundle_step *step)
{
    memset(message, 0, sizeof(*message));
    message->kind = CONFINED_STEP;
    message->root = step->root;
    message->numbers[0] = step->step;
    message->numbers[1] = step->loss_bits;
    message->numbers[2] = step->evaluated ? 1 : 0;
    message->numbers[3] = step->held_out_bits;
    message->numbers[4] = step->accuracy_bits;
    message->numbers[5] = step->nanoseconds;
    message->numbers[6] = step->nanoseconds_committing;
    message->numbers[7] = step->microjoules;
}

void confined_wire_get_step(struct bundle_step *step, const struct confined_message *message)
{
    *step = (struct bundle_step){.step = message->numbers[0],
                                 .root = message->root,
                                 .loss_bits = (uint32_t)message->numbers[1],
                                 .evaluated = message->numbers[2] != 0,
                                 .held_out_bits = (uint32_t)message->numbers[3],
                                 .accuracy_bits = (uint32_t)message->numbers[4],
                                 .nanoseconds = message->numbers[5],
                                 .nanoseconds_committing = message->numbers[6],
                                 .microjoules = message->numbers[7]};
}

void confined_wire_put_error(struct confined_message *message, const struct error *error)
{
    message->status = (uint32_t)error->status;
    memcpy(message->text, error->text, sizeof(message->text));
    memcpy(message->advice, error->advice, sizeof(message->advice));
}

void confined_wire_get_error(struct error *error, const struct confined_message *message)
{
    const bool known = message->status <= (uint32_t)STATUS_RANK_LOST;

    error->status = known ? (enum status)message->status : STATUS_IO;
    memcpy(error->text, message->text, sizeof(error->text));
    memcpy(error->advice, message->advice, sizeof(error->advice));
    error->text[sizeof(error->text) - 1] = '\0';
    error->advice[sizeof(error->advice) - 1] = '\0';
}
