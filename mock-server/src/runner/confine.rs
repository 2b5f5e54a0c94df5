//! A filter over system calls that every command of a sandbox inherits.
//!
//! The kernel's keyrings belong to users and sessions, not to namespaces: commands of different sandboxes would share the
//! rings of their common user, and would find what the server's own session keeps there. No namespace and no capability
//! keeps them apart, so the three calls that reach a keyring answer as on a kernel that has none.

use std::io;

use seccompiler::sock_filter;

/// An architecture in the kernel's numbering, and the first and last of the three calls there: adding a key, requesting
/// one, and everything else.
type Calls = (u32, u32, u32);

const X86_64: Calls = (0xc000_003e, 248, 250);
const X86: Calls = (0x4000_0003, 286, 288);
const AARCH64: Calls = (0xc000_00b7, 217, 219);
const ARM: Calls = (0x4000_0028, 309, 311);
const RISCV64: Calls = (0xc000_00f3, 217, 219);

/// What programs for this processor can call: the native way, and that of older programs.
#[cfg(target_arch = "x86_64")]
const CALLS: &[Calls] = &[X86_64, X86];
#[cfg(target_arch = "aarch64")]
const CALLS: &[Calls] = &[AARCH64, ARM];
#[cfg(target_arch = "riscv64")]
const CALLS: &[Calls] = &[RISCV64];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
const CALLS: &[Calls] = &[];

// On any one processor some of them are unused.
const _: [Calls; 5] = [X86_64, X86, AARCH64, ARM, RISCV64];

/// Keeps this thread, and every process that it starts from now on, away from the kernel's keyrings. It cannot be undone.
///
/// # Errors
/// The kernel takes no such filter, or the numbers of this processor's calls are not known here.
pub(crate) fn forbid_keyrings() -> io::Result<()> {
    if CALLS.is_empty() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    seccompiler::apply_filter(&filter(CALLS)).map_err(io::Error::other)
}

/// The filter, in the instructions of the kernel's packet filter.
fn filter(calls: &[Calls]) -> Vec<sock_filter> {
    const LOAD: u16 = 0x20;
    const AND: u16 = 0x54;
    const JUMP_EQUAL: u16 = 0x15;
    const JUMP_GREATER: u16 = 0x25;
    const JUMP_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    /// Where the number of the call and the architecture stand in what the filter looks at.
    const NUMBER: u32 = 0;
    const ARCHITECTURE: u32 = 4;
    /// Set in the numbers of a second set of calls on x86-64, which are the same calls otherwise.
    const X32: u32 = 0x4000_0000;
    const ALLOW: u32 = 0x7fff_0000;
    const NO_SUCH_CALL: u32 = 0x0005_0000 | 38;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let mut steps = vec![step(LOAD, 0, 0, ARCHITECTURE)];
    for (architecture, first, last) in calls {
        steps.extend([
            step(JUMP_EQUAL, 0, 6, *architecture),
            step(LOAD, 0, 0, NUMBER),
            step(AND, 0, 0, !X32),
            step(JUMP_AT_LEAST, 0, 2, *first),
            step(JUMP_GREATER, 1, 0, *last),
            step(RETURN, 0, 0, NO_SUCH_CALL),
            step(RETURN, 0, 0, ALLOW),
        ]);
    }
    steps.push(step(RETURN, 0, 0, ALLOW));
    steps
}
