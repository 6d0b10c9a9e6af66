//! Standard output: data only, buffered here, never by std (whose lines cost a flush each).
//!
//! A reader that goes away ends the command quietly (exit code 141); every other failed write is a failure. Control
//! bytes in keys and values are escaped where a terminal would obey them, and written as they are everywhere else.

use std::{
    fs::File,
    io::{self, IsTerminal, Write},
    os::fd::AsFd,
    process::{Child, ChildStdin},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::{
    failure::{Code, Failure},
    json_line::ObjectLine,
    pager,
    report::Form,
};

/// Bytes gathered before they are handed to the kernel.
const BUFFER_BYTES: usize = 256 << 10;

/// The number of an input or output error.
const EIO: i32 = 5;

/// The one writer of standard output.
pub(crate) struct Output {
    sink: Sink,
    buffer: Vec<u8>,
    /// Bytes that the kernel took.
    written_bytes: u64,
    /// A write failed with this number: what was buffered then is lost, and everything after it is refused in the same
    /// way.
    failed: Option<i32>,
    terminal: bool,
    colour: bool,
    /// How objects are printed; `Table` until a verb says otherwise.
    form: Form,
    /// How many objects of an array were printed, and whether it was closed.
    objects: u64,
    is_closed: bool,
}

enum Sink {
    Stdout(File),
    /// Its input is closed, and its end awaited, when the output goes.
    Pager {
        child: Child,
        input: Option<ChildStdin>,
    },
    #[cfg(test)]
    Memory(Vec<u8>),
}

impl Output {
    /// Standard output, or the pager before it. `colour`: see `Globals::colour`.
    pub(crate) fn stdout(colour: bool, paged: bool) -> Result<Self, Failure> {
        let stdout = io::stdout();
        let terminal = stdout.is_terminal();
        let file = stdout.as_fd().try_clone_to_owned().map_err(|e| Failure::stdout(&e))?;
        let sink = match if paged { pager::start() } else { None } {
            None => Sink::Stdout(file.into()),
            Some(Ok(mut child)) => {
                let input = child.stdin.take();
                Sink::Pager { child, input }
            }
            Some(Err(error)) => return Err(Failure::io("start", "PAGER", &error)),
        };
        Ok(Self {
            sink,
            buffer: Vec::with_capacity(BUFFER_BYTES),
            written_bytes: 0,
            failed: None,
            terminal,
            colour,
            form: Form::Table,
            objects: 0,
            is_closed: false,
        })
    }

    /// Chooses how objects are printed; before the first of them.
    pub(crate) fn set_form(&mut self, form: Form) {
        self.form = form;
    }

    /// There will be one object only, which is a JSON value by itself.
    pub(crate) fn without_array(&mut self) {
        if self.form == Form::Json {
            self.form = Form::Jsonl;
        }
    }

    /// True where objects are printed, and not what people read.
    pub(crate) fn is_json(&self) -> bool {
        self.form != Form::Table
    }

    /// Opens an object: a line of its own, or a member of the array of `--output json`. Call [`Output::spill`] after it.
    pub(crate) fn object(&mut self, kind: &str) -> ObjectLine<'_> {
        if self.form != Form::Json {
            return ObjectLine::new(&mut self.buffer, kind);
        }
        self.begin_member();
        ObjectLine::member(&mut self.buffer, kind)
    }

    /// An object that was written already, without a newline.
    pub(crate) fn whole_object(&mut self, json: &str) -> Result<(), Failure> {
        if self.form != Form::Json {
            return self.line(json);
        }
        self.begin_member();
        self.bytes(json.as_bytes())
    }

    fn begin_member(&mut self) {
        self.buffer.extend_from_slice(if self.objects == 0 { b"[\n" } else { b",\n" });
        self.objects += 1;
    }

    /// Closes what is open, and hands everything to the kernel: the end of a verb that prints objects.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        if self.form == Form::Json && !self.is_closed {
            self.is_closed = true;
            self.buffer.extend_from_slice(if self.objects == 0 { b"[]\n" } else { b"\n]\n" });
        }
        self.flush()
    }

    /// True where a person is looking.
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// The buffer, for writers that append in place; call [`Output::spill`] after each record.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Writes out when the buffer is full enough.
    pub(crate) fn spill(&mut self) -> Result<(), Failure> {
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// Adds bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.buffer.extend_from_slice(bytes);
        self.spill()
    }

    /// Adds a line of our own text.
    pub(crate) fn line(&mut self, text: impl AsRef<str>) -> Result<(), Failure> {
        self.buffer.extend_from_slice(text.as_ref().as_bytes());
        self.buffer.push(b'\n');
        self.spill()
    }

    /// Adds bytes that came from somebody else's record: on a terminal without its control bytes.
    pub(crate) fn foreign(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        push_foreign(&mut self.buffer, bytes, self.terminal);
        self.spill()
    }

    /// `text` in bold where colours are on.
    pub(crate) fn bold(&self, text: &str) -> String {
        if self.colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// How many bytes were printed so far: all of them are written once [`Output::flush`] succeeds.
    pub(crate) fn printed_bytes(&self) -> u64 {
        self.written_bytes + self.buffer.len() as u64
    }

    /// Hands everything to the kernel. `Ok` only if all that was ever printed got there.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        if let Some(number) = self.failed {
            self.buffer.clear();
            return Err(Failure::stdout(&io::Error::from_raw_os_error(number)));
        }
        let outcome = match &mut self.sink {
            Sink::Stdout(file) => file.write_all(&self.buffer),
            Sink::Pager { input: Some(input), .. } => input.write_all(&self.buffer),
            Sink::Pager { input: None, .. } => Ok(()),
            #[cfg(test)]
            Sink::Memory(bytes) => {
                bytes.extend_from_slice(&self.buffer);
                Ok(())
            }
        };
        match &outcome {
            Ok(()) => self.written_bytes += self.buffer.len() as u64,
            // Without a number only where the kernel took nothing.
            Err(error) => self.failed = Some(error.raw_os_error().unwrap_or(EIO)),
        }
        self.buffer.clear();
        // One huge record must not keep its memory for the rest of the run.
        self.buffer.shrink_to(BUFFER_BYTES * 2);
        outcome.map_err(|e| Failure::stdout(&e))
    }

    /// A quiet end where nobody reads any more: to be asked by who waits and may have nothing to write for long.
    pub(crate) fn check_reader(&self) -> Result<(), Failure> {
        match &self.sink {
            Sink::Stdout(file) => check_reader(file),
            Sink::Pager { input: Some(input), .. } => check_reader(input),
            Sink::Pager { input: None, .. } => Ok(()),
            #[cfg(test)]
            Sink::Memory(_) => Ok(()),
        }
    }

    #[cfg(test)]
    pub(crate) fn memory(terminal: bool) -> Self {
        Self {
            sink: Sink::Memory(Vec::new()),
            buffer: Vec::new(),
            written_bytes: 0,
            failed: None,
            terminal,
            colour: false,
            form: Form::Table,
            objects: 0,
            is_closed: false,
        }
    }

    #[cfg(test)]
    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        assert!(self.flush().is_ok());
        let Sink::Memory(bytes) = &mut self.sink else { return Vec::new() };
        std::mem::take(bytes)
    }
}

