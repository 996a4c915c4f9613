/* sandbox.c - see sandbox.h. */
#include "base/sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
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

struct sandbox_means sandbox_means(void)
{
    const uint32_t kill = SECCOMP_RET_KILL_PROCESS;

    return (struct sandbox_means){
        .calls = ARCHITECTURE != 0 && !SANITIZED &&
                 syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &kill) == 0,
        .files = !SANITIZED && landlock_version() > 0,
    };
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

static void add_instruction(struct filter *filter, uint16_t code, uint32_t value, uint8_t yes,
                            uint8_t no)
{
    if (filter->length < FILTER_MAX) {
        filter->code[filter->length++] = (struct sock_filter){code, yes, no, value};
    }
}

static void load_word(struct filter *filter, size_t offset)
{
    add_instruction(filter, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void give_action(struct filter *filter, uint32_t action)
{
    add_instruction(filter, BPF_RET | BPF_K, action, 0, 0);
}

/* If what was loaded is this value: the action. */
static void give_if(struct filter *filter, long value, uint32_t action)
{
    add_instruction(filter, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)value, 0, 1);
    give_action(filter, action);
}

/* The number of the call is loaded then. Another table of calls is not entered. */
static void begin_filter(struct filter *filter)
{
    load_word(filter, offsetof(struct seccomp_data, arch));
    add_instruction(filter, BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    give_action(filter, SECCOMP_RET_KILL_PROCESS);
    load_word(filter, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
    add_instruction(filter, BPF_JMP | BPF_JGE | BPF_K, X32_FIRST, 0, 1);
    give_action(filter, SECCOMP_RET_KILL_PROCESS);
#endif
}

/* A thread may be made, a process not. What clone3() is asked for a filter cannot see: the C
 * library falls back to clone(). */
static void add_clone(struct filter *filter)
{
    give_if(filter, SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
    add_instruction(filter, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4);
    load_word(filter, offsetof(struct seccomp_data, args[0]));
    add_instruction(filter, BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1);
    give_action(filter, SECCOMP_RET_ALLOW);
    give_action(filter, SECCOMP_RET_KILL_PROCESS);
}

/* abort() signals its own thread. */
static void add_tgkill(struct filter *filter)
{
    add_instruction(filter, BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 0, 4);
    load_word(filter, offsetof(struct seccomp_data, args[0]));
    add_instruction(filter, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)getpid(), 0, 1);
    give_action(filter, SECCOMP_RET_ALLOW);
    give_action(filter, SECCOMP_RET_KILL_PROCESS);
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
    add_instruction(filter, BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 10);
    load_word(filter, offsetof(struct seccomp_data, args[0]));
    give_if(filter, AF_INET, SECCOMP_RET_ALLOW);
    give_if(filter, AF_INET6, SECCOMP_RET_ALLOW);
    give_if(filter, AF_NETLINK, SECCOMP_RET_ALLOW);
    give_if(filter, AF_UNIX, SECCOMP_RET_ERRNO | EACCES);
    give_action(filter, SECCOMP_RET_KILL_PROCESS);
}

static void install_filter(struct filter *filter)
{
    struct sock_fprog program = {.filter = filter->code};

    give_action(filter, SECCOMP_RET_ALLOW);
    program.len = filter->length;
    (void)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}

static void restrict_calls(bool network)
{
    struct filter filter = {.length = 0};

    begin_filter(&filter);
    for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]); i++) {
        give_if(&filter, denied[i], SECCOMP_RET_KILL_PROCESS);
    }
    add_clone(&filter);
    add_tgkill(&filter);
    add_socket(&filter, network);
    install_filter(&filter);
}

void sandbox_network(void)
{
    struct filter filter = {.length = 0};

    if (sandbox_means().calls) {
        begin_filter(&filter);
        add_socket(&filter, false);
        install_filter(&filter);
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
static void allow_path(int rules, const char *path, uint64_t access)
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
        allow_path(rules, places[i], MAY_READ);
    }
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *place = getenv(variables[i]);

        /* Without the variable the path is empty, and allow_path() gives no right to what is not
         * there. */
        allow_path(rules, place == NULL ? "" : place, MAY_READ);
    }
}

static void restrict_files(const struct sandbox_plan *plan)
{
    const struct landlock_ruleset_attr handled = {.handled_access_fs = HANDLED};
    int rules = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof(handled), 0);

    if (rules < 0) {
        return;
    }
    allow_system(rules);
    for (size_t i = 0; i < plan->read_count; i++) {
        allow_path(rules, plan->reads[i], MAY_READ);
    }
    for (size_t i = 0; i < plan->write_count; i++) {
        allow_path(rules, plan->writes[i], MAY_READ | MAY_WRITE);
    }
    for (size_t i = 0; i < plan->change_count; i++) {
        allow_path(rules, plan->changes[i], MAY_READ | LANDLOCK_ACCESS_FS_WRITE_FILE);
    }
    (void)syscall(SYS_landlock_restrict_self, rules, 0);
    (void)close(rules);
}

/* ---- capabilities --------------------------------------------------------------- */

/* A process of root keeps the right to files of other users, as far as landlock lets it, and
 * nothing else of what root may. */
static void drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {{0}};
    const uint32_t kept = 1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH;

    if (syscall(SYS_capget, &header, sets) != 0) {
        return;
    }
    for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
        uint32_t mask = i == 0 ? kept : 0;

        sets[i].effective &= mask;
        sets[i].permitted &= mask;
        sets[i].inheritable = 0;
    }
    (void)syscall(SYS_capset, &header, sets);
}

/* A model's file has many tensors, so one path comes many times in a row. */
static void add_path(const char **paths, size_t *count, const char *path)
{
    if (*count < SANDBOX_PATHS_MAX && (*count == 0 || strcmp(paths[*count - 1], path) != 0)) {
        paths[(*count)++] = path;
    }
}

void sandbox_add_read(struct sandbox_plan *plan, const char *path)
{
    add_path(plan->reads, &plan->read_count, path);
}

void sandbox_add_write(struct sandbox_plan *plan, const char *path)
{
    add_path(plan->writes, &plan->write_count, path);
}

void sandbox_add_change(struct sandbox_plan *plan, const char *path)
{
    add_path(plan->changes, &plan->change_count, path);
}

extern char **environ;

void sandbox_forget_passphrases(void)
{
    for (char **at = environ; at != NULL && *at != NULL; at++) {
        char *value = strchr(*at, '=');
        char *word = strstr(*at, "PASSPHRASE");

        word = word == NULL || word > value ? strstr(*at, "SECRET") : word;
        if (value != NULL && word != NULL && word < value) {
            explicit_bzero(value + 1, strlen(value + 1));
        }
    }
}

void sandbox_begin(const struct sandbox_plan *plan)
{
    const struct sandbox_means means = sandbox_means();

    sandbox_forget_passphrases();
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (means.files) {
        restrict_files(plan);
    }
    drop_capabilities();
    if (means.calls) {
        restrict_calls(plan->network);
    }
}
