/* SPDX-License-Identifier: BSD-2-Clause */
#include "planner/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- the user ---- */

/* Reads the files: a static program cannot load what getpwuid(3) may need. */
static size_t groups_of(uid_t uid, gid_t gid, gid_t *groups, size_t room)
{
	FILE *users = fopen("/etc/passwd", "re"), *file = fopen("/etc/group", "re");
	char name[64] = "";
	size_t count = 0;

	groups[count++] = gid;
	for (struct passwd *p; users != NULL && (p = fgetpwent(users)) != NULL;)
		if (p->pw_uid == uid && strlen(p->pw_name) < sizeof(name)) {
			memcpy(name, p->pw_name, strlen(p->pw_name) + 1);
			break;
		}
	for (struct group *g; file != NULL && name[0] != '\0' && (g = fgetgrent(file)) != NULL;)
		for (char **member = g->gr_mem; *member != NULL; member++)
			if (strcmp(*member, name) == 0 && count < room && g->gr_gid != gid)
				groups[count++] = g->gr_gid;
	if (users != NULL)
		fclose(users);
	if (file != NULL)
		fclose(file);
	return count;
}

int xsp_sandbox_user(uid_t uid, gid_t gid)
{
	gid_t groups[256];

	if (uid == getuid() && uid == geteuid())
		return 0;
	size_t count = groups_of(uid, gid, groups, sizeof(groups) / sizeof(groups[0]));
	if (setgroups(count, groups) != 0 || setresgid(gid, gid, gid) != 0 ||
	    setresuid(uid, uid, uid) != 0)
		return -errno;
	return 0;
}

/* ---- capabilities ---- */

int xsp_sandbox_powerless(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};

	for (int cap = 0; cap < 64;
	     /* fails for numbers that are no capability, or without the right to drop them */
	     cap++)
		prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capset, &head, none) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
		return -errno;
	return 0;
}

/* ---- files ---- */

#define RIGHTS_1 (2 * LANDLOCK_ACCESS_FS_MAKE_SYM - 1) /* all of Linux 5.13 */
#define RIGHT_REFER (1ULL << 13) /* Linux 5.19 */
#define RIGHT_TRUNCATE (1ULL << 14) /* Linux 6.2 */

static void allow_folder(int rules, const char *path, uint64_t rights)
{
	struct landlock_path_beneath_attr beneath = {
		.allowed_access = rights,
		.parent_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC),
	};

	if (beneath.parent_fd < 0)
		return;
	syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0);
	close(beneath.parent_fd);
}

int xsp_sandbox_folders(const char *const *folders, size_t count)
{
	long version =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	struct landlock_ruleset_attr all = {.handled_access_fs = RIGHTS_1};
	const uint64_t used = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
			      LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
			      LANDLOCK_ACCESS_FS_MAKE_REG | RIGHT_TRUNCATE;

	if (version < 1)
		return 0;
	if (version >= 2)
		all.handled_access_fs |= RIGHT_REFER;
	if (version >= 3)
		all.handled_access_fs |= RIGHT_TRUNCATE;
	int rules = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof(all), 0);
	if (rules < 0)
		return -errno;
	for (size_t i = 0; i < count; i++)
		allow_folder(rules, folders[i], used & all.handled_access_fs);
	int rc = syscall(SYS_landlock_restrict_self, rules, 0) == 0 ? 0 : -errno;
	close(rules);
	return rc;
}

/* ---- system calls ---- */

static const int computing[] = {
	SYS_read,	 SYS_write,	   SYS_pread64,	    SYS_lseek,	   SYS_fstat,
	SYS_close,	 SYS_sendmsg,	   SYS_recvmsg,	    SYS_ppoll,	   SYS_mmap,
	SYS_munmap,	 SYS_mremap,	   SYS_madvise,	    SYS_brk,	   SYS_futex,
	SYS_getpid,	 SYS_gettid,	   SYS_exit_group,  SYS_exit,	   SYS_clock_gettime,
	SYS_getrandom,	 SYS_rt_sigreturn, SYS_sched_yield, SYS_getrusage, SYS_rt_sigprocmask,
	SYS_newfstatat,
#if defined(__x86_64__)
	SYS_poll,
#endif
#if defined(__SANITIZE_ADDRESS__)
	SYS_sigaltstack, /* the sanitizer calls it before functions that do not return */
#endif
};
#define COMPUTING (sizeof(computing) / sizeof(computing[0]))

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

static int filter_calls(void)
{
	struct sock_filter code[COMPUTING + 6];
	size_t n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, arch));
	code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < COMPUTING; i++) /* a match jumps to the last instruction */
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							 (uint32_t)computing[i],
							 (uint8_t)(COMPUTING - i), 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = {.len = (unsigned short)n, .filter = code};
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0 ? 0 : -errno;
}

/* the sanitizers' shadow takes terabytes */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* With this limit on its address space, could the process map one more page? */
static bool has_room(uint64_t bytes, rlim_t most)
{
	const struct rlimit limit = {bytes, most};
	void *page = setrlimit(RLIMIT_AS, &limit) != 0
			     ? MAP_FAILED
			     : mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return page != MAP_FAILED && munmap(page, 1) == 0;
}

/* Finds the present size by trying limits: landlock keeps us from reading it in /proc. */
static int limit_memory(uint64_t memory)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit) != 0)
		return -errno;
	uint64_t low = 0, high = limit.rlim_max < 1ULL << 47 ? limit.rlim_max : 1ULL << 47;
	while (high - low > 1U << 20) {
		const uint64_t middle = low + (high - low) / 2;
		if (has_room(middle, limit.rlim_max))
			high = middle;
		else
			low = middle;
	}
	if (high + memory < limit.rlim_max)
		limit.rlim_max = high + memory;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_AS, &limit) == 0 ? 0 : -errno;
}
#else
static int limit_memory(uint64_t memory)
{
	(void)memory;
	return 0;
}
#endif

int xsp_sandbox_compute_only(uint64_t memory, unsigned seconds)
{
	struct rlimit cpu = {seconds, seconds}, nothing = {0, 0};
	int rc = limit_memory(memory);

	if (rc == 0 && (setrlimit(RLIMIT_CPU, &cpu) != 0 || setrlimit(RLIMIT_FSIZE, &nothing) != 0))
		rc = -errno;
	return rc == 0 ? filter_calls() : rc;
}
