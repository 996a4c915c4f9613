/*
 * listen.h - the place at which a server listens: an address of this machine and a port.
 */
#ifndef BASE_IO_LISTEN_H
#define BASE_IO_LISTEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/error.h"

#define LISTEN_ADDRESS_MAX 64
#define LISTEN_URL_MAX     128
#define LISTEN_NAMES_MAX   256

struct listen_place {
    char address[LISTEN_ADDRESS_MAX]; /* IPv4 or IPv6, as text */
    uint16_t port;                    /* 0: any that is free */
    char names[LISTEN_NAMES_MAX];     /* by which a proxy calls it, with commas between */
};

/* "127.0.0.1:7571", "[::1]:7571", or a port alone: then this machine only. Behind a comma, names by
 * which the place is called: "127.0.0.1:7571,status.example". STATUS_USAGE: neither. */
MUST_CHECK enum status listen_place_read(struct listen_place *place, const char *text,
                                         struct error *error);

/* STATUS_USAGE: the address is none. */
MUST_CHECK enum status listen_place_socket(struct sockaddr_storage *socket,
                                           const struct listen_place *place, struct error *error);

/* Does the place take calls at every address of this machine? Nobody can call such an address. */
bool listen_place_is_any(const struct listen_place *place);

/* Can this machine alone call it? */
bool listen_place_is_loopback(const struct listen_place *place);

/* Is that one of its names? */
bool listen_place_has_name(const struct listen_place *place, const char *name);

/* "http://127.0.0.1:7571", or https. */
void listen_place_url(char url[LISTEN_URL_MAX], const struct listen_place *place, bool tls);

#endif /* BASE_IO_LISTEN_H */
