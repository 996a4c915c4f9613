/* listen.c - see listen.h. */
#include "base/io/listen.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

static enum status bad_place(const char *text, struct error *error)
{
    (void)error_set(error, STATUS_USAGE, "'%.60s' is no place to listen at", text);
    error_advise(error, "127.0.0.1:7570 is for this machine only, 0.0.0.0:7570 or [::]:7570 for "
                        "everybody");
    return STATUS_USAGE;
}

static enum status read_place(struct listen_place *place, const char *text, struct error *error)
{
    const char *port = strrchr(text, ':');
    size_t length = port == NULL ? 0 : (size_t)(port - text);
    const char *address = text;
    uint64_t number;

    port = port == NULL ? text : port + 1;
    if (length >= 2 && text[0] == '[' && text[length - 1] == ']') {
        address++;
        length -= 2;
    } else if (memchr(text, ':', length) != NULL) {
        return bad_place(text, error); /* IPv6 without brackets: where does the port begin? */
    }
    if (port == text) {
        address = "127.0.0.1";
        length = strlen(address);
    }
    if (length == 0 || length >= sizeof(place->address) ||
        !text_is_number(&number, port, UINT16_MAX)) {
        return bad_place(text, error);
    }
    memcpy(place->address, address, length);
    place->address[length] = '\0';
    place->port = (uint16_t)number;
    return STATUS_OK;
}

/* What stands before the first comma, and the names behind it. */
static enum status split_names(char *first, size_t room, struct listen_place *place,
                               const char *text, struct error *error)
{
    const char *names = strchr(text, ',');
    size_t size = names == NULL ? strlen(text) : (size_t)(names - text);

    names = names == NULL ? "" : names + 1;
    if (size >= room || strlen(names) >= sizeof(place->names)) {
        return bad_place(text, error);
    }
    memcpy(first, text, size);
    first[size] = '\0';
    (void)snprintf(place->names, sizeof(place->names), "%s", names);
    return STATUS_OK;
}

enum status listen_place_read(struct listen_place *place, const char *text, struct error *error)
{
    char first[LISTEN_ADDRESS_MAX + 16];

    TRY(split_names(first, sizeof(first), place, text, error));
    return read_place(place, first, error);
}

enum status listen_place_socket(struct sockaddr_storage *socket, const struct listen_place *place,
                                struct error *error)
{
    struct sockaddr_in *four = (struct sockaddr_in *)socket;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)socket;

    memset(socket, 0, sizeof(*socket));
    if (inet_pton(AF_INET, place->address, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons(place->port);
        return STATUS_OK;
    }
    if (inet_pton(AF_INET6, place->address, &six->sin6_addr) == 1) {
        six->sin6_family = AF_INET6;
        six->sin6_port = htons(place->port);
        return STATUS_OK;
    }
    return bad_place(place->address, error);
}

bool listen_place_is_any(const struct listen_place *place)
{
    return strcmp(place->address, "0.0.0.0") == 0 || strcmp(place->address, "::") == 0;
}

bool listen_place_is_loopback(const struct listen_place *place)
{
    return strncmp(place->address, "127.", 4) == 0 || strcmp(place->address, "::1") == 0;
}

bool listen_place_has_name(const struct listen_place *place, const char *name)
{
    size_t size = strlen(name);

    for (const char *at = place->names; *at != '\0'; at += strspn(at, ",")) {
        size_t length = strcspn(at, ",");

        if (length == size && strncasecmp(at, name, size) == 0) {
            return true;
        }
        at += length;
    }
    return false;
}

void listen_place_url(char url[LISTEN_URL_MAX], const struct listen_place *place, bool tls)
{
    bool six = strchr(place->address, ':') != NULL;

    (void)snprintf(url, LISTEN_URL_MAX, "http%s://%s%s%s:%u", tls ? "s" : "", six ? "[" : "",
                   place->address, six ? "]" : "", place->port);
}
