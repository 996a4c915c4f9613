/* confine.c - see confine.h. */
#include "verifier/check/confine.h"
#include "base/http/http_reach.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#define ARCHITECTURE 0 /* its calls are not known here */
#endif

/* Their run-time libraries make processes of their own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

enum {
    FILTER_MAX = 256,
    X32_FIRST = 0x40000000, /* calls of another table, which this filter does not know */
};

/* ---- means ---------------------------------------------------------------------- */

static long landlock_version(void)
{
    return syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, LANDLOCK_CREATE_RULESET_VERSION);
}

struct confine_means confine_means(void)
{
    const uint32_t kill = SECCOMP_RET_KILL_PROCESS;

    return (struct confine_means){
        .calls = ARCHITECTURE != 0 && !SANITIZED &&
                 syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &kill) == 0,
        .files = !SANITIZED && landlock_version() > 0,
    };
}

bool confine_describe(char text[CONFINE_TEXT_MAX], bool on_device)
{
    const struct confine_means means = confine_means();
    const char *words = "on the CPU they are kept from programs, from sockets that fetch nothing, "
                        "and from files that are not theirs; on a GPU its drivers need them";

    if (on_device) {
        words = "checks on a GPU are not kept from files, sockets and programs: its drivers need "
                "them";
    } else if (!means.calls) {
        words = "this system has no seccomp filters: checks can do what the node can";
    } else if (!means.files) {
        words = "checks are kept from programs and sockets; this kernel has no landlock, so they "
                "can read what the node can";
    }
    (void)snprintf(text, CONFINE_TEXT_MAX, "%s", words);
    return !on_device && means.calls && means.files;
}

/* ---- calls ---------------------------------------------------------------------- */

struct filter {
    struct sock_filter code[FILTER_MAX];
    unsigned short length;
};

/* With these no check has anything to do. */
static const long denied[] = {
    SYS_execve,
    SYS_execveat,
#ifdef SYS_fork
    SYS_fork,
    SYS_vfork,
#endif
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kill,
    SYS_tkill,
    SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo,
    SYS_pidfd_open,
    SYS_pidfd_getfd,
    SYS_pidfd_send_signal,
    SYS_listen,
    SYS_accept,
    SYS_accept4,
    SYS_io_uring_setup,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
    SYS_open_by_handle_at,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_swapon,
    SYS_swapoff,
    SYS_reboot,
    SYS_settimeofday,
    SYS_clock_settime,
};

static void add(struct filter *filter, uint16_t code, uint32_t value, uint8_t yes, uint8_t no)
{
    if (filter->length < FILTER_MAX) {
        filter->code[filter->length++] = (struct sock_filter){code, yes, no, value};
    }
}

static void load(struct filter *filter, size_t offset)
{
    add(filter, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void give(struct filter *filter, uint32_t action)
{
    add(filter, BPF_RET | BPF_K, action, 0, 0);
}

/* If what was loaded is this value: the action. */
static void give_if(struct filter *filter, long value, uint32_t action)
{
    add(filter, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)value, 0, 1);
    give(filter, action);
}

/* The number of the call is loaded then. Another table of calls is not entered. */
static void begin(struct filter *filter)
{
    load(filter, offsetof(struct seccomp_data, arch));
    add(filter, BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    give(filter, SECCOMP_RET_KILL_PROCESS);
    load(filter, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
    add(filter, BPF_JMP | BPF_JGE | BPF_K, X32_FIRST, 0, 1);
    give(filter, SECCOMP_RET_KILL_PROCESS);
#endif
}

/* A thread may be made, a process not. What clone3() is asked for a filter cannot see: the C
 * library falls back to clone(). */
static void add_clone(struct filter *filter)
{
    give_if(filter, SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
    add(filter, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4);
    load(filter, offsetof(struct seccomp_data, args[0]));
    add(filter, BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1);
    give(filter, SECCOMP_RET_ALLOW);
    give(filter, SECCOMP_RET_KILL_PROCESS);
}

/* abort() signals its own thread. */
static void add_tgkill(struct filter *filter)
{
    add(filter, BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 0, 4);
    load(filter, offsetof(struct seccomp_data, args[0]));
    add(filter, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)getpid(), 0, 1);
    give(filter, SECCOMP_RET_ALLOW);
    give(filter, SECCOMP_RET_KILL_PROCESS);
}

/* A resolver asks the kernel for its interfaces, and tries a service of this machine first. */
static void add_socket(struct filter *filter, bool network)
{
    if (!network) {
        give_if(filter, SYS_socket, SECCOMP_RET_KILL_PROCESS);
        give_if(filter, SYS_connect, SECCOMP_RET_KILL_PROCESS);
        give_if(filter, SYS_bind, SECCOMP_RET_KILL_PROCESS);
        return;
    }
    add(filter, BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 10);
    load(filter, offsetof(struct seccomp_data, args[0]));
    give_if(filter, AF_INET, SECCOMP_RET_ALLOW);
    give_if(filter, AF_INET6, SECCOMP_RET_ALLOW);
    give_if(filter, AF_NETLINK, SECCOMP_RET_ALLOW);
    give_if(filter, AF_UNIX, SECCOMP_RET_ERRNO | EACCES);
    give(filter, SECCOMP_RET_KILL_PROCESS);
}

static void install(struct filter *filter)
{
    struct sock_fprog program = {.filter = filter->code};

    give(filter, SECCOMP_RET_ALLOW);
    program.len = filter->length;
    (void)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}

static void confine_calls(bool network)
{
    struct filter filter = {.length = 0};

    begin(&filter);
    for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]); i++) {
        give_if(&filter, denied[i], SECCOMP_RET_KILL_PROCESS);
    }
    add_clone(&filter);
    add_tgkill(&filter);
    add_socket(&filter, network);
    install(&filter);
}

