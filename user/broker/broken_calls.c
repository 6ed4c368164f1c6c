/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/broken_calls.h"

#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>

bool xsp_call_breaks(unsigned syscall)
{
	static const unsigned breaking[] = {
#ifdef SYS_epoll_wait
		SYS_epoll_wait,
#endif
#ifdef SYS_epoll_pwait2
		SYS_epoll_pwait2,
#endif
		SYS_epoll_pwait,  SYS_semop,	     SYS_semtimedop,	 SYS_rt_sigtimedwait,
		SYS_io_getevents, SYS_io_pgetevents, SYS_io_uring_enter, SYS_read,
		SYS_readv,	  SYS_recvfrom,	     SYS_recvmsg,	 SYS_recvmmsg,
		SYS_accept,	  SYS_accept4,	     SYS_write,		 SYS_writev,
		SYS_sendto,	  SYS_sendmsg,	     SYS_sendmmsg,
	};

	for (size_t i = 0; i < sizeof(breaking) / sizeof(breaking[0]); i++)
		if (breaking[i] == syscall)
			return true;
	return false;
}

int xsp_call_timeout_option(unsigned syscall)
{
	static const struct {
		unsigned number;
		int option;
	} rows[] = {
		{SYS_read, SO_RCVTIMEO},     {SYS_readv, SO_RCVTIMEO},
		{SYS_recvfrom, SO_RCVTIMEO}, {SYS_recvmsg, SO_RCVTIMEO},
		{SYS_recvmmsg, SO_RCVTIMEO}, {SYS_accept, SO_RCVTIMEO},
		{SYS_accept4, SO_RCVTIMEO},  {SYS_write, SO_SNDTIMEO},
		{SYS_writev, SO_SNDTIMEO},   {SYS_sendto, SO_SNDTIMEO},
		{SYS_sendmsg, SO_SNDTIMEO},  {SYS_sendmmsg, SO_SNDTIMEO},
		{SYS_connect, SO_SNDTIMEO},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].number == syscall)
			return rows[i].option;
	return 0;
}
