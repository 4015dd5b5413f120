//! The few kernel calls of the tracer that have no safe form: starting a tracee, waiting for
//! its stops, reading a stop's registers, resuming it. Not here: any judgement about what a
//! stop means (that is [`super::tracer`]).
//!
//! `nix` covers most of `ptrace`, but its wait status refuses real-time signals (the stop would
//! be lost and its thread would hang), and the syscall information is a C union.
#![expect(unsafe_code, reason = "no safe form keeps real-time signals, pre_exec and the syscall union")]

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::sys::ptrace;
use nix::unistd::Pid;

/// Where in a system call a thread stopped.
pub(super) enum Stop {
    /// About to run call number `nr` with its six argument registers.
    Entry {
        /// The call's number on this architecture.
        nr: u64,
        /// Argument registers, unread ones hold garbage.
        args: [u64; 6],
    },
    /// Came back with this value: a count or descriptor, or a negated errno.
    Exit(i64),
    /// A stop that is neither (an old kernel's odd case).
    Neither,
}

/// Makes the child of `command` ask for tracing and lead a group of its own.
///
/// The tracer becomes the *thread* that then calls `spawn`.
pub(super) fn trace_child_of(command: &mut Command) {
    command.process_group(0);
    // SAFETY: `ptrace(TRACEME)` is one raw system call: no lock, no allocation after the fork.
    unsafe {
        command.pre_exec(|| ptrace::traceme().map_err(io::Error::from));
    }
}

/// Asks for the stops the tracer lives on; the tracee dies with its tracer.
///
/// # Errors
/// What the kernel says, `ESRCH` when the tracee is gone.
pub(super) fn follow_everything(tid: i32) -> io::Result<()> {
    let options = ptrace::Options::PTRACE_O_TRACESYSGOOD
        | ptrace::Options::PTRACE_O_TRACECLONE
        | ptrace::Options::PTRACE_O_TRACEFORK
        | ptrace::Options::PTRACE_O_TRACEVFORK
        | ptrace::Options::PTRACE_O_TRACEEXEC
        | ptrace::Options::PTRACE_O_EXITKILL;
    Ok(ptrace::setoptions(Pid::from_raw(tid), options)?)
}

/// Waits for the next change of any tracee of this thread: its id and raw wait status, or
/// `None` when none is left.
///
/// # Errors
/// What the kernel says other than "no child".
pub(super) fn wait_any() -> io::Result<Option<(i32, i32)>> {
    loop {
        let mut status = 0;
        // SAFETY: `status` is a live, writable int. `__WNOTHREAD` keeps this from taking the
        // children of other threads, which their own `wait` needs.
        let tid = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::__WNOTHREAD) };
        if tid > 0 {
            return Ok(Some((tid, status)));
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::ECHILD) => return Ok(None),
            Some(libc::EINTR) => {}
            _ => return Err(error),
        }
    }
}

/// Lets a stopped thread run to its next system call boundary, delivering `signal` (0: none).
///
/// # Errors
/// None for a thread that has died meanwhile, else what the kernel says.
pub(super) fn resume(tid: i32, signal: i32) -> io::Result<()> {
    let signal = std::ptr::without_provenance_mut::<libc::c_void>(usize::try_from(signal).unwrap_or(0));
    // SAFETY: PTRACE_SYSCALL takes the signal number by value and reads no memory of ours.
    let result =
        unsafe { libc::ptrace(libc::PTRACE_SYSCALL, tid, std::ptr::null_mut::<libc::c_void>(), signal) };
    if result == -1 {
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::ESRCH) {
            return Err(error);
        }
    }
    Ok(())
}

/// The number that came with a clone, fork or exec stop: the new (or former) thread id.
pub(super) fn event_message(tid: i32) -> Option<i32> {
    ptrace::getevent(Pid::from_raw(tid)).ok().and_then(|id| i32::try_from(id).ok())
}

/// What the syscall stop of `tid` is.
///
/// # Errors
/// `ESRCH` when the thread died meanwhile, else what the kernel says.
pub(super) fn syscall_stop(tid: i32) -> io::Result<Stop> {
    // SAFETY: all-zero bytes are a valid value of this plain C struct.
    let mut told: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
    let size = std::ptr::without_provenance_mut::<libc::c_void>(size_of::<libc::ptrace_syscall_info>());
    // SAFETY: the kernel writes at most `size` bytes to `told`, which is that large.
    let result = unsafe { libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, tid, size, &raw mut told) };
    if result == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(match told.op {
        libc::PTRACE_SYSCALL_INFO_ENTRY => {
            // SAFETY: `op` says that the kernel filled the entry member.
            let entry = unsafe { told.u.entry };
            Stop::Entry { nr: entry.nr, args: entry.args }
        }
        libc::PTRACE_SYSCALL_INFO_EXIT => {
            // SAFETY: `op` says that the kernel filled the exit member.
            let exit = unsafe { told.u.exit };
            Stop::Exit(exit.sval)
        }
        _ => Stop::Neither,
    })
}