void confine_network(void)
{
    struct filter filter = {.length = 0};

    if (confine_means().calls) {
        begin(&filter);
        add_socket(&filter, false);
        install(&filter);
    }
}

/* ---- files ---------------------------------------------------------------------- */

#define MAY_READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define MAY_WRITE                                                                                  \
    (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_DIR |   \
     LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR)
#define OF_FILES (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE)
/* Landlock's first version; it has all that is asked for here. */
#define HANDLED                                                                                    \
    (MAY_READ | MAY_WRITE | LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR |            \
     LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK | \
     LANDLOCK_ACCESS_FS_MAKE_SYM)

/* What is not there needs no rule. */
static void allow(int rules, const char *path, uint64_t access)
{
    struct landlock_path_beneath_attr rule = {.allowed_access = access};
    struct stat about;

    rule.parent_fd = path[0] == '\0' ? -1 : open(path, O_PATH | O_CLOEXEC);
    if (rule.parent_fd < 0) {
        return;
    }
    if (fstat(rule.parent_fd, &about) == 0 && !S_ISDIR(about.st_mode)) {
        rule.allowed_access &= OF_FILES;
    }
    (void)syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    (void)close(rule.parent_fd);
}

/* A bundle says itself where its data lies, so beside one any file may be read; and its database
 * wants to be shared with whoever writes it. */
static void allow_mirror(int rules, const char *mirror)
{
    char journal[FILE_PATH_MAX];
    struct error ignored;

    error_init(&ignored);
    if (http_reach_is_url(mirror)) {
        return;
    }
    allow(rules, mirror, MAY_READ);
    if (file_path_join(journal, sizeof(journal), &ignored, mirror, "journal.db") == STATUS_OK &&
        file_exists(journal)) {
        allow(rules, mirror, MAY_READ | MAY_WRITE);
        allow(rules, "/", MAY_READ);
    }
}

/* Libraries, and what finding names and checking certificates reads. Not all of /etc: it may hold
 * the node's own passphrase. */
static void allow_system(int rules)
{
    static const char *const places[] = {
        "/usr",
        "/lib",
        "/lib64",
        "/nix/store",
        "/gnu/store",
        "/proc",
        "/sys",
        "/dev",
        "/etc/ld.so.cache",
        "/etc/ld.so.preload",
        "/etc/localtime",
        "/etc/nsswitch.conf",
        "/etc/hosts",
        "/etc/host.conf",
        "/etc/gai.conf",
        "/etc/services",
        "/etc/resolv.conf",
        "/run/systemd/resolve",
        "/etc/ssl",
        "/etc/pki",
        "/etc/ca-certificates",
        "/etc/crypto-policies",
    };
    static const char *const variables[] = {"SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE"};

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        allow(rules, places[i], MAY_READ);
    }
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *place = getenv(variables[i]);

        allow(rules, place == NULL ? "" : place, MAY_READ);
    }
}

static void confine_files(const struct check_request *request)
{
    const struct landlock_ruleset_attr handled = {.handled_access_fs = HANDLED};
    int rules = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof(handled), 0);
    struct error ignored;

    error_init(&ignored);
    if (rules < 0 || file_make_folder(request->cache, &ignored, 0700) != STATUS_OK) {
        return; /* the check cannot use the folder either, and says so */
    }
    allow_system(rules);
    for (uint32_t i = 0; i < request->data_count; i++) {
        allow(rules, request->data[i], MAY_READ);
    }
    for (uint32_t i = 0; i < request->mirror_count; i++) {
        allow_mirror(rules, request->mirrors[i]);
    }
    allow(rules, request->cache, MAY_READ | MAY_WRITE);
    allow(rules, request->folder, MAY_READ | MAY_WRITE);
    (void)syscall(SYS_landlock_restrict_self, rules, 0);
    (void)close(rules);
}

void confine_begin(const struct check_request *request)
{
    const struct confine_means means = confine_means();
    bool network = false;

    for (uint32_t i = 0; i < request->mirror_count; i++) {
        network = network || http_reach_is_url(request->mirrors[i]);
    }
    if (means.files) {
        confine_files(request);
    }
    if (means.calls) {
        confine_calls(network);
    }
}