impl Drop for Output {
    /// A verb that failed half way leaves whole JSON behind.
    fn drop(&mut self) {
        if self.objects > 0 && !self.is_closed && self.failed.is_none() {
            // The failure that is told is the first one.
            let _ = self.finish();
        }
        if let Sink::Pager { child, input } = &mut self.sink {
            drop(input.take());
            let _ = child.wait();
        }
    }
}

/// The same of any descriptor: a pipe whose other end is closed, a socket or terminal that hung up.
pub(crate) fn check_reader(output: impl AsFd) -> Result<(), Failure> {
    let mut watched = [PollFd::new(&output, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    // These two are told unasked. Where it cannot be watched a write will tell.
    let gone = PollFlags::ERR | PollFlags::HUP;
    let is_gone = poll(&mut watched, Some(&now)).is_ok_and(|ready| ready > 0)
        && watched.iter().any(|descriptor| descriptor.revents().intersects(gone));
    if is_gone { Err(Failure::quiet(Code::ClosedPipe)) } else { Ok(()) }
}

/// Appends bytes of a record. With `escape`, what a terminal would obey becomes visible: C0 controls but tab and
/// newline, DEL, the C1 controls in their UTF-8 form, signs that turn the direction of text, and bytes that are not UTF-8.
pub(crate) fn push_foreign(into: &mut Vec<u8>, bytes: &[u8], escape: bool) {
    if !escape {
        into.extend_from_slice(bytes);
        return;
    }
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if (c.is_control() && c != '\n' && c != '\t') || is_bidi_control(c) {
                into.extend_from_slice(c.escape_default().to_string().as_bytes());
            } else {
                into.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        for byte in chunk.invalid() {
            into.extend_from_slice(format!("\\x{byte:02x}").as_bytes());
        }
    }
}

/// True for the signs that turn the direction of the text behind them: with them it reads other than it is.
pub(crate) fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Appends a number in decimal digits: several for each record, so without the formatter.
pub(crate) fn push_decimal(into: &mut Vec<u8>, number: i64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number.unsigned_abs();
    loop {
        at -= 1;
        if let Some(digit) = digits.get_mut(at) {
            // Below ten.
            *digit = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        }
        rest /= 10;
        if rest == 0 || at == 0 {
            break;
        }
    }
    if number < 0 {
        into.push(b'-');
    }
    into.extend_from_slice(digits.get(at..).unwrap_or_default());
}

/// A number and what it counts, as people write it: `1 batch`, `2 batches`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    let ending = match noun {
        _ if count == 1 => "",
        noun if noun.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{count} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_never_gets_control_bytes_of_a_record() {
        let mut out = Output::memory(true);
        assert!(out.foreign(b"a\x1b]0;x\x07\tb\n\xff\xc2\x9b\x7f\xe2\x80\xae").is_ok());
        let text = String::from_utf8(out.into_bytes()).unwrap();
        assert_eq!(text, "a\\u{1b}]0;x\\u{7}\tb\n\\xff\\u{9b}\\u{7f}\\u{202e}");
    }

    #[test]
    fn decimals() {
        for number in [0, 1, -1, 9, 10, 123_456_789, i64::MAX, i64::MIN] {
            let mut out = b"x".to_vec();
            push_decimal(&mut out, number);
            assert_eq!(out, format!("x{number}").into_bytes());
        }
    }

    #[test]
    fn a_pipe_gets_every_byte_as_it_is() {
        let bytes: Vec<u8> = (0..=255).collect();
        let mut out = Output::memory(false);
        assert!(out.foreign(&bytes).is_ok());
        assert_eq!(out.into_bytes(), bytes);
    }
}
