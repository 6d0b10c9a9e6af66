//! The exit codes: the one table that help, the manual and `failure::Code` follow.

use std::fmt::Write as _;

/// An exit code and what it means.
pub(crate) struct ExitCode {
    /// What the shell sees.
    pub(crate) number: u8,
    /// What it tells.
    pub(crate) meaning: &'static str,
}

const fn code(number: u8, meaning: &'static str) -> ExitCode {
    ExitCode { number, meaning }
}

/// What scripts depend on.
pub(crate) const EXIT_CODES: &[ExitCode] = &[
    code(0, "done; verify: nothing is damaged; diff: the same"),
    code(1, "any other failure; a plan that was not carried out for want of --yes"),
    code(2, "the command line makes no sense"),
    code(3, "target or offset not found"),
    code(4, "corruption found; diff: they differ"),
    code(5, "the directory is locked, or the cursor held, by another process"),
    code(6, "a broker cannot be reached, or does not answer in time"),
    code(7, "a broker refuses who asks"),
    code(8, "some of several partitions could not be read"),
    code(124, "--timeout is over"),
    code(130, "ended by SIGINT (Ctrl-C)"),
    code(141, "the reader of standard output went away (as head does)"),
    code(143, "ended by SIGTERM"),
];

/// The table as help prints it.
pub(crate) fn table() -> String {
    let mut text = String::from("Exit codes:\n");
    for ExitCode { number, meaning } in EXIT_CODES {
        let _ = writeln!(text, "  {number:<4} {meaning}");
    }
    text
}

/// `logctl help exit-codes`.
pub(crate) fn topic() -> String {
    format!(
        "The exit code tells what happened, so that a script need not read messages.\n\
         \n\
         {}\
         \n\
         141 is what a shell shows for a command that SIGPIPE ended: `cat DIR | head` is no\n\
         failure, and nothing is said. Where several things happened the first of them counts, with\n\
         one exception: damage (4) is told also where the rest went well.\n\
         \n\
         Examples:\n  \
         logctl verify data/orders-0 || echo \"exit code $?\"\n  \
         logctl get data/orders-0 999999; test $? -eq 3 && echo 'no such offset'\n  \
         logctl tail data/orders-0 -f --timeout 1s; test $? -eq 124 && echo 'a second is over'\n",
        table()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Code;

    #[test]
    fn each_code_of_a_failure_is_in_the_table() {
        let codes = [
            Code::Other,
            Code::Usage,
            Code::NotFound,
            Code::Corrupt,
            Code::Locked,
            Code::Unreachable,
            Code::Refused,
            Code::Partly,
            Code::TimedOut,
            Code::Signal(2),
            Code::Signal(15),
            Code::ClosedPipe,
        ];
        let mut numbers = codes.map(Code::number).to_vec();
        numbers.push(0);
        numbers.sort_unstable();
        assert_eq!(EXIT_CODES.iter().map(|code| code.number).collect::<Vec<_>>(), numbers);
    }
}
