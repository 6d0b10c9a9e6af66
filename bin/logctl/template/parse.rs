//! Reads a template.

use std::str::Chars;

use super::{HeaderPart, Number, NumberFormat, Part, Text, TextFormat, go_time::GoLayout, unpack::Unpack};
use crate::grammar::escape;

pub(super) fn parse(text: &str) -> Result<Vec<Part>, String> {
    let mut reader = Reader { rest: text.chars() };
    let mut parts = Vec::new();
    let mut literal = Vec::new();
    while let Some(c) = reader.rest.next() {
        if reader.literal(c, &mut literal)? {
            continue;
        }
        let part = reader.verb()?;
        if !literal.is_empty() {
            parts.push(Part::Literal(std::mem::take(&mut literal)));
        }
        parts.push(part);
    }
    if !literal.is_empty() {
        parts.push(Part::Literal(literal));
    }
    Ok(parts)
}

struct Reader<'t> {
    rest: Chars<'t>,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.clone().next()
    }

    /// Takes what stands for itself; false for a `%` that begins a verb.
    fn literal(&mut self, c: char, into: &mut Vec<u8>) -> Result<bool, String> {
        match c {
            '\\' => {
                let tail = self.rest.as_str();
                let (byte, used) = escape(tail.as_bytes())?;
                self.rest = tail.get(used..).unwrap_or_default().chars();
                into.push(byte);
            }
            '%' => match self.peek() {
                Some(c @ ('%' | '{' | '}')) => {
                    self.rest.next();
                    into.extend(c.to_string().as_bytes());
                }
                _ => return Ok(false),
            },
            c => into.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
        Ok(true)
    }

    /// What follows a `%`.
    fn verb(&mut self) -> Result<Part, String> {
        let Some(verb) = self.rest.next() else {
            return Err("a single `%` at the end: write `%%`".to_owned());
        };
        let number = |reader: &mut Self, number| Ok(Part::Number(number, reader.number(verb)?));
        match verb {
            't' => Ok(Part::Text(Text::Topic, self.text(verb)?)),
            'k' => Ok(Part::Text(Text::Key, self.text(verb)?)),
            'v' | 's' => Ok(Part::Text(Text::Value, self.text(verb)?)),
            'T' => number(self, Number::TopicLength),
            'K' => number(self, Number::KeyLength),
            'V' => number(self, Number::ValueLength),
            'S' => number(self, Number::ValueLengthOrNull),
            'R' => Ok(Part::Number(Number::ValueLengthOrNull, NumberFormat::BigEndian(4))),
            'H' => number(self, Number::HeaderCount),
            'p' => number(self, Number::Partition),
            'o' => number(self, Number::Offset),
            'e' => number(self, Number::LeaderEpoch),
            'x' => number(self, Number::ProducerId),
            'y' => number(self, Number::ProducerEpoch),
            'i' => number(self, Number::Iteration),
            '[' => number(self, Number::LogStart),
            '|' => number(self, Number::StableEnd),
            ']' => number(self, Number::LogEnd),
            'd' => self.time(),
            'a' => self.attribute(),
            'h' => self.headers(),
            other => Err(format!(
                "unknown `%{other}`: use %t topic, %p partition, %o offset, %k key, %v value, %h{{..}} headers, %d time, \
                 %e leader epoch, %a{{..}} attributes, %x %y producer, %i count, %T %K %V %H sizes, %[ %| %] start, stable end and \
                 end of the log, %% a percent sign"
            )),
        }
    }

    /// The text between a `{` that is next and its `}`, if there is one.
    fn modifier(&mut self, verb: char) -> Result<Option<String>, String> {
        if self.peek() != Some('{') {
            return Ok(None);
        }
        let inside = self.rest.as_str().get(1..).unwrap_or_default();
        let (name, rest) =
            inside.split_once('}').ok_or_else(|| format!("`%{verb}{{` is not closed by a `}}`"))?;
        self.rest = rest.chars();
        Ok(Some(name.to_owned()))
    }

    fn text(&mut self, verb: char) -> Result<TextFormat, String> {
        if let Some(quoted) = self.rest.as_str().strip_prefix("{unpack") {
            let (pack, rest) = between(quoted).ok_or_else(|| {
                format!("`%{verb}{{unpack` wants a pack string in brackets: %{verb}{{unpack[>iQ]}}")
            })?;
            let unpack = Unpack::parse(pack)?;
            self.rest = rest.chars();
            return Ok(TextFormat::Unpack(unpack));
        }
        match self.modifier(verb)?.as_deref() {
            None => Ok(TextFormat::Plain),
            Some("hex") => Ok(TextFormat::Hex),
            Some("base64") => Ok(TextFormat::Base64),
            Some("base64raw") => Ok(TextFormat::Base64Raw),
            Some(other) => {
                Err(format!("unknown `%{verb}{{{other}}}`: use hex, base64, base64raw or unpack[..]"))
            }
        }
    }

    fn number(&mut self, verb: char) -> Result<NumberFormat, String> {
        match self.modifier(verb)? {
            None => Ok(NumberFormat::Decimal),
            Some(name) => number_named(verb, &name),
        }
    }

    /// `%d`, `%d{NUMBER}`, `%d{strftime[..]}` or `%d{go[..]}`.
    fn time(&mut self) -> Result<Part, String> {
        let inside = self.rest.as_str().strip_prefix('{').unwrap_or_default();
        if let Some(quoted) = inside.strip_prefix("strftime") {
            let (format, rest) =
                between(quoted).ok_or("`%d{strftime` wants its format in brackets: %d{strftime[%F %T]}")?;
            let probe = jiff::Timestamp::UNIX_EPOCH.to_zoned_datetime(jiff::tz::TimeZone::UTC);
            jiff::fmt::strtime::format(format, &probe)
                .map_err(|e| format!("strftime format `{format}`: {e}"))?;
            let format = format.to_owned();
            self.rest = rest.chars();
            return Ok(Part::Time(format));
        }
        if let Some(quoted) = inside.strip_prefix("go") {
            let (layout, rest) = between(quoted)
                .ok_or("`%d{go` wants its layout in brackets: %d{go[2006-01-02T15:04:05Z07:00]}")?;
            let layout = GoLayout::parse(layout);
            self.rest = rest.chars();
            return Ok(Part::GoTime(layout));
        }
        let format = self.number('d').map_err(|e| {
            format!("{e}; or strftime or go, as in %d{{strftime[%F %T]}} and %d{{go[2006-01-02]}}")
        })?;
        Ok(Part::Number(Number::Timestamp, format))
    }

    /// `%a{compression}`, `%a{timestamp-type}`, `%a{transactional-bit}`, `%a{control-bit}`, each with `;NUMBER`.
    fn attribute(&mut self) -> Result<Part, String> {
        let wrong = || {
            "`%a` wants one of {compression}, {timestamp-type}, {transactional-bit}, {control-bit}".to_owned()
        };
        let inside = self.modifier('a')?.ok_or_else(wrong)?;
        let (name, format) = match inside.split_once(';') {
            Some((name, format)) => (name, Some(number_named('a', format)?)),
            None => (inside.as_str(), None),
        };
        let number = match name {
            "compression" => return Ok(Part::Codec(format)),
            "timestamp-type" => Number::TimestampType,
            "transactional-bit" => Number::Transactional,
            "control-bit" => Number::Control,
            _ => return Err(wrong()),
        };
        Ok(Part::Number(number, format.unwrap_or(NumberFormat::Decimal)))
    }

    /// `%h{..}`: a template of its own for each header; without braces kcat's list.
    fn headers(&mut self) -> Result<Part, String> {
        if self.peek() != Some('{') {
            return Ok(Part::HeaderList);
        }
        self.rest.next();
        let mut parts = Vec::new();
        let mut literal = Vec::new();
        loop {
            let Some(c) = self.rest.next() else { return Err("`%h{` is not closed by a `}`".to_owned()) };
            if c == '}' {
                break;
            }
            if self.literal(c, &mut literal)? {
                continue;
            }
            if !literal.is_empty() {
                parts.push(HeaderPart::Literal(std::mem::take(&mut literal)));
            }
            parts.push(match self.rest.next() {
                Some('k') => HeaderPart::Key(self.text('k')?),
                Some('v') => HeaderPart::Value(self.text('v')?),
                Some('K') => HeaderPart::KeyLength(self.number('K')?),
                Some('V') => HeaderPart::ValueLength(self.number('V')?),
                _ => return Err("inside of `%h{..}` there are %k, %v, %K, %V, %%, %{ and %}".to_owned()),
            });
        }
        if !literal.is_empty() {
            parts.push(HeaderPart::Literal(literal));
        }
        Ok(Part::Headers(parts))
    }
}

fn number_named(verb: char, name: &str) -> Result<NumberFormat, String> {
    NumberFormat::named(name).ok_or_else(|| {
        format!("unknown `%{verb}{{{name}}}`: use ascii, hex, hex4 to hex64, big8 to big64, little8 to little64, byte or bool")
    })
}

/// Splits `[[TEXT]]}REST`: text between any run of one sign and its counterpart, and the brace that must follow.
pub(crate) fn between(text: &str) -> Option<(&str, &str)> {
    let open = text.chars().next()?;
    let close = match open {
        '[' => ']',
        '{' => '}',
        '(' => ')',
        // Nothing that could be a format's first letter by mistake.
        c if c.is_ascii_alphanumeric() || c.is_control() => return None,
        other => other,
    };
    let body = text.trim_start_matches(open);
    let depth = text.len().checked_sub(body.len())?.checked_div(open.len_utf8())?;
    let end: String = std::iter::repeat_n(close, depth).collect();
    let (inside, rest) = body.split_once(&end)?;
    Some((inside, rest.strip_prefix('}')?))
}
